"""What AFTER WATERMARK tells stays, where nothing is late, and is all in the end."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from windrow import AnalysisError, NotSupportedError, Session

TUMBLED = "(SELECT * FROM TUMBLE(TABLE {0}, DESCRIPTOR(ts), 4))"
ENDS = (
    "(SELECT wend, k, COUNT(*) AS n, MAX(v) AS v FROM TUMBLE(TABLE {0} , DESCRIPTOR(ts), 4) GROUP BY wend, k)"
)
S, T = ENDS.format("s"), ENDS.format("t")
ROWS, OTHERS = TUMBLED.format("s"), TUMBLED.format("t")

WHOLE = {
    "rows": "SELECT ts, k, v FROM s WHERE v > 1",
    "a join of rows by any key": "SELECT s.ts, t.ts AS u, s.k FROM s JOIN t ON s.k = t.k AND s.v < t.v",
    "a semi join": "SELECT s.ts, s.k, s.v FROM s LEFT SEMI JOIN t ON s.k = t.k",
    "EXISTS": "SELECT ts, k FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.v > s.v)",
    "IN": "SELECT ts, k FROM s WHERE k IN (SELECT k FROM t) AND v > 0",
    "groups by the ends of both": f"SELECT a.wend, b.wend AS w, COUNT(*) AS n FROM {ROWS} AS a JOIN "
    f"{OTHERS} AS b "
    "ON a.k = b.k GROUP BY a.wend, b.wend",
    "groups of a join by USING": f"SELECT wend, SUM(a.n + b.n) AS n FROM {S} AS a JOIN {T} AS b USING (wend) "
    "GROUP BY wend",
    "groups of a NATURAL join": f"SELECT wend, COUNT(*) AS n FROM {ROWS} AS a NATURAL JOIN (SELECT wend, k "
    f"FROM {OTHERS}) AS b GROUP BY wend",
    "groups without a partner": f"SELECT a.wend, a.k, b.n FROM {S} AS a LEFT JOIN {T} AS b "
    "ON a.wend = b.wend AND a.k = b.k",
    "partners of groups": f"SELECT b.wend, b.k, a.n FROM {S} AS a RIGHT JOIN {T} AS b "
    "ON a.wend = b.wend AND a.k = b.k",
    "groups of either": f"SELECT a.wend, b.wend AS w, a.n, b.n AS m FROM {S} AS a FULL JOIN {T} AS b "
    "ON a.wend = b.wend AND a.k = b.k",
    "groups of what may lack a partner": f"SELECT a.wend, COUNT(b.n) AS n FROM {S} AS a LEFT JOIN {T} AS b "
    "ON a.wend = b.wend GROUP BY a.wend",
    "rows that may lack a partner, told apart": f"SELECT DISTINCT a.wend, b.n FROM {S} AS a LEFT JOIN {T} "
    f"AS b "
    "ON a.wend = b.wend",
    "an anti join of groups": f"SELECT a.wend, a.k, a.n FROM {S} AS a LEFT ANTI JOIN {T} AS b "
    "ON a.wend = b.wend AND a.k = b.k",
    "NOT EXISTS at the same time": "SELECT ts, k, v FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.ts = "
    "s.ts)",
    "groups of what has no equal": "SELECT ts, COUNT(*) AS n FROM s WHERE NOT EXISTS (SELECT 1 FROM t "
    "WHERE t.ts = s.ts AND t.k = s.k) GROUP BY ts",
    "groups of what has an equal": "SELECT ts, COUNT(*) AS n FROM s WHERE ts IN (SELECT ts FROM t) GROUP "
    "BY ts",
    "ranks of windows": "SELECT wend, k, v, RANK() OVER (PARTITION BY wend ORDER BY v DESC, k, ts) AS place "
    f"FROM {ROWS}",
    "ranks of windows that leave their end out": "SELECT k, v, RANK() OVER (PARTITION BY wend ORDER BY v, "
    "k, ts) AS p "
    f"FROM {ROWS}",
    "first ranks of groups": f"SELECT * FROM (SELECT wend, k, n, RANK() OVER (PARTITION BY wend ORDER BY "
    f"n DESC) AS p "
    f"FROM {S}) WHERE p = 1",
    "ranks beside groups": "SELECT wend, k, RANK() OVER (PARTITION BY wend ORDER BY SUM(v)) AS p FROM "
    f"{ROWS} GROUP BY wend, k",
    "sums in order of time": "SELECT ts, k, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS v FROM s",
    "groups of rows in order of time": "SELECT ts, MAX(place) AS place FROM (SELECT ts, ROW_NUMBER() OVER "
    "(PARTITION BY k ORDER BY ts, v) AS place FROM s) GROUP BY ts",
    "the first in time": "SELECT ts, k, v FROM s ORDER BY ts, k, v LIMIT 3",
    "sessions": "SELECT k, ts, wstart, wend FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), 2)",
    "groups of sessions": "SELECT k, wend, COUNT(*) AS n FROM SESSION(TABLE s PARTITION BY k, "
    "DESCRIPTOR(ts), 2) "
    "GROUP BY k, wend",
    "windows over groups": "SELECT wend, SUM(n) AS n FROM TUMBLE(TABLE (SELECT ts, COUNT(*) AS n FROM s "
    "GROUP BY ts), "
    "DESCRIPTOR(ts), 6) GROUP BY wend",
    "windows over a join": "SELECT wend, COUNT(*) AS n FROM TUMBLE(TABLE (SELECT s.ts, t.k FROM s JOIN t "
    "ON s.ts = t.ts), DESCRIPTOR(ts), 6) GROUP BY wend",
    "of both": f"SELECT wend, k FROM {S} INTERSECT SELECT wend, k FROM {T}",
    "of the one alone": f"SELECT wend, k FROM {S} EXCEPT SELECT wend, k FROM {T}",
    "of either": f"SELECT wend, n FROM {S} UNION ALL SELECT wend, n FROM {T}",
    "groups of both": "SELECT ts, COUNT(*) AS n FROM (SELECT ts FROM s UNION ALL SELECT ts FROM t) GROUP "
    "BY ts",
}
"""Queries that are told wholly, when the watermark is past everything."""

WHOLE |= {
    "rows of windows with or without a partner": f"SELECT a.ts, a.k, b.v FROM {ROWS} AS a LEFT JOIN "
    f"{OTHERS} AS b "
    "ON a.wend = b.wend AND a.k = b.k",
    "rows of windows that have no equal": f"SELECT a.ts, a.k FROM {ROWS} AS a LEFT ANTI JOIN {OTHERS} AS b "
    "ON a.wend = b.wend AND a.k = b.k",
    "groups of groups that have no equal": f"SELECT wend, COUNT(*) AS n FROM {S} AS a LEFT ANTI JOIN {T} "
    f"AS b "
    "ON a.wend = b.wend AND a.k = b.k GROUP BY wend",
    "two keys of one name": f"SELECT x, y, SUM(n) AS n FROM (SELECT a.wend AS x, b.wend AS y, a.k, "
    f"COUNT(*) AS n "
    f"FROM {ROWS} AS a JOIN {OTHERS} AS b ON a.k = b.k GROUP BY a.wend, b.wend, a.k) GROUP BY x, y",
    "rows without a partner within an interval": "SELECT s.ts, s.k, t.v FROM s LEFT JOIN t ON s.k = t.k AND "
    "t.ts BETWEEN s.ts AND s.ts + 3",
    "rows of either side within an interval": "SELECT s.k, s.v, t.v AS w FROM s FULL JOIN t ON s.k = t.k AND "
    "t.ts - 2 <= s.ts AND s.ts < t.ts + 1",
    "rows that have none before them": "SELECT t.k, t.v FROM s RIGHT JOIN t ON s.k = t.k AND s.ts <= t.ts "
    "WHERE s.k IS NULL",
    "rows that no other follows in time": "SELECT k, v FROM s AS a LEFT ANTI JOIN t ON (a.k = t.k AND "
    "t.ts >= a.ts AND (a.ts + 3) > t.ts)",
    "NOT EXISTS within an interval": "SELECT k FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND "
    "t.ts BETWEEN s.ts AND s.ts + 3)",
    "NOT IN of the time": "SELECT ts, k FROM s WHERE ts NOT IN (SELECT ts FROM t)",
    "an anti join within an interval": "SELECT s.ts, s.k FROM s LEFT ANTI JOIN t ON t.k = s.k AND "
    "t.ts BETWEEN s.ts AND s.ts + 3",
    "the first by the place of the time": "SELECT ts, k, v FROM s ORDER BY 1, 2, 3 LIMIT 3",
}

PARTLY = {
    "rows without a partner": "SELECT s.ts, s.k, t.v FROM s LEFT JOIN t ON s.k = t.k",
    "rows of either": "SELECT s.ts, t.ts AS u, s.k FROM s FULL JOIN t ON s.k = t.k",
    "groups with or without": f"SELECT a.wend, b.wend AS w, COUNT(*) AS n FROM {S} AS a LEFT JOIN {T} AS b "
    "ON a.k = b.k GROUP BY a.wend, b.wend",
}
"""Of which rows that have no partner are never told: one may always come."""

NEVER = {
    "an anti join by a key": "SELECT s.ts, s.k, s.v FROM s LEFT ANTI JOIN t ON s.k = t.k",
    "NOT EXISTS": "SELECT ts, k FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k)",
    "NOT IN": "SELECT ts, k FROM s WHERE k NOT IN (SELECT k FROM t)",
    "EXISTS or not": "SELECT ts, k FROM s WHERE v > 3 OR EXISTS (SELECT 1 FROM t WHERE t.k = s.k)",
    "EXISTS of groups": "SELECT ts, k FROM s WHERE EXISTS (SELECT 1 FROM (SELECT k, ts, COUNT(*) AS n FROM t "
    "GROUP BY k, ts) AS g WHERE g.k = s.k AND n = 1)",
    "EXISTS in the list": "SELECT ts, k, EXISTS (SELECT 1 FROM t WHERE t.k = s.k) AS e FROM s",
    "groups of rows that have a partner": "SELECT ts, COUNT(*) AS n FROM s WHERE k IN (SELECT k FROM t) "
    "GROUP BY ts",
    "groups of one side": f"SELECT a.wend, COUNT(*) AS n FROM {ROWS} AS a JOIN {OTHERS} AS b ON a.k = b.k "
    "GROUP BY a.wend",
    "groups of one side that may lack the other": f"SELECT a.wend, COUNT(b.k) AS n FROM {S} AS a LEFT "
    f"JOIN {T} AS b "
    "ON a.k = b.k GROUP BY a.wend",
    "told apart": f"SELECT DISTINCT a.wend, b.k FROM {S} AS a LEFT JOIN {T} AS b ON a.k = b.k",
    "ranks by a key": "SELECT ts, k, v, RANK() OVER (PARTITION BY k ORDER BY v DESC) AS p FROM s",
    "ranks by a key of windows": f"SELECT wend, k, RANK() OVER (PARTITION BY k ORDER BY n DESC) AS p FROM "
    f"{S}",
    "a rank above a join": f"SELECT a.wend, a.k, RANK() OVER (ORDER BY a.n) AS p FROM {S} AS a JOIN {T} AS b "
    "ON a.wend = b.wend AND a.k = b.k",
    "the next in time": "SELECT ts, k, LEAD(v) OVER (PARTITION BY k ORDER BY ts) AS v FROM s",
    "the last in time": "SELECT ts, k, SUM(v) OVER (PARTITION BY k ORDER BY ts DESC) AS v FROM s",
    "a rank by windows and one by keys": "SELECT wend, RANK() OVER (PARTITION BY wend ORDER BY v) AS p, "
    f"RANK() OVER (PARTITION BY k ORDER BY v) AS q FROM {ROWS}",
    "the most": "SELECT ts, k, v FROM s ORDER BY v DESC LIMIT 2",
    "groups of the most": "SELECT ts, COUNT(*) AS n FROM (SELECT ts, v FROM s ORDER BY v DESC LIMIT 4) "
    "GROUP BY ts",
    "groups by time of ranks by price": "SELECT ts, COUNT(*) AS n FROM (SELECT ts, RANK() OVER (PARTITION "
    "BY k "
    "ORDER BY v) AS p FROM s) WHERE p = 1 GROUP BY ts",
    "groups by the time of rows of sessions": "SELECT ts, MAX(wend) AS w FROM SESSION(TABLE s PARTITION "
    "BY k, "
    "DESCRIPTOR(ts), 2) GROUP BY ts",
    "a window that has another": f"SELECT a.wend, COUNT(*) AS n FROM {S} AS a LEFT ANTI JOIN {T} AS b ON "
    f"a.k = b.k "
    "GROUP BY a.wend",
    "but for keys": f"SELECT wend, k FROM {S} AS a WHERE k NOT IN (SELECT k FROM t)",
}
"""Of which no time tells when a row stays."""


HOPS = (
    "HOP(TABLE (SELECT ts, k, v, wend AS w1 FROM HOP(TABLE s, DESCRIPTOR(ts), 2, 6)), DESCRIPTOR(ts), 2, 6)"
)
NEVER |= {
    "NOT EXISTS of what comes after an instant": "SELECT k FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE "
    "t.k = s.k AND t.ts >= s.ts)",
    "NOT EXISTS up to the time of its own rows": "SELECT k FROM s WHERE NOT EXISTS (SELECT 1 FROM (SELECT k, "
    "ts, v AS late FROM t) AS t WHERE t.k = s.k AND ts <= late)",
    "a column inside that has the name of one outside": "SELECT ts, k FROM s WHERE NOT EXISTS (SELECT 1 FROM "
    "(SELECT ts AS u, k + 10 AS ts FROM t) AS x WHERE u = ts)",
    "a relation inside that has the name of one outside": "SELECT ts, k FROM s WHERE NOT EXISTS (SELECT 1 "
    "FROM "
    "(SELECT ts AS u, k + 10 AS ts FROM t) AS s WHERE s.u = s.ts)",
    "columns that USING moves": f"SELECT * FROM (SELECT k, wend, n FROM {S}) AS a JOIN (SELECT v, wend "
    f"FROM {T}) AS b "
    f"USING (wend) UNION ALL SELECT k, wend, n, v FROM {S}",
    "windows over windows": "SELECT DISTINCT wend, k, p FROM (SELECT wend, k, RANK() OVER (PARTITION BY w1 "
    f"ORDER BY v) AS p FROM {HOPS})",
    "groups by one of two windows": f"SELECT a.wend, COUNT(*) AS n FROM {HOPS} AS a JOIN (SELECT * FROM "
    "HOP(TABLE t, DESCRIPTOR(ts), 2, 6)) AS b ON a.w1 = b.wend GROUP BY a.wend",
}

# a time would tell, as it does of NOT EXISTS within an interval: docs/limits.md
NEVER |= {
    "how many follow": "SELECT ts, k, (SELECT COUNT(*) FROM t WHERE t.k = s.k AND t.ts <= s.ts + 3) "
    "AS n FROM s",
    "a key that a subquery computes": f"SELECT wend, COUNT(*) AS n FROM {S} GROUP BY wend, k IN (SELECT k "
    f"FROM t)",
}

UNREAD = {
    "an order that a subquery computes": "SELECT ts, v FROM s ORDER BY ts, v * (SELECT MIN(ts) FROM t) "
    "LIMIT 3",
}


def streams(spark, seed, seconds=None):
    """A session with two streams over logs in which nothing is late, and all is past in the end.

    Rowtimes are integers, or times: so many seconds for each.
    """
    chance, session = random.Random(seed), Session(spark)
    for name, keys in (("s", 5), ("t", 4)):
        rows, mark = [], 0
        for at in range(1, 40):
            if chance.random() < 0.3:
                mark = min(mark + chance.randrange(4), 22)
                rows.append((at, None, None, None, mark))
            else:
                rows.append(
                    (at, mark + chance.randrange(6), chance.randrange(keys), chance.randrange(6), None)
                )
        rows.append((40, None, None, None, 1000))
        columns = zip(("at", "ts", "k", "v", "upto"), zip(*rows, strict=True), strict=True)
        table = pa.table({key: pa.array(column, pa.int64()) for key, column in columns})
        frame = spark.createDataFrame(table)
        if seconds is not None:
            moments = {key: F.timestamp_seconds(F.col(key) * seconds) for key in ("ts", "upto")}
            frame = frame.withColumns(moments)
        unit = "seconds" if seconds is None else None
        session.stream(name, frame, rowtime="ts", unit=unit, ptime="at", watermark="upto")
    return session


@pytest.fixture(scope="module")
def session(spark):
    session = streams(spark, 1)
    yield session
    for name in ("s", "t"):
        session.sql(f"DROP STREAM {name}")


def told(session, query):
    """What is told, whether anything is taken back, and the table in the end."""
    changes = session.sql(f"{query} EMIT STREAM AFTER WATERMARK").to_arrow()
    names = [name for name in changes.column_names if name not in ("undo", "ptime", "ver")]
    rows, table = (each.select(names).to_pylist() for each in (changes, session.sql(query).to_arrow()))
    return Counter(map(repr, rows)), any(changes["undo"].to_pylist()), Counter(map(repr, table))


@pytest.mark.sampled
@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in WHOLE.items()])
def test_what_is_told_stays_and_is_all_in_the_end(session, query):
    rows, takes_back, table = told(session, query)
    assert rows
    assert not takes_back
    assert rows == table


TEN_MINUTES = "t.ts BETWEEN s.ts AND s.ts + INTERVAL 10 MINUTES"
OF_TIMES = {
    "LEFT JOIN": f"SELECT s.ts, s.k, t.v FROM s LEFT JOIN t ON s.k = t.k AND {TEN_MINUTES}",
    "LEFT ANTI JOIN": f"SELECT s.ts, s.k FROM s LEFT ANTI JOIN t ON s.k = t.k AND {TEN_MINUTES}",
    "NOT EXISTS": f"SELECT ts, k FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND {TEN_MINUTES})",
}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in OF_TIMES.items()])
def test_what_is_told_within_an_interval_of_times_stays_and_is_all_in_the_end(spark, query):
    rows, takes_back, table = told(streams(spark.newSession(), 1, seconds=200), query)
    assert rows
    assert not takes_back
    assert rows == table


@pytest.mark.sampled
@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in PARTLY.items()])
def test_what_is_told_stays_where_partners_may_always_come(session, query):
    rows, takes_back, table = told(session, query)
    assert rows
    assert not takes_back
    assert not rows - table
    assert table - rows


@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in NEVER.items()])
def test_what_no_time_ends_is_refused(session, query):
    with pytest.raises(AnalysisError) as error:
        session.sql(f"{query} EMIT STREAM AFTER WATERMARK")
    assert error.value.condition in ("NEVER_COMPLETE", "GROUP_WITHOUT_EVENT_TIME")
    assert error.value.hint


@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in UNREAD.items()])
def test_what_has_no_plan_is_refused(session, query):
    with pytest.raises(NotSupportedError, match="a subquery in an expression") as error:
        session.sql(f"{query} EMIT STREAM AFTER WATERMARK")
    assert error.value.condition == "UNSUPPORTED_QUERY"
