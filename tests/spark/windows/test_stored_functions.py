"""Permanent SQL functions over windows and matches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import windrow
from tests.spark.windows.stored_database import database, rows
from windrow.errors import WindrowError

CLAUSE = (
    "WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY i START AS s WHEN s.v < least"
    " END NEXT AS n WHEN n.v >= least)"
)
RUNS = f"SELECT s.k, s.i, SUM(w.v) AS total FROM kept_rows WHERE v <> 20 {CLAUSE}"


@pytest.fixture(scope="module")
def stored(spark, tmp_path_factory) -> Iterator[None]:
    values = "('a', 1, 10), ('a', 2, 20), ('a', 3, 5), ('b', 1, 7), ('b', 2, 18)"
    with database(spark, tmp_path_factory.mktemp("kept"), "kept", "kept_rows", values):
        yield


@pytest.fixture
def session(spark, stored) -> Iterator[windrow.Session]:
    spark.sql("USE kept")
    yield windrow.Session(spark)
    for function in spark.sql("SHOW USER FUNCTIONS FROM kept").collect():
        if "." in function[0]:
            spark.sql(f"DROP FUNCTION {function[0]}")
    spark.sql("USE default")


def test_every_session_of_ours_calls_it(session):
    session.sql(f"CREATE FUNCTION runs(least INT DEFAULT 9) RETURNS TABLE RETURN {RUNS}")
    found = [("a", 3, 5), ("b", 1, 7)]
    another = windrow.Session(session.spark.newSession())
    assert rows(another, "SELECT * FROM kept.runs(9)") == found
    session.spark.sql("USE default")  # its tables are those of the database in which it was made
    assert rows(session, "SELECT r.* FROM spark_catalog.kept.runs() AS r") == found
    assert rows(session, "SELECT runs.k FROM kept.runs(6)") == [("a",)]
    sql = "SELECT v, f.i FROM VALUES (6), (9) AS t (v), LATERAL kept.runs(t.v) AS f"
    assert rows(session, sql) == [(6, 3), (9, 1), (9, 3)]
    session.spark.sql("USE kept")
    assert rows(session, "WITH q AS (SELECT * FROM Runs(9)) SELECT * FROM q") == found


def test_functions_for_one_value(session):
    longest = f"(SELECT MAX(COUNT(w)) FROM kept_rows {CLAUSE})"
    session.sql(f"CREATE FUNCTION kept.longest(least INT) RETURNS INT RETURN {longest}")
    session.sql(
        f"CREATE FUNCTION more(least INT, n INT) RETURNS STRING RETURN 'it''s\n\\\\ ' || (n + {longest})"
    )
    assert rows(session, "SELECT kept.longest(19), more(19, 2)") == [(2, "it's\n\\ 4")]
    found = session.sql("SELECT kept.longest(19), longest(least => 6) FROM VALUES (1)")
    assert found.df.columns == ["kept.longest(19)", "longest(least => 6)"]
    sql = "SELECT i, longest(v) FROM kept_rows WHERE k = 'b' AND longest(v + 0) > 0"
    assert rows(session, sql) == [(1, 1), (2, 1)]


def test_spark_alone_says_what_is_needed_and_lists_it(session):
    session.sql(
        "CREATE FUNCTION IF NOT EXISTS runs(least INT) RETURNS TABLE (key STRING COMMENT 'a key', at BIGINT)"
        f" COMMENT 'runs' RETURN SELECT s.k, s.i FROM kept_rows {CLAUSE}"
    )
    for sql in ("SELECT * FROM runs(1)", "SELECT COUNT(*) FROM kept.runs(1)"):
        with pytest.raises(Exception, match=r"kept\.runs is a function of Windrow.*windrow\.Session"):
            session.spark.sql(sql).collect()
    described = " ".join(row[0] for row in session.spark.sql("DESCRIBE FUNCTION EXTENDED runs").collect())
    assert "key STRING 'a key'" in described
    assert "runs" in described
    assert session.sql("SELECT * FROM runs(19)").df.dtypes == [("key", "string"), ("at", "bigint")]
    session.sql("CREATE FUNCTION IF NOT EXISTS runs(x INT) RETURNS INT RETURN x")
    assert rows(session, "SELECT COUNT(*) FROM runs(6)") == [(1,)]


def test_replaced_and_dropped(session):
    session.sql(f"CREATE FUNCTION f(least INT) RETURNS TABLE RETURN {RUNS}")
    session.sql(f"CREATE OR REPLACE FUNCTION f(least INT) RETURNS TABLE RETURN SELECT * FROM ({RUNS})")
    assert len(rows(session, "SELECT * FROM f(9)")) == 2
    session.sql("CREATE TEMPORARY FUNCTION f(least INT) RETURNS TABLE RETURN SELECT least AS x")
    assert rows(session, "SELECT * FROM f(9)") == [(9,)]
    assert len(rows(session, "SELECT * FROM kept.f(9)")) == 2
    session.sql("DROP TEMPORARY FUNCTION f")
    session.sql("CREATE OR REPLACE FUNCTION f(x INT) RETURNS INT RETURN x + 1")
    assert rows(session, "SELECT f(9)") == [(10,)]
    session.sql(f"CREATE OR REPLACE FUNCTION f(least INT) RETURNS TABLE RETURN {RUNS}")
    session.sql("DROP FUNCTION f")
    with pytest.raises(WindrowError, match="f"):
        session.sql("SELECT * FROM f(9)")


def test_functions_and_views_that_call_functions(session):
    session.sql(f"CREATE FUNCTION runs(least INT) RETURNS TABLE RETURN {RUNS}")
    session.sql(
        "CREATE FUNCTION long(than INT) RETURNS TABLE RETURN SELECT k FROM runs(9) WHERE total > than"
    )
    session.sql("CREATE VIEW long_ones AS SELECT * FROM long(5)")
    session.spark.sql("USE default")
    assert rows(session, "SELECT * FROM kept.long(5)") == rows(session, "TABLE kept.long_ones") == [("b",)]
    session.spark.sql("DROP VIEW kept.long_ones")


def test_a_script_calls_what_it_makes(session):
    script = f"BEGIN CREATE FUNCTION made(least INT) RETURNS TABLE RETURN {RUNS}; SELECT i FROM made(6); END"
    assert rows(session, script) == [(3,)]


@pytest.mark.parametrize(
    ("sql", "condition", "hint"),
    [
        (f"CREATE FUNCTION f(least INT) RETURNS TABLE RETURN {RUNS}", "ROUTINE_ALREADY_EXISTS", ""),
        (
            f"CREATE FUNCTION g(least INT) RETURNS TABLE RETURN {RUNS.replace('kept_rows', 'seen')}",
            "INVALID_TEMP_OBJ_REFERENCE", "store it",
        ),
        (
            f"CREATE FUNCTION g(least INT) RETURNS TABLE RETURN {RUNS.replace('v <> 20', 'one(v) <> 20')}",
            "INVALID_TEMP_OBJ_REFERENCE", "without TEMPORARY",
        ),
        (
            f"CREATE FUNCTION g(least INT) RETURNS TABLE RETURN {RUNS.replace('20', ':p')}",
            "UNSUPPORTED_STATEMENT", "write the values instead",
        ),
        (
            f"CREATE FUNCTION other.kept.g(least INT) RETURNS TABLE RETURN {RUNS}",
            "UNSUPPORTED_STATEMENT", "spark_catalog.database.function",
        ),
        (
            f"CREATE TEMPORARY FUNCTION kept.g(least INT) RETURNS TABLE RETURN {RUNS}",
            "UNSUPPORTED_STATEMENT", "leave out the database",
        ),
        (
            f"CREATE OR REPLACE FUNCTION f(least INT) RETURNS TABLE RETURN"
            f" {RUNS.replace('kept_rows', 'f(1)')}",
            "RECURSIVE_FUNCTION", "another name",
        ),
        ("SELECT * FROM kept.f()", "WRONG_NUM_ARGS", "least INT"),
    ],
)  # fmt: skip
def test_what_is_refused(session, sql, condition, hint):
    session.sql(f"CREATE FUNCTION f(least INT) RETURNS TABLE RETURN {RUNS}")
    session.spark.sql("CREATE OR REPLACE TEMP VIEW seen AS SELECT * FROM kept_rows")
    session.spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION one(x INT) RETURN x")
    try:
        with pytest.raises(WindrowError) as caught:
            session.sql(sql, p=20) if ":p" in sql else session.sql(sql)
    finally:
        session.spark.sql("DROP VIEW seen")
        session.spark.sql("DROP TEMPORARY FUNCTION one")
    assert caught.value.condition == condition
    assert hint in (caught.value.hint or "")
