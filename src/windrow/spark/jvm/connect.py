"""Spark Connect, which has no bridge to Java: what it tells in a way of its own."""

from __future__ import annotations

from pyspark.sql import DataFrame

__all__ = ["explained_by_connect", "of_connect"]


def of_connect(given: object) -> bool:
    """Whether a session, a DataFrame, a Column or a query is one of Spark Connect."""
    return type(given).__module__.startswith("pyspark.sql.connect")


def explained_by_connect(frame: DataFrame, mode: str) -> str:
    """What ``frame.explain`` prints."""
    return str(frame._explain_string(mode=mode))  # type: ignore[operator]
