"""The second part of a query in a bucket: operators over the rows of crossing leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.kernels.incremental import Program, Run, Times, UnmatchedError, over_panes
from windrow.spark.live.executors.bucket_state import Moment, not_here
from windrow.spark.live.executors.bucket_task import TaskStream, frontier_of
from windrow.spark.live.executors.buckets.emitting import moved_marks, reached_by, run_of
from windrow.spark.live.executors.buckets.windowed import as_output
from windrow.spark.live.operators.emit_program import EmitProgram, EmitRun
from windrow.spark.live.operators.incremental_plan import unstable

__all__ = ["EmitsOnward", "WindowsOnward"]


@dataclass(frozen=True, eq=False)
class WindowsOnward:
    """The second part of CQL over windows."""

    program: Program

    def begin(self, streams: Sequence[TaskStream]) -> _Windowed:
        """It without state."""
        return _Windowed(streams, Run(over_panes(self.program), not_here))


@dataclass
class _Windowed:
    """Operators, the frontier up to which they have advanced, and the first instant of all rows."""

    streams: Sequence[TaskStream]
    run: Run
    frontier: int | None = None
    origin: int | None = None

    @property
    def retained(self) -> int:
        return self.run.retained

    @property
    def due(self) -> int | None:
        return None

    def saved(self) -> Mapping[str, Any]:
        return {"frontier": self.frontier, "origin": self.origin, "operators": self.run.state}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.frontier, self.origin = state["frontier"], state["origin"]
        self.run.restore(state["operators"])

    def advance(self, rows: Mapping[int, pa.Table], moment: Moment, first: int | None) -> pa.Table | None:
        until = frontier_of(self.streams, moment.marks)
        self.origin = first if self.origin is None else self.origin
        if until is None or self.origin is None or (self.frontier is not None and until <= self.frontier):
            return None
        times = Times(self.frontier, until)
        try:
            (found,) = self.run.advance(rows, times, self.origin if times.since is None else None)
        except UnmatchedError as error:
            raise unstable(error) from None
        self.frontier = until
        return as_output(found, times)


@dataclass(frozen=True, eq=False)
class EmitsOnward:
    """The second part of a query with EMIT.

    Attributes
    ----------
    program
        It.
    mapping
        The program that maps the changes of a watermark; None if it is not needed.
    """

    program: EmitProgram
    mapping: Program | None

    def begin(self, streams: Sequence[TaskStream]) -> _Emitting:
        """It without state."""
        return _Emitting(self, streams, run_of(self.program, self.mapping))


@dataclass
class _Emitting:
    """Operators, the processing times of their first and last micro-batch, and up to which rowtime streams
    were complete by then.
    """

    work: EmitsOnward
    streams: Sequence[TaskStream]
    run: EmitRun
    frontier: int | None = None
    known: dict[str, Marks] = field(default_factory=dict)

    @property
    def retained(self) -> int:
        return self.run.retained

    @property
    def due(self) -> int | None:
        return self.run.due

    def saved(self) -> Mapping[str, Any]:
        if self.work.program.forgets:
            self.run.forget(reached_by(self.work.program, self.known))
        return {"frontier": self.frontier, "known": self.known, "run": self.run.state}

    def restore(self, state: Mapping[str, Any]) -> None:
        known = state["known"].items()
        self.frontier, self.known = state["frontier"], {name: [*map(tuple, marks)] for name, marks in known}
        self.run.restore(state["run"])

    def advance(
        self,
        rows: Mapping[int, pa.Table],
        moment: Moment,
        first: int | None,  # noqa: ARG002 - all buckets begin in the same micro-batch
    ) -> pa.Table | None:
        if self.frontier is None and not moment.has_entries:  # processing time begins with the first entry
            return None
        moved_marks(self.streams, self.known, moment)
        marks, origin = (
            reached_by(self.work.program, self.known),
            moment.now if self.frontier is None else None,
        )
        try:
            found = self.run.advance_leaves(rows, marks, (self.frontier, moment.now), origin)
        except UnmatchedError as error:
            raise unstable(error) from None
        self.frontier = moment.now
        self.known = {name: history[-1:] for name, history in self.known.items()}
        return found
