"""SELECT over one window, or over two that are joined, computed in each micro-batch for affected keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.incremental.bracket_windows.affected_keys import group, join, rows_of
from windrow.kernels.incremental.bracket_windows.membership import BracketWindow
from windrow.kernels.incremental.grouping import goes_on
from windrow.kernels.incremental.operated import Operated
from windrow.kernels.incremental.stepwise import stepwise
from windrow.kernels.incremental.timed_rows import TimedRows, Times
from windrow.kernels.packing.shards import Layout
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE

__all__ = ["WindowInput", "WindowOperator"]


@dataclass(frozen=True)
class WindowInput:
    """A window of a live stream, and its retained rows.

    Attributes
    ----------
    name
        The name of its state, in the checkpoint.
    window
        When rows enter and leave.
    passes
        The column of the condition on rows; None if there is no condition.
    marked
        Keys by which rows are looked up.
    schema
        The schema of retained rows, including the rowtime.
    """

    name: str
    window: BracketWindow
    passes: str | None
    marked: tuple[tuple[str, ...], ...]
    schema: pa.Schema


@dataclass(frozen=True)
class WindowOperator:
    """Rows of a window, groups of them, or pairs of rows of two windows; it is sent to tasks.

    Attributes
    ----------
    inputs
        Its one or two windows.
    outputs
        The columns of its output, in order: the window of each, and its name there.
    key, aggregates
        For groups: their keys, and the aggregates by the names of their columns; None without groups.
    joined
        For two windows: the equal columns.
    """

    inputs: tuple[WindowInput, ...]
    outputs: tuple[tuple[int, str], ...] = ()
    key: tuple[str, ...] = ()
    aggregates: tuple[tuple[str, AggregateSpec], ...] | None = None
    joined: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    @property
    def chosen(self) -> list[str]:
        """The names of the columns of `outputs` in the output of :meth:`rows`."""
        return [name if self.joined is None else f"{at}{name}" for at, name in self.outputs]

    def running_groups(self) -> Operated | None:
        """An operator that updates groups of rows that never leave their window, and retains no row; None for
        others.
        """
        if len(self.inputs) != 1:
            return None
        (only,), aggregates = self.inputs, self.aggregates
        if aggregates is None or only.window.length is not None or only.window.rows is not None:
            return None
        keyed = Keyed("group", self.key, Layout(1), aggregates=aggregates)
        if not goes_on(keyed, only.schema, appends=True):
            return None
        kinds = [(name, spec.result_type) for name, spec in aggregates]
        keys = [only.schema.field(name) for name in self.key]
        times = [(ENTER, pa.int64()), (LEAVE, pa.int64())]
        return stepwise(keyed, (only.schema,), pa.schema([*keys, *kinds, *times]), appends=True)

    def rows(self, retained: Sequence[TimedRows], times: Times, groups: Operated | None = None) -> pa.Table:
        """The rows that enter and leave in a micro-batch: its columns, `ENTER` and `LEAVE`.

        Parameters
        ----------
        retained
            The rows that each window retains.
        groups
            Updates the groups, as :meth:`running_groups` has it.
        """
        (first, *_), passes = retained, self.inputs[0].passes
        if self.joined is not None:
            left, right = (
                [(name, f"{side}{name}") for at, name in dict.fromkeys(self.outputs) if at == side]
                for side in (0, 1)
            )
            conditions = (passes, self.inputs[1].passes)
            return join((first, retained[1]), times, self.joined, (left, right), conditions)
        if self.aggregates is None:
            return rows_of(first, times, list(dict.fromkeys(self.chosen)), passes)
        if groups is not None:
            return groups.advance([rows_of(first, times, self.inputs[0].schema.names, passes)], times)
        return group(first, times, self.key, self.aggregates, passes)
