"""A program: operators over time-varying relations, and what is computed between them, as data.

Changes arrive at *leaves*; the output of an operator is a leaf again. Between leaves and operators are
*fragments*. A fragment computes each row by itself, or the rows of one piece of time by themselves. So a
program runs anywhere: on the driver, and in tasks, which are sent it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.computed.computed_operations import Computed
from windrow.kernels.incremental.operated import Operated
from windrow.kernels.incremental.stepwise import stepwise
from windrow.kernels.incremental.timed import FixedWindows
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER

__all__ = ["Ending", "Otherwise", "Program", "ProgramFragment", "ProgramNode", "Run"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Ending:
    """What says that keys are over: a column of theirs is below what the watermark is mapped to.

    Attributes
    ----------
    column
        The column.
    origin
        Where the stream stands in the query, for errors.
    mapped, kind
        How a watermark is mapped, and the type of the column, as texts by which both are known.
    """

    column: str
    origin: int
    mapped: str
    kind: str


@dataclass(frozen=True, eq=False)
class ProgramFragment:
    """What is computed from the rows of leaves.

    Attributes
    ----------
    number
        By which it is known to whoever computes what is not computed here.
    leaves
        The numbers of those that it reads.
    schema
        Its columns.
    reads
        Of each leaf, the columns that it needs.
    chosen
        Where it does no more than that: the columns of its one leaf that it passes on.
    computed
        Where it does no more than what can be done in memory: that.
    parts
        Where it has the rows of several one after the other, each of them in memory: these.
    """

    number: int
    leaves: tuple[int, ...]
    schema: pa.Schema
    reads: Mapping[int, frozenset[str]]
    chosen: tuple[str, ...] | None = None
    computed: Computed | None = None
    parts: tuple[ProgramFragment, ...] = ()

    @property
    def is_in_memory(self) -> bool:
        """Whether it is computed in memory, but for values of which that cannot be said."""
        return self.chosen is not None or self.computed is not None or bool(self.parts)

    def rows(self, tables: Mapping[int, pa.Table], otherwise: Otherwise) -> pa.Table:
        """What it makes of the rows of its leaves."""
        read = {number: tables[number] for number in self.leaves if number in tables}
        if not any(table.num_rows for table in read.values()):
            return self.schema.empty_table()
        made = self._made(read)
        if made is None:
            made = otherwise(self, read)
        return made.cast(self.schema).combine_chunks()

    def _made(self, read: Mapping[int, pa.Table]) -> pa.Table | None:
        """What is made in memory; None where that is not all there is to it."""
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
"""Computes a fragment of the rows of its leaves, where it is not computed in memory, or of other values."""


@dataclass(frozen=True, eq=False)
class ProgramNode:
    """An operator: its inputs, the leaf of its output, and what says that keys are closed.

    `result` are the columns of its output; `appends` says that no row of its sides ever leaves.
    """

    operator: Keyed
    sides: tuple[ProgramFragment, ...]
    result: pa.Schema
    leaf: int
    until: tuple[Ending, ...] = ()
    appends: bool = False

    def operated(self) -> Operated:
        """The operator, without state."""
        schemas = tuple(_without_times(side.schema) for side in self.sides)
        return stepwise(self.operator, schemas, self.result, appends=self.appends)


@dataclass(frozen=True, eq=False)
class Program:
    """Operators, inputs first, and what is made of their output.

    Attributes
    ----------
    nodes
        The operators.
    outputs
        The output of the program.
    beginning
        A leaf of one row, which comes in the first micro-batch; None where nothing reads it.
    """

    nodes: tuple[ProgramNode, ...]
    outputs: tuple[ProgramFragment, ...]
    beginning: int | None = None

    @property
    def fragments(self) -> list[ProgramFragment]:
        """All that is computed."""
        return [*(side for node in self.nodes for side in node.sides), *self.outputs]

    def read(self, leaf: int) -> frozenset[str]:
        """The columns of a leaf that are read."""
        return frozenset[str]().union(*(each.reads.get(leaf, frozenset()) for each in self.fragments))

    @property
    def endings(self) -> list[Ending]:
        """What says that keys of operators are over."""
        return [ending for node in self.nodes for ending in node.until]


@dataclass(eq=False)
class Run:
    """A program, and the state of its operators.

    Parameters
    ----------
    program
        The program.
    otherwise
        Computes the fragments that are not computed in memory.
    """

    program: Program
    otherwise: Otherwise
    operators: list[Operated] = field(init=False)

    def __post_init__(self) -> None:
        self.operators = [node.operated() for node in self.program.nodes]

    def empty(self) -> None:
        """Drop the state of the operators."""
        for operated in self.operators:
            operated.empty()

    @property
    def retained(self) -> int:
        """How many rows the operators retain."""
        return sum(operated.retained for operated in self.operators)

    @property
    def looked_at(self) -> int:
        """How many retained rows the operators have looked at so far."""
        return sum(operated.looked_at for operated in self.operators)

    @property
    def forgets(self) -> bool:
        """Whether all operators drop their state when time has passed, or have none."""
        pairs = zip(self.program.nodes, self.operators, strict=True)
        return all(bool(node.until) or isinstance(operated, FixedWindows) for node, operated in pairs)

    def forget(self, is_over: Callable[[Sequence[Ending]], Callable[[pa.Table], Bools]]) -> None:
        """Drop the state of closed keys; `is_over` says how to find them among rows."""
        for node, operated in zip(self.program.nodes, self.operators, strict=True):
            if node.until:
                operated.forget(is_over(node.until))

    @property
    def state(self) -> list[dict[str, Any]]:
        """The state of each operator."""
        return [operated.state for operated in self.operators]

    def restore(self, state: Sequence[dict[str, Any]]) -> None:
        """Restore the state of the operators."""
        for operated, retained in zip(self.operators, state, strict=True):
            operated.restore(retained)

    def advance(
        self, incoming: Mapping[int, pa.Table], times: Times, origin: int | None = None
    ) -> list[pa.Table]:
        """What changes in each output.

        Parameters
        ----------
        incoming
            The rows of leaves that enter or leave in the micro-batch.
        origin
            In the first micro-batch, the first instant of the logs.
        """
        tables, beginning = dict(incoming), self.program.beginning
        if beginning is not None and origin is not None:
            tables[beginning] = pa.table({ENTER: [origin], LEAVE: [NEVER]})
        for node, operated in zip(self.program.nodes, self.operators, strict=True):
            changes = [side.rows(tables, self.otherwise) for side in node.sides]
            if any(change.num_rows for change in changes):
                tables[node.leaf] = operated.advance(list(changes), times)
        return [output.rows(tables, self.otherwise) for output in self.program.outputs]


def _without_times(schema: pa.Schema) -> pa.Schema:
    return pa.schema([column for column in schema if column.name not in (ENTER, LEAVE)])
