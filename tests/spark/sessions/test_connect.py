"""The same queries on a Spark Connect server, in a process of its own on the loopback interface."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from windrow.spark.runtime.java import ensure_java

# `remote("local[2]")` starts the server that PySpark brings, inside the process, and stops it with the
# session: no port is fixed, and nothing stays behind. What the server itself needs to know is in the
# arguments that the environment gives to spark-submit.
SUBMIT = " ".join(
    [
        "--driver-memory 1g",
        "--conf spark.driver.bindAddress=127.0.0.1",
        "--conf spark.driver.host=127.0.0.1",
        "--conf spark.connect.grpc.binding.address=127.0.0.1",
        "--conf spark.ui.enabled=false",
        "pyspark-shell",
    ]
)
PROGRAM = r"""
import json
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import windrow
from windrow.streams import NamedStream

folder = Path.cwd()
spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
answers = {"module": type(spark).__module__}
spark.sql(
    "CREATE TEMP VIEW t AS SELECT * FROM VALUES"
    " ('a', 1, 10D), ('a', 2, 20D), ('a', 3, 5D), ('b', 1, 7D), ('b', 2, 8D) AS t (k, i, v)"
)
session = windrow.Session(spark)
views = lambda: sorted(row["viewName"] for row in spark.sql("SHOW VIEWS").collect())


def windows(select, end, rest=""):
    return (
        f"SELECT {select} FROM t WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i"
        f" START AS s END AS e WHEN {end}) {rest}"
    )


def rows(relation):
    return sorted(map(list, relation.collect()), key=repr)


answers["kernel"] = rows(session.sql(windows("s.k, s.i, AVG(w.v)", "e.v > s.v")))
answers["join plan"] = rows(session.sql(windows("s.k, s.i, e.i", "CAST(concat(e.i, s.i) AS INT) > 20")))
answers["Spark aggregates"] = rows(session.sql(windows("s.k, s.i, max_by(w.i, w.v)", "e.v > s.v")))
positional = windows("s.k, ?", "e.v - s.v > ?", "HAVING COUNT(w.v) = ?")
answers["parameters"] = rows(session.sql(positional, "x", 0, 2))
session.sql("CREATE TEMP VIEW made AS " + windows("s.k, COUNT(w.v) AS n", "e.v > s.v"))
answers["view"] = rows(session.sql("SELECT k, SUM(n) FROM made GROUP BY k"))
spark.sql("CREATE TABLE stored USING parquet AS SELECT * FROM t")
counts = windows("s.k, COUNT(w.v) AS n", "e.v > s.v").replace("FROM t", "FROM stored")
session.sql(f"CREATE VIEW kept AS {counts}")
answers["stored view"] = rows(session.sql("SELECT k, SUM(n) FROM kept GROUP BY k"))
spark.sql("DROP VIEW kept")
counted = counts.replace("e.v > s.v", "e.v > s.v + more")
session.sql(f"CREATE FUNCTION counted(more INT) RETURNS TABLE RETURN {counted}")
answers["stored function"] = rows(session.sql("SELECT k, SUM(n) FROM default.counted(0) GROUP BY k"))
spark.sql("DROP FUNCTION counted")
spark.sql("DROP TABLE stored")
scripted = windows("s.k, s.i, least", "e.v > s.v + least - 3")
answers["script"] = rows(session.sql(f"BEGIN DECLARE least INT = 3; SELECT 1; {scripted}; END"))
executed = windows("s.i, ? AS a, ? AS b, CAST(? AS STRING) AS c, hex(?) AS d, ? AS e", "e.v > s.v + ? + 4")
using = "'it''s', typeof(1.5BD), TIMESTAMP'2024-02-29 01:02:03.000004', X'4F', CAST(NULL AS INT), 3"
answers["executed"] = rows(session.sql(f"EXECUTE IMMEDIATE '{executed}' USING {using}"))
answers["nested"] = rows(
    session.sql(
        "SELECT COUNT(x) AS n FROM (" + windows("s.k, s.i, SUM(w.v) AS v", "e.v > s.v") + ")"
        " WINDOW BY x AS (TYPE TUMBLING ORDER BY k, i START AS b WHEN b.v > 20)"
    )
)
answers["window_by"] = rows(
    windrow.window_by(
        spark.table("t"),
        partition_by=F.col("k"),
        order_by="i",
        start=windrow.boundary("s", when=F.col("s.v") > 6),
        end=windrow.boundary(next="n", when="n.v < 9"),
        select=["s.k", "s.i", "COUNT(w.v)"],
    )
)
errors = {}
for name, sql in {
    "analysis": windows("s.k", "e.v > s.vv"),
    "table": windows("s.k", "e.v > s.v").replace("FROM t", "FROM tt"),
    "kernel": windows("s.k", "e.i / (s.i - s.i) > 1"),
    "column": windows("s.k", "e.i / 0 > 1"),
}.items():
    try:
        session.sql(sql).collect()
    except windrow.WindrowError as error:
        marked = [context.fragment() for context in error.getQueryContext()]
        errors[name] = [error.condition, *marked]
