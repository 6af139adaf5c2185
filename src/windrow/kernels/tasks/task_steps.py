"""The steps of a stage as its tasks run them: messages in, results or messages out.

Messages are :mod:`windrow.kernels.packing.messages`. Whole partitions take one step, :func:`whole`, and so do
slices that were dealt all the rows around them that they can need, :func:`alone`. Other slices take several,
with an exchange after each but the last: :mod:`windrow.kernels.tasks.window_steps`,
:mod:`windrow.kernels.tasks.match_steps`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from windrow.kernels import slices
from windrow.kernels.packing import chunks
from windrow.kernels.packing.chunks import joined, unpack
from windrow.kernels.packing.messages import MessageKind
from windrow.kernels.patterns.pattern_plan import MatchPlan
from windrow.kernels.patterns.pattern_slices import matches_alone
from windrow.kernels.tasks import match_steps, window_steps
from windrow.kernels.tasks.held_messages import cells_of
from windrow.kernels.tasks.partitions import by_partitions
from windrow.kernels.tasks.task_stage import Batches, TaskStage

__all__ = ["STEPS", "steps"]


def pack(stage: TaskStage, batches: Batches, task: int = 0) -> Iterator[pa.RecordBatch]:
    """Rows as chunks of cells: see :func:`windrow.kernels.packing.chunks.pack`."""
    return chunks.pack(batches, stage.layout, stage.partition, stage.order, stage.halo, task)


def read(stage: TaskStage, batches: Batches, task: int = 0) -> Iterator[pa.RecordBatch]:
    """Rows that tasks read themselves as chunks of cells, from rows (task)."""
    scan = stage.scan
    assert scan is not None
    numbers = (number for batch in batches for number in batch.column(0).to_pylist())
    return pack(stage, (rows for number in numbers for rows in scan.read(number)), task)


def whole(stage: TaskStage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results of whole partitions."""
    for held in cells_of(batches, stage):
        rows = unpack(held.in_order(MessageKind.ROWS))
        if rows is not None:
            yield from by_partitions(stage, rows)


def alone(stage: TaskStage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results of whole partitions, and of slices that have all the rows around them that they need."""
    assert stage.halo is not None
    for held in cells_of(batches, stage):
        rows = unpack(held.in_order(MessageKind.ROWS))
        if rows is None:
            continue
        if not held.is_slice:
            yield from by_partitions(stage, rows)
            continue
        own = stage.sorted_slice(rows, stage.coded)
        # every task has sent as many as are needed of its own, and all that are in reach
        before, after = (
            None if some is None else stage.sorted_slice(some, stage.coded)
            for some in (unpack(held.in_order(MessageKind.BEFORE)), unpack(held.in_order(MessageKind.AFTER)))
        )
        before = None if before is None else before.slice(max(before.num_rows - stage.halo.before, 0))
        if after is not None and stage.halo.reach is None:
            after = after.slice(0, stage.halo.after)
        around = joined([part for part in (before, own, after) if part is not None])
        assert around is not None
        first = 0 if before is None else before.num_rows
        if isinstance(stage.plan, MatchPlan):
            yield from matches_alone(stage.plan, around, first, own.num_rows)
        else:
            yield from slices.finish_alone(stage.plan, around, first, own.num_rows)


def steps(stage: TaskStage) -> list[str]:
    """The steps after packing, by their names in `STEPS`, with an exchange after each but the last."""
    if not stage.layout.sequences:
        return ["whole"]
    if stage.halo is not None:
        return ["alone"]
    if isinstance(stage.plan, MatchPlan):
        return ["guess", "follow", "gather", "give"]
    between = ["chain", "compose"] if slices.needs_chain(stage.windows) else []
    return ["summarise", "share", *between, "finish"]


#: Every step by its name.
STEPS = {
    step.__name__: step
    for step in (
        pack, read, whole, alone,
        window_steps.summarise, window_steps.share, window_steps.chain, window_steps.compose,
        window_steps.finish,
        match_steps.guess, match_steps.follow, match_steps.gather, match_steps.give,
    )
}  # fmt: skip
