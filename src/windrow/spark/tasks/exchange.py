"""The exchanges of a stage: rows travel as packed Arrow chunks, and one task gets each cell.

    columns ─▶ pack ─▶ exchange ─▶ whole                                           whole partitions
                                ├▶ alone                       slices that were dealt the rows around them
                                └▶ summarise ─▶ exchange ─▶ share ─▶ … ─▶ finish   with slices of long ones

What each step does is :mod:`windrow.kernels.tasks.task_steps`; what a cell is,
:mod:`windrow.kernels.packing.cells`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from windrow.errors import MARK, WindrowError
from windrow.kernels.packing.messages import CELL, CHUNK, KIND, NUMBER
from windrow.kernels.tasks.task_stage import TaskStage
from windrow.kernels.tasks.task_steps import steps
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.scan.file_scan import tasks_of
from windrow.spark.tasks.to_cells import to_cells

__all__ = ["MESSAGES", "as_told", "in_worker", "run_stage"]

MESSAGES = f"{CELL} int, {KIND} int, {NUMBER} bigint, {CHUNK} binary"
Step = Callable[[TaskStage, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def run_stage(
    rows: DataFrame, stage: TaskStage, result: StructType, columns: tuple[str, ...] | None = None
) -> DataFrame:
    """The kernel's result over the rows, with the columns that `result` has.

    If their names are others than the kernel's, `columns` has the kernel's name for each.
    """
    cells = stage.layout.cells
    if stage.scan is None:
        packed = map_in_arrow(rows, _task(stage, "pack"), MESSAGES)
    else:
        packed = map_in_arrow(tasks_of(rows.sparkSession, stage.scan), _task(stage, "read"), MESSAGES)
    stage = replace(stage, scan=None)  # which files there are, only those who read them need to know
    chunks = to_cells(packed, cells)
    *others, last = steps(stage)
    for step in others:
        chunks = to_cells(map_in_arrow(chunks, _task(stage, step), MESSAGES), cells)
    return map_in_arrow(chunks, _task(stage, last, columns, result.names), result)


def _task(
    stage: TaskStage, step: str, columns: tuple[str, ...] | None = None, names: list[str] | None = None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A step as Spark's workers call it; it gives these columns under these names."""

    def run(batches: Iterable[pa.RecordBatch], number: int) -> Iterator[pa.RecordBatch]:
        from windrow.kernels.tasks.task_steps import STEPS

        task = (number,) if step in ("pack", "read") else ()
        for batch in STEPS[step](stage, batches, *task):
            yield batch if columns is None else batch.select(columns).rename_columns(names)

    return in_worker(run, stage.plan.sql)


def in_worker(
    step: Callable[[Iterable[pa.RecordBatch], int], Iterator[pa.RecordBatch]], sql: str | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark's workers call for a step, which is told the number of its task."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        try:
            context = TaskContext.get()
            assert context is not None
            yield from step(batches, context.partitionId())
        except WindrowError as error:
            raise as_told(error, sql) from error

    return run


def as_told(error: WindrowError, sql: str | None) -> RuntimeError:
    """An error of a task as the driver knows it again, with the statement that it is of."""
    data = {key: getattr(error, key) for key in ("message", "condition", "sqlstate", "hint")}
    data |= {"sql": sql, "span": [error.span.start, error.span.stop] if error.span else None}
    return RuntimeError(MARK + json.dumps(data))
