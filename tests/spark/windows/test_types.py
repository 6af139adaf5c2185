"""Every type of Spark carried through windows, and values on which types disagree."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

import windrow

TYPES = {
    "boolean": ("TRUE", "FALSE"),
    "tinyint": ("CAST(1 AS TINYINT)", "CAST(-128 AS TINYINT)"),
    "smallint": ("CAST(1 AS SMALLINT)", "CAST(-32768 AS SMALLINT)"),
    "int": ("1", "-2147483648"),
    "bigint": ("1L", "-9223372036854775808L"),
    "float": ("CAST(0.1 AS FLOAT)", "CAST('-Infinity' AS FLOAT)"),
    "double": ("0.1D", "1E308D"),
    "decimal(10,2)": ("1.25BD + CAST(0 AS DECIMAL(9, 2))", "-99999999.99BD"),
    "decimal(38,0)": ("99999999999999999999999999999999999999BD", "-1BD"),
    "decimal(38,38)": ("0.99999999999999999999999999999999999999BD", "CAST(0 AS DECIMAL(38, 38))"),
    "string": ("'a'", "'ü €'"),
    "binary": ("X'00FF'", "X''"),
    "date": ("DATE '2020-02-29'", "DATE '1582-10-04'"),
    "timestamp": ("TIMESTAMP '2020-02-29 12:00:00.123456'", "TIMESTAMP '1900-01-01 00:00:00'"),
    "timestamp_ntz": ("TIMESTAMP_NTZ '2020-03-29 02:30:00'", "TIMESTAMP_NTZ '1900-01-01 00:00:00'"),
    "interval day to second": (
        "INTERVAL '1 02:03:04.567' DAY TO SECOND",
        "INTERVAL '-1 00:00:00' DAY TO SECOND",
    ),
    "interval year to month": ("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '-0-1' YEAR TO MONTH"),
    "void": ("NULL", "NULL"),
    "array<int>": ("array(1, NULL)", "array()"),
    "struct<a:int,b:string>": ("named_struct('a', 1, 'b', 'x')", "named_struct('a', NULL, 'b', 'y')"),
    "map<string,int>": ("map('a', 1)", "map()"),
    "array<struct<d:decimal(38,2),t:timestamp>>": (
        "array(named_struct('d', CAST(1 AS DECIMAL(38, 2)), 't', TIMESTAMP '2020-01-01 00:00:00'))",
        "NULL",
    ),
    "string collate UTF8_LCASE": ("'A' COLLATE UTF8_LCASE", "'b' COLLATE UTF8_LCASE"),
}
UNORDERED = {"map<string,int>"}


@pytest.fixture(scope="module")
def session(spark) -> windrow.Session:
    return windrow.Session(spark)


@pytest.fixture
def zone(spark) -> Iterator[Any]:
    """Sets the session's time zone for one test."""
    before = spark.conf.get("spark.sql.session.timeZone")
    yield lambda name: spark.conf.set("spark.sql.session.timeZone", name)
    spark.conf.set("spark.sql.session.timeZone", before)


def source(kind: str) -> str:
    first, second = TYPES[kind]
    return (
        f"(SELECT i, CASE i WHEN 1 THEN {first} WHEN 2 THEN {second} END AS x"
        " FROM VALUES (1), (2), (3) AS t (i))"
    )


def kinds(frame: DataFrame) -> list[str]:
    return [field.dataType.simpleString() for field in frame.schema]


def as_text(frame: DataFrame) -> list[Row]:
    """The rows; in Spark's own text where PySpark cannot collect a type."""
    if "year to month" in frame.schema.simpleString():
        frame = frame.select(*(F.col(name).cast("string") for name in frame.columns))
    return frame.collect()


def shown(rows: list[Any]) -> list[str]:
    """Rows as text, so that NaN equals itself."""
    return sorted(map(repr, rows))


