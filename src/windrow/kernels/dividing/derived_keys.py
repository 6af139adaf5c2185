"""Columns that are computed from each row of a leaf alone, before any operator that retains rows.

Rows can be divided by such a column before a program runs. It is computed from the rows of a leaf, through
the fragments that lead to it, and through time windows that put each row into one window.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.kernels.computed.computed_operations import Computed, ComputedColumns, RowFilter, carrying, only
from windrow.kernels.incremental.programs.operator_program import ProgramNode
from windrow.kernels.incremental.programs.program_fragment import ProgramFragment
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.kernels.zset.time_windows import WindowingFunction, ticks_of, with_time

__all__ = ["DerivedKey", "Way"]

_PLACE = "__place"


@dataclass(frozen=True, eq=False)
class DerivedKey:
    """A column that is computed from each row of a leaf; it is equal only to itself.

    Attributes
    ----------
    way
        From the leaf to it.
    name
        The column, at the end of the way.
    type
        The type of its values.
    """

    way: Way
    name: str
    type: pa.DataType

    def of(self, rows: pa.Table) -> pa.Array | None:
        """Its values, NULL for rows that a filter removes; None if only Spark can compute it."""
        made = self.way.rows(rows)
        if made is None:
            return None
        places = np.full(rows.num_rows, -1)
        places[made.column(_PLACE).to_numpy()] = np.arange(made.num_rows)
        return made.column(self.name).combine_chunks().take(pa.array(places, mask=places < 0))


@dataclass(frozen=True, eq=False)
class Way:
    """The operations on each row of a leaf, one after the other.

    Attributes
    ----------
    leaf
        The number of the leaf.
    columns
        The columns of the rows that are divided.
    missing
        The columns that these do not have, and which are NULL: they leave out rows that do not count.
    operations
        The operations.
    """

    leaf: int
    columns: pa.Schema
    missing: pa.Schema
    operations: tuple[Computed | WindowingFunction, ...] = ()

    def through(self, fragment: ProgramFragment, names: Sequence[str]) -> Way | None:
        """The path continued through a fragment to these columns; None if it does not compute each
        row alone.
        """
        made = fragment.computed
        if fragment.chosen is not None:
            made = _choosing(fragment.schema, fragment.chosen)
        if made is None or not all(
            isinstance(operation, (RowFilter, ComputedColumns)) for operation in made.operations
        ):
            return None
        made = only(made, names)
        if not self.operations and not self._has(made.columns.values()):
            return None
        return replace(self, operations=(*self.operations, carrying(made, _PLACE)))

    def _has(self, names: Collection[str]) -> bool:
        return {*names} <= {*self.columns.names, *self.missing.names}

    def within(self, node: ProgramNode) -> Way | None:
        """The path continued through an operator; None unless it puts each row into one time window."""
        windows = node.operator.windows
        if windows is None or windows.kind != "TUMBLE":
            return None
        (side,) = node.sides
        names = [name for name in side.schema.names if name not in (ENTER, LEAVE)]
        before = self.through(side, names)
        return None if before is None else replace(before, operations=(*before.operations, windows))

    def rows(self, rows: pa.Table) -> pa.Table | None:
        """The rows at its end, with the places of the leaf's rows that they come from."""
        found = [rows.column(column.name).cast(column.type) for column in self.columns]
        found += [pa.nulls(rows.num_rows, column.type) for column in self.missing]
        places = pa.array(np.arange(rows.num_rows))  # also of rows of which no column is read
        names = [*self.columns.names, *self.missing.names, _PLACE]
        made: pa.Table | None = pa.Table.from_arrays([*found, places], names=names)
        for operation in self.operations:
            if made is None:
                return None
            if isinstance(operation, Computed):
                made = operation.of(made)
            else:
                timed = with_time(made, operation.time)
                _, begin, end = operation.fixed(ticks_of(timed.column(operation.time)))
                made = operation.with_columns(timed, begin, end)
        return made


def _choosing(schema: pa.Schema, chosen: Sequence[str]) -> Computed:
    """A computation that returns columns unchanged, under other names."""
    return Computed(dict(enumerate(chosen)), (), range(len(chosen)), schema)
