"""EMIT on executors gives what it gives on the driver in each micro-batch, in however many buckets."""

from __future__ import annotations

import datetime
import threading
from collections import Counter
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from tests.live.buckets import LAG_AND_CUTS, Stored, in_buckets, tabled
from tests.live.emit_queries import BEGIN, EACH, counted, cut, recorded
from tests.live.executors.test_executors import declared, one_producer
from tests.live.random_logs import COLUMNS, entry, table
from tests.live.stepping import law
from windrow import Memory, Session
from windrow.errors import InputError, NotSupportedError, UsageError, WindrowError
from windrow.kernels import operator_state
from windrow.spark.live.executors import bucket as buckets_of
from windrow.spark.live.executors import onward
from windrow.spark.live.executors.as_bytes import from_bytes
from windrow.spark.live.executors.bucket import advanced
from windrow.spark.live.executors.buckets import emitting
from windrow.spark.live.executors.graphs.graph import graph_of
from windrow.spark.live.executors.input import marked_rows
from windrow.spark.live.executors.input.packing import DATA, NOTE, pack
from windrow.spark.live.executors.unpacking import is_of_rows
from windrow.spark.live.input.late_rows import late_columns
from windrow.spark.logs.live_source import PTIME
from windrow.testing import playing

WINDOWS = "FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 3) GROUP BY k, wend"
QUERIES = {
    "groups": "SELECT k, COUNT(*) AS n, SUM(v) AS v, MIN(v) AS least FROM s GROUP BY k EMIT STREAM",
    "some groups": "SELECT k, AVG(v) AS v, MAX(v) AS most FROM s WHERE v > 0 GROUP BY k HAVING COUNT(*) > 1 "
    "EMIT STREAM",
    "tumbling windows": f"SELECT k, wend, COUNT(*) AS n, SUM(v) AS v {WINDOWS} EMIT STREAM",
    "windows that are over": f"SELECT k, wend, COUNT(*) AS n, AVG(v) AS v {WINDOWS} EMIT AFTER WATERMARK",
    "windows that late rows may change": f"SELECT k, wend, SUM(v) AS v {WINDOWS} EMIT STREAM AFTER WATERMARK "
    "ALLOWED LATENESS 2",
    "windows whose rows do not show the key": f"SELECT wend, SUM(v) AS v {WINDOWS} EMIT STREAM AFTER "
    "WATERMARK",
    "hopping windows": "SELECT k, wend, MAX(v) AS v FROM HOP(TABLE s, DESCRIPTOR(ts), 2, 5) GROUP BY k, wend "
    "EMIT STREAM AFTER WATERMARK",
    "groups of groups": "SELECT k, MAX(n) AS n FROM (SELECT k, wend, COUNT(*) AS n FROM TUMBLE(TABLE s, "
    "DESCRIPTOR(ts), 4) GROUP BY k, wend) GROUP BY k EMIT STREAM",
    "medians": "SELECT k, MEDIAN(v) AS v FROM s GROUP BY k EMIT STREAM",
    "some rows": "SELECT ts, k, v + 1 AS v FROM s WHERE v > 0 OR k IS NULL EMIT STREAM",
    "rows that are complete": "SELECT ts, v + 1 AS v FROM s WHERE v > 0 EMIT STREAM AFTER WATERMARK",
    "rows told apart": "SELECT DISTINCT k, v > 1 AS more FROM s EMIT STREAM",
    "sessions": "SELECT k, wstart, wend, COUNT(*) AS n, SUM(v) AS v FROM SESSION(TABLE s PARTITION BY k, "
    "DESCRIPTOR(ts), 2) GROUP BY k, wstart, wend EMIT STREAM AFTER WATERMARK",
    "sessions as they come": "SELECT k, wend, COUNT(*) AS n FROM SESSION(TABLE s PARTITION BY k, "
    "DESCRIPTOR(ts), 2) GROUP BY k, wend EMIT STREAM",
    "sessions of all keys": "SELECT wend, MAX(v) AS v FROM SESSION(TABLE s, DESCRIPTOR(ts), 1) GROUP BY wend "
    "EMIT STREAM AFTER WATERMARK ALLOWED LATENESS 2",
    "groups that are joined by time": "SELECT a.k, a.ts, n, v FROM (SELECT k, ts, COUNT(*) AS n FROM s "
    "GROUP BY k, ts) AS a JOIN (SELECT k, ts, SUM(v) AS v FROM s GROUP BY k, ts) AS b ON a.k = b.k "
    "AND a.ts = b.ts EMIT STREAM AFTER WATERMARK",
    "all rows": "SELECT COUNT(*) AS n, SUM(v) AS v, MAX(v) AS most FROM s WHERE v > 1 EMIT STREAM",
    "rows above all": "SELECT k, v FROM s WHERE v >= (SELECT MAX(v) FROM s) EMIT STREAM",
    "the greatest": "SELECT k, v FROM s ORDER BY v DESC, ts LIMIT 2 EMIT STREAM",
    "groups by what is computed": "SELECT v % 2 AS p, COUNT(*) AS n FROM s WHERE v > 0 GROUP BY v % 2 "
    "EMIT STREAM",
    "windows of all keys": "SELECT wend, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 3) GROUP BY wend "
    "EMIT STREAM AFTER WATERMARK",
    "windows of all keys that late rows may change": "SELECT wend, SUM(v) AS v FROM TUMBLE(TABLE s, "
    "DESCRIPTOR(ts), 3) GROUP BY wend EMIT STREAM AFTER WATERMARK ALLOWED LATENESS 2",
    "hopping windows of all keys": "SELECT wend, MAX(v) AS v FROM HOP(TABLE s, DESCRIPTOR(ts), 2, 5) "
    "GROUP BY wend EMIT STREAM AFTER WATERMARK",
    "windows of keys that equal rows do not show": f"SELECT wend, COUNT(*) AS n {WINDOWS} "
    "EMIT AFTER WATERMARK",
    "rows with names": "SELECT s.k, v, name FROM s JOIN names ON s.k = names.k EMIT STREAM AFTER WATERMARK",
    "groups with names": "SELECT s.k, name, COUNT(*) AS n FROM s LEFT JOIN names ON s.k = names.k "
    "GROUP BY s.k, name EMIT STREAM",
    "groups by names": "SELECT name, COUNT(*) AS n FROM s JOIN names ON s.k = names.k GROUP BY name "
    "EMIT STREAM",
    "names with rows or none": "SELECT name, v FROM names LEFT JOIN s ON s.k = names.k EMIT STREAM",
    "names but for keys": "SELECT k FROM names EXCEPT SELECT k FROM s EMIT STREAM",
    "groups after a delay": "SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s GROUP BY k "
    "EMIT STREAM AFTER DELAY INTERVAL 6 SECONDS",
    "medians after a delay": "SELECT k, MEDIAN(v) AS v FROM s GROUP BY k EMIT AFTER DELAY INTERVAL 9 SECONDS",
    "all rows after a delay": "SELECT COUNT(*) AS n FROM s EMIT STREAM AFTER DELAY INTERVAL 4 SECONDS",
    "rows after a delay": "SELECT ts, v FROM s WHERE v > 0 EMIT STREAM AFTER DELAY INTERVAL 6 SECONDS",
    "windows that are over, or after a delay": f"SELECT k, wend, SUM(v) AS v {WINDOWS} EMIT STREAM AFTER "
    "DELAY INTERVAL 6 SECONDS AND AFTER WATERMARK",
    "windows of all keys after a delay": "SELECT wend, MAX(v) AS v FROM HOP(TABLE s, DESCRIPTOR(ts), 2, 5) "
    "GROUP BY wend EMIT STREAM AFTER DELAY INTERVAL 6 SECONDS",
    "zeros of both signs": "SELECT (v - 2) * CAST('-0.0' AS DOUBLE) AS z, COUNT(*) AS n FROM s "
    "GROUP BY (v - 2) * CAST('-0.0' AS DOUBLE) EMIT STREAM",
    "counts of groups": "SELECT n, COUNT(*) AS m, MAX(k) AS k FROM (SELECT k, COUNT(*) AS n FROM s "
    "GROUP BY k) GROUP BY n EMIT STREAM",
    "counts of hopping windows": "SELECT n, wend, COUNT(*) AS m FROM (SELECT k, wend, COUNT(*) AS n FROM "
    "HOP(TABLE s, DESCRIPTOR(ts), 2, 5) GROUP BY k, wend) GROUP BY n, wend EMIT STREAM AFTER WATERMARK",
    "the greatest groups": "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) "
    "ORDER BY n DESC, k LIMIT 2 EMIT STREAM",
    "all keys after a delay": "SELECT COUNT(*) AS n FROM (SELECT DISTINCT k, v FROM s) "
    "EMIT STREAM AFTER DELAY INTERVAL 4 SECONDS",
    "hopping windows with most rows": "SELECT a.k, a.wend, a.n FROM (SELECT k, wend, COUNT(*) AS n FROM "
    "HOP(TABLE s, DESCRIPTOR(ts), 2, 5) GROUP BY k, wend) AS a JOIN (SELECT wend, MAX(n) AS most FROM "
    "(SELECT k, wend, COUNT(*) AS n FROM HOP(TABLE s, DESCRIPTOR(ts), 2, 5) GROUP BY k, wend) GROUP BY wend) "
    "AS b ON a.wend = b.wend AND a.n >= b.most EMIT STREAM AFTER WATERMARK",
    "the first of each": "SELECT k, ts, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, "
    "ts) AS place FROM s) WHERE place <= 2 EMIT STREAM",
}
OF_TWO = {
    "pairs": "SELECT s.k, s.v, t.v AS w FROM s JOIN t ON s.k = t.k EMIT STREAM",
    "pairs that are complete": "SELECT s.k, s.v, t.v AS w FROM s JOIN t ON s.k = t.k AND s.v <= t.v "
    "EMIT STREAM AFTER WATERMARK",
    "groups of pairs": "SELECT s.k, COUNT(*) AS n, MAX(t.v) AS v FROM s JOIN t ON s.k = t.k GROUP BY s.k "
    "EMIT STREAM",
    "rows with a partner": "SELECT k, v FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.v > s.v) "
    "EMIT STREAM",
    "rows with a partner or none": "SELECT s.k, s.v, t.v AS w FROM s LEFT JOIN t ON s.k = t.k AND "
    "s.ts >= t.ts EMIT STREAM",
    "pairs after a delay": "SELECT s.k, s.v, t.v AS w FROM s JOIN t ON s.k = t.k EMIT STREAM AFTER DELAY "
    "INTERVAL 6 SECONDS",
    "groups of both": "SELECT k, COUNT(*) AS n, SUM(v) AS v FROM (SELECT k, v FROM s UNION ALL SELECT k, "
    "v + 1 FROM t ) GROUP BY k EMIT STREAM",
    "keys but for some": "SELECT k FROM s EXCEPT SELECT k FROM t EMIT STREAM",
    "groups of pairs by another key": "SELECT t.v, COUNT(*) AS n FROM s JOIN t ON s.k = t.k GROUP BY t.v "
    "EMIT STREAM",
    "pairs of groups by another key": "SELECT a.k, a.n, t.v FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) "
    "AS a JOIN t ON a.n = t.v EMIT STREAM",
    "rows with a partner within an interval or none": "SELECT s.k, s.v, t.v AS w FROM s LEFT JOIN t ON s.k ="
    " t.k AND t.ts BETWEEN s.ts - 1 AND s.ts + 2 EMIT STREAM AFTER WATERMARK",
    "rows without a partner within an interval": "SELECT k, v FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE"
    " t.k = s.k AND t.ts BETWEEN s.ts AND s.ts + 2) EMIT STREAM AFTER WATERMARK ALLOWED LATENESS 1",
}

