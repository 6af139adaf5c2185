"""Lengths that are parameters or constant expressions: Spark evaluates them, once for each statement.

The result replaces the expression in the text, as a number or an INTERVAL. So plans, EXPLAIN and checkpoints
contain it, the reference reads it like any other length, and a query with another value is another query.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    ByteType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
)

from windrow.algebra.names import piece_of, verbatim
from windrow.algebra.rewriting.changing import refuse_changing
from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, WindrowError
from windrow.spark.gateway import Gateway
from windrow.syntax.lengths import LENGTH_UNITS, Length, interval_of, stands_in_window
from windrow.syntax.queries import is_query
from windrow.syntax.sqltext import Piece, SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["nanoseconds_of", "ticks_of", "with_lengths"]

_NUMBERS = (ByteType, ShortType, IntegerType, LongType, DecimalType, FloatType, DoubleType)
_LONGEST = Decimal(2**62)
"""The limit of microseconds or rows: added to a rowtime as large, it stays within 64 bits."""


@dataclass(frozen=True, slots=True)
class _Amount:
    """Nanoseconds, or a number without a unit."""

    value: Decimal
    is_time: bool


@contextmanager
def with_lengths(gateway: Gateway, tokens: TokenList, lengths: Sequence[Length]) -> Iterator[str]:
    """The text with these lengths replaced by their values.

    Raises
    ------
    WindrowError
        ``INVALID_WINDOW_SIZE``, of navigations ``INVALID_NAVIGATION``, ``NON_CONSTANT_LENGTH``,
        ``SYSTEM_CLOCK``, ``NONDETERMINISTIC_QUERY``, and Spark's own errors about an expression.
    """
    sql, at = tokens.sql, 0
    parts: list[SqlText | Piece] = []
    for length in sorted(lengths, key=lambda length: length.tokens):
        span = tokens.span(*length.tokens)
        text = _literal(gateway, tokens, length)
        parts += [verbatim(tokens, at, span.start), Piece(text, sql, span.start, span.stop - span.start)]
        at = span.stop
    with gateway.instead(SqlText.of(*parts, verbatim(tokens, at, len(sql)))) as read:
        yield read


def nanoseconds_of(
    gateway: Gateway, tokens: TokenList, length: Length, *, default: str | None = None
) -> Decimal:
    """A length of time; `default` is the unit of a number without one.

    Raises
    ------
    AnalysisError
        ``INVALID_WINDOW_SIZE``.
    """
    amount = _amount(gateway, tokens, length)
    if not amount.is_time and default is None:
        raise _invalid(
            tokens, length, "a length of time needs a unit", "write the unit after the number: 10 SECONDS"
        )
    return amount.value if amount.is_time else amount.value * LENGTH_UNITS[default or "SECOND"]


def ticks_of(gateway: Gateway, tokens: TokenList, scale: TimeScale, name: str, length: Length) -> int:
    """A length in ticks; a number counts the ticks of integer times.

    Raises
    ------
    AnalysisError
        ``INVALID_WINDOW_SIZE``.
    """
    amount = _amount(gateway, tokens, length)
    is_integer = scale.kind == "bigint"
    if amount.is_time is is_integer:
        hint = "write a number" if is_integer else "write an interval, such as INTERVAL 10 MINUTES"
        raise _invalid(tokens, length, f"{name} is not a length of time for {scale.kind.upper()}", hint)
    ticks = amount.value if is_integer else amount.value / scale.nanoseconds
    if ticks != int(ticks):
        unit = "whole number" if is_integer else f"whole number of {scale.unit.lower()}s"
        hint = "write a whole number" if is_integer else "cast the column to TIMESTAMP"
        raise _invalid(tokens, length, f"{name} is not a {unit}", hint)
    return int(ticks)


def _literal(gateway: Gateway, tokens: TokenList, length: Length) -> str:
    """The length as a number or an INTERVAL."""
    amount = _amount(gateway, tokens, length)
    if length.counts_rows and (amount.is_time or amount.value != int(amount.value)):
        problem = "a length of time" if amount.is_time else f"{amount.value:f}"
        raise _no_length(tokens, length, problem)
    if amount.is_time:
        return interval_of(amount.value)
    whole = int(amount.value)
    return str(whole) if whole == amount.value else f"{amount.value.normalize():f}"


def _amount(gateway: Gateway, tokens: TokenList, length: Length) -> _Amount:
    if length.number is None:
        value = _constant(gateway, tokens, length)
    else:
        value = _Amount(length.number, is_time=False)
    if length.unit is not None:
        if value.is_time:
            hint = f"leave {length.unit} out, or write a number"
            raise _invalid(tokens, length, "an interval already has a unit", hint)
        value = _Amount(value.value * LENGTH_UNITS[length.unit], is_time=True)
    what = "a number of rows" if length.counts_rows else "a length of time"
    least = length.least
    if least is not None and (value.value < 0 or (least > 0 and value.value == 0)):
        problem = "greater than zero" if least else "zero or greater"
        hint = _rows_from(length) if length.counts_rows else "write a longer one"
        if (
            least
            and not length.counts_rows
            and value.value == 0
            and stands_in_window(tokens, length.value[0])
        ):
            hint = "use [NOW] for rows of one instant"
        raise _invalid(tokens, length, f"{what} must be {problem}", hint)
    if abs(value.value) > _LONGEST * (1000 if value.is_time else 1):
        raise _invalid(tokens, length, f"{what} does not fit into 64 bits", "write a shorter one")
    return value


def _constant(gateway: Gateway, tokens: TokenList, length: Length) -> _Amount:
    """Spark's value of an expression without columns."""
    start, stop = length.value
    refuse_changing(tokens, (start, stop))
    value_of = piece_of(tokens, start, stop)
    # a table of constants takes nothing else: no aggregate, nothing that changes from run to run
    text = SqlText.of("SELECT * FROM VALUES ((", value_of, ")) AS t(value)")
    has_query = any(tokens.is_symbol(at, "(") and is_query(tokens, at) for at in range(start, stop))
    try:
        if has_query:  # whose value is that of now; WHERE takes no aggregate beside it
            gateway.sql(SqlText.of("SELECT 1 WHERE (", value_of, ") IS NULL"))
            text = SqlText.of("SELECT (", value_of, ") AS value")
        found = gateway.sql(text)
        kind = found.schema[0].dataType
        _refuse_other_types(tokens, length, kind)
        with gateway.translated():
            value = found.collect()[0][0]
    except WindrowError as error:
        raise _located(tokens, length, error) from error.__cause__
    if value is None:
        raise _no_length(tokens, length, "NULL")
    return _counted(tokens, length, value)


