"""Nondeterministic columns passed from Python."""

from __future__ import annotations

import re

from pyspark.sql import Column

from windrow.algebra.predicates import refuse_changing_condition
from windrow.errors import NotSupportedError, ParseError
from windrow.syntax.tokens import tokenize

__all__ = ["refuse_changing_column", "refuse_over"]


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
