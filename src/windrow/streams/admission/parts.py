"""The clock of a stream of one producer, for parts of a micro-batch that tasks read beside each other.

A task knows what the entries of its own part say, not what those of the parts before it do. So it notes of
each row what was *said* in the part before the row, and of the part what all of its entries say. Who has the
notes of all parts judges the rows of any of them as :func:`windrow.streams.admission.clock.decide` would
judge them in the order of the parts, one after the other.

That is so for one producer, which is neither idle nor closes, and makes no promises by patterns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.streams.admission.clock import ClockState, Ordering, Standing
from windrow.streams.entries import FOREVER, NO_BOUND, Decision

__all__ = ["BatchPart", "Said", "judged"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BatchPart:
    """What the entries of a part say.

    Attributes
    ----------
    seen
        The greatest rowtime of its rows; `NO_BOUND` where there is none.
    promised
        The greatest bound that came with one of its entries; `NO_BOUND` where there is none.
    highest
        The greatest rowtime of those rows that are not below a bound of the part before them.
    """

    seen: int = NO_BOUND
    promised: int = NO_BOUND
    highest: int = NO_BOUND

    def read(self, rowtimes: Ints, bounds: Ints | None) -> tuple[BatchPart, Ints, Ints]:
        """What the part says with its next entries; and what was said in it before each of these: the
        greatest rowtime, and the greatest bound.

        Parameters
        ----------
        rowtimes
            `NO_BOUND` for entries that are no rows.
        bounds
            `NO_BOUND` for entries without one; None where none has.
        """
        seen = _before(self.seen, rowtimes)
        promised = np.full(len(rowtimes), self.promised) if bounds is None else _before(self.promised, bounds)
        stands = rowtimes[rowtimes >= promised]
        part = BatchPart(
            int(rowtimes.max(initial=self.seen)),
            self.promised if bounds is None else int(bounds.max(initial=self.promised)),
            int(stands.max(initial=self.highest)),
        )
        return part, seen, promised


@dataclass(frozen=True, slots=True)
class Said:
    """What entries have said so far: the greatest rowtime, the greatest bound, and whether a row was in."""

    seen: int = NO_BOUND
    promised: int = NO_BOUND
    started: bool = False

    def then(self, part: BatchPart) -> Said:
        """What they and those of the next part have said."""
        started = self.started or (part.highest != NO_BOUND and part.highest >= self.promised)
        return Said(max(self.seen, part.seen), max(self.promised, part.promised), started)

    def clock(self, ordering: Ordering) -> int | None:
        """The stream's clock after them; None while there is none."""
        if not self.started:
            return FOREVER if self.promised == FOREVER else None
        bound = self._standing(ordering).bound
        return None if bound == NO_BOUND else bound

    def state(self, ordering: Ordering, rows: int, late: int, rejected: int) -> ClockState:
        """The state of the stream's clock, after so many rows of which these were late or rejected."""
        clock, standing = self.clock(ordering), self._standing(ordering)
        heard = standing.bound != NO_BOUND or self.started
        return ClockState(
            started=self.started,
            at=NO_BOUND if clock is None else clock,
            firm_at=NO_BOUND if clock is None else standing.promised,
            producers={"": standing} if heard else {},
            admitted=rows - late - rejected,
            late=late,
            rejected=rejected,
        )

    def _standing(self, ordering: Ordering) -> Standing:
        promised, estimated = _bounds(ordering, np.array([self.seen]), np.array([self.promised]))
        return Standing(True, int(promised[0]), int(estimated[0]), self.seen)


def judged(
    ordering: Ordering, before: Said, rowtimes: Ints, seen: Ints, promised: Ints
) -> tuple[npt.NDArray[np.int8], Ints]:
    """What becomes of the rows of a part, and the bound that those are below that are not admitted.

    Parameters
    ----------
    before
        What the entries before the part have said.
    seen, promised
        What the entries of the part before each row have said.
    """
    promises, estimates = _bounds(
        ordering, np.maximum(seen, before.seen), np.maximum(promised, before.promised)
    )
    decision = np.full(len(rowtimes), Decision.ADMITTED, np.int8)
    decision[rowtimes < estimates] = Decision.LATE
    decision[rowtimes < promises] = Decision.REJECTED
    violated = np.where(decision == Decision.REJECTED, promises, np.maximum(promises, estimates))
    return decision, np.where(decision == Decision.ADMITTED, NO_BOUND, violated)


def _bounds(ordering: Ordering, seen: Ints, promised: Ints) -> tuple[Ints, Ints]:
    """What is promised, and what is estimated."""
    nothing = np.full(len(seen), NO_BOUND)
    if ordering.lag is None:
        return promised, nothing
    # no rowtime less a lag is below all bounds
    implied = np.where(seen < NO_BOUND + ordering.lag, NO_BOUND, seen - ordering.lag)
    return (np.maximum(promised, implied), nothing) if ordering.is_promise else (promised, implied)


def _before(first: int, values: Ints) -> Ints:
    """Of each value the greatest of those before it, and of `first`."""
    return np.maximum.accumulate(np.concatenate([np.array([first]), values]))[:-1]
