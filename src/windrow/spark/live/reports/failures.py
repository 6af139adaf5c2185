"""The failure of a live query, as an error of Windrow."""

from __future__ import annotations

import errno
import re

from pyspark.errors import PySparkException

from windrow.errors import WindrowError
from windrow.spark.errors import disk_full, of_java, translate
from windrow.spark.jvm.bridge import is_of_java

__all__ = ["failure", "of_a_worker"]

_OF_A_WORKER = re.compile(r"Python worker (failed to connect back|exited unexpectedly)[^\n]*")
_FULL = (errno.ENOSPC, errno.EDQUOT)


def failure(error: Exception) -> WindrowError | None:
    """Windrow's error for an exception; None if it is neither from Spark nor from the disk."""
    if isinstance(error, WindrowError):
        return error
    if isinstance(error, OSError):
        return disk_full(error.filename) if error.errno in _FULL else None
    if is_of_java(error):
        return of_java(error)
    return translate(error) if isinstance(error, PySparkException) else None


def of_a_worker(error: BaseException | None) -> str | None:
    """The message about a Python worker that did not start or that ended; None for all other failures.

    >>> of_a_worker(RuntimeError("SparkException: Python worker failed to connect back."))
    'Python worker failed to connect back.'
    >>> of_a_worker(ValueError("no number"))
    """
    while error is not None:
        if found := _OF_A_WORKER.search(str(error)):
            return found[0]
        error = error.__cause__ or error.__context__
    return None
