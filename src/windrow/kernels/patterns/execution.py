"""Finds the matches of sorted partitions: evaluates conditions into columns, then runs the machine.

A part of a condition that reads only the row and its neighbours is evaluated for all rows at once. If there
is no other part, simple patterns need no machine (:mod:`windrow.kernels.patterns.at_once`). The other parts
read registers. The machine evaluates them thread by thread, by a compiled function or, for a small number of
rows or parts without a compiled form, by :func:`windrow.kernels.pairs.evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError, Span, WindrowError
from windrow.kernels.pairs import PairRows, PairValues, satisfied
from windrow.kernels.patterns import machine
from windrow.kernels.patterns.at_once import is_simple, matches_at_once
from windrow.kernels.patterns.conditions import compiled_run
from windrow.kernels.patterns.limits import limits_of
from windrow.kernels.patterns.pattern_plan import (
    LABELS,
    NUMBERS,
    MatchPlan,
    PatternCondition,
    Register,
    register_side,
    requests_of,
)
from windrow.kernels.patterns.program import first_labels
from windrow.kernels.patterns.requests import Asking, EnoughError, search_of_unknown
from windrow.kernels.patterns.running_aggregates import RunningAggregates
from windrow.kernels.patterns.tree import Tree
from windrow.kernels.slices.predicate_analysis import shifts
from windrow.kernels.window_plan import Operation, PairExpression, sides_of

__all__ = [
    "Matches",
    "SoFar",
    "find_matches",
    "is_row_only",
    "parts_of",
    "requested",
    "searches_at_once",
]

_WORTH_COMPILING = 30_000  # rows
_PATIENCE = 50_000  # conditions evaluated in Python, which take a second or two
Array = np.ndarray


@dataclass(frozen=True)
class Matches:
    """The matches in order of partitions and first rows.

    Attributes
    ----------
    partition, start, length, origin
        int64, one a match. An empty match has length 0 and starts at the row before which it is. Over
        frames the origin is the row whose match it is.
    labels
        int32: the labels of the rows of all matches, one after the other.
    excluded
        bool: which of these rows are not output.
    low, high
        int64, one for each match: it may read the rows ``low : high``.
    undecided_from
        int64, one for each partition: the first row that is still needed if more rows may arrive; the matches
        before it are final.
    before
        int64, one for each partition: the number of its earlier matches.
    """

    partition: Array
    start: Array
    length: Array
    origin: Array
    labels: Array
    excluded: Array
    low: Array
    high: Array
    undecided_from: Array
    before: Array


@dataclass(frozen=True)
class SoFar:
    """The known facts about partitions that may still grow: an array with an entry for each partition, or for
    each row.

    Attributes
    ----------
    begin
        int64: the first row at which a match may begin. Those before it are seen by PREV.
    limit
        int64: the row before which everything that conditions read is known; NEXT can read it and later rows.
    alive
        bool, for each row: whether a match that begins there may include later rows.
    emitted
        int64: how many matches there were before.
    complete
        bool: whether no more rows arrive.
    since
        int64: for all matches (``plan.every`` without DURATION), only those completed by rows from this one
        on are wanted; None for `begin`.
    bound
        With DURATION, in the numbers of the key's column: no later row has a smaller first key; None if
        unknown.
    """

    begin: Array
    limit: Array
    alive: Array
    emitted: Array
    complete: Array
    since: Array | None = None
    bound: Any = None

    @staticmethod
    def whole(bounds: Array) -> SoFar:
        """The facts of whole partitions."""
        first, none = np.asarray(bounds[:-1], np.int64), np.zeros(len(bounds) - 1, np.int64)
        alive = np.ones(bounds[-1], bool)
        return SoFar(first, np.asarray(bounds[1:], np.int64), alive, none, np.ones(len(first), bool))

    def searched(self, bounds: Array, *, framed: bool) -> Array:
        """The rows that are searched; with frames, also those beyond the limit."""
        counts = np.diff(bounds)
        row = np.arange(bounds[-1])
        limit = bounds[1:] if framed else self.limit
        searched: Array = np.flatnonzero(
            (row >= np.repeat(self.begin, counts)) & (row < np.repeat(limit, counts))
        )
        return searched


def requested(
    plan: MatchPlan, table: pa.Table, bounds: Array, so_far: SoFar | None = None
) -> Iterator[pa.RecordBatch]:
    """The values for which Spark must evaluate conditions, with ``plan.result`` as schema.

    The arguments are those of :func:`find_matches`.
    """
    assert plan.answers is not None
    if plan.answers.of_all:
        plan = search_of_unknown(plan)
        if so_far is not None:  # later rows do not stop this search from trying the present ones
            so_far = replace(SoFar.whole(bounds), begin=so_far.begin)
    rows = _MatchRows(plan, table, np.asarray(bounds, np.int64))
    with suppress(EnoughError):
        _search(plan, rows, so_far)
    yield from rows.asking.batches()


def find_matches(plan: MatchPlan, table: pa.Table, bounds: Array, so_far: SoFar | None = None) -> Matches:
    """The matches of all partitions of a table.

    Parameters
    ----------
    plan
        The clause.
    table
        Rows sorted by partition, then by the clause's ORDER BY.
    bounds
        int64, (partitions + 1,): partition p is rows ``bounds[p] : bounds[p + 1]``.
    so_far
        The known facts if more rows may arrive; None for whole partitions.

    Raises
    ------
    ExecutionError
        ``SKIP_TARGET_MISSING``, ``SKIP_TO_FIRST_ROW``, and those of :func:`windrow.kernels.pairs.evaluate`.
    """
    rows = _MatchRows(plan, table, np.asarray(bounds, np.int64))
    found = _search(plan, rows, so_far)
    if found.status:
        _fail(plan, rows, found)
    return found.matches


@dataclass(frozen=True)
class _Found:
    """Matches, or the place and kind of an error: see `machine.run`."""

    matches: Matches
    status: int = 0
    place: int = -1
    registers: Array | None = None


def _search(plan: MatchPlan, rows: _MatchRows, so_far: SoFar | None) -> _Found:
    """The result of the search over sorted rows."""
    bounds, parts = rows.bounds, rows.parts
    row_only = _together([part for part in parts if is_row_only(part.expression)])
    others = [part for part in parts if not is_row_only(part.expression)]
    edge = _edges(plan, [part.expression for part in row_only])
    is_whole = so_far is None
    so_far = SoFar.whole(bounds) if so_far is None else so_far
    searched = None if is_whole else so_far.searched(bounds, framed=plan.frame is not None)
    matrix = _matrix(plan, row_only, rows, edge, searched)
    unlimited = plan.frame is None and plan.duration is None and not plan.every
    tree = plan.tree if unlimited else None
    if tree is not None and searches_at_once(tree, plan.conditions, plan.skip):
        return _Found(_at_once(plan, tree, matrix[0], bounds, so_far))
    dependent = np.zeros(len(plan.labels), bool)
    dependent[[part.label for part in others]] = True
    limits = limits_of(plan, rows, bounds, None if is_whole else so_far.complete, so_far.bound)
    arguments = (
        plan.program.op, plan.program.x, plan.program.y, bounds,
        so_far.begin, so_far.limit, so_far.alive, so_far.emitted, so_far.complete,
        matrix, _opening(plan, matrix), dependent, _updates(plan), np.int64(machine.SKIPS[plan.skip]),
        np.array([label in plan.targets for label in range(len(plan.labels))]),
        np.int64(_mode(plan)), limits, so_far.begin if so_far.since is None else so_far.since,
        np.array(edge, np.int64),
    )  # fmt: skip
    may_compile = not plan.running and plan.answers is None
    answer = _found(others, rows, arguments, may_compile=may_compile)
    found, labels, undecided_from, status, place, registers = answer
    partition, start, length, origin = (np.ascontiguousarray(found[:, at]) for at in range(4))
    low, high = bounds[partition], bounds[partition + 1]
    if plan.frame is not None:
        low, high = origin, limits[origin]
    excluded = labels < 0
    labels = np.where(excluded, -1 - labels, labels)
    matches = Matches(
        partition, start, length, origin, labels, excluded, low, high, undecided_from, so_far.emitted
    )
    return _Found(matches, int(status), int(place), registers)


def searches_at_once(tree: Tree, conditions: Sequence[PatternCondition], skip: str) -> bool:
    """Whether the matches in FROM are found at all rows at once."""
    alone = all(is_row_only(condition.expression) for condition in conditions)
    return alone and skip in ("past last", "next") and is_simple(tree)


def _at_once(plan: MatchPlan, tree: Tree, satisfied: Array, bounds: Array, so_far: SoFar) -> Matches:
    found = matches_at_once(tree, satisfied, bounds, plan.skip, so_far.begin, so_far.limit, so_far.complete)
    partition = np.searchsorted(bounds, found.start, side="right") - 1
    return Matches(
        partition, found.start, found.length, found.start, found.labels, found.excluded,
        bounds[partition], bounds[partition + 1], found.undecided_from, so_far.emitted,
    )  # fmt: skip


def _mode(plan: MatchPlan) -> int:
    alone = _anchored(plan)
    looks_back = any(shift < 0 for condition in plan.conditions for shift in shifts(condition.expression))
    return (
        machine.EVERY * plan.every
        | machine.FULL * (plan.duration is not None)
        | machine.ANCHORED * alone
        | machine.FRAMED * (plan.frame is not None)
        | machine.SHARED * (plan.frame is not None and plan.frame.seek and not looks_back)
    )


def _anchored(plan: MatchPlan) -> bool:
    """Whether each first row is searched from separately.

    If a register contains the first row, threads with different first rows never merge. So nothing is lost if
    those of a later one are only tried after the earlier one has no match.
    """
    if plan.duration is not None or plan.frame is not None:
        return plan.frame is None or not plan.frame.seek
    return not plan.every and Register(None, from_first=True) in plan.registers


def _edges(plan: MatchPlan, conditions: list[PairExpression]) -> tuple[int, int]:
    """How many rows before and after a row conditions read; within frames only, which may end there."""
    if plan.frame is None:
        return 0, 0
    found = [0, *(shift for condition in conditions for shift in shifts(condition))]
    return -min(found), max(found)


def _matrix(
    plan: MatchPlan,
    parts: list[PatternCondition],
    rows: _MatchRows,
    edge: tuple[int, int],
    searched: Array | None,
) -> Array:
    """Where conditions on a row and its neighbours are true: (variants, labels, rows), see `machine.run`."""
    before, after = edge
    matrix = np.ones(((before + 1) * (after + 1), len(plan.labels), rows.table.num_rows), bool)
    every = np.arange(rows.table.num_rows)
    at, places = (every, slice(None)) if searched is None else (searched, searched)
    first, stop = rows.first, rows.stop
    for variant, conditions in enumerate(matrix):
        there_before, there_after = divmod(variant, after + 1)
        if there_before < before:
            rows.first = np.maximum(first, every - there_before)
        if there_after < after:
            rows.stop = np.minimum(stop, every + there_after + 1)
        for part in parts:
            with _located(part, plan):
                conditions[part.label, places] &= satisfied(part.expression, rows, {"row": at})
        rows.first, rows.stop = first, stop
    return matrix


def _found(
    conditions: list[PatternCondition],
    rows: _MatchRows,
    arguments: tuple[Any, ...],
    *,
    may_compile: bool,
) -> Any:
    """The machine's result: interpreted while that is little work, compiled if possible."""
    run: Callable[..., Any] | None = None
    if may_compile:
        run = compiled_run(conditions, rows, arguments, worth=_WORTH_COMPILING)
    if run is None and may_compile and rows.table.num_rows < _WORTH_COMPILING:
        try:
            return _interpreted(_requested(conditions, rows, _PATIENCE), rows.running)(*arguments, ())
        except _LongWorkError:
            run = compiled_run(conditions, rows, arguments)
    if run is None:
        run = _interpreted(_requested(conditions, rows), rows.running)
    return run(*arguments, ())


