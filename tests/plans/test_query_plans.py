"""The plan into which a query is read: its nodes as EXPLAIN prints them, and where its columns come from."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType

from windrow import Session, WindrowError
from windrow.algebra.continuous import Reader
from windrow.plan.columns import Column, Part, Scope
from windrow.plan.format import tree
from windrow.plan.nodes import Distinct, Filter, Scan, walk
from windrow.spark.gateway import Gateway
from windrow.spark.recorded.continuous_queries import Runner
from windrow.syntax.tokens import tokenize

QUERIES = {
    "rows": "SELECT STREAM k, price * 2 AS p FROM bids WHERE price > 10 ORDER BY k",
    "a star": "SELECT STREAM * FROM bids AS b(a, c, d) ORDER BY a",
    "groups": "SELECT STREAM k, COUNT(*) AS n, MAX(price) FROM bids GROUP BY k HAVING COUNT(*) > 1",
    "groups by what is computed": "SELECT STREAM price DIV 10 AS tens, COUNT(*) AS n FROM bids GROUP BY 1",
    "no keys": "SELECT STREAM COUNT(*) AS n FROM bids",
    "distinct": "SELECT STREAM DISTINCT k FROM bids",
    "a join": "SELECT STREAM b.k FROM bids b JOIN sold s ON b.k = s.k AND s.price > 1 JOIN t ON t.k = b.k",
    "an outer join": "SELECT STREAM b.k FROM bids b LEFT JOIN sold s ON b.k = s.k AND s.price > 1",
    "all pairs": "SELECT STREAM b.k FROM bids b, sold s WHERE b.price < s.price AND s.k = 1",
    "using": "SELECT STREAM k, b.price FROM bids b FULL JOIN sold s USING (k)",
    "types that differ": "SELECT STREAM b.k FROM bids b JOIN (SELECT CAST(k AS INT) AS n FROM sold) s"
    " ON b.k = s.n",
    "exists": "SELECT STREAM k FROM bids b WHERE NOT EXISTS (SELECT 1 FROM sold s WHERE s.k = b.k)",
    "in": "SELECT STREAM k FROM bids WHERE k IN (SELECT k FROM sold WHERE price > 2)",
    "set operators": "SELECT STREAM k FROM bids UNION ALL SELECT price FROM sold EXCEPT SELECT n FROM t",
    "a named query twice": "WITH c AS (SELECT k, COUNT(*) AS n FROM bids GROUP BY k)"
    " SELECT STREAM a.k FROM c a JOIN c b ON a.k = b.n",
    "over": "SELECT STREAM k, SUM(price) OVER (PARTITION BY k ORDER BY ts) AS s, RANK() OVER w AS r FROM bids"
    " WINDOW w AS (PARTITION BY k ORDER BY price) QUALIFY r = 1",
    "over beside groups": "SELECT STREAM k, RANK() OVER (ORDER BY COUNT(*)) AS r FROM bids GROUP BY k",
    "windows of time": "SELECT STREAM window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts),"
    " INTERVAL '10' SECONDS)) GROUP BY window_end",
    "sessions": "SELECT STREAM k, window_end FROM TABLE(SESSION(TABLE bids PARTITION BY k, DESCRIPTOR(ts),"
    " INTERVAL '10' SECONDS)) ORDER BY window_end LIMIT 3",
    "a window": "SELECT k, AVG(price) + 1 AS a FROM bids [RANGE 5 MINUTES] WHERE price > 1 GROUP BY k",
    "two windows": "SELECT b.k, s.price FROM bids [PARTITION BY k ROWS 2] b JOIN sold [RANGE 5] s"
    " ON b.k = s.k + 1 WHERE b.price > 2",
    "a query in FROM that leaves columns out": "SELECT x FROM (SELECT price AS x FROM bids [RANGE 5]) q"
    " WHERE x > 1",
    "a query in FROM that has a column twice": "SELECT x + y AS z FROM (SELECT k AS x, k AS y FROM bids"
    " [RANGE 5]) q",
    "a subquery for one value by an inequality": "SELECT STREAM k, (SELECT COUNT(*) FROM sold s"
    " WHERE s.price < b.price) AS n FROM bids b",
    "a subquery with groups that reads the query around": "SELECT STREAM k FROM bids b WHERE EXISTS"
    " (SELECT s.k FROM sold s WHERE s.price < b.price GROUP BY s.k HAVING COUNT(*) > 1)",
    "a query in a subquery that reads the one around": "SELECT STREAM k FROM bids b WHERE price >"
    " (SELECT AVG(m) FROM (SELECT s.k, MAX(s.price) AS m FROM sold s WHERE s.price <> b.price GROUP BY s.k)"
    " q)",
    "in of ON": "SELECT STREAM b.k FROM bids b JOIN sold s ON b.k = s.k"
    " AND b.price IN (SELECT price FROM sold)",
    "lateral": "SELECT STREAM b.k, q.n FROM bids b LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM sold s"
    " WHERE s.k = b.k) q ON q.n > 1",
    "with inside": "SELECT STREAM k FROM (WITH c AS (SELECT k FROM bids) SELECT DISTINCT k FROM c) q",
    "all columns of a relation of using": "SELECT STREAM s.* FROM bids b FULL JOIN sold s USING (k)",
    "rows as they come": "SELECT STREAM k, price + 1 AS p FROM bids WHERE price > 1",
    "views of windows": "SELECT c.n, d.twice FROM counts c JOIN chosen d ON c.of = d.k WHERE c.n > 1",
}


OVER_LOGS = {
    "one row for one value": "SELECT k, (SELECT price FROM sold [ROWS 1]) AS p FROM bids [RANGE 5]",
    "the first row for one value": "SELECT k, (SELECT s.price FROM sold [RANGE 5] s WHERE s.k = b.k"
    " ORDER BY s.ts LIMIT 1) AS p FROM bids [RANGE 5] b",
    "in of which the value is computed with": "SELECT k FROM bids [RANGE 5]"
    " WHERE (price IN (SELECT price FROM sold [RANGE 5])) = false",
    "in of two values and another that are computed with": "SELECT nvl((k, price) IN (SELECT k, price FROM"
    " sold [RANGE 5]), true) AS i FROM bids [RANGE 5] WHERE isnull(price IN (SELECT price FROM sold [NOW]))",
    "without from": "SELECT (SELECT COUNT(*) FROM bids [NOW]) AS n",
    "pivot": "SELECT * FROM (SELECT k, price FROM bids [RANGE 5]) PIVOT (SUM(price) FOR k IN (1, 2))",
    "rollup": "SELECT k, COUNT(*) AS n, GROUPING_ID() AS g FROM bids [RANGE 5] GROUP BY k WITH ROLLUP",
}
"""What runs over recorded logs alone, and plans that only these have."""


@pytest.fixture(scope="module")
def logs(spark):
    session = Session(spark.newSession())
    rows = session.spark.createDataFrame([], "ts timestamp, k bigint, price bigint")
    for name in ("bids", "sold"):
        session.stream(name, rows, rowtime="ts")
    return session


@pytest.mark.parametrize("name", OVER_LOGS)
def test_a_query_over_recorded_logs_is_read_into_these_nodes(logs, snapshot, name):
    assert "\n".join(tree(read(logs, OVER_LOGS[name]))) == snapshot


def read(session, query):
    """The plan of a query over recorded logs."""
    gateway = Gateway(session.spark)
    gateway.plan_only = True
    tokens = tokenize(query)
    reader = Reader(tokens, frozenset(session._catalog.streams), frozenset())
    runner = Runner(gateway, session._catalog, reader, "batch")
    runner.run(reader.read(0, len(tokens)))
    (plan,) = runner.plans.values()
    return plan


@pytest.fixture(scope="module")
def streams(spark, tmp_path_factory):
    session = Session(spark.newSession())
    columns = "ts timestamp, k bigint, price bigint"
    for name in ("bids", "sold"):
        folder = str(tmp_path_factory.mktemp(name))
        session.stream(name, session.spark.readStream.schema(columns).parquet(folder), rowtime="ts")
    session.spark.sql("SELECT 1L AS k, 2 AS n").createOrReplaceTempView("t")
    chosen = "SELECT k, price * 2 AS twice FROM bids [RANGE 3] WHERE k > 1"
    session.sql(f"CREATE TEMPORARY VIEW chosen AS {chosen}")
    session.sql("CREATE TEMPORARY VIEW counts(of, n) AS SELECT k, COUNT(*) FROM chosen GROUP BY k")
    return session


def plan_of(session, query):
    live = session.sql(query)._live
    return live.blocking.plan if hasattr(live, "blocking") else live.windowed.plan


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_read_into_these_nodes(streams, snapshot, name):
    assert "\n".join(tree(plan_of(streams, QUERIES[name]))) == snapshot


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT array(make_interval(0, k)) AS i FROM bids [RANGE 3]", "a column of type array<interval>"),
        ("SELECT k FROM bids [PARTITION BY CAST(k AS STRING) COLLATE UNICODE_CI ROWS 2]", "PARTITION BY a"),
    ],
)
def test_what_no_operator_does_is_refused_when_the_statement_is_given(streams, query, why):
    with pytest.raises(WindrowError) as caught:
        streams.sql(query)
    assert caught.value.condition == "UNSUPPORTED_STREAM"
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) AS n FROM bids [RANGE 3]",
        "SELECT k, w FROM (SELECT *, price + 1 AS w FROM bids [RANGE 3]) AS q",
        "SELECT b.k FROM bids [RANGE 3] AS b LEFT JOIN sold [ROWS 2] AS s ON s.k = b.k",
        "ISTREAM(SELECT DISTINCT k FROM bids [RANGE 3] EXCEPT SELECT k FROM sold [NOW])",
        "SELECT k FROM bids [RANGE 3] WHERE price > (SELECT AVG(price) FROM sold [RANGE 9])",
        "SELECT MAX(n) AS n FROM counts",
        "SELECT k AS x, x + 1 AS y FROM bids [RANGE 3]",
        "SELECT b.k, n FROM bids [RANGE 3] AS b JOIN t ON t.k = b.k",
        "SELECT RSTREAM(k) FROM bids [RANGE 3]",
        "SELECT k FROM bids [PARTITION BY price % 2 ROWS 2]",
        "SELECT k, COUNT(*) AS n FROM bids [RANGE 4 ON price] GROUP BY k",
        "RSTREAM(SELECT n FROM bids [NOW] AS b JOIN t ON t.k = b.k)",
    ],
)
def test_any_plan_over_windows_is_evaluated_in_memory(streams, query):
    assert streams.sql(query)._live.windowed.query is not None
    assert "evaluated  in memory, over affected keys" in streams.sql(query).plan()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.k FROM slow [RANGE 3] AS s, sold [RANGE 3] AS o WHERE s.k = o.k",
        "SELECT STREAM s.k FROM slow AS s JOIN sold AS o ON s.k = o.k",
        "SELECT s.k FROM slow AS s JOIN sold AS o ON s.k = o.k EMIT STREAM",
    ],
)
def test_a_live_query_says_when_the_watermarks_of_its_streams_advance(streams, query, tmp_path):
    rows = streams.spark.readStream.schema("ts timestamp, k bigint").parquet(str(tmp_path))
    streams.stream("slow", rows, rowtime="ts", lag="90 seconds", idle="1 minute", future="1 day")
    _, _, live = streams.sql(query).plan().partition("\nlive\n")
    lines = [line.split(maxsplit=1)[1] for line in live.splitlines() if line.startswith("  stream ")]
    assert lines == ["slow, by ts, LAG 90 SECONDS, IDLE 1 MINUTE, FUTURE 1 DAY", "sold, by ts, ORDERED"]


@pytest.mark.parametrize("name", QUERIES)
def test_a_column_has_one_id_and_an_id_one_type(streams, name):
    types = {}
    for node in walk(plan_of(streams, QUERIES[name])):
        ids = [column.id for column in node.columns]
        assert len(set(ids)) == len(ids)
        for column in node.columns:
            assert types.setdefault(column.id, column.type) == column.type


def test_columns_know_the_columns_of_streams_that_they_are(streams):
    query = (
        "SELECT STREAM b.k, b.k + 1 AS next, COUNT(*) AS n FROM bids b JOIN sold s ON b.k = s.k GROUP BY b.k"
    )
    blocking = streams.sql(query)._live.blocking
    k, following, n = (column.id for column in blocking.plan.columns)
    assert blocking.lineage.same[k] == ("bids", "k")
    assert blocking.lineage.differing[following] == ("bids", "k")
    assert blocking.lineage.of(n) is None


def test_a_node_that_reads_a_column_that_is_not_there_is_not_made():
    scan = Scan("s", (Column("b1_0", "k", LongType()),), ("k",), None, "s", (0, 1))
    Distinct(scan, "DISTINCT k")
    with pytest.raises(AssertionError, match="a Scan has no column b2_0"):
        Filter(scan, Scope((Part("s", ("k",), ("b2_0",)),)), (), "WHERE", "WHERE k")
