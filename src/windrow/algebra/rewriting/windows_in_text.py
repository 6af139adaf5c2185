"""Finds queries that :func:`windrow.algebra.rewriting.time_windows_as_sql.windowed` has made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windrow.algebra.rewriting.time_windows_as_sql import windows_of_alias
from windrow.syntax.nodes import Range
from windrow.syntax.queries import FromItem, Select, parse_query
from windrow.syntax.tokens import TokenList

__all__ = ["WindowsInText", "windows_in"]


@dataclass(frozen=True)
class WindowsInText:
    """A query that adds windows of time to the rows of a relation.

    Attributes
    ----------
    kind, lengths
        As :class:`windrow.algebra.rewriting.time_windows_as_sql.TimeWindow` has them.
    time
        The column of the times.
    keys
        The columns of which each combination has its own sessions.
    names
        Of the columns that are added.
    rows
        The relation.
    """

    kind: str
    lengths: Mapping[str, int]
    time: str
    keys: tuple[str, ...]
    names: tuple[str, ...]
    rows: FromItem


def windows_in(tokens: TokenList, select: Select) -> WindowsInText | None:
    """The time windows that a generated SELECT adds; None for other SELECTs."""
    written = windows_of_alias(select.source[0].alias) if select.source else None
    if written is None:
        return None
    kind, lengths = written
    keys: tuple[str, ...] = ()
    inner = select
    while inner.where is None:  # the innermost leaves out rows without a time
        keys = _partitioned(tokens, inner.items[-1]) or keys
        found = parse_query(tokens, *inner.source[0].source)
        assert isinstance(found, Select)
        inner = found
    names = tuple(tokens[stop - 1].name for _, stop in select.items[1:])
    return WindowsInText(kind, lengths, tokens[inner.where[0]].name, keys, names, inner.source[0])


def _partitioned(tokens: TokenList, item: Range) -> tuple[str, ...]:
    """The columns by which the frame of an item is partitioned."""
    words = [tokens.word(at) for at in range(*item)]
    if "PARTITION" not in words or "ORDER" not in words:
        return ()
    first, last = (item[0] + words.index(word) for word in ("PARTITION", "ORDER"))
    return tuple(tokens[at].name for at in range(first + 2, last, 2))
