"""WINDOW BY and MATCH_RECOGNIZE on executors give what they give on the driver, in each micro-batch."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live.buckets import LAG_AND_CUTS, in_buckets
from tests.live.executors.test_executors import (
    declared,
    on_executors,
    one_producer,
    put,
    session,
    small,
    written,
)
from tests.live.random_clauses import ORDER, sequences
from tests.live.random_logs import admitted, declared_live, ended, entry, row, table
from tests.live.stepping import in_micro_batches, law, rows_of
from windrow import Memory, Session
from windrow.errors import NotSupportedError, UsageError
from windrow.kernels.advance import retained_rows
from windrow.kernels.incremental import chunking
from windrow.spark.live import hosts
from windrow.spark.live.executors.bucket_steps import ExecutorSteps
from windrow.spark.live.executors.input.packing import DATA, NOTE
from windrow.spark.live.hosts import micro_batches_of
from windrow.streams import FOREVER

__all__ = ["on_executors", "put", "session", "small"]

END = ("a", None, None, None, FOREVER)
LOG = [
    ("a", 0, 1, 1, None),
    ("a", 1, 2, 3, None),
    ("a", 4, 1, 2, 2),
    ("a", 2, 1, 3, None),
    ("a", 7, 2, None, None),
    ("a", 5, None, 1, 4),
    ("a", 9, 1, 0, None),
    ("a", 8, 2, 3, 8),
]
WRITTEN = [
    f"SELECT s.k, s.ts, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k {ORDER}"
    " START AS s ONLY END AS e WHEN e.ts - s.ts >= 2)",
    f"SELECT s.k, s.ts + 1 AS t, e.v FROM s WHERE v > 0 WINDOW BY w AS (TYPE TUMBLING PARTITION BY k {ORDER}"
    " START AS s END AS e NEXT AS x WHEN x IS NULL OR x.ts - e.ts > 1)",
    f"SELECT l.k, l.ts, SUM(w.v) AS v FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k {ORDER}"
    " LABEL AS l START AS a WHEN l.ts - a.ts <= 2 END AS e WHEN e = l)",
    f"SELECT k, n, t FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES COUNT(*) AS n, FIRST(ts) AS t"
    " PATTERN (a b+) WITHIN 4 DEFINE b AS b.v >= a.v) WHERE n > 1",
    f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES MATCH_NUMBER() AS n ALL ROWS PER MATCH"
    " PATTERN (a b*) DURATION 3 DEFINE b AS b.v > 0)",
    f"SELECT * FROM s MATCH_RECOGNIZE ({ORDER} MEASURES MATCH_NUMBER() AS n, LAST(ts) AS t ALL MATCHES"
    " PATTERN (a b) DEFINE b AS b.k = a.k)",
    f"SELECT s.k, s.ts, SUM(w.v) AS v FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY v % 2 {ORDER}"
    " START AS s END AS e WHEN e.ts - s.ts >= 2)",
    "SELECT j, n, t FROM (SELECT *, k % 2 AS j FROM s WHERE v >= 0) MATCH_RECOGNIZE (PARTITION BY j, v > 1"
    f" {ORDER} MEASURES COUNT(*) AS n, FIRST(ts) AS t PATTERN (a b+) WITHIN 4 DEFINE b AS b.v >= a.v)",
]


@pytest.fixture
def few_in_a_chunk():
    """Chunks are of few rows: some are merged, and of some the places of rows that are gone are kept."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (chunking, retained_rows):
            patch.setattr(module, "SMALLEST", 1)
        patch.setattr(chunking, "_FAN", 3)
        yield


def emitted(spark, graph, tables):
    """What each micro-batch emits."""
    found = []
    for packed in tables:
        packets = spark.createDataFrame(packed, f"{NOTE} string, {DATA} binary")
        found.append(rows_of([graph.changes(packets).toArrow()]))
    return found


def on_driver(spark, plan, folder, log, cuts):
    """What each micro-batch emits on the driver, and the last progress."""

    def frames(steps, low, high):
        ((_, name, stream),) = steps.streams()
        part = table(log[round(low * len(log)) : round(high * len(log))])
        return {name: spark.createDataFrame(part).select(*stream.live.columns)}

    tables, progress = in_micro_batches(plan, folder, cuts, set(), frames)
    return [rows_of([one]) for one in tables], progress