@pytest.mark.sampled
@pytest.mark.parametrize("kind", TYPES)
def test_a_value_is_carried_as_it_is_by_variables_and_by_the_window(session, kind):
    sql = (
        f"SELECT s.i, s.x AS here, e.x AS last, p.x AS before, s AS row, w.x AS held, w FROM {source(kind)}"
        " WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS s PREV AS p AT sp END AS e AT ep WHEN ep - sp = 1)"
    )
    twin = (
        "SELECT i, x AS here, e.x AS last, LAG(x) OVER (ORDER BY i) AS before,"
        " named_struct('i', i, 'x', x) AS row, held.x AS held, held AS w FROM ("
        "  SELECT *, LEAD(named_struct('i', i, 'x', x)) OVER (ORDER BY i) AS e,"
        "   concat(collect_list(named_struct('i', i, 'x', x)) OVER"
        "    (ORDER BY i ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING), IF(i = 3, array(NULL), array())) AS held"
        f"  FROM {source(kind)})"
    )
    found, wanted = session.sql(sql).df, session.spark.sql(twin)
    assert kinds(found)[1:4] == kinds(wanted)[1:4]
    assert shown(as_text(found)) == shown(as_text(wanted))


@pytest.mark.sampled
@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind not in UNORDERED])
def test_aggregates_of_any_type_are_those_of_over(session, kind):
    functions = ["first(x{0})", "last(x{0})", "MIN(x{0})", "MAX(x{0})", "COUNT(x{0})", "collect_list(x{0})"]
    ours = ", ".join(f"{function.format('')} AS f{at}" for at, function in enumerate(functions))
    ours = ours.replace("(x", "(w.x")
    theirs = ", ".join(f"{function.format('')} OVER v AS f{at}" for at, function in enumerate(functions))
    sql = (
        f"SELECT s.i, {ours} FROM {source(kind)}"
        " WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS s END UNBOUNDED)"
    )
    twin = (
        f"SELECT i, {theirs} FROM {source(kind)}"
        " WINDOW v AS (ORDER BY i ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
    )
    found, wanted = session.sql(sql).df, session.spark.sql(twin)
    assert kinds(found) == kinds(wanted)
    assert shown(as_text(found)) == shown(as_text(wanted))


@pytest.mark.sampled
@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind not in UNORDERED])
def test_values_of_any_ordered_type_are_keys_and_are_compared(session, kind):
    sql = (
        f"SELECT s.i, e.i AS last, COUNT(w) AS n FROM {source(kind)} WINDOW BY w AS (TYPE SLIDING"
        " PARTITION BY x IS NULL ORDER BY x DESC, i START AS s END AS e WHEN e.x < s.x)"
    )
    alone = (
        f"SELECT s.i, COUNT(w) AS n FROM {source(kind)}"
        " WINDOW BY w AS (TYPE SLIDING PARTITION BY x ORDER BY i START AS s END UNBOUNDED)"
    )
    ((order,),) = session.spark.sql(
        f"SELECT collect_list(i) FROM (SELECT i FROM {source(kind)} WHERE x IS NOT NULL ORDER BY x DESC, i)"
    ).collect()
    found = {row.i: (row["last"], row.n) for row in session.sql(sql).collect()}
    if len(order) == 2:
        greatest, least = order
        assert found == {greatest: (least, 2), least: (None, 1), 3: (None, 1)}
    counts = sorted(row.n for row in session.sql(alone).collect())
    assert counts == ([1, 1, 1] if len(order) == 2 else [1, 1, 2] if order else [1, 2, 3])


def test_a_variant_is_carried(session):
    sql = (
        "SELECT s.i, s.x:a::int AS a, to_json(e.x) AS j, size(w.x) AS n"
        " FROM (SELECT i, parse_json(concat('{\"a\": ', i, '}')) AS x FROM VALUES (1), (2) AS t (i))"
        " WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS s END AS e WHEN e.i > s.i)"
    )
    assert sorted(map(tuple, session.sql(sql).collect())) == [(1, 1, '{"a":2}', 2), (2, 2, None, 2)]


# -- numbers ----------------------------------------------------------------------------------------

