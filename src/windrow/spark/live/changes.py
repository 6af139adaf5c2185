"""CHANGELOG OF a live relation: a step gives the changes of its instants, so each is looked at by itself."""

from __future__ import annotations

from windrow.algebra.continuous import ChangelogOf, Query
from windrow.spark.continuous import Runner
from windrow.spark.gateway import Gateway
from windrow.spark.live.row_by_row import refuse_gathering
from windrow.spark.live.rowtimes import stub
from windrow.syntax.tokens import TokenList

__all__ = ["refuse_gathered_changes"]


def refuse_gathered_changes(gateway: Gateway, runner: Runner, query: Query, tokens: TokenList) -> None:
    """Refuse a query of changelogs alone that puts changes together.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM``.
    """
    changelogs = [item for item in query.inputs if isinstance(item, ChangelogOf)]
    frames = {item.key: stub(gateway.spark, runner.changelog(item).schema) for item in changelogs}
    frame = gateway.sql(query.text, frames)
    refuse_gathering(
        gateway, frame, query.text, tokens, query.span, changelogs[0].span, beside="CHANGELOG OF"
    )
