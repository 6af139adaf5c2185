"""Batch on Spark = reference, for random patterns, conditions and measures of all kinds over random rows.

The reference tries all ways to match one after the other; the fast twin in tests/kernels leaves Spark out.
"""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.spark.many_patterns import main
from tests.spark.random_matches import LIM, ROWS_OF, queries, rows
from windrow import Session, WindrowError
from windrow.spark.clauses import match_requests

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("interpreted")]


@settings(
    max_examples=60,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(values=rows, sql=queries(), most=st.sampled_from([2, 20_000]))
def test_batch_equals_reference(
    spark: SparkSession, values: list[tuple[str | None, int | None]], sql: str, most: int
) -> None:
    table = [("ab"[at % 2], at, *row) for at, row in enumerate(values)]
    spark.createDataFrame(table, ROWS_OF).createOrReplaceTempView("seq")
    spark.createDataFrame(LIM, "k string, top int, c string").createOrReplaceTempView("lim")
    with patch.object(match_requests, "_AT_FIRST", most):  # how much Spark is asked for in the first round
        found = answer(Session(spark, execution="batch"), sql)
    expected = answer(Session(spark, execution="reference"), sql)
    assert found == expected, sql


def test_patterns_over_partitions_of_a_query_equal_reference(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--count", "400"], spark) == 0, capsys.readouterr().out
    asked, patterns, found, *_ = capsys.readouterr().out.splitlines()[-1].split(", ")
    assert (asked, patterns) == ("2 queries", "400 patterns")
    assert int(found.removesuffix(" rows")) > 0


def answer(session: Session, sql: str) -> list[str]:
    """The rows in any order, or the error's condition."""
    try:
        return sorted(repr(row.asDict(recursive=True)) for row in session.sql(sql).collect())
    except WindrowError as error:
        return [error.condition]
