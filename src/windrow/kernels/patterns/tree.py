"""Row patterns as trees whose variables are numbers: *labels*.

PERMUTE is an alternation here, of all its permutations. What is tried first is the standard's: the part
further left of a :class:`Choice`, and of a greedy :class:`Repeat` one more iteration. An iteration without a
row is the last, unless more must follow.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Choice", "Edge", "Label", "Repeat", "Sequence", "Tree", "has_one_way", "is_nullable", "longest"]


@dataclass(frozen=True, slots=True)
class Label:
    """A row of a variable; `excluded` rows are matched and not put out."""

    number: int
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other; with none, the empty pattern."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the parts."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """From `low` to `high` iterations, None for any number."""

    part: Tree
    low: int
    high: int | None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Edge:
    """No row: true at the partition's start, or at its end."""

    is_start: bool


Tree = Label | Sequence | Choice | Repeat | Edge


def is_nullable(tree: Tree) -> bool:
    """Whether the pattern can match no row at all.

    >>> is_nullable(Repeat(Label(0), 0, 1)), is_nullable(Repeat(Label(0), 1, None))
    (True, False)
    """
    match tree:
        case Label():
            return False
        case Sequence(parts=parts):
            return all(map(is_nullable, parts))
        case Choice(parts=parts):
            return any(map(is_nullable, parts))
        case Repeat(part=part, low=low):
            return low == 0 or is_nullable(part)
        case Edge():
            return True


def has_one_way(tree: Tree) -> bool:
    """Whether the pattern can match from a row in one way at most: no choice is made on the way.

    >>> has_one_way(Sequence((Label(0), Repeat(Label(1), 2, 2)))), has_one_way(Repeat(Label(0), 1, 2))
    (True, False)
    """
    match tree:
        case Label() | Edge():
            return True
        case Sequence(parts=parts):
            return all(map(has_one_way, parts))
        case Choice(parts=parts):
            return len(parts) == 1 and has_one_way(parts[0])
        case Repeat(part=part, low=low, high=high):
            return low == high and has_one_way(part)


def longest(tree: Tree) -> int | None:
    """The most rows that a match can have; None where there is no limit.

    >>> longest(Sequence((Label(0), Repeat(Label(1), 0, 3)))), longest(Repeat(Label(0), 0, None))
    (4, None)
    """
    match tree:
        case Label():
            return 1
        case Edge():
            return 0
        case Sequence(parts=parts):
            lengths = [longest(part) for part in parts]
            return None if None in lengths else sum(length or 0 for length in lengths)
        case Choice(parts=parts):
            lengths = [longest(part) for part in parts]
            return None if None in lengths else max((length or 0 for length in lengths), default=0)
        case Repeat(part=part, high=high):
            length = longest(part)
            if length == 0:
                return 0
            return None if length is None or high is None else length * high