answers["errors"] = errors
answers["explain"] = session.sql("EXPLAIN " + windows("s.k", "e.v > 1")).collect()[0].plan
session.stream("r", spark.table("t"), rowtime="i", unit="seconds")
counted = session.sql("SELECT k, COUNT(*) AS n, MAX(v) AS high FROM r [RANGE 2] GROUP BY k")
answers["CQL"] = rows(counted.changelog("diff"))
answers["MATCH_RECOGNIZE"] = rows(
    session.sql(
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES FIRST(A.i) AS a, LAST(B.i) AS b"
        " PATTERN (A B+) DEFINE B AS v > PREV(v))"
    )
)
named = NamedStream.create(
    folder / "n", pa.schema([("i", pa.int64()), ("k", pa.string()), ("v", pa.float64())]), "i", unit="seconds"
)
session.stream("n", named)
query = session.sql("SELECT k, COUNT(*) AS n, MAX(v) AS high FROM n [RANGE 2] GROUP BY k")
sink, rest = windrow.Memory(), {"checkpoint": folder / "checkpoint", "envelope": "diff"}
running = query.start(sink, **rest)
with named.producer("p") as producer:
    row = lambda k, i, v: {"k": k, "i": i, "v": v}
    producer.insert([row("a", 1, 10.0), row("b", 1, 7.0), row("a", 2, 20.0)])
    running.process_all_available()
    answers["live, so far"] = running.progress
    running.stop()
    producer.insert([row("a", 1, 0.0), row("b", 2, 8.0), row("a", 3, 5.0)])
    producer.finish()
running = query.start(sink, **rest, trigger={"availableNow": True})
running.await_termination()
answers["live, in the end"] = running.progress
answers["late"] = [[row.producer, row.rowtime, row.bound] for row in running.late.collect()]
running.stop()
given = [list(row.values()) for table in sink.batches.values() for row in table.to_pylist()]
answers["live"] = sorted(given, key=repr)
runs = (
    "SELECT s.k, s.i, COUNT(w) AS n FROM n WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY i"
    " START AS s END AS e NEXT AS x WHEN x IS NULL OR x.v < e.v)"
)
followed = session.sql(
    f"SELECT * FROM ({runs}) MATCH_RECOGNIZE (PARTITION BY k ORDER BY i"
    " MEASURES FIRST(i) AS since, SUM(n) AS total PATTERN (a b?) DEFINE b AS b.n < a.n)"
)
matches = windrow.Memory()
running = followed.start(matches, trigger={"availableNow": True})
running.await_termination()
given = [list(row.values()) for table in matches.batches.values() for row in table.to_pylist()]
answers["live windows and matches"] = sorted(given)
both = "(SELECT k, i FROM n UNION ALL SELECT upper(k) AS k, {} FROM n WHERE k = 'b')"
ends = "TYPE TUMBLING PARTITION BY k ORDER BY i START AS s END AS e NEXT AS x WHEN x IS NULL"
united = f"SELECT s.k, s.i, COUNT(w) AS n FROM {both} WINDOW BY w AS ({ends})"
matches = windrow.Memory()
running = session.sql(united.format("i")).start(matches, trigger={"availableNow": True})
running.await_termination()
given = [list(row.values()) for table in matches.batches.values() for row in table.to_pylist()]
answers["live UNION ALL"] = sorted(given)
several = (
    "(SELECT * FROM (SELECT k, i FROM n WHERE k = 'a' UNION ALL (WITH c AS (SELECT k, i FROM n)"
    " SELECT k, i FROM c WHERE k <> 'a')) UNION ALL SELECT upper(k) AS k, i FROM n WHERE k = 'b')"
)
matches = windrow.Memory()
running = session.sql(united.replace(both, several)).start(matches, trigger={"availableNow": True})
running.await_termination()
given = [list(row.values()) for table in matches.batches.values() for row in table.to_pylist()]
answers["several UNION ALL"] = sorted(given)
try:
    session.sql(united.format("5 - i")).start(matches)
except windrow.WindrowError as error:
    errors["UNION ALL"] = [error.condition, *(context.fragment() for context in error.getQueryContext())]
operators = {
    "DISTINCT": "SELECT DISTINCT k FROM n [RANGE 2]",
    "HAVING": "SELECT k, COUNT(*) AS c FROM n [RANGE 2] GROUP BY k"
    " HAVING COUNT(*) > (SELECT COUNT(*) FROM n [NOW])",
    "WINDOW BY": "SELECT s.i, COUNT(w) AS c FROM n [RANGE 3] WINDOW BY w AS (TYPE SLIDING PARTITION BY k"
    " ORDER BY i START AS s END AS e WHEN e.v > s.v)",
}
for name, text in operators.items():
    relation, changes = session.sql(text), windrow.Memory()
    running = relation.start(changes, envelope="diff", trigger={"availableNow": True})
    running.await_termination()
    given = [list(row.values()) for table in changes.batches.values() for row in table.to_pylist()]
    answers[f"live {name}"] = [sorted(given, key=repr), rows(relation.changelog("diff"))]
