"""Live queries on executors give what they give on the driver, into however many buckets rows are divided."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live.buckets import LAG_AND_CUTS, in_buckets
from tests.live.random_logs import COLUMNS, admitted, declared_live, ended, entry, recorded, row
from tests.live.stepping import law, total
from windrow import Memory, Session
from windrow.errors import InputError, NotSupportedError, UsageError, WindrowError
from windrow.kernels import operator_state
from windrow.spark.live import hosts
from windrow.spark.live.executors import onward
from windrow.spark.live.executors.bucket_steps import ExecutorSteps
from windrow.spark.live.executors.graphs import window_graph
from windrow.spark.live.executors.input import marked_rows
from windrow.spark.live.executors.input.packing import DATA, NOTE
from windrow.spark.live.hosts import micro_batches_of
from windrow.spark.live.micro_batches.windowed_steps import WindowedSteps
from windrow.streams import FOREVER

QUERIES = [
    "SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 3 SECONDS] GROUP BY k",
    "SELECT k, MAX(v) AS v FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY k",
    "SELECT k, SUM(v) AS v FROM s [PARTITION BY k ROWS 2] GROUP BY k",
    "SELECT SUM(v) AS v, COUNT(*) AS n FROM s [PARTITION BY k ROWS 2] GROUP BY v",
    "SELECT k, AVG(v) AS v FROM s [RANGE UNBOUNDED] GROUP BY k",
    "SELECT k, COUNT(v) + 1 AS n FROM s [RANGE 3 SECONDS] GROUP BY k HAVING COUNT(*) > 1",
    "SELECT COUNT(*) AS n FROM s [RANGE 3 SECONDS] GROUP BY k",
    "SELECT v % 2 AS p, COUNT(*) AS n FROM s [RANGE 3 SECONDS] GROUP BY v % 2",
    "SELECT v * CAST('-0.0' AS DOUBLE) AS z, COUNT(*) AS n FROM s [RANGE 3 SECONDS] GROUP BY z",
    "SELECT k, v, ts FROM s [PARTITION BY k ROWS 1]",
    "SELECT k, v + 1 AS v FROM s [RANGE 2 SECONDS] WHERE v > 0",
    "SELECT v FROM s [ROWS 2]",
    "SELECT s.k, s.v, t.v AS w FROM s [RANGE 3 SECONDS] JOIN t [RANGE 2 SECONDS] ON s.k = t.k",
    "SELECT s.v, t.v AS w FROM s [PARTITION BY k ROWS 1] JOIN t [RANGE 5 SECONDS] ON s.k = t.k",
    "SELECT a.k, a.v, b.v AS w FROM s [RANGE 2 SECONDS] AS a JOIN s [ROWS 3] AS b ON a.k = b.k",
    "ISTREAM(SELECT k, SUM(v) AS v FROM s [RANGE 3 SECONDS] GROUP BY k)",
    "DSTREAM(SELECT k, v FROM s [RANGE 2 SECONDS])",
    "SELECT STREAM k, v + 1 AS v FROM s WHERE v > 0",
]

OF_OPERATORS = [
    "SELECT DISTINCT k, v > 1 AS more FROM s [RANGE 3 SECONDS]",
    "SELECT k, MAX(n) AS n FROM (SELECT k, v, COUNT(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY k, v) "
    "GROUP BY k",
    "SELECT a.k, n, m FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 3 SECONDS] GROUP BY k) AS a JOIN "
    "(SELECT k, SUM(v) AS m FROM t [PARTITION BY k ROWS 2] GROUP BY k) AS b ON a.k = b.k",
    "SELECT k FROM s [RANGE 3 SECONDS] EXCEPT SELECT k FROM t [RANGE 5 SECONDS]",
    "SELECT k, v FROM s [RANGE 4 SECONDS] WHERE EXISTS (SELECT 1 FROM t [RANGE 2 SECONDS] WHERE t.k = s.k)",
    "SELECT k, v FROM s [RANGE 4 SECONDS] WHERE v NOT IN (SELECT v FROM t [RANGE 2 SECONDS] WHERE t.k = s.k)",
    "ISTREAM(SELECT DISTINCT k FROM s [RANGE UNBOUNDED])",
    "SELECT s.k, s.v, t.v AS w FROM s [RANGE 3 SECONDS] LEFT JOIN t [RANGE 4 SECONDS] "
    "ON s.k = t.k AND s.v < t.v",
    "SELECT k, COUNT(*) AS n FROM (SELECT k, v FROM s [RANGE 3 SECONDS] UNION ALL SELECT k, v FROM t "
    "[RANGE 2 SECONDS]) GROUP BY k",
    "SELECT k, MAX(n) AS n FROM (SELECT k % 2 AS k, v, COUNT(*) AS n FROM s [RANGE 4 SECONDS] "
    "GROUP BY k % 2, v) GROUP BY k",
    "SELECT s.k, s.v, u.w FROM s [RANGE 3 SECONDS] JOIN (VALUES (1, 'x'), (2, 'y')) AS u (k, w) ON s.k = u.k",
    "SELECT k, v, w FROM s [PARTITION BY k ROWS 2] JOIN (VALUES (1, 'x'), (2, 'y')) AS u (x, w) ON v = x",
    "SELECT p, COUNT(*) AS m FROM (SELECT CAST(v AS STRING) AS p FROM s [RANGE 4 SECONDS] "
    "UNION ALL SELECT 'x' AS p FROM t [RANGE 2 SECONDS]) GROUP BY p",
    "SELECT s.k, MAX(u.w) AS w, COUNT(*) AS n FROM s [RANGE 4 SECONDS] LEFT JOIN (VALUES (1, 'x'), (1, 'z')) "
    "AS u (k, w) ON s.k = u.k GROUP BY s.k",
]

WITH_TWO_KEYS = [
    "SELECT a.k, a.m, b.v FROM (SELECT k, COUNT(*) AS m FROM s [RANGE 4 SECONDS] GROUP BY k) AS a JOIN "
    "t [ROWS 3] AS b ON a.m = b.v",
    "SELECT a.k, a.m, b.v FROM (SELECT k, MAX(v) AS m FROM s [PARTITION BY k ROWS 3] GROUP BY k) AS a JOIN "
    "t [PARTITION BY k ROWS 2] AS b ON a.m = b.v",
    "SELECT p, COUNT(*) AS m FROM (SELECT k, CAST(COUNT(*) AS STRING) AS p FROM s [RANGE 4 SECONDS] "
    "GROUP BY k UNION ALL SELECT v, 'x' FROM t [RANGE 2 SECONDS]) GROUP BY p",
    "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY k) GROUP BY n",
    "SELECT COUNT(*) AS n, SUM(v) AS v FROM (SELECT DISTINCT k, v FROM s [RANGE 3 SECONDS])",
    "SELECT a.k, a.v, b.m FROM (SELECT k, SUM(v) AS v FROM s [RANGE 4 SECONDS] GROUP BY k) AS a JOIN "
    "(SELECT v AS w, COUNT(*) AS m FROM s [RANGE 4 SECONDS] GROUP BY v) AS b ON a.v = b.w",
    "SELECT a.k, a.v, b.m FROM s [RANGE 3 SECONDS] AS a JOIN "
    "(SELECT v AS w, COUNT(DISTINCT k) AS m FROM (SELECT k, MAX(v) AS v FROM t [PARTITION BY k ROWS 2] "
    "GROUP BY k) GROUP BY v) AS b ON a.v = b.w",
    "ISTREAM(SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k) "
    "GROUP BY n)",
    "SELECT k % 2 AS p, COUNT(*) AS n FROM (SELECT DISTINCT k, v FROM s [PARTITION BY v ROWS 2]) "
    "GROUP BY k % 2",
    "SELECT n % 2 AS p, MAX(k) AS k FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY k) "
    "GROUP BY n % 2",
]

IN_ONE_BUCKET = [
    "SELECT n, COUNT(*) AS m FROM (SELECT k, STDDEV(v) AS n FROM s [RANGE 3 SECONDS] GROUP BY k) GROUP BY n",
    "SELECT k, v FROM s [RANGE 4 SECONDS] WHERE (v, k, v, 1) NOT IN (SELECT v, 1, 2, k FROM t [ROWS 2])",
    "SELECT COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 3 SECONDS]",
    "SELECT DISTINCT k FROM s [ROWS 2]",
    "SELECT k, v FROM s [ROWS 3 SLIDE 2]",
    "SELECT k, v FROM s [PARTITION BY k % 2 ROWS 2]",
    "SELECT DISTINCT k FROM s [RANGE 3 SECONDS] UNION ALL SELECT k FROM s [ROWS 2]",
    "SELECT s.k, s.v FROM s [RANGE 3 SECONDS] WHERE v >= (SELECT MAX(v) FROM t [RANGE 4 SECONDS])",
]

one_producer = entry.map(lambda found: ("a", *found[1:]))


def declared(spark, folder, names, lag):
    session = Session(spark)
    for name in names:
        arriving = spark.readStream.schema(COLUMNS).parquet(str(folder))
        session.stream(name, arriving, rowtime="ts", unit="seconds", bound="b", lag=lag)
    return session


def changes_of(spark, graph, tables):
    """The changes of all micro-batches, in the envelope ``diff``."""
    found = Counter()
    for packed in tables:
        packets = spark.createDataFrame(packed, f"{NOTE} string, {DATA} binary")
        found.update(total([graph.changes(packets).toArrow()]))
    return found


def counted(changes):
    """Without what adds up to nothing."""
    return {row: count for row, count in changes.items() if count}


@pytest.fixture
def small():
    """Groups are stored in place of few rows, and packets have few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator_state, "ROWS_BEFORE_STATE", 1)
        for module in (onward, marked_rows):
            patch.setattr(module, "_ROWS_AT_ONCE", 2)
        yield


