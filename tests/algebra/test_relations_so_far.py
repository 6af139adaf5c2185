"""Texts in which clauses over streams, and streams beside them, have windows of unlimited length."""

from __future__ import annotations

import pytest

from windrow.algebra.rewriting.relations_so_far import relations_so_far
from windrow.syntax.tokens import tokenize

BY_TIME = "WINDOW BY w AS (TYPE SLIDING ORDER BY s.ts START AS f END AS e)"
PATTERN = "MATCH_RECOGNIZE (ORDER BY ts PATTERN (a b) DEFINE b AS b.v > a.v)"
OF_ROWS = (
    "PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING PATTERN (a)"
    " DEFINE a AS v > 1"
)
MEASURES = "MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (a b) DEFINE b AS b.v > a.v)"


def read(query, *, below=False):
    found = relations_so_far(tokenize(query), {"s", "t"}, {"s": "at"}, below=below)
    return None if found is None else words(found.render())


def words(text):
    return [token.text for token in tokenize(text).tokens]


def inside(query, of="SELECT * EXCEPT (__since) FROM"):
    return f"{of} ( {query} ) [RANGE UNBOUNDED]"


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        (
            f"SELECT COUNT(*) FROM (SELECT f.k FROM s {BY_TIME})",
            f"SELECT COUNT(*) FROM ( {inside(f'SELECT f.k , `f`.ts AS __since FROM s {BY_TIME}')} )",
        ),
        (
            f"SELECT DISTINCT f.k, f.v + 1 AS u FROM s {BY_TIME} HAVING f.v > 1"
            " ORDER BY f.v + 1, f.k, f.x LIMIT 3",
            inside(
                f"SELECT f.k, f.v + 1 AS u , `f`.ts AS __since FROM s {BY_TIME} HAVING f.v > 1",
                "SELECT DISTINCT * EXCEPT (__since) FROM",
            )
            + " ORDER BY `u` , `k` , f.x LIMIT 3",
        ),
        (
            f"SELECT f.k FROM s {BY_TIME} UNION SELECT k FROM t",
            f"{inside(f'SELECT f.k , `f`.ts AS __since FROM s {BY_TIME}')}"
            " UNION SELECT k FROM t [RANGE UNBOUNDED]",
        ),
        (
            f"SELECT * FROM s {PATTERN} AS m, t WHERE m.k = t.k",
            "SELECT * FROM (SELECT * EXCEPT (__since) FROM (SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts"
            " MEASURES LAST(ts) AS __since PATTERN (a b) DEFINE b AS b.v > a.v) ) [RANGE UNBOUNDED]) AS m, t"
            " [RANGE UNBOUNDED] WHERE m.k = t.k",
        ),
        (
            f"SELECT MAX(n) FROM s {MEASURES}",
            "SELECT MAX(n) FROM (SELECT * EXCEPT (__since) FROM (SELECT * FROM s MATCH_RECOGNIZE (MEASURES"
            " LAST(`at`) AS __since, COUNT(*) AS n PATTERN (a b) DEFINE b AS b.v > a.v) ) [RANGE UNBOUNDED])",
        ),
        (
            "SELECT MAX(n) FROM s MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (a*) DEFINE a AS v > 1)",
            "SELECT MAX(n) FROM (SELECT * EXCEPT (__since) FROM (SELECT * FROM s MATCH_RECOGNIZE (MEASURES"
            " `at` AS __since , COUNT(*) AS n PATTERN (a*) DEFINE a AS v > 1) ) [RANGE UNBOUNDED])",
        ),
        (  # a query of WITH has the name of a stream, and a clause is over a table
            f"WITH t AS (SELECT 1) SELECT * FROM t, x {PATTERN}",
            None,
        ),
        (
            f"SELECT f.k, COUNT(*), MAX(e.v) * f.k FROM s {BY_TIME} GROUP BY f.k HAVING COUNT(*) > 1",
            "SELECT f.k, COUNT(*), MAX(e.v) * f.k FROM (SELECT `f`, `e`, `f`.ts AS __since"
            f" FROM s {BY_TIME} ) [RANGE UNBOUNDED] GROUP BY f.k HAVING COUNT(*) > 1",
        ),
        (
            "SELECT * EXCEPT (v), n OVER w, 1 + n OVER w, lag(v) OVER w AS b, MIN(v) OVER u AS m FROM s AS r"
            f" WHERE v > 0 WINDOW u AS (ORDER BY ts), w AS ({OF_ROWS}) QUALIFY n OVER w > 1"
            " ORDER BY ts LIMIT 3",
            "SELECT * EXCEPT ( __since0, __since1, __since2, v), __since0 AS `n`, 1 + __since1 AS"
            " `1 + n OVER w`, lag(v) OVER (PARTITION BY k ORDER BY ts ASC NULLS FIRST) AS b,"
            " MIN(v) OVER u AS m FROM (SELECT *, n OVER w AS __since0, n OVER w AS __since1,"
            " n OVER w AS __since2 FROM s AS r WHERE v > 0 WINDOW"
            f" u AS (ORDER BY ts), w AS ({OF_ROWS}) ) [RANGE UNBOUNDED] AS r WINDOW u AS (ORDER BY ts)"
            " QUALIFY __since2 > 1 ORDER BY ts LIMIT 3",
        ),
        (
            "SELECT s.* EXCEPT (v), n OVER w, lag(v) OVER u AS b FROM s"
            f" WINDOW u AS (ORDER BY ts), w AS ({OF_ROWS})",
            "SELECT s.* EXCEPT ( __since0, v), __since0 AS `n`, lag(v) OVER u AS b FROM"
            f" (SELECT *, n OVER w AS __since0 FROM s WINDOW u AS (ORDER BY ts), w AS ({OF_ROWS}) )"
            " [RANGE UNBOUNDED] AS s WINDOW u AS (ORDER BY ts)",
        ),
        (
            f"SELECT k, n OVER w FROM s AS r WINDOW w AS ({OF_ROWS}) LIMIT 3".replace(" ts ", " r.ts "),
            "SELECT * EXCEPT (__since) FROM ( SELECT k, n OVER w , r.ts AS __since FROM s AS r WINDOW w AS"
            f" ({OF_ROWS}) ) [RANGE UNBOUNDED] LIMIT 3".replace(" ts ", " r.ts "),
        ),
        (
            f"SELECT f.k, AVG(COUNT(w)) FROM s {BY_TIME} HAVING f.v > 1 GROUP BY f.k"
            " HAVING MAX(COUNT(w)) > AVG(SUM(w.v)) OR SUM(e.v) FILTER (WHERE f = e) > 1",
            "SELECT f.k, AVG( __since0 ) AS `AVG(COUNT(w))` FROM (SELECT `f`, `e`, COUNT(w) AS __since0,"
            f" SUM(w.v) AS __since1, f = e AS __since2, `f`.ts AS __since FROM s {BY_TIME} HAVING f.v > 1"
            " ) [RANGE UNBOUNDED] GROUP BY f.k HAVING MAX( __since0 ) > AVG( __since1 )"
            " OR SUM(e.v) FILTER (WHERE __since2 ) > 1",
        ),
        (
            f"SELECT *, f.k + 1 AS a, size(w) AS n FROM s {BY_TIME} HAVING a > a.b GROUP BY ALL",
            "SELECT * EXCEPT (__since) , f.k + 1 AS a, size(w) AS n FROM (SELECT `f`, `e`, `w`,"
            f" `f`.ts AS __since FROM s {BY_TIME} HAVING (f.k + 1) > a.b ) [RANGE UNBOUNDED] GROUP BY ALL",
        ),
        (
            f"SELECT * EXCEPT (w), COUNT(w) AS n FROM s {BY_TIME} GROUP BY ALL",
            "SELECT * EXCEPT ( __since0, __since, w), __since0 AS n FROM (SELECT `f`, `e`, `w`,"
            f" COUNT(w) AS __since0, `f`.ts AS __since FROM s {BY_TIME} ) [RANGE UNBOUNDED] GROUP BY ALL",
        ),
        (
            f"SELECT MAX(COUNT(w)) FROM s {BY_TIME} HAVING f.v > 1 ORDER BY MAX(COUNT(w))",
            "SELECT MAX( __since0 ) AS `MAX(COUNT(w))` FROM (SELECT COUNT(w) AS __since0, `f`.ts AS __since"
            f" FROM s {BY_TIME} HAVING f.v > 1 ) [RANGE UNBOUNDED] ORDER BY MAX( __since0 )",
        ),
        (
            f"SELECT f.*, RANK() OVER (ORDER BY COUNT(w)) AS r FROM s {BY_TIME} QUALIFY r < 2 LIMIT 3",
            "SELECT f.*, RANK() OVER (ORDER BY __since0 ) AS r FROM (SELECT `f`, COUNT(w) AS __since0,"
            f" `f`.ts AS __since FROM s {BY_TIME} ) [RANGE UNBOUNDED] QUALIFY r < 2 LIMIT 3",
        ),
        (
            f"SELECT MAX(CASE f WHEN e THEN COUNT(w) END), COUNT(w) FROM s {BY_TIME} GROUP BY count(w),"
            " (SELECT MAX(v) FROM t WHERE t.k = f.k)",
            "SELECT MAX( __since0 ) AS `MAX(CASE f WHEN e THEN COUNT(w) END)`, __since1 AS `COUNT(w)` FROM"
            " (SELECT `f`, CASE f WHEN e THEN COUNT(w) END AS __since0, COUNT(w) AS __since1,"
            f" `f`.ts AS __since FROM s {BY_TIME} ) [RANGE UNBOUNDED] GROUP BY __since1 ,"
            " (SELECT MAX(v) FROM t [RANGE UNBOUNDED] WHERE t.k = f.k)",
        ),
        (
            "SELECT DISTINCT * FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts START WHEN TRUE END AS e)",
            "SELECT DISTINCT * EXCEPT (__since, since_row) FROM ( SELECT * , since_row.ts AS __since"
            " FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts START AS since_row WHEN TRUE END AS e) )"
            " [RANGE UNBOUNDED]",
        ),
        (
            "SELECT DISTINCT e.v FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts START UNBOUNDED END AS e)",
            "SELECT DISTINCT * EXCEPT (__since) FROM ( SELECT e.v , since_row.ts AS __since FROM s WINDOW"
            " BY w AS (TYPE SLIDING ORDER BY ts START AS since_row AT since_at WHEN since_at = 1"
            " END AS e) ) [RANGE UNBOUNDED]",
        ),
        (
            "SELECT DISTINCT e.v FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts LABEL NEXT AS n WHEN n.v > 1"
            " ONLY START AS f END AS e)",
            "SELECT DISTINCT * EXCEPT (__since) FROM ( SELECT e.v , since_row.ts AS __since FROM s WINDOW"
            " BY w AS (TYPE SLIDING ORDER BY ts LABEL AS since_row NEXT AS n WHEN n.v > 1 ONLY START AS f"
            " END AS e) ) [RANGE UNBOUNDED]",
        ),
    ],
)
def test_clauses_over_streams_become_relations(query, meant):
    assert read(query) == (None if meant is None else words(meant))


def test_a_clause_over_rows_that_are_gathered_is_over_a_relation():
    query = f"SELECT f.v FROM s JOIN t ON s.k = t.k {BY_TIME}"
    meant = f"SELECT f.v FROM s [RANGE UNBOUNDED] JOIN t [RANGE UNBOUNDED] ON s.k = t.k {BY_TIME}"
    assert read(query, below=True) == words(meant)
