"""Joins with versions: as of the time of each row, over logs in which both come in any order."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import functions as F

from windrow import Session, WindrowError
from windrow.spark.logs.live_source import PTIME
from windrow.testing import playing

ORDERS = [(1, 3, "eur", 10), (2, 9, "usd", 20), (4, 5, "eur", 30), (6, 1, "eur", 40), (6, 7, None, 50)]
RATES = [(1, 2, "eur", 100), (3, 6, "eur", 110), (3, 8, "usd", 90), (5, 4, "eur", 105), (6, 9, "usd", 95),
         (6, 1, None, 1)]  # fmt: skip
"""When they came, their rowtime, the currency, the amount or the rate."""
END = 7

JOINED = """
    SELECT o.ts, o.currency, o.amount, r.rate, r.ts AS since
    FROM orders AS o {} JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency AND r.rate > 90
"""


def as_of(ptime, *, outer):
    """By definition: for each order the last rate of its currency at its rowtime, if that passes."""
    found = []
    for _, ts, currency, amount in (order for order in ORDERS if order[0] <= ptime):
        known = [rate for rate in RATES if rate[0] <= ptime and rate[1] <= ts]
        known = [rate for rate in known if rate[2] is not None and rate[2] == currency]
        last = max(known, key=lambda rate: rate[1], default=None)
        if last is not None and last[3] > 90:
            found.append((ts, currency, amount, last[3], last[1]))
        elif outer:
            found.append((ts, currency, amount, None, None))
    return Counter(found)


def declared(spark, execution="batch"):
    session = Session(spark, execution=execution)
    for name, value, rows in (("orders", "amount", ORDERS), ("rates", "rate", RATES)):
        entries = [(*row, None) for row in rows] + [(END, None, None, None, 100)]
        frame = spark.createDataFrame(entries, f"at int, ts int, currency string, {value} int, upto int")
        session.stream(name, frame, rowtime="ts", unit="seconds", ptime="at", watermark="upto")
    return session


def refused(condition):
    return pytest.raises(WindrowError, match=rf"\[{condition}\]")


@pytest.fixture
def session(spark):
    yield declared(spark)
    for name in ("orders", "rates"):
        spark.catalog.dropTempView(name)


def tables(relation):
    """The table at each processing time, by the changes added up."""
    table, changes = Counter(), relation.to_arrow().to_pylist()
    for at in range(1, END + 1):
        for row in changes:
            *values, diff, when = row.values()
            if when == at:
                table[tuple(values)] += diff
        assert min(table.values(), default=0) >= 0
        yield at, +table


@pytest.mark.parametrize("execution", ["batch", "reference"])
@pytest.mark.usefixtures("interpreted")
def test_each_row_is_joined_with_what_was_valid_then_as_far_as_is_known(session, execution):
    session = session if execution == "batch" else declared(session.spark, execution)
    for at, table in tables(session.sql(f"{JOINED.format('LEFT')} EMIT STREAM AS diff")):
        assert table == as_of(at, outer=True)


@pytest.mark.usefixtures("interpreted")
def test_the_table_is_as_of_now_and_rows_are_complete_when_no_version_can_come(session):
    query = JOINED.format("")
    asked = session.sql(query.replace("> 90", "> ?"), 90)
    assert Counter(map(tuple, asked.collect())) == as_of(END, outer=False)
    final = session.sql(f"{query} EMIT STREAM AS diff AFTER WATERMARK").to_arrow().to_pylist()
    assert Counter(tuple(row.values())[:5] for row in final) == as_of(END, outer=False)
    assert {row["_diff"] for row in final} == {1}


@pytest.mark.usefixtures("interpreted")
def test_stars_show_no_column_of_ours_and_streams_give_each_row_once(session):
    everything = """
        SELECT * FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.ts r ON o.currency = r.currency
    """
    shown = ["at", "ts", "currency", "amount", "at", "ts", "currency", "rate"]
    for query in (everything, f"{everything} EMIT AFTER WATERMARK"):
        assert session.sql(query).columns == shown
    given = session.sql(JOINED.format("").replace("SELECT", "SELECT STREAM", 1)).collect()
    assert Counter(tuple(row)[-5:] for row in given) == as_of(END, outer=False)


@pytest.mark.parametrize("how", ["stream", "EMIT STREAM AS diff"])
@pytest.mark.usefixtures("interpreted")
def test_live_too(spark, tmp_path, how):
    live, logs = Session(spark), {"orders": ("amount", ORDERS), "rates": ("rate", RATES)}
    for name, (value, _) in logs.items():
        (tmp_path / name).mkdir()
        columns = f"ts int, currency string, {value} int, upto int"
        arriving = spark.readStream.schema(columns).parquet(str(tmp_path / name))
        live.stream(name, arriving, rowtime="ts", unit="seconds", bound="upto")

    def frames(first, last):
        def made(steps):
            found = {"": spark.range(1).selectExpr(f"{last}L * 1000000 AS tick")}
            for _, name, stream in steps.streams():
                value, rows = logs[name]
                entries = [(*row[1:], None) for row in rows if first <= row[0] < last]
                entries += [(None, None, None, 100)] if last > END else []
                frame = spark.createDataFrame(entries, f"ts int, currency string, {value} int, upto int")
                when = F.lit(last * 1_000_000).cast("bigint")
                found[name] = frame.select(*stream.live.columns).withColumn(PTIME, when)
            return found

        return made

    query = JOINED.format("")
    text = query.replace("SELECT", "SELECT STREAM", 1) if how == "stream" else f"{query} {how}"
    steps = [frames(0, 5), frames(5, END + 1)]
    envelope = "delta" if how == "stream" else "diff"
    rows = playing.in_micro_batches(live.sql(text)._live, tmp_path / "c", steps, {1}, envelope).rows
    found = Counter()
    for row in rows:
        values = list(row.values())
        found[tuple(values[-5:] if how == "stream" else values[:5])] += row.get("_diff", 1)
    assert +found == as_of(END, outer=False)


JOIN = "JOIN rates FOR SYSTEM_TIME AS OF"
KEY = "ON r.currency = o.currency"


@pytest.mark.parametrize(
    ("query", "condition", "place"),
    [
        (f"SELECT 1 FROM orders o RIGHT {JOIN} o.ts r {KEY}", "UNSUPPORTED_CLAUSE", f"{JOIN[5:]} o.ts"),
        (f"SELECT 1 FROM orders o {JOIN} date '2020-01-01' r {KEY}", "INVALID_INSTANT", "date '2020-01-01'"),
        (f"SELECT 1 FROM orders o {JOIN} (o.ts + 1) r {KEY}", "UNSUPPORTED_CLAUSE", "("),
        (f"SELECT 1 FROM orders o {JOIN} o.ts r USING (currency)", "PARSE_SYNTAX_ERROR", f"{JOIN[5:]} o.ts"),
        (f"SELECT 1 FROM orders o {JOIN} o.ts r ON r.rate > 1", "UNSUPPORTED_CLAUSE", "r.rate > 1"),
        (f"SELECT STREAM 1 AS n FROM orders o {JOIN} o.at r {KEY}", "UNSUPPORTED_CLAUSE", "o.at"),
        (
            f"CREATE TEMPORARY VIEW v AS SELECT 1 FROM orders o {JOIN} o.ts r {KEY}",
            "UNSUPPORTED_STATEMENT",
            f"{JOIN[5:]} o.ts r",
        ),
        (
            f"SELECT o.nothing FROM orders o {JOIN} o.ts r {KEY} EMIT STREAM",
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "o.nothing",
        ),
    ],
)
def test_what_is_not_understood_is_refused_where_it_stands(session, query, condition, place):
    with refused(condition) as caught:
        session.sql(query)
    assert caught.value.getQueryContext()[0].fragment() == place


PAST = "SELECT currency, MAX(rate) AS most FROM rates{} GROUP BY currency{}"


@pytest.mark.parametrize(("time", "args"), [("3", []), ("'3'", []), ("?", [3]), ("(1 + ?)", [2])])
def test_a_stream_is_read_as_of_a_time_directly_after_its_name(session, time, args):
    clause = f" FOR SYSTEM_TIME AS OF {time}"
    then = session.sql(PAST.format("", f" AS OF SYSTEM TIME {time}"), *args).collect()
    assert sorted(then) == [("eur", 110), ("usd", 90)]
    assert sorted(session.sql(PAST.format(clause, ""), *args).collect()) == sorted(then)
    assert sorted(session.sql(PAST.format(f"{clause} AS r", ";"), *args).collect()) == sorted(then)


def test_before_the_first_entry_no_row_is_there(session):
    assert session.sql("SELECT COUNT(*) FROM rates FOR SYSTEM_TIME AS OF -5").collect() == [(0,)]


@pytest.mark.parametrize("relation", ["rates [RANGE 5] {}", "rates {} [RANGE 5]", "rates {} [RANGE 5] AS r"])
def test_a_window_in_brackets_is_not_as_of_a_processing_time(session, relation):
    clause = "FOR SYSTEM_TIME AS OF 3"
    with refused("MIXED_CLOCKS") as caught:
        session.sql(f"SELECT COUNT(*) FROM {relation.format(clause)}")
    assert caught.value.getQueryContext()[0].fragment() == clause


def test_null_is_no_instant_of_a_relation(session):
    with refused("INVALID_INSTANT") as caught:
        session.sql("SELECT COUNT(*) FROM rates FOR SYSTEM_TIME AS OF NULL")
    assert caught.value.getQueryContext()[0].fragment() == "NULL"


@pytest.mark.parametrize("time", ["TIMESTAMP '2024-01-01 00:00:00'", "DATE '2024-01-01'", "1.5", "NULL"])
def test_no_time_is_an_instant_where_processing_times_are_numbers(session, time):
    query = PAST.format("", f" AS OF SYSTEM TIME {time}")
    with refused("INVALID_INSTANT") as caught:
        session.sql(query)
    assert caught.value.getQueryContext()[0].fragment() == time


def test_no_number_is_an_instant_where_processing_times_are_times(session):
    seen = session.spark.sql("SELECT TIMESTAMP '2024-01-01' AS at, 1 AS t")
    session.stream("seen", seen, rowtime="t", ptime="at")
    with refused("INVALID_INSTANT"):
        session.sql("SELECT t FROM seen AS OF SYSTEM TIME 4")
    for time in ("'2024-01-01'", "DATE '2024-01-02'", "TIMESTAMP_NTZ '2024-01-01 00:00:00'"):
        assert len(session.sql(f"SELECT t FROM seen AS OF SYSTEM TIME {time}").collect()) == 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT r.rate, o.amount FROM rates {} AS r JOIN orders AS o ON o.currency = r.currency",
         [(90, 20), (100, 10), (100, 30), (100, 40), (110, 10), (110, 30), (110, 40)]),
        ("SELECT r.rate, o.amount FROM orders AS o JOIN rates {} AS r USING (currency) WHERE o.ts > 5",
         [(90, 20)]),
        ("SELECT rates.rate, amount FROM rates {}, orders WHERE amount = 50",
         [(90, 50), (100, 50), (110, 50)]),
        ("SELECT MAX(rate) FROM (SELECT * FROM rates {})", [(110,)]),
        ("WITH q AS (SELECT rate FROM rates {}) SELECT COUNT(*) FROM q", [(3,)]),
        ("SELECT COUNT(*) FROM rates {} UNION ALL SELECT COUNT(*) FROM rates", [(3,), (6,)]),
    ],
)  # fmt: skip
def test_each_relation_is_as_of_a_time_of_its_own(session, query, expected):
    assert sorted(map(tuple, session.sql(query.format("FOR SYSTEM_TIME AS OF 3")).collect())) == expected


def test_a_view_and_a_table_hold_what_is_of_the_past(session, tmp_path):
    query = "SELECT MAX(rate) AS most FROM rates FOR SYSTEM_TIME AS OF 1 JOIN orders USING (currency)"
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW past_rates AS {query}")
    session.sql(f"CREATE TABLE past_table USING parquet LOCATION '{tmp_path / 'past'}' AS {query}")
    try:
        assert (
            session.sql("TABLE past_rates").collect() == session.sql("TABLE past_table").collect() == [(100,)]
        )
    finally:
        session.sql("DROP TABLE past_table")
        session.sql("DROP VIEW past_rates")


def test_a_named_stream_is_read_as_of_a_time_beside_itself(spark, tmp_path):
    session = Session(spark)
    session.sql(f"CREATE STREAM noted (ROWTIME t BIGINT, v INT) LOCATION '{tmp_path / 'noted'}'")
    session.sql("INSERT INTO noted VALUES (1, 5)")
    (then,) = session.sql("SELECT MAX(ptime) FROM (SELECT v FROM noted EMIT STREAM)").first()
    session.sql("INSERT INTO noted VALUES (2, 7)")
    query = "SELECT a.v, b.v FROM noted FOR SYSTEM_TIME AS OF :then AS a JOIN noted AS b ON a.v <= b.v"
    assert sorted(map(tuple, session.sql(query, then=then).collect())) == [(5, 5), (5, 7)]
    session.sql("DROP STREAM noted")
