"""Spark's own part of a checkpoint: the offsets of each micro-batch, and which of them are committed."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from windrow.spark.jvm.process import class_is_there
from windrow.spark.jvm.streams import await_sources
from windrow.spark.runtime.settings import setting

__all__ = ["clear_unfinished", "started"]

_SETTING = "spark.sql.streaming.checkpointFileManagerClass"
_PACKAGES = (
    "org.apache.spark.sql.execution.streaming.checkpointing",
    "org.apache.spark.sql.execution.streaming",  # until Spark 4.0
)
_MANAGER = "FileSystemBasedCheckpointFileManager"


def started(writer: DataStreamWriter, spark: SparkSession, *, reads_files: bool) -> StreamingQuery:
    """Start a query that writes its log without other programs.

    Without Hadoop's native library, as on most workstations, Spark's default file manager runs ``stat`` and
    ``readlink`` for each file of the log, which costs a tenth of a second and more in each micro-batch.
    Spark's other file manager renames the files itself. That is as safe in a local folder whose log no other
    query writes. A setting of the session takes precedence. With Spark Connect nothing is changed.

    Parameters
    ----------
    reads_files
        Whether the query reads files only. A file source has a log too, which the query creates shortly after
        its start; this function waits for it.
    """
    manager = None if spark.conf.get(_SETTING, None) is not None else _manager(spark)
    if manager is None:
        return writer.start()
    with setting(spark, _SETTING, manager):
        query = writer.start()
        if reads_files:
            await_sources(query)
    return query


def _manager(spark: SparkSession) -> str | None:
    names = [f"{package}.{_MANAGER}" for package in _PACKAGES]
    return next((name for name in names if class_is_there(spark, name)), None)


def clear_unfinished(checkpoint: Path) -> None:
    """Delete temporary files of a killed process: Spark cannot start if one is the first offset."""
    for part in ("offsets", "commits"):
        for pattern in (".*.tmp", "..*.tmp.crc"):
            for left in (checkpoint / part).glob(pattern):
                left.unlink(missing_ok=True)
