"""The plan that EXPLAIN prints, for every way to find a boundary and to compute an aggregate.

`pytest tests/plans --snapshot-update` writes the plans anew.
"""

from __future__ import annotations

import pytest


def weather(start: str = "AS s", end: str = "AS e", *, kind: str = "SLIDING", select: str = "s.date") -> str:
    return (
        f"SELECT {select} FROM weather WINDOW BY w AS (TYPE {kind} PARTITION BY station ORDER BY date"
        f" START {start} {end and 'END'} {end})"
    )


def events(end: str, select: str = "s.ts") -> str:
    return (
        f"SELECT {select} FROM events WINDOW BY w AS (TYPE SLIDING PARTITION BY user ORDER BY ts"
        f" START AS s END AS e NEXT AS n WHEN {end})"
    )


def pattern(text: str, define: str, rows: str = "ONE ROW PER MATCH", within: str = "") -> str:
    return (
        "SELECT * FROM weather MATCH_RECOGNIZE (PARTITION BY station ORDER BY date"
        " MEASURES FIRST(date) AS first, AVG(A.val) + 1 AS mean, CLASSIFIER() AS step, MATCH_NUMBER() AS m"
        f" {rows} PATTERN ({text}) {within} DEFINE {define})"
    )


QUERIES = {
    # strategies
    "no predicates": weather(),
    "unbounded": weather("UNBOUNDED", "UNBOUNDED", select="COUNT(w)"),
    "first true": weather(end="AS e WHEN e.val > 25"),
    "position, so many rows": weather("AS s AT sp", "AS e AT ep WHEN ep - sp = 19"),
    "position, the same row": (
        "SELECT l.date, AVG(w.val) FROM weather WINDOW BY w AS (TYPE SLIDING"
        " PARTITION BY station ORDER BY date LABEL AS l START UNBOUNDED END AS e WHEN e = l)"
    ),
    "monotone": weather(end="AS e WHEN e.val > s.val + 1"),
    "scan": weather(end="AS e WHEN e.val * s.val > 10"),
    "join plan": weather(end="AS e WHEN concat_ws('', s.note, e.note) LIKE '%x'"),
    "join plan at LABEL and START": (
        "SELECT l.date FROM weather WINDOW BY w AS (TYPE SLIDING PARTITION BY station ORDER BY date"
        " LABEL AS l WHEN l.val > 1 START AS s WHEN concat_ws('', s.note, l.note) = 'xx'"
        " ONLY END AS e WHEN e.n > l.n)"
    ),
    "a row variable in a function": weather(end="AS e WHEN struct(s, e) IS NULL"),
    # hoisting
    "functions of one row are columns": weather(
        "AS s WHEN upper(s.note) = 'X'", "AS e WHEN year(e.date) > 2000"
    ),
    "both sides of a comparison are columns": weather(end="AS e WHEN abs(e.val) > sqrt(s.val) + 1"),
    "one text is one column": weather(
        end="AS e WHEN e.val > s.val OR e.val > 2 * s.val", select="s.val, e.val"
    ),
    "strings are compared by rank": weather(end="AS e WHEN e.note > s.note"),
    "decimals are compared by rank": events("e.price > s.price AND e.price < 10"),
    "dates": weather(end="NEXT AS n WHEN n.date - s.date > INTERVAL 7 DAYS"),
    "times": events("n.ts - s.ts > INTERVAL 30 MINUTES"),
    "a guard stays with what it guards": weather(end="AS e WHEN s.n <> 0 AND e.val > 10 / s.n"),
    "constants are computed once": weather("AS s WHEN s.date > current_catalog()", "UNBOUNDED"),
    "a missing neighbour is a constant": weather(end="NEXT AS n WHEN COALESCE(n.val, 100) - s.val > 1"),
    "a missing neighbour that is plainly NULL": weather(end="NEXT AS n WHEN n.val > s.val"),
    # what is read
    "star": weather("AS s AT sp", "NEXT AS n", select="*"),
    "nothing read": weather(select="COUNT(*)"),
    "a struct of one field of the window": weather(select="w.val, w.n"),
    # aggregates
    "aggregates in the kernel": weather(
        select="AVG(w.val), COUNT(w), COUNT(DISTINCT w.note), MEDIAN(w.val),"
        " SUM(w.val * 2) FILTER (WHERE w.n > 1)"
    ),
    "the paper's spelling": weather(select="ARRAY_AVG(w.val), ARRAY_MAX(w.n)"),
    "aggregates in Spark": weather(select="corr(w.val, w.n), AVG(w.val)"),
    "an aggregate that reads another variable": weather(select="SUM(w.val - s.val)"),
    "one aggregate written twice": weather(select="AVG(w.val), AVG( W.val ) + 1") + " HAVING avg(w.val) > 1",
    # forms of the clause and the query
    "tumbling without END": weather("AS s WHEN s.val > 1", "", kind="TUMBLING"),
    "groups": (
        "SELECT s.station, s.m FROM weather WHERE val > 0 GROUP BY station LET m = MAX(val) HAVING m > 1"
        " WINDOW BY w AS (TYPE SLIDING ORDER BY m DESC START AS s END AS e WHEN e.m < s.m) ORDER BY 1 LIMIT 3"
    ),
    "keys": (
        "SELECT COUNT(w) FROM weather WINDOW BY w AS (TYPE SLIDING PARTITION BY station, year(date)"
        " ORDER BY date DESC NULLS FIRST, val START UNBOUNDED ONLY END AS e WHEN e.val > 1)"
    ),
    "nested": (
        "SELECT b.a, COUNT(x) FROM (SELECT s.date AS d, AVG(w.val) AS a FROM weather WINDOW BY w AS"
        " (TYPE SLIDING ORDER BY date START AS s END UNBOUNDED))"
        " WINDOW BY x AS (TYPE TUMBLING ORDER BY d START AS b WHEN b.a > 1)"
    ),
    # patterns
    "a pattern over neighbours": pattern("A DOWN+ UP+", "DOWN AS val < PREV(val), UP AS val > PREV(val)"),
    "a pattern over the match so far": pattern(
        "A+ X*? B",
        "A AS val > 1, B AS B.val < LAST(A.val, 1) AND B.n > 0 AND upper(B.note) = 'X'",
        "ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER MATCH SKIP TO LAST B",
    ),
    "a pattern with counts, sums and names": pattern(
        "(A | B){2,3}",
        "A AS COUNT(*) < 5 AND SUM(A.val) < 9, B AS LAST(CLASSIFIER(), 1) = 'A'",
    ),
    "a pattern within a time": pattern("A B", "B AS B.val > A.val", within="WITHIN INTERVAL 7 DAYS"),
    "a pattern with all that a pattern can have": pattern(
        "^ (A? | {- B -})* PERMUTE(A, B) () $", "A AS TRUE", "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    ),
    "twice over one named query": (
        "WITH q AS (SELECT s.date AS d FROM weather WINDOW BY w AS"
        " (TYPE SLIDING ORDER BY date START AS s END)) SELECT * FROM q UNION ALL SELECT * FROM q"
    ),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_the_plan_of(session, query, snapshot):
    assert session.sql(query).plan() == snapshot


STRATEGIES = {
    "no predicates": ["always"],
    "unbounded": ["unbounded"],
    "first true": ["first true"],
    "position, so many rows": ["position"],
    "position, the same row": ["unbounded", "position"],
    "monotone": ["monotone"],
    "scan": ["scan"],
    "join plan": ["given"],
    "a row variable in a function": ["given"],
}


@pytest.mark.parametrize(("name", "strategies"), STRATEGIES.items())
def test_the_plan_names_the_strategy_of_every_boundary_that_is_searched(session, name, strategies):
    lines = [line.strip() for line in session.sql(QUERIES[name]).plan().splitlines()]
    named = [line.removeprefix("strategy: ").split(" (")[0] for line in lines if line.startswith("strategy")]
    assert named == strategies


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("join plan", "before it, the rows are joined with themselves"),
        ("aggregates in Spark", "by Spark, over the exploded windows"),
        ("aggregates in the kernel", "avg of"),
        ("keys", "by hash of the partition keys"),
        ("groups", "to one task"),
        ("tumbling without END", "a window runs to the row before the next start"),
        ("no predicates", "ties are in an arbitrary order"),
    ],
)
def test_the_plan_says(session, name, told):
    assert told in session.sql(QUERIES[name]).plan()


def test_a_guard_is_part_of_the_column_that_it_guards(session):
    plan = session.sql(QUERIES["a guard stays with what it guards"]).plan()
    assert "CASE WHEN" in plan


def test_sparks_plan_follows_on_request(session, capsys):
    relation = session.sql(QUERIES["first true"])
    relation.explain(spark=True)
    shown = capsys.readouterr().out
    assert shown.startswith(relation.plan())
    assert "MapInArrow" in shown
