"""One system on one case, in a process of its own: ``python -m benchmarks.live.process REQUEST`` in JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import windrow
from benchmarks.live import native
from benchmarks.live.cases import CASES
from examples.nexmark.queries import side_input
from windrow.spark.runtime.local import local_session

__all__ = ["main"]


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Run the request: `system`, `case`, `folders` of each stream, `format`.

    Returns
    -------
    dict
        `seconds` from the declaration of the streams until all rows are read and their changes written;
        `batches`: (number, seconds, rows) of each micro-batch; the `rows` given; `state`: the bytes that
        Windrow keeps, several times a second.
    """
    spark = local_session()
    # a file of several row groups is read by several tasks
    spark.conf.set("spark.sql.files.openCostInBytes", "0")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    columns = CASES[request["case"]].streams.values()
    folders = zip(request["folders"], columns, strict=True)
    frames = [_arriving(spark, folder, schema, request["format"]) for folder, schema in folders]
    with tempfile.TemporaryDirectory() as scratch:
        given, checkpoint = Path(scratch) / "given", Path(scratch) / "checkpoint"
        start = {"windrow": _windrow, "executors": _on_executors, "spark": _native}[request["system"]]
        begun = time.perf_counter()
        query, follow = start(spark, request["case"], frames, given, checkpoint)
        with _Watched(checkpoint / "windrow") as state:
            follow()
        seconds = time.perf_counter() - begun
        progress = [
            (one["batchId"], one["durationMs"]["triggerExecution"] / 1000, one["numInputRows"])
            for one in query.recentProgress
            if one["numInputRows"]
        ]
        query.stop()
        files = list(given.glob("*.parquet"))
        rows = sum(pq.read_metadata(file).num_rows for file in files)
    spark.stop()
    return {"seconds": seconds, "batches": progress, "rows": rows, "state": state.sizes}


def _arriving(spark: SparkSession, folder: str, schema: str, form: str) -> DataFrame:
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).format(form)
    return reader.option("pathGlobFilter", f"*.{form}").load(folder)


def _windrow(
    spark: SparkSession, case: str, frames: list[DataFrame], given: Path, checkpoint: Path
) -> tuple[StreamingQuery, Any]:
    session = windrow.Session(spark)
    asked = CASES[case]
    if "side_input" in asked.windrow:  # as each system declares only what a query reads
        session.register("side_input", side_input())
    for name, frame in zip(asked.streams, frames, strict=True):
        session.stream(name, frame, rowtime=asked.rowtime)
    query = session.sql(asked.windrow).start(given, checkpoint=checkpoint, on_unbounded="ignore")
    return query.streaming, query.process_all_available


def _on_executors(
    spark: SparkSession, case: str, frames: list[DataFrame], given: Path, checkpoint: Path
) -> tuple[StreamingQuery, Any]:
    spark.conf.set("spark.windrow.live.host", "executors")
    spark.conf.set("spark.sql.shuffle.partitions", str(len(os.sched_getaffinity(0))))
    return _windrow(spark, case, frames, given, checkpoint)


def _native(
    spark: SparkSession, case: str, frames: list[DataFrame], given: Path, checkpoint: Path
) -> tuple[StreamingQuery, Any]:
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    spark.conf.set("spark.sql.shuffle.partitions", str(len(os.sched_getaffinity(0))))
    spark.createDataFrame(side_input()).createOrReplaceTempView("side_input")
    rows = native.QUERIES[str(CASES[case].native)](*frames)
    writer = rows.writeStream.option("checkpointLocation", str(checkpoint))
    if case in native.UPDATING:
        updating = writer.outputMode("update").foreachBatch(
            lambda changed, _: changed.write.mode("append").parquet(str(given))
        )
        query = updating.start()
    else:
        query = writer.format("parquet").start(str(given))
    return query, query.processAllAvailable


class _Watched:
    """How many bytes a folder has, several times a second, as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sizes, self._done = folder, [0], threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Watched:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_BETWEEN_LOOKS):
            self.sizes.append(_size(self.folder))


_BETWEEN_LOOKS = 0.2


def _size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):  # which passes over folders that are swept away meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(parent) / name).stat().st_size
    return total


if __name__ == "__main__":
    own_output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever Java writes to standard output is not to be taken for an answer
    own_output.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
    own_output.flush()
