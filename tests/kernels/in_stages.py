"""The steps of a stage in memory: what tasks tell each other is exchanged by lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from windrow.kernels.packing.messages import CELL
from windrow.kernels.tasks.fragment import Fragment
from windrow.kernels.tasks.task_phases import PHASES, phases

__all__ = ["exchanged", "run", "run_of_files"]


def exchanged(
    stage: Fragment, tasks: list[Iterable[pa.RecordBatch]], phase: str
) -> list[list[pa.RecordBatch]]:
    """What every cell is given after a step of all tasks, in an arbitrary order."""
    given: list[list[pa.RecordBatch]] = [[] for _ in range(stage.layout.shards)]
    for number, batches in reversed(list(enumerate(tasks))):
        task = (number,) if phase == "pack" else ()
        for batch in PHASES[phase](stage, batches, *task):
            for at, cell in enumerate(batch.column(CELL).to_pylist()):
                given[cell].append(batch.slice(at, 1))
    return given


def run(stage: Fragment, tables: list[pa.Table]) -> Iterator[dict[str, object]]:
    """The rows that a stage gives, where each table is packed by a task of its own."""
    return _run(stage, [table.to_batches(max_chunksize=3) for table in tables])


def run_of_files(stage: Fragment, count: int, first: int = 0) -> Iterator[dict[str, object]]:
    """The rows that a stage gives, where so many tasks read files, from this one on."""
    return _run(stage, [[pa.record_batch({"task": [number]})] for number in range(first, first + count)])


def _run(stage: Fragment, tasks: list[Iterable[pa.RecordBatch]]) -> Iterator[dict[str, object]]:
    *others, last = phases(stage)
    for phase in others:
        tasks = list(exchanged(stage, tasks, phase))
    for batches in tasks:
        for batch in PHASES[last](stage, batches):
            yield from batch.to_pylist()
