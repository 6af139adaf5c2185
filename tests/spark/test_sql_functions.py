"""SQL functions over windows and matches return what their queries do with values for parameters."""

from __future__ import annotations

import pytest

import windrow
from windrow.errors import WindrowError

CLAUSE = (
    "WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY i START AS s WHEN s.v < least"
    " END NEXT AS n WHEN n.v >= least)"
)
CREATE = "CREATE TEMPORARY FUNCTION"
RUNS = f"SELECT s.k, s.i, SUM(w.v) AS total FROM t WHERE v <> 20 {CLAUSE}"


@pytest.fixture
def session(spark):
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM"
        " VALUES ('a', 1, 10), ('a', 2, 20), ('a', 3, 5), ('b', 1, 7), ('b', 2, 18) AS t (k, i, v)"
    )
    yield windrow.Session(spark)
    spark.catalog.dropTempView("t")


def rows(session, sql):
    return sorted(map(tuple, session.sql(sql).collect()))


def test_a_call_in_from_stands_for_the_query(session):
    session.sql(f"{CREATE} runs(least INT) RETURNS TABLE RETURN {RUNS}")
    assert rows(session, "SELECT * FROM runs(9)") == [("a", 3, 5), ("b", 1, 7)]
    assert rows(session, "SELECT r.total + 1 FROM runs(5 + 14) AS r WHERE r.k = 'b'") == [(26,)]
    assert rows(session, "SELECT runs.i FROM t JOIN runs(9) USING (k) WHERE t.i = 2") == [(1,), (3,)]
    assert rows(session, "SELECT COUNT(*) FROM runs(NULL)") == [(0,)]


def test_columns_that_are_returned_have_their_names_and_types(session):
    session.sql(
        "CREATE OR REPLACE TEMP FUNCTION typed(least INT DEFAULT 9, more INT DEFAULT 1)"
        " RETURNS TABLE (key STRING COMMENT 'a key', at BIGINT, sum DOUBLE)"
        f" LANGUAGE SQL RETURN (SELECT s.k, s.i + more, SUM(w.v) FROM t {CLAUSE})"
    )
    found = session.sql("SELECT * FROM typed(more => 10)")
    assert found.df.dtypes == [("key", "string"), ("at", "bigint"), ("sum", "double")]
    assert rows(session, "SELECT * FROM typed(more => 10)") == [("a", 13, 5.0), ("b", 11, 7.0)]
    assert rows(session, "SELECT at FROM typed()") == [(2,), (4,)]


def test_a_function_for_one_value(session):
    query = f"SELECT MAX(COUNT(w)) FROM t {CLAUSE}"
    session.sql(f"CREATE TEMP FUNCTION longest(least INT) RETURNS STRING RETURN ({query})")
    assert rows(session, "SELECT k, longest(19) AS l FROM t WHERE i = 3") == [("a", "2")]


def test_matches_and_functions_in_functions(session):
    session.sql(
        "CREATE TEMP FUNCTION falls(by INT) RETURNS TABLE RETURN SELECT m.* FROM t MATCH_RECOGNIZE ("
        " PARTITION BY k ORDER BY i MEASURES A.v AS high, B.v AS low"
        " PATTERN (A B) DEFINE B AS B.v <= A.v - by) AS m"
    )
    assert rows(session, "SELECT * FROM falls(15)") == [("a", 20, 5)]
    session.sql(
        "CREATE TEMP FUNCTION deep() RETURNS TABLE RETURN SELECT s.low FROM falls(1)"
        " WINDOW BY w AS (TYPE SLIDING ORDER BY low START AS s END UNBOUNDED)"
    )
    assert rows(session, "WITH q AS (SELECT * FROM deep()) SELECT * FROM q") == [(5,)]
    session.sql("DROP TEMPORARY FUNCTION deep")
    with pytest.raises(WindrowError, match="deep"):
        session.sql("SELECT * FROM deep()")


@pytest.mark.parametrize(
    ("sql", "condition", "hint"),
    [
        ("SELECT f.* FROM t, LATERAL made(t.v) AS f", "UNSUPPORTED_QUERY", "behind LATERAL"),
        ("SELECT f.* FROM t, LATERAL made(i + v) AS f", "UNSUPPORTED_QUERY", "behind LATERAL"),
        ("SELECT * FROM made(1, 2)", "WRONG_NUM_ARGS", "least INT"),
        ("SELECT * FROM made()", "WRONG_NUM_ARGS", "least INT"),
        (f"{CREATE} made(least INT) RETURNS TABLE RETURN {RUNS}", "ROUTINE_ALREADY_EXISTS", "OR REPLACE"),
        (f"CREATE FUNCTION f(least INT) RETURNS TABLE RETURN {RUNS}", "UNSUPPORTED_STATEMENT", "TEMPORARY"),
        (f"{CREATE} made2(least INT) RETURN {RUNS}", "PARSE_SYNTAX_ERROR", "RETURNS TABLE"),
        (f"{CREATE} made2(least) RETURNS TABLE RETURN {RUNS}", "PARSE_SYNTAX_ERROR", "least INT"),
        (f"{CREATE} made2(most INT) RETURNS TABLE RETURN {RUNS}", "UNKNOWN_VARIABLE", ""),
        (
            f"{CREATE} r(least INT) RETURNS TABLE RETURN {RUNS.replace('t WHERE', 'r(1) WHERE')}",
            "RECURSIVE_FUNCTION", "another name",
        ),
        (
            f"{CREATE} f(least INT) RETURNS INT RETURN 1 + (SELECT MAX(COUNT(w)) FROM t {CLAUSE})",
            "UNSUPPORTED_STATEMENT", "RETURN a query",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(session, sql, condition, hint):
    session.sql(f"{CREATE} made(least INT) RETURNS TABLE RETURN {RUNS}")
    with pytest.raises(WindrowError) as caught:
        session.sql(sql)
    assert caught.value.condition == condition
    assert hint in (caught.value.hint or "")
    assert caught.value.getQueryContext()
