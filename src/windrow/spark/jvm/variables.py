"""Variables of Spark's session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

__all__ = ["is_case_sensitive", "rename_variable"]


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether Spark tells names apart that differ in case."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def rename_variable(spark: SparkSession, name: str, other: str) -> bool:
    """Give a variable, with its value and its default, another name; False if there is none. Not on Connect.

    Both names are as Spark compares them.
    """
    java: Any = spark._jvm
    variables = spark._jsparkSession.sessionState().catalogManager().tempVariableManager()
    old, new = (java.org.apache.spark.api.python.PythonUtils.toSeq([one]) for one in (name, other))
    found = variables.get(old)
    if found.isEmpty():
        return False
    variables.create(new, found.get(), True)
    variables.remove(old)
    return True
