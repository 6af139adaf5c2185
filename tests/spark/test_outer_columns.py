"""Blocks with WINDOW BY that read the query around them give what windows for each of its values give."""

from __future__ import annotations

import pytest

import windrow

CLAUSE = "TYPE SLIDING PARTITION BY k{} ORDER BY i START AS s WHEN s.v > {} END NEXT AS n WHEN n.v < s.v"
INNER = f"FROM r WHERE r.v > t.x AND r.k = t.k WINDOW BY w AS ({CLAUSE.format('', 't.x + 1')})"
FORMS = {
    "a count, also of no windows": ("(SELECT COUNT(*) {})", "(SELECT COUNT(*) {})"),
    "NOT EXISTS": ("NOT EXISTS (SELECT * {})", "NOT EXISTS (SELECT * {})"),
    "IN": ("t.x IN (SELECT s.v - 3 {})", "t.x IN (SELECT v - 3 {})"),
    "NOT IN": ("t.x NOT IN (SELECT s.v - 3 {})", "t.x NOT IN (SELECT v - 3 {})"),
}
JOINS = ("FROM t, LATERAL ({}) AS q", "FROM t LEFT JOIN LATERAL ({}) AS q")


@pytest.fixture(scope="module")
def sessions(spark) -> tuple[windrow.Session, ...]:
    """Sessions of both modes, and views: rows, values around with duplicates and NULLs, windows of each."""
    sessions = tuple(windrow.Session(spark, execution=mode) for mode in ("batch", "reference"))
    sessions[0].sql(
        "CREATE OR REPLACE TEMP VIEW r AS SELECT * FROM VALUES ('a', 1, 5), ('a', 2, 7), ('a', 3, 4),"
        " ('a', 4, 9), ('b', 1, 9), ('b', 2, 3), ('b', 3, NULL), (NULL, 1, 8) AS r(k, i, v)"
    )
    sessions[0].sql(
        "CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM VALUES ('a', 4), ('a', 4), ('a', 6), ('a', NULL),"
        " ('b', 0), ('c', 0), (NULL, 2), (NULL, NULL) AS t(k, x)"
    )
    sessions[0].sql(
        "CREATE OR REPLACE TEMP VIEW by_hand AS SELECT s.k, s.x, s.i, s.v, COUNT(w) AS n"
        " FROM r, (SELECT DISTINCT k AS of, x FROM t) AS d WHERE r.v > d.x AND r.k = d.of"
        f" WINDOW BY w AS ({CLAUSE.format(', x', 's.x + 1')})"
    )
    return sessions


def same(sessions: tuple[windrow.Session, ...], query: str, by_hand: str) -> None:
    wanted = sorted(map(str, sessions[0].sql(by_hand).df.collect()))
    for session in sessions:
        assert sorted(map(str, session.sql(query).df.collect())) == wanted


def test_subqueries_are_those_over_the_windows_of_each_value(sessions):
    hand = "FROM by_hand AS h WHERE h.k = t.k AND h.x <=> t.x"
    values = ", ".join(windows.format(INNER) for windows, _ in FORMS.values())
    by_hand = ", ".join(rows.format(hand) for _, rows in FORMS.values())
    names = ", ".join(f"q{number}" for number in range(len(FORMS)))
    same(
        sessions,
        f"SELECT * FROM (SELECT t.k, t.x, {values} FROM t) AS q(k, x, {names})",
        f"SELECT * FROM (SELECT t.k, t.x, {by_hand} FROM t) AS q(k, x, {names})",
    )


def test_lateral_joins_are_those_with_the_windows_of_each_value(sessions):
    queries = [
        " UNION ALL ".join(f"SELECT t.k, t.x, q.* {join.format(inner)}" for join in JOINS)
        for inner in (
            f"SELECT s.i, SUM(w.v + t.x) AS total {INNER}",
            "SELECT h.i, h.total FROM (SELECT k, x, i, total FROM totals) AS h"
            " WHERE h.k = t.k AND h.x <=> t.x",
        )
    ]
    sessions[0].sql(
        "CREATE OR REPLACE TEMP VIEW totals AS SELECT s.k, s.x, s.i, SUM(w.v + w.x) AS total"
        " FROM r, (SELECT DISTINCT k AS of, x FROM t) AS d WHERE r.v > d.x AND r.k = d.of"
        f" WINDOW BY w AS ({CLAUSE.format(', x', 's.x + 1')})"
    )
    same(sessions, *queries)


@pytest.mark.parametrize(
    "inner",
    [
        "FROM (SELECT * FROM r AS z WHERE z.v > t.x) AS r",
        "FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY v, i) AS n FROM r WHERE v > t.x) AS r WHERE n > t.x - 3",
        "FROM r JOIN r AS z ON z.v > t.x AND z.k = r.k AND z.i = r.i",
        "FROM (SELECT s.k, s.i, s.v FROM r WHERE r.v > t.x"
        " WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS s END UNBOUNDED)) AS r",
    ],
    ids=["a subquery", "one over several rows", "a join", "windows of windows"],
)
def test_values_are_read_inside_of_from(sessions, inner):
    clause = "WINDOW BY w AS (TYPE SLIDING ORDER BY r.i, r.k START AS s END UNBOUNDED)"
    plain = inner.partition(" WINDOW BY")[0] + ") AS r" * ("WINDOW BY" in inner)
    same(
        sessions,
        f"SELECT (SELECT COUNT(*) {inner} {clause}) AS c FROM t",
        f"SELECT (SELECT COUNT(*) {plain.replace('s.k, s.i, s.v', 'k, i, v')}) AS c FROM t",
    )


def test_a_view_whose_values_change_is_refused(sessions):
    sessions[0].spark.sql("CREATE OR REPLACE TEMP VIEW changing AS SELECT k, x + rand() AS x FROM t")
    with pytest.raises(windrow.WindrowError) as raised:
        sessions[0].sql(
            "SELECT c.k, (SELECT COUNT(*) FROM r WHERE r.v > c.x"
            " WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS s END UNBOUNDED)) FROM changing AS c"
        )
    assert raised.value.condition == "NONDETERMINISTIC_QUERY"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.x FROM t WHERE t.x <> 0 AND EXISTS ({})",
        "SELECT * FROM (SELECT t.x FROM t WHERE t.x <> 0 AND EXISTS ({})) AS q",
        "SELECT t.x FROM t, LATERAL ({}) AS q WHERE t.x <> 0",
    ],
    ids=["outermost", "in a subquery", "LATERAL"],
)
def test_no_condition_is_tried_for_values_of_rows_that_where_leaves_out(sessions, query):
    inner = (
        "SELECT s.i FROM r WHERE r.k = t.k WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i"
        " START AS s ONLY END AS e WHEN e.v / t.x > 2)"
    )
    found = sessions[0].sql(query.format(inner)).collect()
    assert {row.x for row in found} == {4}


def test_where_leaves_out_no_windows_on_which_an_outer_join_depends(sessions):
    clause = "WINDOW BY w AS (TYPE SLIDING ORDER BY i, k START AS s END UNBOUNDED)"
    inner = f"SELECT s.i FROM r WHERE r.v > t.x {clause}"
    joined = "FROM t JOIN LATERAL ({}) AS q FULL JOIN VALUES (3), (99) AS u(i) ON q.i = u.i"
    where = "WHERE t.x > 5 OR t.x IS NULL"
    same(
        sessions,
        f"SELECT t.k, t.x, q.i, u.i {joined.format(inner)} {where}",
        f"SELECT t.k, t.x, q.i, u.i {joined.format('SELECT r.i FROM r WHERE r.v > t.x')} {where}",
    )
