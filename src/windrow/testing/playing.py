"""Runs a live query over chosen micro-batches, and kills it after some of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from windrow.spark.live import LivePlan, Memory, Mode
from windrow.spark.live.hosts import micro_batches_of
from windrow.spark.live.micro_batches.host import MicroBatches
from windrow.spark.live.sinks.targets import in_mode

__all__ = ["Frames", "Played", "in_micro_batches"]

Frames = Callable[[MicroBatches], Mapping[str, DataFrame]]
"""The entries of each stream in a micro-batch, as DataFrames with the columns of the arriving entries."""


@dataclass(frozen=True)
class Played:
    """The output of a query.

    Attributes
    ----------
    count
        The number of micro-batches.
    tables
        The rows of each micro-batch with output, by its number.
    late
        The late rows, each with its ``stream``, ``row`` as JSON, ``rowtime``, ``bound`` and ``producer``.
    progress
        As :attr:`windrow.LiveQuery.progress` after the last micro-batch.
    """

    count: int
    tables: Mapping[int, pa.Table]
    late: tuple[dict[str, Any], ...]
    progress: Mapping[str, Any]

    @property
    def steps(self) -> list[list[dict[str, Any]]]:
        """The rows of each micro-batch."""
        nothing: list[dict[str, Any]] = []
        emitted = {number: table.to_pylist() for number, table in self.tables.items()}
        return [emitted.get(number, nothing) for number in range(self.count)]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of all micro-batches."""
        return [row for step in self.steps for row in step]


class _KilledError(Exception):
    """Simulates the end of the process."""


class _Killing(Memory):
    """A sink that kills the process after some micro-batches, each once."""

    def __init__(self, after: Collection[int]) -> None:
        super().__init__()
        self._after = set(after)

    def write_table(self, rows: pa.Table, number: int) -> int:
        """Store the rows of a micro-batch."""
        count = super().write_table(rows, number)
        if number in self._after:
            self._after.discard(number)
            raise _KilledError
        return count


def in_micro_batches(
    plan: LivePlan,
    folder: Path,
    steps: Collection[Frames],
    kills: Collection[int] = (),
    envelope: str | None = "diff",
    *,
    mode: Mode = "changelog",
    key: Sequence[str] | None = None,
    on_malformed: str = "fail",
) -> Played:
    """The output of a query, micro-batch by micro-batch.

    Parameters
    ----------
    folder
        The folder of the checkpoint.
    steps
        The entries of each micro-batch.
    kills
        The micro-batches after whose output the process is killed; another process runs them again.
    envelope
        The form of the changes; None in another mode.
    mode, key, on_malformed
        As for :meth:`windrow.relation.Relation.start`.
    """
    sink = _Killing(kills)

    def started() -> MicroBatches:
        taking, form = in_mode(sink, plan, mode, key, envelope, folder)
        return micro_batches_of(plan, taking, folder, form, "keep", on_malformed)

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
        emitted = dict(sorted(sink.batches.items()))
        return Played(len(steps), emitted, tuple(late), dict(taking.progress))
    finally:
        taking.close()


def _rows_of(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(file).drop_columns(["batch"]).to_pylist()
    return rows
