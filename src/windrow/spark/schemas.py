"""Spark's analyser, as the reader of plans asks it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import StructType

from windrow.plan.columns import ROWS, Column, schema_of
from windrow.spark.gateway import Gateway, is_ansi
from windrow.syntax.sqltext import Relation, SqlText

__all__ = ["SparkAnalyser"]


class SparkAnalyser:
    """What a session's analyser says of texts: classic and Connect alike.

    Parameters
    ----------
    gateway
        The session, and the parameters of the query.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @property
    def zone(self) -> str | None:
        """The session's time zone."""
        return self._gateway.spark.conf.get("spark.sql.session.timeZone")

    @property
    def is_ansi(self) -> bool:
        """Whether the session raises errors where other modes give NULL."""
        return is_ansi(self._gateway)

    def schema(self, text: SqlText, columns: Sequence[Column] | None = None) -> StructType:
        """The columns of a query, over rows with these columns if it reads any."""
        if columns is None or ROWS not in text.relations():
            return self._gateway.sql(text).schema
        rows = self._gateway.spark.createDataFrame([], schema_of(columns))
        return self._gateway.sql(text, {ROWS: rows}).schema

    def union(self, left: Sequence[Column], right: Sequence[Column]) -> StructType:
        """The types in which Spark puts both together."""
        both = SqlText.of("SELECT * FROM ", Relation("l"), " UNION ALL SELECT * FROM ", Relation("r"))
        frames = {
            key: self._gateway.spark.createDataFrame([], schema_of(columns))
            for key, columns in (("l", left), ("r", right))
        }
        return self._gateway.sql(both, frames).schema

    def value(self, text: SqlText) -> object:
        """The value of an expression that reads no rows."""
        found = self._gateway.sql(SqlText.of("SELECT ", text, " AS value"))
        with self._gateway.translated():
            (value,) = found.collect()[0]
        return value
