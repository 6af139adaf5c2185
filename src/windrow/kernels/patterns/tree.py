"""Row patterns as trees whose variables are numbers: *labels*.

The standard defines the order of attempts: the left part of a :class:`Choice` first, and in a greedy
:class:`Repeat` one more iteration first. An iteration without a row is the last, unless more are required.
PERMUTE is the alternation of all its permutations in lexicographic order.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AnyOrder", "Choice", "Edge", "Label", "Repeat", "Sequence", "Tree",
    "has_one_way", "is_nullable", "longest", "permutations",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Label:
    """A row of a variable; `excluded` rows are matched and not output."""

    number: int
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other; without parts, the empty pattern."""

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
class AnyOrder:
    """PERMUTE of parts that match in at most one way: the continuation depends only on which were taken."""

    parts: tuple[Tree, ...]

    def written_out(self) -> Tree:
        """The alternation of all orders, with shared prefixes.

        >>> AnyOrder((Label(0), Label(1))).written_out() == Choice(
        ...     (Sequence((Label(0), Label(1))), Sequence((Label(1), Label(0))))
        ... )
        True
        """
        return permutations(self.parts)


@dataclass(frozen=True, slots=True)
class Edge:
    """No row: true at the partition's start, or at its end."""

    is_start: bool


Tree = Label | Sequence | Choice | Repeat | AnyOrder | Edge


def permutations(parts: tuple[Tree, ...]) -> Tree:
    """The alternation of all permutations, in lexicographic order.

    Permutations share a prefix only if that matches in at most one way. In ``X P | X Q``, all ways through X
    are tried with P before any is tried with Q; in ``X (P | Q)``, each is tried with both before the next.
    """
    return _alternation(_permutations((), parts))


def _permutations(before: tuple[Tree, ...], rest: tuple[Tree, ...]) -> list[Tree]:
    """The permutations of `rest` behind `before`, as parts of an alternation."""
    if len(rest) <= 1:
        return [_sequence(before + rest)]
    if all(map(has_one_way, before)):
        orders = [
            _alternation(_permutations((part,), rest[:at] + rest[at + 1 :])) for at, part in enumerate(rest)
        ]
        return [_sequence((*before, _alternation(orders)))] if before else orders
    return [
        order
        for at, part in enumerate(rest)
        for order in _permutations((*before, part), rest[:at] + rest[at + 1 :])
    ]


def _sequence(parts: tuple[Tree, ...]) -> Tree:
    return parts[0] if len(parts) == 1 else Sequence(parts)


def _alternation(parts: list[Tree]) -> Tree:
    return parts[0] if len(parts) == 1 else Choice(tuple(parts))


def is_nullable(tree: Tree) -> bool:
    """Whether the pattern can match no row at all.

    >>> is_nullable(Repeat(Label(0), 0, 1)), is_nullable(Repeat(Label(0), 1, None))
    (True, False)
    """
    match tree:
        case Label():
            return False
        case Sequence(parts=parts) | AnyOrder(parts=parts):
            return all(map(is_nullable, parts))
        case Choice(parts=parts):
            return any(map(is_nullable, parts))
        case Repeat(part=part, low=low):
            return low == 0 or is_nullable(part)
        case Edge():
            return True


def has_one_way(tree: Tree) -> bool:
    """Whether the pattern can match from a row in at most one way, without a choice.

    >>> has_one_way(Sequence((Label(0), Repeat(Label(1), 2, 2)))), has_one_way(Repeat(Label(0), 1, 2))
    (True, False)
    """
    match tree:
        case Label() | Edge():
            return True
        case Sequence(parts=parts):
            return all(map(has_one_way, parts))
        case Choice(parts=parts) | AnyOrder(parts=parts):
            return len(parts) == 1 and has_one_way(parts[0])
        case Repeat(part=part, low=low, high=high):
            return low == high and has_one_way(part)


def longest(tree: Tree) -> int | None:
    """The most rows that a match can have; None if there is no limit.

    >>> longest(Sequence((Label(0), Repeat(Label(1), 0, 3)))), longest(Repeat(Label(0), 0, None))
    (4, None)
    """
    match tree:
        case Label():
            return 1
        case Edge():
            return 0
        case Sequence(parts=parts) | AnyOrder(parts=parts):
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
