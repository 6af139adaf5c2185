"""EMIT over live streams gives what the recorded log gives, wherever it is cut and the query killed."""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from tests.live.random_logs import COLUMNS, LAGS, log, table
from tests.live.stepping import in_micro_batches, law
from tests.live.test_named import ORDERINGS, calls, opened
from tests.live.test_named import recorded as written
from windrow import Session, WindrowError
from windrow.kernels.incremental import UnmatchedError
from windrow.spark.live.checkpoints import carried_state
from windrow.spark.live.checkpoints.carried_state import Carried
from windrow.spark.live.micro_batches import emit_rows
from windrow.spark.live.plans.emit_by_spark import EmittedBySpark
from windrow.spark.live.plans.emit_flow import EmittedFlow, why_by_tasks
from windrow.spark.logs.live_source import PTIME
from windrow.streams import Decision, EntryKind, Ordering, WatermarkState
from windrow.streams.admission.watermark import decide
from windrow.streams.entries import BEFORE, NO_BOUND, Entries

BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
EACH = 4  # seconds between micro-batches

OVER = {
    "tumbling windows": "SELECT k, wend, COUNT(*) AS n, SUM(v) AS v FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 3) "
    "GROUP BY k, wend",
    "hopping windows": "SELECT wend, MAX(v) AS v FROM HOP(TABLE s, DESCRIPTOR(ts), 2, 5) GROUP BY wend",
    "sessions": "SELECT wend, COUNT(*) AS n FROM SESSION(TABLE s, DESCRIPTOR(ts), 1) GROUP BY wend",
    "keys that live": "SELECT k, COUNT(*) AS n FROM s WHERE v < 3 GROUP BY k STATE LIFETIME 3",
    "groups of groups": "SELECT wend, COUNT(*) AS c FROM (SELECT wend, k, COUNT(*) AS n "
    "FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 4) GROUP BY wend, k HAVING COUNT(*) < 3) GROUP BY wend",
    "rows": "SELECT ts, k, v + 1 AS v FROM s WHERE v > 0 OR k IS NULL",
    "rows told apart": "SELECT DISTINCT ts, k FROM s",
    "equal rows of windows": "SELECT DISTINCT wend, k FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 3)",
    "groups of a join by time": "SELECT s.ts, COUNT(*) AS n FROM s JOIN t ON s.ts = t.ts AND s.k <= t.k "
    "GROUP BY s.ts",
    "a join of groups by time": "SELECT a.ts, n, m FROM (SELECT ts, COUNT(*) AS n FROM s GROUP BY ts) AS a "
    "JOIN (SELECT ts, SUM(v) AS m FROM t GROUP BY ts) AS b ON b.ts = a.ts",
    "groups without a partner": "SELECT a.wend, n, m FROM (SELECT wend, COUNT(*) AS n FROM TUMBLE(TABLE s, "
    "DESCRIPTOR(ts), 3) GROUP BY wend) AS a LEFT JOIN (SELECT wend, MAX(v) AS m FROM TUMBLE(TABLE t , "
    "DESCRIPTOR(ts), 3) GROUP BY wend) AS b ON a.wend = b.wend",
    "groups of either": "SELECT a.wend AS w, b.wend, n, m FROM (SELECT wend, COUNT(*) AS n FROM TUMBLE(TABLE "
    "s, DESCRIPTOR(ts), 3) GROUP BY wend) AS a FULL JOIN (SELECT wend, MAX(v) AS m FROM TUMBLE(TABLE t , "
    "DESCRIPTOR(ts), 3) GROUP BY wend) AS b ON a.wend = b.wend",
    "groups that have no equal": "SELECT ts, COUNT(*) AS n FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE "
    "t.ts = s.ts AND t.k = s.k) GROUP BY ts",
    "groups that may lack a partner": "SELECT s.ts, COUNT(*) AS n, COUNT(t.v) AS m FROM s LEFT JOIN t "
    "ON s.ts = t.ts GROUP BY s.ts",
    "groups of an anti join": "SELECT ts, COUNT(*) AS n FROM s LEFT ANTI JOIN t ON s.ts = t.ts GROUP BY ts",
    "ranks of windows": "SELECT k, v, RANK() OVER (PARTITION BY wend ORDER BY v DESC) AS place "
    "FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 3)",
    "the best of windows": "SELECT k, v, wend, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY wend "
    "ORDER BY v DESC, k, ts) AS place FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 3)) WHERE place < 3",
    "sums above a join of groups by time": "SELECT a.ts, SUM(n + m) OVER (ORDER BY a.ts) AS total "
    "FROM (SELECT ts, COUNT(*) AS n FROM s GROUP BY ts) a JOIN (SELECT ts, SUM(v) AS m FROM t GROUP BY ts) "
    "AS b ON b.ts = a.ts",
    "no partner within an interval": "SELECT s.k, s.v, t.v AS w FROM s LEFT JOIN t ON s.k = t.k AND t.ts "
    "BETWEEN s.ts AND s.ts + 2",
    "none within an interval": "SELECT k, v FROM s LEFT ANTI JOIN t ON s.k = t.k AND t.ts BETWEEN s.ts AND "
    "s.ts + 2",
    "not one within an interval": "SELECT ts, k FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND "
    "t.ts BETWEEN s.ts AND s.ts + 2)",
    "sums in order of time": "SELECT ts, k, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS v FROM s",
    "rows of sessions": "SELECT k, ts, wend FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), 1)",
    "a join": "SELECT s.ts, b.k FROM s JOIN s AS b ON s.ts = b.ts AND s.v < b.v",
    "a join of streams": "SELECT s.ts, s.k, t.v FROM s JOIN t ON s.ts = t.ts",
    "lists and structs": "SELECT ts, array(k, v) AS a, named_struct('v', v, 'of', map('k', array(k))) AS g "
    "FROM s",
}
"""Queries of which AFTER WATERMARK can be asked."""

