"""Joins of rows with a table that is small, by one equality or none, without a job of Spark's for the rows.

What is small is what Spark would send to every task: ``spark.sql.autoBroadcastJoinThreshold``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from windrow.kernels.computed.computed_values import ComputedRows
from windrow.spark.analysis.typed_values import Typed
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.plans import small_part
from windrow.spark.live.operators.incremental import in_memory, not_in_memory

__all__ = ["CollectedTable", "LookUp", "SmallTable", "small_table"]


@dataclass(frozen=True, eq=False)
class SmallTable:
    """A part of a plan that reads no leaf.

    Attributes
    ----------
    numbers
        By which the plan identifies its columns.
    schema
        Their names and types.
    """

    gateway: Gateway
    frame: DataFrame
    numbers: Sequence[int]
    schema: pa.Schema
    is_constant: bool

    def rows(self) -> pa.Table:
        """Its rows as they are now."""
        return self._constant if self.is_constant else self._collected()

    @cached_property
    def _constant(self) -> pa.Table:
        return self._collected()

    def _collected(self) -> pa.Table:
        with self.gateway.translated():
            return self.frame.select("*").toArrow().cast(self.schema).combine_chunks()

    def collected(self) -> CollectedTable:
        """It with its rows as they are now, for tasks."""
        return CollectedTable(self.numbers, self.schema, self.rows())


@dataclass(frozen=True, eq=False)
class CollectedTable:
    """A :class:`SmallTable` whose rows do not change any more."""

    numbers: Sequence[int]
    schema: pa.Schema
    found: pa.Table

    def rows(self) -> pa.Table:
        """Its rows."""
        return self.found


def small_table(gateway: Gateway, frame: DataFrame, path: Sequence[int]) -> SmallTable | None:
    """A part of the optimized plan of a DataFrame; None if it is too large.

    Parameters
    ----------
    path
        Of each operator from the top on, which of its inputs.
    """
    part = small_part(frame, path)
    if part is None or not_in_memory(part.frame.schema) is not None:
        return None
    return SmallTable(gateway, part.frame, part.numbers, in_memory(part.frame.schema), part.is_constant)


@dataclass(frozen=True, eq=False)
class LookUp:
    """Rows with the rows of a table that have an equal value, or with all; NULL equals none.

    Attributes
    ----------
    equal
        The value of a row, and of a row of the table; None where each row goes with all of the table.
    table
        The table.
    retains_all
        Whether rows for which the table has none stay, with NULL.
    wanted
        The numbers of the columns that are read, of either.
    """

    equal: tuple[Typed, Typed] | None
    table: SmallTable | CollectedTable
    retains_all: bool
    wanted: Sequence[int]

    def of(self, rows: ComputedRows) -> ComputedRows:
        """What it makes of these."""
        found = self.table.rows() if rows.count else self.table.schema.empty_table()
        own = ComputedRows(
            {number: found.column(at) for at, number in enumerate(self.table.numbers)}, found.num_rows
        )
        if self.equal is None:
            left, right = _all_pairs(rows.count, own.count)
        else:
            key, other = self.equal
            left, right = _pairs(_key(key, rows), _key(other, own), self.retains_all)
        columns = {
            number: column.take(left) for number, column in rows.columns.items() if number in self.wanted
        }
        columns |= {
            number: column.take(right) for number, column in own.columns.items() if number in self.wanted
        }
        known = {name: column.take(left) for name, column in rows.known.items()}
        return ComputedRows(columns, len(left), known)


def _key(key: Typed, rows: ComputedRows) -> pa.Array:
    found = key.value(rows)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _all_pairs(rows: int, others: int) -> tuple[pa.Array, pa.Array]:
    """The places of rows and, beside each, of all rows of the table."""
    return pa.array(np.repeat(np.arange(rows), others)), pa.array(np.tile(np.arange(others), rows))


def _pairs(keys: pa.Array, table_keys: pa.Array, retains_all: bool) -> tuple[pa.Array, pa.Array]:
    """The places of rows and, beside them, of the table's rows with the same key, or NULL."""
    is_known = np.asarray(pc.is_valid(table_keys))
    codes = table_keys.filter(pa.array(is_known)).dictionary_encode()
    places = np.flatnonzero(is_known)[np.argsort(np.asarray(codes.indices), kind="stable")]
    counts = np.bincount(np.asarray(codes.indices), minlength=len(codes.dictionary))
    starts = np.cumsum(counts) - counts
    code = pc.index_in(keys, codes.dictionary, skip_nulls=True)
    is_found = np.asarray(pc.is_valid(code))
    at = np.asarray(pc.fill_null(code, 0))
    many = np.zeros(len(at), np.int64)
    many[is_found] = counts[at[is_found]]
    times = np.maximum(many, 1) if retains_all else many
    left = np.repeat(np.arange(len(at)), times)
    within = np.arange(len(left)) - np.repeat(np.cumsum(times) - times, times)
    is_pair = np.repeat(is_found, times)
    first = np.zeros(len(at), np.int64)
    first[is_found] = starts[at[is_found]]
    right = np.zeros(len(left), np.int64)
    right[is_pair] = places[(np.repeat(first, times) + within)[is_pair]]
    return pa.array(left), pa.array(right, mask=~is_pair)
