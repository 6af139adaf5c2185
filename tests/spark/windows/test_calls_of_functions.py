"""SQL functions over windows are called where Spark's own are, and give what a function of Spark's does."""

from __future__ import annotations

import re

import pytest

import windrow
from windrow.errors import AnalysisError, ExecutionError, NotSupportedError, WindrowError

CLAUSE = (
    "WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY i START AS s WHEN s.v < least"
    " END NEXT AS n WHEN n.v >= least)"
)
LONGEST = f"RETURNS INT RETURN (SELECT MAX(COUNT(w)) FROM t {CLAUSE})"
TWIN = "RETURNS INT RETURN CASE WHEN least > 20 THEN 3 WHEN least > 18 THEN 2 WHEN least > 5 THEN 1 END"
"""What the longest run of values below a number is over these rows, without windows."""
WINDOWS = (
    "WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY i START AS s WHEN s.v < 19"
    " END AS e NEXT AS n WHEN n.v >= 19)"
)


@pytest.fixture(params=["batch", "reference"])
def session(spark, request):
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM"
        " VALUES ('a', 1, 10), ('a', 2, 20), ('a', 3, 5), ('b', 1, 7), ('b', 2, 18) AS t (k, i, v)"
    )
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW b AS SELECT * FROM"
        " VALUES (9, 'x'), (19, 'y'), (19, 'z'), (1, 'v'), (NULL, 'n') AS b (v, name)"
    )
    spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION twin(least INT) {TWIN}")
    session = windrow.Session(spark, execution=request.param)
    session.sql(f"CREATE TEMPORARY FUNCTION longest(least INT) {LONGEST}")
    yield session
    spark.sql("DROP TEMPORARY FUNCTION twin")
    spark.sql("DROP TEMPORARY VARIABLE IF EXISTS chosen")
    spark.catalog.dropTempView("t")
    spark.catalog.dropTempView("b")


