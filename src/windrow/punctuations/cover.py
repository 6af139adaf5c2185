"""What a growing set of punctuations promises, kept so that each new one costs little.

Boxes lie in *families*: those that are exact on the same columns. Within one they are found by their values,
and what they say of one more column is a list of spans in order; spans that overlap or touch are made one.
So a punctuation of a key is looked up by its key, however many there are, and keys that follow each other,
as numbers that are given out do, come to one range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from windrow.punctuations.boxes import NULL, Box, Lines, contains, is_exact, meet, outside
from windrow.punctuations.index import Bools, Columns, Index
from windrow.punctuations.lines import Span
from windrow.punctuations.pattern import Pattern
from windrow.punctuations.spans import Spans

__all__ = ["Cover"]

_Key: TypeAlias = tuple[Any, ...]
_AGAIN = 64  # an index is not made anew for fewer boxes


class Cover:
    """A set of punctuations of one stream. It changes as they are added.

    Parameters
    ----------
    lines
        Those of the stream's columns.
    """

    def __init__(self, lines: Lines, patterns: Iterable[Pattern] = ()) -> None:
        self.lines = lines
        self._families: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[_Key, _Cell]] = {}
        self._indices: list[Index] | None = None  # while nothing asks which rows match
        self._indexed = _AGAIN  # boxes, when all were last indexed together
        self._waiting: list[Box] = []  # that are in no index yet
        self._passed: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
        for pattern in patterns:
            self.add(pattern)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Box]:
        """The boxes, made as few as they are."""
        for (exact, ranges), family in self._families.items():
            for key, cell in family.items():
                yield from (_put_together(exact, ranges, key, spans) for spans in cell.all())

    def add(self, pattern: Pattern) -> list[Box]:
        """Take in a punctuation; its boxes that say what was not known."""
        return [box for box in pattern.boxes() if self.add_box(box)]

    def add_box(self, box: Box) -> bool:
        """Take in a box; whether it says what was not known."""
        if self.covers(box):
            return False
        if self._indices is not None:
            self._waiting.append(box)
            if len(self._waiting) > 2 * self._indexed:
                self._indices, self._waiting = None, []
        self.forget(box)
        exact, ranges, key, spans = self._placed(box)
        cell = self._families.setdefault((exact, ranges), {}).setdefault(key, _Cell(len(ranges)))
        cell.add(spans)
        return True

    def covers(self, box: Box) -> bool:
        """Whether all rows of a box have been promised not to come, by whichever punctuations."""
        # a row of the box is looked up by its values alone, where all that overlaps may be much
        rows = [
            {name: self._one_row(name, box.get(name, _ANY), least=least) for name in self.lines}
            for least in (True, False)
        ]
        if not all(next(self.overlapping(row), None) is not None for row in rows):
            return False
        return not outside([box], self.overlapping(box), self.lines)

    def _one_row(self, name: str, span: Any, *, least: bool) -> Span | None:
        """What a row of a box has in a column: its first place; in others NULL, or else the first place."""
        if span is NULL or (span is _ANY and not least):
            return NULL
        return self.lines[name].point(self.lines[name].first if span is _ANY else span[0])

    def overlapping(self, box: Box) -> Iterator[Box]:
        """The boxes that have rows in common with one."""
        for (exact, ranges), family in self._families.items():
            asked = self._key(exact, box)
            if asked is not None:
                found = [(asked, family[asked])] if asked in family else []
            else:
                found = list(family.items())
            for key, cell in found:
                if not all(
                    name not in box or _overlap(box[name], span)
                    for name, span in zip(exact, key, strict=True)
                ):
                    continue
                wanted = tuple(box.get(name, _ANY) for name in ranges)
                yield from (_put_together(exact, ranges, key, spans) for spans in cell.overlapping(wanted))

    def meets(self, pattern: Pattern) -> Iterator[Box]:
        """What each of the boxes has in common with a pattern, where that is something."""
        for box in pattern.boxes():
            for other in self.overlapping(box):
                both = meet(box, other)
                assert both is not None
                yield both

    def matches(self, table: pa.Table) -> Bools:
        """Of each row whether it has been promised not to come."""
        columns = Columns(table, self.lines)
        found = np.zeros(table.num_rows, bool)
        for index in self._in_order():
            found |= index.matches(columns)
        return found

    def _in_order(self) -> list[Index]:
        """Index what waits; small indices are made one, so that there are few."""
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

    def forget(self, box: Box) -> None:
        """Forget the boxes that one contains, which says as much.

        Where they could be anywhere in a family they are looked for from time to time only: they do no harm.
        """
        for family_key, family in [*self._families.items()]:
            exact, ranges = family_key
            if not box.keys() <= {*exact, *ranges}:
                continue
            key = self._key(exact, box)
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
                if not contains({name: box[name] for name in exact if name in box}, own):
                    continue
                family[key].forget(tuple(box.get(name, _ANY) for name in ranges))
                if not family[key]:
                    del family[key]
            if not family:
                del self._families[family_key]

    def _placed(self, box: Box) -> tuple[tuple[str, ...], tuple[str, ...], _Key, tuple[Span, ...]]:
        """The family of a box, its key there, and its spans."""
        names = sorted(box)
        ranges = [name for name in names if not is_exact(self.lines[name], box[name])]
        if not ranges:
            ranges = [name for name in names if box[name] is not NULL][:1]
        exact = tuple(name for name in names if name not in ranges)
        spans = tuple(span for name in ranges if (span := box[name]) is not NULL)
        return exact, tuple(ranges), tuple(box[name] for name in exact), spans

    def _key(self, exact: tuple[str, ...], box: Box) -> _Key | None:
        """The only key that a box has rows in common with; None if there may be several."""
        if all(name in box and is_exact(self.lines[name], box[name]) for name in exact):
            return tuple(box[name] for name in exact)
        return None


_ANY: Any = object()
"""What is asked of a column of which a box tells nothing."""


def _overlap(one: Span | None, other: Span | None) -> bool:
    if one is NULL or other is NULL:
        return one is other
    return bool(one[0] < other[1] and other[0] < one[1])


def _put_together(
    exact: tuple[str, ...], ranges: tuple[str, ...], key: _Key, spans: tuple[Span, ...]
) -> Mapping[str, Span | None]:
    return {**dict(zip(exact, key, strict=True)), **dict(zip(ranges, spans, strict=True))}


class _Cell:
    """The spans of boxes with one key: of no, one, or several columns."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.one = Spans()
        self.several: list[tuple[Span, ...]] = []

    def __bool__(self) -> bool:
        return bool(self.one or self.several)

    def add(self, spans: tuple[Span, ...]) -> None:
        """Take in what is not covered."""
        if self.width == 1:
            self.one.add(*spans[0])
            return
        self.several = [other for other in self.several if not _within(other, spans)]
        self.several.append(spans)

    def overlapping(self, wanted: tuple[Any, ...]) -> Iterator[tuple[Span, ...]]:
        """Those that have places in common with some."""
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
        """Forget those within some spans."""
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
