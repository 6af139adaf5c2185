"""Groups by windows of time and sessions of whole streams, and bounds of what rises with the rowtime."""

from __future__ import annotations

import datetime

import pyarrow as pa

from tests.live.auctions import bid, live, recorded, rows
from tests.live.whole_streams import test_blocking as whole
from windrow import Session
from windrow.streams import NamedStream

pytestmark = whole.pytestmark
session = whole.session


def test_bounds_pass_through_what_rises_with_the_rowtime(spark, tmp_path):
    session = Session(spark)
    columns = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int64())])
    session.stream("ticks", NamedStream.create(tmp_path / "ticks", columns, "ts"))
    begin = datetime.datetime(2026, 1, 1, 9, 50, tzinfo=datetime.UTC)
    with session.stream("ticks").producer("p") as p:
        for minute in range(0, 40, 5):
            p.insert({"ts": begin + datetime.timedelta(minutes=minute), "n": minute})
    query = """
        SELECT STREAM date_trunc('HOUR', ts) + INTERVAL 1 HOUR AS until, SUM(n) AS n FROM ticks
        GROUP BY date_trunc('HOUR', ts) + INTERVAL 1 HOUR
    """
    given, progress = live(spark, session, tmp_path / "c", query, (0.2, 0.7), {1})
    assert [[one["n"] for one in table.to_pylist()] for table in given] == [[], [5], []]
    assert progress["rows_in_windows"] == 1
    assert session.sql(query)._live.unbounded() == []
    assert sorted(n for _, n in recorded(session, query)) == [5, sum(range(10, 40, 5))]
    session.sql("DROP STREAM ticks")


def test_groups_of_windows_of_time_end_by_bounds_and_by_keys(spark, session, tmp_path):
    query = """
        SELECT STREAM window_end, auction, COUNT(*) AS n
        FROM TABLE({}(TABLE bids, DESCRIPTOR(at), {} 10)) GROUP BY window_end, auction
    """
    with session.stream("bids").producer("p") as p:
        p.insert([bid(1, 1, 10), bid(12, 1, 5), bid(13, 2, 5), bid(3, 2, 1)])
        p.punctuate(auction=1)
        p.bound(10)
        p.bound(15)
        p.punctuate(auction=2)
    tumbling, cumulating = query.format("TUMBLE", ""), query.format("CUMULATE", "5,")
    given, progress = live(spark, session, tmp_path / "t", tumbling, (0.25, 0.45, 0.65, 0.85), {2})
    assert [sorted(rows([one])) for one in given] == [
        [], [(10, 1, 1), (20, 1, 1)], [(10, 2, 1)], [], [(20, 2, 1)]
    ]  # fmt: skip
    assert progress["rows_in_windows"] == 0
    given, _ = live(spark, session, tmp_path / "c", cumulating, (0.65, 0.85), {1})
    of_one = [(5, 1, 1), (10, 1, 1), (15, 1, 1), (20, 1, 1)]
    assert [sorted(rows([one])) for one in given] == [
        sorted([*of_one, (5, 2, 1), (10, 2, 1)]), [(15, 2, 1)], [(20, 2, 1)]
    ]  # fmt: skip
    assert session.sql(tumbling)._live.unbounded() == []


def test_groups_of_sessions_end_by_bounds_and_by_keys(spark, session, tmp_path):
    query = """
        SELECT STREAM window_end, auction, COUNT(*) AS n
        FROM TABLE(SESSION(TABLE bids PARTITION BY auction, DESCRIPTOR(at), 5)) GROUP BY window_end, auction
    """
    with session.stream("bids").producer("p") as p:
        p.insert([bid(12, 1, 10), bid(3, 1, 5), bid(1, 1, 5), bid(6, 2, 1), bid(13, 2, 5)])
        p.bound(9)
        p.bound(13)
        p.punctuate(auction=2)
    assert session.sql(query)._live.unbounded() == []
    given, progress = live(spark, session, tmp_path / "c", query, (0.34, 0.51, 0.67), {1, 2})
    assert [sorted(rows([one])) for one in given] == [[], [(8, 1, 2)], [(11, 2, 1)], [(18, 2, 1)]]
    assert progress["rows_in_windows"] == 1, "(1, 12) waits for what comes up to 17"


def test_sessions_with_a_longest_duration_end_when_that_has_passed(spark, session, tmp_path):
    query = """
        SELECT STREAM wstart, wend, auction, COUNT(*) AS n
        FROM SESSION(TABLE bids PARTITION BY auction, DESCRIPTOR(at), 5, 8) GROUP BY wstart, wend, auction
    """
    with session.stream("bids").producer("p") as p:
        p.insert([bid(at, 1, 10) for at in (8, 1, 4, 9, 13, 20)] + [bid(2, 2, 1), bid(9, 2, 5)])
        p.bound(9)
        p.insert([bid(9, 1, 7), bid(17, 1, 7)])
        p.bound(17)
        p.punctuate(auction=2)
    assert session.sql(query)._live.unbounded() == []
    given, progress = live(spark, session, tmp_path / "c", query, (0.29, 0.43, 0.58, 0.72), {1, 2})
    assert [sorted(rows([one])) for one in given] == [
        [], [(1, 9, 1, 3), (2, 7, 2, 1)], [], [(9, 14, 2, 1), (9, 17, 1, 3)], []
    ]  # fmt: skip
    assert progress["rows_in_windows"] == 2, "17 and 20 wait for what comes up to 25"