def rows(frame):
    return sorted(map(tuple, frame.collect()), key=repr)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "query",
    [
        "SELECT v, f(v) FROM b GROUP BY v",
        "SELECT v + 1, 2 * v + 1, 2 * (v + 1) + f(v + 1) FROM b GROUP BY v, v + 1",
        "SELECT name, f(COUNT(*) + 18), MAX(f(v)), f(MAX(v)) + COUNT(*) FROM b GROUP BY name",
        "SELECT f(v), COUNT(*) FROM b GROUP BY f(v)",
        "SELECT COUNT(*), f(v) + 0, f(v + 10) FROM b GROUP BY 2, v",
        "SELECT COUNT(*) + f(MAX(v)), v, name FROM b GROUP BY 3, 2",
        "SELECT CAST(f(v) AS STRING) || 'x', COUNT(*) FROM b GROUP BY CUBE(f(v))",
        "SELECT CASE WHEN COUNT(*) > 1 THEN f(v) ELSE -1 END AS c, COUNT(*) FROM b GROUP BY v",
        "SELECT DISTINCT f(MAX(v)) AS x FROM b GROUP BY name",
        "SELECT name FROM b GROUP BY name HAVING f(MAX(v)) > 1",
        "SELECT v, COUNT(*) FROM b GROUP BY v HAVING COUNT(*) > 1 AND f(v) > 0"
        " UNION ALL SELECT f(MAX(v)), 0 FROM b",
        "SELECT SUM(v) FILTER (WHERE f(v) > 1), f(MAX(v)) FROM b",
        "SELECT (SELECT f(MAX(v)) FROM b) AS x, f(MIN(b.v)) FROM b JOIN t ON b.v = t.v - 1",
        "FROM b SELECT name, f(COUNT(*) + 18) GROUP BY name",
        "SELECT v AS x, f(x) FROM b",
        "SELECT f(v) AS y, y + 1 AS z, v AS q FROM b",
        "SELECT MAX(v) AS m, f(m) FROM b",
        "SELECT *, f(MAX(v) OVER ()) FROM b",
        "SELECT name, f(v) AS y FROM b QUALIFY f(MAX(v) OVER (PARTITION BY name)) > 1",
        "SELECT name, f((SELECT MAX(v) FROM t WHERE t.i < b.v)) FROM b",
        "SELECT name, COUNT(*) OVER () AS n FROM b GROUP BY name HAVING f(MAX(v)) > 1",
        "SELECT v, f(v), SUM(COUNT(*)) OVER (ORDER BY v ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s,"
        " RANK() OVER w AS r FROM b GROUP BY v HAVING f(MAX(v) + 0) > 0 AND COUNT(*) > 0"
        " WINDOW w AS (PARTITION BY v > 10 ORDER BY v DESC NULLS LAST)"
        " ORDER BY v LIMIT 3",
        "SELECT DISTINCT lag(name, 1, 'x') IGNORE NULLS OVER (ORDER BY name) AS c FROM b GROUP BY name"
        " HAVING f(MAX(v)) > 1",
        "SELECT name, f(f(v) + 18) FROM b WHERE f(f(b.v) + 18) > 1",
        "SELECT *, (SELECT MAX(t.v) FROM t WHERE t.v > f(b.v) AND t.i < f(b.v + 1) + 5) AS x FROM b",
        "SELECT * EXCEPT (v) FROM b WHERE EXISTS (SELECT 1 FROM t WHERE t.v > f(b.v))",
        "SELECT *, (SELECT MAX(t.v) FROM t WHERE t.i = f(b.v)) AS x FROM b WHERE v > 100 OR v IS NULL",
        "SELECT *, (SELECT MAX(t.v) FROM t WHERE t.i = f(b.v)) AS x FROM b WHERE v > 100",
        "SELECT c.name, (SELECT MAX(t.v) FROM t WHERE t.i = f(c.v)) AS x"
        " FROM b LEFT JOIN b AS c ON b.v = c.v + 10",
        "SELECT v, (SELECT MAX(t.i) FROM t WHERE t.i <= f(b.v)) AS x FROM b UNION SELECT v, f(v) FROM b",
        "SELECT (SELECT MAX(t.v) FROM t WHERE t.i = f(b.v) AND t.v < 20 + f(b.v + 0)) AS x FROM b",
        "SELECT b.name, c.v FROM b JOIN b AS c ON b.v = c.v"
        " WHERE EXISTS (SELECT 1 FROM t WHERE t.i = f(b.v) AND t.v > c.v)",
        "SELECT name, (SELECT COUNT(*) FROM t HAVING COUNT(*) > f(b.v)) AS x FROM b WHERE v > 1",
        "SELECT name FROM b WHERE 2 IN (SELECT t.i FROM t WHERE t.i = f(b.v) + 1)",
        "SELECT name, (SELECT MAX(t.v) FROM t WHERE t.i = f(length(name) + 18) AND t.v > f(t.v)) AS x FROM b",
        "SELECT name, COUNT(*) FROM b WHERE EXISTS (SELECT 1 FROM t WHERE t.i = f(b.v)) GROUP BY name",
        "SELECT name, (SELECT MAX(f(t.v + b.v)) FROM t) AS m,"
        " (SELECT COUNT(*) FROM t WHERE f(b.v - i) = 1) AS c FROM b",
        "SELECT * FROM b WHERE EXISTS"
        " (SELECT * FROM t AS c WHERE c.k = 'a' AND f(c.v + b.v) > 2 OR f(i + b.v) = 2)",
        "SELECT name FROM b WHERE v IN (SELECT 9 * f(t.v + b.v) FROM t WHERE t.k = 'b')",
        "SELECT name, (SELECT SUM(f(38 DIV (t.v - 1 - b.v))) FROM t WHERE t.v - 1 <> b.v) AS s FROM b",
        "SELECT * FROM b LEFT JOIN b AS d ON b.v = d.v + 8, LATERAL (SELECT i, f(t.v + d.v) AS x FROM t)",
        "WITH c AS (SELECT * FROM t) SELECT (SELECT COUNT(f(c.v + b.v)) FROM c) AS n FROM b WHERE b.v > 1",
        "SELECT v, COUNT(*) FROM b GROUP BY v HAVING v IN (SELECT t.v - 1 FROM t WHERE t.i = f(b.v))",
        "SELECT name FROM b GROUP BY v, name HAVING EXISTS (SELECT 1 FROM t WHERE t.i = f(v))",
        "SELECT name FROM b GROUP BY b.name HAVING EXISTS (SELECT 1 FROM t WHERE t.i = f(length(name) + 17))",
        "SELECT name, MAX((SELECT MAX(t.v) FROM t WHERE t.i > f(b.v))) AS m FROM b GROUP BY name",
        "SELECT * FROM b JOIN t AS c ON b.v > c.v AND EXISTS (SELECT 1 FROM t WHERE t.i = f(b.v))",
        "SELECT * FROM b LEFT JOIN t AS c ON b.v > c.v AND EXISTS (SELECT 1 FROM t WHERE t.i = f(c.v))",
        "SELECT c.*, b.name FROM b JOIN b AS d ON b.v = d.v FULL JOIN t AS c ON b.v > c.v"
        " AND NOT EXISTS (SELECT 1 FROM t WHERE t.i = f(d.v))",
        "SELECT * FROM b WHERE EXISTS (SELECT MAX(t.i) + 8 AS name FROM t HAVING f(name) > 0)",
        "SELECT name FROM b WHERE v IN (SELECT f(b.v + v) FROM t)",
        "SELECT name, (SELECT MAX(f(b.v + i + q.v)) FROM b, LATERAL (SELECT 3 AS i) WHERE q.v <> b.v"
        " AND v > 1) AS x FROM b AS q WHERE q.v > 0",
        "SELECT name, (SELECT SUM(f(38 DIV (v - 1 - b.v))) FROM t WHERE v - 1 <> b.v) AS s FROM b",
        "SELECT (SELECT SUM(x.v) FROM (SELECT *, struct(7 AS v) AS b FROM t) AS x WHERE x.i > f(b.v)) FROM b",
        "SELECT name, (SELECT t.i FROM t WHERE t.k = 'a' AND f(t.v + b.v) > 2) AS x FROM b WHERE v = 1",
        "SELECT (SELECT COUNT(*) FROM t GROUP BY k HAVING f(MAX(t.v) + b.v) > 2) AS x FROM b WHERE v = 1",
        "SELECT name FROM b WHERE EXISTS (SELECT k, COUNT(*) FROM t GROUP BY k"
        " HAVING f(MAX(t.v) + length(name) + 1) > 2 AND MIN(i) < b.v)",
        "SELECT name, (SELECT MAX(f(t.v)) + MIN(f(v + 1)) FROM t WHERE t.i < b.v) AS m FROM b",
        "SELECT name, (SELECT SUM(t.v) FILTER (WHERE f(f(t.v) + 18) > 1) FROM t WHERE i < b.v) AS m FROM b",
        "SELECT name, (SELECT COUNT(*) FROM t WHERE t.i < b.v GROUP BY f(t.v) HAVING f(t.v) = 1) AS m FROM b",
        "SELECT name, (SELECT SUM(f(38 DIV (v - 5))) FROM t WHERE t.v <> 5 AND t.i < b.v) AS s FROM b",
        "WITH q AS (SELECT * FROM t) SELECT (SELECT MAX(f(q.v)) FROM q WHERE q.i < b.v) AS m FROM b",
        "SELECT v + 8 AS v, COUNT(*) AS c FROM t GROUP BY v HAVING f(v) > 1 AND f(v) + c < 9",
        "SELECT MAX(t.i) + 17 AS v, COUNT(*) AS c FROM t HAVING f(v + c - 5) > 1 AND v > 3",
        "SELECT f(col1) FROM VALUES (9), (19)",
        "SELECT f(b.v) FROM b, t WHERE b.v = t.v - 1",
        "WITH c AS (SELECT 1 AS z) SELECT f(v), z FROM t, c",
        "SELECT f(t.i + 8), f(t.i + 17) FROM t, b RIGHT JOIN VALUES (1), (2) AS c (x) ON b.v = c.x AND i = 9",
        "SELECT * FROM b, LATERAL (SELECT f(b.v))",
        "SELECT * FROM b JOIN b AS c ON b.v = c.v, LATERAL (SELECT f(b.v) + 1 AS x, c.name AS d)",
        "SELECT * FROM b LEFT JOIN LATERAL (SELECT f(b.v) + 1 AS x, b.name AS d) ON b.v > 1",
        "FROM b |> EXTEND v AS x |> EXTEND f(x) AS y |> WHERE b.v > 1 |> SELECT name, y, f(y + 18)",
        "FROM b |> AGGREGATE COUNT(*) AS c GROUP BY v |> WHERE f(v) > 0",
        "FROM b |> AGGREGATE MAX(f(v)) AS m GROUP BY f(v + 10) AS v",
        "FROM b |> SET v = f(v)",
        "FROM b |> PIVOT (SUM(f(v)) AS s FOR name IN ('x', 'y'))",
        "SELECT p.* FROM b AS z PIVOT (SUM(f(z.v)) AS s, MAX(v) AS m FOR name IN ('x', 'y')) AS p",
        "WITH t AS (SELECT 9 AS v), u AS (SELECT t.v FROM t JOIN t AS o ON t.v = o.v)"
        " SELECT f(u.v) FROM u UNION ALL SELECT v FROM t UNION ALL TABLE t",
        "WITH RECURSIVE t AS (SELECT 17 AS v UNION ALL SELECT v + 1 FROM t WHERE v < 20)"
        " SELECT v, f(v) FROM t",
    ],
)
def test_calls_give_what_those_of_a_function_of_sparks_do(session, query):
    found = session.sql(query.replace("f(", "longest("))
    assert rows(found) == rows(session.spark.sql(query.replace("f(", "twin(")))
    assert found.df.columns


