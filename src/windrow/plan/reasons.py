"""Why a way to run a query does not apply to it: as a value, which EXPLAIN prints."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.syntax.nodes import Range

__all__ = ["Reason"]


@dataclass(frozen=True)
class Reason:
    """What of a query a way to run it lacks, at which tokens, if that is known, and what helps."""

    what: str
    at: Range | None = None
    hint: str | None = None

    def __str__(self) -> str:
        return self.what
