"""The watermark of :mod:`windrow.streams.admission.watermark` for batches of millions of entries.

While no producer enters or leaves, open producers do not depend on each other: each entry is judged by a
running maximum over the entries of its own producer. Such ranges of entries are judged as arrays. The entries
between them, at which a producer enters or leaves, are judged one at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from windrow.streams.admission.future import quarantined
from windrow.streams.admission.watermark import (
    Decided,
    Ordering,
    ProducerState,
    RunningWatermark,
    WatermarkState,
    decide,
)
from windrow.streams.entries import FOREVER, NO_BOUND, Decision, Entries, EntryKind, Ints
from windrow.streams.producer_punctuations import breaches

__all__ = ["advance"]

Bools = npt.NDArray[np.bool_]

_STRETCH, _LONGEST = 1 << 10, 1 << 22  # entries that are judged at once, at first and at most
_SHORT, _SINGLY = 256, 512  # after so short a range so many entries are judged one at a time


def advance(state: WatermarkState, ordering: Ordering, entries: Entries) -> Decided:
    """The same as :func:`windrow.streams.admission.watermark.decide`."""
    if ordering.future is None:
        return _advanced(state, ordering, entries)
    ahead, limits = quarantined(ordering.future, entries)
    if not ahead.any():
        return _advanced(state, ordering, entries)
    rest = _advanced(state, ordering, entries.only(~ahead))
    decision, violated = np.full(len(entries), Decision.QUARANTINED, np.int8), limits
    before = np.full(len(entries), NO_BOUND, np.int64)
    decision[~ahead], violated[~ahead], before[~ahead] = rest.decision, rest.violated, rest.before
    rows = int((ahead & (entries.kind == EntryKind.ROW)).sum())
    after = replace(
        rest.state,
        quarantined=rest.state.quarantined + rows,
        quarantined_bounds=rest.state.quarantined_bounds + int(ahead.sum()) - rows,
    )
    return Decided(decision, violated, after, before)


def _advanced(state: WatermarkState, ordering: Ordering, entries: Entries) -> Decided:
    """The same if nothing is quarantined."""
    standing = {name: known.firm for name, known in state.producers.items() if known.is_open}
    checked = breaches(state.patterns, state.shared, standing, entries)
    if checked is None:
        return decide(state, replace(ordering, future=None), entries)
    broken = checked.broken
    running = _Swift(state, ordering)
    decision = np.zeros(len(entries), np.int8)
    violated, before = (np.full(len(entries), NO_BOUND, np.int64) for _ in range(2))
    at, width = 0, _STRETCH
    while at < len(entries):
        part = entries.part(at, at + width)
        judged = _decide_at_once(running, part, broken[at : at + width])
        stop = at + len(judged.decision)
        decision[at:stop], violated[at:stop] = judged.decision, judged.violated
        before[at:stop] = judged.before
        running.take(judged, part.kind[: stop - at] == EntryKind.ROW)
        if len(judged.decision) == len(part):
            at, width = stop, min(width * 4, _LONGEST)
            continue
        singly = entries.part(stop, stop + (_SINGLY if len(judged.decision) < _SHORT else 1))
        for place, (kind, name, when, ptime) in enumerate(_items(singly), stop):
            is_broken, watermark = bool(broken[place]), running.state.at
            decision[place], violated[place] = running.process(kind, name, when, ptime, is_broken=is_broken)
            before[place] = watermark if decision[place] == Decision.LATE else NO_BOUND
        at, width = stop + len(singly), _STRETCH
    after = replace(running.finished(), patterns=checked.patterns, shared=checked.shared)
    return Decided(decision, violated, after, before)


def _items(entries: Entries) -> Iterator[tuple[int, str, int, int]]:
    kinds, codes, ats, ptimes = (
        values.tolist() for values in (entries.kind, entries.code, entries.at, entries.ptime)
    )
    for kind, code, at, ptime in zip(kinds, codes, ats, ptimes, strict=True):
        yield kind, entries.names[code], at, ptime


@dataclass(frozen=True, eq=False)
class _Judged:
    """The decisions about a range of entries, and the state of their open producers afterwards."""

    decision: npt.NDArray[np.int8]
    violated: Ints
    producers: Mapping[str, ProducerState]
    before: Ints


_NOTHING = _Judged(np.zeros(0, np.int8), np.zeros(0, np.int64), {}, np.zeros(0, np.int64))


class _Swift(RunningWatermark):
    """A state with the least bounds in heaps, so that an entry is cheap with any number of producers."""

    def __init__(self, state: WatermarkState, ordering: Ordering) -> None:
        super().__init__(state, ordering)
        self.opened = 0
        self.idle: set[str] = set()
        self.bounds = _Least(self.producers, lambda known: known.bound)
        self.firm_bounds = _Least(self.producers, lambda known: known.firm)
        for name in self.producers:
            self._note(name, None)

    def take(self, judged: _Judged, is_row: Bools) -> None:
        """Apply the decisions about a range."""
        if not len(judged.decision):
            return
        for name, known in judged.producers.items():
            before, self.producers[name] = self.producers[name], known
            self._note(name, before)
        rows = np.bincount(judged.decision[is_row], minlength=len(Decision))
        state = self.state
        self.state = replace(
            state,
            admitted=state.admitted + int(rows[Decision.ADMITTED]),
            late=state.late + int(rows[Decision.LATE]),
            rejected=state.rejected + int(rows[Decision.REJECTED]),
            eclipsed=state.eclipsed + int((judged.decision == Decision.ECLIPSED).sum()),
        )
        self._advance_watermarks()

    def finished(self) -> WatermarkState:
        """The state after all entries."""
        return replace(self.state, producers=self.producers)

    def _move(self, name: str, before: ProducerState | None) -> None:
        self._note(name, before)
        self._advance_watermarks()

    def _note(self, name: str, before: ProducerState | None) -> None:
        """Update the heaps for a producer whose state was `before`."""
        after = self.producers.get(name)
        if before is not None and before.is_open:
            self.opened -= 1
        self.idle.discard(name)
        if after is not None and after.is_open:
            self.opened += 1
            self.bounds.put(name, after)
            self.firm_bounds.put(name, after)
        elif after is not None:
            self.idle.add(name)

    def _advance_watermarks(self) -> None:
        """Advance the watermarks as far as the producers allow, and drop those that no longer matter."""
        state = self.state
        if state.started or (self.opened and self.firm_bounds.least() == FOREVER):
            at = max(state.at, self.bounds.least() if self.opened else state.left)
            firm = max(state.firm_at, self.firm_bounds.least() if self.opened else state.firm_left)
            if (at, firm) != (state.at, state.firm_at):
                self.state = state = replace(state, at=at, firm_at=firm)
        for name in [*self.idle]:
            known = self.producers[name]
            if known.firm <= state.firm_at and known.bound <= state.at:
                self.idle.discard(name)
                del self.producers[name]


class _Least:
    """The least value of the open producers: a heap from which outdated values are removed lazily."""

    def __init__(self, producers: Mapping[str, ProducerState], value: Callable[[ProducerState], int]) -> None:
        self.producers, self.value = producers, value
        self.heap: list[tuple[int, str]] = []

    def put(self, name: str, known: ProducerState) -> None:
        """Note the value of an open producer."""
        heapq.heappush(self.heap, (self.value(known), name))

    def least(self, without: Collection[str] = ()) -> int:
        """The least value, excluding some producers; `FOREVER` if there is none."""
        aside = []
        found = FOREVER
        while self.heap:
            value, name = self.heap[0]
            known = self.producers.get(name)
            if known is not None and known.is_open and self.value(known) == value:
                if name not in without:
                    found = value
                    break
                aside.append((value, name))
            heapq.heappop(self.heap)
        for item in dict.fromkeys(aside):
            heapq.heappush(self.heap, item)
        return found


@dataclass(frozen=True, eq=False)
class _Groups:
    """Entries of open producers, sorted by producer, and by order within a producer.

    `position` is an entry's index in the range, `start` the first entry of each producer, `length` their
    number.
    """

    position: Ints
    start: Ints
    length: Ints
    code: Ints

    @staticmethod
    def of(position: Ints, code: Ints, names: int) -> _Groups:
        small = code.astype(np.uint16) if names <= 1 << 16 else code  # which numpy sorts by radix
        order = np.argsort(small, kind="stable")
        code = code[order]
        start = np.flatnonzero(np.diff(code, prepend=-1))
        return _Groups(position[order], start, np.diff(start, append=len(code)), code[start])

    def running(self, values: Ints, first: Ints) -> tuple[Ints, Ints]:
        """The running maximum per producer, before and after each entry; it starts with `first`."""
        after = np.repeat(first, self.length)
        for start, length in zip(self.start.tolist(), self.length.tolist(), strict=True):
            part = slice(start, start + length)
            np.maximum(after[part], np.maximum.accumulate(values[part]), out=after[part])
        before = np.empty_like(after)
        before[1:] = after[:-1]
        before[self.start] = first
        return before, after

    def next_position(self) -> Ints:
        """The position of the same producer's next entry; `FOREVER` for the last."""
        following = np.append(self.position[1:], FOREVER)
        following[self.start + self.length - 1] = FOREVER
        return following


