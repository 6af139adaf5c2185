"""CREATE TABLE … AS and INSERT write what a query over recorded streams returns."""

from __future__ import annotations

import pytest

from windrow import NotSupportedError, Session, WindrowError

ROWS = [
    (1, 1, "A", 10, None),
    (2, 2, "B", 14, None),
    (3, 4, "A", 12, 5),
    (4, 7, "A", 11, None),
    (5, 2, "C", 9, None),
]
LATEST = "SELECT item, MAX(price) AS best FROM bids [RANGE 4] GROUP BY item"


@pytest.fixture(scope="module")
def session(spark):
    session = Session(spark.newSession())
    log = session.spark.createDataFrame(ROWS, "at int, second bigint, item string, price int, upto bigint")
    session.stream("bids", log, rowtime="second", unit="seconds", ptime="at", watermark="upto")
    return session


@pytest.fixture
def kept(session, tmp_path):
    yield f"kept USING parquet LOCATION '{tmp_path / 'kept'}'"
    session.sql("DROP TABLE IF EXISTS kept")


def listed(relation) -> list[tuple[object, ...]]:
    return sorted(map(tuple, relation.collect()))


@pytest.mark.parametrize(
    "query",
    [
        LATEST,
        f"WITH q AS ({LATEST}) SELECT * FROM q WHERE best > 11",
        "ISTREAM(SELECT item, price FROM bids [RANGE 4])",
        "SELECT STREAM item, price FROM bids WHERE price > 11",
        f"SELECT * FROM CHANGELOG OF ({LATEST})",
        "SELECT item FROM (SELECT STREAM item FROM bids) [ROWS 2]",
        # the row that comes at 5 is late for its window
        "SELECT wend, COUNT(*) AS n FROM TUMBLE(TABLE bids, DESCRIPTOR(second), 3) GROUP BY wend",
        "SELECT second, COUNT(*) AS n FROM bids GROUP BY second",
    ],
)
def test_a_table_is_made_of_what_a_query_returns(session, kept, query):
    session.sql(f"CREATE TABLE {kept} AS {query}")
    found = session.sql(query)
    table = session.sql("TABLE kept")
    assert listed(table) == listed(found)
    assert table.columns == found.columns


def test_rows_are_inserted_and_replaced(session, kept):
    session.sql(f"CREATE TABLE {kept} AS {LATEST}")
    session.sql("INSERT INTO kept SELECT item, price FROM bids [ROWS 1]")
    assert listed(session.sql("TABLE kept")) == [("A", 11), ("A", 12)]
    session.sql(
        "INSERT OVERWRITE kept (best, item) SELECT price, item FROM bids [ROWS 1] WHERE price > :least",
        least=1,
    )
    assert listed(session.sql("TABLE kept")) == [("A", 11)]
    session.sql("INSERT INTO kept SELECT item, price + ? FROM bids [ROWS 1]", 5)
    assert listed(session.sql("TABLE kept")) == [("A", 11), ("A", 16)]


def test_the_rowtime_of_a_stream_may_be_left_out(session, kept):
    session.sql(f"CREATE TABLE {kept} AS SELECT STREAM item FROM bids WHERE price > 13")
    assert listed(session.sql("TABLE kept")) == [(2, "B")]
    session.sql("INSERT INTO kept SELECT STREAM item FROM bids WHERE price > 13")
    session.sql("INSERT INTO kept (item) SELECT STREAM item FROM bids WHERE price > 13")
    assert session.sql("SELECT COUNT(*), COUNT(rowtime) FROM kept").first() == (3, 2)


def test_what_is_only_planned_makes_nothing(session, kept):
    plan = session.sql(f"EXPLAIN CREATE TABLE {kept} AS {LATEST}")
    assert plan.is_plan
    session.check(f"CREATE TABLE {kept} AS {LATEST}")
    assert not session.spark.catalog.tableExists("kept")


def test_errors_are_at_their_place(session, kept):
    query = f"CREATE TABLE {kept} AS SELECT nope FROM bids [RANGE 4]"
    with pytest.raises(WindrowError, match="nope") as caught:
        session.sql(query)
    (context,) = caught.value.getQueryContext()
    assert query[context.startIndex() : context.stopIndex() + 1] == "nope"


def test_a_live_relation_makes_no_table(session, tmp_path):
    spark = session.spark
    spark.createDataFrame([(1, 2)], "second bigint, v int").write.parquet(str(tmp_path / "came"))
    coming = spark.readStream.schema("second bigint, v int").parquet(str(tmp_path / "came"))
    session.stream("coming", coming, rowtime="second")
    with pytest.raises(NotSupportedError, match="UNSUPPORTED_STATEMENT") as caught:
        session.sql("CREATE TABLE t AS SELECT COUNT(*) AS n FROM coming [RANGE 4]")
    assert "relation.start" in caught.value.hint


def test_live_windows_are_inserted_without_stream(session, tmp_path):
    spark = session.spark
    rows = spark.createDataFrame([(1, 2), (2, 5), (9, 1)], "second bigint, v int")
    rows.coalesce(1).write.parquet(str(tmp_path / "rows"))  # of several files the order is not known
    coming = spark.readStream.schema("second bigint, v int").parquet(str(tmp_path / "rows"))
    session.stream("rising", coming, rowtime="second")
    session.sql(f"CREATE TABLE kept (second BIGINT, v INT) USING parquet LOCATION '{tmp_path / 'kept'}'")
    session.sql(f"SET spark.windrow.checkpoint = {tmp_path / 'checkpoint'}")
    try:
        started = session.sql(
            "INSERT INTO kept SELECT s.second, e.v FROM rising"
            " WINDOW BY w AS (TYPE SLIDING ORDER BY second START AS s ONLY END AS e WHEN e.v > 4)"
        )
        started.query.process_all_available()
        started.query.stop()
        assert started.query.late.count() == 0
        assert listed(session.sql("TABLE kept")) == [(1, 5), (2, 5)]
    finally:
        session.sql("RESET spark.windrow.checkpoint")
        session.sql("DROP TABLE kept")
