"""Micro-batches as files, for servers that call functions of ``foreachBatch`` in a process of their own.

The server writes each micro-batch to a directory, and the process of the query reads one after the other.
"""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from windrow.errors import UsageError
from windrow.spark.live.checkpoints.checksums import missing
from windrow.spark.live.sinks.sink import uri
from windrow.spark.logs.live_source import PLACE

__all__ = ["Incoming", "check_shared", "writing"]

_WHOLE = "_SUCCESS"
_BETWEEN_LOOKS = 0.1  # seconds


def writing(folder: Path) -> Callable[[DataFrame, int], None]:
    """The function for ``foreachBatch``, which does not import Windrow."""
    where, place, whole = str(folder), PLACE, _WHOLE

    def write(batch: DataFrame, number: int) -> None:
        from pathlib import Path

        from pyspark.sql import functions as F

        target = Path(where) / str(number)
        # a complete one may be in use: Spark repeats micro-batches that it has not committed
        if not (target / whole).exists():
            numbered = batch.withColumn(place, F.monotonically_increasing_id())
            numbered.write.mode("overwrite").parquet(f"file://{target}")

    return write


def check_shared(spark: SparkSession, folder: Path) -> None:
    """Check that the server has the folder too.

    Raises
    ------
    UsageError
        ``NOT_SHARED``.
    """
    token = folder / f"{uuid.uuid4().hex}.token"
    token.write_text(token.name)
    try:
        found = [row[0] for row in spark.read.text(uri(token)).collect()]
    except PySparkException:
        found = []
    finally:
        token.unlink()
    if found != [token.name]:
        raise UsageError(
            f"the Spark Connect server does not have {folder}",
            condition="NOT_SHARED",
            hint="use a checkpoint on a file system that this process and the server share, at the same path",
        )


class Incoming:
    """Processes the micro-batches of a streaming query in a thread of this process.

    Parameters
    ----------
    folder
        The folder with the micro-batches.
    after
        The number of the last processed one.
    take
        Processes one; if it fails, both queries end.

    Attributes
    ----------
    error
        The exception with which they have ended.
    """

    def __init__(self, folder: Path, after: int, take: Callable[[DataFrame, int], None]) -> None:
        self.folder, self._next, self._take = folder, after + 1, take
        self._stopped, self._idle = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.error: Exception | None = None

    def follow(self, spark: SparkSession, streaming: StreamingQuery) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, args=(spark, streaming), daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
        self.join()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end of the thread; whether it has ended."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self.is_active

    def catch_up(self) -> None:
        """Wait until all written micro-batches are processed."""
        self._idle.clear()
        while self.is_active and not self._idle.wait(_BETWEEN_LOOKS):
            pass

    def _run(self, spark: SparkSession, streaming: StreamingQuery) -> None:
        try:
            while not self._stopped.is_set():
                is_written = streaming.isActive  # read before the files, so that the last ones are found
                waiting = sorted(int(path.parent.name) for path in self.folder.glob(f"*/{_WHOLE}"))
                for number in waiting:
                    if number < self._next:
                        shutil.rmtree(self.folder / str(number), ignore_errors=True)
                if self._next in waiting:
                    self._process_next(spark)
                elif waiting and waiting[-1] > self._next:
                    raise missing(self.folder / str(self._next))
                else:
                    self._idle.set()
                    if not is_written:
                        return
                    self._stopped.wait(_BETWEEN_LOOKS)
        except Exception as error:
            self.error = error
        finally:
            self._idle.set()
            if not self._stopped.is_set() and streaming.isActive:
                streaming.stop()

    def _process_next(self, spark: SparkSession) -> None:
        path = self.folder / str(self._next)
        self._take(spark.read.parquet(uri(path)), self._next)
        self._next += 1
        shutil.rmtree(path, ignore_errors=True)