def _decide_at_once(running: _Swift, entries: Entries, broken: Bools) -> _Judged:
    """The decisions of the first entries, up to the first at which a producer enters or leaves.

    Rows that are `broken` match a punctuation of their producer.
    """
    if not running.state.started:
        return _NOTHING
    if (judged := _of_one_in_order(running, entries, broken)) is not None:
        return judged
    count = len(entries.names)
    present = np.flatnonzero(np.bincount(entries.code, minlength=count))
    known = [running.producers.get(entries.names[code], _UNKNOWN) for code in present.tolist()]

    def of_each(values: list[int]) -> Ints:
        table = np.zeros(count, np.int64)
        table[present] = values
        return table

    is_open = of_each([producer.is_open for producer in known]).astype(bool)
    firm_at_first = of_each([producer.firm for producer in known])
    estimated = of_each([producer.estimated for producer in known])
    opened = is_open[entries.code]
    changes = np.isin(entries.kind, _STRUCTURAL) | (~opened & (entries.kind != EntryKind.ROW))
    stop = int(np.argmax(changes)) if changes.any() else len(entries)
    while True:
        if stop == 0:
            return _NOTHING
        part, inside = entries.part(0, stop), opened[:stop]
        position = np.flatnonzero(inside)
        groups = _Groups.of(position, part.code[position].astype(np.int64), count)
        judged, bounds, firm_bounds = _of_open(running, part, groups, firm_at_first, estimated, broken)
        outside = np.flatnonzero(~inside)
        late = np.flatnonzero(judged.decision == Decision.LATE)
        if not len(outside) and not len(late):
            return judged
        present_names = {entries.names[code] for code in groups.code.tolist()}
        if len(late):
            judged.before[late] = _least(running, groups, bounds, late, present_names, is_firm=False)
        if not len(outside):
            return judged
        # rows of producers that are not open are refused, up to the first that is admitted
        firm = _least(running, groups, firm_bounds, outside, present_names, is_firm=True)
        watermark = _least(running, groups, bounds, outside, present_names, is_firm=False)
        code, at = part.code[outside], part.at[outside]
        firm_bound = np.maximum(firm_at_first[code], firm)
        bound = np.maximum(np.maximum(estimated[code], watermark), firm_bound)
        is_broken = broken[outside]
        if (enters := (at >= bound) & ~is_broken).any():
            stop = int(outside[np.argmax(enters)])
            continue
        is_below = at < firm_bound
        judged.decision[outside] = np.where(is_below | is_broken, Decision.REJECTED, Decision.LATE)
        judged.violated[outside] = np.where(is_below, firm_bound, np.where(is_broken, NO_BOUND, bound))
        judged.before[outside] = np.where(is_below | is_broken, NO_BOUND, watermark)
        return judged