OF_WINDOWS = st.sampled_from([*QUERIES, *OF_OPERATORS, *WITH_TWO_KEYS, *IN_ONE_BUCKET])
BEGUN = row.map(lambda found: (*found, None))
"""The first entry of a log: before its first row a stream has no watermark."""


@law(6)
@given(st.data(), *LAG_AND_CUTS, OF_WINDOWS)
@pytest.mark.usefixtures("interpreted", "small")
def test_buckets_cuts_parts_and_new_workers_change_nothing(
    spark, tmp_path_factory, data, lag, cuts, parts, count, forget, again, query
):
    entries = st.tuples(BEGUN, st.lists(entry, max_size=7)).map(lambda found: [found[0], *found[1]])
    logs = {name: ended([("a", *one[1:]) for one in data.draw(entries)]) for name in ("s", "t")}
    plan = declared(spark, tmp_path_factory.mktemp("executors"), logs, lag).sql(query).live
    assert_as_recorded(spark, plan, logs, lag, cuts, parts, count, forget, again, query)


@law(6)
@given(st.data(), *LAG_AND_CUTS, OF_WINDOWS)
@pytest.mark.usefixtures("interpreted", "small")
def test_several_producers_wait_for_each_other_in_every_bucket(
    spark, tmp_path_factory, data, lag, cuts, parts, count, forget, again, query
):
    entries = st.tuples(BEGUN, st.lists(entry, max_size=8)).map(lambda found: [found[0], *found[1]])
    logs = {name: ended(data.draw(entries)) for name in ("s", "t")}
    plan = declared_live(spark, tmp_path_factory.mktemp("several"), logs, lag).sql(query).live
    assert_as_recorded(spark, plan, logs, lag, cuts, parts, count, forget, again, query)