def assert_as_on_the_driver(
    spark, folder, log, lag, query, cuts, parts, count, forget, again, declare=declared
):
    plan = declare(spark, folder, ["s"], lag).sql(query).live
    graph, tables, accounts = in_buckets(spark, plan, {"s": log}, cuts, parts, count, forget, again)
    found = emitted(spark, graph, tables)
    wanted, progress = on_driver(spark, plan, folder, log, cuts)
    assert [one for one in found if one] == [one for one in wanted if one]
    batch = Session(spark)
    batch.register("s", table([(*one, None) for _, *one in admitted(log, lag)]).drop_columns("b"))
    assert sum(found, start=rows_of([])) == rows_of([batch.sql(query).to_arrow()])
    last = accounts.values()
    late = sum(sum(one.late.values()) + sum(one.rejected.values()) for one in last)
    assert late == progress["rows_late"]
    assert sum(one.waiting[0] for one in last) == progress["rows_buffered"] == 0
    assert sum(one.retained[0] for one in last) == progress["rows_in_windows"]


@law(6)
@given(
    row,
    st.lists(one_producer, max_size=7),
    *LAG_AND_CUTS,
    sequences(),
)
@example(LOG[0][:4], LOG[1:], 2, [0.3, 0.6, 0.8], 2, 3, {1, 3}, {2}, WRITTEN[0])
@example(LOG[0][:4], LOG[1:], 2, [0.3, 0.6, 0.8], 2, 3, {1, 3}, {2}, WRITTEN[1])
@example(LOG[0][:4], LOG[1:], 2, [0.3, 0.6, 0.8], 2, 3, {1, 3}, {2}, WRITTEN[2])
@example(LOG[0][:4], LOG[1:], 2, [0.3, 0.6, 0.8], 2, 3, {1, 3}, {2}, WRITTEN[3])
@example(LOG[0][:4], LOG[1:], 2, [0.3, 0.6, 0.8], 2, 3, {1, 3}, {2}, WRITTEN[4])
@example(LOG[0][:4], LOG[1:], 2, [0.3, 0.6, 0.8], 2, 3, {1, 3}, {2}, WRITTEN[5])
@example(LOG[0][:4], LOG[1:], 2, [0.3, 0.6, 0.8], 2, 3, {1, 3}, {2}, WRITTEN[6])
@example(LOG[0][:4], LOG[1:], 2, [0.3, 0.6, 0.8], 2, 3, {1, 3}, {2}, WRITTEN[7])
@pytest.mark.usefixtures("interpreted", "small", "few_in_a_chunk")
def test_buckets_cuts_parts_and_new_workers_change_nothing(
    spark, tmp_path_factory, first, others, lag, cuts, parts, count, forget, again, query
):
    folder = tmp_path_factory.mktemp("executors")
    log = [("a", *first[1:], None), *others, END]  # before its first row a stream has no clock
    assert_as_on_the_driver(spark, folder, log, lag, query, cuts, parts, count, forget, again)


@law(6)
@given(row, st.lists(entry, max_size=8), *LAG_AND_CUTS, sequences())
@pytest.mark.usefixtures("interpreted", "small", "few_in_a_chunk")
def test_several_producers_wait_for_each_other_in_every_bucket(
    spark, tmp_path_factory, first, others, lag, cuts, parts, count, forget, again, query
):
    folder, log = tmp_path_factory.mktemp("several"), ended([(*first, None), *others])
    assert_as_on_the_driver(
        spark, folder, log, lag, query, cuts, parts, count, forget, again, declare=declared_live
    )


PER_KEY = (
    "SELECT s.k, s.ts, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY ts"
    " START AS s END AS e WHEN e.ts - s.ts >= 3)"
)
RISES = (
    "SELECT k, since, n FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(ts) AS since,"
    " COUNT(*) AS n PATTERN (a b+) WITHIN 10 DEFINE b AS b.v > PREV(b.v))"
)


@pytest.mark.long
@pytest.mark.usefixtures("on_executors")
def test_a_query_goes_on_with_the_state_store(spark, session, tmp_path, put):
    relation, out = session.sql(RISES), tmp_path / "out"

    def start():
        return relation.start(out, checkpoint=tmp_path / "checkpoint")

    put((1, "a", 1), (2, "b", 5), (4, "a", 3))
    query = start()
    query.process_all_available()
    assert (query.progress["frontier"], query.progress["rows_buffered"]) == (2, 2)
    put((5, "a", 9), (6, "a", 4), (9, "b", 2))
    query.process_all_available()
    query.stop()
    query = start()
    put((3, "a", 9), (30, "b", 2))
    query.process_all_available()
    assert written(spark, out) == [("a", 1, 3)]
    (late,) = query.late.collect()
    assert (late["row"], late["bound"], late["reason"]) == ('{"ts":3,"k":"a","v":9}', "7", "watermark")
    progress = query.progress
    account = [progress[f"rows_{name}"] for name in ("in", "used", "buffered", "late", "malformed")]
    assert account == [8, 6, 1, 1, 0]
    kinds = [(line["kind"], line["name"], line["rows"], line["oldest"]) for line in query.state().collect()]
    assert kinds[0] == ("stream", "s", 1, "30")
    assert kinds[2][:2] == ("window", "MATCH_RECOGNIZE")
    query.stop()