class _LongWorkError(Exception):
    """Conditions have been evaluated so often that compiling them pays."""


def parts_of(condition: PatternCondition) -> list[PatternCondition]:
    """The operands of AND, as separate conditions."""
    match condition.expression:
        case Operation(operator="AND", operands=operands):
            return [
                part
                for operand in operands
                for part in parts_of(PatternCondition(condition.label, operand, condition.place))
            ]
        case _:
            return [condition]


def _together(parts: list[PatternCondition]) -> list[PatternCondition]:
    """One condition for the parts from the same place of the query: none is evaluated after a FALSE one."""
    found: dict[tuple[int, tuple[int, int] | None], list[PairExpression]] = {}
    for part in parts:
        found.setdefault((part.label, part.place), []).append(part.expression)
    return [
        PatternCondition(
            label, operands[0] if len(operands) == 1 else Operation("AND", tuple(operands)), place
        )
        for (label, place), operands in found.items()
    ]


def is_row_only(expression: PairExpression) -> bool:
    """Whether it reads no register and does not need Spark."""
    return sides_of(expression) <= {"row"} and not requests_of(expression)


class _MatchRows(PairRows):
    """The rows, with the labels as a separate column."""

    def __init__(self, plan: MatchPlan, table: pa.Table, bounds: Array) -> None:
        self.bounds = bounds
        self.parts = [part for condition in plan.conditions for part in parts_of(condition)]
        self.names = plan.labels
        self.labels = pa.chunked_array([pa.array(plan.labels, pa.string())])
        self.of_names = {
            name: pa.chunked_array(
                [chunk for one in constants for chunk in plan.constants.column(one).chunks]
            )
            for name, constants in plan.of_names
        }
        self.running = RunningAggregates(plan.running, table, dict(plan.by_label))
        self.is_framed = plan.frame is not None
        expressions = tuple(part.expression for part in self.parts)
        super().__init__(table, bounds, plan.constants, expressions, plan.ansi)
        self.asking = Asking(plan, table, self.of_register)
        self.requested = self.asking.answered

    def of_register(self, name: str) -> Callable[[int], Any] | None:
        """The values of non-row registers in a column; None for a column of rows."""
        if name == LABELS:
            return self.names.__getitem__
        if name == NUMBERS:
            return int
        return self.running.aggregates[name].value if name in self.running.names else None

    def within(self, begin: int, end: int) -> None:
        """Restrict reads to the rows of a frame, from `begin` on, `end` excluded."""
        if not self.is_framed:
            return
        self.first = np.broadcast_to(np.int64(begin), len(self.first))
        self.stop = np.broadcast_to(np.int64(end), len(self.stop))

    def source(self, name: str) -> pa.ChunkedArray:
        if name == LABELS:
            return self.labels
        if name in self.of_names:
            return self.of_names[name]
        if name == NUMBERS:
            return pa.chunked_array([pa.array(np.arange(self.table.num_rows + 2))])
        return super().source(name)

    def column(self, name: str, rank: int | None) -> PairValues:
        if name in self.running.names:
            return self.running.column(name)
        return super().column(name, rank)


