"""Values that cannot be computed: ``on_malformed="keep"`` sets their rows aside, and no others."""

from __future__ import annotations

import json
import sys
import types
from collections import Counter
from itertools import pairwise

import pytest
from pyspark.errors import PySparkException

from windrow import Memory, Session, WindrowError
from windrow.spark.live.hosts import micro_batches_of
from windrow.spark.live.micro_batches.uncomputable import Uncomputable
from windrow.spark.live.plans.emit_flow import EmittedFlow
from windrow.spark.live.reports.failures import failure

COLUMNS = "ts bigint, k string, v int, w int"
#: the third would make all that follow late, and the tenth is late
ROWS = [
    (1, "a", 10, 2),
    (2, "b", 7, 1),
    (90, "b", 7, 0),
    (3, "a", 5, 5),
    (4, "a", 8, 2),
    (6, "b", 9, 3),
    (5, "a", 1, 0),
    (9, "b", 4, 2),
    (12, "a", 6, 3),
    (2, "a", 6, 3),
    (30, "a", 2, 1),
    (31, "b", 2, 1),
]
BAD = [row for row in ROWS if row[3] == 0]
OF_TIME = "TUMBLE(TABLE s, DESCRIPTOR(ts), 4)"
QUERIES = {
    "EMIT": f"SELECT wstart, wend, SUM(v / w) AS n FROM {OF_TIME} GROUP BY wstart, wend EMIT STREAM AS diff",
    "EMIT of rows": "SELECT ts, v / w AS q FROM s EMIT STREAM AS diff",
    "EMIT of a join": "SELECT s.ts AS a, t.ts AS b, s.v / s.w AS q FROM s JOIN t ON s.k = t.k AND t.ts = s.ts"
    " EMIT STREAM AS diff",
    "groups": "SELECT k, SUM(v / w) AS n FROM s [RANGE 3] GROUP BY k",
    "a join": "SELECT s.ts AS a, t.ts AS b, s.v / s.w AS q FROM s [RANGE 3], t [RANGE 3] WHERE s.k = t.k",
    "a condition": "ISTREAM(SELECT k FROM s [ROWS 2] WHERE w > 5 OR v / w > 2)",
    "a named query": "WITH c AS (SELECT k, v / w AS q FROM s) SELECT k, SUM(q * 2) AS n FROM c GROUP BY k"
    " EMIT STREAM AS diff",
    "rows": "SELECT STREAM ts, k, v / w AS q FROM s",
    "rows in brackets": "SELECT STREAM q FROM (SELECT ts, v / w AS q FROM s) AS t WHERE q > 1",
    "a function": "SELECT STREAM k, checked(w) AS q FROM s WHERE v > 0",
    "windows": "SELECT s.ts AS a, e.ts AS z FROM s WINDOW BY x AS (TYPE TUMBLING PARTITION BY k ORDER BY ts"
    " START AS s WHEN s.v > 0 AND s.v / s.w > 1 END AS e WHEN e.ts - s.ts >= 2)",
    "windows over computed rows": "SELECT s.ts AS a, SUM(x.q) AS q FROM (SELECT ts, k, v / w AS q FROM s)"
    " AS r WINDOW BY x AS (TYPE SLIDING PARTITION BY k ORDER BY ts START AS s END AS e WHEN e.q > s.q)",
    "matches": "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.ts AS a, B.v AS b"
    " PATTERN (A B) DEFINE B AS B.v / w > PREV(B.w / B.w))",
    "a whole stream": "SELECT STREAM ts, SUM(v / w) AS n FROM s GROUP BY ts",
}


def declared(spark, folder, lag=3):
    def checked(value):
        if value == 0:
            raise ValueError("nothing is no number")
        return value

    spark.udf.register("checked", checked, "int")
    session = Session(spark)
    arriving = spark.readStream.schema(COLUMNS).parquet(str(folder))
    for name in ("s", "t"):
        session.stream(name, arriving, rowtime="ts", unit="seconds", lag=lag)
    return session


