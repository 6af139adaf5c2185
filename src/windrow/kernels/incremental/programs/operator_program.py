"""A program: operators over time-varying relations, and the computations between them, as data.

Changes arrive at *leaves*; the output of an operator is another leaf. Between leaves and operators are
*fragments*. A fragment computes each row alone, or the rows of each time interval alone. So a program runs
anywhere: on the driver, and in tasks, to which it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.incremental.operated import Operated
from windrow.kernels.incremental.paned_groups import PanedGroups, Panes
from windrow.kernels.incremental.programs.program_fragment import Otherwise, ProgramFragment
from windrow.kernels.incremental.stepwise import stepwise
from windrow.kernels.incremental.timed import FixedWindows
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.incremental.tumbling_groups import TumblingGroups
from windrow.kernels.operator_state import of_other_operators
from windrow.kernels.zset.keyed_operator import OF_PARTNERS, Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER

__all__ = ["Ending", "Program", "ProgramNode", "Run"]

Bools = npt.NDArray[np.bool_]

_OPERATOR = "operator"
"""The name of an operator beside its state; earlier versions did not write it."""


@dataclass(frozen=True)
class Ending:
    """The condition that closes keys: a column of theirs is below the mapped watermark.

    Attributes
    ----------
    column
        The column.
    origin
        The place of the stream in the query, for errors.
    mapped, kind
        The mapping of a watermark, and the type of the column, as texts that identify both.
    """

    column: str
    origin: int
    mapped: str
    kind: str


@dataclass(frozen=True, eq=False)
class ProgramNode:
    """An operator: its inputs, the leaf of its output, and the conditions that close its keys.

    `result` are the columns of its output; `appends` says that no row of its sides ever leaves. `panes` and
    `tumbling` are for groups over windows: panes of sliding ones, and the length of tumbling ones.
    """

    operator: Keyed
    sides: tuple[ProgramFragment, ...]
    result: pa.Schema
    leaf: int
    until: tuple[Ending, ...] = ()
    appends: bool = False
    panes: Panes | None = None
    tumbling: int | None = None

    def operated(self, otherwise: Otherwise) -> Operated:
        """The operator, without state."""
        schemas = tuple(_without_times(side.schema) for side in self.sides)
        if self.panes is not None:
            return PanedGroups.over(self.panes, self.operator, self.result, otherwise)
        if self.tumbling is not None:
            return TumblingGroups(self.operator, schemas, self.result, length=self.tumbling)
        return stepwise(self.operator, schemas, self.result, appends=self.appends)


@dataclass(frozen=True, eq=False)
class Program:
    """Operators, inputs first, and the computations on their output.

    Attributes
    ----------
    nodes
        The operators.
    outputs
        The output of the program.
    beginning
        A leaf of one row, which arrives in the first micro-batch; None if nothing reads it.
    """

    nodes: tuple[ProgramNode, ...]
    outputs: tuple[ProgramFragment, ...]
    beginning: int | None = None

    @property
    def fragments(self) -> list[ProgramFragment]:
        """All fragments."""
        return [*(side for node in self.nodes for side in node.sides), *self.outputs]

    def read(self, leaf: int) -> frozenset[str]:
        """The columns of a leaf that are read."""
        return frozenset[str]().union(*(each.reads.get(leaf, frozenset()) for each in self.fragments))

    @property
    def endings(self) -> list[Ending]:
        """The conditions that close keys of operators."""
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
        self.operators = [node.operated(self.otherwise) for node in self.program.nodes]

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
        """How many retained rows the operators have read so far."""
        return sum(operated.looked_at for operated in self.operators)

    @property
    def forgets(self) -> bool:
        """Whether all operators drop their state as time passes, or have none."""
        pairs = zip(self.program.nodes, self.operators, strict=True)
        return all(bool(node.until) or isinstance(operated, FixedWindows) for node, operated in pairs)

    def forget(self, is_over: Callable[[Sequence[Ending]], Callable[[pa.Table], Bools]]) -> None:
        """Drop the state of closed keys; `is_over` finds their rows."""
        for node, operated in zip(self.program.nodes, self.operators, strict=True):
            if node.until:
                operated.forget(is_over(node.until))

    def drop(self, rows: Mapping[int, pa.Table]) -> None:
        """Drop rows of leaves from the state of the operators that read them: they change nothing any more.

        Of groups, they are all rows of theirs.
        """
        for node, operated in zip(self.program.nodes, self.operators, strict=True):
            for at, side in enumerate(node.sides):
                if rows.keys() & {*side.leaves}:
                    operated.drop(at, side.rows(rows, self.otherwise))

    @property
    def state(self) -> list[dict[str, Any]]:
        """The state of each operator, with its name."""
        pairs = zip(self.program.nodes, self.operators, strict=True)
        return [{**operated.state, _OPERATOR: node.operator.name} for node, operated in pairs]

    def restore(self, state: Sequence[dict[str, Any]]) -> None:
        """Restore the state of the operators.

        Raises
        ------
        InputError
            ``CHECKPOINT_VERSION`` for the state of other operators, as an earlier version may have had.
        """
        names = [node.operator.name for node in self.program.nodes]
        known = [retained.get(_OPERATOR) for retained in state]
        has_names = None not in known
        if names != known if has_names else len(names) != len(known) or {*names} & {*OF_PARTNERS}:
            raise of_other_operators()
        for operated, retained in zip(self.operators, state, strict=True):
            operated.restore(retained)

    def advance(
        self, incoming: Mapping[int, pa.Table], times: Times, origin: int | None = None
    ) -> list[pa.Table]:
        """The changes of each output.

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
            if any(change.num_rows for change in changes) or operated.is_due(times):
                tables[node.leaf] = operated.advance(list(changes), times)
        return [output.rows(tables, self.otherwise) for output in self.program.outputs]


def _without_times(schema: pa.Schema) -> pa.Schema:
    return pa.schema([column for column in schema if column.name not in (ENTER, LEAVE)])
