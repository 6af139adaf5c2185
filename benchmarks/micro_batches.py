"""How long each micro-batch of a live query takes, by Spark's clock."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

import windrow

__all__ = ["seconds_of"]


def seconds_of(
    spark: SparkSession, folder: Path, names: Sequence[str], columns: str, query: str
) -> tuple[list[float], int]:
    """The seconds of each micro-batch with rows, from start to end of its trigger; and the rows emitted.

    Parameters
    ----------
    folder
        Has a folder of Parquet files for each stream; each file is a micro-batch.
    names, columns
        The streams, and the columns of all of them; their rowtime is ``ts``.
    """
    session = windrow.Session(spark)
    for name in names:
        files = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
        session.stream(name, files, rowtime="ts", lag="0 seconds")
    with tempfile.TemporaryDirectory() as out:
        live = session.sql(query).start(
            Path(out) / "given", checkpoint=Path(out) / "checkpoint", on_unbounded="ignore"
        )
        live.process_all_available()
        (running,) = spark.streams.active
        took = [
            one.durationMs["triggerExecution"] / 1000 for one in running.recentProgress if one.numInputRows
        ]
        emitted = int(live.progress["rows_emitted"])
        live.stop()
    return took, emitted