def in_place(query):
    """A query with values in place of calls, as Spark calls no SQL functions in lambda functions."""
    while (found := re.search(r"\bf\(((?:[^()]|\([^()]*\))*)\)", query)) is not None:
        given = f"({found[1]})"
        value = f"(CASE WHEN {given} > 20 THEN 3 WHEN {given} > 18 THEN 2 WHEN {given} > 5 THEN 1 END)"
        query = query[: found.start()] + value + query[found.end() :]
    return query


ARRAYS = (
    "(VALUES (1, array(9, 19, NULL, 25), map(1, 9, 2, 21), 'x'), (2, array(), map(), 'y'),"
    " (3, NULL, NULL, 'x'), (4, array(19, 19), map(19, NULL), 'z')) AS c (id, xs, m, name)"
)


@pytest.mark.sampled(every=24)
@pytest.mark.parametrize("session", ["batch"], indirect=True)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, transform(xs, x -> f(x) + id) FROM c",
        "SELECT id, filter(xs, x -> f(x) > 1), exists(xs, x -> f(x) > 2) FROM c",
        "SELECT *, transform(xs, x -> f(x)) AS r FROM c",
        "SELECT * EXCEPT (m) FROM c WHERE exists(xs, x -> f(x) > 1)",
        "SELECT forall(xs, x -> f(x) > 0), transform(xs, (x, i) -> f(x + i) + i) FROM c WHERE id > 1",
        "SELECT transform(array(9, 19), x -> f(x)), transform(array(1), x -> f(19)) AS z",
        "SELECT map_filter(m, (k, v) -> f(v) > 1) FROM c",
        "SELECT transform_keys(m, (k, v) -> k + coalesce(f(k), 0)) FROM c",
        "SELECT transform_values(m, (k, v) -> f(k + v)) FROM c",
        "SELECT zip_with(xs, array(9, 1), (x, y) -> f(x + y)) FROM c",
        "SELECT map_zip_with(m, map(1, 9, 2, 3), (k, v, w) -> f(v + w) + k) FROM c",
        "SELECT array_sort(xs, (l, r) -> coalesce(f(l), 0) - coalesce(f(r), 0)) FROM c",
        "SELECT aggregate(xs, 0, (a, x) -> a + coalesce(f(x), 0), a -> f(a + 8)) FROM c",
        "SELECT id, transform(xs, x -> f(f(x) + 18)) FROM c",
        "SELECT id, transform(xs, x -> transform(xs, y -> f(x + y) + f(x))) FROM c",
        "SELECT transform(transform(xs, y -> f(y)), x -> f(x + 18)) FROM c",
        "SELECT transform(array(f(id + 18)), x -> x + f(x + 18)) FROM c",
        "SELECT name, COUNT(*), transform(array(MAX(id) + 18), x -> f(x)) AS z FROM c GROUP BY name",
        "SELECT MAX(aggregate(xs, 0, (a, x) -> a + coalesce(f(x), 0))) FROM c"
        " WHERE exists(xs, x -> f(x) > 1)",
        "SELECT name, (SELECT MAX(size(filter(array(t.v, t.v + 9), x -> f(x) > 1))) FROM t WHERE t.i < b.v)"
        " AS m FROM b",
        "SELECT transform(xs, x -> IF(x > 10, f(38 DIV (x - 8)), 0)) FROM c",
        "FROM c |> EXTEND transform(xs, x -> f(x)) AS y |> WHERE exists(y, x -> f(x + 18) > 1)"
        " |> SELECT id, y",
    ],
)
def test_calls_in_lambda_functions_give_what_their_values_do(session, query):
    read = re.sub(r"\bFROM c\b", f"FROM {ARRAYS}", query)
    expected = rows(session.spark.sql(in_place(read)))
    assert rows(session.sql(re.sub(r"\bf\(", "longest(", read))) == expected