CONTINUOUS = {
    "a group": "SELECT COUNT(*) AS n, MAX(v) AS v FROM s",
    "a group of groups": "SELECT COUNT(*) AS c, SUM(n) AS n FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k)",
    "a group of what leaves": "SELECT COUNT(*) AS n, SUM(v) AS v, MEDIAN(k) AS m FROM (SELECT k, v FROM s "
    "EXCEPT SELECT k, v FROM t )",
    "a group of what Spark counts": "SELECT BIT_XOR(v) AS x, COUNT(*) AS n FROM s WHERE k > 1",
    "beside a table": "SELECT k FROM s UNION ALL SELECT x FROM (VALUES (1), (7)) AS b(x)",
    "but for a table": "SELECT x FROM (VALUES (1), (2), (7)) AS b(x) EXCEPT SELECT k FROM s",
    "an outer join of a table": "SELECT x, v FROM (VALUES (1), (7)) AS b(x) LEFT JOIN s ON s.k = x",
    "groups": "SELECT k, SUM(v) AS v FROM s GROUP BY k HAVING COUNT(*) > 1",
    "groups of lists": "SELECT a, COUNT(*) AS n FROM (SELECT array(k) AS a FROM s) GROUP BY a",
    "groups of what Spark counts": "SELECT v, BIT_XOR(k) AS x, COUNT(DISTINCT ts) AS n FROM s GROUP BY v",
    "the first of each": "SELECT k, ts, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, "
    "ts) AS place FROM s) WHERE place <= 2",
    "the first": "SELECT v, k FROM s ORDER BY v DESC, k, ts LIMIT 3",
    "distinct": "SELECT DISTINCT k, v > 1 AS more FROM s",
    "but for": "SELECT k FROM s EXCEPT SELECT k FROM t ",
    "both": "SELECT k, v FROM s UNION ALL SELECT v, k FROM t ",
    "either": "SELECT k FROM s UNION SELECT v FROM t ",
    "an outer join": "SELECT s.k, s.v, t.v AS w FROM s LEFT JOIN t ON s.k = t.k AND s.ts >= t.ts",
    "some": "SELECT k, v FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.v > s.v)",
    "a value": "SELECT k, v FROM s WHERE v = (SELECT MAX(v) FROM t )",
    "groups of groups of a join": "SELECT k, AVG(m) AS m FROM (SELECT s.k, s.ts, MAX(t.v) AS m FROM s JOIN t "
    "ON s.v = t.v GROUP BY s.k, s.ts) GROUP BY k",
    "the most": "SELECT c.k, c.n FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) AS c JOIN (SELECT MAX(n) "
    "AS most FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) GROUP BY 1 = 1) AS m ON c.n = m.most",
}
WATERMARK = ["EMIT AFTER WATERMARK", "EMIT STREAM AFTER WATERMARK"]
HOW = ["EMIT STREAM", "EMIT STREAM AFTER DELAY INTERVAL 6 SECONDS", "EMIT AFTER DELAY INTERVAL 4 SECONDS"]
BOTH = ["EMIT STREAM AFTER DELAY INTERVAL 6 SECONDS AND AFTER WATERMARK"]


