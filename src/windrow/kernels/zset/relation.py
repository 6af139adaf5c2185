"""The columns that say when rows are there."""

from __future__ import annotations

__all__ = ["AT", "COMPLETE", "DIFF", "ENTER", "LEAVE", "NEVER"]

ENTER = "__enter"
"""The instant from which a row is there, int64."""

LEAVE = "__leave"
"""The instant from which it is not any more, after that of `ENTER`."""

NEVER = 2**63 - 1
"""The `LEAVE` of a row that stays."""

AT = "__at"
"""The instant of a change, int64."""

DIFF = "__diff"
"""How many more of a row there are from a change on, int64; less than 0 if there are fewer."""

COMPLETE = "__complete"
"""The instant from which nothing more is expected of a row's group, or `NEVER`."""
