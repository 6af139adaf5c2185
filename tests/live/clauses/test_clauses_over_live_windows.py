"""WINDOW BY and MATCH_RECOGNIZE over windows of live streams are at each instant those of the whole log."""

from __future__ import annotations

import pytest

from tests.live.queries.test_query import declared, put
from tests.live.random_logs import declared_live, ended, live, recorded
from tests.live.stepping import rows_of, total
from windrow import Memory, WindrowError
from windrow.plan.nodes import ClauseRelation, walk

S = [
    ("a", 0, 1, 2, 0),
    ("a", 1, 2, 3, 1),
    ("a", 1, 1, 2, 1),
    ("b", 3, 1, 7, 3),
    ("a", 4, 2, 1, 4),
    ("a", 6, 1, 3, 6),
    ("b", 7, 0, 1, 7),
    ("a", 9, 1, 3, 9),
    ("a", 12, 3, 3, 12),
]
T = [("a", 0, 1, 1, 0), ("a", 2, 2, 2, 2), ("b", 5, 1, 3, 5), ("a", 13, 1, 3, 13)]
WINDOWS = (
    "SELECT f.ts, f.k, COUNT(w) AS n FROM {} WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY ts, v"
    " START AS f END AS e WHEN e.v > f.v)"
)
MATCHES = (
    "SELECT * FROM {} MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts, v MEASURES COUNT(*) AS n, LAST(ts) AS u"
    " PATTERN (a b*) DEFINE b AS b.v >= PREV(b.v))"
)
QUERIES = {
    "windows over a length of time": WINDOWS.format("s [RANGE 3]"),
    "windows over slides": WINDOWS.format("s [RANGE 4 SLIDE 2]"),
    "matches over rows": MATCHES.format("s [ROWS 4]"),
    "matches over the last of each key": MATCHES.format("s [PARTITION BY v ROWS 2]"),
    "windows over groups": "SELECT f.k, f.n, COUNT(w) AS m FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 5]"
    " GROUP BY k) WINDOW BY w AS (TYPE TUMBLING ORDER BY n, k START AS f WHEN f.n > 1)",
    "windows over a join": "SELECT f.k, e.v FROM (SELECT a.k, a.ts, b.v FROM s [RANGE 4] AS a JOIN t"
    " [RANGE 6] AS b ON a.k = b.k) WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY ts, v START AS f"
    " END AS e)",
    "a stream of matches": f"SELECT ISTREAM(x.k, x.n) FROM ({MATCHES.format('s [RANGE 4]')}) AS x",
    "matches beside a window": f"SELECT x.k, x.n, b.v FROM ({MATCHES.format('s [RANGE 4]')}) AS x"
    " JOIN t [RANGE 6] AS b ON x.k = b.k",
    "windows with a value that changes": WINDOWS.format("s [RANGE 3]").replace(
        "START AS f", "START AS f WHEN f.v >= (SELECT AVG(v) FROM t [RANGE 6])"
    ),
    "windows with a subquery of their rows": WINDOWS.format("s [RANGE 4]").replace(
        "e.v > f.v", "EXISTS (SELECT 1 FROM t [RANGE 6] AS q WHERE q.v > f.v AND q.v < e.v + 2)"
    ),
    "windows with a subquery in one of their rows": WINDOWS.format("s [RANGE 4]").replace(
        "e.v > f.v",
        "EXISTS (SELECT * FROM t [RANGE 6] AS q WHERE q.v >= f.v AND q.v NOT IN (SELECT v FROM t [RANGE 2])"
        " AND q.ts <= (SELECT MAX(ts) FROM s [RANGE 5] AS p WHERE p.k = q.k))",
    ),
    "windows with subqueries among groups and aggregates": WINDOWS.format("s [RANGE 4]").replace(
        "e.v > f.v",
        "EXISTS (SELECT q.k FROM t [RANGE 6] AS q WHERE q.v >= f.v GROUP BY q.k HAVING MAX(q.v) <"
        " (SELECT SUM(v) FROM s [RANGE 5] AS p WHERE p.k = q.k)) OR (SELECT COUNT(*) NOT IN"
        " (SELECT v FROM t [RANGE 2]) FROM t [RANGE 6] AS q WHERE q.v > f.v)",
    ),
    "windows, and subqueries of subqueries that name no relation": WINDOWS.format("s [RANGE 4]").replace(
        "e.v > f.v",
        "EXISTS (SELECT 1 FROM (SELECT k AS g, v AS u FROM t [RANGE 6]) AS q WHERE q.u >= f.v AND EXISTS"
        " (SELECT 1 FROM s [RANGE 5] WHERE k = g AND v > u))",
    ),
    "windows, and subqueries that read their variables": WINDOWS.format("s [RANGE 4]").replace(
        "COUNT(w) AS n", "(SELECT COUNT(*) FROM t [RANGE 6] AS q WHERE q.k = f.k AND q.v >= e.v) AS n"
    ),
    "matches with subqueries": MATCHES.format("s [RANGE 4]")
    .replace("LAST(ts) AS u", "(SELECT MAX(v) FROM t [RANGE 6]) AS u")
    .replace("b.v >= PREV(b.v)", "b.v >= (SELECT COUNT(*) FROM t [RANGE 6] AS q WHERE q.k = b.k)"),
    "matches within a time that changes": MATCHES.format("s [RANGE 6]").replace(
        "(a b*)", "(a b*) WITHIN (SELECT MAX(v) FROM t [RANGE 4])"
    ),
    "matches of all rows of a time that changes": MATCHES.format("s [RANGE 6]").replace(
        "(a b*)", "(a b*) DURATION (SELECT COUNT(*) + 1 FROM t [RANGE 4])"
    ),
    "matches over windows": "SELECT * FROM (" + WINDOWS.format("s [RANGE 4]") + ") MATCH_RECOGNIZE (PARTITION"
    " BY k ORDER BY ts, n MEASURES COUNT(*) AS c PATTERN (a b*) DEFINE b AS b.n <= a.n)",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.usefixtures("interpreted")
def test_cuts_and_kills_change_nothing(spark, tmp_path, name):
    query = QUERIES[name]
    logs = {"s": ended(S), **({"t": ended(T)} if " t [" in query else {})}
    plan = declared_live(spark, tmp_path, logs, None).sql(query)._live
    assert any(isinstance(node, ClauseRelation) for node in walk(plan.windowed.plan))
    found = live(spark, tmp_path, logs, None, [0.3, 0.55, 0.8], {1}, query)
    relation = recorded(spark, logs, None).sql(query)
    if not plan.is_relation:
        assert rows_of(found) == rows_of([relation.to_arrow()])
        return
    changed, meant = total(found), total([relation.changelog("diff").to_arrow()])
    assert +changed
    assert (+changed, -changed) == (+meant, -meant)


@pytest.mark.usefixtures("interpreted")
def test_a_view_of_them_is_that_of_the_whole_log(spark, tmp_path):
    query, logs = "SELECT k, SUM(n) AS n FROM c GROUP BY k", {"s": ended(S)}
    before = [f"CREATE OR REPLACE TEMPORARY VIEW c AS {WINDOWS.format('s [RANGE 3]')}"]
    found = live(spark, tmp_path, logs, None, [0.3, 0.55, 0.8], {1}, query, before)
    relation = recorded(spark, logs, None, before).sql(query)
    changed, meant = total(found), total([relation.changelog("diff").to_arrow()])
    assert +changed
    assert (+changed, -changed) == (+meant, -meant)


@pytest.mark.usefixtures("interpreted")
def test_a_session_goes_on_with_the_checkpoint_of_another(spark, tmp_path):
    """In which the hidden name of the clause has another number."""
    query, incoming, sink = WINDOWS.format("s [RANGE 3]"), tmp_path / "in", Memory()
    incoming.mkdir()
    start = {"checkpoint": tmp_path / "c", "envelope": "diff", "trigger": {"availableNow": True}}
    for number, text in enumerate((query, query.replace("COUNT(w) AS n", "COUNT(w) n"))):
        put(incoming, number, [(3 * number + at, "a", at) for at in range(3)])
        session = declared(spark, incoming)
        session.sql(text).start(sink, **start).await_termination()
    assert sorted(sink.batches) == [0, 1]
    with pytest.raises(WindrowError, match="CHECKPOINT_OF_ANOTHER_QUERY"):
        session.sql(query.replace("e.v > f.v", "e.v < f.v")).start(sink, **start)
