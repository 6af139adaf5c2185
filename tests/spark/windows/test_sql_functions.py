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
    found = session.sql(
        "SELECT longest(19), k, longest(6) || longest(19), longest(19) AS l FROM t WHERE i = 3"
    )
    assert found.df.columns == ["longest(19)", "k", "longest(6) || longest(19)", "l"]
    assert [tuple(row) for row in found.df.collect()] == [("2", "a", "12", "2")]
    named = session.sql(
        "SELECT (SELECT longest(19)) AS a, count(*) FROM t WHERE longest(19) = '2' GROUP BY k"
    )
    assert named.df.columns == ["a", "count(1)"]


def test_a_function_that_returns_an_expression(session):
    longest = f"(SELECT MAX(COUNT(w)) FROM t {CLAUSE})"
    session.sql(
        f"{CREATE} more(least INT, n INT DEFAULT 1) RETURNS INT RETURN n + 10 * {longest} + more.least"
    )
    assert rows(session, "SELECT more(19), more(19, 2)") == [(40, 41)]
    session.sql(f"{CREATE} ever() RETURNS BOOLEAN RETURN {longest.replace('least', '19')} > 1")
    found = session.sql("SELECT k, ever() FROM t WHERE ever() AND i = 3")
    assert found.df.columns == ["k", "ever()"]
    assert [tuple(row) for row in found.df.collect()] == [("a", True)]
    assert rows(session, "SELECT k, i, more(v) FROM t WHERE k = 'b'") == [("b", 1, 18), ("b", 2, 29)]


def test_arguments_of_columns(session):
    session.sql(f"{CREATE} runs(least INT) RETURNS TABLE RETURN {RUNS}")
    session.sql(f"{CREATE} longest(least INT) RETURNS INT RETURN (SELECT MAX(COUNT(w)) FROM t {CLAUSE})")
    bounds = "VALUES (9, 'x'), (19, 'y'), (19, 'z'), (1, 'v'), (NULL, 'n') AS b (v, name)"
    assert rows(session, f"SELECT name, f.* FROM {bounds}, LATERAL runs(b.v) AS f") == [
        ("x", "a", 3, 5), ("x", "b", 1, 7), ("y", "a", 1, 15), ("y", "b", 1, 25),
        ("z", "a", 1, 15), ("z", "b", 1, 25),
    ]  # fmt: skip
    assert rows(session, f"SELECT name, i FROM {bounds} LEFT JOIN LATERAL runs(least => v - 10) AS f") == [
        ("n", None), ("v", None), ("x", None), ("y", 1), ("y", 3), ("z", 1), ("z", 3),
    ]  # fmt: skip
    # `v` is a column of the function's table too, and of what is around
    assert rows(session, f"SELECT name, longest(v) FROM {bounds} WHERE longest(v + 0) > 0") == [
        ("x", 1), ("y", 2), ("z", 2),
    ]  # fmt: skip


def test_arguments_are_computed_of_rows_that_where_leaves(session):
    session.sql(f"{CREATE} longest(least INT) RETURNS INT RETURN (SELECT MAX(COUNT(w)) FROM t {CLAUSE})")
    session.sql(f"{CREATE} runs(least INT) RETURNS TABLE RETURN {RUNS}")
    bounds = "VALUES (2, 'x'), (0, 'z') AS b (v, name)"
    assert rows(session, f"SELECT name, longest(38 DIV v) FROM {bounds} WHERE v <> 0") == [("x", 2)]
    sql = f"SELECT name FROM {bounds} WHERE b.v <> 0 AND longest(38 DIV b.v) > longest(6)"
    assert rows(session, sql) == [("x",)]
    sql = f"SELECT name, f.i FROM {bounds}, LATERAL runs(38 DIV v) AS f WHERE b.v <> 0 AND f.k = 'b'"
    assert rows(session, sql) == [("x", 1)]


def test_arguments_of_columns_of_a_named_query(session):
    session.sql(f"{CREATE} longest(least INT) RETURNS INT RETURN (SELECT MAX(COUNT(w)) FROM t {CLAUSE})")
    named = "WITH b AS (SELECT * FROM VALUES (9, 'x'), (19, 'y') AS b (v, name))"
    assert rows(session, f"{named} SELECT name FROM b WHERE longest(b.v) = 1") == [("x",)]


def test_queries_of_with_that_the_function_does_not_read(session):
    body = f"WITH b AS (SELECT * FROM t) SELECT s.k, s.i FROM b AS t {CLAUSE}"
    session.sql(f"{CREATE} runs(least INT) RETURNS TABLE RETURN {body}")
    found = rows(session, "WITH b AS (SELECT 1 AS v), s AS (SELECT 2) SELECT k, i FROM runs(9)")
    assert found == rows(session, "SELECT k, i FROM runs(9)") != []


def test_sampled_queries_of_with_that_have_the_name_of_a_table_of_the_function(session):
    session.sql(f"{CREATE} runs(least INT) RETURNS TABLE RETURN {RUNS}")
    named = "WITH T AS (SELECT 1 AS i)"
    sampled = "TABLESAMPLE (10 ROWS)"
    found = rows(session, f"{named} SELECT r.k, t.i FROM runs(9) AS r, t {sampled} WHERE t.i = 1")
    assert found == [("a", 1), ("b", 1)]
    assert rows(session, f"{named} SELECT r.k, x.i FROM runs(9) AS r, t {sampled} AS x") == found


