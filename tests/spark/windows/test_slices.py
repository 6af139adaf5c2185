"""Long partitions on Spark: cut into slices they give the rows that whole they give."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import functions as F

from windrow import Session
from windrow.spark.tasks import layout
from windrow.spark.tasks.layout import BYTES_SETTING, ROWS_SETTING

ROWS = 240
PARTITIONS = ["", "PARTITION BY k"]
CLAUSES = {
    "position": "START AS s AT sp END AS e AT ep WHEN ep - sp = 20",
    "label and rows": "LABEL AS s AT lp WHEN s.x > 3 START AT sp WHEN lp - sp = 2 END AT ep WHEN ep - lp = 7",
    "monotone": "START AS s END AS e NEXT AS n WHEN n.o - s.o > 30",
    "scan": "START AS s END AS e WHEN e.x * s.y > 60",
    "unbounded": "START AS s END UNBOUNDED",
    "only": "START AS s WHEN s.x > 5 ONLY END AS e WHEN e.x = 0",
    "label": "LABEL AS s WHEN s.x = 3 START AS b WHEN s.o - b.o <= 40 END AS e WHEN e = s",
}
AGGREGATES = (
    "COUNT(w) AS n, SUM(w.x) AS t, AVG(w.f) AS a, MEDIAN(w.x) AS m, "
    "COUNT(DISTINCT w.y) AS d, MAX(w.name) AS h"
)


@pytest.fixture
def session(spark):
    spark.range(ROWS).selectExpr(
        "IF(id % 10 = 0, CAST(id % 30 AS STRING), 'long') AS k",
        "id * 7 % 240 AS o",
        "id * 31 % 17 AS x",
        "id * 13 % 11 AS y",
        "id % 5 - 2.5D AS f",
        "concat('n', id % 4) AS name",
    ).createOrReplaceTempView("long_rows")
    return Session(spark)


@pytest.fixture
def sliced(conf, monkeypatch):
    """Makes every partition of more than so many rows long; none without."""
    monkeypatch.setattr(layout, "_SMALL", 0)
    monkeypatch.setattr(layout, "_SAMPLED", 1.0)
    return lambda rows: conf(ROWS_SETTING, str(rows))


def answer(session, query):
    return sorted(map(str, session.sql(query).df.collect()))


@pytest.mark.sampled
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("end", CLAUSES)
def test_sliding_windows_in_slices(session, sliced, partition, end):
    query = (
        f"SELECT s.k, s.o, s.name, {AGGREGATES} FROM long_rows "
        f"WINDOW BY w AS (TYPE SLIDING {partition} ORDER BY o {CLAUSES[end]})"
    )
    sliced(100_000)
    whole = answer(session, query)
    sliced(50)
    assert answer(session, query) == whole


@pytest.mark.sampled
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize(
    "clause",
    [
        "START AS s WHEN s.x > 2 END AS e WHEN e.x = 0",
        "START AS s WHEN s.x > 14",
        "START AS s AT a END AT b WHEN b - a = 6",
    ],
)
def test_tumbling_windows_in_slices(session, sliced, partition, clause):
    query = (
        f"SELECT s.k, s.o, {AGGREGATES}, size(w) AS z FROM long_rows "
        f"WINDOW BY w AS (TYPE TUMBLING {partition} ORDER BY o DESC {clause})"
    )
    sliced(100_000)
    whole = answer(session, query)
    sliced(40)
    assert answer(session, query) == whole


def test_slices_share_no_more_than_they_must(session, sliced, capsys):
    """The exchanges of a plan are counted: one for whole partitions, three for slices, five for chains.

    One for slices too, if all that their windows can reach is so many rows around them.
    """

    def exchanges(kind: str, end: str = "AS e WHEN e.x > s.x") -> int:
        query = (
            f"SELECT s.o FROM long_rows WINDOW BY w AS (TYPE {kind} ORDER BY o START AS s AT sp END {end})"
        )
        capsys.readouterr()
        session.sql(query).explain(spark=True)
        return len(re.findall(r"^\(\d+\) MapInArrow", capsys.readouterr().out, re.MULTILINE))

    sliced(100_000)
    assert exchanges("SLIDING") == exchanges("TUMBLING") == 2
    sliced(50)
    assert exchanges("SLIDING") == 4
    assert exchanges("TUMBLING") == 6
    assert exchanges("SLIDING", "AT ep WHEN ep - sp = 20") == 2
    assert exchanges("TUMBLING", "AT ep WHEN ep - sp = 20") == 6


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("key", ["o", "TIMESTAMP_NTZ '2024-01-01' + make_dt_interval(CAST(o AS INT))"])
def test_windows_that_end_by_a_value_need_one_pass(session, sliced, spark, tmp_path, capsys, partition, key):
    """Files tell that the key is nowhere NULL; of other rows Spark does not know it."""
    stored = tmp_path / "stored"
    spark.table("long_rows").withColumn("o", F.expr(key)).write.parquet(str(stored))
    spark.read.parquet(str(stored)).createOrReplaceTempView("stored_rows")
    span = "30" if key == "o" else "INTERVAL 30 DAYS"
    query = (
        f"SELECT s.k, s.o, s.name, {AGGREGATES} FROM stored_rows "
        f"WINDOW BY w AS (TYPE SLIDING {partition} ORDER BY o "
        f"START AS s END AS e NEXT AS n WHEN n.o - s.o > {span})"
    )
    sliced(100_000)
    whole = answer(session, query)
    sliced(100)
    assert answer(session, query) == whole
    capsys.readouterr()
    session.sql(query).explain(spark=True)
    assert len(re.findall(r"^\(\d+\) MapInArrow", capsys.readouterr().out, re.MULTILINE)) == 2


def test_bytes_make_slices_too(session, sliced, conf, capsys):
    sliced(100_000)
    conf(BYTES_SETTING, "2000")
    query = (
        f"SELECT s.o, {AGGREGATES} FROM long_rows "
        "WINDOW BY w AS (TYPE SLIDING ORDER BY o START AS s END UNBOUNDED)"
    )
    session.sql(query).explain(spark=True)
    assert len(re.findall(r"^\(\d+\) MapInArrow", capsys.readouterr().out, re.MULTILINE)) == 4
    assert len(answer(session, query)) == ROWS


def test_one_value_of_the_order_key_is_not_cut(session, sliced):
    sliced(10)
    query = (
        "SELECT COUNT(w) AS n FROM long_rows "
        "WINDOW BY w AS (TYPE SLIDING ORDER BY 1 START UNBOUNDED END UNBOUNDED)"
    )
    assert answer(session, query) == [f"Row(n={ROWS})"]


def test_an_order_key_that_cannot_be_cut_leaves_the_partition_whole(session, sliced):
    sliced(10)
    query = (
        "SELECT COUNT(w) AS n FROM long_rows "
        "WINDOW BY w AS (TYPE SLIDING ORDER BY array(o) START UNBOUNDED END UNBOUNDED)"
    )
    assert answer(session, query) == [f"Row(n={ROWS})"]


def test_nothing_to_sample(session, sliced):
    sliced(10)
    query = (
        "SELECT COUNT(w) AS n FROM long_rows WHERE o < 0 "
        "WINDOW BY w AS (TYPE SLIDING ORDER BY o START AS s END UNBOUNDED)"
    )
    assert answer(session, query) == []


def test_explaining_runs_no_job(session, sliced, monkeypatch):
    def no_job(*_arguments):
        raise AssertionError("a sample was taken")

    sliced(10)
    monkeypatch.setattr(layout, "_bytes", no_job)
    query = "SELECT s.o FROM long_rows WINDOW BY w AS (TYPE SLIDING ORDER BY o START AS s END UNBOUNDED)"
    assert "in slices" in session.sql(f"EXPLAIN {query}").df.head()[0]


@pytest.mark.parametrize("mode", ["ONE ROW PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"])
def test_matches_in_slices(session, sliced, mode):
    query = f"""
        SELECT * FROM long_rows MATCH_RECOGNIZE (
            PARTITION BY k ORDER BY o
            MEASURES FIRST(o) AS first, LAST(o) AS last, SUM(y) AS total, PREV(FIRST(x)) AS before {mode}
            AFTER MATCH SKIP TO NEXT ROW PATTERN (a b{{1,3}}? (c | ^ d))
            DEFINE b AS y > PREV(y), c AS c.x < a.x OR NEXT(x) IS NULL)
        """
    sliced(100_000)
    whole = answer(session, query)
    sliced(50)
    assert answer(session, query) == whole
    assert "long partitions in slices" in session.sql(f"EXPLAIN {query}").df.head()[0]


def test_slices_of_matches_follow_each_other(session, sliced):
    """Where a slice leaves open what it did not expect, the rest is in one task."""
    query = """
        SELECT * FROM long_rows MATCH_RECOGNIZE (
            PARTITION BY k ORDER BY o
            MEASURES MATCH_NUMBER() AS n, FIRST(o) AS first, SUM(y) AS total, NEXT(LAST(x)) AS after
            ALL ROWS PER MATCH WITH UNMATCHED ROWS
            PATTERN (a+ b) DEFINE a AS y > 3, b AS b.x < FIRST(a.x))
        """
    sliced(100_000)
    whole = answer(session, query)
    sliced(50)
    assert answer(session, query) == whole
    assert (
        "continues the matches that the one before leaves open"
        in session.sql(f"EXPLAIN {query}").df.head()[0]
    )
