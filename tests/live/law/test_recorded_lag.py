"""The lag of a recorded table: its watermark is that of the same rows, live."""

from __future__ import annotations

import pytest

from tests.live.emit_queries import OVER, counted, live, ptime
from windrow import AnalysisError, NotSupportedError, Session, WindrowError

pytestmark = pytest.mark.usefixtures("interpreted")

TIMES = [0, 3, 1, 6, 4, 9, 2, 5, 14, 11, 20]
ROWS = [("a", at, number % 2, number % 3, None) for number, at in enumerate(TIMES)]
QUERY = f"{OVER['tumbling windows']} EMIT STREAM AFTER WATERMARK"


def recorded(spark, **options):
    session = Session(spark.newSession())
    rows = [(ptime(number), *row[1:4], row[1] - 2) for number, row in enumerate(ROWS)]
    frame = session.spark.createDataFrame(rows, "at timestamp, ts bigint, k bigint, v bigint, upto bigint")
    frame.createOrReplaceTempView("came")
    frame = frame if "watermark" in options else frame.drop("upto")
    session.stream("s", frame, rowtime="ts", unit="seconds", ptime="at", **options)
    return session


def test_a_recorded_lag_is_the_live_one(spark, tmp_path):
    batches = [[row] for row in ROWS] + [[]]
    found, progress = live(spark, tmp_path, {"s": batches}, 2, {4}, QUERY)
    told = recorded(spark, lag=2).sql(QUERY)
    assert counted([told.to_arrow()]) == counted(found)
    assert counted(found)
    assert told.late.df.count() == progress["rows_late"] > 0


def test_a_lag_is_a_column_of_watermarks(spark):
    expected = counted([recorded(spark, watermark="upto").sql(QUERY).to_arrow()])
    session = recorded(spark)
    session.sql(
        "CREATE OR REPLACE STREAM r (ROWTIME ts BIGINT UNIT SECONDS, k BIGINT, v BIGINT, PTIME at TIMESTAMP)"
        " FROM came LAG 2 SECONDS"
    )
    assert counted([session.sql(QUERY.replace("TABLE s", "TABLE r")).to_arrow()]) == expected
    declared = "TABLE(SELECT * FROM STREAM s WATERMARK ts DELAY OF INTERVAL 2 SECONDS)"
    assert counted([session.sql(QUERY.replace("TABLE s", declared)).to_arrow()]) == expected


@pytest.mark.parametrize(
    ("statement", "kind", "condition", "fragment"),
    [
        ("CREATE STREAM r (ROWTIME ts BIGINT UNIT SECONDS) FROM came LAG 2 SECONDS", AnalysisError,
         "MISSING_PTIME", "LAG 2 SECONDS"),
        ("CREATE STREAM r (ROWTIME ts BIGINT UNIT SECONDS, PTIME at TIMESTAMP, BOUND upto BIGINT) FROM came"
         " LAG 2 SECONDS", AnalysisError, "INVALID_BOUND", "LAG 2 SECONDS"),
        ("CREATE STREAM r (ROWTIME ts BIGINT UNIT SECONDS, PTIME at TIMESTAMP) FROM came IDLE 2 SECONDS",
         NotSupportedError, "UNSUPPORTED_CLAUSE", "IDLE 2 SECONDS"),
        ("SELECT k FROM STREAM s WATERMARK ts DELAY OF INTERVAL 2 SECONDS EMIT STREAM", NotSupportedError,
         "UNSUPPORTED_STREAM", "s"),
    ],
)  # fmt: skip
def test_errors_are_at_their_place(spark, statement, kind, condition, fragment):
    session = recorded(spark, watermark="upto")
    with pytest.raises(kind, match=condition) as error:
        session.sql(statement)
    assert error.value.getQueryContext()[0].fragment() == fragment
    assert error.value.hint


def test_a_lag_beside_bounds_is_refused(spark):
    with pytest.raises(WindrowError, match="INVALID_BOUND"):
        recorded(spark, watermark="upto", lag=2)
