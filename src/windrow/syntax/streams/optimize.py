"""Reads OPTIMIZE: the files of a stream's log are merged."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["Optimize", "parse_optimize"]


@dataclass(frozen=True, slots=True)
class Optimize:
    """``OPTIMIZE name``, and the clauses that Delta's tables have after it.

    Attributes
    ----------
    name
        The stream or table.
    target
        The token of its name.
    clauses
        The tokens after it; empty for a stream.
    """

    name: str
    target: Range
    clauses: Range


def parse_optimize(tokens: TokenList, start: int, stop: int) -> Optimize | None:
    """The OPTIMIZE statement; None for others, also for a table of a database or at a path."""
    name = start + 1
    if tokens.word(start) != "OPTIMIZE" or name >= stop or not tokens[name].is_name:
        return None
    if name + 1 < stop and tokens.is_symbol(name + 1, "."):
        return None
    return Optimize(tokens[name].name, (name, name + 1), (name + 1, stop))