IN_TIME = (
    [("a", 1, 1, 2, 1), ("a", 4, 1, 2, 4), ("a", 4, 2, 1, None), ("a", 7, 1, 1, 7), ("a", 8, 2, 0, 20)],
    [("b", 1, 1, 3, 3), ("b", 4, 2, 0, 5), ("b", 6, 2, 0, None), ("b", 8, 1, 2, 9), ("b", 11, 2, 0, 20)],
)
SOME_LATE = (
    [("a", 1, 1, 2, 1), ("a", 4, 1, 2, 4), ("a", 5, 2, 1, None), ("a", 7, 1, 1, 7), ("a", 8, 2, 0, 20)],
    [("b", 1, 1, 3, 3), ("b", 6, 2, 0, 6), ("b", 5, 2, 0, None), ("b", 4, 1, 2, 9), ("b", 1, 2, 0, 20)],
)
"""Logs of both streams: nothing is late in the one, and partners of rows are in the other."""


@st.composite
def queries(draw):
    query, how = draw(
        st.one_of(
            st.tuples(st.sampled_from([*OVER.values()]), st.sampled_from([*WATERMARK, *HOW, *BOTH])),
            st.tuples(st.sampled_from([*CONTINUOUS.values()]), st.sampled_from(HOW)),
        )
    )
    lateness = draw(st.sampled_from(["", "", " ALLOWED LATENESS 2"]))
    return f"{query} {how}{lateness}"


def ptime(number):
    return BEGIN + datetime.timedelta(seconds=EACH * (number + 1))


def cut(entries, cuts):
    """The micro-batches of a log; after them one in which nothing comes, long after."""
    bounds = [0, *(round(each * len(entries)) for each in sorted(cuts)), len(entries), len(entries)]
    return [entries[low:high] for low, high in pairwise(bounds)]


def recorded_log(batches, lag):
    """The entries that are not ruled out, with when they came, and the clock whenever it may have moved.

    Rows have the clock before them, where they are below it, as the log has an order.
    """
    ordering = Ordering.unordered() if lag is None else Ordering.lagging(lag)
    state, found = WatermarkState(), []
    for number, batch in enumerate(batches):
        items = []
        for place, (producer, ts, _, _, bound) in enumerate(batch):
            items += [(EntryKind.ROW, producer, ts, place)] if ts is not None else []
            items += [(EntryKind.BOUND, producer, bound, place)] if bound is not None else []
        decided = decide(state, ordering, Entries.of(items))
        state = decided.state
        judged = zip(items, decided.decision, decided.before.tolist(), strict=True)
        for (kind, _, _, place), decision, before in judged:
            if kind == EntryKind.ROW and decision in (Decision.ADMITTED, Decision.LATE):
                known = None if before == NO_BOUND else before
                found.append((ptime(number), *batch[place][:4], known, None))
        if state.value is not None:
            found.append((ptime(number), None, None, None, None, None, state.value))
    return found


def recorded(spark, logs, lag, query, execution="batch"):
    """What the recorded log gives up to the last tick, and the session's relation."""
    session = Session(spark, execution=execution)
    for name, batches in logs.items():
        record(session, name, batches, lag)
    relation = session.sql(query)
    envelope = "one-sql" if "STREAM" in query else "delta"
    return relation.changelog(envelope).to_arrow()


def record(session, name, batches, lag):
    """Give a session the recorded log of a stream."""
    frame = session.spark.createDataFrame(
        recorded_log(batches, lag),
        f"at timestamp, p string, ts bigint, k bigint, v bigint, {BEFORE} bigint, upto bigint",
    )
    session.stream(name, frame, rowtime="ts", unit="seconds", ptime="at", watermark="upto")
    streams = session._catalog.streams
    shown = tuple(column for column in streams[name].columns if column != BEFORE)
    streams[name] = replace(streams[name], columns=shown)


def declared(spark, folder, names, lag):
    session = Session(spark)
    for name in names:
        arriving = spark.readStream.schema(COLUMNS).parquet(str(folder))
        session.stream(name, arriving, rowtime="ts", unit="seconds", producer="p", bound="b", lag=lag)
    return session


def live(spark, folder, logs, lag, kills, query, beside=None):
    """What the steps give, and the progress after the last; some streams are recorded."""
    count = len(next(iter(logs.values())))

    def frames(steps, low, high):
        number = round(low * count)
        when = F.lit(int(ptime(number + 100 * (number + 1 == count)).timestamp() * 1_000_000)).cast("bigint")
        found = {"": spark.range(1).select(when.alias("tick"))}
        for _, name, stream in steps.streams():
            made = spark.createDataFrame(table(logs[name][number])).select(*stream.live.columns)
            found[name] = made.withColumn(PTIME, when)
        return found

    session = declared(spark, folder, logs, lag)
    for name, batches in (beside or {}).items():
        record(session, name, batches, lag)
    plan = session.sql(query)._live
    evenly = [number / count for number in range(1, count)]
    given, told = in_micro_batches(plan, folder, evenly, kills, frames, plan.envelope)
    entries = sum(len(batch) for batches in logs.values() for batch in batches)
    assert told["rows_in"] == told["rows_used"] + told["rows_held"] + told["rows_late"] <= entries
    return given, told


