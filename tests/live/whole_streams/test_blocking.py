"""Groups, joins, DISTINCT, set operators and ORDER BY of whole streams, by what these promise."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pytest

from tests.live.auctions import bid, entries, live, opened, recorded, rows
from windrow import Memory, WindrowError
from windrow.explain.explain_live import how_blocking
from windrow.spark.live.hosts import micro_batches_of
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.streams import FOREVER, NamedStream, Ordering

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture
def session(spark, tmp_path):
    session = opened(spark, tmp_path)
    yield session
    for name in ("bids", "sold"):
        session.sql(f"DROP STREAM {name}")


@pytest.fixture(scope="module")
def auctions(spark, tmp_path_factory):
    """Two logs in which auctions come, are sold, and go; in the end all is promised."""
    session = opened(spark, tmp_path_factory.mktemp("auctions"))
    people = spark.createDataFrame([("ann", "Ann"), ("bob", "Bob")], "who STRING, name STRING")
    people.createOrReplaceTempView("people")
    dear = "SELECT STREAM at, auction AS lot, price * 2 AS twice FROM bids WHERE price > 4"
    session.sql(f"CREATE TEMP VIEW dear AS {dear}")
    both = "SELECT STREAM lot, twice FROM dear UNION ALL SELECT auction, at FROM sold"
    session.sql(f"CREATE TEMP VIEW lots (lot, of) AS {both}")
    session.sql(
        "CREATE TEMP VIEW high (lot, top) AS WITH own AS (SELECT auction, price FROM bids WHERE price > 1)"
        " SELECT STREAM auction, MAX(price) FROM own GROUP BY auction"
    )
    session.sql("CREATE TEMP VIEW items AS SELECT STREAM item, top FROM high JOIN sold ON lot = sold.auction")
    with session.stream("bids").producer("p") as p, session.stream("sold").producer("q") as q:
        q.insert({"at": 0, "auction": 1, "item": "pen"})
        p.insert([bid(1, 1, 10), bid(2, 2, 5, "bob"), bid(1, 1, 12)])
        q.insert([{"at": 1, "auction": 2, "item": "ink"}, {"at": 3, "auction": None, "item": "cup"}])
        p.bound(2)
        p.punctuate(auction=1)
        q.punctuate(auction=[1, 2, None])
        p.insert([bid(5, 2, 7, "bob"), bid(4, 3, 7), bid(9, 3, None, "cid"), bid(8, None, 6)])
        q.bound(6)
        q.insert([{"at": 8, "auction": 3, "item": "pen"}, {"at": 9, "auction": 9, "item": "hat"}])
        p.bound(8)
        p.punctuate(auction=[2, None])
        p.insert([bid(10, 3, 1), bid(11, 4, 40, "bob"), bid(11, 4, 40, "bob")])
        q.punctuate(auction={"<": 5})
        p.punctuate(auction=[3, 4])
        q.finish()
        p.finish()
    yield session
    for name in ("items", "high", "lots", "dear"):
        session.sql(f"DROP VIEW {name}")
    for name in ("bids", "sold"):
        session.sql(f"DROP STREAM {name}")
    spark.catalog.dropTempView("people")


OVER_ALL = [
    "SELECT STREAM who, (SELECT MAX(at) FROM sold) AS last FROM bids",
    "SELECT STREAM who, (SELECT MAX(at) FROM sold HAVING COUNT(*) > 99) AS last FROM bids",
    "SELECT STREAM who FROM bids WHERE price > (SELECT AVG(at) FROM sold)"
    " AND at < (SELECT MAX(at) FROM sold)",
    "SELECT STREAM auction, COUNT(*) AS n FROM bids GROUP BY auction"
    " HAVING COUNT(*) > (SELECT MIN(at) FROM sold)",
    "SELECT STREAM who, (SELECT COUNT(*) FROM sold s WHERE s.auction = b.auction) AS n FROM bids b",
    "SELECT STREAM who, EXISTS (SELECT 1 FROM sold s WHERE s.auction = b.auction) AS was FROM bids b",
    "SELECT STREAM who FROM bids b WHERE price > 20 OR EXISTS"
    " (SELECT 1 FROM sold s WHERE s.auction = b.auction AND s.at > 0)",
    "SELECT STREAM b.who, s.item FROM bids b JOIN sold s ON CAST(b.auction AS STRING) = s.auction",
    "SELECT STREAM b.* FROM bids b JOIN sold USING (auction)",
    "SELECT STREAM who, (SELECT COUNT(*) FROM sold s WHERE s.at < b.at) AS n FROM bids b",
    "SELECT STREAM who FROM bids b WHERE at < (SELECT MAX(s.at) FROM sold s WHERE s.auction <> b.auction)",
    "SELECT STREAM who FROM bids b WHERE at IN (SELECT MIN(s.at) FROM sold s WHERE s.auction <= b.auction)",
    "SELECT STREAM b.who, q.item FROM bids b JOIN LATERAL"
    " (SELECT s.item FROM sold s WHERE s.auction = b.auction AND s.at < b.at) AS q ON true",
    "SELECT STREAM who FROM (WITH c AS (SELECT who, price FROM bids) SELECT DISTINCT who FROM c) AS q",
    "SELECT STREAM who, at FROM bids WHERE at NOT IN (SELECT at FROM sold)",
    "SELECT STREAM who FROM bids WHERE auction NOT IN (SELECT auction FROM sold)",
    "SELECT STREAM at, who FROM bids WHERE auction IS NOT NULL"
    " AND auction NOT IN (SELECT auction FROM sold WHERE auction IS NOT NULL)",
    "SELECT STREAM who, at FROM bids WHERE auction NOT IN (SELECT auction FROM sold WHERE item = 'no')",
    "SELECT STREAM who, auction NOT IN (SELECT auction FROM sold WHERE item <> 'cup') AS was FROM bids b",
    "SELECT STREAM who, at FROM bids b WHERE price NOT IN (SELECT s.auction FROM sold s WHERE s.at = b.at)",
    "SELECT STREAM who FROM bids b WHERE at NOT IN (SELECT s.at FROM sold s WHERE s.auction > b.auction)",
    "SELECT STREAM who, at FROM bids b WHERE (auction, at) NOT IN (SELECT auction, at FROM sold)",
    "SELECT STREAM who, at FROM bids b WHERE (auction, at, price, who)"
    " NOT IN (SELECT auction, at, auction + 3, item FROM sold)",
    "SELECT STREAM who, at FROM bids b WHERE (auction, auction) NOT IN (SELECT auction, at FROM sold)",
    "SELECT STREAM who, at FROM bids b WHERE (auction, at) NOT IN (SELECT auction, auction FROM sold)",
    "SELECT STREAM who, at FROM bids b WHERE (auction, at, auction, at)"
    " IN (SELECT auction, at, auction, at FROM sold)",
    "SELECT STREAM who, item FROM bids b LEFT JOIN sold s ON s.auction = b.auction AND s.at = b.auction",
    "SELECT STREAM who, item FROM bids b LEFT JOIN sold s ON s.auction = b.auction AND s.auction = b.at",
    "SELECT STREAM b.who FROM bids b WHERE (auction, at, auction, price)"
    " NOT IN (SELECT auction, at, auction, auction FROM sold)",
    "SELECT STREAM who, item FROM bids b FULL JOIN sold s ON b.auction = s.auction AND b.price > s.at + 5",
    "SELECT STREAM who, item FROM bids b FULL JOIN sold s ON b.at < s.at AND s.auction > 1",
    "SELECT STREAM who, item FROM bids b LEFT JOIN sold s ON s.auction = b.auction"
    " AND s.at BETWEEN b.at AND b.at + 3",
    "SELECT STREAM who FROM bids b LEFT ANTI JOIN sold s ON b.auction = s.auction AND s.at > b.at",
    "SELECT STREAM who FROM bids b WHERE NOT EXISTS"
    " (SELECT 1 FROM sold s WHERE s.auction = b.auction AND s.at BETWEEN b.at AND b.at + 3)",
    "SELECT STREAM who FROM bids b WHERE price > 9 OR NOT EXISTS (SELECT 1 FROM sold s WHERE s.at > b.at)",
    "SELECT STREAM who FROM bids b WHERE EXISTS (SELECT 1 FROM sold WHERE item = 'cup')",
    "SELECT STREAM COUNT(*) AS n FROM bids WHERE auction IS NULL",
    # and what attacks have found
    "SELECT STREAM a.who, b.item, c.item AS other FROM bids a, sold b, sold c WHERE a.price > 4 AND c.at > 0",
    "SELECT STREAM auction FROM (SELECT CAST(auction AS INT) AS auction FROM sold) FULL JOIN"
    " (SELECT auction * 1000000000000 AS auction FROM bids) AS b USING (auction)",
    "WITH high AS (SELECT auction, MAX(price) AS top FROM bids GROUP BY auction)"
    " SELECT STREAM high.top FROM high JOIN sold ON high.auction = sold.auction WHERE high.top > 1",
    "WITH who AS (SELECT auction FROM bids) SELECT STREAM who, COUNT(*) FROM bids GROUP BY who",
    "SELECT STREAM s.`a b` FROM (SELECT named_struct('a b', auction) AS s FROM bids UNION"
    " SELECT named_struct('a b', CAST(auction AS INT)) FROM sold) AS t",
]


@pytest.mark.sampled
@pytest.mark.parametrize("query", OVER_ALL)
def test_subqueries_and_other_joins_live_are_those_of_the_whole_log(spark, auctions, tmp_path, query):
    given, progress = live(spark, auctions, tmp_path / "c", query, (0.4, 0.7), {1})
    assert Counter(rows(given)) == Counter(recorded(auctions, query))
    assert progress["rows_in_windows"] == 0


@pytest.mark.sampled
@pytest.mark.parametrize(
    "query",
    [
        "SELECT STREAM who, item FROM bids b JOIN sold s ON b.auction < s.auction AND b.price > 4",
        "SELECT STREAM DISTINCT auction, who FROM bids ORDER BY auction DESC, who",
        "SELECT STREAM b.who, item, price * 2 AS p FROM bids b, sold s"
        " WHERE b.auction = s.auction AND b.at <> s.at AND price > 5",
        "SELECT STREAM s.item, b.price FROM sold s LEFT JOIN bids b ON b.auction = s.auction AND b.price > 8",
        "SELECT STREAM s.item, price FROM sold s FULL JOIN bids b ON b.auction + 1 = s.auction + 1",
        "SELECT STREAM c.item, price FROM bids b JOIN sold s ON b.auction = s.auction AND price > 5"
        " RIGHT JOIN sold c ON s.auction = c.auction",
        "SELECT STREAM who, price FROM bids b WHERE auction IN (SELECT auction FROM sold WHERE item <> 'ink')"
        " AND EXISTS (SELECT 1 FROM sold s WHERE s.auction = b.auction AND s.at > 0)",
        "SELECT STREAM who FROM bids b WHERE price > 3 AND NOT EXISTS"
        " (SELECT 1 FROM sold s WHERE s.auction = b.auction AND s.item = 'pen') ORDER BY at, price",
        "SELECT STREAM who, COUNT(*) AS n, GROUPING(who) AS g FROM bids GROUP BY who WITH ROLLUP",
        "SELECT STREAM auction, who, MAX(price) AS p FROM bids GROUP BY auction, CUBE (who)",
        "SELECT STREAM auction FROM bids UNION SELECT auction FROM sold",
        "SELECT STREAM auction FROM bids EXCEPT ALL SELECT auction FROM sold"
        " INTERSECT SELECT auction FROM bids",
        "WITH high AS (SELECT auction, MAX(price) AS top FROM bids WHERE price > 4 GROUP BY auction)"
        " SELECT STREAM item, top FROM high JOIN sold ON high.auction = sold.auction WHERE top > 5",
        "SELECT STREAM total, COUNT(*) AS n FROM"
        " (SELECT auction, SUM(price) AS total FROM bids GROUP BY auction HAVING COUNT(*) > 1) AS t"
        " GROUP BY total",
        "SELECT STREAM COUNT(*) AS n, MAX(price) FROM bids WHERE price > 1000",
        "SELECT STREAM COUNT(*) AS n FROM bids UNION ALL SELECT COUNT(*) FROM sold WHERE item = 'pen'"
        " UNION ALL SELECT auction FROM (SELECT DISTINCT auction FROM sold WHERE auction < 3) AS t",
        "SELECT STREAM price, at FROM bids ORDER BY at, price LIMIT 3 OFFSET 1",
        "SELECT STREAM who, COUNT(*) AS n FROM (SELECT who FROM bids ORDER BY at, price LIMIT 5) AS t"
        " GROUP BY who UNION ALL SELECT item, 0 FROM sold",
        "SELECT STREAM wstart, wend, who, SUM(price) AS n"
        " FROM HOP(data => TABLE bids, timecol => DESCRIPTOR(at), dur => 8, hopsize => 3)"
        " GROUP BY wstart, wend, who",
        "SELECT STREAM lot, MAX(twice) AS top, COUNT(*) AS n FROM dear d JOIN sold ON lot = sold.auction"
        " WHERE EXISTS (SELECT 1 FROM lots WHERE lots.lot = d.lot AND of > 7) GROUP BY lot",
        "SELECT STREAM lot, i.item FROM high AS h JOIN items i ON h.top = i.top WHERE lot < 4 ORDER BY lot",
        "SELECT STREAM auction, at, price * 2, RANK() OVER (PARTITION BY auction ORDER BY price DESC),"
        " COUNT(*) OVER (PARTITION BY b.auction) AS n FROM bids b WHERE at > 1",
        "SELECT STREAM *, LAG(at) OVER w, CAST(AVG(price) OVER (PARTITION BY who ORDER BY at, price"
        " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS INT) AS mean FROM bids"
        " WINDOW w AS (PARTITION BY who ORDER BY at, price) ORDER BY at, price",
        "SELECT STREAM auction AS lot, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, at)"
        " AS place FROM bids QUALIFY place <= 2 AND MAX(bids.at) OVER (PARTITION BY auction) > 2",
        "SELECT STREAM DISTINCT n, SUM(n) OVER (ORDER BY n) AS upto, at FROM"
        " (SELECT at, COUNT(*) AS n FROM bids GROUP BY at)",
        "SELECT STREAM b.who, auction, SUM(price) AS s,"
        " RANK() OVER (PARTITION BY b.who ORDER BY SUM(price) DESC) FROM bids b"
        " GROUP BY auction, b.who HAVING s > 1 AND COUNT(*) > 0 ORDER BY auction, s",
        "SELECT STREAM auction AS lot, who, SUM(price) AS s FROM bids GROUP BY auction, who"
        " QUALIFY ROW_NUMBER() OVER (PARTITION BY lot ORDER BY s DESC, who) = 1 AND s > 2",
        "SELECT STREAM wend, 2 * SUM(COUNT(*)) OVER w AS n, CONCAT(who, MAX(who) OVER w) AS c FROM"
        " HOP(data => TABLE bids, timecol => DESCRIPTOR(at), dur => 8, hopsize => 3)"
        " GROUP BY wstart, wend, who QUALIFY n > 2 WINDOW w AS (PARTITION BY wend)",
        "SELECT STREAM DISTINCT auction % 2 AS half,"
        " LAG(SUM(price)) OVER (PARTITION BY auction % 2 ORDER BY who) FROM bids"
        " WHERE price > 1 GROUP BY auction % 2, who",
        "SELECT STREAM COUNT(*) AS n, RANK() OVER (ORDER BY MAX(price)) AS r FROM bids",
        "SELECT STREAM *, auction + 1 FROM bids b JOIN (SELECT auction, item FROM sold) AS s USING (auction)"
        " WHERE b.at > 1",
        "SELECT STREAM auction, COUNT(item), MAX(price) FROM bids FULL JOIN sold USING (auction)"
        " GROUP BY auction",
        "SELECT STREAM item, at, who FROM sold s NATURAL LEFT JOIN (SELECT at, auction, who FROM bids) AS b",
        "SELECT STREAM s.item, n FROM sold s JOIN (SELECT CAST(auction AS INT) lot, COUNT(*) AS n FROM bids"
        " GROUP BY 1) AS g ON s.auction = g.lot WHERE n IN (SELECT CAST(at / 2 AS DECIMAL(5, 1)) FROM bids)",
        "SELECT STREAM wstart, wend, who, COUNT(*) AS n FROM SESSION(TABLE bids PARTITION BY who,"
        " DESCRIPTOR(at), 3) GROUP BY wstart, wend, who ORDER BY wend, who",
        "SELECT STREAM wstart, wend, who, COUNT(*) AS n, MAX(price) FROM SESSION(TABLE bids PARTITION BY who,"
        " DESCRIPTOR(at), 3, 5) GROUP BY wstart, wend, who ORDER BY wend, who",
        "SELECT STREAM * FROM SESSION(TABLE (SELECT at, price FROM bids WHERE at > 1), DESCRIPTOR(at), 3, 2)",
        "SELECT STREAM * FROM SESSION(TABLE (SELECT at, price FROM bids WHERE price > 1), DESCRIPTOR(at), 1)",
        "SELECT STREAM b.auction, name, COUNT(DISTINCT at) AS n, MEDIAN(price) AS m"
        " FROM bids b JOIN people ON b.who = people.who GROUP BY 1, name",
    ],
)
def test_what_is_given_live_is_what_the_whole_log_gives(spark, auctions, tmp_path, query):
    whole = recorded(auctions, query)
    assert whole
    assert Counter(whole) == Counter(recorded(auctions, query.replace("SELECT STREAM", "SELECT")))
    given, progress = live(spark, auctions, tmp_path / "c", query, (0.4, 0.7), {1})
    found = rows(given)
    assert Counter(found) == Counter(whole)
    if "ORDER BY" in query.rpartition(")")[2]:  # of the whole
        assert found == whole
    assert progress["rows_in_windows"] == 0
    assert progress["rows_in"] == progress["rows_used"] + progress["rows_buffered"] + progress["rows_late"]


NESTED = [
    (
        "SELECT STREAM who, auction, MAX(price) AS top,"
        " RANK() OVER (PARTITION BY auction ORDER BY MAX(price) DESC) AS place FROM bids"
        " WHERE price > 1 GROUP BY auction, who HAVING COUNT(*) < 9 QUALIFY place < 3",
        "SELECT STREAM who, auction, top, RANK() OVER (PARTITION BY auction ORDER BY top DESC) AS place FROM"
        " (SELECT auction, who, MAX(price) AS top FROM bids WHERE price > 1 GROUP BY auction, who"
        " HAVING COUNT(*) < 9) QUALIFY place < 3",
    ),
    (
        "SELECT STREAM at, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY at) AS more FROM bids"
        " GROUP BY at",
        "SELECT STREAM at, n, n - LAG(n) OVER (ORDER BY at) AS more FROM"
        " (SELECT at, COUNT(*) AS n FROM bids GROUP BY at)",
    ),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("together", "apart"), NESTED)
def test_over_beside_groups_is_over_of_a_query_that_groups(spark, auctions, tmp_path, together, apart):
    """Step by step, wherever the logs are cut and the query killed; and as early."""
    for number, (cuts, kills) in enumerate((((), set()), ((0.3, 0.55, 0.8), {1, 3}), ((0.6, 0.9), {2}))):
        given, progress = live(spark, auctions, tmp_path / f"t{number}", together, cuts, kills)
        wanted, _ = live(spark, auctions, tmp_path / f"a{number}", apart, cuts, kills)
        assert [Counter(rows([one])) for one in given] == [Counter(rows([one])) for one in wanted]
        for query in (together, apart):
            assert Counter(rows(given)) == Counter(recorded(auctions, query))
        assert progress["rows_in_windows"] == 0
    assert sum(bool(table.num_rows) for table in given) > 1, "some are given before the end"


EXCEPT = """
    SELECT STREAM b.auction, COUNT(*) AS n
    FROM bids b JOIN sold s ON b.auction = s.auction
    GROUP BY b.auction
    EXCEPT
    SELECT auction, 1 FROM sold WHERE item = 'ink'
