"""Ticks: entries that let processing time pass in queries whose streams are silent.

A micro-batch says when the next one is due. At that time a tick is added to the query's input, so that Spark
starts a micro-batch: to a folder of the checkpoint for streaming DataFrames, to the log for named streams. So
a tick has its place among the entries, before and after a restart.
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

_MOST = 100


class TickFiles:
    """The ticks of a query over streaming DataFrames: a file for each, with its instant.

    Parameters
    ----------
    folder
        Their folder in the checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def arriving(self, spark: SparkSession) -> DataFrame:
        """A streaming DataFrame of the ticks' instants, ``tick``, in microseconds."""
        ticks = spark.readStream.text(uri(self.folder))
        now = F.unix_micros(F.current_timestamp())
        return ticks.select(F.greatest(now, F.col("value").cast("bigint")).alias("tick"))

    def add(self, wanted: int) -> None:
        """Add a tick, and delete old ones, which must have been processed."""
        path = self.folder / f"{wanted:020}.txt"
        pending = self.folder / f".{wanted:020}.pending"
        pending.write_text(f"{wanted}\n")
        flush(pending)
        pending.replace(path)
        flush(self.folder)
        for old in sorted(self.folder.glob("*.txt"))[:-_MOST]:
            old.unlink(missing_ok=True)


class Ticker:
    """Adds a tick when it is due.

    Parameters
    ----------
    tick
        Adds a tick for an instant, in microseconds, to the query's input.
    failed
        Called with the exception if that fails.
    """

    def __init__(self, tick: Callable[[int], None], failed: Callable[[Exception], None]) -> None:
        self._tick, self._failed = tick, failed
        self._changed = threading.Condition()
        self._wanted: int | None = None
        self._is_over = False
        self._thread: threading.Thread | None = None

    def want(self, instant: int | None) -> None:
        """Add one tick at an instant, in microseconds, instead of the one wanted before; None for no tick."""
        with self._changed:
            self._wanted = instant
            if instant is not None and self._thread is None and not self._is_over:
                self._thread = threading.Thread(target=self._run, name="windrow-ticks", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        """Add no more ticks."""
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
        """Wait until a tick is due, and return its instant; None at the end."""
        with self._changed:
            while not self._is_over:
                left = None if self._wanted is None else self._wanted / 1e6 - time.time()
                if left is not None and left <= 0:
                    instant, self._wanted = self._wanted, None
                    return instant
                self._changed.wait(left)
        return None
