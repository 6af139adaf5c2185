"""Batch on Spark = reference, for random rows, clauses, predicates, types and aggregates.

The fast twin in tests/kernels leaves Spark out; here Spark computes the columns, sorts, and joins where the
kernel cannot evaluate a predicate.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.kernels.in_memory import Table
from tests.kernels.windows.test_window_by_property import TYPES, clauses, comparable, tables
from windrow import Session

pytestmark = [pytest.mark.spark, pytest.mark.slow]

AGGREGATES = [
    "COUNT(w)",
    "COUNT(w.a)",
    "SUM(w.a)",
    "AVG(w.a)",
    "AVG(w.x)",
    "MIN(w.s)",
    "MAX(w.t)",
    "MIN(w.x)",
    "STDDEV(w.a)",
    "VAR_POP(w.a)",
    "FIRST(w.a)",
    "LAST(w.d) IGNORE NULLS",
    "BOOL_AND(w.f)",
    "ANY(w.f)",
    "COUNT(DISTINCT w.s)",
    "MEDIAN(w.a)",
    "PERCENTILE(w.a, 0.25)",
    "MODE(w.a)",
    "COLLECT_LIST(w.s)",
    "SUM(w.a) FILTER (WHERE w.f)",
    "COUNT_IF(w.a > 0)",
    "MAX(w.a * 2 + COALESCE(w.m, 0))",
    "ARRAY_AVG(w.a)",
    "MAX_BY(w.s, w.o)",
    "CORR(w.a, w.m)",
    "SUM(w.a - s.a)",
    "SUM(DISTINCT w.a)",
]


@settings(
    max_examples=40,
    deadline=None,
    print_blob=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(
    clause=clauses(),
    table=tables(),
    aggregates=st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4, unique=True),
    star=st.booleans(),
)
def test_batch_equals_reference(
    spark: SparkSession, clause: str, table: Table, aggregates: list[str], star: bool
) -> None:
    schema = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    rows = [tuple(row[name] for name in TYPES) for row in table.rows]
    spark.createDataFrame(rows, schema).createOrReplaceTempView("t")
    if "START UNBOUNDED" in clause:
        aggregates = [text for text in aggregates if "s." not in text.replace("w.s", "")] or ["COUNT(w)"]
    names = [f"{text} AS c{number}" for number, text in enumerate(aggregates)]
    sql = f"SELECT {', '.join([*(['*'] if star else []), *names])} FROM t WINDOW BY w AS {clause}"
    found, expected = (
        sorted(
            repr(comparable(_plain(row))) for row in Session(spark, execution=execution).sql(sql).collect()
        )
        for execution in ("batch", "reference")
    )
    assert found == expected, sql


def _plain(row: Any) -> Any:
    return row.asDict(recursive=True)
