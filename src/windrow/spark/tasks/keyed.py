"""Runs operators over relations that vary: rows are exchanged by key, and each task has whole keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, StructType

from windrow.kernels.aggregates import Aggregate
from windrow.kernels.packing.cells import Layout
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.kernels.zset.stage import First, Keyed
from windrow.kernels.zset.time_windows import TimeWindows
from windrow.plan.columns import Completeness
from windrow.spark.arrow import can_travel, contains, decode, encode, travelling_type
from windrow.spark.gateway import Gateway
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.tasks.exchange import MESSAGES, in_worker
from windrow.spark.tasks.layout import shuffled
from windrow.spark.tasks.to_cells import to_cells
from windrow.syntax.sqltext import quoted

__all__ = ["can_be_keyed", "is_carried", "run_keyed"]


def can_be_keyed(frame: DataFrame) -> bool:
    """Whether all columns can go through an operator."""
    return all(is_carried(field.dataType) for field in frame.schema)


def is_carried(kind: DataType) -> bool:
    """Whether values of a type can go through an operator, which compares strings as they are."""
    return can_travel(kind) and not contains(kind, "collated")


def run_keyed(
    gateway: Gateway,
    operator: str,
    sides: Sequence[DataFrame],
    keys: Sequence[str],
    result: StructType,
    origin: int = 0,
    aggregates: tuple[tuple[str, Aggregate], ...] = (),
    first: First | None = None,
    windows: TimeWindows | None = None,
    until: Sequence[Completeness] = (),
) -> DataFrame:
    """The rows that an operator gives, as :class:`windrow.kernels.zset.stage.Keyed` tells.

    Parameters
    ----------
    sides
        One or two relations with `ENTER` and `LEAVE`.
    keys
        Columns of each of them; with none, one task has all rows.
    result
        The columns that it gives, before `ENTER` and `LEAVE`.
    origin, aggregates, first, windows
        As :class:`windrow.kernels.zset.stage.Keyed` has them.
    until
        What says of keys, by their columns, that nothing comes to them any more.
    """
    cells = shuffled(gateway) if keys else 1
    stage = Keyed(operator, tuple(keys), Layout(cells), origin, aggregates, first, windows)
    travelling = [
        side.select(
            *(encode(F.col(quoted(field.name)), field.dataType).alias(field.name) for field in side.schema)
        )
        for side in sides
    ]
    whole = StructType([*result.fields]).add(ENTER, LongType()).add(LEAVE, LongType())
    inner = StructType()
    for field in whole:
        inner = inner.add(field.name, travelling_type(field.dataType))
    if gateway.operators is not None:
        given = gateway.operators.keyed(stage, travelling, inner, until)
    else:
        given = _exchanged(stage, travelling, inner)
    return given.select(
        *(decode(F.col(quoted(field.name)), field.dataType).alias(field.name) for field in whole)
    )


def _exchanged(stage: Keyed, sides: Sequence[DataFrame], result: StructType) -> DataFrame:
    packed: DataFrame | None = None
    for number, side in enumerate(sides):
        one = map_in_arrow(side, in_worker(_pack(stage, right=number == 1), None), MESSAGES)
        packed = one if packed is None else packed.unionAll(one)
    assert packed is not None

    def run(batches: Iterable[pa.RecordBatch], _: int) -> Iterator[pa.RecordBatch]:
        return stage.run(batches)

    return map_in_arrow(to_cells(packed, stage.layout.cells), in_worker(run, None), result)


def _pack(stage: Keyed, *, right: bool):  # type: ignore[no-untyped-def]
    def pack(batches: Iterable[pa.RecordBatch], task: int) -> Iterator[pa.RecordBatch]:
        return stage.pack(batches, task, right=right)

    return pack