def counted(tables):
    """How often each row is told; of producers nothing is known that is not in it."""
    return Counter(tuple(map(hashable, row.values())) for one in tables for row in one.to_pylist())


def hashable(value):
    return repr(value) if isinstance(value, (list, dict)) else value


@law(1)
@given(
    log,
    log,
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), min_size=1, max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
    queries(),
)
@example(
    [("a", 0, 1, 1, None), ("a", 3, 1, 2, 2), ("b", 1, 1, 3, None), ("a", 2, 1, 2, None), ("a", 9, 1, 1, 9)],
    [],
    None,
    [0.5],
    {1},
    f"{OVER['tumbling windows']} {BOTH[0]}",
)
@example(
    [("a", 0, 1, 1, None), ("b", 4, 0, 2, 2), ("a", 7, 1, 3, 5), ("b", 1, 1, 3, None), ("b", 3, 1, 2, 8)],
    [],
    2,
    [0.6],
    set(),
    f"{OVER['hopping windows']} {HOW[1]} ALLOWED LATENESS 2",
)
@example(
    [
        ("a", 0, 1, 2, None),
        ("a", 1, 1, 2, 4),
        ("a", 8, 2, 1, None),
        ("a", 7, 1, 1, 7),
        ("a", None, None, None, 12),
    ],
    [("b", 1, 1, 3, 3), ("b", 4, 2, 0, 5), ("b", 3, 2, 0, None), ("b", 11, 2, 0, 12)],
    None,
    [0.4, 0.7],
    {1},
    f"{OVER['groups without a partner']} {WATERMARK[1]}",
)
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['groups of either']} {HOW[0]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['groups of either']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['groups that have no equal']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['ranks of windows']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['the best of windows']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['sums above a join of groups by time']} {HOW[0]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['sums in order of time']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['no partner within an interval']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['no partner within an interval']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['none within an interval']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['none within an interval']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['not one within an interval']} {WATERMARK[0]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['not one within an interval']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['rows of sessions']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['groups that may lack a partner']} {HOW[0]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['groups of an anti join']} {HOW[0]}")
@example(
    [("a", 0, None, 2, None), ("a", 8, 2, 1, None)],
    [("b", 8, 2, 0, None)],
    0,
    [0.5],
    {1},
    f"{CONTINUOUS['an outer join']} {HOW[0]}",
)
@pytest.mark.usefixtures("interpreted")
def test_cuts_and_kills_change_nothing(spark, tmp_path_factory, s, t, lag, cuts, kills, query):
    folder = tmp_path_factory.mktemp("live")
    logs = {"s": cut(s, cuts)}
    if " t " in query:
        logs["t"] = cut(t, cuts)
    entries = [entry for batches in logs.values() for entry in recorded_log(batches, lag)]
    if not entries or ("AFTER WATERMARK" in query and all(entry[-1] is None for entry in entries)):
        return  # of what is recorded without a watermark nothing is complete, and that is said
    found, _ = live(spark, folder, logs, lag, kills, query)
    assert counted(found) == counted([recorded(spark, logs, lag, query)])


@law(1)
@given(
    log,
    log,
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), min_size=1, max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
    queries().filter(lambda query: " t " in query),
    st.sampled_from("st"),
)
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['groups of a join by time']} {HOW[0]}", "s")
@pytest.mark.usefixtures("interpreted")
def test_one_of_the_streams_may_be_recorded(spark, tmp_path_factory, s, t, lag, cuts, kills, query, name):
    logs = {"s": cut(s, cuts), "t": cut(t, cuts)}
    logged = {one: [row for batch in logs[one] for row in batch] for one in logs}
    if not all(any(entry[4] is not None for entry in entries) for entries in logged.values()):
        return  # without a watermark nothing is complete, and that is said; without an entry nothing begins
    others = {one: batches for one, batches in logs.items() if one != name}
    found, _ = live(spark, tmp_path_factory.mktemp("live"), others, lag, kills, query, {name: logs[name]})
    assert counted(found) == counted([recorded(spark, logs, lag, query)])


