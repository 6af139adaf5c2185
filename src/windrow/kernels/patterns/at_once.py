"""Finds the matches of simple patterns at all rows at once, without a machine.

A pattern is simple if its conditions read only rows and their neighbours, and it repeats only single
variables without bound. For each part of such a pattern and its continuation, one array has the rows at which
both match. Another has where the preferred match of the part ends: after the largest (greedy) or the smallest
(reluctant) number of rows in the variable's run after which the continuation matches.

Rows are laid out with an empty place after each partition, at which no variable matches. A match that reaches
the partition's end ends before that place.

If more rows may arrive, a third array has the rows at which the part and its continuation are *open*: an
attempt that is preferred to the match, or any attempt if there is none, has taken all rows up to the limit
and may continue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from windrow.kernels.compiling.chains import walk
from windrow.kernels.patterns.tree import AnyOrder, Choice, Edge, Label, Repeat, Sequence, Tree, is_nullable

__all__ = ["FoundMatches", "is_simple", "matches_at_once"]

_MOST_RUNS = 40
_MOST_PERMUTED = 4
"""The limit of parts in a PERMUTE: more parts have too many runs."""
Array = np.ndarray
Follow = Callable[[Array, Array], Array]
Solved = tuple[Array, Array | None, Follow]
"""Where a part matches, where it is open (None if all rows are there), and how to follow it."""


@dataclass(frozen=True, slots=True)
class _Run:
    """From `low` to `high` rows with a label."""

    label: int
    low: int
    high: int | None
    greedy: bool
    excluded: bool


Part = _Run | Edge | tuple["Part", ...] | list["Part"]
"""A run, an edge, a sequence of parts, or a choice of parts, the first that leads to a match."""


@dataclass(frozen=True, slots=True)
class FoundMatches:
    """The matches: first rows and lengths; the labels of all their rows, and which of these are excluded.

    `undecided_from` is, for each partition, the first row from which a match may begin that is not known yet.
    """

    start: Array
    length: Array
    labels: Array
    excluded: Array
    undecided_from: Array


def is_simple(tree: Tree) -> bool:
    """Whether the pattern is simple, if its conditions read no register.

    >>> is_simple(Sequence((Label(0), Repeat(Label(1), 1, None))))
    True
    >>> is_simple(Repeat(Sequence((Label(0), Label(1))), 1, None))
    False
    """
    part = _part(tree)
    return part is not None and _runs(part) <= _MOST_RUNS


def _part(tree: Tree) -> Part | None:
    """The pattern as runs; None if it is not simple."""
    match tree:
        case Label(number=number, excluded=excluded):
            return _Run(number, 1, 1, True, excluded)
        case Edge():
            return tree
        case Sequence(parts=parts) | Choice(parts=parts):
            found = [_part(part) for part in parts]
            known = [part for part in found if part is not None]
            if len(known) < len(found):
                return None
            return tuple(known) if isinstance(tree, Sequence) else known
        case AnyOrder(parts=parts):
            return _part(tree.written_out()) if len(parts) <= _MOST_PERMUTED else None
        case Repeat():
            return _repeated(tree)


def _repeated(tree: Repeat) -> Part | None:
    part, low, high, greedy = tree.part, tree.low, tree.high, tree.greedy
    if isinstance(part, Label):
        return _Run(part.number, low, high, greedy, part.excluded)
    if isinstance(part, Repeat) and isinstance(part.part, Label):
        endless = (low, part.low) in ((0, 0), (0, 1), (1, 0), (1, 1)) and high is None and part.high is None
        if endless and greedy == part.greedy:  # (a+)+ is a+
            return _Run(part.part.number, low * part.low, None, greedy, part.part.excluded)
    once = _part(part)
    if once is None or is_nullable(part) or high is None or high > _MOST_RUNS:
        return None
    rest: Part = ()
    for _ in range(high - low):
        rest = [(once, rest), ()] if greedy else [(), (once, rest)]
    return (*(once for _ in range(low)), rest)


def _runs(part: Part) -> int:
    match part:
        case _Run():
            return 1
        case Edge():
            return 0
        case _:
            return sum(map(_runs, part))


def matches_at_once(
    tree: Tree, satisfied: Array, bounds: Array, skip: str, begin: Array, limit: Array, complete: Array
) -> FoundMatches:
    """The matches of all partitions.

    Parameters
    ----------
    tree
        A simple pattern.
    satisfied
        bool, (labels, rows): where the conditions of a label are true.
    bounds
        int64, (partitions + 1,): partition p is rows ``bounds[p] : bounds[p + 1]``.
    skip
        ``past last`` or ``next``.
    begin, limit
        int64, (partitions,): the search is over the rows ``begin[p] : limit[p]``; conditions may read rows
        beside them.
    complete
        bool, (partitions,): whether a partition receives no more rows.
    """
    part = _part(tree)
    assert part is not None
    places = _Places(satisfied, bounds, limit, complete)
    every = np.ones(places.count, bool)
    matches, is_open, follow = places.solved(part, every, None if complete.all() else ~every)
    may_begin = places.searched(begin)
    start = np.flatnonzero((matches if is_open is None else matches | is_open) & may_begin)
    end = follow(start, matches[start])
    undecided_from = np.array(limit, np.int64)
    counts = places.counts
    if skip == "past last" or is_open is not None:
        following = np.maximum(end, start + 1) if skip == "past last" else start + 1
        if is_open is not None:  # later rows are unknown
            following = np.where(is_open[start], places.end[start] + 1, following)
        chosen = walk(np.searchsorted(start, following))
        if is_open is not None:
            waits = is_open[start[chosen]]
            at = start[chosen[waits]]
            undecided_from[np.searchsorted(bounds, places.row[at], side="right") - 1] = places.row[at]
            chosen = chosen[~waits]
        start, end = start[chosen], end[chosen]
        counts = [count[chosen] for count in counts]
    repeats = np.stack(counts, axis=1).ravel() if counts else np.zeros(0, np.int64)
    labels = np.repeat(np.tile(np.array(places.labels, np.int64), len(start)), repeats)
    excluded = np.repeat(np.tile(np.array(places.excluded, bool), len(start)), repeats)
    return FoundMatches(places.row[start], end - start, labels, excluded, undecided_from)


class _Places:
    """The rows, with a place after each partition.

    For the solution that is followed, `counts` has the number of rows of each of its runs, in the order of
    the pattern; `labels` and `excluded` are those of the runs. For each place, `end` is that of its
    partition, and `limit` the place before which rows may be taken.
    """

    def __init__(self, satisfied: Array, bounds: Array, limit: Array, complete: Array) -> None:
        rows, partitions = satisfied.shape[1], len(bounds) - 1
        self.count = rows + partitions
        ends = bounds[1:] + np.arange(partitions)
        self.is_end = np.zeros(self.count, bool)
        self.is_end[ends] = True
        sizes = np.diff(bounds) + 1
        self.end = np.repeat(ends, sizes)
        self.limit = np.repeat(limit + np.arange(partitions), sizes)
        self.is_complete = np.repeat(complete, sizes)
        self.is_first = np.zeros(self.count, bool)
        self.is_first[bounds[:-1] + np.arange(partitions)] = True
        self.row = np.arange(self.count) - np.cumsum(self.is_end) + self.is_end
        self.here = np.arange(self.count)
        self.satisfied = np.zeros((satisfied.shape[0], self.count), bool)
        self.satisfied[:, ~self.is_end] = satisfied
        self.satisfied &= self.here < self.limit
        self.run_ends: dict[int, Array] = {}
        self.counts: list[Array] = []
        self.labels: list[int] = []
        self.excluded: list[bool] = []

    def run_end(self, label: int) -> Array:
        """For each place, the first place from there on at which the label does not match."""
        if label not in self.run_ends:
            stops = np.where(self.satisfied[label], self.count, self.here)
            self.run_ends[label] = np.minimum.accumulate(stops[::-1])[::-1]
        return self.run_ends[label]

    def searched(self, begin: Array) -> Array:
        """The places of the rows from these on in each partition, up to the limit."""
        first = np.repeat(begin + np.arange(len(begin)), np.diff(np.flatnonzero(self.is_end), prepend=-1))
        found: Array = (self.here >= first) & (self.here < self.limit)
        return found

    def solved(self, part: Part, rest: Array, rest_open: Array | None) -> Solved:
        """Where a part and then the rest match, and the places at which the preferred match of the part ends.

        The latter is a function from places to those among them where they match with this part chosen.
        """
        match part:
            case _Run():
                return self.run(part, rest, rest_open)
            case Edge(is_start=is_start):
                return self.edge(rest, rest_open, is_start=is_start)
            case tuple():
                return self.sequence(part, rest, rest_open)
            case _:
                return self.choice(part, rest, rest_open)

    def edge(self, rest: Array, rest_open: Array | None, *, is_start: bool) -> Solved:
        """The start of the partition, or its end, which is unknown while rows may arrive."""
        if is_start:
            is_open = None if rest_open is None else rest_open & self.is_first
            return rest & self.is_first, is_open, lambda at, _: at
        matches = rest & self.is_end & self.is_complete
        return matches, None if rest_open is None else self.is_end & ~self.is_complete, lambda at, _: at

    def sequence(self, parts: tuple[Part, ...], rest: Array, rest_open: Array | None) -> Solved:
        """One part after the other."""
        follows: list[Follow] = []
        for part in reversed(parts):
            rest, rest_open, follow = self.solved(part, rest, rest_open)
            follows.append(follow)

        def through(at: Array, active: Array) -> Array:
            for follow in reversed(follows):
                at = follow(at, active)
            return at

        return rest, rest_open, through

    def choice(self, parts: list[Part], rest: Array, rest_open: Array | None) -> Solved:
        """The first of the parts that leads to a match."""
        solutions = [self.solved(part, rest, rest_open) for part in parts]

        def through(at: Array, active: Array) -> Array:
            end = at
            for matches, _, follow in solutions:
                mine = active & matches[at]
                end = np.where(mine, follow(at, mine), end)
                active = active & ~mine
            return end

        is_decided, is_open = (
            np.zeros(self.count, bool),
            None if rest_open is None else np.zeros(self.count, bool),
        )
        for matches, part_open, _ in solutions:
            if is_open is not None and part_open is not None:
                is_open |= part_open & ~is_decided
            is_decided |= matches
        return is_decided, is_open, through

    def run(self, part: _Run, rest: Array, rest_open: Array | None) -> Solved:
        """A number of rows of one label."""
        end = self.run_end(part.label)
        if part.high is not None:
            end = np.minimum(end, self.here + part.high)
        nearest = self.last_before if part.greedy else self.first_after
        chosen, matches = nearest(rest, end, part.low)
        is_open = None
        if rest_open is not None:
            place, found = nearest(rest | rest_open, end, part.low)
            is_open = found & rest_open[np.where(found, place, 0)]
            length = self.limit - self.here
            goes_on = (self.run_end(part.label) == self.limit) & (length >= 0)
            if part.high is not None:
                goes_on &= length < part.high
            is_open |= goes_on if part.greedy else goes_on & ~found

        def through(at: Array, active: Array) -> Array:
            to = np.where(active, chosen[at], at)
            self.counts.append(to - at)
            self.labels.append(part.label)
            self.excluded.append(part.excluded)
            return to

        return matches, is_open, through

    def last_before(self, rest: Array, end: Array, low: int) -> tuple[Array, Array]:
        """The last place up to `end`, at least `low` rows on, at which the rest matches; and whether there is
        one.
        """
        last = np.maximum.accumulate(np.where(rest, self.here, -1))
        chosen = last[np.minimum(end, self.count - 1)]
        return chosen, chosen >= self.here + low

    def first_after(self, rest: Array, end: Array, low: int) -> tuple[Array, Array]:
        """The first such place."""
        least = self.here + low
        following = np.where(rest, self.here, self.count)
        following = np.minimum.accumulate(following[::-1])[::-1]
        chosen = following[np.minimum(least, self.count - 1)]
        return chosen, (chosen <= end) & (least <= end)
