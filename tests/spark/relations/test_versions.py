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


def as_of(ptime, *, outer, before=0):
    """By definition: for each order the last rate of its currency at its rowtime, or so long before, if that
    passes.
    """
    found = []
    for _, ts, currency, amount in (order for order in ORDERS if order[0] <= ptime):
        known = [rate for rate in RATES if rate[0] <= ptime and rate[1] <= ts - before]
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


@pytest.mark.parametrize("execution", ["batch", "reference"])
@pytest.mark.parametrize(
    "time", ["o.ts - 2 AS r", "o.ts - 2 r", "(o.ts - 2) r", "CAST(LEFT(o.ts - 2, 9) AS INT) AS r"]
)
@pytest.mark.usefixtures("interpreted")
def test_the_time_may_be_an_expression(session, execution, time):
    session = session if execution == "batch" else declared(session.spark, execution)
    query = JOINED.format("LEFT").replace("o.ts AS r", time)
    expected = as_of(END, outer=True, before=2)
    assert Counter(map(tuple, session.sql(query).collect())) == expected
    for at, table in tables(session.sql(f"{query} EMIT STREAM AS diff")):
        assert table == as_of(at, outer=True, before=2)
    if "CAST" not in time:
        final = session.sql(f"{query} EMIT STREAM AS diff AFTER WATERMARK").to_arrow().to_pylist()
        assert Counter(tuple(row.values())[:5] for row in final) == expected
        assert {row["_diff"] for row in final} == {1}


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


