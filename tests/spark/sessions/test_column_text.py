"""Columns as SQL, of classic Spark and of Spark Connect: the text means what the Column does."""

from __future__ import annotations

import datetime
import decimal

import pytest
from pyspark.sql import functions as classic
from pyspark.sql.connect.functions import builtin as connect

from windrow.spark.analysis.column_text import column_text
from windrow.spark.jvm.column_trees import aliases_of

NOON = datetime.datetime(2024, 2, 29, 12, 30, 1, 5)


def written(functions):
    """Columns, each with the SQL that stands for it; only the words of types and constants may differ."""
    c, lit = functions.col, functions.lit
    return [
        (c("a.v") > 5, "a.v > 5"),
        ((c("a.v") >= 5) & ~c("b.x").isNull(), "(a.v >= 5) AND (NOT (b.x IS NULL))"),
        ((c("x") < 1) | c("y").isNotNull(), "(x < 1) OR (y IS NOT NULL)"),
        (c("x").eqNullSafe(c("y")), "x <=> y"),
        (c("x").isin(1, 2), "x IN (1, 2)"),
        (c("x").between(1, 2), "(x >= 1) AND (x <= 2)"),
        (-c("x") + c("y") * 2 / 3 - c("z") % 4, "((- x) + ((y * 2) / 3)) - (z % 4)"),
        (c("x").like("a%") | c("x").rlike("b"), "(x LIKE 'a%') OR (x RLIKE 'b')"),
        (lit("it's a \\"), "'it\\'s a \\\\'"),
        (functions.expr("PREV(v, 2) < v"), "PREV(v, 2) < v"),
        (functions.expr("v < 1 -- low") & c("x"), "(v < 1) AND x"),
        (functions.call_function("prev", c("v"), lit(2)), "prev(v, 2)"),
        (functions.count("*"), "count(*)"),
        (functions.count_distinct("v"), "count(DISTINCT v)"),
        (functions.sum("v").alias("total"), "sum(v)"),
        (functions.first("v"), "first(v)"),
        (functions.last("v", True), "last(v) IGNORE NULLS"),
        (functions.mode("v"), "mode(v)"),
        (functions.when(c("x") > 1, "u").otherwise("z"), "CASE WHEN (x > 1) THEN 'u' ELSE 'z' END"),
        (functions.when(c("x") > 1, "u"), "CASE WHEN (x > 1) THEN 'u' END"),
        (c("s")["f"], "s.f"),
        (c("m")[1], "m[1]"),
        (c("`a b`.`start`.end"), "`a b`.`start`.`end`"),
        (functions.struct(c("s.v").alias("from"), "w"), "struct(s.v AS `from`, w)"),
        (c("x").alias("y") + 1, "x + 1"),
        (functions.timestamp_diff("day", "a", "b"), "timestampdiff(day, a, b)"),
        (functions.timestamp_add("HOUR", c("n"), "a"), "timestampadd(HOUR, n, a)"),
        (
            functions.struct("a.x", "b").withField("b", lit(1)).withField("c", lit(2)),
            "struct(a.x, 1 AS b, 2 AS c)",
        ),
        (functions.struct("a", c("v").alias("b")).dropFields("A", "z"), "struct(v AS b)"),
    ]


@pytest.mark.parametrize("number", range(len(written(connect))))
def test_columns_of_spark_connect_are_sql(number):
    column, text = written(connect)[number]
    assert column_text(column) == text


def test_columns_of_classic_spark_are_the_same_sql(spark):
    assert [column_text(column) for column, _ in written(classic)] == [text for _, text in written(classic)]


def test_aliases_are_apart(spark):
    for functions in (classic, connect):
        assert aliases_of(functions.sum("v").alias("total")) == ["total"]
        assert aliases_of(functions.sum("v")) == []


@pytest.mark.parametrize(
    "value",
    [
        None, True, 7, 2**40, 1.5, float("nan"), float("-inf"), decimal.Decimal("-1.50"), "x\ny", b"\x00ab",
        datetime.date(2024, 2, 29), NOON, datetime.timedelta(days=-3, microseconds=7),
    ],
)  # fmt: skip
def test_constants_are_what_they_were(spark, value):
    expected = spark.range(1).select(classic.lit(value).alias("x"))
    for functions in (classic, connect):
        found = spark.sql(f"SELECT {column_text(functions.lit(value))} AS x")
        assert repr(found.collect()) == repr(expected.collect())
        if not isinstance(value, decimal.Decimal):  # of which Spark Connect does not keep the width
            assert found.schema["x"].dataType == expected.schema["x"].dataType


def test_types_and_functions_of_elements_are_sql(spark):
    for functions in (classic, connect):
        doubled = functions.transform(functions.col("xs"), lambda x: x * 2)
        number = functions.col("t").try_cast("int")
        frame = spark.sql("SELECT array(1, 2) AS xs, 'a' AS t").selectExpr(
            column_text(doubled), column_text(number), column_text(functions.col("t").cast("binary"))
        )
        assert frame.collect() == [([2, 4], None, b"a")]


def test_a_function_in_python_is_no_sql(spark):
    for functions in (classic, connect):
        column = functions.udf(lambda x: x, "int")(functions.col("v"))
        assert column_text(column + 1) is None
