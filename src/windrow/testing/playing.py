"""Takes what arrives in steps, as a live query does, cut anywhere and killed after some of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from windrow.spark.live import LivePlan, Memory, Mode
from windrow.spark.live.hosts import steps_of
from windrow.spark.live.micro_batches.steps import Steps
from windrow.spark.live.sinks.targets import in_mode

__all__ = ["Frames", "Played", "in_steps"]

Frames = Callable[[Steps], Mapping[str, DataFrame]]
"""The entries of each stream in a step, as DataFrames with the columns of what arrives."""


@dataclass(frozen=True)
class Played:
    """What a query has given.

    Attributes
    ----------
    count
        How many steps there were.
    tables
        The rows of those that gave any, by their number.
    late
        The late rows, each with its ``stream``, ``row`` as JSON, ``rowtime``, ``bound`` and ``producer``.
    progress
        As :attr:`windrow.LiveQuery.progress` after the last step.
    """

    count: int
    tables: Mapping[int, pa.Table]
    late: tuple[dict[str, Any], ...]
    progress: Mapping[str, Any]

    @property
    def steps(self) -> list[list[dict[str, Any]]]:
        """The rows of each step."""
        nothing: list[dict[str, Any]] = []
        given = {number: table.to_pylist() for number, table in self.tables.items()}
        return [given.get(number, nothing) for number in range(self.count)]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of all steps."""
        return [row for step in self.steps for row in step]


class _KilledError(Exception):
    """Stands for the end of the process."""


class _Killing(Memory):
    """A sink after which, at some steps, the process ends the first time."""

    def __init__(self, after: Collection[int]) -> None:
        super().__init__()
        self._after = set(after)

    def write_table(self, rows: pa.Table, number: int) -> int:
        """Keep the rows of a step."""
        count = super().write_table(rows, number)
        if number in self._after:
            self._after.discard(number)
            raise _KilledError
        return count


def in_steps(
    plan: LivePlan,
    folder: Path,
    steps: Collection[Frames],
    kills: Collection[int] = (),
    envelope: str | None = "diff",
    *,
    mode: Mode = "changelog",
    key: Sequence[str] | None = None,
) -> Played:
    """What a query gives, step by step.

    Parameters
    ----------
    folder
        Of the checkpoint.
    steps
        What arrives in each.
    kills
        The steps after whose output the process ends: they are taken again by another.
    envelope
        The form of the changes; None in another mode.
    mode, key
        As :meth:`windrow.relation.Relation.start` has them.
    """
    sink = _Killing(kills)

    def started() -> Steps:
        taking, form = in_mode(sink, plan, mode, key, envelope, folder)
        return steps_of(plan, taking, folder, form, "keep")

    taking = started()
    try:
        for number, frames in enumerate(steps):
            entries = frames(taking)
            try:
                taking.take(taking.input(entries), number)
            except _KilledError:
                taking.close()
                taking = started()
                taking.take(taking.input(entries), number)
        late = [row for file in taking.side_files("late") for row in _rows_of(file)]
        given = dict(sorted(sink.batches.items()))
        return Played(len(steps), given, tuple(late), dict(taking.progress))
    finally:
        taking.close()


def _rows_of(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(file).drop_columns(["batch"]).to_pylist()
    return rows
