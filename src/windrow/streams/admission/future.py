"""Quarantine: entries too far ahead of their processing time.

This depends on the entry alone, so it is decided first: the watermark ignores quarantined entries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.errors import UsageError
from windrow.streams.entries import FOREVER, Entries, EntryKind, Ints

__all__ = ["DAY", "Future", "quarantined"]

DAY = 86_400_000_000
"""A day in microseconds."""

_MICROSECOND = 1000  # nanoseconds
_FURTHEST = 2**62


@dataclass(frozen=True, slots=True)
class Future:
    """How far a rowtime or bound may be ahead of the processing time of its entry.

    Rowtimes without a zone, and dates, count as UTC.

    Attributes
    ----------
    micros
        The limit, in microseconds.
    tick
        The length of a tick of the rowtime, in nanoseconds: one, or whole microseconds.
    """

    micros: int
    tick: int

    def __post_init__(self) -> None:
        if self.micros < 0:
            raise UsageError(
                f"future is negative: {self.micros} microseconds",
                condition="INVALID_ARGUMENT",
                hint="set a length of time of 0 or more, such as future='1 day'",
            )

    def limits(self, ptime: Ints) -> Ints:
        """The greatest rowtime, in ticks, that may arrive at each processing time, in microseconds."""
        whole: Ints = np.clip(ptime, -_FURTHEST, _FURTHEST) + min(self.micros, _FURTHEST - 1)
        if self.tick >= _MICROSECOND:
            return whole // (self.tick // _MICROSECOND)
        most = _FURTHEST // _MICROSECOND
        return np.clip(whole, -most, most) * _MICROSECOND + (_MICROSECOND - 1)


def quarantined(future: Future, entries: Entries) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Which entries are too far ahead, and the greatest rowtime that each may have.

    A bound after which no row follows at all has no time, and so is never too far ahead.
    """
    limits = future.limits(entries.ptime if entries.sent is None else entries.sent)
    is_timed = np.isin(entries.kind, _TIMED)
    is_end = (entries.at == FOREVER) & (entries.kind != EntryKind.ROW)
    return is_timed & (entries.at > limits) & ~is_end, limits


_TIMED = (EntryKind.ROW, EntryKind.BOUND, EntryKind.WATERMARK, EntryKind.PATTERN)
