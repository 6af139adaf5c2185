"""Instants of streams: zones of the session, hours that clocks leave out or show twice, and granularities."""

from __future__ import annotations

import datetime

import pytest

from windrow import Session

pytestmark = pytest.mark.usefixtures("interpreted")

ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
# an hour before the clocks of New York go forward, and an hour before they go back
FORWARD, BACK = 1710050400, 1730608200


@pytest.fixture
def session(spark):
    return Session(spark)


def shown(relation, column):
    """The changes: what, when, and of which row."""
    changes = relation.changelog("op").df.selectExpr("_op", f"{column} AS at", "v")
    return sorted((row.at, row._op, row.v) for row in changes.collect())


@pytest.mark.sampled
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("start", [FORWARD, BACK])
def test_a_timestamp_is_an_instant_in_every_zone(session, conf, zone, start):
    """A length of time is so many seconds of it, also across a change of the clocks."""
    conf("spark.sql.session.timeZone", zone)
    instants = [start, start + 3600, start + 7200]
    values = ", ".join(f"({at}L, {number})" for number, at in enumerate(instants))
    session.spark.sql(
        f"SELECT timestamp_seconds(s) AS ts, v FROM VALUES {values} AS t(s, v)"
    ).createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM s (ROWTIME ts TIMESTAMP, v INT) FROM o")
    for window, seconds in (("[RANGE 90 MINUTES]", 5400), ("[RANGE 1 DAY]", 86_400)):
        expected = [(at, "+I", v) for v, at in enumerate(instants)]
        expected += [(at + seconds, "-D", v) for v, at in enumerate(instants)]
        assert shown(session.sql(f"SELECT v FROM s {window}"), "unix_seconds(_at)") == sorted(expected)


