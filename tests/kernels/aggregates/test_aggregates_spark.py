"""Every aggregate over every type against Spark's own, on one table and in two queries."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from windrow.kernels.aggregates import FUNCTIONS, AggregateSpec, aggregate, supports

#: Columns, by Spark type; each group g is one window.
COLUMNS = {
    "tiny": "cast(pmod(n * 37, 11) - 5 as tinyint)",
    "small": "cast(pmod(n * 7919, 1001) - 500 as smallint)",
    "whole": "cast(pmod(n * 7919, 100003) - 50000 as int)",
    "big": "cast(pmod(n * 7919, 13) - 6 as bigint) * 1000000007",
    "real": "cast((pmod(n * 31, 17) - 8) / 4 as float)",
    "double": "CASE pmod(n, 23) WHEN 3 THEN double('nan') WHEN 5 THEN double('inf') WHEN 7 THEN -0.0D"
    " WHEN 8 THEN 0.0D ELSE (pmod(n * 31, 19) - 9) / 8.0D END",
    "plain": "(pmod(n * 7919, 1009) - 504) / 64D",
    "short_decimal": "cast((pmod(n * 31, 1999) - 1000) / 100 as decimal(7,2))",
    "long_decimal": "cast((pmod(n * 31, 1999) - 1000) as decimal(30,3)) * 1234567890123.457BD",
    "fraction": "cast((pmod(n * 7, 10)) as decimal(38,0)) * 0.00000000000000000000000000000000000001BD",
    "flag": "pmod(n, 3) = 0",
    "text": "concat(char(cast(pmod(n * 5, 26) + 65 as int)), repeat('é', cast(pmod(n, 3) as int)))",
    "bytes": "unhex(hex(pmod(n * 97, 256)))",
    "day": "date_add(DATE'1969-12-20', cast(pmod(n * 7, 40) as int))",
    "moment": "timestamp_micros(pmod(n * 7919, 101) * 1000003 - 50000000)",
    "local": "cast(timestamp_micros(pmod(n * 7919, 101) * 1000003 - 50000000) as timestamp_ntz)",
    "span": "make_dt_interval(0, 0, 0, cast((pmod(n * 7919, 101) - 50) / 1000000 as decimal(18,6)))",
    "pair": "named_struct('a', nullif(n, 5), 'b', nullif(cast(n as string), '6'))",
}

#: How a function is written in Spark, where not simply with its argument.
CALLS = {
    "count_star": "count(*)",
    "count_distinct": "count(DISTINCT {x})",
    "percentile": "percentile({x}, 0.3)",
}

#: Of several values Spark gives any; the tests against a plain loop have these.
ARBITRARY = {"mode", "any_value"}


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> DataFrame:
    """Groups of 0 to 40 rows, in row order; every seventh value of each column is NULL."""
    null = "CASE WHEN pmod(n + {shift}, 7) = 0 OR g = 3 THEN NULL ELSE {value} END AS {name}"
    columns = [
        null.format(shift=shift, value=value, name=name)
        for shift, (name, value) in enumerate(COLUMNS.items())
    ]
    groups = spark.range(0, 300, 1, 1).selectExpr("id AS n", "cast(floor(sqrt(id)) as int) AS g")
    return groups.selectExpr("n", "g", *columns)


def pairs(rows: pa.Table) -> list[tuple[str, str]]:
    return [
        (function, name)
        for name in COLUMNS
        for function in FUNCTIONS
        if function not in ARBITRARY and supports(function, rows.schema.field(name).type)
    ]


def same(actual: Any, expected: Any, exact: bool) -> bool:
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(
            same(a, e, exact) for a, e in zip(actual, expected, strict=True)
        )
    if not isinstance(expected, float) or actual is None:
        return bool(actual == expected)
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    # Spark adds the rows to a variance one by one, which rounds otherwise in the last few of 16 digits.
    return actual == expected if exact else math.isclose(actual, expected, rel_tol=1e-12, abs_tol=1e-12)


def test_every_function_and_type_equals_spark(source: DataFrame) -> None:
    rows = source.toArrow()
    calls = [
        f"{CALLS.get(function, function + '({x})').format(x=name)} AS {function}__{name}"
        for function, name in pairs(rows)
    ]
    # One task reads the groups in row order, so that first, last and collect_list are determined.
    spark = source.sparkSession
    source.coalesce(1).createOrReplaceTempView("aggregates_source")
    halves = [
        spark.sql(f"SELECT g, {', '.join(part)} FROM aggregates_source GROUP BY g ORDER BY g").toArrow()
        for part in (
            [call for call in calls if "DISTINCT" not in call],
            [call for call in calls if "DISTINCT" in call],
        )
    ]
    group = rows.column("g").to_numpy()
    lo = np.flatnonzero(np.diff(group, prepend=-1))
    hi = np.append(lo[1:], len(group))
    wrong = []
    for function, name in pairs(rows):
        half = halves["distinct" in function]
        expected = half.column(f"{function}__{name}")
        spec = AggregateSpec(function, name, expected.type, parameters=(0.3,))
        actual = aggregate(spec, rows, lo, hi)
        assert actual.type == expected.type, (function, name)
        ours, theirs = actual.to_pylist(), expected.to_pylist()
        if function == "collect_set":
            theirs = [sorted(values, key=sort_key) for values in theirs]
        exact = not function.startswith(("var", "stddev"))
        wrong += [(function, name, a, e) for a, e in zip(ours, theirs, strict=True) if not same(a, e, exact)]
    assert wrong == []


def sort_key(value: Any) -> Any:
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("function", "values", "kind", "result"),
    [
        ("sum", "(9223372036854775807L), (1L)", pa.int64(), pa.int64()),
        ("sum", "(99999999999999999999999999999999999999BD), (1BD)", pa.decimal128(38), pa.decimal128(38)),
        ("avg", "(99999999999999999999999999999999999999BD), (1BD)", pa.decimal128(38), pa.decimal128(38, 4)),
        ("avg", "(9999999999999999999999999999999999999BD), (1BD)", pa.decimal128(38), pa.decimal128(38, 4)),
    ],
)
def test_overflow_is_an_error_under_ansi_and_else_as_in_spark(
    spark: SparkSession, function: str, values: str, kind: pa.DataType, result: pa.DataType
) -> None:
    text = f"SELECT {function}(x) AS y FROM VALUES {values} t(x)"
    column = spark.sql(f"SELECT x FROM VALUES {values} t(x)").toArrow().cast(pa.schema([("x", kind)]))
    before = spark.conf.get("spark.sql.ansi.enabled")
    outcome: dict[bool, Any] = {}
    try:
        for ansi in (True, False):
            spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
            try:
                outcome[ansi] = spark.sql(text).collect()[0].y
            except Exception as error:
                outcome[ansi] = error.getSqlState()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    for ansi in (True, False):
        spec = AggregateSpec(function, "x", result, ansi=ansi)
        try:
            actual = aggregate(spec, column, np.array([0]), np.array([2]))[0].as_py()
        except Exception as error:
            actual = error.getSqlState()
        assert actual == outcome[ansi], ansi


def test_a_decimal_average_is_rounded_once_and_half_up(spark: SparkSession) -> None:
    unit = "cast(0.00000000000000000000000000000000000001BD as decimal(38,38))"
    # 9/20 of the last digit is 0, though 0.45 rounded to 0.5 and again would be 1; 10/20 is 1.
    for count, nearest in ((9, Decimal(0)), (10, Decimal("1E-38"))):
        some = f"CASE WHEN id < {count} THEN {unit} ELSE cast(0 as decimal(38,38)) END"
        table = spark.range(20).selectExpr(f"{some} AS x")
        expected = table.selectExpr("avg(x)").toArrow().column(0)
        spec = AggregateSpec("avg", "x", expected.type)
        actual = aggregate(spec, table.toArrow(), np.array([0]), np.array([20]))
        assert actual.to_pylist() == expected.to_pylist() == [nearest]
