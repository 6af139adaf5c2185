"""Services of Java besides Spark's work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from windrow.spark.jvm.connect import of_connect

__all__ = ["class_is_there", "delete_at_end", "keep_at_end"]


def class_is_there(spark: SparkSession, name: str) -> bool:
    """Whether Spark has a class with this name; False on Connect, which does not show it."""
    if of_connect(spark):
        return False
    java: Any = spark._jvm
    return bool(java.org.apache.spark.util.Utils.classIsLoadable(name))


def delete_at_end(spark: SparkSession, folder: Path) -> None:
    """Make Java delete a folder when it ends; not on Connect, where it may be on another machine."""
    if not of_connect(spark):
        java: Any = spark._jvm
        java.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(
            java.java.io.File(str(folder))
        )


def keep_at_end(spark: SparkSession, folder: Path) -> None:
    """Undo :func:`delete_at_end`."""
    if not of_connect(spark):
        java: Any = spark._jvm
        java.org.apache.spark.util.ShutdownHookManager.removeShutdownDeleteDir(java.java.io.File(str(folder)))
