"""Finds the user's own aggregates in a statement: functions that only the session knows.

Their names show nothing. So Spark analyses two texts: the first shows whether a function that is not Spark's
own is one of the user's, the second whether it is allowed in WHERE, where aggregates are not.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession
from pyspark.sql import functions as spark_functions

from windrow.algebra.aggregate_calls import AGGREGATES
from windrow.errors import WindrowError
from windrow.spark.gateway import Gateway
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["own_aggregates"]

_NO_FUNCTIONS = {
    "all", "and", "as", "between", "by", "cardinality", "case", "cast", "classifier", "define", "else",
    "except", "exists", "filter", "first", "from", "group", "if", "in", "interval", "is", "last",
    "match_number", "match_recognize", "next", "not", "nth_value", "on", "or", "order", "over",
    "partition", "pattern", "permute", "prev", "select", "subset", "then", "using", "values", "when",
    "where", "with",
}  # fmt: skip
"""Words before brackets that are never functions of the user."""


def own_aggregates(gateway: Gateway, tokens: TokenList) -> frozenset[str]:
    """The names, in lower case, of the user's aggregates that a text calls."""
    calls = dict(_unknown_calls(tokens))
    if not calls:
        return frozenset()
    known = _functions_of_user(gateway.spark, calls)
    return frozenset(name for name in calls if name in known and _is_aggregate(gateway, name, calls[name]))


def _unknown_calls(tokens: TokenList) -> Iterator[tuple[str, int]]:
    """Names before brackets that may be unknown to Spark, each with its number of arguments."""
    for at in range(len(tokens) - 1):
        if tokens[at].kind not in (TokenKind.WORD, TokenKind.QUOTED) or not tokens.is_symbol(at + 1, "("):
            continue
        name = tokens[at].name.lower()
        if name in _NO_FUNCTIONS or name in AGGREGATES or hasattr(spark_functions, name):
            continue
        if not tokens.is_symbol(at - 1, "."):
            yield name, len(tokens.split(at + 2, tokens.partner[at + 1]))


def _functions_of_user(spark: SparkSession, names: dict[str, int]) -> frozenset[str]:
    """The names that are functions of the user."""
    pattern = "|".join(name for name in names if name.isidentifier())
    if not pattern:
        return frozenset()
    found = spark.sql(f"SHOW USER FUNCTIONS LIKE '{pattern}'").collect()
    return frozenset(row[0].rpartition(".")[2].lower() for row in found)


def _is_aggregate(gateway: Gateway, name: str, arguments: int) -> bool:
    """Whether Spark refuses a function in WHERE because it is an aggregate."""
    nulls = ", ".join(["NULL"] * arguments)
    try:
        gateway.sql(SqlText.of(f"SELECT 1 WHERE {quoted(name)}({nulls}) IS NULL"))
    except WindrowError as error:
        return error.condition == "INVALID_WHERE_CONDITION"
    return False