DELAYABLE = {
    **{name: f"{query} {BOTH[0]}" for name, query in OVER.items()},
    **{name: f"{query} {HOW[1]}" for name, query in CONTINUOUS.items()},
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", DELAYABLE)
def test_the_operators_of_all_these_queries_are_in_memory(spark, tmp_path, name):
    assert why_by_tasks(declared(spark, tmp_path, "st", None).sql(DELAYABLE[name])._live) is None


HOURS = "(SELECT CAST(timestamp_seconds(1793507400 + ts * 1800) AS {}) AS at, v FROM s)"
OF_WINDOWS = {
    "sessions that rows join and leave": "SELECT k, wstart, wend, COUNT(*) AS n, MAX(v) AS most "
    "FROM SESSION(TABLE (SELECT ts, k, v FROM s EXCEPT SELECT ts, k, v FROM t ) PARTITION BY k, "
    "DESCRIPTOR(ts), 2) GROUP BY k, wstart, wend",
    "rows of sessions": "SELECT k, v, wstart, wend FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), 1)",
    "sessions of doubles": "SELECT d, wend, SUM(v) AS v, COUNT(DISTINCT e) AS n FROM SESSION(TABLE (SELECT "
    "ts, v, CASE k WHEN 1 THEN -0.0D WHEN 2 THEN 0.0D END AS d, CAST(v AS DECIMAL(9, 2)) AS e FROM s) "
    "PARTITION BY d, DESCRIPTOR(ts), 2) GROUP BY d, wend",
    "hops of clock times": "SELECT wstart, wend, MIN(v) AS least, COUNT(*) AS n FROM HOP(TABLE "
    f"{HOURS.format('TIMESTAMP_NTZ')}, DESCRIPTOR(at), INTERVAL 1 HOUR, INTERVAL 3 HOURS) "
    "GROUP BY wstart, wend",
    "groups without aggregates": "SELECT d, COUNT(*) AS n FROM (SELECT k, CAST(wend AS DOUBLE) AS d FROM "
    "TUMBLE(TABLE s, DESCRIPTOR(ts), 3) GROUP BY k, wend HAVING k IS NULL OR k > 0) GROUP BY d",
    "growing windows of instants": "SELECT wstart, wend, SUM(v) AS v FROM CUMULATE(TABLE "
    f"{HOURS.format('TIMESTAMP')}, DESCRIPTOR(at), INTERVAL 1 HOUR, INTERVAL 4 HOURS) GROUP BY wstart, wend",
}
"""Queries over windows of time that operators of their own find; clocks are set back within the hours."""


@pytest.mark.sampled
@pytest.mark.parametrize("name", OF_WINDOWS)
@pytest.mark.usefixtures("interpreted")
def test_windows_are_what_the_definition_says(spark, tmp_path, monkeypatch, name):
    monkeypatch.setattr(EmittedBySpark, "advance", None)  # in memory alone
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    query = f"{OF_WINDOWS[name]} EMIT STREAM"
    s = [
        [(0, 1, 3), (4, 1, 1), (9, None, 2)],
        [(2, 1, 2), (7, None, None)],
        [(8, 2, 3), (6, 1, 1), (2, 2, 0)],
        [],
    ]
    t = [[], [(4, 1, 1)], [(2, 1, 2)], []]
    logs = {"s": [[("a", *row, None) for row in batch] for batch in s]}
    if " t " in query:
        logs["t"] = [[("a", *row, None) for row in batch] for batch in t]
    try:
        given, _ = live(spark, tmp_path, logs, None, {1}, query)
        told = counted([recorded(spark, logs, None, query)])
        assert counted(given) == told
        assert told == counted([recorded(spark, logs, None, query, "reference")])
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.long
@pytest.mark.parametrize("entries", [IN_TIME, SOME_LATE])
@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.usefixtures("interpreted")
def test_what_operators_hold_is_kept_in_place_of_rows(spark, tmp_path, monkeypatch, name, entries):
    """Written in every step, and read again after a kill: what is told is what it was."""
    monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    query = f"{CONTINUOUS[name]} EMIT STREAM"
    names = ("s", "t") if "FROM t " in f"{query} " or "JOIN t " in query else ("s",)
    logs = {one: cut(entries[at], [0.3, 0.6]) for at, one in enumerate(names)}
    given, _ = live(spark, tmp_path, logs, None, {1}, query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])


ENDING = ["tumbling windows", "hopping windows", "groups of groups"]
"""Those of which all that operators hold goes with time."""


@pytest.mark.long
@pytest.mark.parametrize("lateness", ["", " ALLOWED LATENESS 2"])
@pytest.mark.parametrize("how", [HOW[0], *WATERMARK])
@pytest.mark.parametrize("entries", [IN_TIME, SOME_LATE])
@pytest.mark.parametrize("name", ENDING)
@pytest.mark.usefixtures("interpreted")
def test_what_operators_forget_changes_nothing(spark, tmp_path, monkeypatch, name, entries, how, lateness):
    monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    query = f"{OVER[name]} {how}{lateness}"
    rows = [*entries[0], *(("c", *row[1:]) for row in entries[1])]
    logs = {"s": cut(rows, [0.2, 0.4, 0.7])}
    given, told = live(spark, tmp_path, logs, None, {1, 3}, query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])
    # the bounds at the end are past all windows
    assert told["rows_in_windows"] == 0


