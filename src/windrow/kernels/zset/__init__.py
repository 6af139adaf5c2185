"""Relational operators over time-varying relations.

Each row has the instants at which it enters and leaves (`ENTER`, `LEAVE`). An operator takes whole tables and
processes all changes at once.
"""

from __future__ import annotations

from windrow.kernels.zset.elementary_intervals import ElementaryIntervals, elementary, gaps, timeline
from windrow.kernels.zset.join import overlapping
from windrow.kernels.zset.multiplicities import COUNTS, counted
from windrow.kernels.zset.partners import partnered
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER

__all__ = [
    "COUNTS",
    "ENTER",
    "LEAVE",
    "NEVER",
    "ElementaryIntervals",
    "counted",
    "elementary",
    "gaps",
    "overlapping",
    "partnered",
    "timeline",
]
