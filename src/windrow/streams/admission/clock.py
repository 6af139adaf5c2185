"""The clock of a stream: which rows are in, and up to where the stream is known.

:func:`decide` is the definition, an entry at a time; :func:`windrow.streams.admission.batch_clock.advance`
gives the same for millions at once. Both are functions of a state and the entries after it, so that it does
not matter where a log is cut into batches: an entry is judged by those logged before it.

A *producer* is open from its first entry that is not refused until it is idle or closes. It has a bound:
what it has *promised* (explicit bounds; its last row, if it is ordered), or what is *estimated* of it
(watermarks; the greatest rowtime seen less a lag), whichever is greater. The stream's *clock* is the least
bound of the open producers and never goes back; there is none before the first row, unless all of them have
promised that none follows. Its *firm* clock is the same of promises alone. Producers enter at or above the
clock. A row below a promise is rejected, one that is only below an estimate is late. A producer may also
promise patterns: a row of its own that matches one that it has told before, and not closed since, is
rejected. What all open producers have promised so, the stream has; a producer that opens is held to that too.

When the last open producer leaves, nobody can send what the rows that wait have waited for: the clock moves
to the greatest rowtime, of any producer that has left, that the producer's own bound had reached.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InputError, UsageError
from windrow.streams.admission.future import Future, quarantined
from windrow.streams.entries import FOREVER, NO_BOUND, Decision, Entries, EntryKind, Ints
from windrow.streams.producer_promises import is_breach, shared

__all__ = ["ClockState", "Decided", "Ordering", "Running", "Standing", "decide"]

_VERSION = 4
_READ = (3, 4)
"""The versions that are read: before 4 nothing was quarantined."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """What a row says about the later rows of its producer, and which entries say nothing.

    Attributes
    ----------
    lag
        None: nothing. Else that none is more than so many ticks below it.
    is_promise
        Whether that is a promise, as it is with a lag of 0 of ordered producers, or an estimate.
    future
        Entries that are further ahead of their processing time are quarantined; None for none.
    """

    lag: int | None = 0
    is_promise: bool = True
    future: Future | None = None

    def __post_init__(self) -> None:
        if self.lag is not None and (self.lag < 0 or (self.is_promise and self.lag > 0)):
            raise UsageError(
                f"{self.lag} ticks are no lag of {'a promise' if self.is_promise else 'an estimate'}",
                condition="INVALID_LAG",
                hint="a lag is 0 ticks or more, and that of ordered producers is 0",
            )

    @staticmethod
    def ordered() -> Ordering:
        """Rows of a producer come in the order of their rowtimes."""
        return Ordering(0, True)

    @staticmethod
    def unordered() -> Ordering:
        """Only explicit bounds and watermarks say anything."""
        return Ordering(None, False)

    @staticmethod
    def lagging(ticks: int) -> Ordering:
        """Rows are estimated to be at most so late."""
        return Ordering(ticks, False)

    def implied(self, rowtime: int) -> int:
        """The bound that a row implies."""
        return NO_BOUND if self.lag is None else max(NO_BOUND, rowtime - self.lag)


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a producer.

    Attributes
    ----------
    is_open
        Whether it holds the stream back.
    promised, estimated
        Its bounds; `NO_BOUND` where there is none.
    seen
        The greatest rowtime of its rows that were admitted.
    heard
        The ptime of its last entry.
    """

    is_open: bool
    promised: int = NO_BOUND
    estimated: int = NO_BOUND
    seen: int = NO_BOUND
    heard: int = 0

    @property
    def bound(self) -> int:
        """The greater of what is promised and estimated."""
        return max(self.promised, self.estimated)