@pytest.mark.parametrize(
    "how",
    [
        "stream",
        "EMIT STREAM AS diff",
        "USING",
        "FULL EMIT STREAM AS diff",
        "CROSS EMIT STREAM AS diff",
        "CROSS stream",
        "BEFORE EMIT STREAM AS diff",
        "BEFORE EMIT STREAM AS diff AFTER WATERMARK",
    ],
)
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
    on, expected = "ON o.currency = r.currency AND r.rate > 90", as_of(END, outer=False)
    if how == "USING":
        query, how = query.replace(on, "USING (currency) WHERE r.rate > 90"), "EMIT STREAM AS diff"
    elif how.startswith(("FULL", "CROSS")):
        kind, how = how.split(" ", 1)
        query = JOINED.format(kind).replace(on, "USING (currency)" if kind == "FULL" else "")
        query = query.replace("o.currency,", "currency," if kind == "FULL" else "o.currency,")
        expected = Counter(map(tuple, declared(spark.newSession()).sql(query).collect()))
    elif how.startswith("BEFORE"):
        how = how.removeprefix("BEFORE ")
        query, expected = query.replace("o.ts AS r", "o.ts - 2 AS r"), as_of(END, outer=False, before=2)
    text = query.replace("SELECT", "SELECT STREAM", 1) if how == "stream" else f"{query} {how}"
    steps = [frames(0, 5), frames(5, END + 1)]
    envelope = "delta" if how == "stream" else "diff"
    rows = playing.in_micro_batches(live.sql(text)._live, tmp_path / "c", steps, {1}, envelope).rows
    found = Counter()
    for row in rows:
        values = list(row.values())
        found[tuple(values[-5:] if how == "stream" else values[:5])] += row.get("_diff", 1)
    assert +found == expected


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("SELECT * FROM {0} USING (currency)",
         "SELECT o.currency, o.at, o.ts, amount, r.at, r.ts, rate FROM {1}"),
        ("SELECT currency, amount, r.currency AS c, rate FROM {0:LEFT} USING (currency)",
         "SELECT o.currency, amount, r.currency AS c, rate FROM {1:LEFT}"),
        ("SELECT r.*, amount AS currency FROM {0:LEFT OUTER} USING (currency)",
         "SELECT r.currency, r.at, r.ts, r.rate, amount AS currency FROM {1:LEFT}"),
        ("SELECT o.*, r.currency c FROM {0:INNER} USING (currency) WHERE upper(currency) = 'EUR'",
         "SELECT o.currency, o.at, o.ts, amount, r.currency AS c FROM {1} WHERE o.currency = 'eur'"),
        ("SELECT DISTINCT * EXCEPT (currency, rate) FROM {0} USING (currency)",
         "SELECT DISTINCT o.at, o.ts, amount, r.at, r.ts FROM {1}"),
        ("SELECT currency, COUNT(*) AS n FROM {0} USING (currency) GROUP BY currency HAVING currency > 'f'",
         "SELECT o.currency, COUNT(*) AS n FROM {1} GROUP BY 1 HAVING o.currency > 'f'"),
        ("SELECT * FROM {0:LEFT SEMI} USING (currency)",
         "SELECT o.currency, at, ts, amount FROM {1:LEFT SEMI}"),
        ("SELECT * FROM {0:LEFT ANTI} ON o.currency = r.currency", "SELECT * FROM {1:LEFT ANTI}"),
        ("SELECT o.amount, r.rate, r.ts FROM {0:RIGHT} ON o.currency = r.currency",
         "SELECT o.amount, r.rate, r.ts FROM {1:RIGHT}"),
        ("SELECT o.amount, r.rate, r.ts FROM {0:FULL} ON o.currency = r.currency",
         "SELECT o.amount, r.rate, r.ts FROM {1:FULL}"),
        ("SELECT * FROM {0:RIGHT} USING (currency)",
         "SELECT r.currency, o.at, o.ts, amount, r.at, r.ts, rate FROM {1:RIGHT}"),
        ("SELECT currency, o.currency AS a, r.currency AS b, rate FROM {0:FULL} USING (currency)"
         " WHERE currency > 'a'",
         "SELECT COALESCE(o.currency, r.currency) AS currency, o.currency AS a, r.currency AS b, rate FROM"
         " {1:FULL} WHERE COALESCE(o.currency, r.currency) > 'a'"),
        ("SELECT * EXCEPT (rate) FROM {0:FULL OUTER} USING (currency)",
         "SELECT COALESCE(o.currency, r.currency) AS currency, o.at, o.ts, amount, r.at, r.ts FROM {1:FULL}"),
        ("SELECT * EXCEPT (currency) FROM {0:RIGHT} USING (currency)",
         "SELECT o.at, o.ts, amount, r.at, r.ts, rate FROM {1:RIGHT}"),
        ("SELECT currency, COUNT(*) AS n FROM {0:FULL} USING (currency) GROUP BY currency",
         "SELECT COALESCE(o.currency, r.currency) AS currency, COUNT(*) AS n FROM {1:FULL} GROUP BY 1"),
        ("SELECT currency, r.*, o.amount FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.ts + 0 r"
         " USING (currency)",
         "SELECT o.currency, r.currency, r.at, r.ts, r.rate, o.amount FROM {1}"),
        ("SELECT * FROM {0:CROSS}", "SELECT o.*, r.at, r.ts, r.currency, rate FROM {2}"),
        ("SELECT amount, rate FROM {0:CROSS} ON r.currency = o.currency", "SELECT amount, rate FROM {1}"),
        ("SELECT * FROM orders AS o NATURAL JOIN versions FOR SYSTEM_TIME AS OF o.ts AS v",
         "SELECT o.currency, o.at, o.ts, amount, r.at AS arrived, r.ts AS since, rate FROM {1}"),
        ("WITH w AS (SELECT ts, amount, currency FROM orders)"
         " SELECT * FROM w AS o (ts, amount, currency) NATURAL JOIN versions FOR SYSTEM_TIME AS OF o.ts",
         "SELECT o.currency, o.ts, amount, r.at AS arrived, r.ts AS since, rate FROM {1}"),
        ("SELECT currency, since FROM orders AS o NATURAL FULL JOIN versions FOR SYSTEM_TIME AS OF o.ts AS v",
         "SELECT COALESCE(o.currency, r.currency) AS currency, r.ts AS since FROM {1:FULL}"),
        ("SELECT * FROM lands JOIN {0} ON o.currency = r.currency AND land = r.currency",
         "SELECT land, o.*, r.at, r.ts, r.currency, r.rate FROM lands JOIN {1} AND land = r.currency"),
        ("SELECT amount, land FROM {0} USING (currency) LEFT JOIN lands ON land = currency",
         "SELECT amount, land FROM {1} LEFT JOIN lands ON land = o.currency"),
        ("SELECT * FROM (SELECT * FROM {0} USING (currency)) UNION ALL SELECT 'x', 1, 2, 3, 4, 5, 6",
         "SELECT o.currency, o.at, o.ts, amount, r.at, r.ts, rate FROM {1}"
         " UNION ALL SELECT 'x', 1, 2, 3, 4, 5, 6"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("interpreted")
def test_every_join_and_what_stands_beside_it(session, query, plain):
    """As Spark joins versions of which the ends are a column."""
    spark = session.spark
    spark.sql("SELECT 'eur' AS land").createOrReplaceTempView("lands")
    until = "LEAD(ts) OVER (PARTITION BY currency ORDER BY ts) AS until"
    spark.sql(f"SELECT at, ts, currency, rate, {until} FROM rates").createOrReplaceTempView("lasting")
    entries = [(*row, None) for row in RATES] + [(END, None, None, None, 100)]
    frame = spark.createDataFrame(entries, "arrived int, since int, currency string, rate int, upto int")
    session.stream("versions", frame, rowtime="since", unit="seconds", ptime="arrived", watermark="upto")
    spark.sql(
        "SELECT *, LEAD(ts) OVER (ORDER BY ts, at, currency, rate) AS until FROM rates"
    ).createOrReplaceTempView("all")
    every = "orders AS o JOIN all AS r ON o.ts >= r.ts AND (r.until IS NULL OR o.ts < r.until)"
    versions = Kinds("orders AS o {} JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r")
    lasting = Kinds(
        "orders AS o {} JOIN lasting AS r"
        " ON o.currency = r.currency AND o.ts >= r.ts AND (r.until IS NULL OR o.ts < r.until)"
    )
    expected = spark.sql(plain.format(None, lasting, every))
    found = session.sql(query.format(versions))
    assert found.columns == expected.columns
    assert Counter(map(tuple, found.collect())) == Counter(map(tuple, expected.collect()))
    table = Counter()
    for *values, diff, _ in map(
        tuple, session.sql(f"{query.format(versions)} EMIT STREAM AS diff").collect()
    ):
        table[tuple(values)] += diff
    assert +table == Counter(map(tuple, expected.collect()))


class Kinds:
    """A join, of which a format is the kind."""

    def __init__(self, text):
        self.text = text

    def __format__(self, kind):
        return self.text.format(kind)


@pytest.mark.usefixtures("interpreted")
def test_a_view_stands_for_the_join_where_it_is_read(session):
    create = f"CREATE OR REPLACE TEMPORARY VIEW joined AS {JOINED.format('LEFT')}"
    session.sql(create)
    assert Counter(map(tuple, session.sql("SELECT * FROM joined").collect())) == as_of(END, outer=True)
    for at, table in tables(session.sql("SELECT * FROM joined EMIT STREAM AS diff")):
        assert table == as_of(at, outer=True)
    session.sql("CREATE OR REPLACE TEMPORARY VIEW summed (s) AS SELECT SUM(amount * rate) AS n FROM joined")
    assert session.sql("SELECT s + 1 FROM summed").collect() == [(10 * 100 + 30 * 105 + 20 * 95 + 1,)]
    session.sql(create.replace("SELECT", "SELECT STREAM", 1))
    given = session.sql("SELECT COUNT(*) AS n FROM joined [RANGE UNBOUNDED]").collect()
    assert given == [(len(ORDERS),)]
    session.sql("DROP VIEW summed")
    session.sql("DROP VIEW joined")


@pytest.mark.usefixtures("interpreted")
def test_rows_of_streams_by_using_and_semi_joins(session):
    joined = (
        "SELECT STREAM amount, rate FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts r USING (currency)"
    )
    rows = session.sql(joined).collect()
    assert sorted(tuple(row)[-2:] for row in rows) == [(10, 100), (20, 95), (30, 105)]
    cross = "SELECT STREAM amount, rate FROM orders o CROSS JOIN rates FOR SYSTEM_TIME AS OF o.ts r"
    rows = session.sql(cross).collect()
    assert sorted(tuple(row)[-2:] for row in rows) == [(10, 100), (20, 95), (30, 105), (40, 1), (50, 110)]
    semi = "SELECT STREAM amount FROM orders o LEFT ANTI JOIN rates FOR SYSTEM_TIME AS OF o.ts r {}"
    rows = session.sql(semi.format("ON o.currency = r.currency")).collect()
    assert sorted(row[-1] for row in rows) == [40, 50]


JOIN = "JOIN rates FOR SYSTEM_TIME AS OF"
KEY = "ON r.currency = o.currency"


@pytest.mark.parametrize(
    ("query", "condition", "place"),
    [
        (
            f"SELECT 1 FROM orders o JOIN orders p ON TRUE NATURAL {JOIN} o.ts r",
            "UNSUPPORTED_CLAUSE",
            f"NATURAL {JOIN} o.ts r",
        ),
        (f"SELECT 1 FROM orders o NATURAL {JOIN} ts r", "UNSUPPORTED_CLAUSE", "ts"),
        (f"SELECT 1 FROM orders o, {JOIN[5:]} o.ts r", "UNSUPPORTED_CLAUSE", f"{JOIN[5:]} o.ts"),
        (
            f"SELECT STREAM 1 FROM orders o RIGHT {JOIN} o.ts r {KEY}",
            "UNSUPPORTED_CLAUSE",
            f"{JOIN[5:]} o.ts r",
        ),
        (f"SELECT 1 FROM orders o {JOIN} date '2020-01-01' r {KEY}", "INVALID_INSTANT", "date '2020-01-01'"),
        (f"SELECT 1 FROM orders o {JOIN} 1 + 1 r {KEY}", "UNSUPPORTED_CLAUSE", "1 + 1"),
        (f"SELECT STREAM 1 FROM orders o {JOIN} o.ts + 1 r {KEY}", "UNSUPPORTED_CLAUSE", "o.ts + 1"),
        (
            f"SELECT 1 FROM orders o LEFT {JOIN} o.ts + 1 r {KEY} EMIT AFTER WATERMARK",
            "NEVER_COMPLETE",
            "WATERMARK",
        ),
        (f"SELECT 1 FROM orders o {JOIN} o.ts r WHERE TRUE", "PARSE_SYNTAX_ERROR", f"{JOIN[5:]} o.ts"),
        (f"SELECT 1 FROM orders o {JOIN} ts r USING (currency)", "UNSUPPORTED_CLAUSE", "USING (currency)"),
        (
            f"SELECT 1 FROM orders o {JOIN} o.ts r USING (amount)",
            "UNRESOLVED_COLUMN",
            "amount",
        ),
        (f"SELECT 1 FROM orders o {JOIN} o.ts r ON r.rate > 1", "UNSUPPORTED_CLAUSE", "r.rate > 1"),
        (f"SELECT STREAM 1 AS n FROM orders o {JOIN} o.at r {KEY}", "UNSUPPORTED_CLAUSE", "o.at"),
        (
            f"CREATE VIEW v AS SELECT 1 FROM orders o {JOIN} o.ts r {KEY}",
            "UNSUPPORTED_STATEMENT",
            "CREATE",
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
