"""What producers have promised by patterns, which of their rows break it, and what the stream promises.

A pattern holds from its entry on, for the rows of its producer, until the producer closes. What all open
producers have promised, the stream has: it stays promised when they have left, and a producer that opens is
held to it from then on, as it is to the clock. One that has promised that it has finished promises all.

None of this depends on clocks, so it is found out for a batch before its entries are judged by them.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.punctuations import Cover, Pattern, lines_of
from windrow.punctuations.boxes import Box, Lines, meet
from windrow.punctuations.index import NEVER, Columns, Index
from windrow.streams.entries import FOREVER, Entries, EntryKind, Ints

__all__ = ["Breaches", "Promised", "breaches", "is_breach", "shared", "told_by_all"]

Promised = Mapping[str, tuple[str, ...]]
"""Of each producer that has promised some: the patterns, as :meth:`Pattern.to_json` writes them."""


def is_breach(row: Mapping[str, object], patterns: tuple[str, ...], columns: pa.Schema) -> bool:
    """Whether a row matches one of some patterns: the definition."""

    def has(pattern: Pattern) -> bool:
        return all(
            own.holds(None if row[name] is None else own.line.places(pa.array([row[name]], own.line.kind))[0])
            for name, own in pattern.columns
        )

    return any(has(Pattern.from_json(text, columns)) for text in patterns)


def shared(promised: Sequence[tuple[str, ...]], columns: pa.Schema) -> tuple[str, ...]:
    """What several producers have all promised: the definition.

    Parameters
    ----------
    promised
        The patterns of each; there is one at least.
    """
    known = [[Pattern.from_json(text, columns) for text in texts] for texts in promised]
    found = []
    for patterns in itertools.product(*known):
        both = patterns[0]
        for other in patterns[1:]:
            both = both & other
        if not both.is_empty:
            found.append(both.to_json())
    return tuple(found)


def told_by_all(
    entries: Iterable[tuple[int, Hashable, str | None]], columns: pa.Schema
) -> list[tuple[int, str]]:
    """What a recorded stream promises, and since when: what all producers have that have come so far.

    Parameters
    ----------
    entries
        (ptime, producer, pattern) in any order, a producer's first among them; None for entries that tell
        none. Entries of one ptime come at once.
    """
    lines = lines_of(columns)
    stream, own = Cover(lines), dict[Hashable, Cover]()
    found = []
    for ptime, some in itertools.groupby(sorted(entries, key=lambda one: one[0]), key=lambda one: one[0]):
        come = list(some)
        for producer in {producer for _, producer, _ in come} - own.keys():  # is held to what is promised
            own[producer] = Cover(lines)
            for box in stream:
                own[producer].add_box(box)
        for _, producer, text in come:
            boxes = [] if text is None else own[producer].add(Pattern.from_json(text, columns))
            for other in own.keys() - {producer}:
                both = (meet(box, told) for box in boxes for told in own[other].overlapping(box))
                boxes = [box for box in both if box is not None]
            found += [(ptime, Pattern.of_box(box, lines).to_json()) for box in boxes if stream.add_box(box)]
    return found


@dataclass(frozen=True, eq=False)
class Breaches:
    """Which entries break a promise, and what is promised after all of them.

    Attributes
    ----------
    broken
        Of each entry whether it is a row that matches a pattern that holds for its producer.
    patterns, shared
        What each producer has promised, and what the stream has.
    """

    broken: npt.NDArray[np.bool_]
    patterns: Promised
    shared: tuple[str, ...]


def breaches(
    patterns: Promised, stream: tuple[str, ...], standing: Mapping[str, int | None], entries: Entries
) -> Breaches | None:
    """What entries break of what has been promised; None where that depends on what becomes of them.

    Entries need their rows where there are patterns; without, there are none to break. Named streams log when
    a producer opens. Where it does so by a row, that may be refused.

    Parameters
    ----------
    patterns, stream
        What each producer has promised, and what the stream has.
    standing
        The promised bound of each open producer.
    """
    if entries.told is None and not patterns and not stream:
        return Breaches(np.zeros(len(entries), bool), patterns, stream)
    rows = entries.rows
    assert rows is not None, "entries that patterns tell of have rows"
    promising = _Promising(patterns, stream, standing, rows.schema)
    if not promising.take(entries):
        return None
    broken = np.zeros(len(entries), bool)
    is_row = entries.kind == EntryKind.ROW
    for stretch in promising.stretches:
        if not (stretch.before or stretch.told):
            continue
        own = np.flatnonzero((entries.code == stretch.code) & is_row)
        own = own[(own > stretch.first) & (own < stretch.stop)]
        broken[own] = stretch.breaks(rows, own)
    return Breaches(broken, promising.patterns(), promising.stream_patterns())


@dataclass(eq=False)
class _Stretch:
    """The entries of a producer from one at which it closed to the next, and what holds for its rows.

    `before` is what held at its begin, `told` are the boxes since, with the entries that told them.
    """

    code: int
    first: int
    before: tuple[str, ...]
    cover: Cover
    told: list[tuple[int, Box]] = field(default_factory=list)
    stop: int = FOREVER

    def add(self, at: int, box: Box) -> bool:
        """Take in what is promised at an entry; whether it was not before."""
        is_new = self.cover.add_box(box)
        if is_new:
            self.told.append((at, box))
        return is_new

    def breaks(self, rows: pa.Table, own: Ints) -> npt.NDArray[np.bool_]:
        """Which rows match what was promised before them."""
        if not len(own):
            return np.zeros(len(own), bool)
        table = rows.take(pa.array(own))
        found = np.zeros(len(own), bool)
        if self.before:
            found |= _cover(self.before, rows.schema).matches(table)
        if self.told:
            lines = self.cover.lines
            since = [at for at, _ in self.told]
            earliest = Index([box for _, box in self.told], lines, since).earliest(Columns(table, lines))
            found |= (earliest != NEVER) & (earliest < own)
        return found


class _Promising:
    """What is promised while entries are taken in."""

    def __init__(
        self,
        patterns: Promised,
        stream: tuple[str, ...],
        standing: Mapping[str, int | None],
        columns: pa.Schema,
    ) -> None:
        self.lines: Lines = lines_of(columns)
        self.columns, self.before = columns, dict(patterns)
        self.stream, self.of_stream = stream, _fresh(stream, columns)
        self.opened = set(standing)
        self.finished = {name for name, bound in standing.items() if bound == FOREVER}
        self.stretches: list[_Stretch] = []
        self.current: dict[str, _Stretch] = {}
        self.closed: set[str] = set()
        self.is_wider = False

    def take(self, entries: Entries) -> bool:
        """Take in entries in their order; whether that says all."""
        names = entries.names
        codes, firsts = np.unique(entries.code, return_index=True)
        present = codes.tolist()
        is_row = entries.kind == EntryKind.ROW
        if (is_row & (entries.at == FOREVER)).any():
            return False
        says = ~is_row & ~np.isin(entries.kind, (EntryKind.BOUND, EntryKind.WATERMARK))
        says |= (entries.kind == EntryKind.BOUND) & (entries.at == FOREVER)
        enters = [
            at for code, at in zip(present, firsts.tolist(), strict=True) if names[code] not in self.opened
        ]
        leaves = np.flatnonzero(np.isin(entries.kind, (EntryKind.IDLE, EntryKind.CLOSE)))
        following = _next_of_same(entries.code)[leaves]
        events = sorted({*np.flatnonzero(says).tolist(), *enters, *following[following >= 0].tolist()})
        for code in present:
            self._begin(names[code], code, -1)
        for name in self.before.keys() & self.opened - {names[code] for code in present}:
            self._begin(name, -1, -1)
        told = [] if entries.told is None else entries.told.take(pa.array(events, pa.int64())).to_pylist()
        for at, pattern in itertools.zip_longest(events, told):
            kind, code = int(entries.kind[at]), int(entries.code[at])
            name = names[code]
            if kind in (EntryKind.IDLE, EntryKind.CLOSE):
                self._leave(name, code, at, is_closed=kind == EntryKind.CLOSE)
                continue
            if name not in self.opened:
                if kind == EntryKind.ROW:
                    return False
                self._open(name, at)
            if kind == EntryKind.PATTERN and pattern is not None:
                self._tell(name, at, Pattern.from_json(pattern, self.columns))
            if kind == EntryKind.BOUND and entries.at[at] == FOREVER:
                self.finished.add(name)
                self._share()
        return True

    def patterns(self) -> Promised:
        """What each producer has promised."""
        after = {name: texts for name, texts in self.before.items() if name not in self.closed}
        for name, stretch in self.current.items():
            texts = tuple(_texts(stretch.cover)) if stretch.told else stretch.before
            if texts:
                after[name] = texts
            else:
                after.pop(name, None)
        return after

    def stream_patterns(self) -> tuple[str, ...]:
        """What the stream has promised."""
        return tuple(_texts(self.of_stream)) if self.is_wider else self.stream

    def _begin(self, name: str, code: int, at: int) -> None:
        before = () if at >= 0 else self.before.get(name, ())
        self.current[name] = _Stretch(code, at, before, _fresh(before, self.columns))
        self.stretches.append(self.current[name])

    def _open(self, name: str, at: int) -> None:
        self.opened.add(name)
        for box in list(self.of_stream):
            self.current[name].add(at, box)

    def _leave(self, name: str, code: int, at: int, *, is_closed: bool) -> None:
        was_open = name in self.opened
        self.opened.discard(name)
        self.finished.discard(name)
        if is_closed:
            self.current[name].stop = at
            self.closed.add(name)
            self._begin(name, code, at)
        if was_open:
            self._share()

    def _tell(self, name: str, at: int, pattern: Pattern) -> None:
        fresh = [box for box in pattern.boxes() if self.current[name].add(at, box)]
        if name not in self.finished:
            others = [other for other in self._telling() if other != name]
            self._note(self._met(fresh, others))

    def _share(self) -> None:
        """Take in what those that are open have promised, now that they are fewer."""
        telling = self._telling()
        if telling:
            self._note(self._met(list(self._cover_of(telling[0])), telling[1:]))

    def _telling(self) -> list[str]:
        return sorted(self.opened - self.finished)

    def _met(self, boxes: list[Box], names: Iterable[str]) -> list[Box]:
        for name in names:
            cover = self._cover_of(name)
            boxes = [
                both
                for box in boxes
                for other in cover.overlapping(box)
                if (both := meet(box, other)) is not None
            ]
        return boxes

    def _cover_of(self, name: str) -> Cover:
        found = self.current.get(name)
        return Cover(self.lines) if found is None else found.cover

    def _note(self, boxes: Iterable[Box]) -> None:
        for box in boxes:
            self.is_wider |= self.of_stream.add_box(box)


def _next_of_same(codes: npt.NDArray[np.int32]) -> Ints:
    """Of each entry where the next of the same producer is; -1 for the last."""
    order = np.argsort(codes, kind="stable")
    found = np.full(len(codes), -1, np.int64)
    same = codes[order[1:]] == codes[order[:-1]]
    found[order[:-1][same]] = order[1:][same]
    return found


def _texts(cover: Cover) -> list[str]:
    return [Pattern.of_box(box, cover.lines).to_json() for box in cover]


def _fresh(texts: tuple[str, ...], columns: pa.Schema) -> Cover:
    return Cover(lines_of(columns), (Pattern.from_json(text, columns) for text in texts))


@lru_cache(maxsize=32)
def _cover(texts: tuple[str, ...], columns: pa.Schema) -> Cover:
    return _fresh(texts, columns)
