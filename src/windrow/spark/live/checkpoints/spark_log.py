"""Spark's own part of a checkpoint: its log of what each micro-batch has read, and which of them are done."""

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
    """Start a query that writes its log without the help of other programs.

    Where Hadoop has no native library, as it seldom has on a machine of one's own, Spark's way for any file
    system has the shell's ``stat`` and ``readlink`` look at each file of the log: a tenth of a second and
    more in each micro-batch. The other way that Spark has, of the same files, renames them itself, which is
    as safe in a folder of this machine of which no other query writes the log. What the session says of it
    holds; on Spark Connect nothing is changed.

    Parameters
    ----------
    reads_files
        Whether it may read files, and nothing of which Spark starts a process of its own: files have a log,
        too, which the query makes a moment after it is started, and that is waited for.
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
    """Delete what a process that was killed was writing: Spark never starts where it is the first offset."""
    for part in ("offsets", "commits"):
        for pattern in (".*.tmp", "..*.tmp.crc"):
            for left in (checkpoint / part).glob(pattern):
                left.unlink(missing_ok=True)