def assert_as_recorded(spark, plan, logs, lag, cuts, parts, count, forget, again, query):
    """That buckets give what the recorded log gives, and account for all rows."""
    graph, tables, accounts = in_buckets(spark, plan, logs, cuts, parts, count, forget, again)
    wanted = recorded(spark, logs, lag).sql(query)
    assert_same(spark, graph, tables, wanted, is_stream="STREAM" in query)
    used = {name for _, name, _ in graph.streams}
    late = sum(sum(one.late.values()) + sum(one.rejected.values()) for one in accounts.values())
    rows = {name: sum(one[1] is not None for one in logs[name]) for name in used}
    assert late == sum(rows.values()) - sum(len(admitted(logs[name], lag)) for name in used)
    assert not any(one.waiting.get(at) for one in accounts.values() for at in range(len(used)))


def assert_same(spark, graph, tables, wanted, *, is_stream):
    """That buckets give what the recorded log gives: the rows of a stream, or the changes of a relation."""
    if is_stream:
        rows = Counter()
        for packed in tables:
            packets = spark.createDataFrame(packed, f"{NOTE} string, {DATA} binary")
            rows += Counter(map(tuple, graph.changes(packets).collect()))
        assert rows == Counter(map(tuple, wanted.collect()))
    else:
        whole = total([wanted.changelog("diff").to_arrow()])
        assert counted(changes_of(spark, graph, tables)) == counted(whole)


