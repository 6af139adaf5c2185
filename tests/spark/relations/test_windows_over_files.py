"""The last rows of each key, of Parquet files: tasks read them, and rows leave as by Spark's OVER."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow import Session
from windrow.errors import WindrowError
from windrow.spark.relations import stream_windows
from windrow.spark.scan.file_scan import READ_SETTING

ROWS = 400
TIMES = {
    "BIGINT": lambda at: at,
    "DATE": lambda at: dt.date(1969, 6, 1) + dt.timedelta(at),
    "TIMESTAMP_NTZ": lambda at: dt.datetime(2001, 1, 1) + dt.timedelta(hours=at),
    "TIMESTAMP": lambda at: dt.datetime(2001, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=at),
}
LAST = [
    "SELECT k, at, v FROM s [PARTITION BY k ROWS 3]",
    "SELECT * FROM s [PARTITION BY k ROWS 2 RANGE 30 DAYS]",
    "SELECT k, v FROM s [PARTITION BY k ROWS 4 RANGE 40 DAYS SLIDE 8 DAYS] WHERE v > 3",
    "SELECT k, SUM(v) AS total FROM s [PARTITION BY k ROWS 5] GROUP BY k",
]


@pytest.fixture
def answers(spark, conf, tmp_path, monkeypatch):
    """Whether tasks read the file of a query, after its answer is compared with that of Spark's rows."""
    monkeypatch.setattr(stream_windows, "_MANY", 0)
    conf("spark.sql.session.timeZone", "UTC")
    session = Session(spark)

    def ask(query, kind, missing=()):
        times = [None if at in missing else TIMES[kind]((at * 7919) % ROWS) for at in range(ROWS)]
        rows = {
            "k": [None if at // 40 == 4 else f"k{at // 40}" for at in range(ROWS)],
            "at": times,
            "v": [(at * 31) % 17 for at in range(ROWS)],
        }
        pq.write_table(pa.table(rows), tmp_path / "rows.parquet", row_group_size=80)
        session.register("rows", tmp_path / "rows.parquet")
        session.sql("CREATE OR REPLACE STREAM s (ROWTIME at, k STRING, v BIGINT) FROM rows")
        found, by_tasks = [], []
        for reads in ("false", "true"):
            conf(READ_SETTING, reads)
            changes = session.sql(f"SELECT * FROM CHANGELOG OF ({query})")
            plan = changes.df._jdf.queryExecution().optimizedPlan().toString()
            by_tasks.append(plan.count("MapInArrow") - plan.count("Window ["))
            found.append(sorted(map(str, changes.collect())))
        assert found[0] == found[1]
        return by_tasks[1] - by_tasks[0]

    return ask


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("query", LAST)
def test_rows_of_files_leave_at_the_same_times(answers, query, kind):
    assert answers(query.replace("DAYS", "SECONDS" if kind == "BIGINT" else "DAYS"), kind)


def test_a_row_without_rowtime_is_an_error_whoever_reads_it(answers):
    with pytest.raises(WindrowError) as caught:
        answers(LAST[0], "DATE", missing=[7])
    assert caught.value.condition == "NULL_ROWTIME"
