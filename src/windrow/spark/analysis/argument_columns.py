"""Columns of boundaries, passed from Python: those that are refused, and what is wrong with others."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import Column

from windrow.algebra.predicates import refuse_changing_condition
from windrow.algebra.window_node import Window, WindowBoundary
from windrow.errors import AnalysisError, NotSupportedError, ParseError, Span, WindrowError, no_column
from windrow.spark.errors import in_window_terms
from windrow.spark.jvm.column_trees import parts_of_name
from windrow.syntax.tokens import tokenize

__all__ = ["in_boundary_terms", "in_terms_of_rows", "not_boolean", "refuse_changing_column", "refuse_over"]

_UNKNOWN = re.compile(r"with name (`.+?`) cannot be resolved")
_TYPE = re.compile(r'of type "(\w+)')


def refuse_changing_column(column: Column) -> None:
    """Refuse a nondeterministic predicate.

    Raises
    ------
    NotSupportedError
        ``NONDETERMINISTIC_PREDICATE``, ``SYSTEM_CLOCK_IN_PREDICATE``.
    """
    text = str(column).removeprefix("Column<'").removesuffix("'>")
    try:
        tokens = tokenize(text)
    except ParseError:
        return  # Spark prints quotes in texts and names unescaped; the plan reports the problem instead
    try:
        refuse_changing_condition(tokens, (0, len(tokens)))
    except NotSupportedError as error:
        error.sql = error.span = None  # the place would be one in Spark's words
        raise


def refuse_over(column: Column) -> None:
    """Refuse a predicate with a window of Spark's, or with a function that returns rows.

    Raises
    ------
    NotSupportedError
        ``WINDOW_FUNCTION_IN_PREDICATE``.
    """
    text = str(column)
    if re.search(r"\) OVER \(|\b(explode|posexplode|inline|stack)(_outer)?\(", text):
        raise NotSupportedError(
            "a predicate cannot have OVER, nor a function that returns rows",
            condition="WINDOW_FUNCTION_IN_PREDICATE",
            hint="add it to the DataFrame as a column first; or use prev and next for neighbouring rows",
        )


def in_boundary_terms(
    error: WindrowError, window: Window, boundary: WindowBoundary, fields: Iterable[str]
) -> WindrowError:
    """Spark's error about a boundary's Column, in terms of the variables and of the columns of the rows."""
    error.sql, error.span = window.sql, _place(boundary)
    if error.condition == "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN":
        kind = _TYPE.search(error.message)
        return not_boolean(boundary, kind[1].lower() if kind else "another").located(window.sql)
    return in_window_terms(error, window, fields, boundary.side, _unknown(error))


def in_terms_of_rows(error: WindrowError, columns: Iterable[str]) -> WindrowError:
    """Spark's error about a Column that reads these columns of the rows."""
    unknown = _unknown(error)
    return error if unknown is None else no_column("rows have", ".".join(unknown), columns)


def _unknown(error: WindrowError) -> list[str] | None:
    """The parts of the name that an error says is unknown; None for other errors."""
    found = _UNKNOWN.search(error.message)
    return None if found is None else parts_of_name(found[1])


def not_boolean(boundary: WindowBoundary, kind: str) -> WindrowError:
    """The error for a boundary's Column whose values are of this type."""
    return AnalysisError(
        f"predicate of {boundary.side.name} is of type {kind}, not boolean",
        condition="PREDICATE_NOT_BOOLEAN",
        sqlstate="42804",
        span=_place(boundary),
        hint="write a condition, for example a comparison",
    )


def _place(boundary: WindowBoundary) -> Span | None:
    return None if boundary.when is None else boundary.when.span