@pytest.mark.usefixtures("interpreted")
def test_values_that_leave_otherwise_than_they_came_end_the_query(spark, tmp_path, monkeypatch):
    """Rows of which what operators hold is made are not there any more to begin again from."""
    monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    steps, step = [], EmittedFlow.advance

    def second_fails(*given):
        steps.append(given)
        if len(steps) > 1:
            raise UnmatchedError
        return step(*given)

    monkeypatch.setattr(EmittedFlow, "advance", second_fails)
    logs = {"s": cut(IN_TIME[0], [0.3, 0.6])}
    with pytest.raises(WindrowError, match="UNSTABLE_VALUES") as caught:
        live(spark, tmp_path, logs, None, set(), f"{CONTINUOUS['distinct']} EMIT STREAM")
    assert caught.value.hint


DELAYED = [
    ("tumbling windows", HOW[1]),
    ("tumbling windows", BOTH[0]),
    ("tumbling windows", f"{BOTH[0]} ALLOWED LATENESS 2"),
    ("hopping windows", HOW[2]),
    ("sessions", BOTH[0]),
    ("rows", HOW[1]),
    ("rows", BOTH[0]),
    ("groups without a partner", BOTH[0]),
    ("ranks of windows", HOW[1]),
    ("groups", HOW[1]),
    ("a group of what leaves", HOW[2]),
]
"""Queries whose changes wait."""


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("is_carried", [False, True])
@pytest.mark.parametrize(("name", "how"), DELAYED)
@pytest.mark.usefixtures("interpreted")
def test_changes_that_wait_are_in_memory_and_kept(spark, tmp_path, monkeypatch, name, how, is_carried):
    """Whether rows are retained, of which they are found again, or they are with what operators hold."""
    monkeypatch.setattr(EmittedBySpark, "advance", None)  # in memory alone
    if is_carried:
        monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    query = f"{(OVER | CONTINUOUS)[name]} {how}"
    names = ("s", "t") if " t " in query else ("s",)
    rows = [*SOME_LATE[0], ("a", 3, 1, 1, None), ("a", 12, 1, 2, 13), ("a", 13, 1, 1, 20)]
    logs = {one: cut([rows, SOME_LATE[1]][at], [0.2, 0.5, 0.7]) for at, one in enumerate(names)}
    given, told = live(spark, tmp_path, logs, None, {1, 3}, query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])
    if is_carried and name == "rows":
        assert told["rows_in_windows"] == 0, "nothing waits in the end"


WITH_RECORDED = [
    ("groups of a join by time", HOW[0]),
    ("groups of either", WATERMARK[1]),
    ("a join of streams", BOTH[0]),
    ("either", HOW[1]),
]
"""Queries of two streams, of which one is recorded."""


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("is_carried", [False, True])
@pytest.mark.parametrize("name", ["s", "t"])
@pytest.mark.parametrize(("query", "how"), WITH_RECORDED)
@pytest.mark.usefixtures("interpreted")
def test_recorded_streams_beside_live_ones_are_in_memory(
    spark, tmp_path, monkeypatch, query, how, name, is_carried
):
    """Their entries come at their processing times: before, between and after those of live streams."""
    monkeypatch.setattr(EmittedBySpark, "advance", None)  # in memory alone
    if is_carried:
        monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    query = f"{(OVER | CONTINUOUS)[query]} {how}"
    logs = {one: cut(SOME_LATE[at], [0.3, 0.6]) for at, one in enumerate("st")}
    beside = {name: logs[name]}
    others = {one: batches for one, batches in logs.items() if one != name}
    given, _ = live(spark, tmp_path, others, None, {1, 2}, query, beside)
    assert counted(given) == counted([recorded(spark, logs, None, query)])


KEYED = {
    "groups": "SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a, MAX(v) AS m FROM s GROUP BY k",
    "floats": "SELECT k, SUM(v / 3.0D) AS s, AVG(v * 1e16D) AS a, MAX(CAST(v AS STRING)) AS m FROM s "
    "GROUP BY k",
    "distinct": "SELECT DISTINCT k FROM s",
    "a group": "SELECT COUNT(*) AS n, SUM(v) AS s, AVG(v / 3.0D) AS a, MAX(v) AS m FROM s",
    "windows": "SELECT k, wend, COUNT(*) AS n, MAX(v) AS m FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 30) "
    "GROUP BY k, wend",
    "the best": "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, ts) AS place "
    "FROM s) WHERE place <= 1",
}
"""Queries of which nothing but a few numbers for each key is needed, of windows while they are open."""


