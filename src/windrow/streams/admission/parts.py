"""The watermark of a stream with one producer, for parts of a micro-batch that tasks read in parallel.

A task sees the entries of its own part, not of the parts before it. It therefore records, for each row, the
greatest rowtime and bound in the part before the row, and a summary of the whole part. With the summaries of
all parts, the rows of each can be judged as :func:`windrow.streams.admission.watermark.decide` judges them in
the order of the parts.

This works for one producer that never closes and has no punctuations. Whether it is idle makes no difference:
there is no other producer that it delays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.streams.admission.future import Future
from windrow.streams.admission.watermark import Ordering, ProducerState, WatermarkState
from windrow.streams.entries import FOREVER, NO_BOUND, Decision

__all__ = ["Ahead", "BatchPart", "EntrySummary", "Refused", "judge_part"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Refused:
    """How many rows of a stream are below an estimate, below a bound and too far ahead, and how many bounds
    are too far ahead.
    """

    late: int = 0
    rejected: int = 0
    quarantined: int = 0
    quarantined_bounds: int = 0


@dataclass(frozen=True, slots=True)
class Ahead:
    """Which entries of a part are too far ahead of their processing time: its rows, its bounds.

    Attributes
    ----------
    limits
        The greatest rowtime that each entry may have.
    """

    rows: npt.NDArray[np.bool_]
    bounds: npt.NDArray[np.bool_]
    limits: Ints

    @classmethod
    def of(cls, future: Future, rowtimes: Ints, bounds: Ints | None, ptimes: Ints) -> Ahead:
        """The limits for entries, which have `NO_BOUND` in place of a missing rowtime or bound."""
        limits = future.limits(ptimes)
        if bounds is None:
            return cls(rowtimes > limits, np.zeros(len(limits), bool), limits)
        return cls(rowtimes > limits, (bounds > limits) & (bounds != FOREVER), limits)


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The summary of a part's entries.

    Attributes
    ----------
    seen
        The greatest rowtime of its rows; `NO_BOUND` if there is none.
    bound
        The greatest bound of its entries; `NO_BOUND` if there is none.
    highest
        The greatest rowtime of the rows that are not below an earlier bound of the part.
    """

    seen: int = NO_BOUND
    bound: int = NO_BOUND
    highest: int = NO_BOUND

    def read(self, rowtimes: Ints, bounds: Ints | None) -> tuple[BatchPart, Ints, Ints]:
        """Add the next entries; return the new summary, and the greatest rowtime and bound before each entry.

        Parameters
        ----------
        rowtimes
            `NO_BOUND` for entries that are no rows.
        bounds
            `NO_BOUND` for entries without a bound; None if no entry has one.
        """
        seen = _before(self.seen, rowtimes)
        earlier = np.full(len(rowtimes), self.bound) if bounds is None else _before(self.bound, bounds)
        stands = rowtimes[rowtimes >= earlier]
        part = BatchPart(
            int(rowtimes.max(initial=self.seen)),
            self.bound if bounds is None else int(bounds.max(initial=self.bound)),
            int(stands.max(initial=self.highest)),
        )
        return part, seen, earlier


@dataclass(frozen=True, slots=True)
class EntrySummary:
    """The summary of all entries so far: the greatest rowtime and bound, and whether a row was admitted."""

    seen: int = NO_BOUND
    bound: int = NO_BOUND
    started: bool = False

    def then(self, part: BatchPart) -> EntrySummary:
        """The summary of these entries and of the next part."""
        started = self.started or (part.highest != NO_BOUND and part.highest >= self.bound)
        return EntrySummary(max(self.seen, part.seen), max(self.bound, part.bound), started)

    def watermark(self, ordering: Ordering) -> int | None:
        """The stream's watermark after them; None while there is none."""
        if not self.started:
            return FOREVER if self.bound == FOREVER else None
        least = self._standing(ordering).bound
        return None if least == NO_BOUND else least

    @property
    def data(self) -> tuple[int, int, bool]:
        """The summary for JSON."""
        return self.seen, self.bound, self.started

    def state(self, ordering: Ordering, rows: int, refused: Refused) -> WatermarkState:
        """The state of the stream's watermark, after so many rows of which these were refused."""
        watermark, standing = self.watermark(ordering), self._standing(ordering)
        heard = standing.bound != NO_BOUND or self.started
        return WatermarkState(
            started=self.started,
            at=NO_BOUND if watermark is None else watermark,
            firm_at=NO_BOUND if watermark is None else standing.firm,
            producers={"": standing} if heard else {},
            admitted=rows - refused.late - refused.rejected - refused.quarantined,
            late=refused.late,
            rejected=refused.rejected,
            quarantined=refused.quarantined,
            quarantined_bounds=refused.quarantined_bounds,
        )

    def now(self, ordering: Ordering) -> WatermarkState:
        """The state of the watermark, without counts of rows."""
        return self.state(ordering, 0, Refused())

    def _standing(self, ordering: Ordering) -> ProducerState:
        firm, estimated = _bounds(ordering, np.array([self.seen]), np.array([self.bound]))
        return ProducerState(True, int(firm[0]), int(estimated[0]), self.seen)


def judge_part(
    ordering: Ordering, before: EntrySummary, rowtimes: Ints, seen: Ints, bounds: Ints
) -> tuple[npt.NDArray[np.int8], Ints]:
    """Decide on the rows of a part; return the decisions, and the bound that each refused row is below.

    Parameters
    ----------
    before
        The summary of the entries before the part.
    seen, bounds
        The greatest rowtime and bound in the part before each row.
    """
    firm, estimates = _bounds(ordering, np.maximum(seen, before.seen), np.maximum(bounds, before.bound))
    decision = np.full(len(rowtimes), Decision.ADMITTED, np.int8)
    decision[rowtimes < estimates] = Decision.LATE
    decision[rowtimes < firm] = Decision.REJECTED
    violated = np.where(decision == Decision.REJECTED, firm, np.maximum(firm, estimates))
    return decision, np.where(decision == Decision.ADMITTED, NO_BOUND, violated)


def _bounds(ordering: Ordering, seen: Ints, firm: Ints) -> tuple[Ints, Ints]:
    """The bounds, and the estimates."""
    nothing = np.full(len(seen), NO_BOUND)
    if ordering.lag is None:
        return firm, nothing
    # no rowtime less a lag is below all bounds
    implied = np.where(seen < NO_BOUND + ordering.lag, NO_BOUND, seen - ordering.lag)
    return (np.maximum(firm, implied), nothing) if ordering.is_promise else (firm, implied)


def _before(first: int, values: Ints) -> Ints:
    """The greatest of `first` and of the values before each value."""
    return np.maximum.accumulate(np.concatenate([np.array([first]), values]))[:-1]
