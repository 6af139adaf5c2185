"""Live queries give what the whole log gives, wherever it is cut and wherever they are killed."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.spark.test_continuous_property import relations
from windrow import Memory, Session
from windrow.spark.live.steps import Steps
from windrow.streams import FOREVER, Decision, Kind, Ordering, State
from windrow.streams.clock import decide
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


class KilledError(Exception):
    """Stands for the end of the process."""


class Killing(Memory):
    """A sink after which, at some micro-batches, the process ends the first time."""

    def __init__(self, after: set[int]) -> None:
        super().__init__()
        self.after = set(after)

    def write(self, rows, number):
        count = super().write(rows, number)
        if number in self.after:
            self.after.discard(number)
            raise KilledError
        return count


def ended(entries):
    """The log with promises that nothing follows, of all producers that have said anything."""
    said = {producer for producer, *_ in entries} or set(PRODUCERS[:1])
    return [*entries, *((producer, None, None, None, FOREVER) for producer in sorted(said))]


def admitted(entries, lag):
    """The rows that the definition of clocks admits, an entry at a time."""
    items = []
    for number, (producer, ts, _, _, bound) in enumerate(entries):
        items += [(Kind.ROW, producer, ts, number)] if ts is not None else []
        items += [(Kind.BOUND, producer, bound, number)] if bound is not None else []
    ordering = Ordering.unordered() if lag is None else Ordering.lagging(lag)
    found = decide(State(), ordering, Entries.of(items))
    return [
        (number, *entries[number][:4])
        for (kind, _, _, number), decision in zip(items, found.decision, strict=True)
        if kind == Kind.ROW and decision == Decision.ADMITTED
    ]


def table(entries):
    columns = list(zip(*entries, strict=True)) or [()] * len(SCHEMA)
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def total(tables):
    found: Counter = Counter()
    for one in tables:
        for *values, diff, at in zip(*(column.to_pylist() for column in one.columns), strict=True):
            found[at, tuple(values)] += diff
    return found


def whole(spark, logs, lag, query):
    """The changelog of the rows that are admitted, as of recorded streams."""
    session = Session(spark)
    for name, entries in logs.items():
        rows = [(producer, ts, k, v, number) for number, producer, ts, k, v in admitted(entries, lag)]
        declared = table(rows).rename_columns(["p", "ts", "k", "v", "n"])
        session.stream(name, declared, rowtime="ts", unit="seconds", ptime="n")
    return total([session.sql(query).changelog("diff").to_arrow()])


def live(spark, folder, logs, lag, cuts, kills, query):
    """What the steps give, in which the logs are cut, the process being killed at some."""
    session = Session(spark)
    for name in logs:
        arriving = spark.readStream.schema(COLUMNS).parquet(str(folder))
        session.stream(name, arriving, rowtime="ts", unit="seconds", producer="p", bound="b", lag=lag)
    plan = session.sql(query)._live
    sink = Killing(kills)
    steps = Steps(plan, sink, folder / "checkpoint", "diff", "keep")
    edges = [0, *sorted(cuts), 1]
    for number, (low, high) in enumerate(pairwise(edges)):
        frames = {}
        for _, name, stream in steps.streams():
            entries = logs[name]
            part = entries[round(low * len(entries)) : round(high * len(entries))]
            frames[name] = spark.createDataFrame(table(part)).select(*stream.live.columns)
        while True:
            try:
                steps.take(steps.input(frames), number)
                break
            except KilledError:
                steps.close()
                steps = Steps(plan, sink, folder / "checkpoint", "diff", "keep")
    counted = dict(steps.progress)
    late = sum(len(entries) for entries in logs.values())
    steps.close()
    assert counted["rows_in"] == counted["rows_used"] + counted["rows_held"] + counted["rows_late"] <= late
    assert counted["rows_held"] == 0
    return total([batch for _, batch in sorted(sink.batches.items())])


@settings(
    deadline=None,
    max_examples=5,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    log,
    log,
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
    relations(),
)
@example(
    [("a", 0, 1, 1, None), ("a", 3, 1, 2, 2), ("b", 1, 1, 3, None), ("a", None, None, None, 4)],
    [("a", 2, 0, 1, 3), ("a", 5, 0, None, None)],
    None,
    [0.3, 0.6],
    {1},
    "SELECT k, COUNT(*) AS v FROM s [ROWS 2] GROUP BY k",
)
@pytest.mark.usefixtures("interpreted")
def test_cuts_and_kills_change_nothing(spark, tmp_path_factory, s, t, lag, cuts, kills, query):
    folder = tmp_path_factory.mktemp("live")
    logs = {"s": ended(s), "t": ended(t)}
    used = [name for name in logs if name in query.split()]
    # before its first row a stream has no clock, and what reads it waits
    if "names" in query or not used or not all(admitted(logs[name], lag) for name in used):
        return
    found = live(spark, folder, logs, lag, cuts, kills, query)
    wanted = whole(spark, logs, lag, query)
    assert (+found, -found) == (+wanted, -wanted)
