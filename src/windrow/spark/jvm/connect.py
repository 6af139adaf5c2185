"""Spark Connect, which has no bridge to Java: how to get the same information from it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

__all__ = ["estimated_by_connect", "explained_by_connect", "of_connect", "relations_of_connect"]


_SIZE = re.compile(r"sizeInBytes=([0-9.]+(?:E[+-]?[0-9]+)?) ?([KMGTPE]?)i?B")
_UNITS = {unit: 1024**power for power, unit in enumerate(["", "K", "M", "G", "T", "P", "E"])}


def of_connect(untyped: object) -> bool:
    """Whether a session, a DataFrame, a Column or a query is one of Spark Connect."""
    return type(untyped).__module__.startswith("pyspark.sql.connect")


def explained_by_connect(frame: DataFrame, mode: str) -> str:
    """The text of ``frame.explain``."""
    return str(frame._explain_string(mode=mode))  # type: ignore[operator]


def estimated_by_connect(frame: DataFrame) -> float:
    """Spark's estimate of the size of the rows; infinite if it has none.

    It is read from the text of a plan, as Connect has no other way to find it.
    """
    found = _SIZE.search(explained_by_connect(frame, "cost"))
    return float(found[1]) * _UNITS[found[2]] if found else math.inf


def relations_of_connect(frame: DataFrame) -> Iterator[int]:
    """The numbers of the relations that a DataFrame is derived from, its own first.

    On Connect, the only plan on the client is the message that it sends, in which each relation has a number.
    """
    untyped: Any = frame
    yield from _numbers(untyped._plan.to_proto(untyped.sparkSession.client))


def _numbers(message: Any) -> Iterator[int]:
    if message.DESCRIPTOR.full_name == "spark.connect.Relation":
        yield int(message.common.plan_id)
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for one in [value] if hasattr(value, "ListFields") else value:
            yield from _numbers(one)
