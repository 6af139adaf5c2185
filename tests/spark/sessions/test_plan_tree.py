"""Spark's plans as data: what a DataFrame chooses of the rows below it, and how large Spark thinks it is."""

from __future__ import annotations

import pytest

from windrow.spark.analysis.plan_tree import choice_of, optimized_tree, with_above
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.connect import estimated_by_connect
from windrow.spark.jvm.plans import estimated_bytes, function_number

KINDS = (
    "x INT, y INT, s STRUCT<a: INT, b: STRUCT<c: INT>, `a.b`: INT>, `s.a` INT, `-x` INT, `NOT y` BOOLEAN,"
    " `a, b#1` INT, wide STRING"
)


def given(spark):
    """Rows that Spark's planner cannot look at."""
    return spark.createDataFrame(spark.sparkContext.emptyRDD(), KINDS)


@pytest.mark.parametrize(
    ("select", "columns"),
    [
        (["*"], [(at, None) for at in range(8)]),
        (["y", "x"], [(1, None), (0, None)]),
        (["x AS y", "y AS x", "x"], [(0, None), (1, None), (0, None)]),
        (["s.a", "s.`a.b` AS z", "s"], [(2, 0), (2, 2), (2, None)]),
        (["`s.a`", "`-x` AS x", "`NOT y`", "`a, b#1`"], [(3, None), (4, None), (5, None), (6, None)]),
        (["-x"], None),
        (["NOT `NOT y` AS n"], None),
        (["x + 1 AS x"], None),
        (["s.b.c"], None),
        (["CAST(x AS BIGINT) AS x"], None),
        (["1 AS x"], None),
    ],
)
def test_what_a_plan_chooses_of_the_rows_below(spark, select, columns):
    tree = optimized_tree(Gateway(spark), given(spark).selectExpr(*select))
    choice = choice_of(tree)
    assert (None if choice is None else choice.columns) == columns
    assert choice is None or choice.below.name == "LogicalRDD"


@pytest.mark.parametrize("operator", ["distinct", "filter", "limit"])
def test_a_plan_that_does_more_chooses_nothing(spark, operator):
    rows = given(spark).select("x")
    made = {"distinct": rows.distinct(), "filter": rows.filter("x > 1"), "limit": rows.limit(1)}[operator]
    assert choice_of(optimized_tree(Gateway(spark), made)) is None


def same(batches):
    """What it is given."""
    yield from batches


def test_functions_are_known_by_their_numbers_on_both_sides_of_a_join_with_itself(spark):
    rows = spark.range(3)
    one, other = rows.mapInArrow(same, "n bigint"), rows.mapInArrow(same, "n bigint")
    both = one.alias("a").join(one.alias("b"), "n").select("n").unionAll(other)
    tree = optimized_tree(Gateway(spark), both)
    found = [(node.function, above) for node, above in with_above(tree) if node.function is not None]
    assert [number for number, _ in found] == [function_number(one)] * 2 + [function_number(other)]
    assert function_number(one) != function_number(other)
    assert all(above[-1] is tree for _, above in found)


def test_what_spark_fails_to_plan_has_no_tree(spark):
    assert optimized_tree(Gateway(spark), spark.sql("SELECT 1 / 0 AS x")) is None


@pytest.mark.parametrize(("rows", "size"), [(1, 8), (1 << 20, 8 << 20), (1 << 40, 8 << 40)])
def test_the_size_that_spark_expects_is_what_its_texts_say(spark, monkeypatch, rows, size):
    frame = spark.range(rows)
    assert estimated_bytes(frame) == size
    monkeypatch.setattr(
        "windrow.spark.jvm.connect.explained_by_connect",
        lambda frame, mode: Gateway(spark).spark_plan(frame, mode),
    )
    assert estimated_by_connect(frame) == size
