"""Nondeterministic columns passed from Python."""

from __future__ import annotations

from pyspark.sql import Column

from windrow.algebra.predicates import refuse_changing_condition
from windrow.errors import NotSupportedError, ParseError
from windrow.syntax.tokens import tokenize

__all__ = ["refuse_changing_column"]


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