LOGS = {
    "s": [
        ("a", 0, 1, 1, None),
        ("a", 1, 2, 3, None),
        ("a", 4, 1, 2, 2),
        ("a", 2, 1, 3, None),
        ("a", 7, 2, None, None),
        ("a", 5, None, 1, 4),
        ("a", 9, 1, 0, None),
        ("a", 8, 2, 3, 8),
    ],
    "t": [("a", 1, 1, 2, None), ("a", 3, 2, 1, None), ("a", 4, 1, 3, 4), ("a", 8, None, 2, None)],
}


@pytest.mark.sampled
@pytest.mark.parametrize("query", [*OF_OPERATORS, *WITH_TWO_KEYS, *IN_ONE_BUCKET])
@pytest.mark.usefixtures("interpreted", "small")
def test_operators_over_windows_give_what_the_recorded_log_gives(spark, tmp_path, query):
    end = ("a", None, None, None, FOREVER)
    logs = {name: [*log, end] for name, log in LOGS.items()}
    plan = declared(spark, tmp_path, logs, 2).sql(query).live
    graph, tables, accounts = in_buckets(spark, plan, logs, [0.3, 0.6, 0.8], 2, 3, {1, 3}, {2})
    wanted = recorded(spark, logs, 2).sql(query)
    assert_same(spark, graph, tables, wanted, is_stream=query.startswith("ISTREAM"))
    assert len(accounts) == (1 if query in IN_ONE_BUCKET else 3)
    assert (graph.onward is not None) == (query in WITH_TWO_KEYS)
    assert not any(one.waiting.get(at) for one in accounts.values() for at in range(len(graph.streams)))


# -- on Spark's state store --------------------------------------------------------------------------------

HOST = "spark.windrow.live.host"
PER_KEY = "SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k"


@pytest.fixture
def put(spark, tmp_path):
    """Writes a file that arrives."""
    (tmp_path / "in").mkdir()

    def write(*rows):
        frame = spark.createDataFrame(rows, "ts bigint, k string, v int").coalesce(1)
        frame.write.mode("append").parquet(str(tmp_path / "in"))

    return write


@pytest.fixture
def session(spark, tmp_path, put):
    del put
    session = Session(spark)
    arriving = spark.readStream.schema("ts bigint, k string, v int").option("maxFilesPerTrigger", 1)
    stream = arriving.parquet(str(tmp_path / "in"))
    session.stream("s", stream, rowtime="ts", unit="seconds", lag=2)
    return session


@pytest.fixture
def on_executors(spark):
    spark.conf.set(HOST, "executors")
    yield
    spark.conf.unset(HOST)


def written(spark, folder):
    return sorted(map(tuple, spark.read.parquet(str(folder)).collect()))


