"""A query has as many tasks as its rows are worth, however many shuffle partitions a session has."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

import windrow
from windrow.spark.tasks import layout

ROWS = 4_000


@pytest.fixture
def session(spark, conf, tmp_path):
    conf("spark.sql.shuffle.partitions", "50")
    conf("spark.sql.adaptive.coalescePartitions.minPartitionSize", "1MB")  # Spark's default
    columns = "concat('k', id % 100) AS k", "timestamp_seconds(id) AS ts", "id % 7 AS v"
    spark.range(ROWS).selectExpr(*columns).write.parquet(str(tmp_path / "rows"))
    session = windrow.Session(spark)
    session.stream("s", spark.read.parquet(str(tmp_path / "rows")), rowtime="ts")
    spark.read.parquet(str(tmp_path / "rows")).createOrReplaceTempView("t")
    yield session
    spark.catalog.dropTempView("t")


def tasks_of(frame):
    """The tasks of the stage that computes a frame's rows, after those before it have run."""
    return frame.rdd.getNumPartitions()


WINDOWS = """SELECT s.k, AVG(w.v) AS a FROM t WINDOW BY w AS (
    TYPE SLIDING PARTITION BY k ORDER BY ts START AS s AT sp WHEN TRUE END AT ep WHEN ep - sp = 2)"""
CHANGES = "SELECT k, AVG(v) AS a FROM s [PARTITION BY k ROWS 3] GROUP BY k"


@pytest.mark.parametrize(("query", "most"), [(WINDOWS, 2), (CHANGES, 2)])
def test_small_rows_have_few_tasks(conf, session, query, most):
    conf(layout.TASK_SETTING, "100000")
    few = session.sql(query).df
    assert tasks_of(few) <= most
    conf("spark.sql.adaptive.coalescePartitions.enabled", "false")
    conf(layout.TASK_SETTING, "1")
    many = session.sql(query).df
    assert tasks_of(many) == 50
    assert many.count() == few.count() >= 100


@pytest.mark.parametrize(
    ("rows", "cores", "shuffled", "budget", "tasks"),
    [
        (50_000, 2, 200, None, 1),
        (250_000, 2, 200, None, 3),
        (900_000, 2, 200, None, 4),
        (9_900_000, 2, 200, 2_000_000, 10),
        (9_900_000, 2, 4, 2_000_000, 8),  # several times as many as it has partitions
        (9_900_000, 100, 200, None, 99),
        (1e9, 16, 200, None, 200),
        (9_900_000, 2, 200, 250_000, 40),  # wide rows
        (math.inf, 2, 200, None, 200),
    ],
)
def test_of_so_many_rows(monkeypatch, rows, cores, shuffled, budget, tasks):
    conf = {"spark.sql.shuffle.partitions": str(shuffled)}
    gateway = SimpleNamespace(spark=SimpleNamespace(conf=conf), operators=None)
    monkeypatch.setattr(layout, "_cores", lambda _: cores)
    assert layout._tasks(gateway, rows, budget) == tasks
