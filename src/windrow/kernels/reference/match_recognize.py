"""Row pattern recognition by definition: all ways to match are tried in order of preference, row by row.

The executable semantics of MATCH_RECOGNIZE (SQL:2016, row pattern recognition in FROM), of patterns in
windows of OVER, and of CQL's ALL MATCHES and DURATION. It takes exponential time where patterns do: it is for
comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.errors import ExecutionError
from windrow.kernels.patterns import tree as nodes
from windrow.kernels.patterns.tree import Tree
from windrow.kernels.reference.window_by import OrderKey, partitions

__all__ = ["LABEL", "NUMBER", "Area", "Clause", "Frame", "MatchView", "OutputRow", "match_recognize"]

LABEL, NUMBER = "__label", "__number"
"""The names of CLASSIFIER() and MATCH_NUMBER() in the argument of a navigation."""

Row = Mapping[str, Any]
MappedRows = tuple[tuple[int, int], ...]
"""The rows of a match with their labels, in order."""


Area = tuple[int, int]
"""The rows that a match may take and read: the first one, and the one after the last."""


@dataclass(frozen=True)
class MatchView:
    """The rows of a partition, and those that a match of this number has taken so far, or in `whole`.

    It reads only rows in `area`; None means all.
    """

    rows: Sequence[Row]
    mapped: MappedRows
    whole: MappedRows
    number: int = 0
    area: Area | None = None

    def of(self, members: frozenset[int] | None) -> MappedRows:
        """The taken rows with these labels."""
        return tuple((row, label) for row, label in self.mapped if members is None or label in members)

    def place(self, members: frozenset[int] | None, from_first: bool, offset: int, shift: int) -> int | None:
        """The row FIRST or LAST of the members but `offset`, `shift` rows on; it may be out of range."""
        found = [row for row, _ in self.of(members)]
        if offset >= len(found):
            return None
        return (found[offset] if from_first else found[-1 - offset]) + shift

    def label(self, at: int, labels: Sequence[str]) -> str | None:
        """The variable of a row, if the match has it."""
        return next((labels[label] for row, label in self.whole if row == at), None)

    def navigate(
        self,
        members: frozenset[int] | None,
        from_first: bool,
        offset: int,
        shift: int,
        argument: Callable[[Row], Any] | None,
        labels: Sequence[str],
    ) -> Any:
        """The value at a row, or without an argument its variable; NULL if there is no row.

        An argument reads a row's variable and the match number as fields with these names: `LABEL`, `NUMBER`.
        """
        at = self.place(members, from_first, offset, shift)
        if at is None:
            return None
        if argument is None:
            return self.label(at, labels)
        first, stop = self.area or (0, len(self.rows))
        if not first <= at < stop:
            return None
        return argument({**self.rows[at], LABEL: self.label(at, labels), NUMBER: self.number})


@dataclass(frozen=True)
class Frame:
    """A match for each row that is not skipped, over it and `following` rows after it; None means all.

    With `seek` it may begin after the row.
    """

    following: int | None
    seek: bool


@dataclass(frozen=True)
class Clause:
    """The keys, the pattern, and the conditions of its labels over the taken rows, including the current one.

    `every` is ALL MATCHES. `in_time` is DURATION: whether the second row is within the time of a match that
    begins at the first. With a `frame` the clause is a window of OVER.
    """

    partition_by: tuple[Callable[[Row], Any], ...]
    order_by: tuple[OrderKey, ...]
    tree: Tree
    conditions: Mapping[int, Callable[[MatchView], Any]]
    within: Callable[[MatchView], Any] | None
    skip: str
    targets: frozenset[int]
    all_rows: bool
    shows_empty: bool
    with_unmatched: bool
    every: bool = False
    in_time: Callable[[Row, Row], Any] | None = None
    frame: Frame | None = None


@dataclass(frozen=True)
class OutputRow:
    """A row of the result: `row` with its columns; for a match, its number, the taken rows, and how many up
    to this one.

    `state` is 0 for a row of a match, 1 for an empty match, 2 for an unmatched row.
    """

    row: Row
    state: int
    number: int | None
    rows: Sequence[Row]
    mapped: MappedRows
    reached: int
    area: Area | None = None

    def view(self, *, final: bool) -> MatchView:
        """The rows that a measure sees."""
        return MatchView(
            self.rows, self.mapped if final else self.mapped[: self.reached], self.mapped, area=self.area
        )


@dataclass(frozen=True)
class _Sequence:
    """A partition, the number of the next match, and the rows that it may take and read."""

    rows: Sequence[Row]
    number: int
    area: Area | None = None

    @property
    def stop(self) -> int:
        """The first row that a match cannot take."""
        return len(self.rows) if self.area is None else self.area[1]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class _Match:
    start: int
    mapped: MappedRows
    excluded: frozenset[int]
    origin: int
    area: Area | None = None

    @property
    def stop(self) -> int:
        """The row after the last one."""
        return self.start + len(self.mapped)


def match_recognize(rows: Sequence[Row], clause: Clause) -> list[OutputRow]:
    """The rows that the clause returns, partition by partition.

    Raises
    ------
    ExecutionError
        ``SKIP_TARGET_MISSING``, ``SKIP_TO_FIRST_ROW``.
    """
    output: list[OutputRow] = []
    for partition in partitions(rows, clause.partition_by, clause.order_by):
        if clause.every:
            # numbered as they are completed; of those that end at one row, the one that begins first, and of
            # those that begin at one row the preferred one
            every = (match for start in range(len(partition)) for match in _from(start, partition, 0, clause))
            matches = sorted(dict.fromkeys(every), key=lambda match: match.stop)
        else:
            matches = list(_matches(partition, clause))
        output += _output(partition, matches, clause)
    return output


def _matches(rows: Sequence[Row], clause: Clause) -> Iterator[_Match]:
    at = 0
    number = 1
    while at < len(rows):
        match = next(_searched(at, rows, number, clause), None)
        if match is None:
            at += 1
            continue
        yield match
        number += 1
        at = _resumed(match, clause)


def _searched(at: int, rows: Sequence[Row], number: int, clause: Clause) -> Iterator[_Match]:
    """The matches searched from a row on, the preferred one first."""
    if clause.frame is None:
        return _from(at, rows, number, clause)
    following = clause.frame.following
    stop = len(rows) if following is None else min(len(rows), at + following + 1)
    starts = range(at, stop if clause.frame.seek else at + 1)
    return (match for start in starts for match in _from(start, rows, number, clause, at, (at, stop)))


def _from(
    start: int,
    rows: Sequence[Row],
    number: int,
    clause: Clause,
    origin: int | None = None,
    area: Area | None = None,
) -> Iterator[_Match]:
    """The matches that begin at a row, the preferred one first."""
    sequence = _Sequence(rows, number, area)
    origin = start if origin is None else origin
    if clause.in_time is None:
        for _, mapped, excluded in _words(clause.tree, start, (), frozenset(), sequence, clause):
            yield _Match(start, mapped, excluded, origin, area)
        return
    stop = start
    while stop < len(rows) and clause.in_time(rows[start], rows[stop]) is True:
        stop += 1
    for at, mapped, excluded in _words(clause.tree, start, (), frozenset(), sequence, clause):
        if at == stop > start:
            yield _Match(start, mapped, excluded, origin, area)


def _resumed(match: _Match, clause: Clause) -> int:
    """The row at which the search resumes."""
    start, mapped = match.start, match.mapped
    if clause.skip == "next":
        return match.origin + 1
    if clause.skip == "past last":
        return start + max(len(mapped), 1)
    targets = [row for row, label in mapped if label in clause.targets]
    if not targets:
        raise ExecutionError(
            "AFTER MATCH SKIP goes to a variable that has no row in the match",
            condition="SKIP_TARGET_MISSING",
        )
    row = targets[0] if clause.skip == "first" else targets[-1]
    if row == start:
        raise ExecutionError(
            "AFTER MATCH SKIP goes to the first row of the match", condition="SKIP_TO_FIRST_ROW"
        )
    return row


Word = tuple[int, MappedRows, frozenset[int]]


def _words(
    tree: Tree, at: int, mapped: MappedRows, excluded: frozenset[int], rows: _Sequence, clause: Clause
) -> Iterator[Word]:
    """Every way to match from row `at` on, the preferred one first."""
    match tree:
        case nodes.Label(number=label, excluded=is_excluded):
            if at < rows.stop and _is_satisfied(label, (*mapped, (at, label)), rows, clause):
                yield at + 1, (*mapped, (at, label)), excluded | ({at} if is_excluded else set())
        case nodes.Sequence(parts=()):
            yield at, mapped, excluded
        case nodes.Sequence(parts=(first, *rest)):
            for word in _words(first, at, mapped, excluded, rows, clause):
                yield from _words(nodes.Sequence(tuple(rest)), *word, rows, clause)
        case nodes.Choice(parts=parts):
            for part in parts:
                yield from _words(part, at, mapped, excluded, rows, clause)
        case nodes.AnyOrder():
            yield from _words(tree.written_out(), at, mapped, excluded, rows, clause)
        case nodes.Repeat():
            yield from _repeated(tree, 0, (at, mapped, excluded), rows, clause)
        case nodes.Edge(is_start=is_start):
            if at == (0 if is_start else len(rows)):
                yield at, mapped, excluded


def _repeated(tree: nodes.Repeat, done: int, word: Word, rows: _Sequence, clause: Clause) -> Iterator[Word]:
    if done >= tree.low and not tree.greedy:
        yield word
    if tree.high is None or done < tree.high:
        for after in _words(tree.part, *word, rows, clause):
            # where no further one need be, an iteration without a row is the last
            if after[0] == word[0] and done + 1 >= tree.low:
                yield after
            else:
                yield from _repeated(tree, done + 1, after, rows, clause)
    if done >= tree.low and tree.greedy:
        yield word


def _is_satisfied(label: int, mapped: MappedRows, rows: _Sequence, clause: Clause) -> bool:
    view = MatchView(rows.rows, mapped, mapped, rows.number, rows.area)
    condition = clause.conditions.get(label)
    if condition is not None and condition(view) is not True:
        return False
    return clause.within is None or clause.within(view) is True


def _output(rows: Sequence[Row], matches: list[_Match], clause: Clause) -> Iterator[OutputRow]:
    if clause.frame is not None:
        by_row = {match.origin: match for match in matches}
        for at, output in enumerate(rows):
            own = by_row.get(at)
            if own is None:
                yield OutputRow(output, 2, None, rows, (), 0)
            else:
                yield OutputRow(
                    output, int(not own.mapped), None, rows, own.mapped, len(own.mapped), own.area
                )
        return
    covered: set[int] = set()
    for number, match in enumerate(matches, 1):
        covered |= {row for row, _ in match.mapped} or {match.start}
        count = len(match.mapped)
        if not match.mapped:
            if clause.shows_empty:
                yield OutputRow(rows[match.start], 1, number, rows, (), 0)
        elif clause.all_rows:
            for reached, (row, _) in enumerate(match.mapped, 1):
                if row not in match.excluded:
                    yield OutputRow(rows[row], 0, number, rows, match.mapped, reached)
        else:
            yield OutputRow(rows[match.start], 0, number, rows, match.mapped, count)
    if clause.with_unmatched:
        for row in sorted(set(range(len(rows))) - covered):
            yield OutputRow(rows[row], 2, None, rows, (), 0)
