"""CHANGELOG OF a live relation: a query of tables of changes as one over streams of changes."""

from __future__ import annotations

from windrow.algebra.continuous import ChangelogOf, Continuous, Query, Reader, StreamQuery
from windrow.spark.gateway import Gateway
from windrow.spark.live.reading.beside import of_query
from windrow.spark.recorded.continuous_queries import Runner
from windrow.syntax.cql_clauses import StreamWindowClause

__all__ = ["over_streams_of_changes"]


def over_streams_of_changes(
    gateway: Gateway, runner: Runner, query: Query, reader: Reader
) -> tuple[Reader, Continuous]:
    """A query of tables of changes as it runs live, and the text in which it is read.

    One that processes each change alone emits rows as changes arrive. Any other is the relation of the
    changes so far.
    """
    changelogs = [item for item in query.inputs if isinstance(item, ChangelogOf)]
    read = of_query(
        gateway, reader, query, {}, {item.key: runner.changelog(item).schema for item in changelogs}
    )
    now = StreamWindowClause((0, 0), is_now=True)
    so_far = StreamWindowClause((0, 0), is_unbounded=True)
    reader, over = reader.over_changes(query, so_far if read.gathers else now)
    return reader, over if read.gathers else StreamQuery("RSTREAM", over, (), query.span)
