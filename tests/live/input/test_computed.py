"""Expressions that are computed without Spark have Spark's values, and what may differ is left to Spark."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as f

from tests.live.typed_expressions import KINDS, expression
from windrow.algebra.time_scale import TimeScale
from windrow.kernels.computed.lookups import LookUp
from windrow.kernels.computed.texts import extracted, found, time_shape
from windrow.spark.analysis.arrow_columns import in_memory
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.incremental_plan import IncrementalPlan

COLUMNS = (
    "x BIGINT, y BIGINT, i INT, h SMALLINT, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, s STRING, t STRING,"
    " d DECIMAL(10,2), wide DECIMAL(38,4), f DOUBLE, g DOUBLE, r FLOAT, b BOOLEAN,"
    " o STRING COLLATE UTF8_BINARY, u STRUCT<n: BIGINT, of: STRUCT<t: STRING>>, m INTERVAL DAY TO SECOND"
)
UTC = datetime.UTC


def moments(*texts):
    return [None if text is None else datetime.datetime.fromisoformat(text) for text in texts]


TIMES = moments(
    "1969-12-31 23:59:59.999999", "2026-03-29 01:30:00", None, "2000-02-29 08:05:09.5", "1583-01-01 00:00:00"
)
VALUES = {
    "x": [1, 2, None, -7, 2**40],
    "y": [10, 2, 3, None, -3],
    "i": [7, None, 9, -2, 123456],
    "h": [1, 2, None, -4, 300],
    "at": [None if time is None else time.replace(tzinfo=UTC) for time in TIMES],
    "local": TIMES[::-1],
    "day": [None if time is None else time.date() for time in TIMES],
    "s": ["http://a/b/c?x=1&channel_id=7", "a/b", None, "channel_id=", "Ünïcode/ß//"],
    "t": ["Apple", "apple", "b", "", None],
    "d": [Decimal("1.25"), Decimal("-99999999.99"), None, Decimal("0.00"), Decimal("2.50")],
    "wide": [Decimal("1.25"), None, Decimal("-3"), Decimal("0"), Decimal("7.5")],
    "f": [0.5, None, float("nan"), -0.0, 1e300],
    "g": [0.5, float("nan"), float("nan"), 0.0, float("nan")],
    "r": [0.5, None, float("nan"), -0.0, float("inf")],
    "b": [True, False, None, True, False],
    "o": ["a", "A", None, "", "b"],
    "u": [{"n": 1, "of": {"t": "a"}}, None, {"n": None, "of": None}, {"n": 4, "of": {"t": None}}, {"n": 5}],
    "m": [datetime.timedelta(hours=h, minutes=40, seconds=5.5) if h else None for h in (1, 30, 0, -50, 5)],
}
READ = """
x
s
1
'it''s'
CAST(NULL AS INT)
x * 3 - 1
i + 1
i + h
-x
abs(i)
x % 10
pmod(x, 10)
mod(i, 7)
x + y > 3
CASE WHEN i >= 8 THEN x END
CASE WHEN i < 8 THEN 1 WHEN x > 1 THEN 2 ELSE 3 END
IF(b, s, t)
NULLIF(i, 7)
(x = 2) AND (i = 8)
b OR x > 1
NOT COALESCE(x <= 1, false)
x IN (1, 2, 3)
t IN ('apple', 'b')
t = 'apple'
t < 'b'
s <=> t
x BETWEEN 1 AND 3
s IS NULL OR x IS NOT NULL
unix_micros(at)
unix_micros(at) % 10
timestamp_micros(x)
CAST(at AS DATE)
CAST(local AS DATE)
CAST(at AS DATE) < CAST(timestamp_micros(x) AS DATE)
day > DATE '2000-01-01'
at > TIMESTAMP '2000-02-29 08:05:09.5'
at IN (TIMESTAMP '2000-02-29 08:05:09.5', TIMESTAMP '1583-01-01 00:00:00') OR at < TIMESTAMP '1900-01-01'
local <= TIMESTAMP_NTZ '2000-02-29 08:05:09.5'
at + INTERVAL 1 HOUR
at - INTERVAL '1 02:03:04.5' DAY TO SECOND
hour(at)
minute(at)
second(at)
hour(local)
unix_date(day)
CAST(extract(SECOND FROM local) * 1000000 AS BIGINT)
timestampadd(MICROSECOND, x, TIMESTAMP_NTZ '1970-01-01 00:00:00')
timestampadd(MICROSECOND, 0L - x, TIMESTAMP_NTZ '2026-01-01 00:00:00')
date_format(at, 'yyyy-MM-dd')
date_format(at, 'HH:mm')
date_format(at, 'yyyy/MM/dd HH:mm:ss')
CAST(i AS BIGINT)
CAST(h AS INT)
CAST(i AS DOUBLE)
CAST(x AS DECIMAL(20, 0))
CAST(d AS DECIMAL(12, 4))
0.908 * x
d * 2.5
d + 1
d - x
d > 1.5
0.908 * x > 2
f * 2 - 0.1D
f > 0.5
f < g
f <= g
f > g
f >= g
f = g
f <=> g
f <> g
r < 0.5
CAST(r AS DOUBLE) = f
x / 2
f / -3
x DIV 3
i DIV 7
year(day)
quarter(at)
month(day) * 100 + dayofmonth(day)
dayofyear(local)
'x' || x || i
CAST(at AS TIMESTAMP_NTZ) < local
length(s)
length(s) - length(replace(s, 'c', ''))
replace(s, 'channel', 'x')
substring(s, 2, 3)
substr(s, 3)
s || t
concat(s, '-', t)
s LIKE 'http%'
s LIKE '%/'
contains(s, 'b')
startswith(s, 'a')
endswith(s, '7')
split_part(s, '/', 1)
split_part(s, '/', 4)
split_part(s, '//', 2)
o
u.n
u.n + x
u.of.t
u.of.t IS NULL
m
at + m
CAST(m AS INTERVAL SECOND)
""".strip().splitlines()
READ.append(TimeScale("timestamp_ntz", "MICROSECOND").of_column("local", "timestamp_ntz", "MICROSECOND"))
ASCII = """
lower(t)
upper(t)
CASE lower(t) WHEN 'apple' THEN '0' ELSE t END
regexp_extract(t, '(p+)l', 1)
regexp_extract(t, '(x|^)[Aa](p*)', 2)
regexp_extract(t, '(x)|b', 1)
regexp_extract(t, 'p*le', 0)
t RLIKE '^a[^b]*e'
""".strip().splitlines()
LEFT = """
startswith(s, t)
hash(x)
CAST(m AS INTERVAL HOUR)
CAST(CAST(m AS INTERVAL DAY TO MINUTE) AS INTERVAL DAY TO SECOND)
x / y
x DIV y
x % y
x % 0
d / 3
wide * wide
wide * x
CAST(f AS INT)
CAST(s AS BINARY)
date_format(at, 'E')
date_format(at, 'yy')
date_format(day, 'yyyy')
to_timestamp(s)
t = 'APPLE' COLLATE UTF8_LCASE
lower(t COLLATE UTF8_LCASE) = 'apple'
substring(s, -2, 1)
substring(s, i, 1)
split_part(s, '/', -1)
split_part(s, t, 1)
regexp_extract(t, '(.)', 1)
regexp_extract(t, '(a)+', 1)
t RLIKE 'e$'
t RLIKE '(?i)a'
""".strip().splitlines()


@pytest.fixture(scope="module")
def incremental_plan(spark, tmp_path_factory):
    return IncrementalPlan(Gateway(spark, {}), tmp_path_factory.mktemp("leaf"))


@pytest.fixture(scope="module")
def schema(spark):
    return spark.createDataFrame([], COLUMNS).schema


@pytest.fixture(scope="module")
def rows(schema):
    return pa.table({name: VALUES[name] for name in schema.names}, schema=in_memory(schema))


@pytest.fixture(scope="module")
def leaf(incremental_plan, schema, rows):
    """Makes what a flow gives of an expression: the fragment, and its rows."""
    _, frame = incremental_plan.leaf(schema)

    def of(given: dict, *, where: str | None = None):
        chosen = frame if where is None else frame.where(where)
        fragment = incremental_plan._fragment(
            chosen.selectExpr(*(f"{text} AS `{name}`" for name, text in given.items()))
        )
        return fragment, fragment.computed and fragment.computed.of(rows)

    return of


def spark_values(spark, rows, given, where=None):
    """What Spark makes of the same rows."""
    local = f.col("local").cast("TIMESTAMP_NTZ")  # Spark takes times without a zone for others
    frame = spark.createDataFrame(rows).withColumn("local", local).coalesce(1)
    frame = frame if where is None else frame.where(where)
    return frame.selectExpr(*(f"{text} AS `{name}`" for name, text in given.items())).toArrow()


@pytest.fixture(scope="module")
def utc(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def same(found, told):
    """Equal, NaN among them."""
    return list(map(repr, found.to_pylist())) == list(map(repr, told.to_pylist()))


def test_expressions_have_sparks_values(spark, leaf, rows, utc):
    told = spark_values(spark, rows, {str(at): text for at, text in enumerate(READ)})
    wrong = []
    for at, text in enumerate(READ):
        fragment, made = leaf({"c": text})
        is_same = made is not None and same(made.column("c"), told.column(str(at)))
        if not (fragment.chosen or is_same):
            wrong.append((text, made and made.column("c").to_pylist(), told.column(str(at)).to_pylist()))
    assert wrong == []


@given(st.randoms(use_true_random=False))
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_random_expressions_have_sparks_values_or_are_left_to_spark(spark, leaf, rows, utc, random):
    texts = [expression(random, random.choice(KINDS), random.choice((1, 1, 2, 3))) for _ in range(25)]
    made = {}
    for text in texts:
        fragment, found = leaf({"c": text})
        if found is not None and not fragment.chosen:
            made[text] = found.column("c")
    told = spark_values(spark, rows, {str(at): text for at, text in enumerate(made)})
    assert [text for at, text in enumerate(made) if not same(made[text], told.column(str(at)))] == []


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin"])
def test_times_without_a_zone_are_the_same_where_clocks_are_set(spark, leaf, rows, conf, zone):
    """Also hours that a zone leaves out, or has twice."""
    conf("spark.sql.session.timeZone", zone)
    texts = [
        "2026-03-08 02:30:00",
        "2026-03-29 02:30:00.000001",
        "2026-10-25 02:30:00",
        "1883-11-18 12:01:00",
    ]
    scale = TimeScale("timestamp_ntz", "MICROSECOND")
    ticks = scale.of_column("local", "timestamp_ntz", "MICROSECOND")
    shown = scale.to_column(f"({ticks} - pmod({ticks}, 300000000L))")
    fragment, _ = leaf({"c": shown})
    values = ", ".join(f"(TIMESTAMP_NTZ '{text}')" for text in texts)
    told = spark.sql(f"SELECT {shown} AS c FROM VALUES {values}, (NULL) AS t(local)").toArrow()
    at = rows.column_names.index("local")
    local = pa.array([*moments(*texts), None], rows.schema.field(at).type)
    made = fragment.computed.of(rows.set_column(at, rows.schema.field(at), local))
    assert made.column("c").to_pylist() == told.column("c").to_pylist()


def test_texts_of_ascii_have_sparks_values_and_others_are_left_to_spark(spark, leaf, rows, utc):
    told = spark_values(spark, rows, {str(at): text for at, text in enumerate(ASCII)})
    for at, text in enumerate(ASCII):
        _, made = leaf({"c": text})
        assert made is not None, text
        assert same(made.column("c"), told.column(str(at))), text
        fragment, made = leaf({"c": text.replace("(t", "(s").replace("t RLIKE", "s RLIKE")})
        assert fragment.computed is not None, text
        assert made is None, text


@pytest.mark.parametrize("text", LEFT)
def test_what_is_not_known_exactly_is_left_to_spark(leaf, utc, text):
    fragment, made = leaf({"c": text})
    assert fragment.chosen is None
    assert made is None


def test_rows_stay_where_a_condition_holds_and_what_it_computes_is_computed_once(
    spark, leaf, rows, utc, monkeypatch
):
    given = {"c": "0.908 * x", "p": "split_part(s, '/', 2)", "n": "length(split_part(s, '/', 2))", "i": "i"}
    where = "0.908 * x > 0 AND split_part(s, '/', 2) <> 'q' AND b IS NOT NULL"
    calls = []
    own = pa.compute.split_pattern
    monkeypatch.setattr(pa.compute, "split_pattern", lambda *each: calls.append(each) or own(*each))
    fragment, _ = leaf(given, where=where)
    calls.clear()
    made = fragment.computed.of(rows)
    assert made.to_pylist() == spark_values(spark, rows, given, where).to_pylist()
    assert 0 < made.num_rows < len(VALUES["x"])
    assert len(calls) == 1
    _, made = leaf(given, where="x > 100000000000000")
    assert made.num_rows == 0


def test_what_overflows_is_for_spark_to_refuse_and_times_of_zones_to_tell(spark, leaf, rows, utc):
    assert leaf({"c": "x * 9223372036854775807"})[1] is None
    assert leaf({"c": "i + 2147483647"})[1] is None
    assert leaf({"c": "date_format(at - INTERVAL 800 HOUR, 'yyyy')"})[1] is None  # of 1582
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        for text in ("CAST(at AS DATE)", "hour(at)", "date_format(at, 'HH:mm')", "at + INTERVAL 1 DAY"):
            assert leaf({"c": text})[0].computed is None, text
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_null_that_is_an_error_is_for_spark_to_refuse(leaf, utc):
    for text in ("coalesce(x, raise_error('no x'))", "coalesce(x, y, raise_error('neither'))"):
        assert leaf({"c": text})[0].computed is None, text


def test_types_for_which_arrow_has_no_function_are_left_to_spark_from_the_start(leaf, utc, monkeypatch):
    def unknown(*given):  # as Arrow does of types that a function does not take: those differ by its version
        raise pa.ArrowNotImplementedError("no kernel for these types")

    monkeypatch.setattr(pa.compute, "split_pattern", unknown)
    assert leaf({"c": "split_part(s, '/', 2)"})[0].computed is None


def test_patterns_that_java_reads_in_another_way_are_left_to_it():
    for pattern in (
        "a.b",
        "a$",
        r"\d",
        "(a)*",
        "[a&&b]",
        "[a[b]]",
        "a{2}",
        "(?i)a",
        "(?<n>a)",
        "ä",
        "a**",
        "(",
    ):
        assert found(pattern) is None, pattern
    assert extracted("(a)(b)", 3) is None
    for shape in ("", "T", "yyyyy", "y", "hh", "HH:mm a", "'x'", None):
        assert time_shape(shape) is None, shape


JOINS = [
    "l JOIN r ON l.x % 3 = r.k",
    "r JOIN l ON l.x % 3 = r.k",
    "l LEFT JOIN r ON l.x % 3 = r.k",
    "r RIGHT JOIN l ON r.k = l.x % 3",
    "l JOIN r ON l.t = lower(r.n)",
    "l JOIN r ON l.x % 3 = r.k AND l.i > 7",
    "l JOIN r ON l.x % 3 = r.k AND l.t <= r.n",
    "l CROSS JOIN r",
    "(SELECT * FROM r WHERE k > 0) AS r CROSS JOIN l",
    "(SELECT * FROM l WHERE x > 1) AS l JOIN (SELECT k, n FROM r WHERE n <> 'c') AS r ON l.x % 3 = r.k",
]
ELSEWHERE = [
    "r LEFT JOIN l ON l.x % 3 = r.k",
    "l LEFT SEMI JOIN r ON l.x % 3 = r.k",
    "l JOIN r ON l.x > r.k",
    "l LEFT JOIN r ON l.x % 3 = r.k AND l.t <= r.n",
    "l JOIN r ON l.f = r.f",
    "l JOIN l AS o ON l.x = o.x",
]


KEYED = {
    "d": [Decimal("1.25"), Decimal("2.50"), None, Decimal("1.25")],
    "day": [datetime.date(2000, 2, 29), datetime.date(1583, 1, 1), None, datetime.date(2000, 2, 29)],
    "at": [VALUES["at"][0], VALUES["at"][3], None, VALUES["at"][0]],
    "local": [TIMES[0], TIMES[1], None, TIMES[1]],
    "b": [True, None, True, True],
    "o": ["a", "", None, "a"],
    "f": [0.5, -0.0, None, 0.5],
}


@pytest.fixture
def sides(spark, incremental_plan, schema, rows):
    """The leaf, and a table with NULL and equal keys."""
    table = pa.table(
        {
            "k": [1, 2, None, 1, 0],
            "n": ["Apple", "b", "c", "apple", None],
            "f": [0.5, 1.5, 2.5, 0.5, None],
        }
    )
    spark.createDataFrame(table).createOrReplaceTempView("r")

    def of(text):
        # rows that have no side of their own come as they are
        shown = "r.k, r.n, l.x, l.t, l.i" if "o.x" not in text and "SEMI" not in text else "l.x, l.t"
        incremental_plan.leaf(schema)[1].createOrReplaceTempView("l")
        fragment = incremental_plan._fragment(spark.sql(f"SELECT {shown} FROM {text}"))
        spark.createDataFrame(rows).createOrReplaceTempView("l")
        return fragment, spark.sql(f"SELECT {shown} FROM {text}").toArrow()

    yield of
    for name in ("l", "r"):
        spark.catalog.dropTempView(name)


def in_any_order(table):
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("text", JOINS)
def test_look_ups_in_small_tables_have_sparks_rows(sides, rows, text):
    fragment, told = sides(text)
    assert told.num_rows
    assert in_any_order(fragment.computed.of(rows)) == in_any_order(told)
    assert fragment.computed.of(rows.slice(0, 0)).num_rows == 0


@pytest.mark.parametrize("key", KEYED)
def test_keys_of_look_ups_of_any_type_are_sparks_or_left_to_it(
    spark, incremental_plan, schema, rows, utc, key
):
    column = pa.schema([in_memory(schema).field(key)])
    table = pa.table({key: KEYED[key]}, schema=column).append_column("n", pa.array([1, 2, 3, 4]))
    frame = spark.createDataFrame(table)
    side = frame.select(frame[key].cast(schema[key].dataType).alias("k"), "n")

    def joined(left):
        return left.join(side, left[key] == side["k"], "left").select("x", "k", "n")

    told = joined(spark.createDataFrame(rows)).toArrow()
    assert pa.compute.sum(told.column("n")).as_py()
    computed = incremental_plan._fragment(joined(incremental_plan.leaf(schema)[1])).computed
    if key == "f":  # Spark makes -0.0 and NaN of a key normal
        assert computed is None
    else:
        assert in_any_order(computed.of(rows)) == in_any_order(told)


@pytest.mark.parametrize("text", ELSEWHERE)
def test_other_joins_are_left_to_spark(sides, text):
    assert sides(text)[0].computed is None


def test_tables_that_are_not_small_are_left_to_spark_and_files_are_read_at_each_step(
    spark, sides, rows, conf, tmp_path
):
    spark.table("r").write.parquet(str(tmp_path / "r"))
    spark.read.parquet(str(tmp_path / "r")).createOrReplaceTempView("r")
    fragment, told = sides(JOINS[0])
    assert in_any_order(fragment.computed.of(rows)) == in_any_order(told)
    (look_up,) = (step for step in fragment.computed.operations if isinstance(step, LookUp))
    assert not look_up.table.is_constant
    conf("spark.sql.autoBroadcastJoinThreshold", "1")
    assert sides(JOINS[0])[0].computed is None


RANKED = {
    "row_number() OVER (PARTITION BY x % 2 ORDER BY i DESC NULLS FIRST, t)": "p",
    "row_number() OVER (ORDER BY f DESC)": "p",
    "rank() OVER (PARTITION BY b ORDER BY length(t))": "p <= 2",
    "dense_rank() OVER (PARTITION BY b ORDER BY length(t) DESC NULLS LAST)": "p <= 2",
    "row_number() OVER (PARTITION BY lower(t) ORDER BY x)": "p = 1",
}
NOT_RANKED = ["sum(x) OVER (ORDER BY i)", "lag(x) OVER (ORDER BY i)", "percent_rank() OVER (ORDER BY i)"]


@pytest.mark.parametrize("text", RANKED)
def test_ranks_are_sparks(spark, incremental_plan, schema, rows, text):
    told = spark.createDataFrame(rows)
    where = "true" if RANKED[text] == "p" else RANKED[text]
    frame = incremental_plan.leaf(schema)[1]

    def ranked(of):
        return of.selectExpr("x", "i", f"{text} AS p").where(where)

    fragment = incremental_plan._fragment(ranked(frame))
    assert in_any_order(fragment.computed.of(rows)) == in_any_order(ranked(told).toArrow())
    assert fragment.computed.of(rows.slice(0, 0)).num_rows == 0


def test_of_rows_that_an_order_does_not_tell_apart_the_same_is_first_however_they_come(
    incremental_plan, schema, rows
):
    frame = incremental_plan.leaf(schema)[1].selectExpr(
        "x", "s", "row_number() OVER (PARTITION BY 1 ORDER BY 2) AS p"
    )
    fragment = incremental_plan._fragment(frame)
    found = {tuple(in_any_order(fragment.computed.of(rows.take(list(order)))))
             for order in itertools.permutations(range(rows.num_rows))}  # fmt: skip
    assert len(found) == 1


@pytest.mark.parametrize("text", NOT_RANKED)
def test_other_functions_over_windows_are_left_to_spark(incremental_plan, schema, text):
    assert (
        incremental_plan._fragment(incremental_plan.leaf(schema)[1].selectExpr("x", f"{text} AS p")).computed
        is None
    )


UNIONS = [
    ("x + 1 AS a", "i > 0", "y AS a", "true"),
    ("x AS a, CAST(NULL AS BIGINT) AS b", "true", "x AS a, y AS b", "b"),
    ("*", "true", "*", "true"),
    ("*", "true", "*", "x > 1"),
]


@pytest.mark.parametrize("union", UNIONS)
@pytest.mark.parametrize("is_of_one", [True, False])
def test_rows_of_several_leaves_one_after_the_other_are_those_of_each(
    spark, incremental_plan, schema, rows, utc, union, is_of_one
):
    first, where, other, elsewhere = union
    one, left = incremental_plan.leaf(schema)
    two, right = (one, left) if is_of_one else incremental_plan.leaf(schema)
    told = spark.createDataFrame(rows, schema).coalesce(1)

    def chosen(frame, texts, where):
        return frame.where(where).selectExpr(*texts.split(", "))

    def united(left, right):
        return chosen(left, first, where).unionAll(chosen(right, other, elsewhere))

    fragment = incremental_plan._fragment(united(left, right))
    made = fragment.rows({one: rows, two: rows}, None)
    assert same(made, united(told, told).toArrow())
    if not is_of_one:
        assert in_any_order(fragment.rows({two: rows}, None)) == in_any_order(
            chosen(told, other, elsewhere).toArrow()
        )


def test_where_a_part_is_left_to_spark_all_of_it_is(incremental_plan, schema, rows, utc):
    one, left = incremental_plan.leaf(schema)
    two, right = incremental_plan.leaf(schema)

    def fragment(text):
        return incremental_plan._fragment(left.selectExpr("x").unionAll(right.selectExpr(text)))

    asked = []
    overflows = fragment("x * 9223372036854775807")
    overflows.rows({one: rows, two: rows}, lambda of, read: asked.append((of, [*read])) or rows.select(["x"]))
    assert asked == [(overflows, [one, two])]
    assert not fragment("hash(x) + 0L").is_in_memory