@dataclass(frozen=True, slots=True)
class ClockState:
    """All that later decisions depend on.

    Attributes
    ----------
    started
        Whether a row has been admitted.
    at, firm_at
        The clock and the firm clock; `NO_BOUND` where they are undefined.
    left, firm_left
        Where the clocks move when no producer is open.
    producers
        The open ones, and those that are idle and whose bound is above the clock.
    admitted, late, rejected, eclipsed, quarantined
        How many entries were decided so; of rows these are all but `eclipsed`, which is of bounds.
    quarantined_bounds
        How many bounds and patterns were quarantined.
    patterns
        Of each producer what it has promised beside bounds. States that say the same in other patterns are
        equal.
    shared
        What the stream has promised beside its clock, in the same way.
    """

    started: bool = False
    at: int = NO_BOUND
    firm_at: int = NO_BOUND
    left: int = NO_BOUND
    firm_left: int = NO_BOUND
    producers: Mapping[str, Standing] = field(default_factory=dict)
    admitted: int = 0
    late: int = 0
    rejected: int = 0
    eclipsed: int = 0
    quarantined: int = 0
    quarantined_bounds: int = 0
    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    shared: tuple[str, ...] = field(default=(), compare=False)

    @property
    def clock(self) -> int | None:
        """The stream's bound: every later row that is not late has a rowtime of at least this."""
        return None if self.at == NO_BOUND else self.at

    @property
    def refused(self) -> int:
        """How many rows are among the late rows, for whatever reason."""
        return self.late + self.rejected + self.quarantined

    @property
    def firm(self) -> int | None:
        """The same of promises alone: a row below it is never admitted."""
        return None if self.firm_at == NO_BOUND else self.firm_at

    def silent(self, ptime: int, after: int) -> list[str]:
        """The open producers that have said nothing for so many microseconds: to be logged as idle."""
        return sorted(
            name for name, known in self.producers.items() if known.is_open and known.heard + after <= ptime
        )

    def to_json(self) -> str:
        """The state as a text."""
        producers = {
            name: [known.is_open, known.promised, known.estimated, known.seen, known.heard]
            for name, known in sorted(self.producers.items())
        }
        apart = ("producers", "patterns")
        values = {name: getattr(self, name) for name in self.__slots__ if name not in apart}
        patterns = {name: list(told) for name, told in sorted(self.patterns.items())}
        return json.dumps({"version": _VERSION, **values, "producers": producers, "patterns": patterns})

    @staticmethod
    def from_json(text: str) -> ClockState:
        """The state of a text.

        Raises
        ------
        InputError
            ``CLOCK_VERSION``: it was written by another version.
        """
        values = json.loads(text)
        version = values.pop("version", None)
        if version not in _READ:
            raise InputError(
                f"the state of a clock has version {version}, this version of Windrow reads {_VERSION}",
                condition="CLOCK_VERSION",
                hint="go on with the version of Windrow that wrote it",
            )
        producers = {name: Standing(*known) for name, known in values.pop("producers").items()}
        patterns = {name: tuple(told) for name, told in values.pop("patterns").items()}
        told_by_all = tuple(values.pop("shared"))
        return ClockState(producers=producers, patterns=patterns, shared=told_by_all, **values)


@dataclass(frozen=True, eq=False)
class Decided:
    """What became of a batch of entries.

    Attributes
    ----------
    decision
        int8 of each entry: values of :class:`~windrow.streams.entries.Decision`.
    violated
        int64 of each entry: the bound that a late, rejected or eclipsed one is below, the greatest rowtime
        that a quarantined one may have; else `NO_BOUND`, as for a row that is rejected because it matches a
        pattern.
    state
        That after the batch.
    before
        int64 of each entry: the stream's clock before it, of late rows; else `NO_BOUND`.
    """

    decision: npt.NDArray[np.int8]
    violated: Ints
    state: ClockState
    before: Ints