def _opening(plan: MatchPlan, matrix: Array) -> Array:
    """The rows that may be the first of a match, according to their values; all if it may be empty."""
    labels = first_labels(plan.program)
    if labels is None:
        return np.ones(matrix.shape[2], bool)
    opening: Array = np.logical_or.reduce(matrix[:, sorted(labels)], axis=(0, 1))
    return opening


def _updates(plan: MatchPlan) -> Array:
    """How a row of each label changes each register."""
    codes = np.empty((len(plan.labels), len(plan.registers)), np.int64)
    for number, register in enumerate(plan.registers):
        for label in range(len(plan.labels)):
            is_member = register.members is None or label in register.members
            codes[label, number] = _code(plan.registers, number) if is_member else number
    return codes


def _code(registers: tuple[Register, ...], number: int) -> int:
    names, register = machine.CODES, registers[number]
    if register.kind in ("rows", "labelled rows", "count", "number"):
        return names[register.kind]
    if register.from_first:
        head = register.offset == 0
        if register.kind == "label":
            return names["label head" if head else "label rest"]
        return names["head" if head else "rest"]
    if register.offset:
        return number - 1
    if register.shift:  # the row that is taken has the one of the match before it so many rows on
        return registers.index(Register(None, False, -register.shift - 1, "label"))
    return names[register.kind]


