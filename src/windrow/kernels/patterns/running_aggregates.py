"""Aggregates over the rows that a thread has taken, for conditions.

A list of rows has a number, found by the number of the list without its last row, and that row. So equal
lists have equal numbers, by which threads are compared. If labels count, a column is the concatenation of the
columns for each label, and a row's number includes the label. The value of a list is computed when it is
first read, from the state of the list before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.aggregates import AggregateSpec, aggregate
from windrow.kernels.pair_functions import blank
from windrow.kernels.pairs import Array, PairValues

__all__ = ["RunningAggregates"]

_WIDE = Context(prec=100)

State = tuple[int, Any]
"""How many values are not NULL, and their aggregate."""


class RunningAggregates:
    """The lists of rows of a search, and the aggregates over them by name."""

    def __init__(
        self,
        running: tuple[tuple[str, AggregateSpec], ...],
        table: pa.Table,
        by_label: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.names = {name for name, _ in running}
        self.numbers: dict[tuple[int, int], int] = {}
        self.lists: list[tuple[int, int]] = []
        self.aggregates = {}
        for name, spec in running:
            rows = pa.table({})
            if spec.argument is not None:
                columns = by_label.get(spec.argument, (spec.argument,))
                chunks = [chunk for column in columns for chunk in table.column(column).chunks]
                kind = table.schema.field(columns[0]).type
                rows = pa.table({spec.argument: pa.chunked_array(chunks, kind)})
            self.aggregates[name] = _Running(spec, rows, self.lists)

    def interned(self, before: int, row: int) -> int:
        """The number of the list that extends the one of number `before` (−1: the empty one) by a row."""
        key = (int(before), int(row))
        if key not in self.numbers:
            self.numbers[key] = len(self.lists)
            self.lists.append(key)
        return self.numbers[key]

    def column(self, name: str) -> PairValues:
        """The aggregate's values, by the numbers of lists."""
        return self.aggregates[name]


class _Running(PairValues):
    """One aggregate over the lists, computed for those that conditions read.

    All aggregates share the numbers of lists, so some lists are of rows for which this one has no value. Rows
    of lists with labels are numbered across all labels; an aggregate that reads no labels has one value for a
    row, whatever its label.
    """

    def __init__(self, spec: AggregateSpec, table: pa.Table, lists: list[tuple[int, int]]) -> None:
        self.dtype = _dtype(spec.result_type)
        super().__init__(blank(1, self.dtype))
        self.spec, self.table, self.lists = spec, table, lists
        self.column = None if spec.argument is None else table.column(spec.argument).to_pylist()
        self.add = _ADDITIONS.get(spec.function) if _is_incremental(spec, table) else None
        self.states: dict[int, State] = {-1: (0, None)}
        self.found: dict[int, Any] = {}

    def take(self, index: Array) -> PairValues:
        """The values of lists, by their numbers."""
        found = [self.value(int(number)) for number in index]
        data = blank(len(found), self.dtype)
        for place, value in enumerate(found):
            if value is not None:
                data[place] = value
        return PairValues(data, np.array([value is not None for value in found], bool))

    def value(self, number: int) -> Any:
        """The value of one list; None for NULL."""
        if number not in self.found:
            if self.add is None:
                self.found[number] = self.from_rows(number)
            else:
                self.found[number] = _ENDS[self.spec.function](*self.state(number), self.spec)
        return self.found[number]

    def state(self, number: int) -> State:
        """The state of one list, computed from that of the list without its last row."""
        unknown = []
        while number not in self.states:
            unknown.append(number)
            number = self.lists[number][0]
        count, state = self.states[number]
        assert self.add is not None
        for later in reversed(unknown):
            row = self.lists[later][1]
            value = None if self.column is None else self.column[row % len(self.column)]
            if value is not None:
                count, state = count + 1, self.add(state, value)
            self.states[later] = (count, state)
        return count, state

    def from_rows(self, number: int) -> Any:
        """The value from all rows of the list."""
        rows = []
        while number >= 0:
            number, row = self.lists[number]
            rows.append(row)
        places = np.array(rows[::-1]) % max(self.table.num_rows, 1)
        some = self.table.take(pa.array(places)) if self.table.num_columns else self.table
        found = aggregate(self.spec, some, np.array([0]), np.array([len(rows)]))[0]
        if not found.is_valid:
            return None
        kind = self.spec.result_type
        if pa.types.is_date32(kind):
            return found.cast(pa.int32()).as_py()
        return found.cast(pa.int64()).as_py() if pa.types.is_temporal(kind) else found.as_py()


