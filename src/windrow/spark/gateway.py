"""The one door to a SparkSession: runs generated SQL over DataFrames and translates Spark's errors.

Only the public DataFrame API is used, so that a Spark Connect session serves as well.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from windrow.spark.errors import of_java, translate
from windrow.syntax.sqltext import SqlText

__all__ = ["Gateway"]

_numbers = itertools.count(1)
# PySpark logs the whole JVM trace of an analysis error through these
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class Gateway:
    """A SparkSession, the parameters of the statement that is being run, and the SQL given for it so far."""

    def __init__(self, spark: SparkSession, parameters: Mapping[str, Any] | None = None) -> None:
        self.spark = spark
        self.parameters = dict(parameters or {})
        self.given: list[tuple[SqlText, dict[str, str]]] = []
        self.is_connect = type(spark).__module__.startswith("pyspark.sql.connect")

    def sql(self, text: SqlText, relations: Mapping[str, DataFrame] | None = None) -> DataFrame:
        """Run SQL in which the keys of `relations` stand for DataFrames.

        Raises
        ------
        WindrowError
            Spark's error, located in the user's text.
        """
        with self.views({key: (relations or {})[key] for key in text.relations()}) as names:
            rendered = text.render(names)
            with self.translated(text, names):
                frame = (
                    self.spark.sql(rendered, args=self.parameters)
                    if self.parameters
                    else self.spark.sql(rendered)
                )
                if not self.is_connect:
                    return frame
                frame.schema  # noqa: B018 - Connect analyses only when asked; an error belongs here
        self._keep(frame, names)
        return frame

    @contextmanager
    def views(self, relations: Mapping[str, DataFrame]) -> Iterator[dict[str, str]]:
        """Temporary views of DataFrames under names of ours, dropped when no longer needed."""
        names = {key: f"__windrow_{next(_numbers)}" for key in relations}
        for key, frame in relations.items():
            frame.createOrReplaceTempView(names[key])
        try:
            yield names
        finally:
            # a classic DataFrame has its plan by now; on Connect the plan still names the view
            if not self.is_connect:
                for name in names.values():
                    self.spark.catalog.dropTempView(name)

    @contextmanager
    def translated(
        self, text: SqlText | None = None, names: Mapping[str, str] | None = None
    ) -> Iterator[None]:
        """Raise Spark's errors as ours."""
        if text is not None:
            self.given.append((text, dict(names or {})))
        with quiet():
            try:
                yield
            except PySparkException as error:
                raise translate(error, text, names, self.given) from None
            except Py4JJavaError as error:
                raise of_java(error) from None

    def _keep(self, frame: DataFrame, names: Mapping[str, str]) -> None:
        """On Connect, keep the views for as long as the DataFrame lives."""
        for name in names.values():
            weakref.finalize(frame, _drop_quietly, self.spark, name)


@contextmanager
def quiet() -> Iterator[None]:
    """PySpark's own logging of query errors turned off; the error itself is raised all the same."""
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _drop_quietly(spark: SparkSession, name: str) -> None:
    """Drop a view at the end of a DataFrame's life; a session that is gone has dropped it already."""
    try:
        spark.catalog.dropTempView(name)
    except Exception:
        return