def _interpreted(condition: Callable[..., int], lists: RunningAggregates) -> Callable[..., Any]:
    """The machine as interpreted Python."""
    names = {**vars(machine), "condition": condition, "interned": lists.interned}
    return FunctionType(machine.run.__code__, names)


def _requested(
    parts: list[PatternCondition], rows: _MatchRows, patience: int | None = None
) -> Callable[..., int]:
    """The conditions evaluated for one thread at a time, `patience` times at most."""
    left = count() if patience is None else iter(range(patience))
    by_label: dict[int, list[PatternCondition]] = {}
    for part in parts:
        by_label.setdefault(part.label, []).append(part)

    def condition(label: int, row: int, registers: Array, begin: int, end: int, *_: Any) -> int:
        if next(left, None) is None:
            raise _LongWorkError
        rows.within(begin, end)
        sides = _sides(row, registers)
        try:
            return int(all(may_hold(part, sides) for part in by_label[label]))
        except ExecutionError:
            # in a search for unknown values, the row may never be tried
            return 0 if rows.asking.asks else -1

    def may_hold(part: PatternCondition, sides: dict[str, Array]) -> bool:
        rows.asking.is_unknown = False
        return bool(satisfied(part.expression, rows, sides)[0]) or rows.asking.is_unknown

    return condition


