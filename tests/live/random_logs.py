"""Logs at random, what of them the definition admits, and live queries over them."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import strategies as st

from tests.live.stepping import in_micro_batches
from windrow import Session
from windrow.streams import FOREVER, Decision, EntryKind, Ordering, WatermarkState
from windrow.streams.admission.watermark import decide
from windrow.streams.entries import Entries

SCHEMA = pa.schema(
    [("p", pa.string()), ("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("b", pa.int64())]
)
COLUMNS = "p string, ts bigint, k bigint, v bigint, b bigint"
PRODUCERS = ["a", "b"]

value = st.none() | st.integers(0, 3)
row = st.tuples(st.sampled_from(PRODUCERS), st.integers(0, 9), st.none() | st.integers(0, 2), value)
entry = st.one_of(
    row.map(lambda found: (*found, None)),
    st.tuples(st.sampled_from(PRODUCERS), st.none(), st.none(), st.none(), st.integers(0, 9)),
    st.tuples(row, st.integers(0, 9)).map(lambda pair: (*pair[0], pair[1])),
)
log = st.lists(entry, max_size=8)
LAGS = [None, 0, 2]


def folded(tables):
    """How often each row is there, with texts in lower case."""
    rows = [tuple(row.values()) for one in tables for row in one.to_pylist()]
    return Counter(tuple(one.lower() if isinstance(one, str) else one for one in row) for row in rows)


def ended(entries):
    """The log with promises that nothing follows, of all producers that have said anything."""
    said = {producer for producer, *_ in entries} or set(PRODUCERS[:1])
    return [*entries, *((producer, None, None, None, FOREVER) for producer in sorted(said))]


def admitted(entries, lag):
    """The rows that the definition of clocks admits, an entry at a time."""
    items = []
    for number, (producer, ts, _, _, bound) in enumerate(entries):
        items += [(EntryKind.ROW, producer, ts, number)] if ts is not None else []
        items += [(EntryKind.BOUND, producer, bound, number)] if bound is not None else []
    ordering = Ordering.unordered() if lag is None else Ordering.lagging(lag)
    found = decide(WatermarkState(), ordering, Entries.of(items))
    return [
        (number, *entries[number][:4])
        for (kind, _, _, number), decision in zip(items, found.decision, strict=True)
        if kind == EntryKind.ROW and decision == Decision.ADMITTED
    ]


def table(entries):
    columns = list(zip(*entries, strict=True)) or [()] * len(SCHEMA)
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def recorded(spark, logs, lag, before=(), execution="batch"):
    """A session with streams of the rows that are admitted, and what these statements make."""
    session = Session(spark, execution=execution)
    for name, entries in logs.items():
        _record(session, name, entries, lag)
    for statement in before:
        session.sql(statement)
    return session


def _record(session, name, entries, lag):
    rows = [(producer, ts, k, v, number) for number, producer, ts, k, v in admitted(entries, lag)]
    declared = table(rows).rename_columns(["p", "ts", "k", "v", "n"])
    session.stream(name, declared, rowtime="ts", unit="seconds", ptime="n")


def declared_live(spark, folder, logs, lag, before=(), beside=None):
    """A session with live streams of these names, recorded ones beside, and what these statements make."""
    session = Session(spark)
    for name, entries in (beside or {}).items():
        _record(session, name, entries, lag)
    for name in logs:
        arriving = spark.readStream.schema(COLUMNS).parquet(str(folder))
        session.stream(name, arriving, rowtime="ts", unit="seconds", producer="p", bound="b", lag=lag)
    for statement in before:
        session.sql(statement)
    return session


def live(spark, folder, logs, lag, cuts, kills, query, before=(), beside=None, **params):
    """What the steps give, in which the logs are cut, the process being killed at some."""

    def frames(steps, low, high):
        found = {}
        for _, name, stream in steps.streams():
            entries = logs[name]
            part = entries[round(low * len(entries)) : round(high * len(entries))]
            found[name] = spark.createDataFrame(table(part)).select(*stream.live.columns)
        return found

    plan = declared_live(spark, folder, logs, lag, before, beside).sql(query, **params)._live
    given, counted = in_micro_batches(plan, folder, cuts, kills, frames)
    count = sum(len(entries) for entries in logs.values())
    assert (
        counted["rows_in"] == counted["rows_used"] + counted["rows_buffered"] + counted["rows_late"] <= count
    )
    assert counted["rows_buffered"] == 0
    return given