def _of_one_in_order(running: _Swift, entries: Entries, broken: Bools) -> _Judged | None:
    """The decisions for the usual case: rows of one open producer, in order and at or above its bound.

    All are admitted, and the last row determines the bound. None for other entries.
    """
    at = entries.at
    if (entries.kind != EntryKind.ROW).any() or (entries.code != entries.code[0]).any() or broken.any():
        return None
    name = entries.names[entries.code[0]]
    known = running.producers.get(name, _UNKNOWN)
    if not known.is_open or at[0] < known.bound or (at[1:] < at[:-1]).any():
        return None
    last, ordering = int(at[-1]), running.ordering
    which = "firm" if ordering.is_promise else "estimated"
    bounds = {which: max(getattr(known, which), ordering.implied(last))}
    after = replace(known, **bounds, seen=max(known.seen, last), heard=int(entries.ptime[-1]))
    nothing = np.full(len(entries), NO_BOUND, np.int64)
    return _Judged(np.zeros(len(entries), np.int8), nothing, {name: after}, nothing)


_STRUCTURAL = (EntryKind.OPEN, EntryKind.IDLE, EntryKind.CLOSE, EntryKind.TICK)
_UNKNOWN = ProducerState(is_open=False)
_Trajectory = tuple[Ints, Ints]


