"""Runs operators over time-varying relations: rows are exchanged by key, and each task has whole keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from windrow.errors import NotSupportedError
from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.packing.shards import Layout
from windrow.kernels.zset.keyed_operator import First, Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.kernels.zset.time_windows import WindowingFunction
from windrow.plan.arrow_types import is_carried, travelling_type
from windrow.plan.columns import Completeness
from windrow.spark.analysis.arrow_columns import not_in_memory
from windrow.spark.arrow import decode, encode
from windrow.spark.gateway import Gateway
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.tasks.exchange import MESSAGES, in_worker
from windrow.spark.tasks.layout import shuffled
from windrow.spark.tasks.to_shards import to_shards
from windrow.syntax.sqltext import quoted

__all__ = ["can_be_keyed", "run_keyed"]


def can_be_keyed(frame: DataFrame) -> bool:
    """Whether operators support all columns."""
    return all(is_carried(field.dataType) for field in frame.schema)


def run_keyed(
    gateway: Gateway,
    operator: str,
    sides: Sequence[DataFrame],
    keys: Sequence[str],
    result: StructType,
    origin: int = 0,
    aggregates: tuple[tuple[str, AggregateSpec], ...] = (),
    first: First | None = None,
    windows: WindowingFunction | None = None,
    until: Sequence[Completeness] = (),
    compared: tuple[tuple[str, str], ...] = (),
) -> DataFrame:
    """Run an operator, described as in :class:`windrow.kernels.zset.keyed_operator.Keyed`.

    Parameters
    ----------
    sides
        One or two relations with `ENTER` and `LEAVE`.
    keys
        Columns of each side; without keys, one task has all rows.
    result
        The columns of its result, before `ENTER` and `LEAVE`.
    origin, aggregates, first, windows, compared
        As for :class:`windrow.kernels.zset.keyed_operator.Keyed`.
    until
        The conditions by which keys are complete, by their columns.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_QUERY`` for columns that tasks do not support.
    """
    for frame in sides:
        if (odd := not_in_memory(frame.schema)) is not None:
            raise NotSupportedError(
                f"{odd} in an operator over time is not supported",
                condition="UNSUPPORTED_QUERY",
                hint="cast it in a subquery in FROM to numbers",
            )
    shards = shuffled(gateway) if keys else 1
    fragment = Keyed(operator, tuple(keys), Layout(shards), origin, aggregates, first, windows, compared)
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
        found = gateway.operators.keyed(fragment, travelling, inner, until)
    else:
        found = _exchanged(fragment, travelling, inner)
    return found.select(
        *(decode(F.col(quoted(field.name)), field.dataType).alias(field.name) for field in whole)
    )


def _exchanged(fragment: Keyed, sides: Sequence[DataFrame], result: StructType) -> DataFrame:
    packed: DataFrame | None = None
    for number, side in enumerate(sides):
        one = map_in_arrow(side, in_worker(_pack(fragment, right=number == 1), None), MESSAGES)
        packed = one if packed is None else packed.unionAll(one)
    assert packed is not None

    def run(batches: Iterable[pa.RecordBatch], _: int) -> Iterator[pa.RecordBatch]:
        return fragment.run(batches)

    shards = fragment.layout.shards
    return map_in_arrow(to_shards(packed, shards, may_merge=shards > 1), in_worker(run, None), result)


def _pack(fragment: Keyed, *, right: bool):  # type: ignore[no-untyped-def]
    def pack(batches: Iterable[pa.RecordBatch], task: int) -> Iterator[pa.RecordBatch]:
        return fragment.pack(batches, task, right=right)

    return pack