def test_types_with_commas(session):
    kind = "STRUCT<least: INT, name: STRING>"
    session.sql(
        f"{CREATE} runs(of {kind}) RETURNS TABLE (i INT, read {kind})"
        f" RETURN SELECT s.i, of FROM t WHERE v > of.least {CLAUSE.replace('least', '99')}"
    )
    assert rows(session, "SELECT i, read.name FROM runs(struct(19 AS least, 'z' AS name))") == [(2, "z")]


def test_functions_and_scripts_that_call_functions_alone(session):
    session.sql(f"{CREATE} longest(least INT) RETURNS INT RETURN (SELECT MAX(COUNT(w)) FROM t {CLAUSE})")
    session.sql(f"{CREATE} longer(of INT) RETURNS INT RETURN 1 + longest(of)")
    assert rows(session, "SELECT longer(19)") == [(3,)]
    assert rows(session, "SELECT k, longer(v) FROM t WHERE i = 2") == [("a", 3), ("b", 2)]
    script = (
        "BEGIN CREATE TEMPORARY VIEW made_here AS SELECT 19 AS v;"
        " SELECT longer(v) FROM made_here; DROP VIEW made_here; END"
    )
    assert rows(session, script) == [(3,)]


def test_functions_without_a_clause_are_those_of_spark(session):
    session.sql("CREATE OR REPLACE TEMPORARY FUNCTION plain_one(x INT) RETURN x + 1")
    session.sql("CREATE OR REPLACE TEMPORARY FUNCTION plain_rows() RETURNS TABLE RETURN SELECT 2 AS y")
    assert rows(session, "SELECT plain_one(1), y FROM plain_rows()") == [(2, 2)]
    session.sql("DROP TEMPORARY FUNCTION plain_one")
    session.sql("DROP TEMPORARY FUNCTION plain_rows")


def test_parameters_of_the_statement_are_arguments(session):
    session.sql(f"{CREATE} runs(least INT) RETURNS TABLE RETURN {RUNS}")
    found = session.sql("SELECT i, ? AS x FROM runs(?) WHERE i > ?", 7, 19, 0)
    assert sorted(map(tuple, found.collect())) == [(1, 7), (1, 7)]


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
        ("SELECT f.* FROM t, made(t.v) AS f", "UNSUPPORTED_QUERY", "LATERAL before"),
        (
            "SELECT f.* FROM t, LATERAL made((SELECT MAX(i) FROM VALUES (1) AS x (i) WHERE v > i)) AS f",
            "UNSUPPORTED_QUERY", "write the relation",
        ),
        ("SELECT (SELECT MAX(i) FROM LATERAL made(MAX(t.v))) FROM t", "UNSUPPORTED_QUERY", "in a subquery"),
        (
            "SELECT f.* FROM (SELECT rand() AS v) AS t, LATERAL made(t.v) AS f",
            "NONDETERMINISTIC_QUERY", "in a table",
        ),
        ("SELECT f.* FROM (SELECT i FROM t) AS t, LATERAL made(COUNT(*)) AS f", "UNSUPPORTED_QUERY", ""),
        ("SELECT k, (SELECT MAX(i) FROM made(COUNT(*))) FROM t GROUP BY k", "UNSUPPORTED_QUERY", ""),
        ("SELECT * FROM made(1, 2)", "WRONG_NUM_ARGS", "least INT"),
        ("SELECT * FROM made()", "WRONG_NUM_ARGS", "least INT"),
        (f"{CREATE} made(least INT) RETURNS TABLE RETURN {RUNS}", "ROUTINE_ALREADY_EXISTS", "OR REPLACE"),
        (f"CREATE FUNCTION f(least INT) RETURNS TABLE RETURN {RUNS}", "INVALID_TEMP_OBJ_REFERENCE", "TEMP"),
        (f"{CREATE} made2(least INT) RETURN {RUNS}", "PARSE_SYNTAX_ERROR", "RETURNS TABLE"),
        (f"{CREATE} made2(least) RETURNS TABLE RETURN {RUNS}", "PARSE_SYNTAX_ERROR", "least INT"),
        (f"{CREATE} made2(most INT) RETURNS TABLE RETURN {RUNS}", "UNKNOWN_VARIABLE", ""),
        (
            f"{CREATE} r(v INT) RETURNS TABLE RETURN {RUNS.replace('least', 'v')}",
            "UNKNOWN_VARIABLE", "rename the parameter v, or write r.v",
        ),
        (
            f"{CREATE} r(w INT) RETURNS TABLE RETURN {RUNS.replace('least', 'w')}",
            "VARIABLE_OUT_OF_SCOPE", "rename the parameter w, or write r.w",
        ),
        (
            f"{CREATE} r(least INT) RETURNS TABLE RETURN {RUNS.replace('t WHERE', 'r(1) WHERE')}",
            "RECURSIVE_FUNCTION", "another name",
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
