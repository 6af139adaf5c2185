"""The columns that say when rows are there."""

from __future__ import annotations

__all__ = ["ENTER", "LEAVE", "NEVER"]

ENTER = "__enter"
"""The instant from which a row is there, int64."""

LEAVE = "__leave"
"""The instant from which it is not any more, after that of `ENTER`."""

NEVER = 2**63 - 1
"""The `LEAVE` of a row that stays."""
