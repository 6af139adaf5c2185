"""Table functions over relations that vary, and those of the user's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import windrow
from windrow.errors import WindrowError

pytestmark = pytest.mark.usefixtures("interpreted")

BIDS = [(1, "A", 10), (2, "B", 14), (4, "A", 12), (7, "A", 11), (7, "C", 20)]


@pytest.fixture(params=["batch", "reference"])
def session(spark, request) -> Iterator[windrow.Session]:
    session = windrow.Session(spark, execution=request.param)
    rows = spark.createDataFrame(BIDS, "second bigint, item string, price int")
    session.stream("bids", rows, rowtime="second", unit="seconds")
    yield session
    spark.catalog.dropTempView("bids")


def changes(session, query: str) -> list[str]:
    found = session.sql(query).changelog("op").collect()
    return sorted(" ".join(map(str, row)) for row in found)


def test_windows_of_a_relation_that_varies_vary_with_it(session):
    windows = "TUMBLE(TABLE bids [RANGE 4], DESCRIPTOR(second), 5)"
    tumbling = f"SELECT wend, SUM(price) AS total FROM {windows} GROUP BY wend"
    expected = """
        +I 1 5 10, -D 2 5 10, +I 2 5 24, -D 4 5 24, +I 4 5 36, -D 5 5 36, +I 5 5 26, -D 6 5 26, +I 6 5 12,
        +I 7 10 31, -D 8 5 12, -D 11 10 31
    """
    assert changes(session, tumbling) == sorted(change.strip() for change in expected.split(","))
    sessions = "SELECT item, wstart, wend FROM SESSION(TABLE bids [ROWS 2], DESCRIPTOR(second), 2)"
    found = changes(session, f"{sessions} WHERE item <> 'C'")
    # two bids at 7, in one session, push out those before
    assert found[:3] == ["+I 1 A 1 3", "+I 2 A 1 4", "+I 2 B 1 4"]
    assert {change for change in found if change.startswith("+I 4")} == {"+I 4 A 2 6", "+I 4 B 2 6"}


def test_functions_of_ones_own(session):
    def dearest(rows, by, count=1, *, over=0):
        return rows.where(rows.price > over).orderBy(*(rows[name].desc() for name in by)).limit(count)

    session.table_function("Dearest", dearest)
    two = "SELECT * FROM dearest(TABLE bids, DESCRIPTOR(price), :n)"
    query = f"SELECT item, wend FROM TUMBLE(TABLE({two}), DESCRIPTOR(second), 5)"
    assert sorted(map(tuple, session.sql(query, n=2).collect())) == [("B", 5), ("C", 10)]
    one = "SELECT * FROM dearest(TABLE(SELECT * FROM bids), DESCRIPTOR(second), over => 13)"
    found = session.sql(f"WITH dear AS ({one}) SELECT item FROM dear").collect()
    assert [tuple(row) for row in found] == [("C",)]
    with pytest.raises(WindrowError, match="relation is not supported") as error:
        session.sql("SELECT * FROM dearest(TABLE bids [RANGE 4], DESCRIPTOR(price))")
    assert error.value.getQueryContext()[0].fragment() == "bids [RANGE 4]"
    session.table_function("nothing", lambda _: None)
    with pytest.raises(WindrowError, match="returned NoneType") as error:
        session.sql("SELECT * FROM nothing(TABLE bids)")
    assert error.value.condition == "NOT_A_TABLE"
    with pytest.raises(WindrowError, match="windowing function"):
        session.table_function("hop", dearest)


@pytest.mark.parametrize("execution", ["batch", "reference"])
def test_functions_of_ones_own_follow_a_stream(spark, execution):
    session = windrow.Session(spark, execution=execution)
    log = spark.createDataFrame(
        [(1, 1, "a", 5), (2, 2, "b", 7), (3, 1, "a", 9), (5, 4, "b", 3)],
        "at int, t int, item string, price int",
    )
    session.stream("offers", log, rowtime="t", ptime="at")
    session.table_function("dearest", lambda rows, by, n=1: rows.orderBy(rows[by[0]].desc()).limit(n))
    two = "dearest(TABLE(SELECT * FROM offers WHERE price > 3), DESCRIPTOR(price), n => 2)"
    query = f"SELECT item, COUNT(*) AS n FROM {two} AS d GROUP BY item EMIT STREAM AS diff"
    told = sorted(tuple(row.values()) for row in session.sql(query).to_arrow().to_pylist())
    assert told == [("a", 1, 1, 1), ("b", 1, 1, 2)]  # another of a's is dearer from 3 on
    query = f"SELECT price FROM {two} EMIT STREAM AS diff"
    told = sorted(tuple(row.values()) for row in session.sql(query).to_arrow().to_pylist())
    assert told == [(5, -1, 3), (5, 1, 1), (7, 1, 2), (9, 1, 3)]
    with pytest.raises(WindrowError, match="AFTER WATERMARK of dearest") as error:
        session.sql(f"SELECT price FROM {two} EMIT AFTER WATERMARK")
    assert error.value.condition == "UNSUPPORTED_QUERY"
    spark.catalog.dropTempView("offers")


def test_functions_of_ones_own_follow_a_live_stream(spark, tmp_path):
    session = windrow.Session(spark)
    session.sql(f"CREATE STREAM came (ROWTIME t BIGINT, price INT) LOCATION '{tmp_path / 'came'}'")
    session.table_function("dearest", lambda rows: rows.orderBy(rows.price.desc()).limit(1))
    given = windrow.Memory()
    relation = session.sql("SELECT price FROM dearest(TABLE came) EMIT STREAM AS diff")
    query = relation.start(given, checkpoint=tmp_path / "checkpoint")
    try:
        for values in ("(1, 5), (2, 3)", "(3, 9)"):
            session.sql(f"INSERT INTO came VALUES {values}")
            query.process_all_available()
    finally:
        query.stop()
    told = [tuple(row.values())[:2] for table in given.batches.values() for row in table.to_pylist()]
    assert sorted(told) == [(5, -1), (5, 1), (9, 1)]
