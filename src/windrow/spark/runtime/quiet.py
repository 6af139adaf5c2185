"""Suppress PySpark's log of errors that Windrow raises itself."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from pyspark.logger import PySparkLogger

__all__ = ["quiet"]

# PySpark logs the whole JVM trace of an analysis error through these
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def quiet() -> Iterator[None]:
    """Drop PySpark's log records of query errors in this thread; the errors themselves are still raised.

    The loggers belong to the process: records of other threads, and of this one before and after the block,
    are logged as the user has configured.
    """
    _install()
    _here.depth += 1
    try:
        yield
    finally:
        _here.depth -= 1


@cache
def _install() -> None:
    # Once: to make a logger of its own, PySpark has all that are made at that moment be such.
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_passes)


class _Here(threading.local):
    depth = 0
    """How many blocks of `quiet` the thread is in."""


_here = _Here()


def _passes(_: logging.LogRecord) -> bool:
    return _here.depth == 0
