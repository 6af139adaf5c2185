"""Operations on rows, applied one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from windrow.kernels.computed import computed_values
from windrow.kernels.computed.computed_values import ComputedColumn, ComputedRows, Value, whole
from windrow.kernels.computed.lookups import CollectedTable, LookUp

__all__ = ["Computed", "ComputedColumns", "ComputedOperation", "RowFilter", "carrying", "of_codes", "only"]

_CARRIED = -(1 << 62)
"""The number of a carried column, which no other column has."""


class ComputedOperation(Protocol):
    """An operation on rows."""

    def of(self, rows: ComputedRows) -> ComputedRows:
        """The result for these rows."""


@dataclass(frozen=True)
class RowFilter:
    """A filter of rows."""

    condition: Value

    def of(self, rows: ComputedRows) -> ComputedRows:
        """The rows for which the condition is true."""
        return rows.where(self.condition(rows))


@dataclass(frozen=True)
class ComputedColumns:
    """Computed columns, by their numbers in plans."""

    values: Mapping[int, Value]

    def of(self, rows: ComputedRows) -> ComputedRows:
        """The values; columns stay dictionary-coded."""
        columns = {number: _column(value, rows) for number, value in self.values.items()}
        return ComputedRows(columns, rows.count, rows.known)


def _column(value: Value, rows: ComputedRows) -> pa.Array:
    return rows.columns[value.number] if isinstance(value, ComputedColumn) else whole(value(rows), rows.count)


@dataclass(frozen=True)
class Computed:
    """A sequence of operations on rows.

    Attributes
    ----------
    columns
        The numbers of the columns that are read, and their names.
    operations
        The operations, in order.
    result
        The numbers of the output columns, in order.
    schema
        Names and types of that.
    """

    columns: Mapping[int, str]
    operations: Sequence[ComputedOperation]
    result: Sequence[int]
    schema: pa.Schema

    def of(self, table: pa.Table) -> pa.Table | None:
        """The result for these rows; None if Spark must compute it: for values that overflow, or for which
        Arrow and Spark may differ, which raises ArrowInvalid.
        """
        try:
            rows = self.rows({name: table.column(name) for name in self.columns.values()}, table.num_rows)
            pairs = zip(self.result, self.schema, strict=True)
            found = [rows.columns[number].cast(column.type) for number, column in pairs]
        except pa.ArrowInvalid:
            return None
        return pa.Table.from_arrays(found, schema=self.schema)

    def rows(self, columns: Mapping[str, pa.Array], count: int) -> ComputedRows:
        """The result for columns of so many rows."""
        rows = ComputedRows({number: columns[name] for number, name in self.columns.items()}, count)
        for operation in self.operations:
            rows = operation.of(rows)
        return rows

    def origin(self, name: str) -> str | None:
        """The input column that a result column copies; None if it is computed or looked up."""
        number = self.result[self.schema.names.index(name)]
        for operation in reversed(self.operations):
            if isinstance(operation, ComputedColumns):
                value = operation.values.get(number)  # None for one of a table
                if not isinstance(value, ComputedColumn):
                    return None
                number = value.number
        return self.columns.get(number)


def only(made: Computed, names: Sequence[str]) -> Computed:
    """The same computation with only these output columns; it may filter, compute and look up."""
    result = [made.result[made.schema.names.index(name)] for name in names]
    needed = frozenset(result)
    operations: list[ComputedOperation] = []
    for operation in reversed(made.operations):
        match operation:
            case RowFilter():
                needed |= operation.condition.reads
                operations.append(operation)
            case ComputedColumns():
                used = {number: value for number, value in operation.values.items() if number in needed}
                needed = frozenset[int]().union(*(value.reads for value in used.values()))
                operations.append(ComputedColumns(used))
            case LookUp():
                operation, needed = operation.only(needed)
                operations.append(operation)
            case _:
                raise TypeError(operation)
    columns = {number: name for number, name in made.columns.items() if number in needed}
    schema = pa.schema([made.schema.field(made.schema.names.index(name)) for name in names])
    return Computed(columns, operations[::-1], result, schema)


def carrying(made: Computed, name: str) -> Computed:
    """The same with an additional numeric column that is carried unchanged; as :func:`only`."""
    operations: list[ComputedOperation] = []
    for operation in made.operations:
        if isinstance(operation, ComputedColumns):
            operation = ComputedColumns({**operation.values, _CARRIED: ComputedColumn(_CARRIED)})
        operations.append(operation)
    columns, schema = {**made.columns, _CARRIED: name}, made.schema.append(pa.field(name, pa.int64()))
    return Computed(columns, operations, [*made.result, _CARRIED], schema)


def of_codes(made: Computed, coded: frozenset[str]) -> Computed:
    """The same, computed from codes where these columns are dictionary-coded."""
    numbers = frozenset(number for number, name in made.columns.items() if name in coded)
    operations: list[ComputedOperation] = []
    for operation in made.operations:
        match operation:
            case RowFilter():
                operations.append(RowFilter(computed_values.of_codes(operation.condition, numbers)))
            case ComputedColumns():
                operations.append(
                    ComputedColumns(
                        {n: computed_values.of_codes(value, numbers) for n, value in operation.values.items()}
                    )
                )
                numbers = frozenset(
                    n
                    for n, value in operation.values.items()
                    if isinstance(value, ComputedColumn) and value.number in numbers
                )
            case LookUp(table=CollectedTable() as table):
                operations.append(operation)  # a key that is a coded column is looked up by its codes
                numbers |= {
                    number
                    for number, kind in zip(table.numbers, table.found.schema.types, strict=True)
                    if pa.types.is_dictionary(kind)
                }
            case _:
                raise TypeError(operation)
    return Computed(made.columns, operations, made.result, made.schema)