emitted = windrow.Memory()
running = session.sql("SELECT k, COUNT(*) AS c FROM n GROUP BY k EMIT STREAM").start(
    emitted, trigger={"availableNow": True}
)
running.await_termination()
kept = []
for row in (row for table in emitted.batches.values() for row in table.to_pylist()):
    kept.remove([row["k"], row["c"]]) if row["undo"] else kept.append([row["k"], row["c"]])
answers["live EMIT"] = sorted(kept)
failing = query.start(windrow.Memory(), on_late="fail", trigger={"availableNow": True})
try:
    failing.await_termination()
except windrow.WindrowError as error:
    errors["live"] = [error.condition]
left = views()
spark.stop()
print(json.dumps({**answers, "views": left}))
"""

# of a (1, 10), (2, 20), (3, 5) and b (1, 7), (2, 8): rows count for two seconds
CHANGES = [
    ["a", 1, 10.0, -1, 2],
    ["a", 1, 10.0, 1, 1],
    ["a", 1, 5.0, -1, 5],
    ["a", 1, 5.0, 1, 4],
    ["a", 2, 20.0, -1, 4],
    ["a", 2, 20.0, 1, 2],
    ["b", 1, 7.0, -1, 2],
    ["b", 1, 7.0, 1, 1],
    ["b", 1, 8.0, -1, 4],
    ["b", 1, 8.0, 1, 3],
    ["b", 2, 8.0, -1, 3],
    ["b", 2, 8.0, 1, 2],
]
AVERAGES = [["a", 1, 15.0], ["a", 2, 12.5], ["a", 3, 5.0], ["b", 1, 7.5], ["b", 2, 8.0]]


def of_program(program: str, folder: Path, *arguments: str, timeout: int = 400) -> dict[str, Any]:
    """What a program with a session of Spark Connect prints at its end."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=inherited
        | {
            "JAVA_HOME": str(ensure_java().home),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": SUBMIT,
        },
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return of_program(PROGRAM, tmp_path_factory.mktemp("connect"))


pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


def test_the_session_is_one_of_spark_connect(answers):
    assert answers["module"].startswith("pyspark.sql.connect")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("kernel", AVERAGES),
        ("join plan", [["a", 1, 2], ["a", 2, 2], ["a", 3, 3], ["b", 1, 2], ["b", 2, 2]]),
        ("Spark aggregates", [["a", 1, 2], ["a", 2, 2], ["a", 3, 3], ["b", 1, 2], ["b", 2, 2]]),
        ("parameters", [["a", "x"], ["a", "x"], ["b", "x"]]),
        ("view", [["a", 5], ["b", 3]]),
        ("stored view", [["a", 5], ["b", 3]]),
        ("stored function", [["a", 5], ["b", 3]]),
        ("nested", [[1], [4]]),
        (
            "executed",
            [[i, "it's", "decimal(2,1)", "2024-02-29 01:02:03.000004", "4F", None] for i in (1, 1, 2, 2, 3)],
        ),
        ("script", [["a", 1, 3], ["a", 2, 3], ["a", 3, 3], ["b", 1, 3], ["b", 2, 3]]),
        ("window_by", [["a", 1, 2], ["a", 2, 1], ["b", 1, 1], ["b", 2, 1]]),
        ("CQL", CHANGES),
        ("MATCH_RECOGNIZE", [["a", 1, 2], ["b", 1, 2]]),
        ("live", CHANGES),
        ("live windows and matches", [["a", 1, 3], ["b", 1, 2]]),
        ("live EMIT", [["a", 3], ["b", 2]]),
        ("live UNION ALL", [["B", 1, 2], ["a", 1, 3], ["b", 1, 2]]),
        ("several UNION ALL", [["B", 1, 2], ["a", 1, 3], ["b", 1, 2]]),
        ("late", [["p", "1", "2"]]),
    ],
)
def test_the_answer_is_that_of_a_classic_session(answers, name, wanted):
    assert answers[name] == wanted


@pytest.mark.parametrize("name", ["DISTINCT", "HAVING", "WINDOW BY"])
def test_operators_run_live_as_over_the_whole_log(answers, name):
    live, recorded = answers[f"live {name}"]
    assert live
    assert live == recorded


def test_errors_are_located_as_ever(answers):
    assert answers["errors"] == {
        "analysis": ["UNKNOWN_FIELD", "s.vv"],
        "table": ["TABLE_OR_VIEW_NOT_FOUND", "tt"],
        "kernel": ["DIVIDE_BY_ZERO", "e.i / (s.i - s.i) > 1"],
        "column": ["DIVIDE_BY_ZERO", "e.i / 0"],
        "live": ["LATE_ROW"],
        "UNION ALL": ["ORDER_NOT_ROWTIME", "UNION"],
    }


def test_a_live_query_goes_on_where_it_was_and_its_accounts_close(answers):
    names = ("rows_in", "rows_used", "rows_buffered", "rows_late")
    assert [answers["live, so far"][name] for name in names] == [3, 2, 1, 0]
    assert [answers["live, in the end"][name] for name in names] == [6, 5, 0, 1]


def test_the_plan_is_explained(answers):
    assert "strategy: first true" in answers["explain"]
