"""Row pattern recognition by the book: all ways to match are tried in the order of preference, row by row.

The executable semantics of MATCH_RECOGNIZE (SQL:2016, row pattern recognition in FROM). It takes
exponential time where patterns do; it is the judge, not the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.errors import ExecutionError
from windrow.kernels.patterns import tree as nodes
from windrow.kernels.patterns.tree import Tree
from windrow.kernels.reference.window_by import OrderKey, partitions

__all__ = ["Clause", "Given", "Seen", "match_recognize"]

Row = Mapping[str, Any]
Taken = tuple[tuple[int, int], ...]
"""The rows of a match with their labels, in order."""


@dataclass(frozen=True)
class Seen:
    """The rows of a partition, and those that a match of this number has taken so far, or in `whole`."""

    rows: Sequence[Row]
    taken: Taken
    whole: Taken
    number: int = 0

    def of(self, members: frozenset[int] | None) -> Taken:
        """What was taken of these labels."""
        return tuple((row, label) for row, label in self.taken if members is None or label in members)

    def navigate(
        self,
        members: frozenset[int] | None,
        from_first: bool,
        offset: int,
        shift: int,
        argument: Callable[[Row], Any] | None,
        labels: Sequence[str],
    ) -> Any:
        """The value at FIRST or LAST of the members but `offset`, `shift` rows on; NULL where there is no
        row.

        Without an argument: the variable of that row, if the match has it.
        """
        found = [row for row, _ in self.of(members)]
        if offset >= len(found):
            return None
        at = (found[offset] if from_first else found[-1 - offset]) + shift
        if argument is None:
            return next((labels[label] for row, label in self.whole if row == at), None)
        return argument(self.rows[at]) if 0 <= at < len(self.rows) else None


@dataclass(frozen=True)
class Clause:
    """The keys, the pattern, and the conditions of its labels over what was taken, the row included."""

    partition_by: tuple[Callable[[Row], Any], ...]
    order_by: tuple[OrderKey, ...]
    tree: Tree
    conditions: Mapping[int, Callable[[Seen], Any]]
    within: Callable[[Seen], Any] | None
    skip: str
    targets: frozenset[int]
    all_rows: bool
    empty_shown: bool
    unmatched_shown: bool


@dataclass(frozen=True)
class Given:
    """A row of the result: `row` with its columns; of a match the number, what was taken and how far that
    row is.

    `state` is 0 for a row of a match, 1 for an empty match, 2 for an unmatched row.
    """

    row: Row
    state: int
    number: int | None
    rows: Sequence[Row]
    taken: Taken
    reached: int

    def seen(self, *, final: bool) -> Seen:
        """What a measure sees."""
        return Seen(self.rows, self.taken if final else self.taken[: self.reached], self.taken)


@dataclass(frozen=True)
class _Sequence:
    """A partition, and the number of the match that is looked for."""

    rows: Sequence[Row]
    number: int

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class _Match:
    start: int
    taken: Taken
    excluded: frozenset[int]


def match_recognize(rows: Sequence[Row], clause: Clause) -> list[Given]:
    """The rows that the clause gives, partition by partition.

    Raises
    ------
    ExecutionError
        ``SKIP_TARGET_MISSING``, ``SKIP_TO_FIRST_ROW``.
    """
    given: list[Given] = []
    for partition in partitions(rows, clause.partition_by, clause.order_by):
        matches = list(_matches(partition, clause))
        given += _given(partition, matches, clause)
    return given


def _matches(rows: Sequence[Row], clause: Clause) -> Iterator[_Match]:
    at = 0
    number = 1
    while at < len(rows):
        found = next(_words(clause.tree, at, (), frozenset(), _Sequence(rows, number), clause), None)
        if found is None:
            at += 1
            continue
        _, taken, excluded = found
        yield _Match(at, taken, excluded)
        number += 1
        at = _resumed(at, taken, clause)


def _resumed(start: int, taken: Taken, clause: Clause) -> int:
    """The row at which the next match is looked for."""
    if clause.skip == "next" or (clause.skip == "past last" and not taken):
        return start + 1
    if clause.skip == "past last":
        return taken[-1][0] + 1
    targets = [row for row, label in taken if label in clause.targets]
    if not targets:
        raise ExecutionError("skip to a variable that the match lacks", condition="SKIP_TARGET_MISSING")
    row = targets[0] if clause.skip == "first" else targets[-1]
    if row == start:
        raise ExecutionError("skip to the first row of the match", condition="SKIP_TO_FIRST_ROW")
    return row


Word = tuple[int, Taken, frozenset[int]]


def _words(
    tree: Tree, at: int, taken: Taken, excluded: frozenset[int], rows: _Sequence, clause: Clause
) -> Iterator[Word]:
    """Every way to match from row `at` on, the preferred first."""
    match tree:
        case nodes.Label(number=label, excluded=is_excluded):
            if at < len(rows) and _holds(label, (*taken, (at, label)), rows, clause):
                yield at + 1, (*taken, (at, label)), excluded | ({at} if is_excluded else set())
        case nodes.Sequence(parts=()):
            yield at, taken, excluded
        case nodes.Sequence(parts=(first, *rest)):
            for word in _words(first, at, taken, excluded, rows, clause):
                yield from _words(nodes.Sequence(tuple(rest)), *word, rows, clause)
        case nodes.Choice(parts=parts):
            for part in parts:
                yield from _words(part, at, taken, excluded, rows, clause)
        case nodes.Repeat():
            yield from _repeated(tree, 0, (at, taken, excluded), rows, clause)
        case nodes.Edge(is_start=is_start):
            if at == (0 if is_start else len(rows)):
                yield at, taken, excluded


def _repeated(tree: nodes.Repeat, done: int, word: Word, rows: _Sequence, clause: Clause) -> Iterator[Word]:
    if done >= tree.low and not tree.greedy:
        yield word
    if tree.high is None or done < tree.high:
        for after in _words(tree.part, *word, rows, clause):
            # an iteration that need not be takes a row
            if done < tree.low or after[0] > word[0]:
                yield from _repeated(tree, done + 1, after, rows, clause)
    if done >= tree.low and tree.greedy:
        yield word


def _holds(label: int, taken: Taken, rows: _Sequence, clause: Clause) -> bool:
    seen = Seen(rows.rows, taken, taken, rows.number)
    condition = clause.conditions.get(label)
    if condition is not None and condition(seen) is not True:
        return False
    return clause.within is None or clause.within(seen) is True


def _given(rows: Sequence[Row], matches: list[_Match], clause: Clause) -> Iterator[Given]:
    covered: set[int] = set()
    for number, match in enumerate(matches, 1):
        covered |= {row for row, _ in match.taken} or {match.start}
        count = len(match.taken)
        if not match.taken:
            if clause.empty_shown:
                yield Given(rows[match.start], 1, number, rows, (), 0)
        elif clause.all_rows:
            for reached, (row, _) in enumerate(match.taken, 1):
                if row not in match.excluded:
                    yield Given(rows[row], 0, number, rows, match.taken, reached)
        else:
            yield Given(rows[match.start], 0, number, rows, match.taken, count)
    if clause.unmatched_shown:
        for row in sorted(set(range(len(rows))) - covered):
            yield Given(rows[row], 2, None, rows, (), 0)
