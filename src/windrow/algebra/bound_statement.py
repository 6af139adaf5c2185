"""A statement: SQL for Spark in which each clause of Windrow is a reference to its node."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.algebra.match_node import Match
from windrow.algebra.window_node import Window
from windrow.syntax.sqltext import SqlText

__all__ = ["BoundStatement"]


@dataclass(frozen=True)
class BoundStatement:
    """A statement with WINDOW BY or MATCH_RECOGNIZE: `windows`, each after those that it reads."""

    sql: str
    text: SqlText
    windows: tuple[Window | Match, ...]
