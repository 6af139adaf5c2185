"""Lag, idle producers and the limit of the future of a recorded table: it is read as the same rows, live."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live.emit_queries import BEGIN, OVER, counted, live, ptime
from tests.live.random_logs import COLUMNS, log
from tests.live.stepping import law
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
    frame.selectExpr("*", "'' AS p").createOrReplaceTempView("closed")
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
        ("CREATE STREAM r (ROWTIME ts BIGINT UNIT SECONDS, PTIME k BIGINT) FROM came IDLE 2 SECONDS",
         AnalysisError, "MISSING_PTIME", "IDLE 2 SECONDS"),
        ("CREATE STREAM r (ROWTIME ts BIGINT UNIT SECONDS) FROM came FUTURE 2 SECONDS", AnalysisError,
         "MISSING_PTIME", "FUTURE 2 SECONDS"),
        ("CREATE STREAM r (ROWTIME ts BIGINT UNIT SECONDS, PTIME at TIMESTAMP, PUNCTUATION p STRING) FROM"
         " closed FUTURE 2 SECONDS", AnalysisError, "INVALID_BOUND", "PUNCTUATION p STRING"),
        ("SELECT k FROM STREAM s WATERMARK k DELAY OF INTERVAL 2 SECONDS EMIT STREAM", NotSupportedError,
         "UNSUPPORTED_STREAM", "s"),
    ],
)  # fmt: skip
def test_errors_are_at_their_place(spark, statement, kind, condition, fragment):
    session = recorded(spark, watermark="upto")
    with pytest.raises(kind, match=condition) as error:
        session.sql(statement)
    assert error.value.getQueryContext()[0].fragment() == fragment
    assert error.value.hint


BASE = int(BEGIN.timestamp())
FAR = 10_000
WITHOUT = log.map(lambda entries: [(*entry[:4], None) for entry in entries])


@law(1)
@given(
    st.one_of(log, WITHOUT),
    st.sampled_from([None, 2]),
    st.sampled_from(
        [{}, {"idle": "8 seconds"}, {"future": "1 minute"}, {"idle": "4 seconds", "future": "1 day"}]
    ),
    st.sets(st.integers(0, 6), max_size=2),
    st.sets(st.integers(0, 6), max_size=1),
    st.sampled_from(["batch", "reference"]),
)
@example(
    [("a", 1, 1, 1, 3), ("b", 0, 1, 1, None), ("a", 7, 1, 1, 7), ("a", 9, 1, 1, 9), ("b", 2, 1, 1, None)],
    None,
    {"idle": "8 seconds"},
    set(),
    {1},
    "reference",
)
@example(
    [("a", 1, 1, 1, None), ("b", 0, 1, 1, None), ("a", 7, 1, 1, None), ("a", 9, 1, 1, None)],
    2,
    {"idle": "4 seconds", "future": "1 day"},
    {2},
    set(),
    "batch",
)
@example([("a", 1, 1, 1, None), ("a", 0, 1, 1, 5), ("a", 9, 1, 1, 2)], 2, {}, set(), {0}, "reference")
@example([("a", 1, 1, 1, 3), ("a", 8, 1, 1, 9)], 0, {"future": "1 minute"}, {1}, set(), "reference")
@example(
    [("b", None, None, None, 7), ("a", 2, 1, 1, None), ("a", 9, 1, 1, 9), ("b", 9, 1, 2, 20)],
    None,
    {},
    set(),
    set(),
    "batch",
)
def test_a_recorded_table_is_read_as_the_same_rows_live(
    spark, tmp_path_factory, entries, lag, options, far, kills, execution
):
    if not entries or (lag is None and all(entry[-1] is None for entry in entries)):
        return  # without bounds nothing is complete
    times = [
        [None if at is None else at + BASE + FAR * (number in far) for at in (entry[1], entry[4])]
        for number, entry in enumerate(entries)
    ]
    rows = [(name, at, k, v, upto) for (name, _, k, v, _), (at, upto) in zip(entries, times, strict=True)]
    batches = [[row] for row in rows] + [[]] * 5
    found, progress = live(
        spark, tmp_path_factory.mktemp("live"), {"s": batches}, lag, kills, QUERY, **options
    )
    session = Session(spark.newSession(), execution=execution)
    came = [(ptime(number), *row) for number, row in enumerate(rows)]
    frame = session.spark.createDataFrame(came, f"at timestamp, {COLUMNS}")
    columns = {"rowtime": "ts", "unit": "seconds", "ptime": "at", "producer": "p", "bound": "b"}
    session.stream("s", frame, **columns, lag=lag, **options)
    told = session.sql(QUERY)
    assert counted([told.to_arrow()]) == counted(found)
    late = told.late.df.where("reason <> 'future bound'").count()
    assert late == progress["rows_late"]


def test_a_query_declares_the_limit_of_the_future(spark):
    session = Session(spark.newSession())
    rows = [(ptime(0), BASE, 1, 1), (ptime(1), BASE + FAR, 2, 1), (ptime(2), BASE + 30, 3, 1)]
    frame = session.spark.createDataFrame(rows, "at timestamp, ts bigint, k bigint, v bigint")
    session.stream("s", frame, rowtime="ts", unit="seconds", ptime="at")
    source = "FROM STREAM s WATERMARK ts DELAY OF INTERVAL 2 SECONDS FUTURE INTERVAL 1 MINUTE"
    relation = session.sql(f"SELECT ts, COUNT(*) AS n {source} GROUP BY ts EMIT STREAM AFTER WATERMARK")
    assert [row.ts for row in relation.df.collect()] == [BASE]
    assert [row.reason for row in relation.late.df.collect()] == ["future"]


def test_rows_too_far_ahead_fail_the_query(spark):
    session = Session(spark.newSession())
    rows = [(ptime(0), BASE, None), (ptime(1), BASE + 1, BASE + FAR), (ptime(2), BASE + FAR, None)]
    frame = session.spark.createDataFrame(rows, "at timestamp, ts bigint, upto bigint")
    columns = {"rowtime": "ts", "unit": "seconds", "ptime": "at", "bound": "upto", "future": "1 day"}
    session.stream("s", frame, **{**columns, "future": "1 hour"}, on_late="fail")
    with pytest.raises(WindrowError, match=r"LATE_ROW.*too far ahead"):
        session.sql("SELECT COUNT(*) FROM s EMIT STREAM").to_arrow()
    session.stream("s", frame, **columns)
    assert session.sql("SELECT ts FROM s").df.count() == 3
    session.stream("s", frame, **{**columns, "future": "1 hour"})
    late = session.sql("SELECT _rowtime, _reason FROM s_late").df.collect()
    assert sorted(map(tuple, late)) == [(BASE + FAR, "future"), (BASE + FAR, "future bound")]
