"""Spark's analyser for the plan reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from windrow.plan.columns import ROWS, Column, schema_of
from windrow.spark.gateway import Gateway, is_ansi
from windrow.syntax.sqltext import RelationText, SqlText

__all__ = ["SparkAnalyser"]


class SparkAnalyser:
    """Analysis of texts by a session, classic and Connect alike.

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
        """Whether the session is in ANSI mode: it raises errors where other modes return NULL."""
        return is_ansi(self._gateway)

    def schema(
        self,
        text: SqlText,
        columns: Sequence[Column] | None = None,
        beside: Mapping[str, Sequence[Column]] | None = None,
    ) -> StructType:
        """The schema of a query over rows with these `columns`, and other relations `beside` them."""
        known = {**({} if columns is None else {ROWS: columns}), **(beside or {})}
        read = text.relations()
        parameters = {key: self._none(known[key]) for key in read if key in known}
        return self._gateway.sql(text, parameters).schema

    def union(self, left: Sequence[Column], right: Sequence[Column]) -> StructType:
        """The common types of both sides in Spark."""
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
        """An empty relation with these columns, shared by the texts over one node."""
        known = tuple(columns)
        if known not in self._rows:
            self._rows[known] = self._gateway.spark.createDataFrame([], schema_of(known))
        return self._rows[known]
