"""What promises about columns say of others that are computed of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from windrow.punctuations import Closing, Pattern
from windrow.punctuations.boxes import NULL, Box, Lines
from windrow.punctuations.lines import Line, Place, Span

__all__ = ["Follower", "Following", "Values"]


@dataclass(frozen=True)
class Follower:
    """A column that is computed of one other, NULL where that is and only there.

    Attributes
    ----------
    name, column
        The column, and the one of the input of which it is computed.
    rises
        Whether it never falls where that rises; False where it never rises. None where it may do both, but
        differs.
    differs
        Whether it has different values wherever that has.
    is_prefixed
        Whether what it is of values before all that may come, and of NULL, is told elsewhere.
    """

    name: str
    column: str
    rises: bool | None = True
    differs: bool = False
    is_prefixed: bool = False


FEW = 10_000
"""How many values of a range are looked at one by one."""

Values: TypeAlias = Callable[[Follower, Sequence[Place]], Mapping[Place, Place]]
"""The places that a follower has where its column has some; of some it may be unknown."""


class Following:
    """What the punctuations of an input close of columns that it passes on and of followers, together.

    Of a single value a follower that differs has a single value, and of a few in turn one each. Of a range,
    which is all that there is between a value before it and one after it, a follower that rises or falls has
    all that is between what it is of these.

    Parameters
    ----------
    lines, output
        Those of the input, and of the output.
    plain
        Of the columns that are passed on: their names in the output, and in the input.
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

    def add(self, patterns: Sequence[Pattern], values: Values) -> list[Box]:
        """Take in punctuations; what they close of the output by its followers."""
        read = {one.column for one in self._followers}
        boxes = [
            box
            for closing in self._closings
            for found in closing.add(patterns)
            for box in self._merged(closing, found)
            if not read.isdisjoint(box) and not self._is_prefix(box)
        ]
        wanted: dict[Follower, dict[Place, None]] = {}
        for box in boxes:
            for one in self._followers:
                if one.column in box:
                    wanted.setdefault(one, {}).update(dict.fromkeys(self._read(one, box[one.column])))
        known = {one: values(one, list(places)) if places else {} for one, places in wanted.items()}
        return [each for box in boxes for each in self._told(box, known)]

    def _is_prefix(self, box: Box) -> bool:
        """Whether it is told elsewhere, for all that is computed of it."""
        if len(box) > 1:
            return False
        ((column, span),) = box.items()
        if span is not NULL and span[0] != self.lines[column].first:
            return False
        return all(one.is_prefixed for one in self._followers if one.column == column)

    def _merged(self, closing: Closing, box: Box) -> list[Box]:
        """A box, or where it matters how far it goes, those that it has become part of."""
        if all(one.differs or one.column not in box for one in self._followers):
            return [box]
        return list(closing.closed.overlapping(box))

    def _read(self, one: Follower, span: Span | None) -> list[Place]:
        """The places at which the values of a follower are to be known."""
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
        """The places of a span where they are few: single values that touch are told as a range."""
        if line.is_point(span):
            return [span[0]]
        is_few = not line.is_of_bytes and span[1] - span[0] <= FEW
        return [*range(span[0], span[1])] if is_few else []

    def _told(self, box: Box, known: Mapping[Follower, Mapping[Place, Place]]) -> Iterator[Box]:
        """A box of the input as boxes of the output."""
        choices: list[list[Box]] = []
        for column, span in box.items():
            told: list[Box] = [{name: span} for name in self._plain.get(column, ())]
            for one in self._followers:
                if one.column == column:
                    told += [{one.name: own} for own in self._spans(one, span, known[one])]
            choices.append(told)
        for chosen in itertools.product(*choices):
            yield {name: span for one in chosen for name, span in one.items()}

    def _spans(self, one: Follower, span: Span | None, known: Mapping[Place, Place]) -> list[Span | None]:
        """What a follower has of values in a span alone: NULL, a span, or nothing that is known."""
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
