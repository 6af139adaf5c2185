"""Permanent functions of Spark's own catalog."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from windrow.spark.jvm.connect import of_connect
from windrow.spark.jvm.views import SPARK_CATALOG
from windrow.syntax.sqltext import quoted

__all__ = ["is_permanent_function", "is_temporary_function", "stored_body"]

_BODY = "Body:"
_STORED = "Usage: {"
"""The text before what Spark 4.0 shows in place of a body: the function's properties, as JSON."""


def stored_body(spark: SparkSession, name: Sequence[str]) -> str | None:
    """The body of a permanent SQL function, by a name of one to three parts; None for others."""
    if not is_permanent_function(spark, name):
        return None
    full_name = ".".join(map(quoted, name))
    try:
        lines = [row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED {full_name}").collect()]
    except PySparkException:  # it is gone, or may not be read, which the statement itself reports
        return None
    return next((body for line in lines if (body := _shown_body(line)) is not None), None)


def _shown_body(line: str) -> str | None:
    """The body of a function, if a line of DESCRIBE shows it.

    >>> _shown_body("Body: x + 1")
    'x + 1'
    >>> _shown_body('Usage: {"sqlFunction.expression":"x + 1"}')
    'x + 1'
    """
    if line.startswith(_BODY):
        return line.removeprefix(_BODY).strip()
    if not line.startswith(_STORED):
        return None
    known = json.loads(line[len(_STORED) - 1 :])
    body: str | None = known.get("sqlFunction.query", known.get("sqlFunction.expression"))
    return body


def is_permanent_function(spark: SparkSession, name: Sequence[str]) -> bool:
    """Whether a name is that of a permanent function; a function of Spark, or a temporary one, hides it."""
    if not 1 <= len(name) <= 3 or (len(name) == 3 and name[0].lower() != SPARK_CATALOG):
        return False
    if len(name) < 3 and spark.catalog.currentCatalog() != SPARK_CATALOG:
        return False
    if of_connect(spark):
        found = _listed(spark, name)
        return any("." in one for one in found) and (len(name) > 1 or name[0].lower() not in found)
    if len(name) == 1 and (_is_of_spark(spark, name[0].lower()) or is_temporary_function(spark, name[0])):
        return False
    return bool(_functions(spark).isPersistentFunction(_identifier(spark, name[-2:])))


def is_temporary_function(spark: SparkSession, name: str) -> bool:
    """Whether a name is that of a temporary function of this session."""
    if of_connect(spark):
        return name.lower() in _listed(spark, (name,))
    return bool(_functions(spark).isTemporaryFunction(_identifier(spark, (name,)))) and not _is_of_spark(
        spark, name.lower()
    )


def _functions(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().catalog()


def _identifier(spark: SparkSession, name: Sequence[str]) -> Any:
    java: Any = spark._jvm
    database = java.scala.Option.apply(name[0] if len(name) == 2 else None)
    return java.org.apache.spark.sql.catalyst.FunctionIdentifier(name[-1], database)


_of_spark: dict[str, bool] = {}


def _is_of_spark(spark: SparkSession, name: str) -> bool:
    """Whether Spark itself has a function of this name."""
    if name not in _of_spark:
        _of_spark[name] = _is_built_in(spark, name)
    return _of_spark[name]


def _is_built_in(spark: SparkSession, name: str) -> bool:
    analysis: Any = spark._jvm.org.apache.spark.sql.catalyst.analysis  # type: ignore[union-attr]
    identifier = _identifier(spark, (name,))
    registries = (analysis.FunctionRegistry.builtin(), analysis.TableFunctionRegistry.builtin())
    return any(registry.functionExists(identifier) for registry in registries)


def _listed(spark: SparkSession, name: Sequence[str]) -> set[str]:
    """The user's functions with the last part of a name, in lower case; permanent ones have all parts."""
    database = f" FROM {quoted(name[-2])}" if len(name) > 1 else ""
    try:
        rows = spark.sql(f"SHOW USER FUNCTIONS{database} LIKE '{name[-1]}'").collect()
    except PySparkException:  # no such database
        return set()
    return {row[0].lower() for row in rows}