def _is_incremental(spec: AggregateSpec, table: pa.Table) -> bool:
    """Whether the state of a list follows from that of the list before and a value."""
    if spec.function == "count":
        return True
    kind = None if spec.argument is None else table.column(spec.argument).type
    if kind is None:
        return False
    if pa.types.is_decimal(kind):
        return spec.function != "avg"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return spec.function in ("min", "max")
    return bool(pa.types.is_integer(kind) or pa.types.is_float64(kind))


def _dtype(kind: pa.DataType) -> str:
    """The dtype of values of a type in :mod:`windrow.kernels.pairs`."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "string"
    if pa.types.is_date32(kind):
        return "int32"
    if pa.types.is_nested(kind):
        return "object"
    return "int64" if pa.types.is_temporal(kind) else str(np.dtype(kind.to_pandas_dtype()))


def _added(state: Any, value: Any) -> Any:
    """An exact sum: an integer, or floats that do not overlap (Shewchuk, "Adaptive Precision Arithmetic")."""
    if isinstance(value, int | Decimal):
        return (state or 0) + value if isinstance(value, int) else _WIDE.add(state or 0, value)
    if not math.isfinite(value):
        return (value,) if state is None or math.isfinite(sum(state)) else (sum(state) + value,)
    if state is not None and not all(map(math.isfinite, state)):
        return state
    partials = []
    for partial in state or ():
        large, small = (value, partial) if abs(value) >= abs(partial) else (partial, value)
        total = large + small
        rest = small - (total - large)
        if rest:
            partials.append(rest)
        value = total
    return (*partials, value)


def _sum(count: int, state: Any, spec: AggregateSpec) -> Any:
    if not count:
        return None
    if isinstance(state, Decimal):
        return _fitting(state, spec)
    if not isinstance(state, int):
        return math.fsum(state) if all(map(math.isfinite, state)) else sum(state)
    if not -(2**63) <= state < 2**63:
        if spec.ansi:
            raise ExecutionError(
                "bigint overflow in sum", condition="ARITHMETIC_OVERFLOW", sqlstate="22003",
                hint="cast the argument to a wider type",
            )  # fmt: skip
        return (state + 2**63) % 2**64 - 2**63
    return state


def _fitting(total: Decimal, spec: AggregateSpec) -> Decimal | None:
    if abs(total) < Decimal(10) ** (spec.result_type.precision - spec.result_type.scale):
        return total
    if spec.ansi:
        raise ExecutionError(
            "decimal overflow in sum", condition="ARITHMETIC_OVERFLOW", sqlstate="22003",
            hint="cast the argument to a wider type",
        )  # fmt: skip
    return None


def _average(count: int, state: Any, spec: AggregateSpec) -> Any:
    if not count:
        return None
    total = float(state) if isinstance(state, int) else _sum(count, state, spec)
    return total / count


def _least(state: Any, value: Any) -> Any:
    # NaN is greater than any number
    return value if state is None or state != state or value < state else state


def _greatest(state: Any, value: Any) -> Any:
    return value if state is None or value != value or value > state else state


def _nothing(_state: Any, _value: Any) -> None:
    """Ignores the value: only the count matters."""


def _count(count: int, _state: Any, _spec: AggregateSpec) -> int:
    return count


def _extreme(count: int, state: Any, _spec: AggregateSpec) -> Any:
    return state if count else None


_ADDITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "count": _nothing,
    "sum": _added,
    "avg": _added,
    "min": _least,
    "max": _greatest,
}
_ENDS: dict[str, Callable[[int, Any, AggregateSpec], Any]] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "min": _extreme,
    "max": _extreme,
}
