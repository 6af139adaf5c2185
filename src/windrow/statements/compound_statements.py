"""Compound statements with clauses of ours: their statements run one by one.

So windows read what the statements before them make. Its variables are variables of Spark's session
until it ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from windrow.algebra.names import piece_of
from windrow.relation import Relation
from windrow.spark.gateway import Gateway
from windrow.syntax.compounds import CompoundPart
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["run_compound"]


def run_compound(
    gateway: Gateway,
    tokens: TokenList,
    statements: list[CompoundPart],
    run: Callable[[str], Relation],
) -> Relation:
    """Run the statements, each to its end; the rows are those of the last query.

    Checked are the queries with which it begins: later statements may read what others make.

    Raises
    ------
    WindrowError
        That of a statement; those before it have run.
    """
    if gateway.checks:
        statements = list(itertools.takewhile(lambda one: one.is_query, statements))
    variables: list[str] = []
    answer: Relation | None = None
    last: Relation | None = None
    try:
        for number, statement in enumerate(statements):
            start, stop = statement.range
            is_short = statement.sets and tokens.word(start + 1) not in ("VAR", "VARIABLE")
            word = piece_of(tokens, start, start + 1, " VAR " if is_short else " ")
            with gateway.instead(SqlText.of(word, piece_of(tokens, start + 1, stop))) as read:
                last = run(read)
                variables += statement.declares
                if statement.is_query:
                    is_last = number == len(statements) - 1
                    answer = last if is_last or gateway.checks else _computed(gateway, last)
    finally:
        for name in dict.fromkeys(variables):
            gateway.sql(SqlText.of(f"DROP TEMPORARY VARIABLE IF EXISTS {quoted(name)}"))
    found = last if answer is None else answer
    if found is None:
        return Relation(gateway.spark.sql("SELECT 1 WHERE FALSE").select(), "a compound statement", gateway)
    return found


def _computed(gateway: Gateway, query: Relation) -> Relation:
    """The rows of a query as they are before the statements after it run."""
    with gateway.translated():
        rows = gateway.spark.createDataFrame(query.df.collect(), query.schema)
    return Relation(rows, query.plan(), gateway)
