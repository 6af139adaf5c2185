"""Continuous queries over random streams: operators for whole logs give what each instant gives."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live.stepping import law
from windrow import Session

WINDOWS = [
    "[NOW]",
    "[RANGE UNBOUNDED]",
    "[RANGE 2]",
    "[RANGE 5 SLIDE 3]",
    "[RANGE 2 SLIDE 5]",
    "[ROWS 1]",
    "[ROWS 3]",
    "[ROWS 2 SLIDE 2]",
    "[ROWS 3 SLIDE 2]",
    "[PARTITION BY k ROWS 1]",
    "[PARTITION BY k ROWS 2 RANGE 3]",
    "[PARTITION BY k % 2 ROWS 2 RANGE 4 SLIDE 2]",
    "[RANGE 2 ON ts]",
]

entries = st.lists(
    st.tuples(st.integers(0, 12), st.none() | st.integers(0, 2), st.none() | st.integers(0, 3)), max_size=7
)
window = st.sampled_from(WINDOWS)
stream = st.sampled_from(["s", "t"])
leaf = st.builds("{} {}".format, stream, window)


def relations():
    """Queries with the columns k and v."""
    plain = st.builds("SELECT {} FROM {}".format, st.sampled_from(["k, v", "k, ts AS v", "ts AS k, v"]), leaf)
    filtered = st.builds("SELECT k, v + 1 AS v FROM {} WHERE v > 0 OR k IS NULL".format, leaf)
    grouped = st.builds(
        "SELECT k, {} AS v FROM {} GROUP BY k{}".format,
        st.sampled_from(["COUNT(*)", "SUM(v)", "MAX(v)", "MIN(v)", "COUNT(DISTINCT v)", "COUNT(v)"]),
        leaf,
        st.sampled_from(["", " HAVING COUNT(*) > 1"]),
    )
    whole = st.builds(
        "SELECT MAX(k) AS k, {} AS v FROM {}{}".format,
        st.sampled_from(["COUNT(*)", "SUM(v)"]),
        leaf,
        st.sampled_from(["", " WHERE k = 1", " HAVING COUNT(*) <> 1"]),
    )
    distinct = st.builds("SELECT DISTINCT k, v % 2 AS v FROM {}".format, leaf)
    joined = st.builds(
        "SELECT a.k, b.v FROM {} AS a{} {} AS b {}".format,
        leaf,
        st.just(","),
        leaf,
        st.sampled_from(["WHERE a.k = b.k", "WHERE a.k = b.k AND a.v < b.v", "WHERE a.v <= b.k"]),
    )
    on = st.builds(
        "SELECT a.k, b.v FROM {} AS a {} {} AS b ON a.k = b.k".format,
        leaf,
        st.sampled_from(
            [
                "JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "FULL JOIN",
                "LEFT ANTI JOIN (SELECT k AS j, k, v FROM names) AS c ON a.v = c.j JOIN",
            ]
        ),
        leaf,
    )
    table = st.builds(
        "SELECT s.k, {} FROM {} AS s {} names AS n ON s.k = n.k".format,
        st.just("n.v"),
        leaf,
        st.sampled_from(["JOIN", "LEFT JOIN"]),
    )
    inner = st.builds(
        "SELECT k, v FROM ({}(SELECT k, v FROM {})) {}".format,
        st.sampled_from(["ISTREAM", "DSTREAM", "RSTREAM"]),
        leaf,
        window,
    )
    asked = st.builds(
        "SELECT q.k, q.v FROM {} AS q WHERE {}".format,
        leaf,
        st.sampled_from(
            [
                "v IN (SELECT v FROM t [ROWS 2])",
                "EXISTS (SELECT 1 FROM t [RANGE 3])",
                "v > (SELECT MIN(v) FROM s [ROWS 3])",
                "k IN (SELECT k FROM names)",
                "v NOT IN (SELECT k FROM t [ROWS 2])",
                "EXISTS (SELECT 1 FROM t [ROWS 3] AS u WHERE u.k = q.k AND u.v > q.v)",
                "v IN (SELECT u.v FROM t [RANGE 3] AS u WHERE u.k = q.k)",
                "v IN (FROM t [RANGE 3] AS u SELECT u.v WHERE u.k = q.k)",
                "(v IN (SELECT v FROM t [ROWS 2])) = false",
                "if(v NOT IN (SELECT u.v FROM t [RANGE 3] AS u WHERE u.k >= q.k), k, v) > 0",
                "coalesce(v IN (SELECT v FROM t [ROWS 2]), k = 1)",
                "nvl(v IN (SELECT v FROM t [ROWS 2]), true) OR isnull(k IN (SELECT v FROM t [RANGE 3]))",
                "(k, v) IN (SELECT k, v FROM t [RANGE 3])",
                "(k, v) NOT IN (SELECT k, v FROM t [ROWS 3])",
                "(v, k) NOT IN (SELECT u.v, u.k FROM t [RANGE 3] AS u WHERE u.k >= q.k)",
                "((k, v) IN (SELECT k, v FROM t [ROWS 3])) = false",
                "(k, v, v, k) NOT IN (SELECT v, v, k, k FROM t [ROWS 3])",
                "((k, v, ts, 1) IN (SELECT u.k, u.v, u.k, 1 FROM t [RANGE 3] AS u WHERE u.k <= q.v)) = false",
            ]
        ),
    )
    parts = st.builds(
        "SELECT k, {} AS v FROM (SELECT k, v, named_struct('a', k, 'b', named_struct('c', v)) AS r,"
        " array(k, v) AS l, map('x', k, 'X', v) AS m FROM {}) AS q".format,
        st.sampled_from(
            [
                "(SELECT COUNT(*) FROM t [RANGE 3] AS u WHERE u.k = q.r.a AND u.v < r.b.c)",
                "(SELECT MAX(u.v) FROM t [RANGE 3] AS u WHERE u.k + q.l[0] <> l[1])",
                "(SELECT SUM(u.v) FROM t [RANGE 3] AS u WHERE u.k = q.m['x'] AND u.v = m['X'])",
            ]
        ),
        leaf,
    )
    by_queries = st.builds(
        "SELECT COUNT(*) AS k, SUM(v) AS v FROM {} AS q GROUP BY {}".format,
        leaf,
        st.sampled_from(
            [
                "(SELECT MAX(u.v) FROM t [RANGE 3] AS u WHERE u.k = q.k)",
                "EXISTS (SELECT 1 FROM t [RANGE 3] AS u WHERE u.k = q.k), k",
                "v IN (SELECT v FROM t [ROWS 2])",
                "k + (SELECT COUNT(*) FROM t [RANGE 3])",
            ]
        ),
    )
    qualified = st.builds(
        "SELECT k, v FROM {} AS q QUALIFY {}".format,
        leaf,
        st.sampled_from(
            [
                "RANK() OVER (PARTITION BY k ORDER BY v) <= (SELECT COUNT(*) FROM t [RANGE 3])",
                "COUNT(*) OVER (PARTITION BY k) IN (SELECT v FROM t [ROWS 2])",
                "COUNT(*) OVER () > 1 AND EXISTS (SELECT 1 FROM t [RANGE 3] AS u WHERE u.k = q.k)",
                "SUM(v) OVER (PARTITION BY (SELECT MAX(u.v) FROM t [ROWS 2] AS u WHERE u.k = q.k)) > 1",
            ]
        ),
    )
    half = st.builds(
        "SELECT k, v FROM {} AS a LEFT {} JOIN {} AS b ON {}".format,
        leaf,
        st.sampled_from(["SEMI", "ANTI"]),
        leaf,
        st.sampled_from(["a.k = b.k", "a.k = b.k AND a.v < b.v", "a.v > b.k"]),
    )
    framed = st.builds(
        "SELECT k, {} AS v FROM {}".format,
        st.sampled_from(
            [
                "SUM(v) OVER (PARTITION BY k)",
                "RANK() OVER (PARTITION BY k ORDER BY v)",
                "COUNT(*) OVER (ORDER BY ts)",
            ]
        ),
        leaf,
    )
    first = st.builds(
        "SELECT k, v FROM {} ORDER BY {} LIMIT 2".format, leaf, st.sampled_from(["k, v", "v DESC, k"])
    )
    base = st.one_of(
        plain, filtered, grouped, whole, distinct, joined, on, half, table, inner, asked, framed, first,
        parts, by_queries, qualified,
    )  # fmt: skip
    setting = st.sampled_from(["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
    combined = st.builds("({}) {} ({})".format, base, setting, base)
    named = st.builds("WITH r AS ({}) SELECT k, COUNT(*) AS v FROM r GROUP BY k".format, base)
    nested = st.builds("SELECT k, v FROM ({}) AS q WHERE v IS NOT NULL".format, base)
    return st.one_of(base, combined, named, nested)


def declare(session: Session, name: str, rows) -> None:
    table = pa.table(
        {
            "n": pa.array(range(len(rows)), pa.int64()),
            "ts": pa.array([row[0] for row in rows], pa.int64()),
            "k": pa.array([row[1] for row in rows], pa.int64()),
            "v": pa.array([row[2] for row in rows], pa.int64()),
        }
    )
    session.stream(name, table, rowtime="ts", unit="seconds", ptime="n")


def changes(session: Session, query: str) -> Counter:
    total: Counter = Counter()
    signs = {}
    for row in session.sql(query).changelog("diff").collect():
        *values, count, at = row
        values = [tuple(value) if isinstance(value, list) else value for value in values]
        assert count * signs.setdefault((at, tuple(values)), count) > 0, "changes are net"
        total[at, tuple(values)] += count
    return total


@law(10)
@given(entries, entries, relations())
@example(
    [],
    [(0, None, None), (6, None, None), (10, None, 0)],
    "SELECT k, v FROM (ISTREAM(SELECT k, v FROM t [RANGE 2 SLIDE 5])) [ROWS 1]",
)
@pytest.mark.usefixtures("interpreted")
def test_whole_logs_give_what_each_instant_gives(spark, s, t, query):
    names = pa.table({"k": pa.array([0, 1, 1], pa.int64()), "v": pa.array([5, 6, 6], pa.int64())})
    found = []
    for execution in ("batch", "reference"):
        session = Session(spark, execution=execution)
        session.register("names", names)
        declare(session, "s", s)
        declare(session, "t", t)
        found.append(changes(session, query))
    assert found[0] == found[1]