@pytest.mark.parametrize("name", KEYED)
@pytest.mark.usefixtures("interpreted")
def test_state_is_by_key_where_that_will_do(spark, tmp_path, monkeypatch, name):
    monkeypatch.setattr(carried_state, "_FEWEST", 5)
    query = f"{KEYED[name]} EMIT STREAM"
    rows = [("a", at, at % 3, at * 7 % 11, at - 1) for at in range(40)]
    logs = {"s": cut(rows, [0.25, 0.5, 0.75])}
    given, told = live(spark, tmp_path, logs, None, {1}, query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])
    # once more where the rank is found
    assert told["rows_in_windows"] == {"the best": 6, "a group": 1}.get(name, 3)


SESSIONS = (
    "SELECT k, wend, COUNT(*) AS n FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), 3) GROUP BY k, wend"
)
KEPT = {
    # those that end at 4, 5 and 8 are settled at 13, the gap later, and those that end at 12 and 18 are not
    "in memory": (f"{SESSIONS} EMIT STREAM", 3),
    # lives that end at 3 and 8 are, and those that end at 12 and 18 are not
    "while changes wait": (f"{OVER['keys that live']} {BOTH[0]}", 3),
    "by tasks": (f"{OVER['keys that live']} {BOTH[0]}", 3),
}
"""Queries of the log below, and how many of its rows may still change what they give."""


@pytest.mark.parametrize("how", KEPT)
@pytest.mark.usefixtures("interpreted")
def test_rows_of_sessions_go_when_nothing_can_join_them(spark, tmp_path, monkeypatch, how):
    monkeypatch.setattr(emit_rows, "FINAL_FROM", 0)
    if how == "by tasks":
        monkeypatch.setattr(EmittedFlow, "_by_tasks", lambda _: "the test")
    more = pa.field("a.b", pa.int64())  # a name that has to be quoted
    monkeypatch.setattr(f"{__name__}.COLUMNS", f"{COLUMNS}, `{more.name}` bigint")
    plain = table
    monkeypatch.setattr(
        f"{__name__}.table", lambda rows: plain(rows).append_column(more, pa.nulls(len(rows), more.type))
    )
    query, kept = KEPT[how]
    rows = [(0, 1, 1), (2, 1, 1), (1, 2, 3), (5, 2, 1), (9, 1, 1), (9, 1, 3), (15, 1, 1)]
    came = [("a", *row, None) for row in rows]
    logs = {"s": [came[:4], came[4:6], [*came[6:], ("a", None, None, None, 13)], []]}
    given, told = live(spark, tmp_path, logs, None, set(), query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])
    assert told["rows_in_windows"] == kept


NESTED = [
    "SELECT k, array(MAX(v), k) AS a, named_struct('n', COUNT(*), 'of', map('k', array(k))) AS g FROM s "
    f"GROUP BY k {HOW[0]}",
    f"SELECT DISTINCT named_struct('k', k, 'vs', array(v % 2, NULL)) AS g FROM s {HOW[1]}",
    f"SELECT a, COUNT(*) AS n FROM (SELECT array(k) AS a FROM s) GROUP BY a {HOW[1]}",
    f"SELECT ts, array(k, v) AS a, map('v', v) AS m, make_dt_interval(0, 0, v) AS i FROM s {WATERMARK[1]}",
    f"SELECT a.ts, b.k, a.m FROM (SELECT ts, map('v', v) AS m FROM s) a JOIN s AS b ON a.ts = b.ts {BOTH[0]}",
]
"""Queries that give lists, structs, maps and intervals."""


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("query", NESTED)
@pytest.mark.usefixtures("interpreted")
def test_lists_structs_and_maps_are_in_memory_and_kept(spark, tmp_path, monkeypatch, query):
    monkeypatch.setattr(EmittedBySpark, "advance", None)  # in memory alone
    monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    logs = {"s": cut([*SOME_LATE[0], ("a", 4, 1, 5, None), ("b", 9, 2, 0, 20)], [0.3, 0.6])}
    given, _ = live(spark, tmp_path, logs, None, {1, 2}, query)
    wanted = recorded(spark, logs, None, query)
    assert given
    assert Counter(map(repr, (row for one in given for row in one.to_pylist()))) == Counter(
        map(repr, wanted.to_pylist())
    )


