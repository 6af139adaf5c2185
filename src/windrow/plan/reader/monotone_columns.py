"""Computed columns that follow a source column: they rise, fall or differ where it does."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from windrow.algebra.rewriting.time_windows_as_sql import OF_WINDOWS, TICKS
from windrow.plan.columns import Column, Follows
from windrow.plan.reader.statement_text import StatementText
from windrow.syntax.expressions.monotone_parts import Family, going
from windrow.syntax.expressions.rising import STEADY, goes_by_zone, rising
from windrow.syntax.nodes import Range

__all__ = ["cast_follows", "follows", "rises_with"]

ColumnOf = Callable[[Range], "str | None"]
TypeOf = Callable[[str], DataType]


def rises_with(statement: StatementText, stretch: Range, column: ColumnOf, type_of: TypeOf) -> str | None:
    """The column with which a computed expression rises."""
    tokens, (start, stop) = statement.tokens, stretch
    while tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    inner = rising(tokens, start, stop) if start < stop else None
    is_of_time = inner is not None
    inner = None if is_of_time and _is_set_back(statement, start, stop) else inner
    is_ticks = tokens.word(stretch[1]) == "AS" and tokens[stretch[1] + 1].name == TICKS
    for at in range(start, stop):  # the expression for time windows has one column
        is_of_windows = tokens[at].is_name and tokens[at].name in OF_WINDOWS
        if is_of_windows or (is_ticks and column((at, at + 1)) is not None):
            inner, is_of_time = (at, at + 1), False
    if inner is None:
        return None
    source = column(inner)
    if source is None:
        return rises_with(statement, inner, column, type_of)
    return source if not is_of_time or _family(type_of(source)) == "time" else None


def follows(statement: StatementText, stretch: Range, column: ColumnOf, type_of: TypeOf) -> Follows | None:
    """How an expression follows one column."""
    found = []
    part, source = stretch, None
    while source is None:
        operation = going(statement.tokens, *part)
        if operation is None:
            return None
        found.append(operation)
        part = operation.part
        source = column(part)
    kind = type_of(source)
    if _family(kind) is None:
        return None
    family, rises, differs = _family(kind), True, isinstance(kind, IntegralType | StringType)
    for operation in reversed(found):
        if operation.wants == "time" and _is_set_back(statement, *stretch):
            return None
        if operation.wants == "number" and not statement.analyser.is_ansi:
            return None  # a value out of range would be NULL, or less
        if family != operation.wants and not (operation.wants == "text" and family == "number" and differs):
            return None
        family, rises, differs = operation.gives, rises == operation.rises, differs and operation.differs
    return Follows(source, None if family == "text" else rises, differs)


def cast_follows(statement: StatementText, column: Column, to: DataType) -> Follows | None:
    """How a cast of a column follows it."""
    kind = column.type
    is_steady = statement.analyser.zone in STEADY and isinstance(kind, DateType)
    is_number = _family(kind) == "number" and isinstance(to, NumericType) and statement.analyser.is_ansi
    if not (is_number or is_steady):
        return None
    differs = isinstance(kind, IntegralType) and isinstance(to, IntegralType | DecimalType)
    return Follows(column.id, rises=True, differs=differs)


def _is_set_back(statement: StatementText, start: int, stop: int) -> bool:
    """Whether a computed local time may fall while its instant rises, as at the end of daylight saving."""
    return statement.analyser.zone not in STEADY and goes_by_zone(statement.tokens, start, stop)


def _family(kind: DataType) -> Family | None:
    """The family of a column's type, for expressions that follow it."""
    if isinstance(kind, IntegralType | DecimalType):
        return "number"
    if isinstance(kind, DateType | TimestampType | TimestampNTZType):
        return "time"
    return "text" if isinstance(kind, StringType) else None
