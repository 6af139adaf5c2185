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

from windrow.kernels.computed.computed_steps import Computed
from windrow.kernels.stages.held import Times
from windrow.kernels.stages.operated import Operated
from windrow.kernels.stages.stepwise import stepwise
from windrow.kernels.stages.timed import FixedWindows
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER
from windrow.kernels.zset.stage import Keyed

__all__ = ["Ending", "Fragment", "Node", "Otherwise", "Program", "Run"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Ending:
    """What says that keys are over: a column of theirs is below what the watermark is mapped to.

    Attributes
    ----------
    column
        The column.
    origin
        Where the stream stands in the query that is to tell it.
    mapped, kind
        How a watermark is mapped, and the type of the column, as texts by which both are known.
    """

    column: str
    origin: int
    mapped: str
    kind: str


@dataclass(frozen=True, eq=False)
class Fragment:
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
        Where it does no more than that: the columns of its one leaf that it gives.
    computed
        Where it does no more than what can be done in memory: that.
    parts
        Where it gives the rows of several one after the other, each of them in memory: these.
    """

    number: int
    leaves: tuple[int, ...]
    schema: pa.Schema
    reads: Mapping[int, frozenset[str]]
    chosen: tuple[str, ...] | None = None
    computed: Computed | None = None
    parts: tuple[Fragment, ...] = ()

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


Otherwise = Callable[[Fragment, Mapping[int, pa.Table]], pa.Table]
"""Computes a fragment of the rows of its leaves, where it is not computed in memory, or of other values."""


@dataclass(frozen=True, eq=False)
class Node:
    """An operator: what it is given, the leaf of what it gives, and what says that keys are over.

    `result` are the columns that it gives; `appends` says that no row of its sides ever leaves.
    """

    stage: Keyed
    sides: tuple[Fragment, ...]
    result: pa.Schema
    leaf: int
    until: tuple[Ending, ...] = ()
    appends: bool = False

    def operated(self) -> Operated:
        """The operator, which holds nothing yet."""
        schemas = tuple(_without_times(side.schema) for side in self.sides)
        return stepwise(self.stage, schemas, self.result, appends=self.appends)


@dataclass(frozen=True, eq=False)
class Program:
    """Operators, inputs first, and what is made of what they give.

    Attributes
    ----------
    nodes
        The operators.
    outputs
        What the program gives.
    beginning
        A leaf of one row, which comes in the first step; None where nothing reads it.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[Fragment, ...]
    beginning: int | None = None

    @property
    def fragments(self) -> list[Fragment]:
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
    """A program, and what its operators hold.

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
        """Let the operators hold nothing."""
        for operated in self.operators:
            operated.empty()

    @property
    def held(self) -> int:
        """How many rows the operators hold."""
        return sum(operated.held for operated in self.operators)

    @property
    def looked_at(self) -> int:
        """How many rows that are held the operators have looked at in all steps so far."""
        return sum(operated.looked_at for operated in self.operators)

    @property
    def forgets(self) -> bool:
        """Whether all operators let go of what they hold when time has passed; those that hold nothing do."""
        pairs = zip(self.program.nodes, self.operators, strict=True)
        return all(bool(node.until) or isinstance(operated, FixedWindows) for node, operated in pairs)

    def forget(self, is_over: Callable[[Sequence[Ending]], Callable[[pa.Table], Bools]]) -> None:
        """Let go of keys that are over, of which `is_over` makes what says it of rows."""
        for node, operated in zip(self.program.nodes, self.operators, strict=True):
            if node.until:
                operated.forget(is_over(node.until))

    @property
    def state(self) -> list[dict[str, Any]]:
        """What each operator holds."""
        return [operated.state for operated in self.operators]

    def restore(self, state: Sequence[dict[str, Any]]) -> None:
        """Let the operators hold what they held."""
        for operated, held in zip(self.operators, state, strict=True):
            operated.restore(held)

    def step(self, given: Mapping[int, pa.Table], times: Times, origin: int | None = None) -> list[pa.Table]:
        """What changes in each output.

        Parameters
        ----------
        given
            The rows of leaves that enter or leave in the step.
        origin
            In the first step, the first instant of the logs.
        """
        tables, beginning = dict(given), self.program.beginning
        if beginning is not None and origin is not None:
            tables[beginning] = pa.table({ENTER: [origin], LEAVE: [NEVER]})
        for node, operated in zip(self.program.nodes, self.operators, strict=True):
            changes = [side.rows(tables, self.otherwise) for side in node.sides]
            if any(change.num_rows for change in changes):
                tables[node.leaf] = operated.step(list(changes), times)
        return [output.rows(tables, self.otherwise) for output in self.program.outputs]


def _without_times(schema: pa.Schema) -> pa.Schema:
    return pa.schema([column for column in schema if column.name not in (ENTER, LEAVE)])