@pytest.mark.parametrize("session", ["batch"], indirect=True)
def test_a_star_beside_lambda_functions_has_the_columns_of_the_relations(session):
    own = session.sql("SELECT * FROM b").df.columns
    assert session.sql("SELECT *, transform(array(v), x -> longest(x)) AS r FROM b").df.columns == [*own, "r"]
    assert session.sql("SELECT * FROM b WHERE exists(array(v), x -> longest(x) > 1)").df.columns == own


@pytest.mark.parametrize("session", ["batch"], indirect=True)
def test_a_lambda_function_over_what_is_no_array_has_the_error_of_its_type(session):
    with pytest.raises(WindrowError) as raised:
        session.sql("SELECT transform(v, x -> longest(x)) FROM b").collect()
    assert raised.value.condition.startswith("DATATYPE_MISMATCH")
    assert raised.value.span is not None


def test_lambdas_call_the_function_for_their_elements_alone(session):
    session.sql(
        "CREATE TEMPORARY FUNCTION fails(a DOUBLE, b STRUCT<x: INT>) RETURNS STRING RETURN IF(b.x = 0,"
        f" raise_error('called'), concat_ws(' ', a, b.x, (SELECT MAX(COUNT(w)) FROM t {WINDOWS})))"
    )
    read = "(VALUES (1, array()), (2, NULL), (3, array(double('NaN'), NULL, 1))) AS c (id, ds)"
    sql = f"SELECT id, transform(ds, d -> fails(d, struct(id - 1 AS x))) FROM {read}"
    assert rows(session.sql(sql)) == [(1, []), (2, None), (3, ["NaN 2 2", "2 2", "1.0 2 2"])]


