"""A growing set of punctuations, stored so that adding one is cheap.

Regions are grouped into *families* that have single values in the same columns. Within a family they are
found by these values; the ranges of one more column are a sorted list of spans, in which spans that overlap
or touch are merged. A punctuation of a key is therefore found by its key, however many there are, and
consecutive keys, such as generated numbers, become one range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from windrow.punctuations.index import Bools, Columns, Index
from windrow.punctuations.lines import Span
from windrow.punctuations.pattern import Pattern
from windrow.punctuations.regions import NULL, Lines, Region, contains, is_exact, outside
from windrow.punctuations.spans import Spans

__all__ = ["Cover"]

_Key: TypeAlias = tuple[Any, ...]
_AGAIN = 64  # fewer regions are not worth a new index


class Cover:
    """A set of punctuations of one stream. It is mutable.

    Parameters
    ----------
    lines
        Those of the stream's columns.
    """

    def __init__(self, lines: Lines, patterns: Iterable[Pattern] = ()) -> None:
        self.lines = lines
        self._families: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[_Key, _Cell]] = {}
        self._indices: list[Index] | None = None  # made by the first call of `matches`
        self._indexed = _AGAIN  # regions, when all were last indexed together
        self._waiting: list[Region] = []  # not yet in an index
        self._passed: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
        for pattern in patterns:
            self.add(pattern)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Region]:
        """The regions, after merging."""
        for (exact, ranges), family in self._families.items():
            for key, cell in family.items():
                yield from (_put_together(exact, ranges, key, spans) for spans in cell.all())

    def add(self, pattern: Pattern) -> list[Region]:
        """Add a punctuation; return its regions that were not covered before."""
        return [region for region in pattern.regions() if self.add_region(region)]

    def add_region(self, region: Region) -> bool:
        """Add a region; return whether it was not covered before."""
        if self.covers(region):
            return False
        if self._indices is not None:
            self._waiting.append(region)
            if len(self._waiting) > 2 * self._indexed:
                self._indices, self._waiting = None, []
        self.forget(region)
        exact, ranges, key, spans = self._placed(region)
        cell = self._families.setdefault((exact, ranges), {}).setdefault(key, _Cell(len(ranges)))
        cell.add(spans)
        return True

    def covers(self, region: Region) -> bool:
        """Whether punctuations cover all rows of a region."""
        # two sample rows are cheap to look up, while the overlapping regions may be many
        rows = [
            {name: self._one_row(name, region.get(name, _ANY), least=least) for name in self.lines}
            for least in (True, False)
        ]
        if not all(next(self.overlapping(row), None) is not None for row in rows):
            return False
        return not outside([region], self.overlapping(region), self.lines)

    def _one_row(self, name: str, span: Any, *, least: bool) -> Span | None:
        """A sample row's value in a column: the first of the region; in other columns NULL or the first."""
        if span is NULL or (span is _ANY and not least):
            return NULL
        return self.lines[name].point(self.lines[name].first if span is _ANY else span[0])

    def overlapping(self, region: Region) -> Iterator[Region]:
        """The regions that overlap one."""
        for (exact, ranges), family in self._families.items():
            only_key = self._key(exact, region)
            if only_key is not None:
                found = [(only_key, family[only_key])] if only_key in family else []
            else:
                found = list(family.items())
            for key, cell in found:
                if not all(
                    name not in region or _overlap(region[name], span)
                    for name, span in zip(exact, key, strict=True)
                ):
                    continue
                wanted = tuple(region.get(name, _ANY) for name in ranges)
                yield from (_put_together(exact, ranges, key, spans) for spans in cell.overlapping(wanted))

    def matches(self, table: pa.Table) -> Bools:
        """Whether each row matches a punctuation."""
        columns = Columns(table, self.lines)
        found = np.zeros(table.num_rows, bool)
        for index in self._in_order():
            found |= index.matches(columns)
        return found

    def _in_order(self) -> list[Index]:
        """Index the regions that are not yet indexed; merge small indices, so that there are not many."""
        indices = self._indices or []
        if self._waiting:
            indices.append(Index(self._waiting, self.lines))
        while len(indices) > 1 and len(indices[-2]) < 2 * len(indices[-1]) + _AGAIN:
            last = indices.pop()
            indices[-1] = Index([*indices[-1].boxes, *last.boxes], self.lines)
        if self._indices is None or sum(len(index) for index in indices) > 2 * self._indexed:
            indices = [Index(list(self), self.lines)]
            self._indexed = max(len(indices[0]), _AGAIN)
        self._indices, self._waiting = indices, []
        return indices

    def forget(self, region: Region) -> None:
        """Remove the regions that a region contains: they are redundant.

        If that needs a scan of a family, it happens only from time to time: redundant regions do no harm.
        """
        for family_key, family in [*self._families.items()]:
            exact, ranges = family_key
            if not region.keys() <= {*exact, *ranges}:
                continue
            key = self._key(exact, region)
            if key is not None:
                keys = [key] if key in family else []
            else:
                self._passed[family_key] = self._passed.get(family_key, 0) + _AGAIN
                if self._passed[family_key] < len(family):
                    continue
                self._passed[family_key] = 0
                keys = [*family]
            for key in keys:
                own = dict(zip(exact, key, strict=True))
                if not contains({name: region[name] for name in exact if name in region}, own):
                    continue
                family[key].forget(tuple(region.get(name, _ANY) for name in ranges))
                if not family[key]:
                    del family[key]
            if not family:
                del self._families[family_key]

    def _placed(self, region: Region) -> tuple[tuple[str, ...], tuple[str, ...], _Key, tuple[Span, ...]]:
        """The family of a region, its key there, and its spans."""
        names = sorted(region)
        ranges = [name for name in names if not is_exact(self.lines[name], region[name])]
        if not ranges:
            ranges = [name for name in names if region[name] is not NULL][:1]
        exact = tuple(name for name in names if name not in ranges)
        spans = tuple(span for name in ranges if (span := region[name]) is not NULL)
        return exact, tuple(ranges), tuple(region[name] for name in exact), spans

    def _key(self, exact: tuple[str, ...], region: Region) -> _Key | None:
        """The only key of a family that a region can overlap; None if there may be several."""
        if all(name in region and is_exact(self.lines[name], region[name]) for name in exact):
            return tuple(region[name] for name in exact)
        return None


