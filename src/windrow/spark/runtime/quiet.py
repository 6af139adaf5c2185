"""Keeps PySpark from printing the errors that Windrow raises in its own words."""

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
    """Drop what PySpark logs of query errors in this thread; the error itself is raised all the same.

    The loggers are the process's: what other threads log through them, and what this one does before and
    after, is logged as the user has arranged.
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
