"""A continuous query instant by instant: over its inputs at each instant, on the driver.

This defines the meaning of the query, so the reference runs everything in this way. Its work is one query for
each instant at which an input changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from windrow.algebra.time_scale import NEVER, TimeScale
from windrow.kernels.sorting import comparable
from windrow.spark.gateway import Gateway
from windrow.spark.relations.time_varying_relation import AT, ENTER, LEAVE, TimeVarying, columns_of

__all__ = ["by_snapshots", "frame_of", "keys_of"]

_AT_ONCE = 32


Answer = Callable[[Mapping[str, DataFrame]], DataFrame]
"""The rows of a query at an instant, from its inputs at that instant."""


def by_snapshots(
    gateway: Gateway, answer: Answer, inputs: Mapping[str, TimeVarying], scale: TimeScale
) -> TimeVarying:
    """The relation of a query, evaluated at every instant.

    Parameters
    ----------
    answer
        The query, over its inputs by their keys.
    inputs
        The time-varying inputs, in ticks of this time scale.
    """
    schema = answer({key: item.visible().limit(0) for key, item in inputs.items()}).schema
    names = tuple(schema.names)
    columns = columns_of(names)
    collected = {key: _Collected(gateway, item) for key, item in inputs.items()}
    streams = tuple({id(stream): stream for item in inputs.values() for stream in item.streams}.values())
    instants = _instants(
        collected.values(), [ends[0] for item in inputs.values() if (ends := item.ends) is not None]
    )
    answers: list[pa.Table] = []
    for start in range(0, len(instants), _AT_ONCE):
        answers.append(_answers(gateway, answer, collected, instants[start : start + _AT_ONCE], columns))
    inner = StructType(
        [StructField(name, field.dataType) for name, field in zip(columns, schema, strict=True)]
    )
    frame = frame_of(gateway, _lasting(answers, instants, columns), inner)
    changes = gateway.spark.createDataFrame([(at,) for at in _changes(collected.values())], f"{AT} bigint")
    return TimeVarying.of(frame, scale, streams, changes).renamed(names)


def frame_of(gateway: Gateway, rows: pa.Table | None, schema: StructType) -> DataFrame:
    """Rows with these columns, `ENTER` and `LEAVE` as a DataFrame."""
    whole = StructType([*schema.fields]).add(ENTER, LongType()).add(LEAVE, LongType())
    return _frame(gateway, rows, whole)


def _frame(gateway: Gateway, rows: pa.Table | None, schema: StructType) -> DataFrame:
    if rows is None or not rows.num_rows:
        return gateway.spark.createDataFrame([], schema)
    return gateway.spark.createDataFrame(rows, schema)


class _Collected:
    """An input on the driver."""

    def __init__(self, gateway: Gateway, item: TimeVarying) -> None:
        with gateway.translated():
            self.table = item.frame.toArrow()
            self.instants = [row[0] for row in item.instants.collect()]
        self.inner = StructType(item.frame.schema.fields[:-2])
        self.names = item.names
        self.gateway = gateway

    def at(self, tick: int) -> DataFrame:
        """The rows at an instant."""
        enter, leave = self.table.column(ENTER), self.table.column(LEAVE)
        alive = self.table.filter(pc.and_(pc.less_equal(enter, tick), pc.greater(leave, tick)))
        rows = alive.drop_columns([ENTER, LEAVE]).rename_columns(columns_of(self.names))
        return _frame(self.gateway, rows, self.inner).toDF(*self.names)


def _changes(collected: Any) -> list[int]:
    return sorted({at for item in collected for at in item.instants})


def _instants(collected: Any, firsts: Sequence[int]) -> list[int]:
    """The instants at which a window changes, and the logs' first instants."""
    changes = _changes(collected)
    return sorted({*changes, min(firsts)}) if firsts else changes


def _answers(
    gateway: Gateway,
    answer: Answer,
    collected: Mapping[str, _Collected],
    instants: Sequence[int],
    columns: Sequence[str],
) -> pa.Table:
    """The query's rows at each of some instants, by one job."""
    whole: DataFrame | None = None
    for tick in instants:
        inputs = {key: item.at(tick) for key, item in collected.items()}
        rows = answer(inputs).toDF(*columns).withColumn(AT, F.lit(tick).cast("bigint"))
        whole = rows if whole is None else whole.unionAll(rows)
    assert whole is not None
    with gateway.translated():
        return whole.toArrow()


def _lasting(answers: Sequence[pa.Table], instants: Sequence[int], columns: Sequence[str]) -> pa.Table | None:
    """The rows of all instants; rows that persist have the interval in which they do."""
    if not answers:
        return None
    rows = pa.concat_tables(answers)
    ticks = rows.column(AT).to_pylist()
    keys = (
        list(zip(*(keys_of(rows.column(column)) for column in columns), strict=True)) or [()] * rows.num_rows
    )
    by_tick: dict[int, list[int]] = defaultdict(list)
    for row, tick in enumerate(ticks):
        by_tick[tick].append(row)
    since: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    lasting: list[tuple[int, int, int]] = []
    for tick in instants:
        there: dict[Any, list[int]] = defaultdict(list)
        for row in by_tick[tick]:
            there[keys[row]].append(row)
        for key in [*since]:
            while len(since[key]) > len(there[key]):
                lasting.append((*since[key].pop(0), tick))
            if not since[key]:
                del since[key]
        for key, found in there.items():
            since[key] += [(row, tick) for row in found[: len(found) - len(since[key])]]
    lasting += [(row, begun, NEVER) for begun_rows in since.values() for row, begun in begun_rows]
    chosen, enter, leave = (pa.array([part[place] for part in lasting], pa.int64()) for place in range(3))
    return rows.drop_columns([AT]).take(chosen).append_column(ENTER, enter).append_column(LEAVE, leave)


def keys_of(column: pa.ChunkedArray) -> list[Any]:
    """A hashable form of values, by which they are compared."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())  # the repeated hour at the end of daylight saving time is two hours
    return [comparable(_plain(value)) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    """Maps, which are lists of pairs in Arrow, in one order; other values unchanged."""
    if isinstance(value, list) and value and all(isinstance(part, tuple) for part in value):
        return sorted(([_plain(part) for part in pair] for pair in value), key=repr)
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value
