"""Rows that are late for a join within an interval: no row retracts one that was complete."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from windrow import Memory, Session
from windrow.testing import Script

LEFT = (
    "SELECT s.ts, s.n AS n, t.n AS m FROM s LEFT JOIN t ON s.k = t.k AND t.ts BETWEEN s.ts - 1 AND s.ts + 2"
)
QUERIES = {
    "LEFT JOIN": LEFT,
    "RIGHT JOIN": "SELECT s.ts, s.n AS n, t.n AS m FROM t RIGHT JOIN s ON t.k = s.k AND t.ts >= s.ts - 1"
    " AND s.ts + 2 >= t.ts",
    "FULL JOIN": "SELECT s.ts, s.n AS n, t.n AS m FROM s FULL JOIN t ON s.k = t.k AND t.ts BETWEEN s.ts - 1"
    " AND s.ts + 2",
    "NOT EXISTS": "SELECT ts, n FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.ts BETWEEN"
    " s.ts - 1 AND s.ts + 2)",
    "ANTI JOIN": "SELECT ts, n FROM s LEFT ANTI JOIN t ON t.k = s.k AND t.ts - 1 <= (s.ts + 1)"
    " AND s.ts - 1 <= t.ts",
}


def logs(seed):
    """Two logs with a watermark, below which rows come."""
    chance, found = random.Random(seed), {}
    for name in ("s", "t"):
        rows, mark = [], 0
        for at in range(1, 40):
            if chance.random() < 0.4:
                mark += chance.randrange(4)
                rows.append((at, None, None, None, mark))
            else:
                rows.append((at, max(0, mark + chance.randrange(-6, 6)), chance.randrange(3), at, None))
        found[name] = [*rows, (40, None, None, None, 1000)]
    return found


def expected(logs, name):
    """What remains by definition: a row at a time, with the watermark by the entries of earlier times."""
    is_anti, is_full = name in ("NOT EXISTS", "ANTI JOIN"), name == "FULL JOIN"

    def before(at):
        marks = [
            [upto for when, *_, upto in rows if upto is not None and when < at] for rows in logs.values()
        ]
        return min(one[-1] for one in marks) if all(marks) else -1

    left, right = ([(row, before(row[0])) for row in logs[name] if row[1] is not None] for name in ("s", "t"))
    found = Counter()
    lone = Counter(m for (_, ts, _, m, _), mark in right if not ts + 1 < mark or not ts + 3 < mark)
    for (_, ts, k, n, _), mark in left:
        if ts + 2 < mark and (ts + 3 < mark or not is_full):
            continue
        partners = [
            m
            for (_, other, key, m, _), its in right
            if key == k
            and ts - 1 <= other <= ts + 2
            and not ts + 2 < its
            and not (is_full and other + 1 < mark)
        ]
        lone -= Counter(set(partners))
        if not is_anti:
            found.update((ts, n, m) for m in partners or [None])
        elif not partners:
            found[ts, n] += 1
    return found + Counter({(None, None, m): 1 for m in +lone}) if is_full else found


@pytest.mark.parametrize("seed", range(4))
def test_the_complete_rows_are_those_of_rows_on_time_for_them(spark, seed):
    session, entries = Session(spark), logs(seed)
    for name, rows in entries.items():
        columns = zip(("at", "ts", "k", "n", "upto"), zip(*rows, strict=True), strict=True)
        frame = spark.createDataFrame(pa.table({key: pa.array(one, pa.int64()) for key, one in columns}))
        session.stream(name, frame, rowtime="ts", unit="seconds", ptime="at", watermark="upto")
    for name, query in QUERIES.items():
        wanted = expected(entries, name)
        changes = session.sql(f"{query} EMIT STREAM AFTER WATERMARK").collect()
        assert Counter(tuple(row)[:-3] for row in changes) == wanted, name
        assert not any(row["undo"] for row in changes), name


def test_a_late_row_goes_to_the_side_output_and_the_state_is_bounded(spark):
    script = Script(Session(spark))
    for name in ("s", "t"):
        script.stream(name, "ts BIGINT, k BIGINT, n BIGINT", rowtime="ts", unit="seconds", lag=0)
    for ts in range(0, 400, 4):
        script.rows("s", (ts, 1, ts))
        script.rows("t", (ts + 1, 1, ts))
    script.rows("t", (50, 1, -1), (400, 1, 400))
    script.rows("s", (400, 1, 400), (60, 1, -1))
    query = f"{LEFT} EMIT STREAM AFTER WATERMARK"
    played = script.play(query, cuts=range(1, 203), ends=False)
    assert {row["row"]: row["bound"] for row in played.late} == {
        '{"ts":50,"k":1,"n":-1}': "396",
        '{"ts":60,"k":1,"n":-1}': "400",
    }
    assert played.progress["rows_in_windows"] < 20
    assert "rows until the watermark has passed the interval" in script.session.sql(query).plan()
    assert "unbounded" not in script.session.sql(query).plan()
    script.session.sql(query).start(Memory(), on_unbounded="error").stop()


@pytest.mark.parametrize(
    ("zone", "first", "last", "is_bounded"),
    [
        ("UTC", "s.ts - INTERVAL 1 DAY", "s.ts + INTERVAL '1 02:00' DAY TO MINUTE", True),
        ("UTC", "s.ts - INTERVAL 1 MONTH", "s.ts + INTERVAL 1 DAY", False),
        ("UTC", "s.ts + INTERVAL 1 DAY", "s.ts - INTERVAL 1 DAY", False),
        ("UTC", "s.ts + INTERVAL '-1' DAY", "s.ts", False),
        ("Europe/Berlin", "s.ts - INTERVAL 1 DAY", "s.ts", False),
        ("Europe/Berlin", "s.ts - INTERVAL 24 HOURS", "s.ts", True),
    ],
)
def test_the_interval_is_one_of_lengths_that_can_be_undone(spark, tmp_path, zone, first, last, is_bounded):
    session = Session(spark)
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for name in ("s", "t"):
            arriving = spark.readStream.schema("ts TIMESTAMP, k BIGINT").parquet(str(tmp_path))
            session.stream(name, arriving, rowtime="ts", lag="1 second")
        plan = session.sql(
            f"SELECT s.k FROM s LEFT JOIN t ON s.k = t.k AND t.ts BETWEEN {first} AND {last}"
            " EMIT STREAM AFTER WATERMARK"
        ).plan()
        assert ("rows until the watermark has passed the interval" in plan) == is_bounded
        assert ("unbounded" in plan) == (not is_bounded)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