FLOATS = (
    "VALUES (1, '0'), (2, '-0.0'), (3, 'NaN'), (4, 'Infinity'), (5, '-Infinity'), (6, NULL), (7, 'NaN')"
    " AS t (i, d)"
)


def floats(clause: str) -> str:
    return f"(SELECT i, CAST(d AS DOUBLE) AS d FROM {FLOATS}) WINDOW BY w AS (TYPE SLIDING {clause})"


def test_in_a_key_zeros_are_one_and_nans_are_one_and_nulls_are_one(session):
    sql = "SELECT collect_list(w.i) AS held FROM " + floats(
        "PARTITION BY d ORDER BY i START UNBOUNDED END UNBOUNDED"
    )
    assert sorted(row.held for row in session.sql(sql).collect()) == [[1, 2], [3, 7], [4], [5], [6]]


@pytest.mark.parametrize("operator", ["=", "<", ">", "<=", ">=", "<>", "<=>"])
def test_floats_are_compared_as_spark_compares_them(session, operator):
    ours = (
        f"SELECT s.i, e.i AS j FROM {floats(f'ORDER BY i START AS s ONLY END AS e WHEN e.d {operator} s.d')}"
    )
    theirs = (
        f"WITH q AS (SELECT i, CAST(d AS DOUBLE) AS d FROM {FLOATS}) "
        f"SELECT s.i, MIN(e.i) AS j FROM q AS s JOIN q AS e ON e.i >= s.i AND e.d {operator} s.d GROUP BY s.i"
    )
    assert shown(session.sql(ours).collect()) == shown(session.spark.sql(theirs).collect())


def test_the_sign_of_zero_and_nan_survive(session):
    windows = floats("ORDER BY i START AS s AT sp WHEN sp = 2 END AS e")
    sql = f"SELECT s.d, first(w.d) AS f, w.d AS held FROM {windows}"
    (row,) = session.sql(sql).collect()
    assert [math.copysign(1, value) for value in (row.d, row.f, row.held[0])] == [-1, -1, -1]


def test_decimals_of_38_digits_are_compared_and_summed_exactly(session):
    sql = (
        "SELECT s.i, e.i AS j, SUM(w.d) AS total FROM (SELECT i, CAST(d AS DECIMAL(38, 0)) AS d FROM VALUES"
        " (1, '10000000000000000000000000000000000001'), (2, '10000000000000000000000000000000000001'),"
        " (3, '10000000000000000000000000000000000002') AS t (i, d))"
        " WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS s WHEN s.i = 1 END AS e WHEN e.d > s.d)"
    )
    total = Decimal("30000000000000000000000000000000000004")
    assert list(map(tuple, session.sql(sql).collect())) == [(1, 3, total)]


# -- times ------------------------------------------------------------------------------------------

ACROSS_SUMMER_TIME = (
    "VALUES (1, TIMESTAMP '2021-03-28 00:30:00Z'), (2, TIMESTAMP '2021-03-28 00:59:59Z'),"
    " (3, TIMESTAMP '2021-03-28 01:00:00Z'), (4, TIMESTAMP '2021-03-28 01:30:00Z'),"
    " (5, TIMESTAMP '2021-10-31 00:30:00Z'), (6, TIMESTAMP '2021-10-31 01:00:00Z'),"
    " (7, TIMESTAMP '2021-10-31 01:30:00Z'), (8, TIMESTAMP '2021-10-31 02:00:00Z') AS t (i, ts)"
)


