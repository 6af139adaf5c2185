"""The same queries on a Spark Connect server, in a process of its own on the loopback interface."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from windrow.spark.java import ensure_java

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

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import windrow

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
left = views()
spark.stop()
print(json.dumps({**answers, "views": left}))
"""

AVERAGES = [["a", 1, 15.0], ["a", 2, 12.5], ["a", 3, 5.0], ["b", 1, 7.5], ["b", 2, 8.0]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path_factory.mktemp("connect"),
        env=inherited
        | {
            "JAVA_HOME": str(ensure_java().home),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": SUBMIT,
        },
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


pytestmark = [pytest.mark.spark, pytest.mark.slow]


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
        ("nested", [[1], [4]]),
        ("window_by", [["a", 1, 2], ["a", 2, 1], ["b", 1, 1], ["b", 2, 1]]),
    ],
)
def test_the_answer_is_that_of_a_classic_session(answers, name, wanted):
    assert answers[name] == wanted


def test_errors_are_located_as_ever(answers):
    assert answers["errors"] == {
        "analysis": ["UNKNOWN_FIELD", "s.vv"],
        "table": ["TABLE_OR_VIEW_NOT_FOUND", "tt"],
        "kernel": ["DIVIDE_BY_ZERO", "e.i / (s.i - s.i) > 1"],
        "column": ["DIVIDE_BY_ZERO", "e.i / 0"],
    }


def test_the_plan_is_explained(answers):
    assert "strategy: first true" in answers["explain"]