class Played:
    """What a query gives of rows in these parts, each taken by a process of its own."""

    def __init__(self, spark, plan, folder, parts, of_t=None, keeps="keep"):
        sink = Memory()
        for number, part in enumerate(parts):
            steps = micro_batches_of(plan, sink, folder / "checkpoint", "diff", "keep", keeps)
            try:
                frames = {}
                for _, name, stream in steps.streams():
                    rows = (of_t or parts)[number] if name == "t" else part
                    made = spark.createDataFrame(rows, COLUMNS).coalesce(1)
                    frames[name] = made.select(*stream.live.columns)
                steps.take(steps.input(frames), number)
                self.progress = dict(steps.progress)
                if number:  # again, as after a kill before Spark knew
                    steps.take(steps.input(frames), number)
                told = steps.aside_table("malformed").to_pylist()
            finally:
                steps.close()
        self.malformed = Counter((one["stream"], json.loads(one["row"])["ts"], one["reason"]) for one in told)
        self.counts = [
            self.progress[f"rows_{name}"] for name in ("in", "used", "buffered", "late", "malformed")
        ]
        self.rows = Counter()
        for table in sink.batches.values():
            for row in table.to_pylist():
                diff = row.pop("_diff", 1)
                if plan.asks_changes:
                    del row["_at"]  # the time of the run
                self.rows[tuple(row.items())] += diff
        self.rows = {row: count for row, count in self.rows.items() if count}


def cut(rows, cuts):
    return [rows[low:high] for low, high in pairwise([0, *cuts, len(rows)])]


CASES = [*((kind, True) for kind in QUERIES), ("EMIT", False)]
"""Those of EMIT may be evaluated by tasks, too."""


@pytest.mark.sampled
@pytest.mark.parametrize(("kind", "in_memory"), CASES)
@pytest.mark.usefixtures("interpreted")
def test_a_row_that_cannot_be_computed_ends_a_query_or_is_set_aside_wherever_it_is_cut(
    spark, tmp_path, monkeypatch, kind, in_memory
):
    if not in_memory:
        monkeypatch.setattr(EmittedFlow, "_by_tasks", lambda _: "the test")
    plan = declared(spark, tmp_path).sql(QUERIES[kind])._live
    with pytest.raises((WindrowError, PySparkException)) as caught:
        Played(spark, plan, tmp_path / "fails", [[row for row in ROWS if row != BAD[0]]], keeps="fail")
    assert "on_malformed='keep'" in failure(caught.value).hint
    wanted = Played(
        spark, plan, tmp_path / "sound", [[row for row in ROWS if row not in BAD]], [ROWS], "fail"
    )
    assert wanted.rows
    found = []
    for cuts in ([], [4]):
        one = Played(spark, plan, tmp_path / str(len(cuts)), cut(ROWS, cuts))
        found.append(one.malformed)
        assert one.rows == wanted.rows
        rows_in, *became, malformed = wanted.counts
        assert malformed == 0
        assert one.counts == [rows_in + len(BAD), *became, len(BAD)]
    assert found[0] == found[1]
    assert sorted((stream, ts) for stream, ts, _ in found[0]) == [("s", 5), ("s", 90)]
    assert found[0].total() == len(BAD)
    assert all("cannot be computed" in reason for _, _, reason in found[0])


