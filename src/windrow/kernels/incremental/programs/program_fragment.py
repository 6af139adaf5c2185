"""A computation between the operators of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from windrow.kernels.computed.computed_operations import Computed

__all__ = ["Otherwise", "ProgramFragment"]


@dataclass(frozen=True, eq=False)
class ProgramFragment:
    """A computation on the rows of leaves.

    Attributes
    ----------
    number
        The number by which a fragment is identified when it is not computed here.
    leaves
        The numbers of the leaves that it reads.
    schema
        Its columns.
    reads
        The columns that it needs of each leaf.
    chosen
        Where it does no more than that: the columns of its one leaf that it passes on.
    computed
        The computation in memory, if that is all that it does.
    parts
        The parts in memory whose rows it concatenates, if that is what it does.
    only_spark
        What of it only Spark computes, as far as that is known.
    """

    number: int
    leaves: tuple[int, ...]
    schema: pa.Schema
    reads: Mapping[int, frozenset[str]]
    chosen: tuple[str, ...] | None = None
    computed: Computed | None = None
    parts: tuple[ProgramFragment, ...] = ()
    only_spark: str = ""

    @property
    def is_in_memory(self) -> bool:
        """Whether it is computed in memory, except for values that only Spark computes."""
        return self.chosen is not None or self.computed is not None or bool(self.parts)

    def rows(self, tables: Mapping[int, pa.Table], otherwise: Otherwise) -> pa.Table:
        """Its result for the rows of its leaves."""
        read = {number: tables[number] for number in self.leaves if number in tables}
        if not any(table.num_rows for table in read.values()):
            return self.schema.empty_table()
        made = self._made(read)
        if made is None:
            made = otherwise(self, read)
        return made.cast(self.schema).combine_chunks()

    def _made(self, read: Mapping[int, pa.Table]) -> pa.Table | None:
        """The result in memory; None if that is not the whole result."""
        if not self.is_in_memory:
            return None
        if self.parts:
            return self._of_parts(read)
        ((leaf, table),) = read.items()
        if self.chosen is not None:
            return table.select(self.chosen).rename_columns(self.schema.names)
        assert self.computed is not None
        return self.computed.of(table.select([*self.reads[leaf]]))

    def _of_parts(self, read: Mapping[int, pa.Table]) -> pa.Table | None:
        made = []
        for part in self.parts:
            own = {leaf: read[leaf] for leaf in part.leaves if leaf in read and read[leaf].num_rows}
            table = part._made(own) if own else self.schema.empty_table()
            if table is None:
                return None
            made.append(table.cast(self.schema))
        return pa.concat_tables(made)


Otherwise = Callable[[ProgramFragment, Mapping[int, pa.Table]], pa.Table]
"""Computes a fragment for the rows of its leaves, if it cannot be computed in memory or for such values."""
