"""Has time pass for queries whose streams are silent: what is due is given when it is, entry or not.

A step says when it wants to be followed by another. At that time a tick is put where the query's input comes
from, so that Spark makes a micro-batch of it: for streaming DataFrames into a folder of the checkpoint, for
named streams into their log. So a tick has its place among the entries, before and after a restart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windrow.spark.live.sinks.sink import uri
from windrow.streams.durable_files import flush

__all__ = ["TickFiles", "Ticker"]

_KEPT = 100


class TickFiles:
    """The ticks of a query over streaming DataFrames: a file each, which says for when it is.

    Parameters
    ----------
    folder
        Of the checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def arriving(self, spark: SparkSession) -> DataFrame:
        """A streaming DataFrame of the times that are reached by ticks, ``tick``, in microseconds."""
        ticks = spark.readStream.text(uri(self.folder))
        now = F.unix_micros(F.current_timestamp())
        return ticks.select(F.greatest(now, F.col("value").cast("bigint")).alias("tick"))

    def add(self, wanted: int) -> None:
        """Add a tick, and tidy up those that must have been taken long ago."""
        path = self.folder / f"{wanted:020}.txt"
        pending = self.folder / f".{wanted:020}.pending"
        pending.write_text(f"{wanted}\n")
        flush(pending)
        pending.replace(path)
        flush(self.folder)
        for old in sorted(self.folder.glob("*.txt"))[:-_KEPT]:
            old.unlink(missing_ok=True)


class Ticker:
    """Calls for a tick when it is time.

    Parameters
    ----------
    tick
        Puts a tick for an instant, in microseconds, into the query's input.
    failed
        Is called with what that has failed with.
    """

    def __init__(self, tick: Callable[[int], None], failed: Callable[[Exception], None]) -> None:
        self._tick, self._failed = tick, failed
        self._changed = threading.Condition()
        self._wanted: int | None = None
        self._is_over = False
        self._thread: threading.Thread | None = None

    def want(self, instant: int | None) -> None:
        """Tick at an instant, in microseconds, and no more until this is called again; None for never."""
        with self._changed:
            self._wanted = instant
            if instant is not None and self._thread is None and not self._is_over:
                self._thread = threading.Thread(target=self._run, name="windrow-ticks", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        """Tick no more."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while (instant := self._due()) is not None:
            try:
                self._tick(instant)
            except Exception as error:
                self._failed(error)
                return

    def _due(self) -> int | None:
        """Wait until it is time; for when the tick is, None at the end."""
        with self._changed:
            while not self._is_over:
                left = None if self._wanted is None else self._wanted / 1e6 - time.time()
                if left is not None and left <= 0:
                    instant, self._wanted = self._wanted, None
                    return instant
                self._changed.wait(left)
        return None