@pytest.mark.long
@pytest.mark.usefixtures("on_executors")
def test_a_query_goes_on_with_the_state_store(spark, session, tmp_path, put):
    relation, out = session.sql(PER_KEY), tmp_path / "out"

    def start():
        return relation.start(out, checkpoint=tmp_path / "checkpoint", envelope="diff")

    put((1, "a", 1), (2, "b", 5), (4, "a", 3))
    query = start()
    query.process_all_available()
    assert (query.progress["frontier"], query.progress["rows_buffered"]) == (2, 2)
    put((3, "a", 9), (9, "b", 2), (5, "a", 9))
    query.process_all_available()
    query.stop()
    spark.conf.set("spark.windrow.live.buckets", "7")  # the checkpoint says how many there are
    try:
        query = start()
        put((30, "b", 2))
        query.process_all_available()
    finally:
        spark.conf.unset("spark.windrow.live.buckets")
    assert written(spark, out) == [
        ("a", 1, 1, -1, 3),
        ("a", 1, 1, 1, 1),
        ("a", 3, 1, -1, 9),
        ("a", 3, 1, 1, 8),
        ("a", 10, 2, -1, 4),
        ("a", 10, 2, 1, 3),
        ("a", 12, 2, -1, 8),
        ("a", 12, 2, 1, 6),
        ("a", 13, 3, -1, 6),
        ("a", 13, 3, 1, 4),
        ("b", 2, 1, -1, 14),
        ("b", 2, 1, 1, 9),
        ("b", 5, 1, -1, 7),
        ("b", 5, 1, 1, 2),
    ]
    (late,) = query.late.collect()
    assert (late["row"], late["bound"], late["reason"]) == ('{"ts":5,"k":"a","v":9}', "7", "watermark")
    progress = query.progress
    account = [progress[f"rows_{name}"] for name in ("in", "used", "buffered", "late", "malformed")]
    assert account == [7, 5, 1, 1, 0]
    assert progress["buckets"] == int(spark.conf.get("spark.sql.shuffle.partitions"))
    kinds = [(row["kind"], row["rows"], row["oldest"], row["bound"]) for row in query.state().collect()]
    assert kinds == [("stream", 1, "30", "28"), ("producer", None, None, "28"), ("window", 0, None, None)]
    query.stop()
    spark.conf.set(HOST, "driver")
    with pytest.raises(InputError, match="is of a query on the executors") as refused:
        start()
    assert refused.value.condition == "CHECKPOINT_OF_ANOTHER_HOST"


