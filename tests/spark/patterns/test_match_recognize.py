"""MATCH_RECOGNIZE through a session: checks, plans, errors while it runs, recorded streams, many rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.errors import WindrowError
from windrow.spark.clauses import match_requests
from windrow.spark.runtime.settings import settings

ROWS = "SELECT * FROM VALUES ('a', 1, 5), ('a', 2, 3), ('a', 3, 4), ('b', 1, 2), ('b', 2, 2) AS t(k, i, v)"


@pytest.fixture
def session(spark):
    session = windrow.Session(spark)
    session.register("seq", spark.sql(ROWS))
    yield session
    spark.catalog.dropTempView("seq")


def pattern(
    pattern: str, define: str, *, source: str = "seq", skip: str = "", measures: str = "COUNT(*) AS n"
) -> str:
    return (
        f"SELECT * FROM {source} MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES {measures}"
        f" {skip} PATTERN ({pattern}) DEFINE {define})"
    )


def test_check_finds_what_is_wrong_without_running_anything(session):
    session.check(pattern("A B", "B AS v < PREV(v)"))
    with pytest.raises(WindrowError) as raised:
        session.check(pattern("A B", "B AS v < PREV(w)"))
    assert raised.value.condition == "UNKNOWN_FIELD"


def test_functions_of_the_users_may_read_two_rows_of_the_match(spark, session):
    spark.udf.register("apart_by", lambda left, right: None if left is None else right - left, "int")
    far = pattern(
        "A X*? B",
        "B AS apart_by(A.v, B.v) = -1 AND NOT apart_by(X.v, B.v) = 0",
        measures="A.i AS a, B.i AS b",
    )
    # of a, 5 and 4 with the 3 between them, and of b none
    assert [tuple(row) for row in session.sql(far).collect()] == [("a", 1, 3)]
    plan = session.sql(f"EXPLAIN {far}").plan()
    assert "asked          0 = apart_by(" in plan
    assert "by Spark, for all values that the search may need, when the query starts" in plan


def test_what_spark_would_be_asked_for_too_often_is_refused_with_its_place(session, monkeypatch):
    monkeypatch.setattr(match_requests, "_MOST", 3)
    query = pattern("A B* C", "C AS reverse(concat(A.v, B.v, C.v)) = '321'")
    with pytest.raises(WindrowError) as raised:
        session.sql(query).collect()
    assert raised.value.condition == "CONDITION_TOO_COSTLY"
    assert query[raised.value.span.start : raised.value.span.stop].startswith("MATCH_RECOGNIZE")
    guarded = query.replace("C AS", "B AS v < 0, C AS i = 2 AND")
    assert session.sql(guarded).collect() == []


@pytest.mark.parametrize(
    "value",
    [
        "TIMESTAMP '2024-03-10 01:30:00' + {0} * INTERVAL 1 HOUR",
        "TIMESTAMP_NTZ '2024-03-10 01:30:00' + {0} * INTERVAL 1 HOUR",
        "DATE '2024-03-10' + {0}",
        "CAST({0} AS DECIMAL(30, 3)) / 3",
        "CAST(CAST({0} AS STRING) AS BINARY)",
        "named_struct('t', TIMESTAMP '2024-03-10 01:30:00' + {0} * INTERVAL 1 HOUR, 'i', {0})",
        "array(CAST('NaN' AS FLOAT), -0.0F, {0})",
        "make_ym_interval(0, {0})",
        "{0} * INTERVAL 1 SECOND",
        "NULLIF({0}, 2)",
    ],
)
def test_values_of_every_type_are_given_to_functions_as_they_are(spark, value):
    """Also those in lists, under a clock on which an hour does not exist."""
    session = windrow.Session(spark)
    a, b, c = (value.format(f"{name}.i") for name in "ABC")
    query = pattern(
        "A B+ C",
        f"C AS hash(A.x, collect_list(B.x), C.x) = hash({a}, collect_list({b}), {c})",
        source="typed",
        measures="FIRST(i) AS first, LAST(i) AS last",
    )
    with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        rows = spark.sql(
            f"SELECT 'a' AS k, i, {value.format('i')} AS x FROM VALUES (1), (2), (3), (4) AS t(i)"
        )
        rows.createOrReplaceTempView("typed")
        assert [tuple(row) for row in session.sql(query).collect()] == [("a", 1, 4)]
    spark.catalog.dropTempView("typed")


@pytest.mark.parametrize("execution", ["batch", "reference"])
def test_a_skip_that_leads_nowhere_is_told_with_its_place(spark, session, execution):
    query = pattern("A B?", "B AS v < PREV(v)", skip="AFTER MATCH SKIP TO FIRST B")
    with pytest.raises(WindrowError) as raised:
        windrow.Session(spark, execution=execution).sql(query).collect()
    error = raised.value
    assert error.condition == "SKIP_TARGET_MISSING"
    assert query[error.span.start - len("SKIP TO FIRST ") : error.span.stop] == "SKIP TO FIRST B"


def test_a_division_by_zero_in_a_condition_is_told_with_its_place(session):
    query = pattern("A B", "B AS B.v / (A.v - A.v) > 1")
    with pytest.raises(WindrowError) as raised:
        session.sql(query).collect()
    error = raised.value
    assert error.condition == "DIVIDE_BY_ZERO"
    assert query[error.span.start : error.span.stop] == "B.v / (A.v - A.v) > 1"


def test_a_recorded_stream_is_read_as_its_rows(session):
    rows = session.sql(ROWS).df
    session.stream("ticks", rows, rowtime="i", unit="second")
    query = pattern("A B", "B AS v <= PREV(v)", source="ticks", measures="A.v AS a, B.v AS b")
    assert sorted(map(tuple, session.sql(query).collect())) == [("a", 5, 3), ("b", 2, 2)]
    beside = f"SELECT * FROM ticks [NOW], ({pattern('A', 'A AS v > 1', source='ticks')})"
    with pytest.raises(WindrowError) as raised:
        session.sql(beside)
    assert raised.value.condition == "STREAM_WHERE_RELATION_IS_NEEDED"


def test_names_of_columns_are_matched_regardless_of_case(session):
    query = pattern("A b", "B AS b.V < A.v").replace("BY k ORDER BY i", "BY K ORDER BY I")
    assert [tuple(row) for row in session.sql(query).collect()] == [("a", 2)]


@pytest.mark.long
def test_many_rows_give_what_plain_sql_gives(spark):
    """Runs of values above a bound that a lower value ends: the compiled machine, and islands of OVER."""
    count = 400_000
    generator = np.random.default_rng(5)
    table = pa.table(
        {
            "k": pa.array(np.arange(count) % 3, pa.int32()),
            "i": pa.array(np.arange(count) // 3, pa.int32()),
            "v": pa.array(generator.integers(0, 10, count), pa.int32()),
        }
    )
    session = windrow.Session(spark)
    session.register("many", table)
    found = session.sql(
        """SELECT k, first, n, total FROM many MATCH_RECOGNIZE (
            PARTITION BY k ORDER BY i
            MEASURES FIRST(A.i) AS first, COUNT(A.*) AS n, SUM(A.v) AS total
            PATTERN (A+ B) DEFINE A AS v > 3, B AS v <= 3 AND B.v < FIRST(A.v))"""
    ).df
    islands = spark.sql(
        """WITH runs AS (
            SELECT *, SUM(IF(v <= 3, 1, 0)) OVER (PARTITION BY k ORDER BY i) AS run FROM many),
        ended AS (
            SELECT k, MIN(i) AS first, COUNT(*) AS n, SUM(v) AS total, MAX(run) AS run FROM runs WHERE v > 3
            GROUP BY k, run)
        SELECT k, first, n, total FROM ended
        WHERE run < (SELECT MAX(run) FROM runs WHERE runs.k = ended.k)"""
    )
    ours, theirs = (
        frame.toArrow().sort_by([("k", "ascending"), ("first", "ascending")]).to_pylist()
        for frame in (found, islands)
    )
    assert ours == theirs
    assert len(ours) > 1000
    spark.catalog.dropTempView("many")


def test_without_an_order_a_long_partition_is_not_cut(session):
    session.spark.range(1000).createOrReplaceTempView("unordered")
    rows = {"spark.windrow.slice.rows": "100", "spark.windrow.task.rows": "100"}
    with settings(session.spark, rows):
        found = session.sql(
            "SELECT * FROM unordered MATCH_RECOGNIZE ("
            "MEASURES COUNT(*) AS n, SUM(id) AS total PATTERN (A+) DEFINE A AS id >= 0)"
        ).collect()
    assert found == [(1000, 499500)]
