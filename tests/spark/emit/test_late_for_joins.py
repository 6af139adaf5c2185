"""Rows that are late for a join by event time: no row retracts one that was complete."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from windrow import Memory, Session
from windrow.testing import Script

SELECTED = "SELECT s.ts, s.n AS n, t.n AS m FROM"
LEFT = f"{SELECTED} s LEFT JOIN t ON s.k = t.k AND t.ts BETWEEN s.ts - 1 AND s.ts + 2"
NONE = "SELECT ts, n FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND"
PAST = f"{SELECTED} s LEFT JOIN t ON s.k = t.k AND t.ts BETWEEN s.ts - 4 AND s.ts - 2"
RIGHT = f"{SELECTED} t RIGHT JOIN s ON t.k = s.k AND t.ts >= s.ts - 1 AND s.ts + 2 >= t.ts"
NEXT = f"{SELECTED} s FULL JOIN t ON s.k = t.k AND t.ts BETWEEN s.ts + 1 AND s.ts + 3"
ANTI = "SELECT ts, n FROM s LEFT ANTI JOIN t ON t.k = s.k AND t.ts - 1 <= (s.ts + 1) AND s.ts - 1 <= t.ts"
QUERIES = {
    "LEFT JOIN": (LEFT, -1, 2),
    "LEFT JOIN of the past": (PAST, -4, -2),
    "LEFT JOIN by time": (f"{SELECTED} s LEFT JOIN t ON s.k = t.k AND t.ts = s.ts", 0, 0),
    "RIGHT JOIN": (RIGHT, -1, 2),
    "FULL JOIN": (f"{SELECTED} s FULL JOIN t ON s.k = t.k AND t.ts BETWEEN s.ts - 1 AND s.ts + 2", -1, 2),
    "FULL JOIN of what follows": (NEXT, 1, 3),
    "FULL JOIN by time": (f"{SELECTED} s FULL JOIN t ON s.k = t.k AND t.ts = s.ts", 0, 0),
    "NOT EXISTS": (f"{NONE} t.ts BETWEEN s.ts - 1 AND s.ts + 2)", -1, 2),
    "NOT EXISTS by time": (f"{NONE} t.ts = s.ts)", 0, 0),
    "ANTI JOIN": (ANTI, -1, 2),
}
"""Joins, and how far the times of partners may be from a row's own: at least and at most."""


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


def expected(logs, name, low, high):
    """What remains by definition: a row at a time, with the watermark by the entries of earlier times."""
    is_anti, is_full = name.split()[0] in ("NOT", "ANTI"), name.startswith("FULL")

    def mark(rows, at):
        """The watermark of a log before a time: there is none before the first row that is not below it."""
        own, has_begun = None, False
        for when, ts, *_, upto in rows:
            if when < at:
                has_begun |= ts is not None and (own is None or ts >= own)
                own = own if upto is None else upto
        return own if has_begun else None

    def before(at):
        marks = [mark(rows, at) for rows in logs.values()]
        return -1 if None in marks else min(marks)

    def final(ts, is_left=True):
        """The watermark below which a row is not final: its own time is, and that of its last partner."""
        return max(ts, ts + high if is_left else ts - low)

    def late(ts, mark, is_left):
        """Whether a row was final as it came, and so were all of which it may be a partner."""
        of_others = max(final(at, not is_left) for at in range(ts - 9, ts + 9) if meet(ts, at, is_left))
        alone = is_left or is_full
        return (final(ts, is_left) < mark or not alone) and (of_others < mark or (is_left and not is_full))

    def meet(ts, at, is_left):
        return low <= (at - ts if is_left else ts - at) <= high

    left, right = ([(row, before(row[0])) for row in logs[name] if row[1] is not None] for name in ("s", "t"))
    found, partnerless = Counter(), {row[3] for row, mark in right if not late(row[1], mark, False)}
    for (_, ts, k, n, _), mark in left:
        if late(ts, mark, True):
            continue
        partners = [
            m
            for (_, other, key, m, _), its in right
            if key == k
            and meet(ts, other, True)
            and not late(other, its, False)
            and not final(ts) < its
            and not (is_full and final(other, False) < mark)
        ]
        partnerless -= {*partners}
        if not is_anti:
            found.update((ts, n, m) for m in partners or [None])
        elif not partners:
            found[ts, n] += 1
    if is_full:
        found.update((None, None, m) for m in partnerless)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_complete_rows_are_those_of_rows_on_time_for_them(spark, seed):
    session, entries = Session(spark), logs(seed)
    for name, rows in entries.items():
        columns = zip(("at", "ts", "k", "n", "upto"), zip(*rows, strict=True), strict=True)
        frame = spark.createDataFrame(pa.table({key: pa.array(one, pa.int64()) for key, one in columns}))
        session.stream(name, frame, rowtime="ts", unit="seconds", ptime="at", watermark="upto")
    for name, (query, low, high) in QUERIES.items():
        wanted = expected(entries, name, low, high)
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
        ("UTC", "s.ts - INTERVAL 2 DAYS", "s.ts - INTERVAL 1 DAY", True),
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
