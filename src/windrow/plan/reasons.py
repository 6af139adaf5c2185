"""The reason why a way to run a query does not apply: a value that EXPLAIN prints."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.syntax.nodes import Range

__all__ = ["Reason"]


@dataclass(frozen=True)
class Reason:
    """The part of a query that a way to run it does not support, its tokens if known, and a hint."""

    what: str
    at: Range | None = None
    hint: str | None = None

    def __str__(self) -> str:
        return self.what