@pytest.mark.parametrize("name", ["Europe/Berlin", "UTC", "America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize(
    "predicate",
    [
        "e.ts - s.ts >= INTERVAL 60 MINUTES",
        "e.ts - s.ts = INTERVAL 30 MINUTES",
        "e.ts >= s.ts + INTERVAL 1 HOUR",
        "e.ts > DATE_ADD(CAST(s.ts AS DATE), 1)",
        "CAST(e.ts AS DATE) > CAST(s.ts AS DATE)",
        "hour(e.ts) - hour(s.ts) > 1",
        "CAST(e.ts AS TIMESTAMP_NTZ) - CAST(s.ts AS TIMESTAMP_NTZ) >= INTERVAL 60 MINUTES",
    ],
)
def test_differences_of_times_are_sparks_across_the_change_to_and_from_summer_time(
    session, zone, name, predicate
):
    zone(name)
    ours = (
        f"SELECT s.i, e.i AS j, s.ts FROM (SELECT * FROM {ACROSS_SUMMER_TIME}) WINDOW BY w AS"
        f" (TYPE SLIDING ORDER BY i START AS s ONLY END AS e WHEN {predicate})"
    )
    theirs = (
        f"WITH q AS (SELECT * FROM {ACROSS_SUMMER_TIME})"
        " SELECT s.i, MIN(e.i) AS j, s.ts FROM q AS s JOIN q AS e"
        f" ON e.i >= s.i AND {predicate} GROUP BY s.i, s.ts"
    )
    assert shown(session.sql(ours).collect()) == shown(session.spark.sql(theirs).collect())


def test_times_come_back_in_the_sessions_zone(session, zone):
    zone("Asia/Tokyo")
    sql = (
        "SELECT CAST(s.ts AS STRING) AS text, MAX(w.ts) AS last, hour(w.ts[0]) AS hour FROM"
        f" (SELECT * FROM {ACROSS_SUMMER_TIME}) WINDOW BY w AS (TYPE SLIDING ORDER BY ts"
        " START AS s UNBOUNDED END UNBOUNDED)"
    ).replace("AS s UNBOUNDED", "AS s AT sp WHEN sp = 1")
    (row,) = session.sql(sql).collect()
    assert (row.text, row.hour) == ("2021-03-28 09:30:00", 9)
    assert row["last"].astimezone(dt.UTC) == dt.datetime(2021, 10, 31, 2, tzinfo=dt.UTC)


def test_year_month_intervals_are_kept_to_the_month(session):
    sql = (
        "SELECT s.i, s.m, w.m AS held, MAX(w.m) AS most FROM (SELECT i, make_ym_interval(0, i) AS m"
        " FROM VALUES (1), (25) AS t (i)) WINDOW BY w AS (TYPE SLIDING ORDER BY m START AS s"
        " END AS e WHEN e.i > s.i)"
    )
    text = (
        f"SELECT i, CAST(m AS STRING) AS m, CAST(held[0] AS STRING) AS h,"
        f" CAST(most AS STRING) AS o FROM ({sql})"
    )
    month, years = "INTERVAL '0-1' YEAR TO MONTH", "INTERVAL '2-1' YEAR TO MONTH"
    assert sorted(map(tuple, session.sql(text).collect())) == [
        (1, month, month, years),
        (25, years, years, years),
    ]


def test_averages_of_months_are_whole_months_as_in_spark(session):
    rows = "(SELECT i, make_ym_interval(0, i) AS m FROM VALUES (1), (2), (4), (9) AS t (i))"
    functions = ("AVG({})", "MEDIAN({})", "percentile({}, 0.3)")
    own = ", ".join(f"CAST({one.format('w.m')} AS STRING)" for one in functions)
    theirs = ", ".join(f"CAST({one.format('m')} AS STRING)" for one in functions)
    windows = "WINDOW BY w AS (TYPE SLIDING ORDER BY i START UNBOUNDED END AS e WHEN e.i = 2)"
    (found,) = session.sql(f"SELECT {own} FROM {rows} {windows}").collect()
    (wanted,) = session.spark.sql(f"SELECT {theirs} FROM {rows} WHERE i <= 2").collect()
    assert tuple(found) == tuple(wanted)


# -- keys -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("collation", "counts"), [("UTF8_LCASE", [1, 3]), ("UNICODE_CI", [1, 3]), ("UTF8_BINARY", [1, 1, 2])]
)
def test_strings_that_a_collation_calls_equal_are_one_partition(session, collation, counts):
    sql = (
        f"SELECT COUNT(w) AS n FROM (SELECT i, k COLLATE {collation} AS k FROM VALUES"
        " (1, 'a'), (2, 'A'), (3, 'a'), (4, 'b') AS t (i, k))"
        " WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i START UNBOUNDED END UNBOUNDED)"
    )
    assert sorted(row.n for row in session.sql(sql).collect()) == counts


