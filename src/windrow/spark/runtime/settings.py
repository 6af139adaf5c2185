"""Settings of a session: temporary ones, and the time zone."""

from __future__ import annotations

import datetime
import re
import threading
import zoneinfo
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from pyspark.sql import SparkSession

__all__ = ["STATE_STORE", "setting", "settings", "zone_named"]

STATE_STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""The state store of live queries on executors: Spark's default has no column families."""

_ONE_AT_A_TIME = threading.RLock()
"""If two threads changed the same setting, one would restore the other's value."""


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Set a session's setting within the block; Spark ignores settings that it does not know."""
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


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set several settings of a session within the block."""
    with ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(setting(spark, name, value))
        yield


def zone_named(name: str) -> datetime.tzinfo | None:
    """A session's time zone; None for a form of Spark's that Python does not know.

    >>> zone_named("Europe/Berlin"), zone_named("+02:00"), zone_named("nowhere")
    (zoneinfo.ZoneInfo(key='Europe/Berlin'), datetime.timezone(datetime.timedelta(seconds=7200)), None)
    """
    found = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::(\d\d))?", name)
    if found is not None:
        length = datetime.timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return datetime.timezone(-length if found[1] == "-" else length)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return None
