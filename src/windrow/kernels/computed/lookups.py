"""Joins of rows with a table in memory, by one equality or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.computed.computed_values import ComputedColumn, ComputedRows, Value

__all__ = ["CollectedTable", "LookUp", "LookUpTable"]


class LookUpTable(Protocol):
    """A table that rows are joined with."""

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of its columns in a plan."""

    @property
    def schema(self) -> pa.Schema:
        """The names and types of its columns."""

    def rows(self) -> pa.Table:
        """Its current rows."""


@dataclass(frozen=True, eq=False)
class CollectedTable:
    """A table whose rows no longer change; its strings may be dictionary-coded."""

    numbers: Sequence[int]
    schema: pa.Schema
    found: pa.Table

    def rows(self) -> pa.Table:
        """Its rows."""
        return self.found

    def only(self, numbers: frozenset[int]) -> CollectedTable:
        """The same rows with only these columns."""
        places = [place for place, number in enumerate(self.numbers) if number in numbers]
        schema = pa.schema([self.schema.field(place) for place in places])
        if not places:  # a table of no columns has no number of rows
            return self
        return CollectedTable([self.numbers[place] for place in places], schema, self.found.select(places))


@dataclass(frozen=True, eq=False)
class LookUp:
    """Rows joined with the rows of a table that have an equal value, or with all; NULL equals nothing.

    Attributes
    ----------
    equal
        The value of a row, and of a row of the table; None if each row is joined with the whole table.
    table
        The table.
    retains_all
        Whether rows for which the table has none stay, with NULL.
    wanted
        The numbers of the columns that are read, of either.
    """

    equal: tuple[Value, Value] | None
    table: LookUpTable
    retains_all: bool
    wanted: Sequence[int]

    def of(self, rows: ComputedRows) -> ComputedRows:
        """The joined rows."""
        found = self.table.rows() if rows.count else self.table.schema.empty_table()
        columns = {number: _array(found.column(at)) for at, number in enumerate(self.table.numbers)}
        own = ComputedRows(columns, found.num_rows)
        if self.equal is None:
            left, right = _all_pairs(rows.count, own.count)
        else:
            key, other = self.equal
            left, right = _pairs(_key(key, rows), _key(other, own), self.retains_all)
        columns = {n: _at(column, left) for n, column in rows.columns.items() if n in self.wanted}
        columns |= {n: column.take(right) for n, column in own.columns.items() if n in self.wanted}
        known = {name: _at(column, left) for name, column in rows.known.items()}
        return ComputedRows(columns, len(right), known)

    def only(self, needed: frozenset[int]) -> tuple[LookUp, frozenset[int]]:
        """The same with only these columns, and the numbers of the row columns that it reads."""
        wanted, table = [number for number in self.wanted if number in needed], self.table
        own, theirs = frozenset[int](), frozenset[int]()
        if self.equal is not None:
            own, theirs = self.equal[0].reads, self.equal[1].reads
        below = (needed - frozenset(table.numbers)) | own
        if isinstance(table, CollectedTable):
            table = table.only(frozenset(wanted) | theirs)
        return replace(self, table=table, wanted=wanted), below

    @cached_property
    def most(self) -> int:
        """The most table rows that a row is joined with."""
        found = self.table.rows()
        if self.equal is None:
            return max(1, int(found.num_rows))
        columns = {number: _array(found.column(at)) for at, number in enumerate(self.table.numbers)}
        keys = _key(self.equal[1], ComputedRows(columns, found.num_rows)).drop_null()
        counts = pc.value_counts(keys)
        return int(max([1, *counts.field("counts").to_pylist()]))


def _array(column: pa.ChunkedArray) -> pa.Array:
    """A column of a table as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)


def _key(value: Value, rows: ComputedRows) -> pa.Array:
    """The key of each row, as codes if the column is coded."""
    found = rows.columns[value.number] if isinstance(value, ComputedColumn) else value(rows)
    return _array(found) if isinstance(found, pa.ChunkedArray) else found


def _at(column: pa.Array, places: pa.Array | None) -> pa.Array:
    return column if places is None else column.take(places)


def _all_pairs(rows: int, others: int) -> tuple[pa.Array, pa.Array]:
    """The places of rows and, beside them, of all rows of the table."""
    return pa.array(np.repeat(np.arange(rows), others)), pa.array(np.tile(np.arange(others), rows))


def _pairs(keys: pa.Array, table_keys: pa.Array, retains_all: bool) -> tuple[pa.Array | None, pa.Array]:
    """The places of rows and, beside them, of the table's rows with the same key, or NULL.

    None stands for all rows in order.
    """
    is_known = np.asarray(pc.is_valid(table_keys))
    codes = table_keys.filter(pa.array(is_known))
    codes = codes if pa.types.is_dictionary(codes.type) else codes.dictionary_encode()
    places = np.flatnonzero(is_known)[np.argsort(np.asarray(codes.indices), kind="stable")]
    counts = np.bincount(np.asarray(codes.indices), minlength=len(codes.dictionary))
    starts = np.cumsum(counts) - counts
    code = _found(keys, codes.dictionary)
    is_found = np.asarray(pc.is_valid(code))
    at = np.asarray(pc.fill_null(code, 0))
    if counts.max(initial=0) <= 1:  # nothing multiplies
        is_found = is_found & (counts[at] > 0) if len(counts) else is_found
        if retains_all or is_found.all():
            left, there = None, is_found
        else:
            left = np.flatnonzero(is_found)
            at, there = at[left], np.ones(len(left), bool)
        right = np.zeros(len(at), np.int64)
        right[there] = places[starts[at[there]]]
        return None if left is None else pa.array(left), pa.array(right, mask=~there)
    many = np.zeros(len(at), np.int64)
    many[is_found] = counts[at[is_found]]
    times = np.maximum(many, 1) if retains_all else many
    left = np.repeat(np.arange(len(at)), times)
    within = np.arange(len(left)) - np.repeat(np.cumsum(times) - times, times)
    is_pair = np.repeat(many > 0, times)
    first = np.zeros(len(at), np.int64)
    first[is_found] = starts[at[is_found]]
    right = np.zeros(len(left), np.int64)
    right[is_pair] = places[(np.repeat(first, times) + within)[is_pair]]
    return pa.array(left), pa.array(right, mask=~is_pair)


def _found(keys: pa.Array, values: pa.Array) -> pa.Array:
    """The places of keys among these values, NULL for none; for coded keys each value is looked up once."""
    if pa.types.is_dictionary(keys.type):
        return pc.index_in(keys.dictionary, values, skip_nulls=True).take(keys.indices)
    return pc.index_in(keys, values, skip_nulls=True)
