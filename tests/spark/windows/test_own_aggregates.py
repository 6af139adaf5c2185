"""Aggregates of the user's own, over windows and matches."""

from __future__ import annotations

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf
from pyspark.sql.types import LongType

from windrow import Session

ROWS = "VALUES (1, 100), (2, 80), (3, NULL), (4, 60), (5, 90) AS t(d, p)"


@pandas_udf(LongType())
def how_many(values: pd.Series) -> int:
    return len(values)


@pytest.fixture
def with_own(spark: SparkSession) -> SparkSession:
    spark.udf.register("how_many", how_many)
    return spark


@pytest.mark.parametrize("execution", ["batch", pytest.param("reference", marks=pytest.mark.sampled)])
def test_an_aggregate_of_ones_own_is_computed_for_each_window_and_match(
    with_own: SparkSession, execution: str
) -> None:
    session = Session(with_own, execution=execution)
    windows = session.sql(f"""
        SELECT s.d, how_many(w.p) AS own, COUNT(w) AS n, MAX_BY(w.d, w.p) AS best,
            how_many(w.d + s.d) AS again, how_many(w.p) FILTER (WHERE w.p >= 80) AS high,
            how_many(DISTINCT w.p >= 80) AS kinds, how_many(DISTINCT w.p > 60) FILTER (WHERE w.d > 3) AS rest
        FROM {ROWS}
        WINDOW BY w AS (TYPE SLIDING ORDER BY d START AS s END AS e WHEN e.d = s.d + 2) ORDER BY s.d""").df
    assert [tuple(row) for row in windows.collect()] == [
        (1, 3, 3, 1, 3, 2, 2, None), (2, 3, 3, 2, 3, 1, 3, 1), (3, 3, 3, 5, 3, 1, 3, 2),
        (4, 2, 2, 5, 2, 1, 2, 2), (5, 1, 1, 5, 1, 1, 1, 1)
    ]  # fmt: skip
    matches = session.sql(f"""
        SELECT * FROM (SELECT * FROM {ROWS}) MATCH_RECOGNIZE (
            ORDER BY d
            MEASURES how_many(p) AS own, how_many(B.d) FILTER (WHERE B.d > 4) AS late, MAX_BY(d, p) AS best,
                how_many(C.d) AS none, how_many(DISTINCT p > 70) AS kinds,
                how_many(DISTINCT B.d > 2) FILTER (WHERE B.d < 5) AS rest
            PATTERN (A B* | C) DEFINE B AS p IS NOT NULL)
        ORDER BY own""").df
    assert [tuple(row) for row in matches.collect()] == [
        (2, None, 1, None, 1, 1), (3, 1, 5, None, 3, 1)
    ]  # fmt: skip


def test_the_names_of_functions_of_spark_and_of_one_row_are_no_aggregates_of_ones_own(
    with_own: SparkSession,
) -> None:
    with_own.udf.register("of_one_row", lambda value: value, "int")
    found = (
        Session(with_own)
        .sql(f"""
        SELECT of_one_row(s.d) AS d, SUM(of_one_row(w.d)) AS total, size(w) AS n FROM {ROWS}
        WINDOW BY w AS (TYPE TUMBLING ORDER BY d START AS s WHEN s.p > 80)""")
        .df
    )
    assert sorted(map(tuple, found.collect())) == [(1, 10, 4), (5, 5, 1)]
