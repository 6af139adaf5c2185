"""Sets of a column's values: the part of a pattern for one column."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.punctuations.lines import END, Line, Place, Span, line_of

__all__ = ["Values", "merged"]


@dataclass(frozen=True, slots=True)
class Values:
    """A set of values of a type.

    Attributes
    ----------
    line
        The type's values in order.
    null
        Whether NULL is one of them.
    spans
        The other values: sorted spans, none empty, none adjacent to the next.
    """

    line: Line
    null: bool
    spans: tuple[Span, ...]

    @staticmethod
    def everything(kind: pa.DataType) -> Values:
        """All values and NULL: ``*``."""
        line = line_of(kind)
        return Values(line, True, ((line.first, line.end),))

    @staticmethod
    def compared(kind: pa.DataType, operator: str, operand: Any = None) -> Values:
        """The values for which a comparison is true, without NULL except for ``is null``.

        Parameters
        ----------
        kind
            The column's type.
        operator
            ``=``, ``in``, ``<``, ``<=``, ``>``, ``>=``, ``between``, ``is null``, ``is not null``.
        operand
            The value; for ``in`` and ``between`` a list of them. A comparison with NULL is never true.

        Raises
        ------
        InputError
            ``INVALID_VALUE``.
        NotSupportedError
            ``UNSUPPORTED_TYPE``.
        """
        line = line_of(kind)
        operands = [] if operator.startswith("is") else [operand]
        if operator in ("in", "between"):
            operands = list(operand)
        places = [None if value is None else line.place(value) for value in operands]
        if operator == "in":
            return Values.at_places(kind, operator, [place for place in places if place is not None])
        return Values(line, False, ()) if None in places else Values.at_places(kind, operator, places)

    @staticmethod
    def at_places(kind: pa.DataType, operator: str, places: Sequence[Place]) -> Values:
        """As :meth:`compared`, for places instead of values."""
        line = line_of(kind)
        if operator in ("is null", "is not null"):
            is_null = operator == "is null"
            return Values(line, is_null, () if is_null else ((line.first, line.end),))
        if operator in ("=", "in"):
            return Values(line, False, merged(line.point(place) for place in places))
        place, after = places[0], line.after(places[-1])
        ranges: dict[str, Span] = {
            "<": (line.first, place),
            "<=": (line.first, after),
            ">": (after, line.end),
            ">=": (place, line.end),
            "between": (place, after),
        }
        first, stop = ranges[operator]
        return Values(line, False, ((first, stop),) if first < stop else ())

    @property
    def is_empty(self) -> bool:
        """Whether it is empty."""
        return not self.null and not self.spans

    @property
    def is_everything(self) -> bool:
        """Whether it contains all values and NULL."""
        return self.null and self.spans == ((self.line.first, self.line.end),)

    def contains(self, place: Place | None) -> bool:
        """Whether it contains the value of a place; None stands for NULL."""
        if place is None:
            return self.null
        at = bisect_right(self.spans, place, key=lambda span: span[0]) - 1
        return at >= 0 and bool(place < self.spans[at][1])

    def __and__(self, other: Values) -> Values:
        spans = []
        mine, theirs = list(self.spans), list(other.spans)
        one = two = 0
        while one < len(mine) and two < len(theirs):
            first, stop = max(mine[one][0], theirs[two][0]), min(mine[one][1], theirs[two][1])
            if first < stop:
                spans.append((first, stop))
            if mine[one][1] < theirs[two][1]:
                one += 1
            else:
                two += 1
        return Values(self.line, self.null and other.null, tuple(spans))

    def __or__(self, other: Values) -> Values:
        return Values(self.line, self.null or other.null, merged([*self.spans, *other.spans]))

    def __invert__(self) -> Values:
        edges = [self.line.first, *(edge for span in self.spans for edge in span), self.line.end]
        spans = [(first, stop) for first, stop in zip(edges[::2], edges[1::2], strict=True) if first < stop]
        return Values(self.line, not self.null, tuple(spans))

    def __le__(self, other: Values) -> bool:
        return (self & other) == self

    def to_json(self) -> list[Any]:
        """Write JSON: a list of NULL, values, and ranges such as ``{">=": 2, "<": 5}``."""
        line = self.line
        parts: list[Any] = [None] if self.null else []
        for first, stop in self.spans:
            if line.is_point((first, stop)):
                parts.append(line.to_json(first))
                continue
            ends: dict[str, Any] = {}
            if first != line.first:
                ends[">="] = line.to_json(first)
            if stop is not END and stop != line.end:
                ends["<"] = line.to_json(stop)
            parts.append({"in": ends})
        return parts

    @staticmethod
    def of_json(kind: pa.DataType, parts: Iterable[Any]) -> Values:
        """Read what :meth:`to_json` wrote."""
        line = line_of(kind)
        null, spans = False, []
        for piece in parts:
            if piece is None:
                null = True
            elif isinstance(piece, dict) and "in" in piece:
                ends = piece["in"]
                first = line.of_json(ends[">="]) if ">=" in ends else line.first
                spans.append((first, line.of_json(ends["<"]) if "<" in ends else line.end))
            else:
                spans.append(line.point(line.of_json(piece)))
        return Values(line, null, merged(spans))

    def formatted(self, name: str) -> str:
        """Format it as a condition on a column of this name."""
        line = self.line
        points = [line.formatted(span[0]) for span in self.spans if line.is_point(span)]
        parts = [f"{name} IS NULL"] if self.null else []
        if points:
            parts.append(f"{name} = {points[0]}" if len(points) == 1 else f"{name} IN ({', '.join(points)})")
        for first, stop in self.spans:
            if line.is_point((first, stop)):
                continue
            ends = [f"{name} >= {line.formatted(first)}"] if first != line.first else []
            if stop is not END and stop != line.end:
                ends.append(f"{name} < {line.formatted(stop)}")
            parts.append(" AND ".join(ends) or f"{name} IS NOT NULL")
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sort and merge spans that overlap or touch, and drop empty ones."""
    found: list[Span] = []
    for first, stop in sorted(span for span in spans if span[0] < span[1]):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], stop))
        else:
            found.append((first, stop))
    return tuple(found)
