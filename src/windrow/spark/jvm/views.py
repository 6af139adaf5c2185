"""Permanent views of Spark's own catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from windrow.spark.jvm.connect import of_connect
from windrow.syntax.sqltext import quoted

__all__ = ["SPARK_CATALOG", "StoredView", "stored_view"]

SPARK_CATALOG = "spark_catalog"
"""Spark's own catalog, the only one whose views have properties that every session can read."""


@dataclass(frozen=True)
class StoredView:
    """A permanent view: its text for Spark, and its properties."""

    body: str
    properties: dict[str, str]


def stored_view(spark: SparkSession, name: Sequence[str]) -> StoredView | None:
    """The permanent view with a name of one to three parts; None if the name is something else."""
    if not 1 <= len(name) <= 3 or (len(name) == 3 and name[0].lower() != SPARK_CATALOG):
        return None
    if len(name) < 3 and spark.catalog.currentCatalog() != SPARK_CATALOG:
        return None
    return _of_connect(spark, name) if of_connect(spark) else _of_java(spark, name[-2:])


def _of_java(spark: SparkSession, name: Sequence[str]) -> StoredView | None:
    java: Any = spark._jvm
    catalog = spark._jsparkSession.sessionState().catalog()
    database = java.scala.Option.apply(name[0] if len(name) == 2 else None)
    found = java.org.apache.spark.sql.catalyst.TableIdentifier(name[-1], database)
    if catalog.isTempView(found) or not catalog.tableExists(found):
        return None
    table = catalog.getTableMetadata(found)
    if table.tableType().name() != "VIEW":
        return None
    properties = java.scala.jdk.javaapi.CollectionConverters.asJava(table.properties())
    return StoredView(table.viewText().get(), dict(properties))


def _of_connect(spark: SparkSession, name: Sequence[str]) -> StoredView | None:
    full_name = ".".join(map(quoted, name))
    try:
        if spark.catalog.getTable(full_name).tableType != "VIEW":
            return None
    except PySparkException:  # nothing has the name, which the statement itself reports
        return None
    listed = spark.sql(f"SHOW TBLPROPERTIES {full_name}").collect()
    described = {
        row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE EXTENDED {full_name}").collect()
    }
    return StoredView(described.get("View Text", ""), {row["key"]: row["value"] for row in listed})
