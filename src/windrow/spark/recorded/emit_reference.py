"""EMIT by its definition: the query over the rows that have arrived by each instant, and its emitted changes.

It runs on the driver, with a Spark query for each instant at which an entry arrived.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from windrow.algebra.time_scale import NEVER
from windrow.kernels.reference.emit import Change, State, emitted, none_follows
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.punctuations.regions import Lines
from windrow.spark.analysis.collations import ranked
from windrow.spark.logs.session_streams import PTIME, ROWTIME, Stream
from windrow.spark.recorded.emission import Emitted
from windrow.spark.recorded.punctuation_times import ColumnPairs
from windrow.spark.relations.snapshots import frame_of, keys_of
from windrow.spark.relations.time_varying_relation import AT, TimeVarying, columns_of

__all__ = ["emitted_by_definition"]

_AT_ONCE = 32


def emitted_by_definition(query: Emitted) -> TimeVarying:
    """The rows that a query with EMIT has emitted, with their times and the added columns."""
    instants = _instants(query)
    schema = query.schema
    names = tuple(schema.names)
    columns = columns_of(names)
    answers = [
        _answers(query, instants[start : start + _AT_ONCE], columns)
        for start in range(0, len(instants), _AT_ONCE)
    ]
    if not answers:
        return query.temporal
    rows = pa.concat_tables(answers)
    arrival_times = rows.column(AT).to_pylist()
    rows = rows.drop_columns([AT])
    kinds = [StructField(name, field.dataType) for name, field in zip(columns, schema, strict=True)]
    compared = ranked(query.gateway.spark, rows, StructType(kinds))
    keys = list(zip(*(keys_of(compared.column(column)) for column in columns), strict=True))
    places = [place for place, name in enumerate(names) if _is_key(query, name)]
    groups = [tuple(key[place] for place in places) for key in keys]
    complete = _complete(query, rows, names, groups, instants)
    by_tick: dict[int, list[int]] = defaultdict(list)
    for row, tick in enumerate(arrival_times):
        by_tick[tick].append(row)
    states = []
    for number, tick in enumerate(instants):
        there: Counter[tuple[Hashable, Hashable]] = Counter((groups[row], keys[row]) for row in by_tick[tick])
        states.append(
            State(tick, there, frozenset(group for group, flags in complete.items() if flags[number]))
        )
    changes = emitted(states, delay=query.how.delay, watermark=query.how.watermark)
    frame = frame_of(query.gateway, _lasting(changes, rows, keys), StructType(kinds))
    ticks = query.gateway.spark.createDataFrame([(tick,) for tick in instants], f"{ROWTIME} bigint")
    return TimeVarying.of(frame, query.scale, [Stream(ticks, (), query.scale)]).renamed(names)


def _answers(query: Emitted, instants: list[int], columns: list[str]) -> pa.Table:
    """The query's rows at each of some instants, by one job."""
    whole: DataFrame | None = None
    for tick in instants:
        answer = query.raw_at(tick).toDF(*columns).withColumn(AT, F.lit(tick).cast("bigint"))
        whole = answer if whole is None else whole.unionAll(answer)
    assert whole is not None
    with query.gateway.translated():
        return whole.toArrow()


def _instants(query: Emitted) -> list[int]:
    found: set[int] = set()
    for name in {each.stream for each in query.timed.occurrences}:
        arrival = query.streams[name].timed
        assert arrival is not None
        with query.gateway.translated():
            found |= {row[0] for row in arrival.entries.select(PTIME).distinct().collect()}
        found |= {at for at, _ in arrival.punctuations if at}
        found |= {at for at, _ in arrival.watermark}  # a producer becomes idle
    return sorted(found)


def _is_key(query: Emitted, name: str) -> bool:
    return query.timed.keys is None or name in query.timed.keys


def _complete(
    query: Emitted, rows: pa.Table, names: tuple[str, ...], groups: list[Any], instants: list[int]
) -> dict[Any, list[bool]]:
    """For each group, whether it is complete at each instant."""
    if not query.how.watermark or not rows.num_rows:
        return {}
    first = {group: row for row, group in reversed(list(enumerate(groups)))}
    punctuation = _punctuated(query, rows.take(list(first.values())), names, instants)
    examples = rows.take(list(first.values()))
    frame = query.gateway.spark.createDataFrame(examples).toDF(*names)
    flags = [query.is_complete(tick).alias(f"f{number}") for number, tick in enumerate(instants)]
    numbered = frame.withColumn("__number", F.lit(0))  # an empty list of flags is a row all the same
    with query.gateway.translated():
        found = numbered.select(*flags).collect()
    both = [
        [one or other for one, other in zip(*each, strict=True)]
        for each in zip(found, punctuation, strict=True)
    ]
    return dict(zip(first, both, strict=True))


def _punctuated(
    query: Emitted, examples: pa.Table, names: tuple[str, ...], instants: list[int]
) -> list[list[bool]]:
    """For each row, whether punctuations of all its streams have closed it at each instant."""
    columns = dict(zip((name.lower() for name in names), examples.column_names, strict=True))
    kinds = StructType(
        [
            StructField(name, own.dataType)
            for name, own in zip(examples.column_names, query.schema, strict=True)
        ]
    )
    found = [[query.timed.lineage != ()] * len(instants) for _ in range(examples.num_rows)]
    for _, name, own in query.closing_columns(kinds, columns):
        punctuations, lines = query.punctuation.punctuations(name), query.punctuation.lines(name)
        rows = _placed(examples, own, lines)
        for row, known in enumerate(rows):
            for number, tick in enumerate(instants):
                patterns = [pattern for at, pattern in punctuations if at <= tick]
                found[row][number] &= bool(own) and none_follows(known, patterns)
    return found


def _placed(examples: pa.Table, pairs: ColumnPairs, lines: Lines) -> list[dict[str, Any]]:
    """The places of rows' values on the lines of a stream's columns; None for NULL."""
    found: list[dict[str, Any]] = [{} for _ in range(examples.num_rows)]
    for name, column in pairs.items():
        values = examples.column(column).cast(lines[name].kind)
        for row, value in enumerate(values):
            place = lines[name].places(pa.array([value], values.type))[0]
            found[row][name] = place if value.is_valid else None
    return found


def _lasting(changes: list[Change], rows: pa.Table, keys: list[Any]) -> pa.Table:
    """The emitted rows with their validity, from insert to delete."""
    place = {key: row for row, key in enumerate(keys)}
    since: dict[Any, list[int]] = defaultdict(list)
    lasting: list[tuple[int, int, int]] = []
    for change in changes:
        key = change.group, change.row
        since[key] += [change.at] * max(change.diff, 0)
        lasting += [(place[change.row], since[key].pop(0), change.at) for _ in range(-change.diff)]
    lasting += [(place[row], at, NEVER) for (_, row), begun in since.items() for at in begun]
    chosen, enter, leave = (pa.array([part[number] for part in lasting], pa.int64()) for number in range(3))
    return rows.take(chosen).append_column(ENTER, enter).append_column(LEAVE, leave)
