"""CHANGELOG OF a live relation: the changes of each instant are processed alone."""

from __future__ import annotations

from windrow.algebra.continuous import ChangelogOf, Query, Reader
from windrow.spark.gateway import Gateway
from windrow.spark.live.reading.beside import of_query
from windrow.spark.recorded.continuous_queries import Runner

__all__ = ["refuse_expanded_changes"]


def refuse_expanded_changes(gateway: Gateway, runner: Runner, query: Query, reader: Reader) -> None:
    """Refuse a query of changelogs alone that combines changes.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM``.
    """
    changelogs = [item for item in query.inputs if isinstance(item, ChangelogOf)]
    read = of_query(
        gateway, reader, query, {}, {item.key: runner.changelog(item).schema for item in changelogs}
    )
    why = read.why_not_row_by_row(reader.tokens, query.span, changelogs[0].span, beside="CHANGELOG OF")
    if why is not None:
        raise why