@pytest.mark.long  # a minute or two: windows over windows over windows
def test_calls_with_windows_and_matches(session):
    sql = f"SELECT s.k, COUNT(w), longest(MAX(w.v)), longest(s.v + 1) AS l FROM t {WINDOWS} ORDER BY s.k, l"
    assert rows(session.sql(sql)) == [("a", 1, 1, 1), ("a", 1, None, 1), ("b", 2, 1, 1)]
    found = session.sql(f"SELECT *, longest(s.v) AS l FROM t {WINDOWS} HAVING longest(s.v + 13) > 1")
    assert found.df.columns == ["s", "e", "n", "w", "l"]
    read = [(row.s.k, row.n and row.n.v, len(row.w), row.l) for row in found.df.collect()]
    assert sorted(read) == [("a", 20, 1, 1), ("b", None, 3, 1)]
    sql = f"SELECT s.k, CASE WHEN s = e THEN 0 ELSE longest(e.v + 1) END FROM t {WINDOWS} WHERE e IS NOT NULL"
    assert rows(session.sql(sql)) == [("a", 0)]
    sql = f"SELECT s.k, s.i, CASE s WHEN e THEN longest(s.v) WHEN NULL THEN 5 ELSE 0 END FROM t {WINDOWS}"
    assert rows(session.sql(sql)) == [("a", 1, 1), ("a", 3, 0), ("b", 1, 0)]
    sql = f"SELECT s.k, s.i, SUM(s.v) OVER (ORDER BY s.k, s.i) FROM t {WINDOWS} HAVING longest(s.v + 1) > 0"
    assert rows(session.sql(sql)) == [("a", 1, 10), ("a", 3, 15), ("b", 1, 22)]
    session.sql(
        f"CREATE TEMPORARY FUNCTION starts(least INT) RETURNS TABLE RETURN SELECT s.i FROM t {CLAUSE}"
    )
    sql = f"SELECT s.k, s.i, (SELECT MAX(i) FROM LATERAL starts(e.v)) FROM t {WINDOWS} ORDER BY s.i"
    assert rows(session.sql(sql)) == [("a", 1, 3), ("a", 3, None), ("b", 1, None)]
    sql = f"SELECT s.k, COUNT(*), longest(MAX(e.v)) FROM t {WINDOWS} GROUP BY s.k"
    assert rows(session.sql(sql)) == [("a", 2, 1), ("b", 1, None)]
    sql = f"SELECT s.k, (SELECT MAX(t.v) FROM t WHERE t.i = longest(s.v + 1)) FROM t {WINDOWS} HAVING s.i = 1"
    assert rows(session.sql(sql)) == [("a", 10), ("b", 10)]
    matches = (
        "t MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES A.v AS high, B.v AS low"
        " PATTERN (A B) DEFINE B AS B.v > 0) AS m"
    )
    sql = f"SELECT k, longest(MAX(m.high)), COUNT(longest(low)) FROM {matches} GROUP BY k"
    assert rows(session.sql(sql)) == [("a", 1, 1), ("b", 1, 1)]


