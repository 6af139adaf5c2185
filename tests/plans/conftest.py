"""The tables that plans are made over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import windrow

TABLES = {
    "weather": "SELECT 'a' AS station, DATE '2020-01-01' AS date, 1.5D AS val, 1 AS n, 'x' AS note",
    "events": (
        "SELECT 'u' AS user, TIMESTAMP '2020-01-01 00:00:00' AS ts, CAST(1 AS DECIMAL(10, 2)) AS price,"
        " 'login' AS kind, map('a', 1) AS tags"
    ),
}


@pytest.fixture(scope="package")
def session(spark) -> Iterator[windrow.Session]:
    for name, sql in TABLES.items():
        spark.sql(sql).createOrReplaceTempView(name)
    yield windrow.Session(spark)
    for name in TABLES:
        spark.catalog.dropTempView(name)
