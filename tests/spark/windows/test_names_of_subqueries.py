"""Names that a subquery has for its own windows, rows and relations hide those of the clause around it."""

from __future__ import annotations

import pytest

import windrow
from windrow.errors import NotSupportedError

WINDOWS = (
    "WINDOW BY {w} AS (TYPE SLIDING PARTITION BY k ORDER BY i"
    " START AS {s} WHEN true END AS {e} WHEN {e}.v < 7)"
)
AROUND = WINDOWS.format(w="w", s="s", e="e")
MATCHES = "t MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES COUNT({A}.v) AS c PATTERN ({A}+ {B}?)"


@pytest.fixture(params=["batch", "reference"])
def session(spark, request):
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM"
        " VALUES ('a', 1, 10), ('a', 2, 20), ('a', 3, 5), ('b', 1, 7), ('b', 2, 18) AS t (k, i, v)"
    )
    yield windrow.Session(spark, execution=request.param)
    spark.catalog.dropTempView("t")


def rows(frame):
    return sorted(map(tuple, frame.collect()), key=repr)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT COUNT(w), (SELECT MAX(c) FROM (SELECT COUNT({{w}}) AS c FROM t {WINDOWS})) AS m"
        f" FROM t {AROUND}",
        "SELECT s.v, MAX((SELECT ANY_VALUE(q.c) FROM"
        f" (SELECT COUNT({{w}}) AS c, {{w}}.i[0] AS i FROM t {WINDOWS})"
        f" AS q WHERE q.i <=> w.i - s.i)) AS m FROM t {AROUND}",
        "SELECT s.v, COUNT(w), (SELECT MAX(m) FROM (SELECT y, (SELECT MAX(c) FROM"
        f" (SELECT COUNT({{w}}) AS c FROM t WHERE t.v > y {WINDOWS})) AS m FROM VALUES (1), (8) AS q (y))"
        f" WHERE y > s.v) AS m FROM t {AROUND}",
        f"SELECT s.i, e.v, COUNT(w) FROM t {AROUND} HAVING COUNT(w) ="
        f" (SELECT MAX(c) FROM (SELECT COUNT({{w}}) AS c FROM t {WINDOWS} HAVING {{e}} <> {{s}}))",
        f"SELECT s.v, MAX(w.v), (SELECT MAX({{w}}.v) FROM t AS {{w}}) AS m FROM t {AROUND}",
        "SELECT s.v, AVG(w.v), (SELECT MIN({s}.v) FROM t {s} WHERE {s}.v > w.v[0]) AS m"
        f" FROM t {AROUND}",
        "SELECT s.v, (SELECT COUNT(*) FROM t AS {s} JOIN t AS {e} ON {s}.i = {e}.i) AS m"
        f" FROM t {AROUND}",
        f"SELECT s.v, (SELECT MAX(c) FROM {MATCHES} DEFINE {{A}} AS {{A}}.v > 6) AS q) AS m FROM t"
        " WINDOW BY a AS (TYPE SLIDING ORDER BY k, i START AS s WHEN true END AS b WHEN b.v < 9)",
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES COUNT(A.v) AS n,"
        f" (SELECT MAX(c) FROM (SELECT * FROM {MATCHES} DEFINE {{A}} AS {{A}}.v > 6))) AS m PATTERN (A+)"
        " DEFINE A AS A.v > (SELECT MIN({A}.v) FROM t AS {A}))",
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY k, i MEASURES CLASSIFIER() AS n, (SELECT MAX(c) FROM"
        " t MATCH_RECOGNIZE (ORDER BY k, i MEASURES MAX(CLASSIFIER()) || MATCH_NUMBER() AS c"
        " PATTERN ({A}+ {B}) DEFINE {A} AS {A}.v > 6) AS q) AS m PATTERN (A B?) DEFINE A AS A.v > 6)",
    ],
)
def test_names_of_a_subquery_hide_those_around_it(session, query):
    same = {"w": "w", "s": "s", "e": "e", "A": "A", "B": "B"}
    other = {"w": "u", "s": "first", "e": "final", "A": "Y", "B": "Z"}
    found, expected = session.sql(query.format(**same)), session.sql(query.format(**other))
    found, expected = rows(found), rows(expected)
    if "CLASSIFIER" in query:
        expected = [tuple(str(value).replace("Z", "B") for value in row) for row in expected]
        found = [tuple(map(str, row)) for row in found]
    assert found == expected
    assert found


def test_names_of_a_subquery_in_a_condition(spark, session):
    """In batch alone: the reference leaves subqueries of conditions to Spark, which knows no clause."""
    query = (
        "SELECT s.i, COUNT(w) FROM t WINDOW BY w AS (TYPE TUMBLING ORDER BY k, i START AS s"
        f" WHEN s.v > (SELECT MAX(c) FROM (SELECT COUNT({{w}}) + 4 AS c FROM t {WINDOWS}))"
        " END AS e WHEN e.v < 9)"
    )
    found = windrow.Session(spark).sql(query.format(w="w", s="s", e="e"))
    assert rows(found) == rows(windrow.Session(spark).sql(query.format(w="u", s="a", e="b")))
    assert rows(found) == [(1, 3), (2, 1)]


def test_an_aggregate_of_a_table_is_not_one_of_the_window_with_its_name(session):
    query = f"SELECT s.i, MAX(w.v) AS m, (SELECT MAX(w.v) FROM t AS w WHERE w.k = 'b') AS n FROM t {AROUND}"
    assert {row[2] for row in rows(session.sql(query))} == {18}


def test_a_clause_within_an_aggregate_cannot_read_variables_around(session):
    inner = WINDOWS.format(w="u", s="a", e="b").replace("WHEN true", "WHEN a.v > s.v")
    query = f"SELECT s.k, MAX((SELECT COUNT(u) FROM t {inner} LIMIT 1)) AS m FROM t {AROUND} GROUP BY s.k"
    with pytest.raises(NotSupportedError, match="within an aggregate") as caught:
        session.sql(query)
    (context,) = caught.value.getQueryContext()
    assert context.fragment() == "s.v"
    query = (
        f"SELECT k, MAX(c) FROM (SELECT s.k, (SELECT MAX(n) FROM (SELECT COUNT(u) AS n FROM t {inner})) AS c"
        f" FROM t {AROUND}) GROUP BY k"
    )
    assert rows(session.sql(query)) == [("a", 3), ("b", 3)]