@pytest.mark.sampled(every=24)
@pytest.mark.parametrize("session", ["batch"], indirect=True)  # the reference reads no windows in conditions
@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.k, MAX(f(w.v + 10)), MAX(f(w.v + 10)) + COUNT(w) AS x FROM t W",
        "SELECT *, MAX(f(w.v)) AS m FROM t AS q W WHERE s.v > 0",
        "SELECT s.k, MAX(f(w.t.v)) AS m FROM t JOIN b AS c ON t.v = c.v + 1 OR c.v = 1 WINDOW BY w AS (TYPE"
        " TUMBLING PARTITION BY k ORDER BY i, name START AS s WHEN f(s.t.v) = 1 END AS e WHEN e.t.v > 0)",
        "SELECT s.k, s.i, COUNT(w) FROM t WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY i START AS s"
        " WHEN f(s.v + 1) > 0 END AS e NEXT AS n WHEN f(n.v) > 1)",
        "SELECT s.i, e.i FROM t WINDOW BY w AS (TYPE SLIDING PARTITION BY f(t.v) ORDER BY i, k"
        " START AS s PREV AS p WHEN f(p.v) IS NULL END AS e WHEN e.v > s.v)",
        "SELECT s.i, CASE WHEN e IS NULL THEN 0 ELSE e.i END FROM t WINDOW BY w AS (TYPE TUMBLING"
        " ORDER BY k, i START AS s WHEN f(9) = 1 END AS e NEXT AS n WHEN f(n.v) IS NULL)",
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES A.v AS high, f(B.v) AS low,"
        " MAX(f(A.v)) AS m ALL ROWS PER MATCH PATTERN (A B?)"
        " DEFINE B AS f(v) > 0, A AS f(A.v) > 0 AND A.i > 0)",
        "SELECT m.* FROM (SELECT k, i, v FROM t) MATCH_RECOGNIZE (PARTITION BY f(v) AS g ORDER BY i, k"
        " MEASURES COUNT(*) AS c, f(20) AS d PATTERN (A+) DEFINE A AS"
        " f(v) = f((SELECT MIN(v) + 4 FROM t))) AS m",
        "SELECT m.* FROM t AS q (k, i, v) MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES f(v) AS x,"
        " PREV(f(v)) AS p, LAST(f(A.v), 1) AS y PATTERN (A+ V) DEFINE V AS f(v) > 1) AS m",
        "SELECT name FROM b WHERE EXISTS (SELECT * FROM t MATCH_RECOGNIZE (ORDER BY i, k MEASURES A.v AS x"
        " PATTERN (A) DEFINE A AS f(v) > 1 AND f(least => b.v) > 1))",
        "SELECT DISTINCT MAX(f(w.v)), COUNT(*) OVER () AS c FROM t W",
        "SELECT s.k, s.i, COUNT(w) FROM t WHERE v > 5 WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i"
        " START AS s END AS e NEXT AS n WHEN f(n.v + s.v) > 2 OR f(n.v + s.v - e.v) IS NULL)",
        "SELECT s.i FROM t WINDOW BY w AS (TYPE TUMBLING ORDER BY k, i START AS s PREV AS p"
        " WHEN f(extract(DAY FROM p.v * INTERVAL '2' DAY)) IS NULL END AS e WHEN f(e.v + s.v) > f(10))",
        "SELECT * FROM t AS q MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES COUNT(*) AS c,"
        " CASE WHEN CLASSIFIER() = 'B' THEN f(LAST(v) - FIRST(A.v)) + v ELSE FINAL LAST(v) END AS x,"
        " MIN(i) AS y ALL ROWS PER MATCH PATTERN (A B*) DEFINE B AS v > 15) AS z",
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY k, i MEASURES LAST(v) AS l, COUNT(*) AS c"
        " PATTERN (A B C?) DEFINE C AS f(v + A.v) > f(B.v - A.v) OR f(v + B.v) IS NOT NULL)",
        "SELECT m.* FROM t MATCH_RECOGNIZE (ORDER BY k, i MEASURES f(chosen) AS x, COUNT(A.v) AS c"
        " AFTER MATCH SKIP TO NEXT ROW PATTERN (A*) DEFINE A AS f(v) > f(chosen)) AS m",
        "SELECT s.k FROM t WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY i START AS s"
        " WHEN f(session.chosen) > f(s.v) END AS e WHEN true) HAVING SUM(w.v) > f(chosen)",
        "SELECT MAX(f(w.v)) AS m, COUNT(*) FROM t W GROUP BY MAX(f(w.v))",
        "SELECT s.k, s.i, MAX(f(w.v + s.v)) + COUNT(f(n.v - w.v)) AS m,"
        " COUNT(w) FILTER (WHERE f(w.v - s.v + 10) IS NULL) AS c FROM t W ORDER BY 1, 2",
        "SELECT s.k FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY i) < 3 WINDOW BY w AS (TYPE"
        " TUMBLING PARTITION BY k ORDER BY i START AS s WHEN f(s.v) > 0 END AS e WHEN f(e.v) > 0)",
        "SELECT name FROM b WHERE EXISTS (SELECT s.k FROM t WINDOW BY w AS (TYPE TUMBLING PARTITION BY k"
        " ORDER BY i START AS s WHEN f(s.v) < 19 END NEXT AS n WHEN n.v >= 19) HAVING MAX(f(w.v)) > b.v)",
    ],
)
def test_calls_for_rows_of_clauses(session, query):
    session.spark.sql("DECLARE OR REPLACE VARIABLE chosen INT DEFAULT 19")
    query = (
        query.replace(" W", f" {WINDOWS}") if query.endswith(" W") else query.replace(" W ", f" {WINDOWS} ")
    )
    called, twin = query.replace("f(", "longest("), query.replace("f(", "twin(")
    found, expected = session.sql(called), windrow.Session(session.spark).sql(twin)
    assert found.df.columns == [name.replace("twin(", "longest(") for name in expected.df.columns]
    assert rows(found) == rows(expected)