def test_a_live_relation_is_a_streaming_dataframe(spark, session, tmp_path, put):
    put((1, "a", 1), (2, "b", 5), (9, "a", 3))
    frame = session.sql("SELECT k, SUM(v) + 1 AS v FROM s [RANGE 5 SECONDS] GROUP BY k").df
    assert frame.isStreaming
    assert frame.columns == ["k", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    writer = frame.where("k = 'a'").writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"), format="parquet")
    query.awaitTermination()
    assert written(spark, tmp_path / "out") == [("a", 2, "delete", 6, 6), ("a", 2, "insert", 1, 1)]


TWICE = (
    "SELECT n, COUNT(*) AS m, MAX(k) AS k FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k) "
    "GROUP BY n"
)


@pytest.mark.usefixtures("on_executors")
def test_rows_are_exchanged_twice_by_different_keys(spark, session, tmp_path, put):
    relation = session.sql(TWICE)
    plan = session.sql(f"EXPLAIN {TWICE}").plan()
    assert [line.split(None, 1)[1] for line in plan.splitlines() if line.strip().startswith("exchange")] == [
        "2 buckets: s by k",
        "2 buckets, by other keys: the changes of the operators above",
    ]

    def started(name):
        query = relation.start(tmp_path / name, checkpoint=tmp_path / f"{name}-checkpoint", envelope="diff")
        query.process_all_available()
        return query

    put((1, "a", 1), (2, "b", 5), (4, "a", 3))
    started("out").stop()
    put((3, "c", 9), (9, "b", 2), (5, "a", 9))
    put((30, "b", 2))
    query = started("out")
    progress, state = query.progress, query.state().collect()
    query.stop()
    names = ("in", "used", "buffered", "late", "malformed")
    assert [progress[f"rows_{name}"] for name in names] == [7, 5, 1, 1, 0]
    assert (progress["frontier"], progress["buckets"]) == (28, 2)
    assert [(row["kind"], row["rows"]) for row in state if row["kind"] == "stream"] == [("stream", 1)]
    frame = relation.df.writeStream.option("checkpointLocation", str(tmp_path / "frame-checkpoint"))
    frame.trigger(availableNow=True).start(str(tmp_path / "frame"), format="parquet").awaitTermination()
    given = [
        (*row[:3], 1 if row[3] == "insert" else -1, row[4]) for row in written(spark, tmp_path / "frame")
    ]
    spark.conf.set(HOST, "driver")
    started("driver").stop()
    wanted = written(spark, tmp_path / "driver")
    assert written(spark, tmp_path / "out") == wanted
    assert sorted(given) == wanted


@pytest.mark.usefixtures("on_executors")
def test_a_checkpoint_goes_on_with_as_many_exchanges_as_it_has(spark, session, tmp_path, put, monkeypatch):
    relation = session.sql(TWICE)

    def taken(name):
        query = relation.start(tmp_path / name, checkpoint=tmp_path / f"{name}-checkpoint", envelope="diff")
        query.process_all_available()
        query.stop()

    put((1, "a", 1), (2, "b", 5), (4, "a", 3))
    with monkeypatch.context() as patch:
        patch.setattr(window_graph, "divided_twice", lambda *_: None)  # as in earlier versions
        taken("out")
    put((9, "b", 2), (30, "b", 2))
    taken("out")
    spark.conf.set(HOST, "driver")
    taken("driver")
    assert written(spark, tmp_path / "out") == written(spark, tmp_path / "driver")


@pytest.mark.usefixtures("on_executors")
def test_a_table_beside_windows_is_that_of_the_first_start(spark, session, tmp_path, put):
    names = tmp_path / "names"
    spark.createDataFrame([("a", "one"), ("b", "two")], "k string, name string").write.parquet(str(names))
    spark.read.parquet(str(names)).createOrReplaceTempView("names")
    relation, out = (
        session.sql("SELECT name, v FROM s [RANGE 5 SECONDS] JOIN names USING (k)"),
        tmp_path / "out",
    )

    def taken():
        query = relation.start(out, checkpoint=tmp_path / "checkpoint", envelope="diff")
        query.process_all_available()
        query.stop()

    put((1, "a", 1), (2, "b", 5), (9, "c", 3))
    taken()
    shutil.rmtree(names)  # what leaves must be what entered
    spark.createDataFrame([("a", "ONE"), ("c", "three")], "k string, name string").write.parquet(str(names))
    spark.read.parquet(str(names)).createOrReplaceTempView("names")
    put((20, "a", 7))
    taken()
    assert written(spark, out) == [
        ("one", 1, -1, 6),
        ("one", 1, 1, 1),
        ("two", 5, -1, 7),
        ("two", 5, 1, 2),
    ]
    with pytest.raises(UsageError, match="no checkpoint of its own for the rows of a table") as refused:
        relation.df  # noqa: B018 - refused
    assert refused.value.condition == "LIVE_RELATION"


@pytest.mark.usefixtures("on_executors", "interpreted")
def test_a_micro_batch_that_was_taken_is_not_taken_again_in_however_many_packets(spark, tmp_path):
    entries = [("a", 5, 1, 1, None), ("a", 1, 1, 2, None), ("a", 2, 1, 3, None), ("a", 9, 1, 4, None)]
    plan = declared(spark, tmp_path, ["s"], 2).sql(PER_KEY).live
    sizes, sink = set(), Memory()
    for parts in (1, 4):  # as with more tasks after a restart
        _, [given_], _ = in_buckets(spark, plan, {"s": entries}, [], parts, 1, set(), set())
        sizes.add(len(given_))
        steps = micro_batches_of(plan, sink, tmp_path / "checkpoint", "diff", "keep")
        steps.take(spark.createDataFrame(given_, f"{NOTE} string, {DATA} binary"), 0)
        late = steps.aside_table("late").num_rows
        steps.close()
        assert late == 2
    assert len(sizes) == 2
    assert list(sink.batches) == [0]


@pytest.mark.usefixtures("on_executors")
def test_a_row_without_a_rowtime_ends_the_query(session, put):
    put((None, "a", 1))
    query = session.sql(PER_KEY).start(Memory())
    with pytest.raises(WindrowError, match="NULL as its rowtime") as ended:
        query.process_all_available()
    assert ended.value.condition == "NULL_ROWTIME"


def test_late_rows_are_a_streaming_dataframe(spark, session, tmp_path, put):
    put((1, "a", 1), (9, "a", 3))
    put((2, "b", 5), (7, "b", 6))
    frame = session.sql(PER_KEY).late.df
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"), format="parquet")
    query.awaitTermination()
    (late,) = written(spark, tmp_path / "out")
    assert late == ("s", '{"ts":2,"k":"b","v":5}', "2", "7", "", "watermark")


def test_a_stream_is_a_streaming_dataframe_of_its_rows(spark, session, tmp_path, put):
    put((1, "a", 1), (2, "b", 5), (9, "a", 3))
    frame = session.sql(f"ISTREAM({PER_KEY})").df
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"), format="parquet")
    query.awaitTermination()
    assert written(spark, tmp_path / "out") == [(1, "a", 1, 1), (2, "b", 5, 1)]


def test_the_state_store_has_to_be_rocksdb(spark, session):
    name = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(name)
    spark.conf.unset(name)
    try:
        with pytest.raises(UsageError, match="RocksDB") as refused:
            session.sql(PER_KEY).df  # noqa: B018 - refused
        assert refused.value.condition == "STATE_STORE"
    finally:
        spark.conf.set(name, before)


REFUSED = {
    "SELECT DISTINCT lower(rpad(k, v, 'x')) AS l FROM s [RANGE 5 SECONDS]": "expressions that Spark alone"
    " computes: a column has stringrpad",
    "SELECT ISTREAM(k COLLATE UTF8_LCASE AS c) FROM s [RANGE 5 SECONDS]": "texts with a collation",
}


@pytest.mark.parametrize("query", REFUSED)
@pytest.mark.usefixtures("on_executors")
def test_what_does_not_run_on_executors_is_refused(session, tmp_path, query):
    assert f"executors, which cannot run it: {REFUSED[query]}" in session.sql(f"EXPLAIN {query}").plan()
    relation = session.sql(query)
    with pytest.raises(NotSupportedError, match=REFUSED[query]) as refused:
        relation.start(tmp_path / "out")
    assert refused.value.condition == "UNSUPPORTED_ON_EXECUTORS"
    assert ("df.withColumn(…)" in refused.value.hint) == ("Spark alone" in REFUSED[query])
    with pytest.raises(UsageError, match=REFUSED[query]) as refused:
        relation.df  # noqa: B018 - refused
    assert refused.value.condition == "LIVE_RELATION"


def test_a_local_master_has_the_driver(session):
    assert "host       the driver: the master is local" in session.sql(f"EXPLAIN {PER_KEY}").plan()


@pytest.mark.usefixtures("on_executors")
def test_explain_names_the_exchange(spark, session):
    plan, count = session.sql(f"EXPLAIN {PER_KEY}").plan(), spark.conf.get("spark.sql.shuffle.partitions")
    assert f"exchange   {count} buckets: s by k" in plan
    keyless = session.sql("EXPLAIN SELECT COUNT(*) AS n FROM s [ROWS 5] GROUP BY k").plan()
    assert "host       executors\n  exchange   one bucket: no key divides the rows" in keyless


def test_on_a_cluster_auto_is_executors_but_for_what_the_driver_has_begun(session, tmp_path, monkeypatch):
    plan = session.sql(PER_KEY).live

    def started(folder, on_malformed="fail"):
        steps = micro_batches_of(plan, Memory(), folder, "diff", "keep", on_malformed)
        steps.close()
        return type(steps.steps)

    folder = tmp_path / "begun"
    steps = micro_batches_of(plan, Memory(), folder, "diff", "keep")
    ((_, _, stream),) = steps.streams()
    rows = session.spark.createDataFrame([(1, "a", 1)], "ts bigint, k string, v int")
    steps.take(steps.input({"s": rows.select(*stream.live.columns)}), 0)
    steps.close()
    assert started(tmp_path / "local") is WindowedSteps
    monkeypatch.setattr(hosts, "local_cores", lambda _: None)
    assert started(tmp_path / "cluster") is ExecutorSteps
    assert started(tmp_path / "malformed", "keep") is ExecutorSteps
    assert started(folder) is WindowedSteps


def test_an_unknown_host(spark, session):
    spark.conf.set(HOST, "executor")
    try:
        with pytest.raises(UsageError, match="did you mean executors") as refused:
            session.sql(f"EXPLAIN {PER_KEY}")
        assert refused.value.condition == "INVALID_SETTING"
    finally:
        spark.conf.unset(HOST)