WITH_TWO_KEYS = {
    "counts of groups",
    "counts of hopping windows",
    "the greatest groups",
    "names with rows or none",
    "all keys after a delay",
    "groups of pairs by another key",
    "pairs of groups by another key",
}
"""The queries whose rows are divided twice."""

END = ("a", None, None, None, 30)

NAMES = pa.table({"k": [1, 2, 2, 4, None], "name": ["one", "two", "zwei", "four", "nothing"]})


@pytest.fixture
def named(spark):
    """A table that does not change."""
    spark.createDataFrame(NAMES).createOrReplaceTempView("names")
    yield
    spark.catalog.dropTempView("names")


def moment(number):
    """When a micro-batch comes; a fourth one long after the others."""
    return int((BEGIN.timestamp() + EACH * (number + 1 + 100 * (number > 3))) * 1_000_000)


def is_ticked(plan):
    """Whether time alone changes something."""
    return plan.delay or any(plan.catalog.streams[name].live.idle for name in plan.streams)


def on_driver(spark, plan, folder, batches, kills, envelope, as_table=tabled):
    """What the driver gives for the micro-batches of each stream."""

    def frames(number):
        def of(steps):
            when = F.lit(moment(number)).cast("bigint")
            found = {"": spark.range(1).select(when.alias("tick"))} if is_ticked(plan) else {}
            for _, name, stream in steps.streams():
                made = spark.createDataFrame(as_table(batches[name][number], name)).select(
                    *stream.live.columns
                )
                found[name] = made.withColumn(PTIME, when)
            return found

        return of

    count = len(next(iter(batches.values())))
    return playing.in_micro_batches(
        plan, folder / "checkpoint", [*map(frames, range(count))], kills, envelope
    )