@pytest.mark.parametrize(
    ("measure", "condition", "place", "reason"),
    [
        ("COUNT(*)", "longest(A.v + COUNT(A.v)) > 0", "longest(A.v + COUNT(A.v))", "each step of the search"),
        ("SUM(longest(A.v))", "longest(v - PREV(v)) > 0", "longest(v - PREV(v))", "each step of the search"),
        ("SUM(longest(A.v + B.v))", "v > 0", "longest(A.v + B.v)", "one row"),
        ("COUNT(*)", "longest(A.v + B.z) > 0", "longest(A.v + B.z)", "rows in FROM"),
        ("COUNT(*)", "longest(longest(A.v) + B.v) > 0", "longest(longest(A.v) + B.v)", "no other call"),
    ],
)
def test_what_a_call_in_a_search_cannot_read(session, measure, condition, place, reason):
    pattern = f"PATTERN (A B?) DEFINE A AS {condition}"
    with pytest.raises(NotSupportedError, match=reason) as raised:
        session.sql(f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY k, i MEASURES {measure} AS m {pattern})")
    (context,) = raised.value.getQueryContext()
    assert (raised.value.condition, context.fragment()) == ("UNSUPPORTED_QUERY", place)


@pytest.mark.long  # a minute or two: windows over windows over windows
def test_calls_within_aggregates_of_windows(session):
    found = session.sql(f"SELECT MAX(longest(COUNT(w) + 18)) AS m, COUNT(*), MAX(COUNT(w)) FROM t {WINDOWS}")
    assert rows(found) == [(2, 3, 2)]
    sql = (
        "SELECT s.k, MAX(longest(s.v + 1)), COUNT(*) FILTER (WHERE e IS NULL) AS c,"
        " SUM(CASE WHEN s = e THEN 1 ELSE 0 END), MIN(w.v)"
        f" FROM t {WINDOWS} WHERE s.v > 0 GROUP BY s.k, MIN(w.v) ORDER BY c DESC, 2 LIMIT 3"
    )
    found = session.sql(sql)
    assert found.df.columns[:3] == ["k", "MAX(longest(s.v + 1))", "c"]
    assert rows(found) == [("a", 1, 0, 1, 10), ("a", 1, 1, 0, 5), ("b", 1, 1, 0, 7)]
    sql = (
        f"SELECT s.k, SUM(longest(s.v + ?)) FROM t {WINDOWS}"
        " GROUP BY s.k HAVING MAX(longest(s.v + ?)) > 0 AND COUNT(*) > 1"
    )
    assert rows(session.sql(sql, 1, 0)) == [("a", 2)]
    sql = f"SELECT DISTINCT MAX(longest(COUNT(w) + 18)) FROM t {WINDOWS} HAVING COUNT(w) > 1"
    assert rows(session.sql(sql)) == [(2,)]
    sql = f"SELECT s.k, MAX(longest(s.v + 1)) AS n, s.k AS j FROM t {WINDOWS} GROUP BY s.k ORDER BY n DESC, j"
    assert rows(session.sql(sql)) == [("a", 1, "a"), ("b", 1, "b")]
    sql = f"SELECT 2 AS x UNION ALL SELECT SUM(longest(s.v + 1)) FROM t {WINDOWS} ORDER BY x DESC LIMIT 1"
    assert rows(session.sql(sql)) == [(3,)]
    sql = f"SELECT ALL MAX(longest(19)), COUNT(*), ARRAY_AVG(w.v) FROM t {WINDOWS} GROUP BY ARRAY_AVG(w.v)"
    assert rows(session.sql(sql)) == [(2, 1, 10.0), (2, 1, 12.5), (2, 1, 5.0)]
    sql = f"SELECT s.k, RANK() OVER (ORDER BY MAX(longest(s.v + 12)), s.k) AS r FROM t {WINDOWS} GROUP BY s.k"
    assert rows(session.sql(sql)) == [("a", 2), ("b", 1)]
    none = WINDOWS.replace("s.v < 19", "s.v < 0")
    sql = f"SELECT COUNT(*), MAX(longest(COUNT(w) + 18)), SUM(longest(19)) FROM t {none}"
    assert rows(session.sql(sql)) == [(0, None, None)]
    assert rows(session.sql(f"SELECT s.k, MAX(longest(s.v)) FROM t {none} GROUP BY s.k")) == []
    sql = f"SELECT longest(MAX(longest(COUNT(w) + 18)) + 17) FROM t {WINDOWS}"
    assert rows(session.sql(sql)) == [(2,)]


def test_columns_have_the_names_that_they_have_without_the_calls(session):
    found = session.sql(
        "SELECT b.name, COUNT(*), longest(MAX(b.v)), v + 1 AS x FROM b GROUP BY ALL ORDER BY 1"
    )
    assert found.df.columns == ["name", "count(1)", "longest(MAX(b.v))", "x"]
    assert [tuple(row) for row in found.df.collect()][:2] == [("n", 1, None, None), ("v", 1, None, 2)]
    sql = "SELECT name, longest(MAX(v)) AS l FROM b GROUP BY name ORDER BY MAX(v) DESC, name LIMIT 2"
    assert [tuple(row) for row in session.sql(sql).df.collect()] == [("y", 2), ("z", 2)]


