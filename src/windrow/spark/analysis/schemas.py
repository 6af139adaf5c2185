"""Spark's analyser, as the reader of plans asks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from windrow.plan.columns import ROWS, Column, schema_of
from windrow.spark.gateway import Gateway, is_ansi
from windrow.syntax.sqltext import RelationText, SqlText

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
        self._rows: dict[tuple[Column, ...], DataFrame] = {}

    @property
    def zone(self) -> str | None:
        """The session's time zone."""
        return self._gateway.spark.conf.get("spark.sql.session.timeZone")

    @property
    def is_ansi(self) -> bool:
        """Whether the session raises errors where other modes give NULL."""
        return is_ansi(self._gateway)

    def schema(
        self,
        text: SqlText,
        columns: Sequence[Column] | None = None,
        beside: Mapping[str, Sequence[Column]] | None = None,
    ) -> StructType:
        """The columns of a query, over rows with these columns if it reads any, and others by their keys."""
        known = {**({} if columns is None else {ROWS: columns}), **(beside or {})}
        read = text.relations()
        given = {key: self._none(known[key]) for key in read if key in known}
        return self._gateway.sql(text, given).schema

    def union(self, left: Sequence[Column], right: Sequence[Column]) -> StructType:
        """The types in which Spark puts both together."""
        both = SqlText.of("SELECT * FROM ", RelationText("l"), " UNION ALL SELECT * FROM ", RelationText("r"))
        frames = {"l": self._none(left), "r": self._none(right)}
        return self._gateway.sql(both, frames).schema

    def value(self, text: SqlText) -> object:
        """The value of an expression that reads no rows."""
        found = self._gateway.sql(SqlText.of("SELECT ", text, " AS value"))
        with self._gateway.translated():
            (value,) = found.collect()[0]
        return value

    def _none(self, columns: Sequence[Column]) -> DataFrame:
        """No rows with these columns; several texts are over those of one node."""
        known = tuple(columns)
        if known not in self._rows:
            self._rows[known] = self._gateway.spark.createDataFrame([], schema_of(known))
        return self._rows[known]
