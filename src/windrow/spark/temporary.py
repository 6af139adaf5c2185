"""Folders that go with what they are for, and with the process, however that ends."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

__all__ = ["TemporaryFolder", "deleted_by_java"]


class TemporaryFolder:
    """A folder that is deleted when it is let go of, or else when the process ends.

    Of a process that a signal ends, Java's machine does it, which ends a moment later.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="windrow-")).resolve()
        self._spark = spark
        atexit.register(self._delete)
        deleted_by_java(spark, self.path)

    def remove(self) -> None:
        """Delete it, with what is in it."""
        atexit.unregister(self._delete)
        self._delete()
        hooks = _hooks(self._spark)
        if hooks is not None:
            with suppress(Py4JError, OSError):  # of a Java machine that has ended
                hooks.removeShutdownDeleteDir(_file(self._spark, self.path))

    def _delete(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def deleted_by_java(spark: SparkSession, folder: Path) -> None:
    """Have Java's machine delete a folder when it ends, where there is one."""
    hooks = _hooks(spark)
    if hooks is not None:
        hooks.registerShutdownDeleteDir(_file(spark, folder))


def _hooks(spark: SparkSession) -> Any:
    java = getattr(spark, "_jvm", None)
    return None if java is None else java.org.apache.spark.util.ShutdownHookManager


def _file(spark: SparkSession, folder: Path) -> Any:
    java: Any = spark._jvm
    return java.java.io.File(str(folder))