def _counted(tokens: TokenList, length: Length, value: Any) -> _Amount:
    if isinstance(value, datetime.timedelta):
        return _Amount(Decimal(value // datetime.timedelta(microseconds=1)) * 1000, is_time=True)
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise _no_length(tokens, length, str(value))
    return _Amount(number, is_time=False)


def _refuse_other_types(tokens: TokenList, length: Length, kind: DataType) -> None:
    if isinstance(kind, (DayTimeIntervalType, NullType, *_NUMBERS)):
        return
    name = kind.simpleString()
    if "interval" in name:
        raise _invalid(tokens, length, "months have no fixed length", "write days, hours, minutes or seconds")
    raise _no_length(tokens, length, f"a value of type {name.upper()}")


def _located(tokens: TokenList, length: Length, error: WindrowError) -> WindrowError:
    """The error; for a non-constant, it says what lengths are."""
    if error.condition.startswith("INVALID_INLINE_TABLE.FAILED"):
        return _invalid(
            tokens,
            length,
            "the length cannot be computed",
            "write a literal, or pass the length as a parameter",
        )
    if error.condition == "PARSE_SYNTAX_ERROR" and error.hint is None:
        error.hint = "write a number, a parameter, an interval, or an expression of these, such as 2 * :n"
    problem = ""
    if error.condition.startswith("UNRESOLVED_COLUMN"):
        problem = "a length cannot read a column"
    elif error.condition.startswith(("INVALID_INLINE_TABLE", "INVALID_WHERE_CONDITION")):
        problem = "a length must be a constant"
    if not problem:
        return error
    span = error.span if error.sql == tokens.sql and error.span else tokens.span(*length.tokens)
    return AnalysisError(
        problem,
        condition="NON_CONSTANT_LENGTH",
        sqlstate="42K08",
        sql=tokens.sql,
        span=span,
        hint="write the value, pass it as a parameter, or DECLARE a variable",
    )


def _no_length(tokens: TokenList, length: Length, what: str) -> AnalysisError:
    """The error for a value that is not a length, or not a number of rows."""
    if length.counts_rows:
        return _invalid(tokens, length, f"{what} is not a number of rows", _rows_from(length))
    hint = "write a number or an interval; in Python, pass datetime.timedelta(minutes=5)"
    return _invalid(tokens, length, f"{what} is not a length", hint)


def _rows_from(length: Length) -> str:
    return f"write a whole number of {length.least or 0} or more"


def _invalid(tokens: TokenList, length: Length, message: str, hint: str) -> AnalysisError:
    return AnalysisError(
        message,
        condition="INVALID_NAVIGATION" if length.navigates else "INVALID_WINDOW_SIZE",
        sqlstate="42601" if length.navigates else None,
        sql=tokens.sql,
        span=tokens.span(*length.tokens),
        hint=hint,
    )
