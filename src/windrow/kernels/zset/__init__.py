"""Relational operators over relations that vary in time.

Rows have the instants at which they enter and leave (`ENTER`, `LEAVE`); operators take whole tables of them
and work on all changes at once.
"""

from __future__ import annotations

from windrow.kernels.zset.counts import COUNTS, counted
from windrow.kernels.zset.elementary import Pieces, elementary, gaps, timeline
from windrow.kernels.zset.join import overlapping
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER

__all__ = [
    "COUNTS",
    "ENTER",
    "LEAVE",
    "NEVER",
    "Pieces",
    "counted",
    "elementary",
    "gaps",
    "overlapping",
    "timeline",
]
