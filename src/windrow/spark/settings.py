"""Settings of a session that hold for a moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

__all__ = ["setting"]

_ONE_AT_A_TIME = threading.RLock()
"""Of two threads that change the same setting, one would put back what the other has set."""


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Have a setting of a session in the block; one that its Spark does not know does nothing there."""
    with _ONE_AT_A_TIME:
        before = spark.conf.get(name, None)
        spark.conf.set(name, value)
        try:
            yield
        finally:
            if before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)
