"""Random joins of files with small tables are in tasks what they are in Spark."""

from __future__ import annotations

import datetime as dt
import tempfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windrow import Session
from windrow.spark.scan.file_scan import READ_SETTING

READS = "the Parquet files, in the tasks themselves"
KEYS = {
    "s": (pa.string(), ["a", "b", "", "ä"]),
    "i": (pa.int32(), [-1, 0, 1, 2]),
    "l": (pa.int64(), [-(2**40), 0, 2**40]),
    "d": (pa.date32(), [dt.date(2020, 1, 1), dt.date(1950, 1, 2)]),
    "t": (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 1, hour, tzinfo=dt.UTC) for hour in range(3)]),
    "m": (pa.decimal128(10, 2), [Decimal(0), Decimal("0.25"), Decimal("7.50")]),
    "b": (pa.bool_(), [True, False]),
    "f": (pa.float64(), [0.0, -0.0, float("nan"), 1.5]),
}
ROWS = st.fixed_dictionaries({key: st.none() | st.sampled_from(values) for key, (_, values) in KEYS.items()})
TABLES = st.tuples(st.lists(ROWS, max_size=40), st.lists(ROWS, max_size=7))
KINDS = st.sampled_from(["big x JOIN small y", "big x LEFT JOIN small y", "small y RIGHT JOIN big x"])
MORE = st.sampled_from(["", " AND x.i < y.i", " AND x.s = y.s", " AND x.l <= y.l", " AND y.n > 1"])
CHOSEN = st.sampled_from(
    ["", " WHERE y.n > 1", " WHERE y.n IS NULL", " WHERE x.i IS NOT NULL AND y.s <> 'a'",
     " WHERE coalesce(y.i, 0) + x.i > 0"]
)  # fmt: skip
QUERIES = st.builds(
    lambda kind, key, more, chosen, partition: f"""
        SELECT f.n, f.yn, f.ys, f.yd, COUNT(w) AS c, SUM(w.n) AS total
        FROM (
            SELECT x.s, x.i, x.d, x.n, y.n AS yn, y.s AS ys, y.d AS yd
            FROM {kind} ON x.{key} = y.{key}{more}{chosen})
        WINDOW BY w AS (
            TYPE SLIDING PARTITION BY {partition} ORDER BY n, yn START AS f AT fp END AT ep WHEN ep - fp = 2)
        """,
    KINDS, st.sampled_from([*KEYS]), MORE, CHOSEN, st.sampled_from(["s", "i", "ys", "yd"]),
)  # fmt: skip


def written(rows, path, size):
    columns = {key: pa.array([row[key] for row in rows], kind) for key, (kind, _) in KEYS.items()}
    pq.write_table(pa.table({**columns, "n": pa.array(range(len(rows)))}), path, row_group_size=size)


@pytest.fixture(scope="module")
def session(spark):
    return Session(spark)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TABLES, st.lists(QUERIES, min_size=1, max_size=3), st.sampled_from([7, 100]))
def test_random_joins_are_those_of_spark(session, conf, tables, queries, size):
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in zip(("big", "small"), tables, strict=True):
            written(rows, Path(folder) / f"{name}.parquet", size)
            session.register(name, Path(folder) / f"{name}.parquet")
        for query in queries:
            conf(READ_SETTING, "true")
            found = sorted(map(str, session.sql(query).df.collect()))
            conf(READ_SETTING, "false")
            by_spark = session.sql(query)
            assert READS not in by_spark.plan()
            assert found == sorted(map(str, by_spark.df.collect()))
