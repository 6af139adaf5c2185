"""Queries in memory give what the operators of recorded streams give, for values of every type."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from windrow import Memory, Session
from windrow.spark.live.hosts import micro_batches_of

SCHEMA = (
    "ts TIMESTAMP, d DATE, c DECIMAL(10, 2), b BOOLEAN, x BINARY, f DOUBLE, g FLOAT, s STRING, i INT,"
    " n TIMESTAMP_NTZ, a ARRAY<INT>, t STRUCT<x INT, y STRING>, m INTERVAL DAY TO SECOND"
)
BEGIN = datetime(2026, 3, 29, 0, 30)
CUTS = (5, 9, 14)


def row(k):
    return (
        BEGIN + timedelta(minutes=10 * k),
        date(2026, 3, 28 + k % 2),
        Decimal(k) / 4 if k % 5 else None,
        k % 3 == 0 if k % 4 else None,
        bytes([k % 3]),
        [0.0, -0.0, float("nan"), None, 1.5][k % 5],
        [0.5, float("nan"), None][k % 3],
        ["a", "b", None][k % 3],
        k % 4,
        BEGIN + timedelta(minutes=7 * k),
        [k % 2],
        (k % 2, "q"),
        timedelta(minutes=k),
    )


@pytest.mark.sampled
@pytest.mark.parametrize(
    "query",
    [
        "SELECT d, f, COUNT(*) AS n, SUM(c) AS c, AVG(f) AS y, MAX(ts) AS t"
        " FROM o [RANGE 30 MINUTES] GROUP BY d, f",
        "SELECT b, x, MIN(n) AS n, SUM(m) AS m FROM o [ROWS 5] WHERE i < 3 GROUP BY b, x",
        "SELECT upper(s) AS u, g, SUM(i * 2) AS v"
        " FROM o [RANGE 25 MINUTES SLIDE 10 MINUTES] GROUP BY upper(s), g",
        "SELECT o.s, p.i, o.ts, p.n FROM o [RANGE 20 MINUTES] JOIN p [ROWS 3] ON o.f = p.f AND o.d = p.d",
        "SELECT a, t, m, s, n FROM o [RANGE 30 MINUTES] WHERE ts > TIMESTAMP '2026-03-29 01:00:00'",
    ],
)
@pytest.mark.usefixtures("interpreted")
def test_values_of_every_type(spark, tmp_path, query):
    recorded = spark.createDataFrame([row(k) for k in range(CUTS[-1])], SCHEMA)
    recorded.write.parquet(str(tmp_path / "rows"))
    session = Session(spark)
    for name in ("o", "p"):
        session.stream(name, spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "rows")), rowtime="ts")
    plan, sink = session.sql(query)._live, Memory()
    steps = micro_batches_of(plan, sink, tmp_path / "checkpoint", "diff", "keep")
    for number, (low, high) in enumerate(zip((0, *CUTS), CUTS, strict=False)):
        part = spark.createDataFrame([row(k) for k in range(low, high)], SCHEMA)
        frames = {name: part.select(*stream.live.columns) for _, name, stream in steps.streams()}
        steps.take(steps.input(frames), number)
    steps.close()
    judge, live = Session(spark), list(sink.batches.values())
    for name in ("o", "p"):
        judge.stream(name, recorded, rowtime="ts")
    whole = judge.sql(query).changelog("diff").to_arrow()
    assert kinds(live) == kinds([whole])
    assert added(live) == added([whole])
    assert added(live)


def added(tables):
    """What changes before the last row, as text: in it are NaN, lists and structs."""
    found = Counter()
    for change in (change for table in tables for change in table.to_pylist()):
        diff = change.pop("_diff")
        if change["_at"].replace(tzinfo=None) < row(CUTS[-1] - 1)[0].replace(tzinfo=None):
            found[str(change)] += diff
    return found


def kinds(tables):
    return {(*table.schema.names, *map(str, table.schema.types)) for table in tables}
