"""How far ahead of its processing time an entry may be: what is further ahead is quarantined.

That depends on the entry alone, so it is decided before anything else is: a quarantined entry is to the
stream's clock as if it had not come.
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
    """The time by which a rowtime or bound may be ahead of the processing time of its entry.

    Rowtimes without a zone, and dates, are taken as UTC.

    Attributes
    ----------
    micros
        That time, in microseconds.
    tick
        How many nanoseconds a tick of the rowtime has: one, or whole microseconds.
    """

    micros: int
    tick: int

    def __post_init__(self) -> None:
        if self.micros < 0:
            raise UsageError(
                f"{self.micros} microseconds are no time by which rows may be ahead",
                condition="INVALID_ARGUMENT",
                hint="give a length of time of 0 or more, such as future='1 day'",
            )

    def limits(self, ptime: Ints) -> Ints:
        """Of processing times in microseconds, the greatest rowtime that may come then, in ticks."""
        whole: Ints = np.clip(ptime, -_FURTHEST, _FURTHEST) + min(self.micros, _FURTHEST - 1)
        if self.tick >= _MICROSECOND:
            return whole // (self.tick // _MICROSECOND)
        most = _FURTHEST // _MICROSECOND
        return np.clip(whole, -most, most) * _MICROSECOND + (_MICROSECOND - 1)


def quarantined(future: Future, entries: Entries) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Which entries are too far ahead, and the greatest rowtime that each may have.

    A promise that nothing follows at all is of no time, and so never too far ahead.
    """
    limits = future.limits(entries.ptime if entries.sent is None else entries.sent)
    is_timed = np.isin(entries.kind, _TIMED)
    is_end = (entries.at == FOREVER) & (entries.kind != EntryKind.ROW)
    return is_timed & (entries.at > limits) & ~is_end, limits


_TIMED = (EntryKind.ROW, EntryKind.BOUND, EntryKind.WATERMARK, EntryKind.PATTERN)
