"""Under EMIT, rows are late for the groups that a query names, and for none that a subquery becomes."""

from __future__ import annotations

from collections import Counter

import pytest

from windrow import Session

S = [
    (1, 5, "a", 1, None),
    (2, 9, "b", 2, 6),
    (3, 3, "a", 7, None),
    (4, 12, "b", 1, 11),
    (5, 10, "a", 4, None),
]
T = [(1, 3, "a", 1, None), (2, 8, "b", 2, 7), (3, 5, "a", 2, None), (4, 2, "b", 3, 9)]
LAST = (6, None, None, None, 30)

QUERIES = {
    "a count up to the time": "SELECT ts, k, (SELECT COUNT(*) FROM t WHERE t.ts <= s.ts) AS n FROM s",
    "a count at the time": "SELECT ts, k, (SELECT COUNT(*) FROM t WHERE t.ts = s.ts) AS n FROM s",
    "the greatest of a key then": "SELECT ts, (SELECT MAX(v) FROM t WHERE t.k = s.k AND t.ts = s.ts) AS m "
    "FROM s",
    "a count of a key before": "SELECT ts, (SELECT COUNT(*) FROM t WHERE t.ts < s.ts AND t.k = s.k) AS n "
    "FROM s",
    "groups before": "SELECT ts, k FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.ts < s.ts GROUP BY t.k "
    "HAVING COUNT(*) > 1)",
    "among the first": "SELECT ts, k FROM s WHERE v IN (SELECT v FROM t WHERE t.ts <= s.ts "
    "ORDER BY v LIMIT 2)",
    "different ones": "SELECT ts, k FROM s WHERE v IN (SELECT DISTINCT v FROM t WHERE t.ts >= s.ts)",
    "one value of several rows": "SELECT ts, (SELECT MAX(v) FROM t WHERE t.ts < s.ts GROUP BY t.k "
    "ORDER BY t.k LIMIT 1) AS m FROM s",
    "beside each": "SELECT s.ts, q.m FROM s, LATERAL (SELECT MAX(v) AS m FROM t WHERE t.ts <= s.ts) AS q",
}


@pytest.fixture(scope="module")
def session(spark):
    session = Session(spark.newSession())
    for name, rows in (("s", S), ("t", T)):
        log = session.spark.createDataFrame(
            [*rows, LAST], "at int, ts bigint, k string, v bigint, upto bigint"
        )
        session.stream(name, log, rowtime="ts", unit="seconds", ptime="at", watermark="upto")
        plain = session.spark.createDataFrame([row[1:4] for row in rows], "ts bigint, k string, v bigint")
        plain.createOrReplaceTempView(f"plain_{name}")
    return session


def of_plain_tables(session: Session, query: str) -> Counter:
    text = query.replace("FROM s", "FROM plain_s AS s").replace("FROM t", "FROM plain_t AS t")
    return Counter(map(tuple, session.spark.sql(text).collect()))


@pytest.mark.sampled
@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in QUERIES.items()])
def test_late_rows_count_where_no_group_is_named(session, query):
    relation = session.sql(f"{query} EMIT STREAM AS diff")
    found: Counter = Counter()
    for *row, count, _ in map(tuple, relation.collect()):
        found[tuple(row)] += count
    assert +found == of_plain_tables(session, query)
    assert relation.late.collect() == []


@pytest.mark.parametrize("name", ["a count up to the time", "a count at the time", "groups before"])
def test_changes_of_rows_beside_a_subquery_are_not_numbered(session, name):
    told = session.sql(f"{QUERIES[name]} EMIT STREAM").collect()
    assert {row["ver"] for row in told} == {0}


def test_late_rows_are_left_out_of_groups_that_a_subquery_names(session):
    relation = session.sql("SELECT ts FROM s WHERE ts IN (SELECT ts FROM t GROUP BY ts) EMIT STREAM")
    assert [row["ts"] for row in relation.collect()] == [3]  # 5 came to t when 7 had been passed
    assert sorted(row["rowtime"] for row in relation.late.collect()) == [2, 5]


@pytest.mark.parametrize(
    "without",
    ["LEFT ANTI JOIN t ON t.ts = s.ts", "WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.ts = s.ts)"],
)
def test_the_other_side_holds_the_watermark_back_by_which_rows_are_late(session, without):
    """Row 10 of s came when s was known up to 11, and t up to 9: its group was not over."""
    relation = session.sql(f"SELECT s.ts, COUNT(*) AS n FROM s {without} GROUP BY s.ts EMIT STREAM AS diff")
    assert (10, 1) in {(row["ts"], row["n"]) for row in relation.collect()}
    assert [row["rowtime"] for row in relation.late.collect()] == [3]
