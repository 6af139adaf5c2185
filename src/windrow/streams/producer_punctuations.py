"""The punctuations of producers, which rows violate them, and which punctuations are true for the stream.

A punctuation applies from its entry on, to the rows of its producer, until the producer closes. A punctuation
of all open producers is one of the stream. It stays in force after they have left, and a producer that opens
later is subject to it, as it is to the watermark. A producer that has finished counts as having all of them.

None of this depends on the watermark, so a batch is checked against punctuations before its entries are
judged by the watermark.
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
from windrow.punctuations.index import NEVER, Columns, Index
from windrow.punctuations.regions import Lines, Region, meet
from windrow.streams.entries import FOREVER, Entries, EntryKind, Ints

__all__ = ["Breaches", "PatternsByProducer", "breaches", "is_breach", "shared", "shared_since"]

PatternsByProducer = Mapping[str, tuple[str, ...]]
"""The patterns of each producer that has some, as :meth:`Pattern.to_json` writes them."""


def is_breach(row: Mapping[str, object], patterns: tuple[str, ...], columns: pa.Schema) -> bool:
    """Whether a row matches any of the patterns: the definition."""

    def has(pattern: Pattern) -> bool:
        return all(
            own.contains(
                None if row[name] is None else own.line.places(pa.array([row[name]], own.line.kind))[0]
            )
            for name, own in pattern.columns
        )

    return any(has(Pattern.from_json(text, columns)) for text in patterns)


def shared(patterns: Sequence[tuple[str, ...]], columns: pa.Schema) -> tuple[str, ...]:
    """The punctuations that several producers have in common: the definition.

    Parameters
    ----------
    patterns
        The patterns of each producer; there is at least one producer.
    """
    known = [[Pattern.from_json(text, columns) for text in texts] for texts in patterns]
    found = []
    for combination in itertools.product(*known):
        both = combination[0]
        for other in combination[1:]:
            both = both & other
        if not both.is_empty:
            found.append(both.to_json())
    return tuple(found)


def shared_since(
    entries: Iterable[tuple[int, Hashable, str | None]], columns: pa.Schema
) -> list[tuple[int, str]]:
    """The punctuations of a recorded stream, and since when: those of all producers that have arrived so far.

    Parameters
    ----------
    entries
        (ptime, producer, pattern) in any order, each producer's first entry among them; the pattern is None
        for other entries. Entries with the same ptime arrive together.
    """
    lines = lines_of(columns)
    stream, own = Cover(lines), dict[Hashable, Cover]()
    found = []
    for ptime, some in itertools.groupby(sorted(entries, key=lambda one: one[0]), key=lambda one: one[0]):
        arrived = list(some)
        for producer in {producer for _, producer, _ in arrived} - own.keys():  # the stream's apply to it too
            own[producer] = Cover(lines)
            for region in stream:
                own[producer].add_region(region)
        for _, producer, text in arrived:
            regions = [] if text is None else own[producer].add(Pattern.from_json(text, columns))
            for other in own.keys() - {producer}:
                both = (meet(region, added) for region in regions for added in own[other].overlapping(region))
                regions = [region for region in both if region is not None]
            found += [
                (ptime, Pattern.of_region(region, lines).to_json())
                for region in regions
                if stream.add_region(region)
            ]
    return found


@dataclass(frozen=True, eq=False)
class Breaches:
    """Which entries violate a punctuation, and which punctuations are in force after all of them.

    Attributes
    ----------
    broken
        Whether each entry is a row that matches a punctuation of its producer.
    patterns, shared
        The punctuations of each producer, and of the stream.
    """

    broken: npt.NDArray[np.bool_]
    patterns: PatternsByProducer
    shared: tuple[str, ...]


def breaches(
    patterns: PatternsByProducer,
    stream: tuple[str, ...],
    standing: Mapping[str, int | None],
    entries: Entries,
) -> Breaches | None:
    """Find the entries that violate a punctuation; None if that depends on which entries are admitted.

    Entries need their rows if there are patterns. Named streams log when a producer opens; in other sources a
    producer opens with its first row, and that row may be refused.

    Parameters
    ----------
    patterns, stream
        The punctuations of each producer, and of the stream.
    standing
        The bound of each open producer.
    """
    if entries.patterns is None and not patterns and not stream:
        return Breaches(np.zeros(len(entries), bool), patterns, stream)
    rows = entries.rows
    assert rows is not None, "entries with patterns have no rows"
    in_force = _InForce(patterns, stream, standing, rows.schema)
    if not in_force.take(entries):
        return None
    broken = np.zeros(len(entries), bool)
    is_row = entries.kind == EntryKind.ROW
    for stretch in in_force.stretches:
        if not (stretch.before or stretch.added):
            continue
        own = np.flatnonzero((entries.code == stretch.code) & is_row)
        own = own[(own > stretch.first) & (own < stretch.stop)]
        broken[own] = stretch.breaks(rows, own)
    return Breaches(broken, in_force.patterns(), in_force.stream_patterns())


@dataclass(eq=False)
class _Stretch:
    """The entries of a producer between two at which it closed, and the punctuations for its rows.

    `before` are the punctuations at the start, `added` the regions since, each with the entry that added it.
    """

    code: int
    first: int
    before: tuple[str, ...]
    cover: Cover
    added: list[tuple[int, Region]] = field(default_factory=list)
    stop: int = FOREVER

    def add(self, at: int, region: Region) -> bool:
        """Add the punctuation of an entry; return whether it says anything new."""
        is_new = self.cover.add_region(region)
        if is_new:
            self.added.append((at, region))
        return is_new

    def breaks(self, rows: pa.Table, own: Ints) -> npt.NDArray[np.bool_]:
        """Which rows match an earlier punctuation."""
        if not len(own):
            return np.zeros(len(own), bool)
        table = rows.take(pa.array(own))
        found = np.zeros(len(own), bool)
        if self.before:
            found |= _cover(self.before, rows.schema).matches(table)
        if self.added:
            lines = self.cover.lines
            since = [at for at, _ in self.added]
            earliest = Index([region for _, region in self.added], lines, since).earliest(
                Columns(table, lines)
            )
            found |= (earliest != NEVER) & (earliest < own)
        return found


class _InForce:
    """The punctuations in force, entry by entry."""

    def __init__(
        self,
        patterns: PatternsByProducer,
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
        """Process entries in order; return False if the result depends on which entries are admitted."""
        names = entries.names
        codes, firsts = np.unique(entries.code, return_index=True)
        present = codes.tolist()
        is_row = entries.kind == EntryKind.ROW
        if (is_row & (entries.at == FOREVER)).any():
            return False
        is_control = ~is_row & ~np.isin(entries.kind, (EntryKind.BOUND, EntryKind.WATERMARK))
        is_control |= (entries.kind == EntryKind.BOUND) & (entries.at == FOREVER)
        enters = [
            at for code, at in zip(present, firsts.tolist(), strict=True) if names[code] not in self.opened
        ]
        leaves = np.flatnonzero(np.isin(entries.kind, (EntryKind.IDLE, EntryKind.CLOSE)))
        following = _next_of_same(entries.code)[leaves]
        events = sorted({*np.flatnonzero(is_control).tolist(), *enters, *following[following >= 0].tolist()})
        for code in present:
            self._begin(names[code], code, -1)
        for name in self.before.keys() & self.opened - {names[code] for code in present}:
            self._begin(name, -1, -1)
        added = (
            []
            if entries.patterns is None
            else entries.patterns.take(pa.array(events, pa.int64())).to_pylist()
        )
        for at, pattern in itertools.zip_longest(events, added):
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
                self._add(name, at, Pattern.from_json(pattern, self.columns))
            if kind == EntryKind.BOUND and entries.at[at] == FOREVER:
                self.finished.add(name)
                self._share()
        return True

    def patterns(self) -> PatternsByProducer:
        """The punctuations of each producer."""
        after = {name: texts for name, texts in self.before.items() if name not in self.closed}
        for name, stretch in self.current.items():
            texts = tuple(_texts(stretch.cover)) if stretch.added else stretch.before
            if texts:
                after[name] = texts
            else:
                after.pop(name, None)
        return after

    def stream_patterns(self) -> tuple[str, ...]:
        """The punctuations of the stream."""
        return tuple(_texts(self.of_stream)) if self.is_wider else self.stream

    def _begin(self, name: str, code: int, at: int) -> None:
        before = () if at >= 0 else self.before.get(name, ())
        self.current[name] = _Stretch(code, at, before, _fresh(before, self.columns))
        self.stretches.append(self.current[name])

    def _open(self, name: str, at: int) -> None:
        self.opened.add(name)
        for region in list(self.of_stream):
            self.current[name].add(at, region)

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

    def _add(self, name: str, at: int, pattern: Pattern) -> None:
        fresh = [region for region in pattern.regions() if self.current[name].add(at, region)]
        if name not in self.finished:
            others = [other for other in self._unfinished() if other != name]
            self._note(self._met(fresh, others))

    def _share(self) -> None:
        """Add the common punctuations of the open producers, after one of them has left."""
        unfinished = self._unfinished()
        if unfinished:
            self._note(self._met(list(self._cover_of(unfinished[0])), unfinished[1:]))

    def _unfinished(self) -> list[str]:
        return sorted(self.opened - self.finished)

    def _met(self, regions: list[Region], names: Iterable[str]) -> list[Region]:
        for name in names:
            cover = self._cover_of(name)
            regions = [
                both
                for region in regions
                for other in cover.overlapping(region)
                if (both := meet(region, other)) is not None
            ]
        return regions

    def _cover_of(self, name: str) -> Cover:
        found = self.current.get(name)
        return Cover(self.lines) if found is None else found.cover

    def _note(self, regions: Iterable[Region]) -> None:
        for region in regions:
            self.is_wider |= self.of_stream.add_region(region)


def _next_of_same(codes: npt.NDArray[np.int32]) -> Ints:
    """The position of the same producer's next entry, for each entry; -1 for its last."""
    order = np.argsort(codes, kind="stable")
    found = np.full(len(codes), -1, np.int64)
    same = codes[order[1:]] == codes[order[:-1]]
    found[order[:-1][same]] = order[1:][same]
    return found


def _texts(cover: Cover) -> list[str]:
    return [Pattern.of_region(region, cover.lines).to_json() for region in cover]


def _fresh(texts: tuple[str, ...], columns: pa.Schema) -> Cover:
    return Cover(lines_of(columns), (Pattern.from_json(text, columns) for text in texts))


@lru_cache(maxsize=32)
def _cover(texts: tuple[str, ...], columns: pa.Schema) -> Cover:
    return _fresh(texts, columns)
