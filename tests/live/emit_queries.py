"""Queries with EMIT and logs for them, live and recorded."""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st
from pyspark.sql import functions as F

from tests.live.queries.test_named import opened
from tests.live.random_logs import COLUMNS, table
from tests.live.stepping import in_micro_batches
from windrow import Session
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
    "groups of one of three": "SELECT wend, n, m, o FROM (SELECT wend, COUNT(*) AS n FROM TUMBLE(TABLE s, "
    "DESCRIPTOR(ts), 3) GROUP BY wend) AS a FULL JOIN (SELECT wend, MAX(v) AS m FROM TUMBLE(TABLE t , "
    "DESCRIPTOR(ts), 3) GROUP BY wend) AS b USING (wend) FULL JOIN (SELECT wend, MIN(k) AS o FROM TUMBLE("
    "TABLE s, DESCRIPTOR(ts), 3) WHERE v > 1 GROUP BY wend) AS c USING (wend)",
    "windows of groups of either": "SELECT e.wend, SUM(n) AS n, SUM(m) AS m FROM TUMBLE(TABLE (SELECT ts, n, "
    "m FROM (SELECT ts, COUNT(*) AS n FROM s GROUP BY ts) AS a FULL JOIN (SELECT ts, MAX(v) AS m FROM t "
    "GROUP BY ts) AS b USING (ts)), DESCRIPTOR(ts), 4) AS e GROUP BY e.wend",
    "groups by a merged key": "SELECT ts, COUNT(s.v) AS n, SUM(t.v) AS m FROM s FULL JOIN t USING (ts) "
    "GROUP BY ts",
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
    "either within an interval": "SELECT s.k, s.v, t.v AS w FROM s FULL JOIN t ON s.k = t.k AND t.ts BETWEEN "
    "s.ts - 1 AND s.ts + 2",
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


def declared(spark, folder, names, lag, **options):
    session = Session(spark)
    for name in names:
        arriving = spark.readStream.schema(COLUMNS).parquet(str(folder))
        columns = {"rowtime": "ts", "unit": "seconds", "producer": "p", "bound": "b"}
        session.stream(name, arriving, **columns, lag=lag, **options)
    return session


def live(spark, folder, logs, lag, kills, query, beside=None, **options):
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

    session = declared(spark, folder, logs, lag, **options)
    for name, batches in (beside or {}).items():
        record(session, name, batches, lag)
    plan = session.sql(query)._live
    evenly = [number / count for number in range(1, count)]
    given, told = in_micro_batches(plan, folder, evenly, kills, frames, plan.envelope)
    entries = sum(len(batch) for batches in logs.values() for batch in batches)
    assert told["rows_in"] == told["rows_used"] + told["rows_buffered"] + told["rows_late"] <= entries
    return given, told


def counted(tables):
    """How often each row is told; of producers nothing is known that is not in it."""
    return Counter(tuple(map(hashable, row.values())) for one in tables for row in one.to_pylist())


def hashable(value):
    return repr(value) if isinstance(value, (list, dict)) else value


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