def decide(state: ClockState, ordering: Ordering, entries: Entries) -> Decided:
    """Judge entries one after the other.

    Parameters
    ----------
    state
        That after all entries logged before.
    ordering
        What rows say about later ones; the same for all of a log.
    entries
        Those that follow.
    """
    running = Running(state, ordering)
    count = len(entries)
    rows = [None] * count if entries.rows is None else entries.rows.to_pylist()
    told = [None] * count if entries.told is None else entries.told.to_pylist()
    columns = None if entries.rows is None else entries.rows.schema
    ahead, limits = [False] * count, [NO_BOUND] * count
    if ordering.future is not None:
        beyond, greatest = quarantined(ordering.future, entries)
        ahead, limits = beyond.tolist(), greatest.tolist()
    found = []
    for kind, code, at, ptime, row, pattern, is_ahead, limit in zip(
        entries.kind.tolist(),
        entries.code.tolist(),
        entries.at.tolist(),
        entries.ptime.tolist(),
        rows,
        told,
        ahead,
        limits,
        strict=True,
    ):
        if is_ahead:
            running.set_aside(kind)
            found.append((Decision.QUARANTINED, limit, NO_BOUND))
            continue
        name = entries.names[code]
        promised = running.promised_by(name)
        is_broken = kind == EntryKind.ROW and bool(promised)
        if is_broken:
            assert row is not None
            is_broken = is_breach(row, promised, columns)
        clock = running.state.at
        judged, bound = running.step(kind, name, at, ptime, is_broken=is_broken)
        found.append((judged, bound, clock if judged == Decision.LATE else NO_BOUND))
        running.note(kind, name, pattern, columns)
    decision = np.array([judged for judged, _, _ in found], np.int8)
    violated, before = (np.array([each[place] for each in found], np.int64) for place in (1, 2))
    return Decided(decision, violated, running.state, before)


_ADMITTED = (Decision.ADMITTED, NO_BOUND)