#: of each query the expressions that are computed of each row alone, with the conditions before them
OF_EACH_ROW = [
    ("SELECT STREAM ts, v, CAST(k AS INT) AS n FROM s", ["CAST(k AS INT)"]),
    ("SELECT STREAM * FROM s WHERE w <> 0 AND v / w > 1", ["w <> 0", "v / w > 1 | w <> 0"]),
    ("SELECT SUM(v * w) AS n, MAX(1 / v) - 1 AS m FROM s [RANGE 3]", ["v * w", "1 / v"]),
    ("SELECT SUM(v / w) FILTER (WHERE w <> 0) AS n FROM s [RANGE 3]", []),
    (
        "SELECT SUM(IF(w <> 0, v / w, 0)) AS n FROM s [RANGE 3]",
        ["IF(w <> 0, v / w, 0)"],
    ),
    ("SELECT CASE WHEN COUNT(*) > 1 THEN 1 / MAX(v + 1) END AS n FROM s [RANGE 3]", []),
    ("SELECT COALESCE(SUM(v + 1), MAX(1 / v)) AS n FROM s [RANGE 3]", ["v + 1"]),
    ("SELECT try_divide(SUM(v + 1), 2) AS n, try_sum(v * w) AS m FROM s [RANGE 3]", ["v * w"]),
    ("SELECT k, COUNT(*) AS v FROM s [RANGE 3] GROUP BY k HAVING 1 / v > 0 AND MAX(1 / w) > 0", ["1 / w"]),
    ("SELECT v % 2 AS n FROM s [RANGE 3] GROUP BY v % 2 HAVING COUNT(*) > (SELECT 1)", ["v % 2"]),
    (
        "SELECT s.v / s.w AS q, t.v / s.w AS r FROM s [NOW], t [NOW] WHERE s.k = t.k AND s.w > 0"
        " AND 1 / t.w > s.v",
        ["s.w > 0", "s.v / s.w | s.w > 0", "t: 1 / t.w"],
    ),
    (
        "SELECT s.v / s.w AS q FROM s [NOW] LEFT JOIN t [NOW] ON s.k = t.k AND s.w > 0 WHERE s.v > 0",
        ["s.w > 0", "s.v > 0", "s.v / s.w | s.v > 0"],
    ),
    (
        "SELECT STREAM q + 1 AS r FROM (SELECT v / w AS q FROM s WHERE w > 0) AS x",
        ["w > 0", "v / w | w > 0", "q + 1"],
    ),
    ("SELECT n + 1 AS r FROM (SELECT COUNT(*) AS n FROM s [NOW]) AS x", []),
    (f"SELECT wend, SUM(1 / v) AS n FROM {OF_TIME} GROUP BY wend EMIT STREAM", ["1 / v"]),
    (
        "SELECT e.v / e.w AS q, SUM(x.v / x.w) AS n FROM s WHERE v > 0 WINDOW BY x AS (TYPE TUMBLING"
        " PARTITION BY k ORDER BY ts START AS s WHEN s.w > 0 AND 1 / s.w > 0"
        " END AS e WHEN e.w > 0 AND e.v / e.w > s.v / s.w)",
        ["v > 0", "s.w > 0", "1 / s.w > 0 | s.w > 0", "s.v / s.w", "e.w > 0", "e.v / e.w"],
    ),
    (
        "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.v / A.w AS q PATTERN (A B)"
        " DEFINE B AS v / w > 1 AND A.v / A.w > PREV(B.v + 1))",
        ["A.v / A.w", "v / w > 1", "B.v + 1"],
    ),
]


OF_EACH_ROW += [
    ("SELECT STREAM a.v / w AS q FROM STREAM a WATERMARK ts DELAY OF INTERVAL 3 SECONDS", ["a.v / w"]),
    (
        "SELECT v / w AS q FROM STREAM a WATERMARK ts DELAY OF INTERVAL 3 SECONDS EMIT STREAM",
        ["v / w"],
    ),
    ("SELECT STREAM n * 2 AS m FROM counts", ["1 / v"]),
    ("SELECT k, q * 2 AS r FROM computed EMIT STREAM", ["v / w", "q * 2"]),
]


@pytest.mark.parametrize(("query", "wanted"), OF_EACH_ROW, ids=[query[:40] for query, _ in OF_EACH_ROW])
def test_what_is_computed_of_each_row_alone(spark, tmp_path, query, wanted):
    session = declared(spark.newSession(), tmp_path)
    arriving = session.spark.readStream.schema("ts timestamp, v int, w int").parquet(str(tmp_path))
    arriving.createOrReplaceTempView("a")
    counts = "ISTREAM(SELECT COUNT(*) AS n, MAX(1 / v) AS m FROM s [RANGE 2])"
    session.sql(f"CREATE TEMPORARY VIEW counts AS {counts}")
    session.sql("CREATE TEMPORARY VIEW computed AS SELECT ts, k, v / w AS q FROM s")
    plan = session.sql(query)._live
    told = [
        ("" if part.stream in ("s", "a-ts-interval 3 seconds") else f"{part.stream}: ")
        + " | ".join([one.text, *([" AND ".join(one.conditions)] if one.conditions else [])])
        for part in Uncomputable(plan).parts
        for one in part.computed
    ]
    assert sorted(told) == sorted(wanted)


def test_what_no_row_can_have_is_an_error_of_the_statement(spark, tmp_path):
    session = declared(spark.newSession(), tmp_path)
    with pytest.raises(WindrowError) as error:
        session.sql("SELECT STREAM 1 / 0 AS n, ts FROM s")
    assert error.value.condition == "DIVIDE_BY_ZERO"
    (context,) = error.value.getQueryContext()
    assert context.fragment() == "1 / 0"


def taken(spark, folder, query, rows, keeps="keep", lag=3):
    plan = declared(spark, folder, lag).sql(query)._live
    return Played(spark, plan, folder / keeps, [rows], keeps=keeps)


