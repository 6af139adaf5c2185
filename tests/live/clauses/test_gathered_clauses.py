"""What gathers rows of WINDOW BY and MATCH_RECOGNIZE over live streams, or below them, is a relation."""

from __future__ import annotations

import pytest

from tests.live.clauses.test_sequences import COLUMNS, SESSION_WINDOWS, at, session
from tests.live.stepping import total
from windrow import Memory, Session
from windrow.spark.live.hosts import micro_batches_of

__all__ = ["session"]

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT k, SUM(n) AS n FROM firsts GROUP BY k", ["k", "n"]),
        ("SELECT t.k, MAX(e.v) AS m FROM s {windows:ORDER BY ts} GROUP BY t.k", ["k", "m"]),
        ("SELECT DISTINCT t.k FROM s {windows:ORDER BY ts}", ["k"]),
        (
            "SELECT t.k, SUM(COUNT(w)), t = e FROM s {windows:ORDER BY ts} GROUP BY t.k, t = e",
            ["k", "SUM(COUNT(w))", "t = e"],
        ),
        (
            "SELECT size(w), MAX(t.v) + 1 FROM s {windows:ORDER BY ts} GROUP BY w",
            ["size(w)", "(max(t.v) + 1)"],
        ),
        (
            "SELECT DISTINCT e.v, since_row.k AS ks FROM s WINDOW BY since_row AS (TYPE TUMBLING ORDER BY ts"
            " START UNBOUNDED END AS e)",
            ["v", "ks"],
        ),
        (
            "SELECT DISTINCT n FROM s MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (a*) DEFINE a AS v > 1)"
            " WHERE n < 5",
            ["n"],
        ),
        (
            "SELECT t.k, t.v + 1 AS u FROM s {windows:ORDER BY ts} ORDER BY t.v + 1, t.k LIMIT 2",
            ["k", "u"],
        ),
        ("SELECT f.k, f.n, t.v FROM firsts AS f JOIN s AS t ON f.k = t.k", ["k", "n", "v"]),
        (
            "SELECT k, COUNT(*) AS c FROM s MATCH_RECOGNIZE (PARTITION BY k PATTERN (a) DEFINE a AS v > 1)"
            " GROUP BY k",
            ["k", "c"],
        ),
        (
            "WITH m AS (SELECT t.k FROM s {windows:ORDER BY ts}) TABLE m UNION ALL SELECT k FROM names",
            ["k"],
        ),
        (
            "SELECT t.k FROM s {windows:ORDER BY ts} UNION ALL"
            " SELECT o.k FROM names WINDOW BY x AS (TYPE SLIDING ORDER BY name START AS o END AS p)",
            ["k"],
        ),
        (
            "SELECT * FROM (SELECT ts, k, AVG(v) OVER w AS m FROM s WINDOW w AS (ORDER BY ts ROWS BETWEEN"
            " CURRENT ROW AND 2 FOLLOWING PATTERN (a b*) DEFINE a AS TRUE)) ORDER BY m LIMIT 1",
            ["ts", "k", "m"],
        ),
        (
            "SELECT ts, lag(v) OVER w AS b, m OVER w FROM s WINDOW w AS (PARTITION BY k ORDER BY ts MEASURES"
            " COUNT(*) AS m ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING PATTERN (a b*) DEFINE a AS TRUE)",
            ["ts", "b", "m"],
        ),
        (
            "SELECT t.k, t.n FROM s GROUP BY k, ts LET n = COUNT(*) {windows:ORDER BY ts}",
            ["k", "n"],
        ),
        (
            "SELECT t.k FROM (SELECT *, SUM(v) OVER (PARTITION BY k) AS t FROM s) {windows:ORDER BY ts}",
            ["k"],
        ),
        (
            "SELECT t.v FROM (SELECT s.ts, u.v FROM s JOIN s AS u ON s.k = u.k) {windows:ORDER BY ts}",
            ["v"],
        ),
        (
            "SELECT t.k FROM (SELECT ts, k FROM s UNION ALL SELECT TIMESTAMP '2026-01-01', k FROM names)"
            " {windows:ORDER BY ts}",
            ["k"],
        ),
    ],
)
def test_what_gathers_rows_is_a_relation(session, query, columns):
    """Above a clause; the rows of one that has gathered ones below are a relation themselves."""
    before, _, rest = query.partition("{windows:")
    if rest:
        order, _, after = rest.partition("}")
        query = f"{before}WINDOW BY w AS (TYPE SLIDING {order} START AS t END AS e ){after}"
    relation = session.sql(query)
    assert relation.columns == columns
    assert relation._live.is_relation
    assert "unbounded" in session.sql(f"EXPLAIN {query}").collect()[0][0]


