"""The watermark of a stream: which rows are admitted, and how far event time is complete.

:func:`decide` is the definition, one entry at a time;
:func:`windrow.streams.admission.batch_watermark.advance` computes the same for millions at once. Both are
functions of a state and the entries after it, so the result does not depend on where a log is cut into
batches: an entry is judged by the entries before it.

A *producer* is open from its first entry that is not refused until it is idle or closes. Its bound is the
greater of its *firm* bound (explicit bounds; its last row, if it is ordered) and its *estimated* bound (its
watermarks; the greatest rowtime seen minus a lag). The stream's *watermark* is the least bound of the
open producers and never goes back. There is none before the first row, unless all producers have finished.
The *firm* watermark is the same without estimates. Producers enter at or above the watermark. A row below
the firm bound of its producer is rejected; a row that is only below the estimate is late. A producer may also
write punctuations: its later rows that match are rejected, until it closes. A punctuation of all open
producers is true for the stream, and for every producer that opens later.

After the last open producer has left, nobody can send the rows that others wait for. The watermark then
advances to the greatest rowtime that a producer had both seen and reached with its bound.
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
from windrow.streams.producer_punctuations import is_breach, shared

__all__ = ["Decided", "Ordering", "ProducerState", "RunningWatermark", "WatermarkState", "decide"]

_VERSION = 4
_READ = (3, 4)
"""The versions that can be read; version 3 has no quarantine."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """What a row implies for the later rows of its producer, and which entries are quarantined.

    Attributes
    ----------
    lag
        How many ticks below this row a later one may be at most; None if a row implies nothing.
    is_promise
        Whether that is a bound, as for ordered producers with a lag of 0, or an estimate.
    future
        How far entries may be ahead of their processing time; None for no limit.
    """

    lag: int | None = 0
    is_promise: bool = True
    future: Future | None = None

    def __post_init__(self) -> None:
        if self.lag is not None and (self.lag < 0 or (self.is_promise and self.lag > 0)):
            raise UsageError(
                f"a lag of {self.lag} ticks is not supported for "
                f"{'ordered' if self.is_promise else 'unordered'} producers",
                condition="INVALID_LAG",
                hint="use 0 for ordered producers, and 0 ticks or more for others",
            )

    @staticmethod
    def ordered() -> Ordering:
        """Rows of a producer arrive in the order of their rowtimes."""
        return Ordering(0, True)

    @staticmethod
    def unordered() -> Ordering:
        """Only explicit bounds and watermarks advance the watermark."""
        return Ordering(None, False)

    @staticmethod
    def lagging(ticks: int) -> Ordering:
        """Rows are estimated to be at most so many ticks late."""
        return Ordering(ticks, False)

    def implied(self, rowtime: int) -> int:
        """The bound that a row implies."""
        return NO_BOUND if self.lag is None else max(NO_BOUND, rowtime - self.lag)


@dataclass(frozen=True, slots=True)
class ProducerState:
    """The state of a producer.

    Attributes
    ----------
    is_open
        Whether the stream's watermark waits for it.
    firm, estimated
        Its bounds; `NO_BOUND` if there is none.
    seen
        The greatest rowtime of its admitted rows.
    heard
        The processing time of its last entry.
    """

    is_open: bool
    firm: int = NO_BOUND
    estimated: int = NO_BOUND
    seen: int = NO_BOUND
    heard: int = 0

    @property
    def bound(self) -> int:
        """The greater of the firm and the estimated bound."""
        return max(self.firm, self.estimated)


@dataclass(frozen=True, slots=True)
class WatermarkState:
    """The state of a stream's watermark: all that later decisions depend on.

    Attributes
    ----------
    started
        Whether a row has been admitted.
    at, firm_at
        The watermark and the firm watermark; `NO_BOUND` while undefined.
    left, firm_left
        The watermarks when no producer is open.
    producers
        The open producers, and the idle ones whose bound is above the watermark.
    admitted, late, rejected, eclipsed, quarantined
        How many rows have this decision; `eclipsed` counts bounds.
    quarantined_bounds
        How many bounds and patterns were quarantined.
    patterns
        The punctuations of each producer. Comparison ignores them, as equal sets have several forms.
    shared
        The punctuations of the stream, in the same form.
    """

    started: bool = False
    at: int = NO_BOUND
    firm_at: int = NO_BOUND
    left: int = NO_BOUND
    firm_left: int = NO_BOUND
    producers: Mapping[str, ProducerState] = field(default_factory=dict)
    admitted: int = 0
    late: int = 0
    rejected: int = 0
    eclipsed: int = 0
    quarantined: int = 0
    quarantined_bounds: int = 0
    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    shared: tuple[str, ...] = field(default=(), compare=False)

    @property
    def value(self) -> int | None:
        """The watermark: every later row that is not late has at least this rowtime; None if undefined."""
        return None if self.at == NO_BOUND else self.at

    @property
    def refused(self) -> int:
        """The number of late rows, for any reason."""
        return self.late + self.rejected + self.quarantined

    @property
    def firm(self) -> int | None:
        """The watermark without estimates: a row below it is never admitted; None if undefined."""
        return None if self.firm_at == NO_BOUND else self.firm_at

    def silent(self, ptime: int, after: int) -> list[str]:
        """The open producers without an entry for so many microseconds, which are to be logged as idle."""
        return sorted(
            name for name, known in self.producers.items() if known.is_open and known.heard + after <= ptime
        )

    def to_json(self) -> str:
        """The state as a text."""
        producers = {
            name: [known.is_open, known.firm, known.estimated, known.seen, known.heard]
            for name, known in sorted(self.producers.items())
        }
        apart = ("producers", "patterns")
        values = {name: getattr(self, name) for name in self.__slots__ if name not in apart}
        patterns = {name: list(own) for name, own in sorted(self.patterns.items())}
        return json.dumps({"version": _VERSION, **values, "producers": producers, "patterns": patterns})

    @staticmethod
    def from_json(text: str) -> WatermarkState:
        """Read a state from a text.

        Raises
        ------
        InputError
            ``CLOCK_VERSION``: it was written by another version.
        """
        values = json.loads(text)
        version = values.pop("version", None)
        if version not in _READ:
            raise InputError(
                f"the state of a watermark has version {version}, but this version of Windrow reads version"
                f" {_VERSION}",
                condition="CLOCK_VERSION",
                hint="use the version of Windrow that wrote it",
            )
        producers = {name: ProducerState(*known) for name, known in values.pop("producers").items()}
        patterns = {name: tuple(own) for name, own in values.pop("patterns").items()}
        of_stream = tuple(values.pop("shared"))
        return WatermarkState(producers=producers, patterns=patterns, shared=of_stream, **values)


@dataclass(frozen=True, eq=False)
class Decided:
    """The decisions about a batch of entries.

    Attributes
    ----------
    decision
        int8 for each entry: a value of :class:`~windrow.streams.entries.Decision`.
    violated
        int64 for each entry: the bound that a late, rejected or eclipsed entry is below, or the greatest
        rowtime that a quarantined one may have; else `NO_BOUND`, also for a row that matches a punctuation.
    state
        The state after the batch.
    before
        int64 for each entry: the stream's watermark before a late row; else `NO_BOUND`.
    """

    decision: npt.NDArray[np.int8]
    violated: Ints
    state: WatermarkState
    before: Ints


def decide(state: WatermarkState, ordering: Ordering, entries: Entries) -> Decided:
    """Judge entries one after the other.

    Parameters
    ----------
    state
        The state after all earlier entries.
    ordering
        What rows imply for later ones; the same for the whole log.
    entries
        The next entries.
    """
    running = RunningWatermark(state, ordering)
    count = len(entries)
    rows = [None] * count if entries.rows is None else entries.rows.to_pylist()
    patterns = [None] * count if entries.patterns is None else entries.patterns.to_pylist()
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
        patterns,
        ahead,
        limits,
        strict=True,
    ):
        if is_ahead:
            running.quarantine(kind)
            found.append((Decision.QUARANTINED, limit, NO_BOUND))
            continue
        name = entries.names[code]
        forbidden = running.patterns_for(name)
        is_broken = kind == EntryKind.ROW and bool(forbidden)
        if is_broken:
            assert row is not None
            is_broken = is_breach(row, forbidden, columns)
        watermark = running.state.at
        judged, bound = running.process(kind, name, at, ptime, is_broken=is_broken)
        found.append((judged, bound, watermark if judged == Decision.LATE else NO_BOUND))
        running.note(kind, name, pattern, columns)
    decision = np.array([judged for judged, _, _ in found], np.int8)
    violated, before = (np.array([each[place] for each in found], np.int64) for place in (1, 2))
    return Decided(decision, violated, running.state, before)


_ADMITTED = (Decision.ADMITTED, NO_BOUND)


class RunningWatermark:
    """A state that advances one entry at a time."""

    def __init__(self, state: WatermarkState, ordering: Ordering) -> None:
        self.ordering = ordering
        self.state = state
        self.producers = dict(state.producers)
        self._opened = {name for name, known in state.producers.items() if known.is_open}

    def patterns_for(self, name: str) -> tuple[str, ...]:
        """The punctuations that a producer's next row must not match."""
        own = self.state.patterns.get(name, ())
        return own if name in self._opened else (*own, *self.state.shared)

    def note(self, kind: int, name: str, pattern: str | None, columns: pa.Schema | None) -> None:
        """Update the punctuations for an entry that is not quarantined."""
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
        of_stream = self.state.shared
        unfinished = [each for each in self._opened if self.producers[each].firm < FOREVER]
        if patterns and unfinished and columns is not None:
            together = shared([patterns.get(each, ()) for each in unfinished], columns)
            of_stream = tuple(dict.fromkeys((*of_stream, *together)))
        self.state = replace(self.state, patterns=patterns, shared=of_stream)

    def process(
        self, kind: int, name: str, at: int, ptime: int, *, is_broken: bool = False
    ) -> tuple[Decision, int]:
        """Process an entry; return the decision and the bound that it violates.

        A row `is_broken` if it matches a punctuation of its producer.
        """
        known = self.producers.get(name)
        if kind == EntryKind.TICK:
            return _ADMITTED
        if kind in (EntryKind.IDLE, EntryKind.CLOSE):
            found = _ADMITTED
            if known is not None:
                self._leave(name, known, ptime, is_closed=kind == EntryKind.CLOSE)
        else:
            found = self._decide_entry(
                kind, name, known or ProducerState(is_open=False), at, ptime, is_broken=is_broken
            )
        self._move(name, known)
        return found

    def quarantine(self, kind: int) -> None:
        """Count a quarantined entry of a kind. It has no other effect, and is no sign of life."""
        state = self.state
        if kind == EntryKind.ROW:
            self.state = replace(state, quarantined=state.quarantined + 1)
        else:
            self.state = replace(state, quarantined_bounds=state.quarantined_bounds + 1)

    def _decide_entry(
        self, kind: int, name: str, known: ProducerState, at: int, ptime: int, *, is_broken: bool
    ) -> tuple[Decision, int]:
        is_newcomer = not known.is_open
        if is_newcomer:
            firm, estimated = max(known.firm, self.state.firm_at), max(known.estimated, self.state.at)
            known = replace(known, firm=firm, estimated=estimated)
        decision, violated = _decision(kind, known, at, is_broken=is_broken)
        if is_newcomer and kind == EntryKind.ROW and decision != Decision.ADMITTED:
            self._count(kind, decision)
            return decision, violated
        firm, estimated, seen = known.firm, known.estimated, known.seen
        if kind == EntryKind.ROW and decision != Decision.REJECTED:
            if self.ordering.is_promise:
                firm = max(firm, self.ordering.implied(at))
            else:
                estimated = max(estimated, self.ordering.implied(at))
            if decision == Decision.ADMITTED:
                seen = max(seen, at)
        elif kind == EntryKind.BOUND:
            firm = max(firm, at)
        elif kind == EntryKind.WATERMARK:
            estimated = max(estimated, at)
        self.producers[name] = ProducerState(True, firm, estimated, seen, ptime)
        self._count(kind, decision)
        return decision, violated

    def _leave(self, name: str, known: ProducerState, ptime: int, *, is_closed: bool) -> None:
        if known.is_open:
            state = self.state
            self.state = replace(
                state,
                left=max(state.left, min(known.bound, known.seen)),
                firm_left=max(state.firm_left, min(known.firm, known.seen)),
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

    def _move(self, _name: str, _before: ProducerState | None) -> None:
        """Advance the watermarks, after an entry of a producer, as far as the producers allow."""
        self.state = _moved(self.state, self.producers)
        self.producers = dict(self.state.producers)


def _moved(state: WatermarkState, producers: Mapping[str, ProducerState]) -> WatermarkState:
    """The state with watermarks as these producers allow, without producers that no longer matter."""
    at, firm = state.at, state.firm_at
    opened = [known for known in producers.values() if known.is_open]
    if state.started or (opened and all(known.firm == FOREVER for known in opened)):
        at = max(at, min((known.bound for known in opened), default=state.left))
        firm = max(firm, min((known.firm for known in opened), default=state.firm_left))
    # a producer that returns from idle is bound by its own bound or by the watermark, whichever is greater
    relevant = {
        name: known
        for name, known in producers.items()
        if known.is_open or known.firm > firm or known.bound > at
    }
    return replace(state, at=at, firm_at=firm, producers=relevant)


def _decision(kind: int, known: ProducerState, at: int, *, is_broken: bool) -> tuple[Decision, int]:
    """The decision about an entry of a producer with these bounds."""
    if kind == EntryKind.ROW:
        if at < known.firm:
            return Decision.REJECTED, known.firm
        if is_broken:
            return Decision.REJECTED, NO_BOUND
        if at < known.bound:
            return Decision.LATE, known.bound
    if kind == EntryKind.BOUND and at < known.firm:
        return Decision.ECLIPSED, known.firm
    if kind == EntryKind.WATERMARK and at < known.bound:
        return Decision.ECLIPSED, known.bound
    return _ADMITTED
