"""Keys that are computed of columns: what is promised of these tells of them where it can."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.live.auctions import bid, live, recorded, rows
from tests.live.whole_streams import test_blocking as whole
from windrow import Session
from windrow.streams import NamedStream, Ordering

pytestmark = whole.pytestmark
auctions, session = whole.auctions, whole.session


@pytest.mark.sampled
@pytest.mark.parametrize(
    "query",
    [
        "SELECT STREAM 1 - auction * 2 AS lot, COUNT(*) AS n, MAX(price) FROM bids GROUP BY 1 - auction * 2",
        "SELECT STREAM at DIV 3 AS part, 'lot-' || auction AS lot, SUM(price) FROM bids"
        " GROUP BY at DIV 3, 'lot-' || auction",
        "SELECT STREAM item, price FROM sold s LEFT JOIN bids b"
        " ON CAST(b.auction AS STRING) = CAST(s.auction AS STRING)",
        "SELECT STREAM twice, who, COUNT(*) OVER (PARTITION BY twice + 1) AS n FROM"
        " (SELECT auction * 2 AS twice, who FROM bids WHERE price > 1)",
        "SELECT STREAM auction % 3 AS third, COUNT(*) AS n FROM bids GROUP BY 1",
        "SELECT STREAM floor(at / 2) AS half FROM bids INTERSECT SELECT CAST(at AS DOUBLE) FROM sold",
    ],
)
def test_what_is_given_live_is_what_the_whole_log_gives(spark, auctions, tmp_path, query):
    wanted = recorded(auctions, query)
    assert wanted
    for number, (cuts, kills) in enumerate((((0.4, 0.7), {1}), ((0.25, 0.5, 0.6, 0.8), {2, 3}))):
        given, progress = live(spark, auctions, tmp_path / f"c{number}", query, cuts, kills)
        assert Counter(rows(given)) == Counter(wanted)
        assert progress["rows_in_windows"] == 0


def test_groups_end_with_the_values_of_which_their_keys_are_computed(spark, session, tmp_path):
    query = "SELECT STREAM auction + 1 AS next, 'n' || auction AS name, COUNT(*) AS n FROM bids GROUP BY 1, 2"
    tens = "SELECT STREAM auction DIV 10 AS tens, who, COUNT(*) AS n FROM bids GROUP BY auction DIV 10, who"
    with session.stream("bids").producer("p") as p:
        p.insert([bid(1, 11, 1), bid(2, 12, 1), bid(3, 11, 1), bid(4, 25, 1), bid(5, 25, 1, "bob")])
        p.punctuate(auction=[11, 2**63 - 1])
        p.punctuate(auction={">=": 20, "<": 26})
        p.punctuate(auction={">=": 20, "<": 40}, who="bob")
        p.punctuate(auction={">=": 10, "<": 20})
    given, progress = live(spark, session, tmp_path / "c", query, (0.29, 0.43, 0.58, 0.72), {1, 2})
    assert [sorted(rows([one])) for one in given] == [
        [], [(12, "n11", 2)], [(26, "n25", 2)], [], [(13, "n12", 1)]
    ]  # fmt: skip
    assert progress["rows_in_windows"] == 0
    given, progress = live(spark, session, tmp_path / "d", tens, (0.43, 0.58, 0.72), {1})
    assert [sorted(rows([one])) for one in given] == [[], [], [(2, "bob", 1)], [(1, "ann", 3)]]
    assert progress["rows_in_windows"] == 1, "of ann others from 26 on may come"
    session.sql("SELECT 1 FROM bids")
    assert session.sql(query)._live.unbounded() == []
    (told,) = session.sql(tens)._live.unbounded()
    assert "nothing can bound it, as its keys are computed; windows of time are in FROM here" in str(told)


def test_an_operator_tells_which_columns_would_bound_what_is_computed_of_them(session):
    query = (
        "SELECT STREAM key + 1 AS key, n FROM (SELECT auction + 1 AS key, COUNT(*) AS n FROM bids GROUP BY 1)"
    )
    (told,) = session.sql(query)._live.unbounded()
    assert str(told).endswith("punctuations of bids on auction would bound it")


def test_promises_about_keys_hold_in_the_type_in_which_they_are_compared(spark, session, tmp_path):
    columns = pa.schema([("at", pa.int64()), ("id", pa.decimal128(10, 1)), ("name", pa.string())])
    tenths = NamedStream.create(tmp_path / "tenths", columns, "at", ordering=Ordering.unordered())
    session.stream("tenths", tenths)
    query = "SELECT STREAM price, name FROM bids b LEFT JOIN tenths t ON b.auction = t.id"
    with session.stream("bids").producer("p") as p, session.stream("tenths").producer("q") as q:
        p.insert([bid(1, 1, 10), bid(2, 2**40, 11), bid(3, 2, 12)])
        q.insert([{"at": 1, "id": Decimal(1), "name": "pen"}, {"at": 2, "id": Decimal("2.5"), "name": "ink"}])
        q.punctuate(id={"<": Decimal(2)})
        p.punctuate(auction=[1, 2**40])
        p.punctuate(auction=2)
        q.punctuate(id={">=": Decimal(2)})
    given, progress = live(spark, session, tmp_path / "c", query, (0.3, 0.7), {1})
    assert sorted(rows(given)) == [(10, "pen"), (11, None), (12, None)]
    assert progress["rows_in_windows"] == 0, "2.5 is none of the auctions"
    session.sql("DROP STREAM tenths")


def test_promises_hold_in_the_types_of_set_operators(spark, session, tmp_path):
    query = "SELECT STREAM auction FROM bids EXCEPT SELECT CAST(auction AS DECIMAL(30, 1)) FROM sold"
    with session.stream("bids").producer("p") as p, session.stream("sold").producer("q") as q:
        p.insert([bid(1, 1, 10), bid(2, 2, 11)])
        q.insert({"at": 1, "auction": 1, "item": "pen"})
        q.punctuate(auction={"<": 2})
        q.punctuate(auction={">=": 2})
    given, _ = live(spark, session, tmp_path / "c", query, (0.65, 0.85), {1})
    assert [rows([one]) for one in given] == [[], [(2,)], []]


def test_functions_that_look_back_by_what_rises_with_the_rowtime_tell_when_it_has_passed(
    spark, session, tmp_path
):
    query = "SELECT STREAM at, LAG(price) OVER (PARTITION BY auction ORDER BY 2 * at - 1) AS before FROM bids"
    with session.stream("bids").producer("p") as p:
        p.insert([bid(4, 1, 10), bid(2, 1, 5), bid(3, 2, 1)])
        p.bound(3)
        p.bound(5)
    assert session.sql(query)._live.unbounded() == []
    given, _ = live(spark, session, tmp_path / "c", query, (0.41, 0.61, 0.81), {1})
    assert [sorted(rows([one])) for one in given] == [[], [(2, None)], [(3, None), (4, 5)], []]


def test_patterns_of_a_key_and_a_time_end_groups_of_the_key_and_what_rises_with_it(spark, tmp_path):
    session = Session(spark)
    columns = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("n", pa.int32())])
    ticks = NamedStream.create(tmp_path / "ticks", columns, "ts", ordering=Ordering.unordered())
    session.stream("ticks", ticks)

    def minute(number):
        return datetime.datetime(2026, 1, 30, 9, tzinfo=datetime.UTC) + datetime.timedelta(minutes=number)

    with session.stream("ticks").producer("p") as p:
        p.insert([{"ts": minute(at), "k": k, "n": at} for at in (5, 50, 70) for k in "ab"])
        p.punctuate(k="a", ts={"<": minute(60)})
        p.punctuate(k="b", ts={"<": minute(30)})
        p.punctuate(k="b", ts={">=": minute(30), "<": minute(75)})
    query = "SELECT STREAM k, hour, SUM(n) FROM (SELECT k, n, {} AS hour FROM ticks) GROUP BY k, hour"
    hours = query.format("date_trunc('HOUR', ts)")
    given, progress = live(spark, session, tmp_path / "c", hours, (0.35, 0.51, 0.68), {1, 2})
    shown = [[(one["k"], one["hour"].hour) for one in table.to_pylist()] for table in given]
    assert shown == [[], [("a", 9)], [], [("b", 9)]]
    assert progress["rows_in_windows"] == 2
    months = query.format("ts + INTERVAL 1 MONTH")
    with session.stream("ticks").producer("q") as q:
        q.bound(datetime.datetime(2026, 1, 30, 20, tzinfo=datetime.UTC))
        q.insert({"ts": datetime.datetime(2026, 1, 31, 9, 5, tzinfo=datetime.UTC), "k": "a", "n": 1})
    given, progress = live(spark, session, tmp_path / "d", months, (0.9,), set())
    assert rows(given) == [], "what is at 9:05 on the last of February, two days give"
    assert sorted(row[2] for row in recorded(session, months)) == [5, 6, 50, 50, 70, 70]
    session.sql("DROP STREAM ticks")


def test_a_column_that_is_promised_whole_in_two_parts_ends_what_rises_with_it(spark, session, tmp_path):
    columns = pa.schema([("at", pa.int64()), ("d", pa.timestamp("us"))])
    days = NamedStream.create(tmp_path / "days", columns, "at", ordering=Ordering.unordered())
    session.stream("days", days)
    query = "SELECT STREAM date_trunc('DAY', d) AS day, COUNT(*) AS n FROM days GROUP BY 1"
    first, noon, later = (datetime.datetime(2026, 1, day, 12) for day in (1, 2, 3))
    with session.stream("days").producer("p") as p:
        p.insert([{"at": 1, "d": first}, {"at": 2, "d": noon}, {"at": 3, "d": later}])
        p.punctuate(d={"<": noon})
        p.punctuate(d={">=": noon})
        given, progress = live(spark, session, tmp_path / "c", query, (0.65, 0.85), {1})
    assert [len(rows([one])) for one in given] == [0, 1, 2]
    assert progress["rows_in_windows"] == 0
    session.sql("DROP STREAM days")
