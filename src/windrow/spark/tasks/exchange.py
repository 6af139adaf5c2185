"""The exchanges of a fragment: rows are sent as packed Arrow chunks, and each shard goes to one task.

    files ─▶ read_shards                            whole partitions, and slices with their halo
    columns ─▶ pack ─▶ exchange ─▶ whole                                           whole partitions
                                ├▶ alone                                           slices with their halo
                                └▶ summarise ─▶ exchange ─▶ share ─▶ … ─▶ finish   slices of long partitions

The phases: :mod:`windrow.kernels.tasks.task_phases`; shards: :mod:`windrow.kernels.packing.shards`.
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
from windrow.kernels.tasks.fragment import Fragment
from windrow.kernels.tasks.task_phases import phases
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.scan.file_scan import tasks_of
from windrow.spark.tasks.to_shards import to_shards

__all__ = ["MESSAGES", "as_runtime_error", "in_worker", "run_fragment"]

MESSAGES = f"{CELL} int, {KIND} int, {NUMBER} bigint, {CHUNK} binary"


def run_fragment(
    rows: DataFrame, fragment: Fragment, result: StructType, columns: tuple[str, ...] | None = None
) -> DataFrame:
    """Run the kernel over the rows; the result has the columns of `result`.

    If their names differ from the kernel's, `columns` has the kernel's name for each.
    """
    scan, shards = fragment.scan, fragment.layout.shards
    if scan is None:
        given = rows
    else:
        given = tasks_of(rows.sparkSession, shards if fragment.reads_shards else len(scan.tasks))
    *others, last = phases(fragment)
    for phase in others:
        given = to_shards(map_in_arrow(given, _task(fragment, phase), MESSAGES), shards)
        fragment = replace(fragment, scan=None)  # only the first phase needs the list of files
    return map_in_arrow(given, _task(fragment, last, columns, result.names), result)


def _task(
    fragment: Fragment, phase: str, columns: tuple[str, ...] | None = None, names: list[str] | None = None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A phase as Spark's workers call it, with these columns of its result under these names."""

    def run(batches: Iterable[pa.RecordBatch], number: int) -> Iterator[pa.RecordBatch]:
        from windrow.kernels.tasks.task_phases import PHASES

        task = (number,) if phase in ("pack", "read") else ()
        for batch in PHASES[phase](fragment, batches, *task):
            yield batch if columns is None else batch.select(columns).rename_columns(names)

    return in_worker(run, fragment.plan.sql)


def in_worker(
    phase: Callable[[Iterable[pa.RecordBatch], int], Iterator[pa.RecordBatch]], sql: str | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark's workers call for a phase, which receives the number of its task."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        try:
            context = TaskContext.get()
            assert context is not None
            yield from phase(batches, context.partitionId())
        except WindrowError as error:
            raise as_runtime_error(error, sql) from error

    return run


def as_runtime_error(error: WindrowError, sql: str | None) -> RuntimeError:
    """A task's error in a form that the driver can decode, with its statement."""
    data = {key: getattr(error, key) for key in ("message", "condition", "sqlstate", "hint")}
    data |= {"sql": sql, "span": [error.span.start, error.span.stop] if error.span else None}
    return RuntimeError(MARK + json.dumps(data))
