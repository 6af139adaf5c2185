"""Values computed from rows: columns, constants, and functions of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "Applied",
    "ComputedColumn",
    "ComputedRows",
    "Constant",
    "Function",
    "OfCodes",
    "Once",
    "Value",
    "of_codes",
    "whole",
]

Function = Callable[..., pa.Array]
"""A function of columns; if all arguments are scalars, it returns a scalar."""


@dataclass
class ComputedRows:
    """The rows that values are computed from.

    Attributes
    ----------
    columns
        By their numbers in plans. Strings may be dictionary-coded.
    count
        The number of rows.
    known
        Values that are computed once, by the keys of :class:`Once`.
    """

    columns: Mapping[int, pa.Array]
    count: int
    known: dict[str, pa.Array] = field(default_factory=dict)

    def where(self, condition: pa.Array) -> ComputedRows:
        """The rows for which the condition is true."""
        stays = whole(pc.fill_null(condition, False), self.count)
        if pc.all(stays, min_count=0).as_py():
            return self
        columns = {number: column.filter(stays) for number, column in self.columns.items()}
        known = {key: column.filter(stays) for key, column in self.known.items()}
        return ComputedRows(columns, pc.sum(stays, min_count=0).as_py(), known)


def whole(value: pa.Array, count: int) -> pa.Array:
    """A value for each row, also if it is a constant."""
    return pa.repeat(value, count) if isinstance(value, pa.Scalar) else value


@dataclass(frozen=True)
class ComputedColumn:
    """A column."""

    number: int

    @property
    def reads(self) -> frozenset[int]:
        """The numbers of the columns that it reads."""
        return frozenset([self.number])

    def __call__(self, rows: ComputedRows) -> pa.Array:
        """The column, without dictionary encoding."""
        found = rows.columns[self.number]
        return found.cast(found.type.value_type) if pa.types.is_dictionary(found.type) else found


@dataclass(frozen=True)
class Constant:
    """The same value for each row."""

    value: pa.Scalar

    @property
    def reads(self) -> frozenset[int]:
        """The empty set."""
        return frozenset()

    def __call__(self, _: ComputedRows) -> pa.Scalar:
        """The value, as a scalar."""
        return self.value


@dataclass(frozen=True)
class Applied:
    """A function of values."""

    function: Function
    operands: tuple[Value, ...]

    @cached_property
    def reads(self) -> frozenset[int]:
        """The numbers of the columns that it reads."""
        return frozenset[int]().union(*(operand.reads for operand in self.operands))

    def __call__(self, rows: ComputedRows) -> pa.Array:
        """The value for each row."""
        return self.function(*(operand(rows) for operand in self.operands))


@dataclass(frozen=True)
class Once:
    """A value that is used more than once, and computed once."""

    value: Value
    key: str

    @property
    def reads(self) -> frozenset[int]:
        """The numbers of the columns that it reads."""
        return self.value.reads

    def __call__(self, rows: ComputedRows) -> pa.Array:
        """The value for each row."""
        if self.key not in rows.known:
            rows.known[self.key] = whole(self.value(rows), rows.count)
        return rows.known[self.key]


@dataclass(frozen=True)
class OfCodes:
    """A value that reads one column. If that is dictionary-coded, it is computed from the dictionary, not
    from rows.
    """

    value: Value
    number: int

    @property
    def reads(self) -> frozenset[int]:
        """The number of the column."""
        return frozenset([self.number])

    def __call__(self, rows: ComputedRows) -> pa.Array:
        """The value for each row."""
        column = rows.columns[self.number]
        if not pa.types.is_dictionary(column.type) or len(column.dictionary) >= len(column):
            return self.value(rows)
        count = len(column.dictionary)
        # its value for NULL too
        values = pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)])
        found = whole(self.value(ComputedRows({self.number: values}, count + 1)), count + 1)
        if not column.null_count:
            found = found.slice(0, count)
            if pa.types.is_boolean(found.type) and not found.null_count:  # numpy takes bytes faster than bits
                return pa.array(np.asarray(found)[np.asarray(column.indices)])
        return found.take(pc.fill_null(column.indices, pa.scalar(count, column.indices.type)))


Value = ComputedColumn | Constant | Applied | Once | OfCodes
"""An expression that returns a value for each row; constants return scalars."""


def of_codes(value: Value, coded: frozenset[int]) -> Value:
    """The value, computed from the dictionary where a part of it reads only one of these columns."""
    match value:
        case Once():
            return replace(value, value=of_codes(value.value, coded))
        case Applied(operands=operands):
            if len(value.reads) == 1 and value.reads <= coded:
                (number,) = value.reads
                return OfCodes(value, number)
            return replace(value, operands=tuple(of_codes(operand, coded) for operand in operands))
    return value
