"""Which way a query is computed: by nodes if each of its forms has one, and otherwise by Spark.

The first of these ways that applies is used:

1. nodes, of which one is an expression that Spark computes with the value of IN
   (:mod:`windrow.plan.reader.computed_by_spark`);
2. of a SELECT with groups or with functions over frames: its text, over its rows in each piece of time in
   which they stay as they are;
3. of a query that stands alone, in brackets or under a name: its text, at each piece of time;
4. none. Then the query is refused, for the reason why it has no nodes.

The second and third are in :mod:`windrow.plan.reader.pieces`. Their node has the reason why there are no
other nodes, which EXPLAIN prints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from windrow.plan.reader.statement_text import NotAnalysed, StatementText, UnreadError
from windrow.plan.reasons import Reason

__all__ = ["instead", "or_instead"]

Found = TypeVar("Found")


def or_instead(
    statement: StatementText,
    nodes: Callable[[], Found],
    by_spark: Callable[[Reason], Found | None],
    *conditions: str,
) -> Found:
    """The result of nodes; if they do not apply, of Spark. Spark's errors with these conditions mean that
    they do not.
    """
    found = statement.attempt(nodes, *conditions)
    return instead(statement, found, by_spark) if isinstance(found, Reason) else found


def instead(statement: StatementText, why: Reason, by_spark: Callable[[Reason], Found | None]) -> Found:
    """The result that Spark computes because there are no nodes; None if Spark cannot compute it either.

    Raises
    ------
    UnreadError, WindrowError
        Why there are no nodes.
    """
    found = statement.attempt(lambda: by_spark(why))
    if found is not None and not isinstance(found, Reason):
        return found
    raise why.error if isinstance(why, NotAnalysed) else UnreadError.of(why)
