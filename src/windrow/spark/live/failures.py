"""What a live query failed with, told as our errors are."""

from __future__ import annotations

import errno

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from windrow.errors import WindrowError
from windrow.spark.errors import disk_full, of_java, translate

__all__ = ["failure"]

_FULL = (errno.ENOSPC, errno.EDQUOT)


def failure(error: Exception) -> WindrowError | None:
    """The error of ours that an exception stands for, None if it is none of Spark's nor of the disk's."""
    if isinstance(error, WindrowError):
        return error
    if isinstance(error, OSError):
        return disk_full(error.filename) if error.errno in _FULL else None
    if isinstance(error, Py4JJavaError):
        return of_java(error)
    return translate(error) if isinstance(error, PySparkException) else None
