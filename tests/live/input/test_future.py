"""Rows and bounds that are too far ahead of their processing time, in SQL and in live queries."""

from __future__ import annotations

import datetime
import os
import time
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow import Memory, Session, WindrowError
from windrow.streams import NamedStream

pytestmark = pytest.mark.usefixtures("interpreted")

NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
FAR = NOW + datetime.timedelta(days=30_000)
COLUMNS = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), ("n", pa.int64()), ("upto", pa.timestamp("us", "UTC"))]
)
QUERIES = {
    "a window": "SELECT COUNT(*) AS n FROM s [RANGE 100 DAYS]",
    "EMIT": "SELECT n, COUNT(*) AS c FROM s GROUP BY n EMIT STREAM",
    "a clause": "SELECT w.n FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts START END AS e WHEN e.n >= 0)",
}


def moment(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


def shown(time: datetime.datetime) -> str:
    return f"TIMESTAMP '{time:%Y-%m-%d %H:%M:%S}'"


@pytest.fixture
def session(spark, tmp_path):
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield Session(spark)
    for name in ("s", "s_late"):
        spark.catalog.dropTempView(name)


@pytest.fixture
def incoming(tmp_path):
    """Files, in each of which a row of a wrong clock, and a bound of one, come between others."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    for number in range(3):
        rows = [
            {"ts": moment(number), "n": number},
            {"ts": FAR, "n": 77},
            {"ts": moment(number + 0.5), "n": 10 + number, "upto": FAR},
        ]
        path = folder / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, COLUMNS), path)
        os.utime(path, (number + 1, number + 1))
    return folder


def arriving(spark, folder, at_once):
    reader = spark.readStream.schema("ts TIMESTAMP, n BIGINT, upto TIMESTAMP")
    return reader.option("maxFilesPerTrigger", at_once).parquet(str(folder))


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("host", ["driver", "executors"])
@pytest.mark.parametrize("kind", QUERIES)
def test_wherever_micro_batches_are_cut_a_wrong_clock_is_quarantined(
    session, spark, incoming, tmp_path, kind, host, conf
):
    conf("spark.windrow.live.host", host)
    for at_once in (1, 3):
        frame = arriving(spark, incoming, at_once)
        session.stream("s", frame, rowtime="ts", bound="upto", lag="1 hour", future="1 day")
        given = Memory()
        query = session.sql(QUERIES[kind]).start(
            given, checkpoint=tmp_path / f"{at_once}", trigger={"availableNow": True}, on_unbounded="ignore"
        )
        query.await_termination()
        late = [tuple(row) for row in query.late.select("row", "rowtime", "reason").collect()]
        progress = query.progress
        query.stop()
        assert [reason for *_, reason in sorted(late, key=str)].count("future") == 3
        bounds = [row for row in late if row[-1] == "future bound"]
        assert [row[0] for row in bounds] == [None] * 3
        assert {row[1] for row in late} == {f"{FAR:%Y-%m-%d %H:%M:%S}"}
        assert len(late) == 6
        assert (progress["rows_in"], progress["rows_late"]) == (9, 3)


def test_what_is_quarantined_can_fail_the_query(session, spark, incoming, tmp_path):
    session.stream("s", arriving(spark, incoming, 1), rowtime="ts", lag="0 seconds", future="1 day")
    plan = session.sql(f"EXPLAIN {QUERIES['a clause']}").plan()
    assert "s, by ts, LAG 0 SECONDS, FUTURE 1 DAY" in plan
    query = session.sql(QUERIES["a window"]).start(Memory(), on_late="fail")
    with pytest.raises(WindrowError, match=r"\[LATE_ROW\] .* too far ahead of its processing time"):
        query.process_all_available()
    query.stop()


def test_a_named_stream_is_read_alike_as_recorded_and_live(session, tmp_path):
    folder = tmp_path / "stream"
    columns = "(ROWTIME ts TIMESTAMP, n INT)"
    session.sql(f"CREATE STREAM s {columns} LOCATION '{folder}' LAG 0 SECONDS FUTURE 1 DAY")

    def insert(time, n):
        return [tuple(row) for row in session.sql(f"INSERT INTO s VALUES ({shown(time)}, {n})").collect()]

    assert insert(NOW, 1) == [(1, 0, 0, 0)]
    assert insert(FAR, 2) == [(0, 0, 0, 1)]
    assert session.sql(f"PUNCTUATE s BOUND {shown(FAR)}").collect() == [(1,)]
    assert session.sql("PUNCTUATE s WHERE n = 9").collect() == [(0,)]
    assert insert(moment(5), 3) == [(1, 0, 0, 0)]
    relation = session.sql("SELECT STREAM n FROM s")
    assert sorted(row.n for row in relation.df.collect()) == [1, 3]
    wanted = [
        (f'{{"ts":"{FAR:%Y-%m-%dT%H:%M:%S}.000Z","n":2}}', "future"),
        (None, "future bound"),
    ]
    assert sorted(
        map(tuple, relation.late.df.select("row", "reason").collect()), key=str, reverse=True
    ) == sorted(wanted, key=str, reverse=True)
    assert session.count_late() == {"s": 1}
    given = Memory()
    query = relation.start(given, checkpoint=tmp_path / "checkpoint")
    insert(moment(9), 4)
    query.process_all_available()
    assert [row["n"] for table in given.batches.values() for row in table.to_pylist()] == [1, 3, 4]
    assert sorted(map(tuple, query.late.select("row", "reason").collect()), key=str) == sorted(
        wanted, key=str
    )
    query.stop()
    session.sql("DROP STREAM s")
    for declared in ("", "FUTURE 1 DAY", "FUTURE INTERVAL 24 HOURS", "LAG 0 SECONDS FUTURE 24 HOURS"):
        session.sql(f"CREATE STREAM IF NOT EXISTS s {columns} LOCATION '{folder}' {declared}")
        session.sql("DROP STREAM s")
    with pytest.raises(WindrowError, match=r"STREAM_DIFFERS.* FUTURE 86400 SECONDS") as caught:
        session.sql(f"CREATE STREAM IF NOT EXISTS s {columns} LOCATION '{folder}' FUTURE 2 DAYS")
    assert [context.fragment() for context in caught.value.getQueryContext()] == ["FUTURE 2 DAYS"]
    assert NamedStream.open(folder).position().watermark.quarantined == 1


def test_the_statement_itself_may_say_how_far_ahead_rows_are(session, spark, incoming, tmp_path):
    arriving(spark, incoming, 1).createOrReplaceTempView("t")
    given = Memory()
    source = "STREAM t WATERMARK ts DELAY OF INTERVAL 0 SECONDS FUTURE 1 DAY AS q"
    query = session.sql(f"SELECT STREAM n FROM {source} WHERE q.n < 99").start(
        given, trigger={"availableNow": True}
    )
    query.await_termination()
    assert {row["n"] for table in given.batches.values() for row in table.to_pylist()} == {
        0,
        1,
        2,
        10,
        11,
        12,
    }
    assert query.late.count() == 3
    query.stop()
    spark.catalog.dropTempView("t")


def test_the_watermark_may_be_of_what_the_statement_computes(session, spark, incoming):
    arriving(spark, incoming, 1).selectExpr("n", "CAST(ts AS STRING) AS at").createOrReplaceTempView("t")
    computed = "to_timestamp(concat(at, '')) + INTERVAL 0 SECONDS"  # with a comma and a plus
    source = f"STREAM t WATERMARK {computed} AS ts DELAY OF INTERVAL 0 SECONDS FUTURE 1 DAY AS q"
    given = Memory()
    query = session.sql(f"SELECT STREAM n, q.ts > TIMESTAMP '2000-01-01' AS late FROM {source}").start(
        given, trigger={"availableNow": True}
    )
    query.await_termination()
    rows = [row for table in given.batches.values() for row in table.to_pylist()]
    assert {row["n"] for row in rows} == {0, 1, 2, 10, 11, 12}
    assert query.late.count() == 3
    query.stop()
    for clause, condition, place in [
        ("upper(at) AS at", "DUPLICATE_COLUMN", "at"),
        ("to_timestamp(nothing) AS ts", "UNRESOLVED_COLUMN", "nothing"),
        ("current_timestamp() AS ts", "SYSTEM_CLOCK", "current_timestamp()"),
        ("upper(at) AS ts", "INVALID_ROWTIME", "ts"),
    ]:
        with pytest.raises(WindrowError) as caught:
            session.sql(f"SELECT STREAM n FROM STREAM t WATERMARK {clause} DELAY OF INTERVAL 1 SECOND")
        assert caught.value.condition.startswith(condition)
        assert [context.fragment() for context in caught.value.getQueryContext()] == [place]
    spark.catalog.dropTempView("t")


def test_create_stream_from_a_streaming_view_says_it_too(session, spark, incoming):
    arriving(spark, incoming, 1).createOrReplaceTempView("t")
    columns = "(ROWTIME ts TIMESTAMP, n BIGINT, BOUND upto TIMESTAMP)"
    session.sql(f"CREATE STREAM s {columns} FROM STREAM t LAG 0 SECONDS FUTURE 1 DAY")
    query = session.sql("SELECT STREAM n FROM s").start(Memory(), trigger={"availableNow": True})
    query.await_termination()
    assert query.late.count() == 6
    query.stop()
    spark.catalog.dropTempView("t")


def test_a_recorded_table_without_processing_times_has_none_to_be_ahead_of(session, spark):
    spark.range(1).createOrReplaceTempView("t")
    with pytest.raises(WindrowError, match=r"(?s)MISSING_PTIME.*FUTURE 1 DAY"):
        session.sql("CREATE STREAM s (ROWTIME id BIGINT) FROM t FUTURE 1 DAY")
    with pytest.raises(WindrowError, match=r"(?s)MISSING_PTIME.*ptime="):
        session.stream("s", spark.range(1), rowtime="id", future="1 day")
    spark.catalog.dropTempView("t")


def test_a_live_query_is_not_silenced_by_an_insert_under_a_wrong_clock(session, tmp_path, monkeypatch):
    session.sql(f"CREATE STREAM s (ROWTIME ts TIMESTAMP, n INT) LOCATION '{tmp_path / 'stream'}'")
    real = time.time_ns
    session.sql(f"INSERT INTO s VALUES ({shown(NOW)}, 1)")
    monkeypatch.setattr(time, "time_ns", lambda: real() + 30 * 365 * 86_400 * 10**9)
    session.sql(f"INSERT INTO s VALUES ({shown(NOW)}, 2)")
    monkeypatch.undo()
    text = "SELECT n, COUNT(*) AS c FROM s GROUP BY n EMIT STREAM AFTER DELAY INTERVAL '0.2' SECOND"
    given = Memory()
    query = session.sql(text).start(given, checkpoint=tmp_path / "live", on_unbounded="ignore")
    with pytest.warns(RuntimeWarning, match="has a time ahead of now"):
        query.process_all_available()
    session.sql(f"INSERT INTO s VALUES ({shown(NOW)}, 3)")
    for _ in range(100):
        query.process_all_available()
        rows = [row for table in given.batches.values() for row in table.to_pylist()]
        if {row["n"] for row in rows} == {1, 2, 3}:
            break
        query.await_termination(0.2)
    assert {row["n"] for row in rows} == {1, 2, 3}
    assert max(row["ptime"] for row in rows) < datetime.datetime.now(datetime.UTC) + datetime.timedelta(1)
    query.stop()
    session.sql("DROP STREAM s")


def test_a_live_query_warns_once_of_a_row_of_a_wrong_clock(session, spark, incoming):
    session.stream("s", arriving(spark, incoming, 1), rowtime="ts", lag="1 hour")
    query = session.sql(QUERIES["a window"]).start(Memory())
    with pytest.warns(RuntimeWarning, match="stream s is more than a day ahead") as caught:
        query.process_all_available()
    query.stop()
    told = [str(one.message) for one in caught if "a day ahead" in str(one.message)]
    assert len(told) == 1
    assert f"by a row of rowtime {FAR:%Y-%m-%d %H:%M:%S}" in told[0]
    assert "FUTURE 1 DAY" in told[0]


@pytest.mark.parametrize(("said", "by"), [("row", f", by a row of rowtime {FAR:%Y-%m-%d}"), ("bound", "")])
def test_a_recorded_query_warns_once_of_a_named_stream_under_a_wrong_clock(session, tmp_path, said, by):
    stream, query = NamedStream.create(tmp_path / "stream", COLUMNS, "ts"), "SELECT n FROM s [RANGE 100 DAYS]"
    session.stream("s", stream)
    producer = stream.producer("p")
    producer.insert({"ts": NOW, "n": 1})
    with pytest.warns(RuntimeWarning, match="producer p has reached"):
        producer.insert({"ts": FAR, "n": 2}) if said == "row" else producer.bound(FAR)
    with pytest.warns(RuntimeWarning, match="a day ahead") as caught:
        session.sql(query).collect()
    (told,) = [str(one.message) for one in caught if "a day ahead" in str(one.message)]
    assert told.startswith(
        "stream s is more than a day ahead of its processing time: producer p has reached "
    )
    assert f"{FAR:%Y-%m-%d %H:%M:%S}{by}" in told
    assert "FUTURE 1 DAY" in told
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "stream s is more than a day ahead")
        producer.bound(FAR)
        session.sql(query).collect()
    producer.close()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "+01:00", "UTC"])
def test_a_bound_without_a_zone_is_of_the_sessions(session, spark, tmp_path, zone):
    spark.conf.set("spark.sql.session.timeZone", zone)
    session.sql(f"CREATE STREAM s (ROWTIME ts TIMESTAMP, n INT) LOCATION '{tmp_path / 'stream'}'")
    session.sql("PUNCTUATE s BOUND TIMESTAMP '2026-01-01 10:06:00'")
    said = session._catalog.named["s"].producer().bound_ticks
    with session.stream("s").producer("p") as p:
        for instant in ("2026-01-01 10:06", datetime.datetime(2026, 1, 1, 10, 6)):
            p.bound(instant)
            assert p.bound_ticks == said
    session.sql("DROP STREAM s")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