@pytest.mark.parametrize("execution", ["batch", "reference"])
@pytest.mark.parametrize("source", ["texts", "texts [RANGE 3]"])
@pytest.mark.parametrize("keys", ["PARTITION BY {} ORDER BY ts", "ORDER BY {} DESC, ts"])
def test_keys_that_a_collation_compares_are_those_of_texts_in_lower_case(spark, keys, source, execution):
    session = windrow.Session(spark, execution=execution)
    rows = [(1, "a", 1), (2, "A", 2), (3, "b", 0), (4, "a", 7), (5, "B", 4), (6, "A", 1)]
    session.stream(
        "texts", spark.createDataFrame(rows, "ts bigint, x string, v int"), rowtime="ts", unit="seconds"
    )
    query = (
        "SELECT f.ts, e.ts AS u, COUNT(w) AS n FROM {} WINDOW BY w AS"
        " (TYPE SLIDING {} START AS f END AS e WHEN e.v > f.v)"
    )

    def found(key):
        relation = session.sql(query.format(source, keys.format(key)))
        changes = relation.changelog("diff") if "[" in source else relation
        return Counter(map(tuple, changes.collect()))

    assert found("x COLLATE UTF8_LCASE") == found("lower(x)")


@pytest.mark.parametrize("operator", ["=", "<", ">="])
def test_strings_of_a_collation_are_compared_by_it(session, operator):
    rows = (
        "(SELECT i, k COLLATE UTF8_LCASE AS k FROM VALUES (1, 'B'), (2, 'b'), (3, 'a'), (4, 'C') AS t (i, k))"
    )
    ours = (
        f"SELECT s.i, e.i AS j FROM {rows} WINDOW BY w AS"
        f" (TYPE SLIDING ORDER BY i START AS s ONLY END NEXT AS e WHEN e.k {operator} s.k)"
    )
    theirs = (
        f"SELECT s.i, MIN(e.i) AS j FROM {rows} AS s JOIN {rows} AS e ON e.i > s.i AND e.k {operator} s.k"
        " GROUP BY s.i"
    )
    assert shown(session.sql(ours).collect()) == shown(session.spark.sql(theirs).collect())


@pytest.mark.parametrize("order", ["k NULLS LAST", "k DESC NULLS FIRST", "k", "k DESC"])
def test_nulls_of_a_collation_stand_first_or_last(session, order):
    values = "(1, 'b'), (2, NULL), (3, 'A'), (4, 'a')"
    rows = f"(SELECT i, k COLLATE UTF8_LCASE AS k FROM VALUES {values} AS t (i, k))"
    ours = (
        f"SELECT l.i, a FROM {rows} WINDOW BY w AS"
        f" (TYPE SLIDING ORDER BY {order}, i START AS l AT a END UNBOUNDED)"
    )
    theirs = f"SELECT i, ROW_NUMBER() OVER (ORDER BY {order}, i) AS a FROM {rows}"
    assert shown(session.sql(ours).collect()) == shown(session.spark.sql(theirs).collect())


def test_null_keys_are_a_partition_and_come_first(session):
    sql = (
        "SELECT k, positions FROM (SELECT s.k, collect_list(w.i) AS positions FROM VALUES"
        " (NULL, 3), ('a', 1), (NULL, NULL), ('a', NULL), (NULL, 1) AS t (k, i) WINDOW BY w AS"
        " (TYPE SLIDING PARTITION BY k ORDER BY i START AS s AT sp WHEN sp = 1 END UNBOUNDED))"
    )
    assert sorted(map(tuple, session.sql(sql).collect()), key=repr) == [("a", [1]), (None, [1, 3])]