@pytest.mark.long
def test_windows_are_a_streaming_dataframe_and_so_are_late_rows(spark, session, tmp_path, put):
    put((1, "a", 1), (2, "b", 5), (4, "a", 3))
    put((9, "a", 3), (1, "b", 7), (12, "b", 1))
    relation = session.sql(PER_KEY.replace("s.ts,", "s.ts + 1 AS t,"))
    assert relation.df.isStreaming
    assert relation.df.columns == ["k", "t", "n"]
    for name, frame in (("out", relation.df), ("late", relation.late.df)):
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / f"{name}-checkpoint"))
        writer.trigger(availableNow=True).start(str(tmp_path / name), format="parquet").awaitTermination()
    assert written(spark, tmp_path / "out") == [("a", 2, 2), ("a", 5, 2)]
    ((_, late, *_),) = written(spark, tmp_path / "late")
    assert late == '{"ts":1,"k":"b","v":7}'


REFUSED = {
    PER_KEY.replace("PARTITION BY k", "PARTITION BY md5(k)"): "expressions that Spark alone computes",
    PER_KEY.replace("PARTITION BY k", "PARTITION BY k, ts"): "partitions that end by the rowtime",
    PER_KEY.replace("COUNT(w)", "skewness(w.v)"): "aggregates that only Spark computes",
    f"SELECT f.k FROM ({PER_KEY}) WINDOW BY x AS (TYPE TUMBLING ORDER BY ts START AS f)": "several clauses",
    PER_KEY.replace("e.ts - s.ts >= 3", "upper(concat(s.k, e.k)) = 'AB'"): "conditions that Spark evaluates",
    PER_KEY.replace("FROM s", "FROM (SELECT *, md5(k) AS m FROM s)").replace("COUNT(w)", "MAX(w.m)"): (
        "expressions that Spark alone computes"
    ),
    PER_KEY.replace("FROM s", "FROM (SELECT s.*, name FROM s JOIN names ON s.k = names.k)").replace(
        "COUNT(w)", "MAX(w.name)"
    ): "a join with a table",
}


@pytest.mark.parametrize("query", REFUSED, ids=[*map(str, range(len(REFUSED)))])
@pytest.mark.usefixtures("on_executors")
def test_what_does_not_run_on_executors_is_refused(session, tmp_path, query):
    session.spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW names AS SELECT * FROM VALUES ('a', 'x'), ('b', 'y') AS t (k, name)"
    )
    assert f"executors, which cannot run it: {REFUSED[query]}" in session.sql(f"EXPLAIN {query}").plan()
    relation = session.sql(query)
    with pytest.raises(NotSupportedError, match=REFUSED[query]) as refused:
        relation.start(tmp_path / "out")
    assert refused.value.condition == "UNSUPPORTED_ON_EXECUTORS"
    with pytest.raises(UsageError, match=REFUSED[query]) as refused:
        relation.df  # noqa: B018 - refused
    assert refused.value.condition == "LIVE_RELATION"


@pytest.mark.usefixtures("on_executors")
def test_explain_names_the_exchange(spark, session):
    count = spark.conf.get("spark.sql.shuffle.partitions")
    for query in (PER_KEY, RISES):
        plan = session.sql(f"EXPLAIN {query}").plan()
        assert "host       executors\n" in plan
        assert f"exchange   {count} buckets: s by k" in plan
    computed = session.sql("EXPLAIN " + PER_KEY.replace("PARTITION BY k", "PARTITION BY upper(k)")).plan()
    assert f"exchange   {count} buckets: s by a computed column" in computed
    whole = session.sql("EXPLAIN " + PER_KEY.replace("PARTITION BY k", "")).plan()
    assert "host       executors\n  exchange   one bucket: no key divides the rows" in whole


def test_on_a_cluster_auto_is_executors_for_what_they_run(session, tmp_path, monkeypatch):
    monkeypatch.setattr(hosts, "local_cores", lambda _: None)
    for number, (query, is_there) in enumerate({RISES: True, next(iter(REFUSED)): False}.items()):
        steps = micro_batches_of(session.sql(query).live, Memory(), tmp_path / str(number), "delta", "keep")
        steps.close()
        assert isinstance(steps.steps, ExecutorSteps) is is_there
