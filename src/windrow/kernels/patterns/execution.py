"""Finds the matches of sorted partitions: conditions into columns, then the machine.

A part of a condition that reads the row and its neighbours alone is evaluated for all rows at once. What is
left reads registers; the machine asks for it thread by thread, by a function compiled for it or, where the
rows are few or a part has no compiled form, by :func:`windrow.kernels.pairs.evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError, Span, WindrowError
from windrow.kernels.pairs import Rows, Values, holds
from windrow.kernels.patterns import machine
from windrow.kernels.patterns.conditions import compiled_run
from windrow.kernels.patterns.plan import LABELS, NUMBERS, Condition, MatchPlan, Register, register_side
from windrow.kernels.patterns.program import first_labels
from windrow.kernels.patterns.running import RunningAggregates
from windrow.kernels.plan import Operation, PairExpression, sides_of

__all__ = ["Matches", "find_matches", "is_row_only", "parts_of"]

_WORTH_COMPILING = 30_000  # rows
_PATIENCE = 50_000  # conditions asked in Python, which take a second or two
Array = np.ndarray


@dataclass(frozen=True)
class Matches:
    """The matches in order of partitions and first rows.

    Attributes
    ----------
    partition, start, length
        int64, one a match. An empty match has length 0 and starts at the row before which it is.
    labels
        int32: the labels of the rows of all matches, one after the other.
    excluded
        bool: which of these rows are not put out.
    kept
        int64, one a partition: the first row that is still needed where more rows may come; the matches
        before are final.
    """

    partition: Array
    start: Array
    length: Array
    labels: Array
    excluded: Array
    kept: Array


def find_matches(plan: MatchPlan, table: pa.Table, bounds: Array, complete: Array | None = None) -> Matches:
    """The matches of all partitions of a table.

    Parameters
    ----------
    plan
        The clause.
    table
        Rows sorted by partition, then by the clause's ORDER BY.
    bounds
        int64, (partitions + 1,): partition p is rows ``bounds[p] : bounds[p + 1]``.
    complete
        bool, (partitions,): False where more rows of a partition may come after those that there are; None
        for all complete.

    Raises
    ------
    ExecutionError
        ``SKIP_TARGET_MISSING``, ``SKIP_TO_FIRST_ROW``, and those of :func:`windrow.kernels.pairs.evaluate`.
    """
    parts = [part for condition in plan.conditions for part in parts_of(condition)]
    rows = _MatchRows(plan, table, bounds, tuple(part.expression for part in parts))
    row_only = _together([part for part in parts if is_row_only(part.expression)])
    others = [part for part in parts if not is_row_only(part.expression)]
    matrix = np.ones((len(plan.labels), table.num_rows), bool)
    every = np.arange(table.num_rows)
    for part in row_only:
        with _located(part, plan):
            matrix[part.label] &= holds(part.expression, rows, {"row": every})
    dependent = np.zeros(len(plan.labels), bool)
    dependent[[part.label for part in others]] = True
    arguments = (
        plan.program.op, plan.program.x, plan.program.y, np.asarray(bounds, np.int64),
        np.ones(len(bounds) - 1, bool) if complete is None else complete,
        matrix, _opening(plan, matrix), dependent, _updates(plan), np.int64(machine.SKIPS[plan.skip]),
        np.array([label in plan.targets for label in range(len(plan.labels))]),
    )  # fmt: skip
    lists = RunningAggregates(plan.running, table)
    rows.running = lists
    found = _found(others, rows, lists, arguments, may_compile=not plan.running)
    partition, start, length, labels, kept, status, place, registers = found
    if status:
        _fail(plan, others, rows, int(status), int(place), registers)
    excluded = labels < 0
    return Matches(partition, start, length, np.where(excluded, -1 - labels, labels), excluded, kept)


def _found(
    asked: list[Condition],
    rows: Rows,
    lists: RunningAggregates,
    arguments: tuple[Any, ...],
    *,
    may_compile: bool,
) -> Any:
    """What the machine finds: in Python while that is little work, compiled where it can be."""
    run: Callable[..., Any] | None = None
    if may_compile and rows.table.num_rows < _WORTH_COMPILING:
        try:
            return _interpreted(_asked(asked, rows, _PATIENCE), lists)(*arguments, ())
        except _LongWorkError:
            run = compiled_run(asked, rows, arguments)
    elif may_compile:
        run = compiled_run(asked, rows, arguments)
    if run is None:
        run = _interpreted(_asked(asked, rows), lists)
    return run(*arguments, ())


class _LongWorkError(Exception):
    """Conditions were asked so often that compiling them pays."""


def parts_of(condition: Condition) -> list[Condition]:
    """The operands of AND, each a condition of its own."""
    match condition.expression:
        case Operation(operator="AND", operands=operands):
            return [
                part
                for operand in operands
                for part in parts_of(Condition(condition.label, operand, condition.place))
            ]
        case _:
            return [condition]


def _together(parts: list[Condition]) -> list[Condition]:
    """One condition for the parts of a stretch of the query: none is evaluated after one that is FALSE."""
    found: dict[tuple[int, tuple[int, int] | None], list[PairExpression]] = {}
    for part in parts:
        found.setdefault((part.label, part.place), []).append(part.expression)
    return [
        Condition(label, operands[0] if len(operands) == 1 else Operation("AND", tuple(operands)), place)
        for (label, place), operands in found.items()
    ]


def is_row_only(expression: PairExpression) -> bool:
    """Whether no register is read."""
    return sides_of(expression) <= {"row"}


class _MatchRows(Rows):
    """The rows, and the labels as a column of their own."""

    def __init__(
        self, plan: MatchPlan, table: pa.Table, bounds: Array, expressions: tuple[PairExpression, ...]
    ) -> None:
        self.labels = pa.chunked_array([pa.array(plan.labels, pa.string())])
        self.running: RunningAggregates | None = None
        super().__init__(table, bounds, plan.constants, expressions, plan.ansi)

    def source(self, name: str) -> pa.ChunkedArray:
        if name == LABELS:
            return self.labels
        if name == NUMBERS:
            return pa.chunked_array([pa.array(np.arange(self.table.num_rows + 2))])
        return super().source(name)

    def column(self, name: str, rank: int | None) -> Values:
        if self.running is not None and name in self.running.names:
            return self.running.column(name)
        return super().column(name, rank)


def _opening(plan: MatchPlan, matrix: Array) -> Array:
    """The rows that may be the first of a match as far as their values tell; all if it may be empty."""
    labels = first_labels(plan.program)
    if labels is None:
        return np.ones(matrix.shape[1], bool)
    opening: Array = np.logical_or.reduce(matrix[sorted(labels)], axis=0)
    return opening


def _updates(plan: MatchPlan) -> Array:
    """How a row of each label changes each register."""
    codes = np.empty((len(plan.labels), len(plan.registers)), np.int64)
    for number, register in enumerate(plan.registers):
        for label in range(len(plan.labels)):
            taken = register.members is None or label in register.members
            codes[label, number] = _code(register, number) if taken else number
    return codes


def _code(register: Register, number: int) -> int:
    names = machine.CODES
    if register.kind in ("rows", "count", "number"):
        return names[register.kind]
    if register.from_first:
        head = register.offset == 0
        if register.kind == "label":
            return names["label head" if head else "label rest"]
        return names["head" if head else "rest"]
    if register.offset:
        return number - 1
    return names[register.kind]


def _interpreted(condition: Callable[..., int], lists: RunningAggregates) -> Callable[..., Any]:
    """The machine as it stands, in Python."""
    names = {**vars(machine), "condition": condition, "interned": lists.interned}
    return FunctionType(machine.run.__code__, names)


def _asked(parts: list[Condition], rows: Rows, patience: int | None = None) -> Callable[..., int]:
    """The conditions evaluated for one thread at a time, `patience` times at most."""
    left = count() if patience is None else iter(range(patience))
    by_label: dict[int, list[Condition]] = {}
    for part in parts:
        by_label.setdefault(part.label, []).append(part)

    def condition(label: int, row: int, registers: Array, *_: Any) -> int:
        if next(left, None) is None:
            raise _LongWorkError
        sides = _sides(row, registers)
        try:
            return int(all(holds(part.expression, rows, sides)[0] for part in by_label[label]))
        except ExecutionError:
            return -1

    return condition


def _sides(row: int, registers: Array) -> dict[str, Array]:
    sides = {"row": np.array([row], np.int64)}
    for number, value in enumerate(registers):
        sides[register_side(number)] = np.array([value], np.int64)
    return sides


def _fail(
    plan: MatchPlan, parts: list[Condition], rows: Rows, status: int, place: int, registers: Array
) -> None:
    if status >= 3:
        sides = _sides(place, registers)
        for part in parts:
            if part.label == status - 3:
                with _located(part, plan):
                    if not holds(part.expression, rows, sides)[0]:
                        break
        raise AssertionError("a condition failed in the machine alone")
    names = [plan.labels[label] for label in sorted(plan.targets)]
    where = f"variable {names[0]}" if len(names) == 1 else f"one of {', '.join(names)}"
    span = None if plan.skip_place is None else Span(*plan.skip_place)
    if status == 1:
        raise ExecutionError(
            f"AFTER MATCH SKIP goes to {where}, which the match lacks",
            span=span,
            sql=plan.sql,
            condition="SKIP_TARGET_MISSING",
            sqlstate="2200M",
            hint="skip to a variable that every match has, or SKIP PAST LAST ROW",
        )
    raise ExecutionError(
        "AFTER MATCH SKIP goes to the first row of the match, which would be found again",
        span=span,
        sql=plan.sql,
        condition="SKIP_TO_FIRST_ROW",
        sqlstate="2200M",
        hint="skip to a later variable, or to the next row",
    )


class _located:  # noqa: N801 - used as a context manager, like a function
    """Tells an error in a condition where the condition stands."""

    def __init__(self, part: Condition, plan: MatchPlan) -> None:
        self.part, self.plan = part, plan

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, WindrowError) and error.span is None and self.part.place is not None:
            error.span = Span(*self.part.place)
            error.located(self.plan.sql or "")