BESIDE = {
    "tables and texts": (
        "SELECT k, 'of t' AS c FROM t UNION ALL SELECT k, 'a\n\nb' FROM (SELECT DISTINCT k FROM s) WHERE k "
        "IN (SELECT k FROM beside) UNION ALL SELECT s.k, 'pair' FROM s CROSS JOIN t",
        {(1, "of t"): 1, (3, "of t"): 1, (1, "a\n\nb"): 1, (1, "pair"): 4, (2, "pair"): 2},
    ),
    "many columns": (
        f"SELECT {', '.join(f's.v + {at} AS c{at}' for at in range(28))}, t.v FROM s JOIN t ON s.k = t.k",
        {(*range(5, 33), 8): 1, (*range(7, 35), 8): 1},
    ),
    "rows of each row": (
        "SELECT k, x, y FROM s LATERAL VIEW explode(array(v, k, NULL)) e AS x LATERAL VIEW OUTER"
        " explode(IF(x > 5, array(x), NULL)) f AS y UNION ALL SELECT k, explode(array(v, 1)), NULL FROM t",
        {(1, 5, None): 1, (1, 1, None): 3, (1, None, None): 2, (2, 6, 6): 1, (2, 2, None): 1,
         (2, None, None): 1, (1, 7, 7): 1, (1, 8, None): 1, (3, 9, None): 1, (3, 1, None): 1},
    ),
    "groups of rows of each row": (
        "SELECT x, COUNT(*) AS n FROM s, LATERAL explode(array(v % 2, k)) AS e(x) GROUP BY x",
        {(0, 1): 1, (1, 4): 1, (2, 1): 1},
    ),
}  # fmt: skip
"""Queries of which the plans are read with care, and their rows in the end."""


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.usefixtures("interpreted")
def test_all_of_a_plan_is_evaluated(spark, tmp_path, monkeypatch, name):
    spark.sql("SELECT 1 AS k").createOrReplaceTempView("beside")
    monkeypatch.setattr(EmittedBySpark, "advance", None)  # in memory alone
    query, wanted = BESIDE[name]
    logs = {
        "s": [[("a", 0, 1, 5, None)], [("a", 1, 2, 6, None), ("a", 2, 1, 7, None)]],
        "t": [[("a", 0, 1, 8, None)], [("a", 1, 3, 9, None)]],
    }
    given, _ = live(spark, tmp_path, logs, None, set(), f"{query} EMIT STREAM AS diff")
    found = Counter()
    for (*row, diff, _), count in counted(given).items():
        found[tuple(row)] += diff * count
    assert {row: count for row, count in found.items() if count} == wanted
    spark.catalog.dropTempView("beside")


# -- named streams -------------------------------------------------------------------------------------

SOON = ["EMIT STREAM", "EMIT STREAM AFTER DELAY INTERVAL '0.01' SECOND"]


def live_log(spark, folder, streams, cuts, kills, query):
    """What the steps give over the logs of named streams, cut between files."""
    session, frames = opened(spark, streams)
    relation = session.sql(query)
    wanted = relation.changelog(relation._live.envelope).to_arrow()
    given, told = in_micro_batches(relation._live, folder, cuts, kills, frames, relation._live.envelope)
    return given, wanted, told


def until(tables, end):
    """How often each row is told, up to a processing time; that is the last time among the columns."""
    found = Counter()
    for row, count in counted(tables).items():
        *_, ptime = (value for value in row if isinstance(value, datetime.datetime))
        found[row] += count * (ptime <= end)
    return +found


@law(1)
@given(
    calls,
    calls,
    st.sampled_from(ORDERINGS),
    st.lists(st.floats(0, 1), max_size=2),
    st.sets(st.integers(0, 2), max_size=1),
    st.sampled_from([f"{query} {how}" for query in OVER.values() for how in (*SOON, *WATERMARK)]),
)
@example(
    [("insert", "a", [(1, 1, 1), (3, 1, 2)]), ("again", "b", [(4, 1, 1)]), ("watermark", "a", 3),
     ("insert", "a", [(2, 1, 3), (5, 2, 0)]), ("close", "b", None), ("insert", "b", [(9, 1, 1)])],
    [("insert", "a", [(3, 1, 1)]), ("insert", "a", [(9, 0, 1)])],
    Ordering.lagging(2),
    [0.6],
    {1},
    f"{OVER['a join of streams']} {SOON[1]}",
)  # fmt: skip
@pytest.mark.usefixtures("interpreted")
def test_live_is_batch_over_the_folder(spark, tmp_path_factory, s, t, ordering, cuts, kills, query):
    folder = tmp_path_factory.mktemp("named")
    streams = {"s": written(folder / "s", ordering, s)}
    if " t " in query:
        streams["t"] = written(folder / "t", ordering, t)
    for stream in streams.values():
        stream.tick()
    given, wanted, told = live_log(spark, folder, streams, cuts, kills, query)
    end = min(stream.position().ptime for stream in streams.values())
    assert told["frontier"] == end
    assert told["rows_in"] == told["rows_used"] + told["rows_held"] + told["rows_late"]
    end = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=end)
    assert until(given, end) == until([wanted], end)