class Running:
    """A state that moves on by an entry at a time."""

    def __init__(self, state: ClockState, ordering: Ordering) -> None:
        self.ordering = ordering
        self.state = state
        self.producers = dict(state.producers)
        self._opened = {name for name, known in state.producers.items() if known.is_open}

    def promised_by(self, name: str) -> tuple[str, ...]:
        """The patterns that a producer's next row is held to."""
        own = self.state.patterns.get(name, ())
        return own if name in self._opened else (*own, *self.state.shared)

    def note(self, kind: int, name: str, pattern: str | None, columns: pa.Schema | None) -> None:
        """Note what an entry that was taken in says of patterns."""
        patterns = dict(self.state.patterns)
        known = self.producers.get(name)
        if known is None or not known.is_open:
            self._opened.discard(name)
        elif name not in self._opened:
            self._opened.add(name)
            if self.state.shared:
                patterns[name] = (*patterns.get(name, ()), *self.state.shared)
        if kind == EntryKind.PATTERN and pattern is not None:
            patterns[name] = (*patterns.get(name, ()), pattern)
        elif kind == EntryKind.CLOSE:
            patterns.pop(name, None)
        told = self.state.shared
        telling = [each for each in self._opened if self.producers[each].promised < FOREVER]
        if patterns and telling and columns is not None:
            together = shared([patterns.get(each, ()) for each in telling], columns)
            told = tuple(dict.fromkeys((*told, *together)))
        self.state = replace(self.state, patterns=patterns, shared=told)

    def step(
        self, kind: int, name: str, at: int, ptime: int, *, is_broken: bool = False
    ) -> tuple[Decision, int]:
        """Take in an entry; its decision and the bound that it violates.

        A row `is_broken` if it matches a pattern that its producer has promised.
        """
        known = self.producers.get(name)
        if kind == EntryKind.TICK:
            return _ADMITTED
        if kind in (EntryKind.IDLE, EntryKind.CLOSE):
            found = _ADMITTED
            if known is not None:
                self._leave(name, known, ptime, is_closed=kind == EntryKind.CLOSE)
        else:
            found = self._said(kind, name, known or Standing(is_open=False), at, ptime, is_broken=is_broken)
        self._move(name, known)
        return found

    def set_aside(self, kind: int) -> None:
        """Count an entry of a kind that is quarantined: it says nothing, and is no sign of life."""
        state = self.state
        if kind == EntryKind.ROW:
            self.state = replace(state, quarantined=state.quarantined + 1)
        else:
            self.state = replace(state, quarantined_bounds=state.quarantined_bounds + 1)

    def _said(
        self, kind: int, name: str, known: Standing, at: int, ptime: int, *, is_broken: bool
    ) -> tuple[Decision, int]:
        is_newcomer = not known.is_open
        if is_newcomer:
            promised, estimated = max(known.promised, self.state.firm_at), max(known.estimated, self.state.at)
            known = replace(known, promised=promised, estimated=estimated)
        decision, violated = _judged(kind, known, at, is_broken=is_broken)
        if is_newcomer and kind == EntryKind.ROW and decision != Decision.ADMITTED:
            self._count(kind, decision)
            return decision, violated
        promised, estimated, seen = known.promised, known.estimated, known.seen
        if kind == EntryKind.ROW and decision != Decision.REJECTED:
            if self.ordering.is_promise:
                promised = max(promised, self.ordering.implied(at))
            else:
                estimated = max(estimated, self.ordering.implied(at))
            if decision == Decision.ADMITTED:
                seen = max(seen, at)
        elif kind == EntryKind.BOUND:
            promised = max(promised, at)
        elif kind == EntryKind.WATERMARK:
            estimated = max(estimated, at)
        self.producers[name] = Standing(True, promised, estimated, seen, ptime)
        self._count(kind, decision)
        return decision, violated

    def _leave(self, name: str, known: Standing, ptime: int, *, is_closed: bool) -> None:
        if known.is_open:
            state = self.state
            self.state = replace(
                state,
                left=max(state.left, min(known.bound, known.seen)),
                firm_left=max(state.firm_left, min(known.promised, known.seen)),
            )
        self.producers[name] = replace(known, is_open=False, heard=ptime)
        if is_closed:
            del self.producers[name]

    def _count(self, kind: int, decision: Decision) -> None:
        state = self.state
        if decision == Decision.LATE:
            self.state = replace(state, late=state.late + 1)
        elif decision == Decision.REJECTED:
            self.state = replace(state, rejected=state.rejected + 1)
        elif decision == Decision.ECLIPSED:
            self.state = replace(state, eclipsed=state.eclipsed + 1)
        elif kind == EntryKind.ROW:
            self.state = replace(state, started=True, admitted=state.admitted + 1)

    def _move(self, _name: str, _before: Standing | None) -> None:
        """Move the clocks after an entry of a producer to where the producers let them."""
        self.state = _moved(self.state, self.producers)
        self.producers = dict(self.state.producers)


def _moved(state: ClockState, producers: Mapping[str, Standing]) -> ClockState:
    """The state with clocks as these producers allow, and without those that no longer matter."""
    at, firm = state.at, state.firm_at
    opened = [known for known in producers.values() if known.is_open]
    if state.started or (opened and all(known.promised == FOREVER for known in opened)):
        at = max(at, min((known.bound for known in opened), default=state.left))
        firm = max(firm, min((known.promised for known in opened), default=state.firm_left))
    # an idle producer is held to its own bound when it comes back, or to the clock if that is not below it
    kept = {
        name: known
        for name, known in producers.items()
        if known.is_open or known.promised > firm or known.bound > at
    }
    return replace(state, at=at, firm_at=firm, producers=kept)


def _judged(kind: int, known: Standing, at: int, *, is_broken: bool) -> tuple[Decision, int]:
    """The decision about what a producer with these bounds says."""
    if kind == EntryKind.ROW:
        if at < known.promised:
            return Decision.REJECTED, known.promised
        if is_broken:
            return Decision.REJECTED, NO_BOUND
        if at < known.bound:
            return Decision.LATE, known.bound
    if kind == EntryKind.BOUND and at < known.promised:
        return Decision.ECLIPSED, known.promised
    if kind == EntryKind.WATERMARK and at < known.bound:
        return Decision.ECLIPSED, known.bound
    return _ADMITTED