"""


def test_a_plan_gives_its_groups_by_punctuation_alone_and_keeps_nothing(spark, session, tmp_path):
    p, q = session.stream("bids").producer("p"), session.stream("sold").producer("q")
    sink, read, number = Memory(), {"bids": 0, "sold": 0}, 0
    plan = session.sql(EXCEPT)._live

    def started():
        return micro_batches_of(plan, sink, tmp_path / "c", "delta", "keep")

    def given():
        nonlocal number
        frames = {}
        for name, first in read.items():
            read[name] = session._catalog.named[name].stream.log.last()
            frames[name] = entries(spark, session, name, first, read[name])
        steps.take(steps.input(frames), number)
        number += 1
        return rows([sink.batches[number - 1]])

    def kept():
        return {row.name: row.rows for row in steps.state().rows if row.kind == "operator"}

    steps = started()
    p.insert([bid(1, 1, 10), bid(2, 2, 5), bid(3, 1, 12)])
    q.insert([{"at": 1, "auction": 1, "item": "pen"}, {"at": 2, "auction": 2, "item": "ink"}])
    q.punctuate(auction=[1, 2])
    assert given() == [], "more bids may come"
    reasons = {(row.name, row.why) for row in steps.state().rows if row.kind == "operator"}
    assert reasons
    assert all(f"{name} retains {why}" in how_blocking(plan) for name, why in reasons)
    assert kept()["GROUP BY b.auction"] == 2
    p.punctuate(auction=2)
    p.punctuate(auction=1, price={"<": 11})
    assert given() == [], "the group of auction 2 is what EXCEPT leaves out; 1 may get higher bids"
    steps.close()
    steps = started()
    p.punctuate(auction=1, price={">=": 11})
    assert given() == [], "but for bids without a price"
    p.punctuate(auction=1, price=None)
    assert given() == [(1, 2)]
    assert set(kept().values()) == {0}
    assert steps.progress["rows_in_windows"] == 0
    steps.close()
    assert recorded(session, EXCEPT) == [(1, 2)]
    p.close()
    q.close()


def test_rows_come_in_order_as_far_as_they_may_be_out_of_it(spark, session, tmp_path):
    query = "SELECT STREAM at, price FROM bids WHERE price > 0 ORDER BY at WITHIN INTERVAL 5 MILLISECONDS"
    with session.stream("bids").producer("p") as p:
        for at in (10, 7, 12, 9, 20, 14, 15, 30):
            p.insert(bid(at, 1, at))
    given, progress = live(spark, session, tmp_path / "c", query, (0.5, 0.7), {1})
    assert [[at for at, _ in rows([one])] for one in given] == [[], [7, 9, 10, 12], [15, 20]]
    assert (progress["rows_late"], progress["rows_in_windows"]) == (1, 1), "14 is below 20 − 5, 30 waits"
    assert [at for at, _ in recorded(session, query)] == [7, 9, 10, 12, 15, 20, 30]
    for wrong in (
        "SELECT STREAM price FROM bids ORDER BY price WITHIN INTERVAL 5 MILLISECONDS",
        "SELECT STREAM DISTINCT at FROM bids ORDER BY at WITHIN INTERVAL 5 MILLISECONDS",
        "SELECT STREAM at, who FROM bids [NOW] ORDER BY at WITHIN INTERVAL 5 MILLISECONDS",
    ):
        with pytest.raises(WindrowError, match="UNSUPPORTED_STREAM"):
            session.sql(wrong)


def test_what_a_query_gives_is_promised_in_the_stream_into_which_it_goes(spark, session, tmp_path):
    """Proper: what is promised there no later row breaks; and a query over it gives what is final by that."""
    columns = pa.schema([("lot", pa.int64()), ("until", pa.int64()), ("high", pa.int64())])
    taking = NamedStream.create(tmp_path / "highs", columns, "until", ordering=Ordering.unordered())
    session.stream("highs", taking)
    query = "SELECT STREAM auction, MAX(at) AS until, MAX(price) AS high FROM bids GROUP BY auction"
    plan, sink, read = session.sql(query)._live, IntoStream(taking), 0
    with session.stream("bids").producer("p") as p:

        def step(number):
            nonlocal read
            first, read = read, session._catalog.named["bids"].stream.log.last()
            steps = micro_batches_of(plan, sink, tmp_path / "c", "delta", "keep")
            steps.take(steps.input({"bids": entries(spark, session, "bids", first, read)}), number)
            steps.close()

        p.insert([bid(5, 1, 10), bid(2, 2, 5), bid(3, 1, 12), bid(9, 3, 1)])
        p.punctuate(auction=1)
        p.punctuate(auction=2)
        step(0)
        p.insert(bid(4, 3, 7))
        p.punctuate(auction={"<": 9})
        step(1)
        p.finish()
        step(2)
    batch, position = taking.read(taking.start)
    found = sorted(map(tuple, (row.values() for row in batch.rows.select(columns.names).to_pylist())))
    assert found == [(1, 5, 12), (2, 2, 5), (3, 9, 7)]
    assert not batch.late.num_rows
    told = [json.loads(text) for text in position.watermark.shared]
    assert {"lot": [{"in": {"<": 9}}]} in told
    twice = "SELECT STREAM lot, COUNT(*) AS n FROM highs GROUP BY lot"
    given, progress = live(spark, session, tmp_path / "d", twice, (0.5,), set())
    assert sorted(rows(given)) == [(1, 1), (2, 1), (3, 1)]
    assert progress["rows_in_windows"] == 0
    for wrong, of, condition in (
        (query.replace("MAX(at) AS until, ", ""), taking, "RELATION_WHERE_STREAM_IS_NEEDED"),
        (query.replace("MAX(at)", "CAST(MAX(at) AS STRING)"), taking, "MIXED_ROWTIMES"),
    ):
        with pytest.raises(WindrowError, match=condition):
            session.sql(wrong).start(of, on_unbounded="ignore")
    session.sql("DROP STREAM highs")


def test_promises_about_integers_hold_for_wider_ones(spark, session, tmp_path):
    columns = pa.schema([("at", pa.int64()), ("id", pa.int32()), ("name", pa.string())])
    tiny = NamedStream.create(tmp_path / "tiny", columns, "at", ordering=Ordering.unordered())
    session.stream("tiny", tiny)
    query = "SELECT STREAM price, name FROM bids b LEFT JOIN tiny t ON b.auction = t.id"
    with session.stream("bids").producer("p") as p, session.stream("tiny").producer("q") as q:
        p.insert([bid(1, 1, 10), bid(2, 2**40, 11), bid(3, 2, 12)])
        q.insert({"at": 1, "id": 1, "name": "pen"})
        q.punctuate(id={"<": 2})
        p.punctuate(auction=[1, 2**40])
        p.punctuate(auction=2)
        q.punctuate(id={">=": 2})
    session.sql("SELECT 1 FROM bids, tiny")
    assert session.sql(query)._live.unbounded() == []
    given, progress = live(spark, session, tmp_path / "c", query, (0.3, 0.7), {1})
    assert sorted(rows(given)) == [(10, "pen"), (11, None), (12, None)]
    assert progress["rows_in_windows"] == 0
    session.sql("DROP STREAM tiny")


def test_functions_that_look_back_tell_of_rows_when_time_has_passed(spark, session, tmp_path):
    """No key need be closed, and of each no more rows are kept than are looked back at."""
    query = """
        SELECT STREAM auction, at, LAG(price) OVER (PARTITION BY auction ORDER BY at) AS before,
            SUM(price) OVER (PARTITION BY auction ORDER BY at ROWS 1 PRECEDING) AS both
        FROM bids
    """
    with session.stream("bids").producer("p") as p:
        p.insert([bid(1, 1, 10), bid(4, 1, 5), bid(2, 2, 7), bid(3, 1, 6)])
        p.bound(4)
        p.insert([bid(6, 1, 1), bid(6, 2, 3)])
        p.punctuate(auction=2)
    assert session.sql(query)._live.unbounded() == []
    given, progress = live(spark, session, tmp_path / "c", query, (0.34, 0.51, 0.67), {1})
    assert [sorted(rows([one])) for one in given] == [
        [], [(1, 1, None, 10), (1, 3, 10, 16), (2, 2, None, 7)], [], [(2, 6, 7, 10)]
    ]  # fmt: skip
    assert progress["rows_in_windows"] == 3, "(1, 4) and (1, 6) wait, (1, 3) is looked back at"
    further = "SELECT STREAM auction, at, RANK() OVER (PARTITION BY auction ORDER BY at) FROM bids"
    (told,) = session.sql(further.replace("auction", "who"))._live.unbounded()
    assert str(told).startswith("OVER (PARTITION BY who ORDER BY at) retains a total of each partition")
    session.sql("SELECT 1 FROM bids")
    assert session.sql(further)._live.unbounded() == []


def test_functions_over_all_rows_so_far_retain_a_total_of_each_partition(spark, session, tmp_path):
    query = """
        SELECT STREAM auction, at, SUM(price) OVER w AS s, COUNT(*) OVER w AS n, MAX(price) OVER w AS m,
            RANK() OVER w AS r,
            MIN(price) OVER (PARTITION BY auction ORDER BY at ROWS UNBOUNDED PRECEDING) AS l
        FROM bids WINDOW w AS (PARTITION BY auction ORDER BY at)
    """
    with session.stream("bids").producer("p") as p:
        p.insert([bid(1, 1, 10), bid(1, 1, 2), bid(4, 1, 5), bid(2, 2, 7), bid(3, 1, 6)])
        p.bound(4)
        p.insert([bid(6, 1, 1), bid(6, 2, 3)])
        p.bound(9)
    given, progress = live(spark, session, tmp_path / "c", query, (0.34, 0.51, 0.67), {1})
    assert sorted(rows(given)) == [
        (1, 1, 12, 2, 10, 1, 2), (1, 1, 12, 2, 10, 1, 10), (1, 3, 18, 3, 10, 3, 2), (1, 4, 23, 4, 10, 4, 2),
        (1, 6, 24, 5, 10, 5, 1), (2, 2, 7, 1, 7, 1, 7), (2, 6, 10, 2, 7, 2, 3),
    ]  # fmt: skip
    assert progress["rows_in_windows"] == 2, "a total of each auction"


def test_rows_go_into_a_stream_that_is_in_order_as_it_wants_them(spark, session, tmp_path):
    """None is late there, wherever the query is cut."""
    columns = pa.schema([("at", pa.int64()), ("item", pa.string()), ("price", pa.int64())])
    query = "SELECT STREAM b.at, item, price FROM bids b LEFT JOIN sold s ON b.auction = s.auction"
    with session.stream("bids").producer("p") as p, session.stream("sold").producer("q") as q:
        q.insert([{"at": 1, "auction": 1, "item": "pen"}, {"at": 2, "auction": 7, "item": "hat"}])
        p.insert([bid(5, 1, 10), bid(2, 2, 5), bid(3, 1, 12)])
        p.bound(4)
        q.punctuate(auction={"<": 5})
        p.insert([bid(4, 3, 1), bid(6, 1, 2), bid(4, 1, 3)])
        p.bound(6)
        p.finish()
        q.finish()
    computed = session.sql("SELECT STREAM MAX(at) AS at, who, 1 FROM bids GROUP BY who")._live
    into = NamedStream.create(tmp_path / "into", columns, "at")
    told = [str(one).partition(":")[0] for one in computed.into(into, None).unbounded()]
    assert told == ["GROUP BY who retains each group", "in order of at retains all rows"]
    given = {}
    for cuts in ((), (0.35, 0.5, 0.85), (0.25, 0.6)):
        into = NamedStream.create(tmp_path / f"into{cuts}", columns, "at")
        plan, sink = session.sql(query)._live.into(into, None), IntoStream(into)
        lengths = {name: session._catalog.named[name].stream.log.last() for name in ("bids", "sold")}
        for number, (low, high) in enumerate(zip((0, *cuts), (*cuts, 1), strict=True)):
            steps = micro_batches_of(plan, sink, tmp_path / f"c{cuts}", "delta", "keep")
            frames = {
                name: entries(spark, session, name, int(low * last), int(high * last))
                for name, last in lengths.items()
            }
            steps.take(steps.input(frames), number)
            steps.close()
        batch, position = into.read(into.start)
        given[cuts] = [tuple(row.values()) for row in batch.rows.select(columns.names).to_pylist()]
        assert not batch.late.num_rows
        assert position.watermark.value == FOREVER
    whole = recorded(session, query)
    for found in given.values():
        assert Counter(found) == Counter(whole)
        assert [at for at, *_ in found] == sorted(at for at, *_ in whole)


def test_a_checkpoint_with_pickles_is_refused_unread(spark, auctions, tmp_path):
    """Versions before kept what operators hold as pickles, which can run code when they are read."""
    plan = auctions.sql("SELECT STREAM auction, COUNT(*) AS n FROM bids GROUP BY auction")._live
    last = auctions._catalog.named["bids"].stream.log.last()

    def take(number, first):
        steps = micro_batches_of(plan, Memory(), tmp_path, "diff", "keep")
        try:
            frames = {name: entries(spark, auctions, name, first, last) for _, name, _ in steps.streams()}
            steps.take(steps.input(frames), number)
        finally:
            steps.close()

    take(0, 0)
    ours = tmp_path / "windrow"
    for path in (ours / "chunks").iterdir():
        assert b"pickle" not in path.read_bytes()
    meta = ours / "0" / "step.json"
    told = json.loads(meta.read_text())
    told["query"]["state"] = "plan"
    meta.write_text(json.dumps(told))
    with pytest.raises(WindrowError, match="CHECKPOINT_VERSION") as caught:
        take(1, last)
    assert caught.value.hint