def _sides(row: int, registers: Array) -> dict[str, Array]:
    sides = {"row": np.array([row], np.int64)}
    for number, value in enumerate(registers):
        sides[register_side(number)] = np.array([value], np.int64)
    return sides


def _fail(plan: MatchPlan, rows: _MatchRows, found: _Found) -> None:
    status = found.status
    if status >= 3:
        assert found.registers is not None
        sides = _sides(found.place, found.registers)
        for part in rows.parts:
            if part.label == status - 3 and not is_row_only(part.expression):
                with _located(part, plan):
                    if not satisfied(part.expression, rows, sides)[0]:
                        break
        raise AssertionError("a condition failed in the machine alone")
    names = [plan.labels[label] for label in sorted(plan.targets)]
    where = f"variable {names[0]}" if len(names) == 1 else f"one of {', '.join(names)}"
    span = None if plan.skip_place is None else Span(*plan.skip_place)
    if status == 1:
        raise ExecutionError(
            f"AFTER MATCH SKIP goes to {where}, which has no row in the match",
            span=span,
            sql=plan.sql,
            condition="SKIP_TARGET_MISSING",
            sqlstate="2202K",
            hint="skip to a variable that every match has, or write SKIP PAST LAST ROW",
        )
    raise ExecutionError(
        "AFTER MATCH SKIP goes to the first row of the match, so the same match would be found again",
        span=span,
        sql=plan.sql,
        condition="SKIP_TO_FIRST_ROW",
        sqlstate="2202L",
        hint="skip to a later variable, or to the next row",
    )


class _located:  # noqa: N801 - used as a context manager, like a function
    """Adds the place of the condition to an error in it."""

    def __init__(self, part: PatternCondition, plan: MatchPlan) -> None:
        self.part, self.plan = part, plan

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, WindrowError) and error.span is None and self.part.place is not None:
            error.span = Span(*self.part.place)
            error.located(self.plan.sql or "")
