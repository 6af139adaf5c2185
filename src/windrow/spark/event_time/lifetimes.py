"""Groups whose keys live for so long: what a declared lifetime makes of a query's text.

The rows of a key, in order of rowtime, are of one life of it from the first on, for as long as the lifetime;
the next begins another. That is a session whose gap and greatest length are the lifetime. So the lives are
sessions around what the group reads, and their end is one more key, which is event time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from windrow.errors import AnalysisError, NotSupportedError, Span
from windrow.spark.event_time.columns import is_star
from windrow.spark.event_time.edits import Edits
from windrow.spark.event_time.facts import HIDDEN, Facts, Sides
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.table_functions import LIFE, LIFETIME
from windrow.syntax.tokens import TokenList

__all__ = ["Endless", "with_lifetimes"]


@dataclass(frozen=True)
class Endless:
    """A group without a key of event time: the block, its keys, and what it reads."""

    select: Select
    keys: tuple[Range, ...]
    sides: Sides


def with_lifetimes(
    tokens: TokenList, groups: Sequence[Endless], length: Callable[[str], str], place: tuple[str, Span]
) -> SqlText:
    """The text in which the keys of groups have a lifetime.

    Parameters
    ----------
    groups
        Those of the text that nothing else ends. Groups of what has been grouped are left as they are.
    length
        SQL for the lifetime, in the rowtime of a stream.
    place
        The user's text, and where in it the lifetime is declared.

    Raises
    ------
    AnalysisError
        ``LIFETIME_WITHOUT_KEY`` where no key can have one.
    NotSupportedError
        ``UNSUPPORTED_QUERY``.
    """
    edits = Edits(tokens)
    of_rows = [each for each in groups if each.keys and all(side.raw for _, side in each.sides)]
    if not of_rows:
        raise AnalysisError(
            "STATE LIFETIME is of the keys of a group without event time, and no rows are grouped so",
            condition="LIFETIME_WITHOUT_KEY",
            sql=place[0],
            span=place[1],
            hint="groups by event time end with the watermark: leave it out; or GROUP BY a key, as an id",
        )
    for each in of_rows:
        _edit(tokens, edits, each, length)
    return edits.text(0, len(tokens))


def _edit(tokens: TokenList, edits: Edits, group: Endless, length: Callable[[str], str]) -> None:
    select = group.select
    by = select.group_by
    assert by is not None
    if len(group.sides) > 1:
        raise _unsupported(
            tokens, by, "over a join", "join in a query in FROM: FROM (SELECT … FROM a JOIN b …)"
        )
    ((item, facts),) = group.sides
    time = _rowtime(facts)
    if time is None:
        hint = "select the rowtime of the one stream in it in the query in FROM"
        raise _unsupported(tokens, by, "over rows that do not show their rowtime", hint)
    if any(is_star(tokens, at) for each in (*select.items, select.having or by) for at in range(*each)):
        raise _unsupported(tokens, by, "beside a star", "name the columns")
    alias = quoted(item.alias or f"{HIDDEN}rows")
    names = [f"{HIDDEN}key{number}" for number in range(len(group.keys))]
    shown = [
        SqlText.of(", (", edits.piece(*key), f") AS {name}")
        for key, name in zip(group.keys, names, strict=True)
    ]
    edits.put(item.source[0], f"{LIFETIME}(TABLE(SELECT *", *shown, " FROM ")
    (stream,) = facts.streams
    lives = f"gap => {length(stream)}, maxdur => {length(stream)}"
    edits.put(
        by[0] - 2,
        f"), DESCRIPTOR({quoted(time)}), key => DESCRIPTOR({', '.join(names)}), {lives}) AS {alias}",
    )
    if by[1] - by[0] == 1 and tokens.word(by[0]) == "ALL":
        edits.instead[by[0]] = SqlText.join(", ", [edits.piece(*key) for key in group.keys])
    edits.put(by[1], f", {alias}.{quoted(LIFE[1])}")


def _rowtime(facts: Facts) -> str | None:
    """The column that shows the rowtime of the one stream that rows come from."""
    if len(facts.streams) != 1:
        return None
    shown = (name for name, event in facts.events.items() if event.mapped == "{t}" and event.sessions is None)
    return next((name for name in shown if not name.startswith(HIDDEN)), None)


def _unsupported(tokens: TokenList, at: Range, what: str, hint: str) -> NotSupportedError:
    return NotSupportedError(
        f"STATE LIFETIME of a group {what} is not supported",
        condition="UNSUPPORTED_QUERY",
        sql=tokens.sql,
        span=tokens.span(*at),
        hint=hint,
    )
