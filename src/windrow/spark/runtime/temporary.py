"""Temporary folders that are deleted with their owner, and at the end of the process in any case."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from windrow.spark.jvm.bridge import BridgeError
from windrow.spark.jvm.process import delete_at_end, keep_at_end

__all__ = ["TemporaryFolder"]


class TemporaryFolder:
    """A folder that is deleted when it is garbage-collected, or else at the end of the process.

    If a signal ends the process, the JVM deletes it, which exits a moment later.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="windrow-")).resolve()
        self._spark = spark
        atexit.register(self._delete)
        delete_at_end(spark, self.path)

    def remove(self) -> None:
        """Delete the folder with its content."""
        atexit.unregister(self._delete)
        self._delete()
        with suppress(BridgeError, OSError):  # of a Java machine that has ended
            keep_at_end(self._spark, self.path)

    def _delete(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