def test_parameters_of_the_statement_beside_groups(session):
    sql = "SELECT v, longest(?) AS a, longest(MAX(v) + ?) AS c, ? AS d FROM b WHERE name <> ? GROUP BY v"
    found = session.sql(sql, 19, 18, 5, "n")
    assert rows(found) == [(1, 2, 2, 5), (19, 2, 3, 5), (9, 2, 3, 5)]


def test_arguments_are_not_computed_of_what_where_leaves_out(session):
    for sql in (
        "SELECT (SELECT MAX(longest(38 DIV v)) FROM (VALUES (2), (0)) AS x (v) WHERE v <> 0)",
        "SELECT longest(38 DIV v) FROM VALUES (2), (0) AS x (v) WHERE v IN (SELECT i FROM t)",
        "SELECT longest(38 DIV v) FROM VALUES (2), (0) AS x (v) JOIN VALUES (0) AS c (z) WHERE v <> z",
        "SELECT longest(38 DIV MAX(v)) FROM VALUES (2), (0) AS x (v) GROUP BY v HAVING v <> 0",
    ):
        assert rows(session.sql(sql)) == [(2,)]


def test_several_values_of_a_call_are_an_error(session):
    session.sql(f"CREATE TEMPORARY FUNCTION each(least INT) RETURNS INT RETURN SELECT s.i FROM t {CLAUSE}")
    assert rows(session.sql("SELECT each(v), COUNT(*) FROM b WHERE v < 6 GROUP BY each(v)")) == [(None, 1)]
    for sql in ("SELECT each(v), COUNT(*) FROM b GROUP BY each(v)", "SELECT each(v) FROM b"):
        with pytest.raises(ExecutionError, match="function each returned more than one row"):
            session.sql(sql).collect()


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT name FROM b ORDER BY longest(v)", "select it with a name"),
        (f"SELECT MAX(longest(w.v + SUM(s.v))) FROM t {WINDOWS}", "call it for each row"),
        (
            f"SELECT MAX((SELECT longest(x) FROM VALUES (w.v + s.v) AS q (x))) FROM t {WINDOWS}",
            "aggregate it in a query around",
        ),
        (f"SELECT s.i FROM t {WINDOWS.replace('n.v >=', 'longest(n.arr[0]) >=')}", "in a subquery in FROM"),
        (f"SELECT s.i FROM t {WINDOWS.replace('n.v >=', 'longest(n.v + x) >=')}", "in a subquery in FROM"),
        (
            "SELECT LAST(v) OVER (ORDER BY i ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING PATTERN (A+)"
            " DEFINE A AS longest(A.v) > 0) FROM t",
            "MATCH_RECOGNIZE in FROM",
        ),
        ("SELECT aggregate(array(v), 0, (a, x) -> longest(a + x)) FROM b", "transform(xs, x -> f(x))"),
        ("SELECT * FROM b JOIN t ON exists(array(b.v), x -> longest(x) > 0)", "select it in a subquery"),
        ("SELECT COUNT(DISTINCT *) FROM b WHERE 1 IN (SELECT i FROM t WHERE i > longest(b.v))", "a subquery"),
        (
            "SELECT hash(*) FROM b WHERE 1 IN (SELECT i FROM t WHERE i > longest(b.v))",
            "in a subquery in FROM",
        ),
        ("FROM b |> WHERE 1 IN (SELECT t.i FROM t WHERE t.i > longest(b.v))", "in a subquery in FROM"),
        (
            f"SELECT s.i FROM t WHERE EXISTS (SELECT 1 FROM b WHERE b.v > longest(t.v)) {WINDOWS}",
            "in a subquery in FROM",
        ),
        ("SELECT COUNT(longest(MAX(v))) FROM b", "in a subquery in FROM"),
        ("SELECT longest(MAX(v)), rand() FROM b", "in a table first"),
    ],
)
def test_what_is_refused_with_a_hint(session, sql, hint):
    with pytest.raises(NotSupportedError) as caught:
        session.sql(sql)
    assert hint in (caught.value.hint or "")
    assert caught.value.getQueryContext()


@pytest.mark.parametrize("session", ["batch"], indirect=True)
@pytest.mark.parametrize(
    ("sql", "fragment", "hint"),
    [
        (f"SELECT s.i, longest(s.wrong) FROM t {WINDOWS}", "s.wrong", "use one of the columns k, i, v"),
        (f"SELECT COUNT(*), longest(MAX(z.v)) FROM t {WINDOWS}", "z.v", "use one of s, e, n, w"),
        ("SELECT longest(wrong), COUNT(*) FROM b GROUP BY name", "wrong", "use one of"),
        ("SELECT longest(wrong)", "wrong", None),
    ],
)
def test_unknown_columns_of_arguments_are_named(session, sql, fragment, hint):
    with pytest.raises(AnalysisError) as caught:
        session.sql(sql)
    (context,) = caught.value.getQueryContext()
    assert (caught.value.sql, context.fragment()) == (sql, fragment)
    assert hint is None or hint in (caught.value.hint or "")