def on_executors(spark, plan, logs, cuts, parts, count, forget, again, envelope, as_table=tabled):
    """The same of the buckets: rows and late rows of each micro-batch, and the last accounts."""
    graph, given_, accounts = in_buckets(
        spark,
        plan,
        logs,
        cuts,
        parts,
        count,
        forget,
        again,
        envelope=envelope,
        times=moment,
        as_table=as_table,
    )
    rows, late = [], []
    for packed in given_:
        tables = [from_bytes(data) for note, data in packed if is_of_rows(note)]
        rows.append(counted([graph.changes_of(tables)]))
        packets = spark.createDataFrame(packed, f"{NOTE} string, {DATA} binary")
        told = Counter()
        if any('"kind": "late"' in note for note, _ in packed):
            for place, name, stream in graph.streams:
                told.update(map(tuple, late_columns(name, stream, graph.late(packets, place)).collect()))
        late.append(told)
    return rows, late, [*accounts.values()]


@pytest.fixture
def small():
    """What operators hold is stored in place of few rows, and packets have few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator_state, "ROWS_BEFORE_STATE", 1)
        patch.setattr(emitting, "FINAL_FROM", 1)
        patch.setattr(emitting, "SPARE", 1)
        for module in (onward, marked_rows):
            patch.setattr(module, "_ROWS_AT_ONCE", 2)
        yield


def agree(
    spark,
    folder,
    query,
    logs,
    lag,
    cuts,
    parts,
    count,
    forget,
    again,
    envelope=None,
    declare=declared,
    as_table=tabled,
):
    """Compare the hosts."""
    plan = declare(spark, folder, logs, lag).sql(query).live
    envelope = envelope or plan.envelope
    edges = [*sorted(cuts), *([1.0] if is_ticked(plan) else [])]  # at last nothing comes but a tick
    bounds = [0.0, *edges, 1.0]
    batches = {
        name: [log[round(low * len(log)) : round(high * len(log))] for low, high in pairwise(bounds)]
        for name, log in logs.items()
    }
    wanted = on_driver(spark, plan, folder, batches, forget, envelope, as_table)
    rows, late, accounts = on_executors(
        spark, plan, logs, edges, parts, count, forget, again, envelope, as_table
    )
    assert rows == [Counter(tuple(row.values()) for row in step) for step in wanted.steps]
    columns = ("stream", "row", "rowtime", "bound", "producer", "reason")
    told = Counter(tuple(row[name] for name in columns) for row in wanted.late)
    assert sum(late, Counter()) == told
    progress = wanted.progress
    refused = sum(sum(one.rejected.values()) + one.for_groups for one in accounts)
    assert refused == progress["rows_late"] == sum(sum(one.values()) for one in late)
    assert not any(sum(one.waiting.values()) for one in accounts)
    return wanted


@law(8)
@given(
    st.lists(one_producer, max_size=9),
    st.lists(one_producer, max_size=5),
    *LAG_AND_CUTS,
    st.sampled_from([*QUERIES.values(), *OF_TWO.values()]),
)
@pytest.mark.usefixtures("interpreted", "small", "named")
def test_buckets_cuts_parts_and_new_workers_change_nothing(
    spark, tmp_path_factory, log, other, lag, cuts, parts, count, forget, again, query
):
    folder = tmp_path_factory.mktemp("emit")
    logs = {"s": [*log, END], **({"t": [*other, END]} if query in OF_TWO.values() else {})}
    agree(spark, folder, query, logs, lag, cuts, parts, count, forget, again)


def of_several(spark, folder, names, lag, idle=None):
    """Streams of several producers, which may become idle."""
    session = Session(spark)
    for name in names:
        arriving = spark.readStream.schema(COLUMNS).parquet(str(folder))
        session.stream(
            name, arriving, rowtime="ts", unit="seconds", producer="p", bound="b", lag=lag, idle=idle
        )
    return session


@law(6)
@given(
    st.lists(entry, max_size=9),
    st.lists(entry, max_size=5),
    *LAG_AND_CUTS,
    st.sampled_from([*QUERIES.values(), *OF_TWO.values()]),
    st.sampled_from([None, f"{EACH + 1} seconds"]),
)
@example([], [], None, [0.0], 1, 1, set(), set(), QUERIES["all rows after a delay"], None)
@pytest.mark.usefixtures("interpreted", "small", "named")
def test_several_producers_wait_for_each_other_in_every_bucket(
    spark, tmp_path_factory, log, other, lag, cuts, parts, count, forget, again, query, idle
):
    folder = tmp_path_factory.mktemp("several")
    end = [END, ("b", *END[1:])]
    logs = {"s": [*log, *end], **({"t": [*other, *end]} if query in OF_TWO.values() else {})}
    declare = partial(of_several, idle=idle)
    agree(spark, folder, query, logs, lag, cuts, parts, count, forget, again, declare=declare)


LOG = [
    ("a", 0, 1, 1, None),
    ("a", 1, 2, 3, None),
    ("a", 4, 1, 2, 2),
    ("a", 2, 1, 3, None),
    ("a", 7, 2, None, None),
    ("a", 3, 2, 2, None),
    ("a", 5, None, 1, 4),
    ("a", 1, 1, 1, None),
    ("a", 9, 1, 0, None),
    ("a", 6, 2, 3, 8),
    ("a", 9, 1, 2, None),
    END,
]


OTHER = [
    ("a", 2, 1, 2, None),
    ("a", 6, 2, 1, None),
    ("a", 4, 1, 3, 5),
    ("a", 8, None, 2, None),
    ("a", 3, 2, 0, None),
    END,
]


@pytest.mark.sampled
@pytest.mark.parametrize("name", [*QUERIES, *OF_TWO])
@pytest.mark.usefixtures("interpreted", "small", "named")
def test_buckets_give_what_the_recorded_log_gives(spark, tmp_path, name):
    query, cuts = {**QUERIES, **OF_TWO}[name], [0.2, 0.5, 0.8]
    logs = {"s": LOG, "t": OTHER} if name in OF_TWO else {"s": LOG}
    given_ = agree(spark, tmp_path, query, logs, 1, cuts, 2, 3, {1, 2}, {3})
    batches = {known: cut(log, cuts)[:-1] for known, log in logs.items()}
    told = recorded(spark, batches, 1, query)
    plan = declared(spark, tmp_path, logs, 1).sql(query).live
    assert (graph_of(plan, 3).onward is not None) == (name in WITH_TWO_KEYS)
    assert Counter(tuple(row.values()) for row in given_.rows) == counted([told])


def test_changes_are_exchanged_again_and_not_rows(spark, tmp_path, monkeypatch):
    sent, crossing = [], buckets_of.crossing

    def counting(onward, tables):
        sent.append(sum(table.num_rows for table in tables))
        return crossing(onward, tables)

    monkeypatch.setattr(buckets_of, "crossing", counting)
    logs = {"s": [*(("a", at // 50, at % 3, 1, None) for at in range(300)), END]}
    plan = declared(spark, tmp_path, logs, 2).sql(QUERIES["counts of groups"]).live
    on_executors(spark, plan, logs, [0.5, 0.9], 2, 2, set(), set(), "diff")
    assert sum(sent) == 3 + 2 * (3 + 3)  # three groups begin, and change twice


# -- what is kept ------------------------------------------------------------------------------------------


def test_a_micro_batch_of_few_rows_writes_few_bytes_and_looks_at_few_rows(spark, tmp_path, monkeypatch):
    plan = declared(spark, tmp_path, ["s"], 2).sql(QUERIES["windows that are over"]).live
    graph = graph_of(plan, 1)
    (_, _, stream), *_ = graph.streams

    def entries(*rows):
        frame = spark.createDataFrame(table(rows)).select(*stream.live.columns)
        return graph.entries({"s": frame.withColumn(PTIME, F.lit(moment(0)).cast("bigint"))})

    first, task = entries(("a", 1, 0, 1, None))
    few = [packet for batch in pack(task, first.toArrow().to_batches(), 0) for packet in batch.to_pylist()]
    written, looked_at = {}, {}
    for keys in (3_000, 30_000):
        store, many = Counting(), first.toArrow()
        name = task.sides[0].columns["k"]
        many = many.take([0] * keys)
        many = many.set_column(many.column_names.index(name), name, pa.array(range(keys)))
        monkeypatch.setattr(operator_state, "ROWS_BEFORE_STATE", 1_000)
        packets = [packet for batch in pack(task, many.to_batches(), 0) for packet in batch.to_pylist()]
        list(advanced(task, store, [(packet[NOTE], packet[DATA]) for packet in packets]))
        known = next(reversed(buckets_of.RECENT._known.values()))[2].state
        assert known.carried.to_json()["rows"] == known.run.retained == keys  # a count and a sum of each
        before, store.written = known.run.operators.looked_at, 0
        list(advanced(task, store, [(packet[NOTE], packet[DATA]) for packet in few]))
        written[keys], looked_at[keys] = store.written, known.run.operators.looked_at - before
    assert looked_at[3_000] == looked_at[30_000] == 1
    assert written[30_000] < 1.1 * written[3_000] < 8_000


@pytest.mark.parametrize("name", ["sessions", "groups that are joined by time"])
@pytest.mark.usefixtures("interpreted", "small")
def test_rows_are_kept_no_longer_than_they_may_change(spark, tmp_path, name):
    plan = declared(spark, tmp_path, ["s"], 1).sql(QUERIES[name]).live
    log = [("a", at, at % 2, 1, None) for at in range(0, 120, 3)]
    _, _, accounts = in_buckets(spark, plan, {"s": log}, [0.2, 0.4, 0.6, 0.8], 1, 2, {1}, set(), times=moment)
    assert sum(one.arrived[0] for one in accounts.values()) == 8  # in the last micro-batch
    assert 1 <= sum(one.retained[0] for one in accounts.values()) <= 4


class Counting(Stored):
    """Counts the bytes that are written."""

    written = 0

    def save(self, text):
        self.written += len(text)
        super().save(text)

    def write(self, name, number, data):
        self.written += len(data)
        super().write(name, number, data)


# -- on Spark's state store --------------------------------------------------------------------------------

HOST = "spark.windrow.live.host"
ARRIVING = "at timestamp, k string, v int"
OVER = """SELECT k, date_format(wend, 'HH:mm') AS until, COUNT(*) AS n, AVG(v) AS v
FROM TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL 5 MINUTES) GROUP BY k, wend EMIT STREAM AFTER WATERMARK"""


@pytest.fixture
def put(spark, tmp_path):
    """Writes a file that arrives, of minutes, keys and values."""
    (tmp_path / "in").mkdir()

    def write(*rows):
        told = [(datetime.datetime(2026, 1, 1, 10, minute), key, value) for minute, key, value in rows]
        frame = spark.createDataFrame(told, ARRIVING).coalesce(1)
        frame.write.mode("append").parquet(str(tmp_path / "in"))

    return write


@pytest.fixture
def session(spark, tmp_path, put):
    del put
    session = Session(spark)
    arriving = spark.readStream.schema(ARRIVING).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    session.stream("s", arriving, rowtime="at", lag="2 minutes")
    spark.conf.set(HOST, "executors")
    yield session
    spark.conf.unset(HOST)


def test_a_query_with_emit_goes_on_with_the_state_store(spark, session, tmp_path, put):
    relation, given_ = session.sql(OVER), Memory()

    def start():
        return relation.start(given_, checkpoint=tmp_path / "checkpoint")

    put((1, "a", 1), (2, "b", 5), (4, "a", 3))
    query = start()
    query.process_all_available()
    assert not any(one.num_rows for one in given_.batches.values())
    put((3, "a", 5), (9, "b", 2))
    query.process_all_available()
    query.stop()
    query = start()
    put((2, "a", 7), (6, "b", 4), (30, "b", 2))
    query.process_all_available()
    batches = [given_.batches[number].to_pylist() for number in sorted(given_.batches)]
    told = [[tuple(row.values()) for row in batch] for batch in batches if batch]
    now = [sorted({row[5] for row in rows}) for rows in told]
    assert [sorted(row[:5] + row[6:] for row in rows) for rows in told] == [
        [("a", "10:05", 3, 3.0, False, 0), ("b", "10:05", 1, 5.0, False, 0)],
        [("b", "10:10", 2, 3.0, False, 0)],
    ]
    assert [len(times) for times in now] == [1, 1]
    (late,) = query.late.collect()
    assert (late["row"], late["bound"], late["reason"]) == (
        '{"at":"2026-01-01T10:02:00.000Z","k":"a","v":7}',
        "2026-01-01 10:07:00",
        "watermark",
    )
    progress = query.progress
    account = [progress[f"rows_{name}"] for name in ("in", "used", "buffered", "late", "malformed")]
    assert account == [8, 7, 0, 1, 0]
    kinds = [(row["kind"], row["rows"], row["oldest"], row["bound"]) for row in query.state().collect()]
    assert kinds == [
        ("stream", None, None, "2026-01-01 10:28:00"),
        ("producer", None, None, "2026-01-01 10:28:00"),
        ("rows", 8, "2026-01-01 10:01:00", None),
        ("operators", 4, None, None),
    ]
    query.stop()
    spark.conf.set(HOST, "driver")
    with pytest.raises(InputError, match="is of a query on the executors"):
        start()


def test_its_changes_and_late_rows_are_streaming_dataframes(spark, session, tmp_path, put):
    put((1, "a", 1), (2, "b", 5), (9, "a", 3))
    put((1, "b", 2), (20, "b", 6))
    relation = session.sql(OVER)
    for name, frame in (("rows", relation.df), ("late", relation.late.df)):
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / f"of-{name}"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / name), format="parquet")
        query.awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "rows")).drop("ptime").collect()
    assert sorted(map(tuple, rows)) == [
        ("a", "10:05", 1, 1.0, False, 0),
        ("a", "10:10", 1, 3.0, False, 0),
        ("b", "10:05", 1, 5.0, False, 0),
    ]
    ((_, late, *_),) = spark.read.parquet(str(tmp_path / "late")).collect()
    assert late == '{"at":"2026-01-01T10:01:00.000Z","k":"b","v":2}'


def test_explain_names_the_exchange(spark, session):
    count = spark.conf.get("spark.sql.shuffle.partitions")
    plan = session.sql(f"EXPLAIN {OVER}").plan()
    assert f"  host       executors\n  exchange   {count} buckets: s by k\n" in plan
    computed = session.sql("EXPLAIN SELECT lower(k) AS k, COUNT(*) AS n FROM s GROUP BY lower(k) EMIT STREAM")
    assert f"  exchange   {count} buckets: s by a computed column\n" in computed.plan()
    alone = session.sql("EXPLAIN SELECT COUNT(*) AS n FROM s EMIT STREAM").plan()
    assert "  host       executors\n  exchange   one bucket: no key divides the rows\n" in alone
    spark.conf.unset(HOST)
    assert "  host       the driver: the master is local\n" in session.sql(f"EXPLAIN {OVER}").plan()


def test_what_is_due_is_emitted_while_all_is_silent_and_after_a_restart(session, tmp_path, put):
    query = "SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT STREAM AFTER DELAY INTERVAL 2 SECONDS"
    relation, given_, emitted = session.sql(query), Memory(), threading.Event()
    session.listeners.add(lambda progress: emitted.set() if progress["batch_rows_emitted"] else None)
    put((1, "a", 1), (2, "b", 5))
    with pytest.MonkeyPatch.context() as patch:  # it ends before anything is due
        patch.setattr("windrow.spark.live.input.ticks.Ticker.want", lambda *_: None)
        started = relation.start(given_, checkpoint=tmp_path / "checkpoint")
        started.process_all_available()
        arrived_at = started.progress["frontier"]
        started.stop()
    assert not any(table.num_rows for table in given_.batches.values())
    started = relation.start(given_, checkpoint=tmp_path / "checkpoint")
    assert emitted.wait(180)
    started.stop()
    due = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(
        microseconds=arrived_at + 2_000_000
    )
    rows = [tuple(row.values()) for table in given_.batches.values() for row in table.to_pylist()]
    assert sorted(rows) == [("a", 1, False, due, 0), ("b", 1, False, due, 0)]


def test_a_streaming_dataframe_has_nobody_who_ticks(session):
    query = "SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT STREAM AFTER DELAY INTERVAL 3 SECONDS"
    with pytest.raises(UsageError, match="emits changes when their delay is over") as refused:
        session.sql(query).df  # noqa: B018 - it is made when it is asked for
    assert refused.value.hint.startswith("leave AFTER DELAY out")


def test_a_streaming_dataframe_does_not_notice_that_a_producer_is_idle(spark, tmp_path):
    relation = of_several(spark, tmp_path, ["s"], 1, "3 seconds").sql("SELECT k, v FROM s [RANGE 3 SECONDS]")
    for ask in (lambda: relation.df, lambda: relation.late.df):
        with pytest.raises(UsageError, match="a producer becomes idle") as refused:
            ask()
        assert refused.value.condition == "LIVE_RELATION"


REFUSED = {
    "SELECT k, wend, COUNT(*) AS n FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(at), INTERVAL 1 MINUTE) "
    "GROUP BY k, wend EMIT STREAM AFTER DELAY INTERVAL 1 MINUTE": "AFTER DELAY over retained rows",
    "SELECT k, array(v) AS a FROM s EMIT STREAM": "complex types",
    "SELECT k, MAX(k COLLATE UTF8_LCASE) AS c FROM s GROUP BY k EMIT STREAM": "texts with a collation",
    "SELECT k, lower(rpad(k, v, 'x')) AS l, COUNT(*) AS n FROM s GROUP BY k, l EMIT STREAM": "Spark alone",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_does_not_run_on_executors_is_refused(session, tmp_path, query):
    assert "executors, which cannot run it: " in session.sql(f"EXPLAIN {query}").plan()
    with pytest.raises(NotSupportedError, match=REFUSED[query]) as refused:
        session.sql(query).start(tmp_path / "out")
    assert refused.value.condition == "UNSUPPORTED_ON_EXECUTORS"


def test_a_table_that_is_not_small_is_refused(spark, session, tmp_path, named, conf):
    query = "SELECT v, name FROM s JOIN names ON s.v = names.k EMIT STREAM"
    assert "do not run it yet" not in session.sql(f"EXPLAIN {query}").plan()
    conf("spark.sql.autoBroadcastJoinThreshold", "1")
    with pytest.raises(NotSupportedError, match="a table above spark"):
        session.sql(query).start(tmp_path / "out")


def test_a_key_that_does_not_fit_ends_the_query(session, put):
    put((1, "a", 2147483647))
    query = session.sql("SELECT v + 1 AS k, COUNT(*) AS n FROM s GROUP BY v + 1 EMIT STREAM").start(Memory())
    with pytest.raises(WindrowError, match="does not fit into its type") as ended:
        query.process_all_available()
    assert ended.value.condition == "VALUE_ON_EXECUTORS"


def test_a_value_that_does_not_fit_ends_the_query(session, put):
    put((1, "a", 2147483647))
    query = session.sql("SELECT k, MAX(v + 1) AS v FROM s GROUP BY k EMIT STREAM").start(Memory())
    with pytest.raises(WindrowError, match="does not fit into its type") as ended:
        query.process_all_available()
    assert ended.value.condition == "VALUE_ON_EXECUTORS"