def _of_open(
    running: _Swift, entries: Entries, groups: _Groups, firm: Ints, estimated: Ints, broken: Bools
) -> tuple[_Judged, _Trajectory, _Trajectory]:
    """The decisions about entries of open producers; their bounds with and without estimates, at first and
    after each entry.
    """
    kind, at = entries.kind[groups.position], entries.at[groups.position]
    is_row, is_broken = kind == EntryKind.ROW, broken[groups.position]
    implied, ordering = np.full(len(at), NO_BOUND), running.ordering
    if ordering.lag is not None:
        floor = NO_BOUND + ordering.lag
        implied = np.where(is_row & ~is_broken & (at > floor), np.maximum(at, floor) - ordering.lag, NO_BOUND)
    nothing = np.full(len(at), NO_BOUND)
    own_bounds = np.where(kind == EntryKind.BOUND, at, implied if ordering.is_promise else nothing)
    first, first_estimate = firm[groups.code], estimated[groups.code]
    firm_bound, firm_after = groups.running(own_bounds, first)
    below_firm = at < firm_bound
    # a rejected row implies nothing: no estimate, and no bound above the one that it violates
    estimates = np.where(kind == EntryKind.WATERMARK, at, nothing if ordering.is_promise else implied)
    estimates[is_row & below_firm] = NO_BOUND
    estimate, estimate_after = groups.running(estimates, first_estimate)
    bound = np.maximum(firm_bound, estimate)
    below_bound = at < bound

    is_watermark = kind == EntryKind.WATERMARK
    decision = np.zeros(len(at), np.int8)
    decision[is_row & below_bound] = Decision.LATE
    decision[is_row & (below_firm | is_broken)] = Decision.REJECTED
    says_when = ~is_row & (kind != EntryKind.PATTERN)
    decision[says_when & np.where(is_watermark, below_bound, below_firm)] = Decision.ECLIPSED
    by_firm = below_firm & ~is_watermark
    violated = np.where(decision == Decision.ADMITTED, NO_BOUND, np.where(by_firm, firm_bound, bound))
    violated[is_row & is_broken & ~below_firm] = NO_BOUND

    judged = _Judged(
        np.zeros(len(entries), np.int8),
        np.full(len(entries), NO_BOUND, np.int64),
        _producers(running, entries, groups, firm_after, estimate_after, is_row & (decision == 0)),
        np.full(len(entries), NO_BOUND, np.int64),
    )
    judged.decision[groups.position], judged.violated[groups.position] = decision, violated
    bounds = np.maximum(first, first_estimate), np.maximum(firm_after, estimate_after)
    return judged, bounds, (first, firm_after)


def _producers(
    running: _Swift, entries: Entries, groups: _Groups, firm_bound: Ints, estimate: Ints, is_in: Bools
) -> dict[str, ProducerState]:
    """The state of the producers after the range."""
    if not len(groups.start):
        return {}
    rowtimes = np.where(is_in, entries.at[groups.position], NO_BOUND)
    last = groups.start + groups.length - 1
    columns = (
        groups.code,
        firm_bound[last],
        estimate[last],
        np.maximum.reduceat(rowtimes, groups.start),
        entries.ptime[groups.position[last]],
    )
    found = {}
    for code, firm, estimated, seen, heard in zip(*(values.tolist() for values in columns), strict=True):
        name = entries.names[code]
        seen = max(seen, running.producers[name].seen)
        found[name] = ProducerState(True, firm, estimated, seen, heard)
    return found


def _least(
    running: _Swift,
    groups: _Groups,
    bounds: _Trajectory,
    positions: Ints,
    inside: set[str],
    *,
    is_firm: bool,
) -> Ints:
    """A watermark before the entries at some positions.

    A producer's value u applies until its next entry: up to there, the watermark is at most u. So the
    watermark before a position is the least u that still applies.
    """
    before = running.state.firm_at if is_firm else running.state.at
    if not running.opened:
        return np.full(len(positions), before)
    others = (running.firm_bounds if is_firm else running.bounds).least(without=inside)
    first, after = bounds
    values = np.concatenate([after, first, [others]])
    until = np.concatenate([groups.next_position(), groups.position[groups.start], [FOREVER]])
    order = np.argsort(values, kind="stable")
    left_behind = np.maximum.accumulate(until[order])
    least = values[order][np.searchsorted(left_behind, positions, side="left")]
    watermark: Ints = np.maximum(least, before)
    return watermark