@pytest.mark.long
@pytest.mark.parametrize("are_few", [True, False])
def test_many_rows_are_found_by_what_fails_of_them(spark, tmp_path, monkeypatch, are_few):
    if not are_few:
        monkeypatch.setattr("windrow.spark.collected.MOST_COLLECTED", 10)
    kinds = {
        0: "checked(w) cannot be computed: ValueError: nothing is no number",
        3: "10 / v > 1 cannot be computed",
        7: "CAST(k AS INT) cannot be computed",
    }
    values = [(at, at % 10) for at in range(20)]
    rows = [(at, "x" if kind == 7 else "7", 2 * (kind != 3), 2 * (kind != 0)) for at, kind in values]
    query = "SELECT STREAM ts, CAST(k AS INT) AS n, checked(w) AS q FROM s WHERE 10 / v > 1"
    found = taken(spark, tmp_path, query, rows)
    assert found.malformed == Counter({("s", at, kinds[kind]): 1 for at, kind in values if kind in kinds})
    assert found.counts[-1] == 6


@pytest.mark.usefixtures("interpreted")
def test_values_that_can_be_computed_are_no_fault_of_a_row(spark, tmp_path):
    rows = [(1, "a", None, None), (2, "x", 0, 0), (3, None, 4, 2)]
    query = "SELECT STREAM CASE WHEN w <> 0 THEN v / w END AS q, v + 1 AS r, try_cast(k AS INT) AS n FROM s"
    query += " WHERE w = 0 OR v / w > 1"
    found = taken(spark, tmp_path, query, rows)
    assert not found.malformed
    assert found.counts == taken(spark, tmp_path, query, rows, "fail").counts


@pytest.mark.usefixtures("interpreted")
def test_a_sum_of_many_rows_that_overflows_is_an_error_that_names_try_sum(spark, tmp_path):
    most = 9_223_372_036_854_775_807
    query = f"SELECT SUM({most} * CAST(w AS BIGINT)) AS n FROM s [RANGE 3]"
    rows = [(1, "a", 1, 1), (1, "b", 1, 1), (9, "a", 1, 0)]
    for keeps in ("keep", "fail"):
        with pytest.raises((WindrowError, PySparkException)) as caught:
            taken(spark, tmp_path, query, rows, keeps)
        hint = failure(caught.value).hint
        assert "try_sum" in hint
        assert "on_malformed" not in hint


def test_what_no_row_is_the_fault_of_ends_a_query_that_keeps_malformed_rows(spark, tmp_path, monkeypatch):
    def unknown(value):
        return value

    unknown.__module__ = unknown.__qualname__ = "nowhere"  # so it travels by its name
    module = types.ModuleType("nowhere")
    module.nowhere = unknown
    monkeypatch.setitem(sys.modules, "nowhere", module)
    unknown.__name__ = "nowhere"
    spark.udf.register("unknown", unknown, "int")
    with pytest.raises((WindrowError, PySparkException), match="No module named 'nowhere'"):
        taken(spark, tmp_path, "SELECT STREAM unknown(v) AS q FROM s", ROWS)


@pytest.mark.usefixtures("interpreted")
def test_few_rows_are_read_once_to_be_judged_and_only_where_malformed_rows_are_kept(
    spark, tmp_path, monkeypatch
):
    context, counts, asked = spark.sparkContext, {}, []
    monkeypatch.setattr(Uncomputable, "takes", lambda *_: asked.append(1) or True)
    sound = [row for row in ROWS if row not in BAD]
    spark.createDataFrame(sound, COLUMNS).coalesce(1).write.parquet(str(tmp_path / "rows"))
    for keeps in ("fail", "keep"):
        plan = declared(spark, tmp_path).sql("SELECT STREAM ts, v / w AS q FROM s")._live
        steps = micro_batches_of(plan, Memory(), tmp_path / keeps, "diff", "keep", keeps)
        rows = spark.read.parquet(str(tmp_path / "rows"))
        _, _, stream = steps.streams()[0]
        entries = steps.input({"s": rows.select(*stream.live.columns)})
        context.setJobGroup(keeps, keeps)
        try:
            steps.take(entries, 0)
        finally:
            steps.close()
            context.setLocalProperty("spark.jobGroup.id", None)
        context._jsc.sc().listenerBus().waitUntilEmpty()
        counts[keeps] = len(context.statusTracker().getJobIdsForGroup(keeps)), len(asked)
    # jobs: those of the files' order, of reading the rows, and of computing them (one of them without a task)
    assert counts["keep"][0] - counts["fail"][0] <= 3
    assert [asked for _, asked in counts.values()] == [0, 1]
