"""Prune row groups and directories without rows that satisfy a filter, by their statistics and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.spark.analysis.expressions import ColumnScope, read
from windrow.spark.analysis.plan_tree import SparkNode
from windrow.spark.analysis.typed_values import Unread
from windrow.spark.scan.footers import Footer
from windrow.spark.scan.planned_files import Constants

__all__ = ["KnownColumns", "KnownValues", "may_hold", "of_directory", "of_row_group"]


@dataclass(frozen=True)
class KnownValues:
    """The known range of a column's values.

    Attributes
    ----------
    least, greatest
        As numbers, days, microseconds or bytes. None if unknown.
    has_values, has_nulls
        Whether there may be values, and NULLs.
    """

    least: Any = None
    greatest: Any = None
    has_values: bool = True
    has_nulls: bool = True


KnownColumns = Callable[[int], KnownValues]
"""By the expression ids of Spark's plans."""

_TURNED = {
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "EqualTo": "EqualTo",
    "EqualNullSafe": "EqualNullSafe",
}


def may_hold(condition: SparkNode, known: KnownColumns) -> bool:
    """Whether there may be a row for which the condition is true."""
    match condition.name:
        case "And":
            return all(may_hold(part, known) for part in condition.children)
        case "Or":
            return any(may_hold(part, known) for part in condition.children)
        case "IsNull" | "IsNotNull":
            (column,) = condition.children
            if column.name != "AttributeReference":
                return True
            found = known(column.number)
            return found.has_nulls if condition.name == "IsNull" else found.has_values
        case "In":
            column, *values = condition.children
            return any(_may_compare("EqualTo", column, value, known) for value in values)
        case name if name in _TURNED:
            left, right = condition.children
            if left.name == "Literal":
                left, right, name = right, left, _TURNED[name]
            return _may_compare(name, left, right, known)
    return True


def _may_compare(name: str, column: SparkNode, literal: SparkNode, known: KnownColumns) -> bool:
    if column.name != "AttributeReference" or literal.name != "Literal":
        return True
    value = _compared(literal)
    if value is None:
        return True
    found = known(column.number)
    if not found.has_values:
        return False
    # the statistics leave out NaN, which is greater than any other value
    is_float = isinstance(value, float)
    below = found.least is not None and value < found.least
    above = found.greatest is not None and value > found.greatest and not is_float
    match name:
        case "LessThan":
            return not below and (found.least is None or value != found.least)
        case "LessThanOrEqual":
            return not below
        case "GreaterThan":
            return not above and (is_float or found.greatest is None or value != found.greatest)
        case "GreaterThanOrEqual":
            return not above
    return not below and not above


def _compared(literal: SparkNode) -> int | float | bytes | None:
    """A literal in the form of the statistics; None if they have another form, or none."""
    try:
        found = read(literal, ColumnScope({}))
    except Unread:
        return None
    assert found.literal is not None
    if not found.literal.is_valid:
        return None
    if found.span is not None and not pa.types.is_duration(found.kind):
        return found.span[0]
    value = found.literal.as_py()
    if pa.types.is_string(found.kind):
        return bytes(value, "utf-8")
    if pa.types.is_float64(found.kind) and value == value:
        return float(value)
    return None


def of_row_group(footer: Footer, number: int, names: Mapping[int, str], others: KnownColumns) -> KnownColumns:
    """The ranges of a row group's columns by the footer of its file; other columns as in `others`."""
    leaves = footer.metadata.schema
    places = {path: place for place, path in enumerate(footer.paths)}
    group = footer.metadata.row_group(number)

    def known(column: int) -> KnownValues:
        name = names.get(column)
        if name is None:
            return others(column)
        chunk = group.column(places[name])
        statistics = chunk.statistics
        if statistics is None:
            return KnownValues()
        has_nulls = not statistics.has_null_count or statistics.null_count > 0
        if statistics.has_null_count and statistics.null_count == chunk.num_values:
            return KnownValues(has_values=False)
        logical = leaves.column(places[name]).logical_type.type
        is_known = statistics.has_min_max and (
            (chunk.physical_type in ("INT32", "INT64") and logical != "DECIMAL")
            or (chunk.physical_type == "BYTE_ARRAY" and logical == "STRING")
            or (chunk.physical_type == "DOUBLE" and statistics.min_raw == statistics.min_raw)
        )
        return (
            KnownValues(statistics.min_raw, statistics.max_raw, has_nulls=has_nulls)
            if is_known
            else KnownValues(has_nulls=has_nulls)
        )

    return known


def of_directory(numbers: Mapping[int, int], values: Constants) -> KnownColumns:
    """The values of a file's columns by its directory, by their places among the values."""

    def known(column: int) -> KnownValues:
        if column not in numbers:
            return KnownValues()
        value = values[numbers[column]]
        if value is None:
            return KnownValues(has_values=False)
        at = value.encode() if isinstance(value, str) else value
        return KnownValues(at, at, has_nulls=False)

    return known
