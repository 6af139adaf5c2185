"""Conditions that Spark evaluates over values of a match: the values to evaluate, and the results.

The machine cannot wait for Spark at every row. So a different search runs first, which only finds the values
to evaluate: it treats an unknown condition as true, and no match ends it, so every row is tried as a first
one. Its threads include those of the search for matches. Spark evaluates the collected values at once.
Conditions that are false end their threads in the next search, which may find further values. When there are
none, everything that the machine can need is known.

Results are found by the values that a condition reads, so rows with the same values are evaluated once.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.pairs import PairRows, PairValues, Sides, row_of
from windrow.kernels.patterns.pattern_plan import (
    ANSWER,
    REQUESTED,
    Answers,
    MatchPlan,
    requested_column,
    requests_of,
)
from windrow.kernels.patterns.program import DONE, JUMP, PatternProgram
from windrow.kernels.window_plan import ColumnRef, Number, Operation

__all__ = ["Asking", "EnoughError", "keys_of", "search_of_unknown"]

Key = tuple[str, ...]
Values = Callable[[str], Callable[[int], Any] | None]
"""The values of a register in a column that is not one of the table's; None for those of the table."""


class EnoughError(Exception):
    """Enough values are collected that evaluating them first is better."""


class Asking:
    """The known results in a search, and the further values to evaluate.

    `values` has the values of registers that are not rows.
    """

    def __init__(self, plan: MatchPlan, table: pa.Table, values: Values) -> None:
        self.plan, self.table, self.values = plan, table, values
        self.answers = plan.answers or Answers(())
        self.is_unknown = False
        """Whether a condition has been unknown since this was last set to False."""
        self.known = _known(self.answers)
        self.wanted: dict[tuple[int, Key], list[Any]] = {}
        self.texts: dict[str, list[str]] = {}

    @property
    def asks(self) -> bool:
        """Whether the search looks for unknown values."""
        return self.answers.most is not None

    def answered(self, expression: Operation, rows: PairRows, sides: Sides) -> PairValues:
        """The condition for each of the rows; NULL where it is not known yet."""
        number, *refs = expression.operands
        assert isinstance(number, Number)
        places = []
        for ref in refs:
            assert isinstance(ref, ColumnRef)
            index, there = row_of(rows, sides, ref.side, ref.shift)
            places.append((ref, np.where(there, index, -1)))
        found = [
            self.answer(number.value, [(ref, int(index[at])) for ref, index in places])
            for at in range(len(next(iter(sides.values()))))
        ]
        truth = np.array([answer is True for answer in found], bool)
        return PairValues(truth, np.array([answer is not None for answer in found], bool))

    def answer(self, number: int, places: list[tuple[ColumnRef, int]]) -> bool | None:
        """The condition of this number, over columns at rows; −1 for no row."""
        elements: list[Any] = []
        texts = []
        for ref, at in places:
            read = self.values(ref.column)
            if read is None:
                elements.append(at)
                texts.append(repr(None) if at < 0 else self.text(ref.column, at))
                continue
            value = read(at) if at >= 0 else 0 if ref.missing is not None else None
            elements.append(value)
            texts.append(_text(value))
        key = tuple(texts)
        known = self.known.get(number, {})
        if key in known:
            return known[key]
        most = self.answers.most
        if most is None:
            raise ExecutionError(
                "the input rows have changed since Spark evaluated a condition of DEFINE",
                condition="ROWS_CHANGED",
                sqlstate="55000",
                hint="run the query again",
            )
        self.is_unknown = True
        self.wanted.setdefault((number, key), elements)
        if len(self.wanted) > most:
            raise EnoughError
        return None

    def text(self, column: str, at: int) -> str:
        """A value of the table as text."""
        if column not in self.texts:
            self.texts[column] = _texts(self.table.column(column))
        return self.texts[column][at]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The values to evaluate: the number of the condition, and the values that it reads.

        Columns of other conditions are NULL.
        """
        schema = self.plan.result
        read = requests_of(Operation("AND", tuple(part.expression for part in self.plan.conditions)))
        for number in sorted({number for number, _ in self.wanted}):
            rows = [elements for (of, _), elements in self.wanted.items() if of == number]
            columns = {REQUESTED: pa.array([number] * len(rows), pa.int32())}
            for place, ref in enumerate(read[number]):
                name = requested_column(number, place)
                columns[name] = self.array(ref, [row[place] for row in rows], schema.field(name).type)
            arrays = [columns.get(field.name, pa.nulls(len(rows), field.type)) for field in schema]
            yield from pa.table(arrays, schema).combine_chunks().to_batches()

    def array(self, ref: ColumnRef, elements: list[Any], kind: pa.DataType) -> pa.Array:
        """Values as columns of requests: those of the table's rows, or of other registers."""
        if self.values(ref.column) is not None:
            return pa.array(elements, kind)
        places = pa.array([None if at < 0 else at for at in elements], pa.int64())
        return self.table.column(ref.column).combine_chunks().take(places).cast(kind)


def search_of_unknown(plan: MatchPlan) -> MatchPlan:
    """The plan of a search that finds no match, and so tries all rows as first ones."""
    op, x = plan.program.op.copy(), plan.program.x.copy()
    ends = op == DONE
    x[ends] = np.flatnonzero(ends)
    op[ends] = JUMP  # to itself, where the machine has been
    return replace(plan, program=PatternProgram(op, x, plan.program.y), tree=None, every=False)


def keys_of(table: pa.Table) -> list[Key]:
    """The keys by which rows of a table of values are found."""
    return list(zip(*(_texts(column) for column in table.columns), strict=True))


@lru_cache(maxsize=2)
def _known(answers: Answers) -> dict[int, dict[Key, bool | None]]:
    """The results by value; a task reuses them between partitions."""
    return {
        number: dict(zip(keys_of(of.drop_columns([ANSWER])), of.column(ANSWER).to_pylist(), strict=True))
        for number, of in answers.tables
    }


def _texts(column: pa.ChunkedArray) -> list[str]:
    """Each value as text: equal texts in two columns are the same value."""
    kind = column.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(kind):
        column = column.cast(pa.int64())
    return list(map(_text, column.to_pylist()))


def _text(value: Any) -> str:
    return repr(_in_utc(value) if isinstance(value, dict | list) else value)


def _in_utc(value: Any) -> Any:
    """A value with its times converted to UTC."""
    match value:
        case dict():
            return {name: _in_utc(part) for name, part in value.items()}
        case list() | tuple():
            return [_in_utc(part) for part in value]
        case datetime.datetime() if value.tzinfo is not None:
            return value.astimezone(datetime.UTC)
        case _:
            return value