@pytest.mark.parametrize("zone", ZONES)
def test_a_slide_ticks_in_utc(session, conf, zone):
    conf("spark.sql.session.timeZone", zone)
    session.spark.sql(f"SELECT timestamp_seconds({FORWARD + 60}) AS ts, 0 AS v").createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM s (ROWTIME ts TIMESTAMP, v INT) FROM o")
    enters = -(-(FORWARD + 60) // 86_400) * 86_400
    relation = session.sql("SELECT v FROM s [RANGE 1 DAY SLIDE 1 DAY]")
    assert shown(relation, "unix_seconds(_at)") == [(enters, "+I", 0), (enters + 86_400, "-D", 0)]


@pytest.mark.parametrize("zone", ZONES)
def test_a_timestamp_without_a_zone_is_what_a_clock_shows(session, conf, zone):
    """It has no hours left out and none twice: 2:30 is there on the night on which New York has none."""
    conf("spark.sql.session.timeZone", zone)
    session.spark.sql(
        "SELECT * FROM VALUES (TIMESTAMP_NTZ '2024-03-10 01:30:00', 0), "
        "(TIMESTAMP_NTZ '2024-03-10 02:30:00', 1) AS t(ts, v)"
    ).createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM s (ROWTIME ts TIMESTAMP_NTZ, v INT) FROM o")
    relation = session.sql("SELECT v FROM s [RANGE 1 HOUR]")
    day = datetime.datetime(2024, 3, 10)
    one, two, three = (day + datetime.timedelta(hours=hours + 0.5) for hours in (1, 2, 3))
    assert shown(relation, "_at") == [(one, "+I", 0), (two, "+I", 1), (two, "-D", 0), (three, "-D", 1)]
    assert [row.v for row in relation.at("2024-03-10 02:00:00").collect()] == [0]
    assert [row.v for row in relation.at(two).collect()] == [1]


@pytest.mark.parametrize("zone", ZONES)
def test_no_part_of_a_clock_s_time_is_lost(session, conf, zone):
    conf("spark.sql.session.timeZone", zone)
    times = ["1582-10-04 00:00:00.000001", "1969-12-31 23:59:59.999999", "2024-11-03 01:30:00.123456"]
    values = ", ".join(f"(TIMESTAMP_NTZ '{at}')" for at in times)
    session.spark.sql(f"SELECT ts, 0 AS v FROM VALUES {values} AS t(ts)").createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM s (ROWTIME ts TIMESTAMP_NTZ, v INT) FROM o")
    rows = (
        session.sql("SELECT ts, v FROM s [RANGE UNBOUNDED]").changelog("op").df.selectExpr("_at = ts AS same")
    )
    assert [row.same for row in rows.collect()] == [True] * len(times)


@pytest.mark.parametrize(
    ("zone", "meets"), [("UTC", True), ("America/New_York", False), ("America/Chicago", False)]
)
def test_streams_of_both_kinds_meet_on_the_session_s_clock(session, conf, zone, meets):
    """A time without a zone is the instant at which the session's clock shows it."""
    conf("spark.sql.session.timeZone", zone)
    session.spark.sql("SELECT timestamp_seconds(1710050400) AS ts, 0 AS v").createOrReplaceTempView("o")
    session.spark.sql("SELECT TIMESTAMP_NTZ '2024-03-10 06:30:00' AS ts, 1 AS w").createOrReplaceTempView("p")
    session.sql("CREATE OR REPLACE STREAM s (ROWTIME ts TIMESTAMP, v INT) FROM o")
    session.sql("CREATE OR REPLACE STREAM n (ROWTIME ts TIMESTAMP_NTZ, w INT) FROM p")
    relation = session.sql("SELECT s.v FROM s [RANGE 1 HOUR], n [RANGE 1 HOUR]")
    assert bool(relation.changelog().collect()) == meets


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_an_instant_is_read_on_the_session_s_clock(session, conf, zone):
    conf("spark.sql.session.timeZone", zone)
    session.spark.sql("SELECT TIMESTAMP '2024-03-10 03:30:00' AS ts, 0 AS v").createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM s (ROWTIME ts TIMESTAMP, v INT) FROM o")
    relation = session.sql("SELECT v FROM s [RANGE 1 MINUTE]")
    assert len(relation.at("2024-03-10 03:30:59").collect()) == 1
    assert len(relation.at("2024-03-10 03:31:00").collect()) == 0
    # in New York, clocks show 3:30 where they would have shown 2:30
    assert len(relation.at("2024-03-10 02:30:00").collect()) == (zone != "UTC")


@pytest.mark.sampled
@pytest.mark.parametrize(
    "inner",
    [
        "ISTREAM(SELECT v FROM s [RANGE 2])",
        "DSTREAM(SELECT v FROM s [RANGE 1500 MILLISECONDS])",
        "RSTREAM(SELECT COUNT(*) AS v FROM s [RANGE 1500 MILLISECONDS])",
        "ISTREAM(SELECT v FROM s [ROWS 2])",
    ],
)
def test_now_of_a_stream_made_by_a_query_is_that_of_a_view_of_it(spark, inner):
    """A tick of [NOW] is that of the query that makes the stream, wherever the query stands."""
    session, reference = Session(spark), Session(spark, execution="reference")
    spark.sql("SELECT id AS ts, id % 3 AS v FROM range(3)").createOrReplaceTempView("o")
    for one in (session, reference):
        one.sql("CREATE OR REPLACE STREAM s (ROWTIME ts BIGINT UNIT SECONDS, v INT) FROM o")
        one.sql(f"CREATE OR REPLACE TEMPORARY VIEW made AS {inner}")
    for query, judged in (
        ("SELECT v FROM {} [NOW] AS m", [inner]),
        ("SELECT m.v FROM {} [NOW] AS m JOIN s [RANGE 1000100 MICROSECONDS] AS s ON true", ["made"]),
        ("ISTREAM(SELECT v FROM {} [NOW] AS m)", []),  # what enters of the first
    ):
        found = []
        for by, sources in ((session, [inner, "made"]), (reference, judged)):
            for source in sources:
                relation = by.sql(query.format(source))
                relation = relation if query.startswith("ISTREAM") else relation.changelog("diff")
                found.append(sorted(map(str, relation.collect())))
        assert found[0]
        assert all(each == found[0] for each in found)
