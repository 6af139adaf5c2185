"""Punctuations of computed columns, derived from punctuations of the columns that they are computed from."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from windrow.punctuations import Closing, Pattern
from windrow.punctuations.lines import Line, Place, Span
from windrow.punctuations.regions import NULL, Lines, Region

__all__ = ["Follower", "Following", "Values"]


@dataclass(frozen=True)
class Follower:
    """A column that is computed from one other column, NULL exactly if that one is NULL.

    Attributes
    ----------
    name, column
        The computed column, and the input column.
    rises
        Whether the function is monotonically increasing; False if decreasing; None if neither, but injective.
    differs
        Whether the function is injective.
    is_prefixed
        Whether another operator derives the punctuations of prefixes, and of NULL.
    """

    name: str
    column: str
    rises: bool | None = True
    differs: bool = False
    is_prefixed: bool = False


MOST_SINGLE = 10_000
"""Up to so many values of a range are evaluated one by one."""

Values: TypeAlias = Callable[[Follower, Sequence[Place]], Mapping[Place, Place]]
"""The places of a follower for places of its input column; some may be missing."""


class Following:
    """The keys that an input's punctuations close over columns passed on and followers together.

    An injective follower has a single value for a single value of its input column, so a small set of values
    maps to a small set. A monotonic follower maps a range to the range between its values just before and
    just after the range.

    Parameters
    ----------
    lines, output
        The lines of the input, and of the output.
    plain
        The columns that are passed on: their names in the output, and in the input.
    followers
        The followers, of columns with a line.
    """

    def __init__(
        self, lines: Lines, output: Lines, plain: Iterable[tuple[str, str]], followers: Sequence[Follower]
    ) -> None:
        self.lines, self.output = lines, output
        self._plain: dict[str, list[str]] = {}
        for name, column in plain:
            if column in lines:
                self._plain.setdefault(column, []).append(name)
        self._followers = tuple(one for one in followers if one.column in lines and one.name in output)
        read = list(dict.fromkeys(one.column for one in self._followers))
        together = [[column] for column in read] + ([read] if len(read) > 1 else [])
        self._closings = [
            Closing(lines, {**dict.fromkeys(self._plain), **dict.fromkeys(own)}) for own in together
        ]

    def add(self, patterns: Sequence[Pattern], values: Values) -> list[Region]:
        """Add punctuations; return the output keys with followers that they close."""
        read = {one.column for one in self._followers}
        regions = [
            region
            for closing in self._closings
            for found in closing.add(patterns)
            for region in self._merged(closing, found)
            if not read.isdisjoint(region) and not self._is_prefix(region)
        ]
        wanted: dict[Follower, dict[Place, None]] = {}
        for region in regions:
            for one in self._followers:
                if one.column in region:
                    wanted.setdefault(one, {}).update(dict.fromkeys(self._read(one, region[one.column])))
        known = {one: values(one, list(places)) if places else {} for one, places in wanted.items()}
        return [each for region in regions for each in self._regions_of(region, known)]

    def _is_prefix(self, region: Region) -> bool:
        """Whether another operator derives its punctuations, for all followers of its column."""
        if len(region) > 1:
            return False
        ((column, span),) = region.items()
        if span is not NULL and span[0] != self.lines[column].first:
            return False
        return all(one.is_prefixed for one in self._followers if one.column == column)

    def _merged(self, closing: Closing, region: Region) -> list[Region]:
        """A region, or, if its extent matters, the merged regions that it is now part of."""
        if all(one.differs or one.column not in region for one in self._followers):
            return [region]
        return list(closing.closed.overlapping(region))

    def _read(self, one: Follower, span: Span | None) -> list[Place]:
        """The places at which a follower must be evaluated."""
        line = self.lines[one.column]
        if span is NULL:
            return []
        if one.rises is None:
            return self._single(line, span)
        return [
            *([] if span[0] == line.first else [span[0] - 1]),
            *([] if span[1] == line.end else [span[1]]),
        ]

    def _single(self, line: Line, span: Span) -> list[Place]:
        """The places of a span, if they are not too many: adjacent single values form one range."""
        if line.is_point(span):
            return [span[0]]
        is_small = not line.is_of_bytes and span[1] - span[0] <= MOST_SINGLE
        return [*range(span[0], span[1])] if is_small else []

    def _regions_of(
        self, region: Region, known: Mapping[Follower, Mapping[Place, Place]]
    ) -> Iterator[Region]:
        """A region of the input as regions of the output."""
        choices: list[list[Region]] = []
        for column, span in region.items():
            outputs: list[Region] = [{name: span} for name in self._plain.get(column, ())]
            for one in self._followers:
                if one.column == column:
                    outputs += [{one.name: own} for own in self._spans(one, span, known[one])]
            choices.append(outputs)
        for chosen in itertools.product(*choices):
            yield {name: span for one in chosen for name, span in one.items()}

    def _spans(self, one: Follower, span: Span | None, known: Mapping[Place, Place]) -> list[Span | None]:
        """The values of a follower that occur for a span only: NULL, spans, or none if unknown."""
        line, output = self.lines[one.column], self.output[one.name]
        if span is NULL:
            return [NULL]
        if not all(place in known for place in self._read(one, span)):
            return []
        if one.rises is None:
            return [output.point(known[place]) for place in self._single(line, span)]
        before = None if span[0] == line.first else known[span[0] - 1]
        after = None if span[1] == line.end else known[span[1]]
        low, high = (before, after) if one.rises else (after, before)
        found = output.first if low is None else output.after(low), output.end if high is None else high
        return [found] if found[0] < found[1] else []