_ANY: Any = object()
"""Any value: the range of a column that a region does not restrict."""


def _overlap(one: Span | None, other: Span | None) -> bool:
    if one is NULL or other is NULL:
        return one is other
    return bool(one[0] < other[1] and other[0] < one[1])


def _put_together(
    exact: tuple[str, ...], ranges: tuple[str, ...], key: _Key, spans: tuple[Span, ...]
) -> Mapping[str, Span | None]:
    return {**dict(zip(exact, key, strict=True)), **dict(zip(ranges, spans, strict=True))}


class _Cell:
    """The spans of the regions with one key: of no, one, or several columns."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.one = Spans()
        self.several: list[tuple[Span, ...]] = []

    def __bool__(self) -> bool:
        return bool(self.one or self.several)

    def add(self, spans: tuple[Span, ...]) -> None:
        """Add spans that are not covered yet."""
        if self.width == 1:
            self.one.add(*spans[0])
            return
        self.several = [other for other in self.several if not _within(other, spans)]
        self.several.append(spans)

    def overlapping(self, wanted: tuple[Any, ...]) -> Iterator[tuple[Span, ...]]:
        """The spans that overlap some others."""
        if self.width != 1:
            yield from (
                spans
                for spans in self.several
                if all(own is _ANY or _overlap(own, span) for own, span in zip(wanted, spans, strict=True))
            )
        elif wanted[0] is _ANY:
            yield from self.all()
        elif wanted[0] is not NULL:
            yield from ((span,) for span in self.one.overlapping(*wanted[0]))

    def all(self) -> Iterator[tuple[Span, ...]]:
        """All of them."""
        yield from self.several if self.width != 1 else ((span,) for span in self.one)

    def forget(self, outer: tuple[Any, ...]) -> None:
        """Remove those within some spans."""
        if self.width != 1:
            self.several = [spans for spans in self.several if not _within(spans, outer)]
        elif outer[0] is _ANY:
            self.one = Spans()
        elif outer[0] is not NULL:
            self.one.forget(*outer[0])


def _within(inner: tuple[Span, ...], outer: tuple[Any, ...]) -> bool:
    return all(
        span is _ANY or (span is not NULL and own[0] >= span[0] and own[1] <= span[1])
        for own, span in zip(inner, outer, strict=True)
    )
