"""A continuous query instant by instant: its text over what its inputs are at each, on the driver.

This is what the query means, so it is how the reference runs all of it, and how every other execution runs
what it has no operator for. Its work is that of one query for each instant at which an input changes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from windrow.algebra.clock import NEVER, Clock
from windrow.errors import NotSupportedError, Span
from windrow.kernels.sorting import comparable
from windrow.spark.gateway import Gateway
from windrow.spark.varying import AT, ENTER, LEAVE, Varying, columns_of
from windrow.syntax.sqltext import SqlText

__all__ = ["MOST_SETTING", "by_snapshots"]

MOST_SETTING = "spark.windrow.snapshots"
_MOST = 10_000
_AT_ONCE = 32


def by_snapshots(
    gateway: Gateway,
    text: SqlText,
    inputs: Mapping[str, Varying],
    tables: Mapping[str, DataFrame],
    clock: Clock,
    place: tuple[str, Span],
) -> Varying:
    """The relation that a query makes of relations.

    Parameters
    ----------
    text
        The query, in which the keys of `inputs` and `tables` stand for what they are at an instant.
    inputs, tables
        What varies, on this clock, and what does not.
    place
        The user's text and the stretch of it that the query is.

    Raises
    ------
    NotSupportedError
        ``TOO_MANY_INSTANTS`` for more instants than the setting `MOST_SETTING`.
    """
    empty = {key: item.visible().limit(0) for key, item in inputs.items()}
    schema = gateway.sql(text, {**empty, **tables}).schema
    names = tuple(schema.names)
    columns = columns_of(names)
    held = {key: _Held(gateway, item) for key, item in inputs.items()}
    streams = tuple({id(stream): stream for item in inputs.values() for stream in item.streams}.values())
    instants = _instants(
        held.values(), [ends[0] for item in inputs.values() if (ends := item.ends) is not None]
    )
    most = int(gateway.spark.conf.get(MOST_SETTING, str(_MOST)) or _MOST)
    if len(instants) > most:
        raise NotSupportedError(
            f"a query over {len(instants):,} instants that is evaluated instant by instant is not supported",
            condition="TOO_MANY_INSTANTS",
            sql=place[0],
            span=place[1],
            hint=f"{MOST_SETTING} allows {most:,}; docs/sql/streams.md says what is evaluated at once",
        )
    answers: list[tuple[int, list[dict[str, Any]]]] = []
    for start in range(0, len(instants), _AT_ONCE):
        answers += _answers(gateway, text, held, tables, instants[start : start + _AT_ONCE], columns)
    rows = list(_intervals(answers, columns))
    struct = StructType([*schema.fields]).add(ENTER, LongType()).add(LEAVE, LongType())
    frame = gateway.spark.createDataFrame(rows, struct)
    changes = gateway.spark.createDataFrame([(at,) for at in _changes(held.values())], f"{AT} bigint")
    return Varying.of(frame, clock, streams, changes)


class _Held:
    """An input on the driver."""

    def __init__(self, gateway: Gateway, item: Varying) -> None:
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
        return self.gateway.spark.createDataFrame(rows, self.inner).toDF(*self.names)


def _changes(held: Any) -> list[int]:
    return sorted({at for item in held for at in item.instants})


def _instants(held: Any, firsts: Sequence[int]) -> list[int]:
    """Those at which a window changes, and the logs' first."""
    changes = _changes(held)
    return sorted({*changes, min(firsts)}) if firsts else changes


def _answers(
    gateway: Gateway,
    text: SqlText,
    held: Mapping[str, _Held],
    tables: Mapping[str, DataFrame],
    instants: Sequence[int],
    columns: Sequence[str],
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The query's rows at each of a few instants, by one job."""
    whole: DataFrame | None = None
    for tick in instants:
        inputs = {key: item.at(tick) for key, item in held.items()}
        answer = (
            gateway.sql(text, {**inputs, **tables}).toDF(*columns).withColumn(AT, F.lit(tick).cast("bigint"))
        )
        whole = answer if whole is None else whole.unionAll(answer)
    assert whole is not None
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    with gateway.translated(text):
        for row in whole.collect():
            values = row.asDict(recursive=False)
            found[values.pop(AT)].append(values)
    for tick in instants:
        yield tick, found[tick]


def _intervals(
    answers: Sequence[tuple[int, list[dict[str, Any]]]], columns: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Rows with the instants between which they are in the answers."""
    since: dict[Any, list[int]] = defaultdict(list)
    values: dict[Any, tuple[Any, ...]] = {}
    for tick, rows in answers:
        counts: Counter[Any] = Counter()
        for row in rows:
            key = tuple(comparable(_plain(row[column])) for column in columns)
            values.setdefault(key, tuple(row[column] for column in columns))
            counts[key] += 1
        for key in [*since]:
            while len(since[key]) > counts[key]:
                yield (*values[key], since[key].pop(0), tick)
            if not since[key]:
                del since[key]
        for key, count in counts.items():
            since[key] += [tick] * (count - len(since[key]))
    for key, begun in since.items():
        for start in begun:
            yield (*values[key], start, NEVER)


def _plain(value: Any) -> Any:
    """Values of which rows are told apart: structs as dictionaries, maps and others as they are."""
    if hasattr(value, "asDict"):
        return {name: _plain(part) for name, part in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in sorted(value.items(), key=lambda item: repr(item[0]))}
    return value