@pytest.mark.parametrize(
    "query",
    [
        f"ISTREAM(SELECT k, COUNT(*) AS n FROM ({SESSION_WINDOWS}) GROUP BY k)",
        f"SELECT k, n FROM CHANGELOG OF (SELECT k, COUNT(*) AS n FROM ({SESSION_WINDOWS}) GROUP BY k)",
        "SELECT ISTREAM(k, n) FROM (SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts"
        " MEASURES COUNT(*) AS n PATTERN (a b) DEFINE b AS b.v > a.v))",
    ],
)
def test_its_changes_are_a_stream(session, query):
    relation = session.sql(query)
    assert relation.columns[-2:] == ["k", "n"]
    assert not relation._live.is_relation


@pytest.mark.parametrize("windows", ["", " [RANGE UNBOUNDED]"])
def test_a_clause_over_a_table_is_one_beside_live_streams(session, tmp_path, windows):
    """Which is there when the query is started, and in another session when that goes on with it."""
    query = (
        f"SELECT k, n FROM ({SESSION_WINDOWS}){windows} UNION ALL"
        " SELECT o.k, 0 FROM names WINDOW BY x AS (TYPE SLIDING ORDER BY name START AS o END AS p)"
    )
    sink, plan = Memory(), session.sql(query)._live
    for number, entries in enumerate([[(at(0), "x", 1, None)], [(at(30), "x", 1, at(60))]]):
        steps = micro_batches_of(plan, sink, tmp_path, "diff", "keep")
        rows = session.spark.createDataFrame(entries, COLUMNS)
        ((_, name, stream),) = steps.streams()
        steps.take(steps.input({name: rows.select(*stream.live.columns)}), number)
        steps.close()
        plan = session.sql(query)._live
    assert sorted(total(sink.batches.values()).values()) == [1, 1, 1]
    assert {values for _, values in total(sink.batches.values())} == {("a", 0), ("x", 1)}


def test_a_view_that_gathers_is_a_relation(session):
    session.sql(f"CREATE TEMPORARY VIEW most AS SELECT k, MAX(n) AS n FROM ({SESSION_WINDOWS}) GROUP BY k")
    relation = session.sql("SELECT k FROM most WHERE n > ?", 1)
    assert relation._live.is_relation
    session.sql("DROP VIEW most")


def test_over_a_named_stream_it_is_a_table_that_can_be_started(spark, tmp_path):
    session = Session(spark.newSession())
    session.sql(f"CREATE STREAM s (ROWTIME ts INT UNIT SECONDS, k STRING, v INT) LOCATION '{tmp_path / 's'}'")
    session.sql("INSERT INTO s VALUES (1, 'a', 1), (2, 'a', 2), (4, 'b', 3), (9, 'a', 4)")
    relation = session.sql(
        "SELECT k, SUM(n) AS n FROM (SELECT f.k, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING"
        " ORDER BY ts START AS f ONLY END AS e WHEN e.v > f.v)) GROUP BY k"
    )
    assert sorted(map(tuple, relation.collect())) == [("a", 4), ("b", 2)]
    sink = Memory()
    query = relation.start(sink, envelope="diff", trigger={"availableNow": True}, on_unbounded="ignore")
    query.await_termination()
    # the window from 4 on is not final before 9 has passed
    changes = {(1, ("a", 2)): 1, (2, ("a", 2)): -1, (2, ("a", 4)): 1}
    assert dict(total(sink.batches.values())) == changes
