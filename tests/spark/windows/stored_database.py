"""A database for what tests store in Spark's catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import windrow

__all__ = ["database", "rows"]


@contextmanager
def database(spark, path: Path, name: str, table: str, values: str) -> Iterator[None]:
    """A database in a folder, in use, with a table of columns k, i and v."""
    spark.sql(f"CREATE DATABASE {name} LOCATION '{path.as_uri()}'")
    spark.sql(f"USE {name}")
    spark.sql(f"CREATE TABLE {table} AS SELECT * FROM VALUES {values} AS t (k, i, v)")
    yield
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {name} CASCADE")


def rows(session: windrow.Session, sql: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in session.sql(sql).collect()), key=repr)
