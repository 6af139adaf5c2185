"""Rowtimes in time zones with daylight saving time, where days differ in length."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import DataType, TimestampNTZType, TimestampType

from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import Stream
from windrow.syntax.expressions.rising import STEADY

__all__ = ["zoned_types"]

_KINDS: dict[DataType, str] = {TimestampType(): "TIMESTAMP", TimestampNTZType(): "TIMESTAMP_NTZ"}


def zoned_types(gateway: Gateway, streams: Mapping[str, Stream]) -> dict[str, str]:
    """The types of such rowtimes, by the names of their streams."""
    if gateway.spark.conf.get("spark.sql.session.timeZone") in STEADY:
        return {}
    kinds = {
        name: _KINDS.get(stream.frame.schema[stream.rowtime].dataType)
        for name, stream in streams.items()
        if stream.rowtime is not None
    }
    return {name: kind for name, kind in kinds.items() if kind is not None}
