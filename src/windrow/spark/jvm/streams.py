"""Sources of streams, and the micro-batch that is run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from windrow.spark.jvm.bridge import class_of, items_of
from windrow.spark.jvm.connect import of_connect
from windrow.spark.jvm.files import options_of

__all__ = ["RunningBatch", "RunningScan", "StreamedFiles", "await_sources", "running_batch", "streamed_files"]

_PATIENCE = 10_000  # milliseconds; Spark itself waits as long for a process that it starts


@dataclass(frozen=True)
class StreamedFiles:
    """A source of files: their format, the names of its options, and whether directories say values."""

    format: str
    options: set[str]
    has_directories: bool


def streamed_files(frame: DataFrame) -> StreamedFiles | None:
    """The source of a streaming DataFrame with which nothing is done; None of any other, and on Connect."""
    if of_connect(frame):
        return None
    plan = frame._jdf.queryExecution().analyzed()
    if plan.nodeName() != "StreamingRelation":
        return None
    source = plan.dataSource()
    return StreamedFiles(str(source.className()), options_of(source), bool(source.partitionColumns().size()))


def await_sources(query: StreamingQuery) -> None:
    """Wait until the sources of a query that has been started are there; at once on Connect."""
    if not of_connect(query):
        with suppress(PySparkException):  # the query reports its failure itself
            query._jsq.streamingQuery().awaitInitialization(_PATIENCE)


@dataclass(frozen=True, eq=False)
class RunningScan:
    """The operator of a micro-batch that reads files."""

    _scan: Any

    @property
    def number_of_files(self) -> int:
        """How many it reads."""
        return int(self._scan.selectedPartitions().totalNumberOfFiles())

    def files(self) -> Iterator[tuple[int, str, int, int]]:
        """The parts that it reads: when the file was changed, its URI, first byte, number of bytes."""
        for partition in items_of(self._scan.inputRDD().filePartitions()):
            for file in partition.files():
                yield file.modificationTime(), file.urlEncodedPath(), file.start(), file.length()

    def count(self, rows: int) -> None:
        """Let Spark's progress have rows that were not read by Spark."""
        self._scan.metrics().apply("numOutputRows").add(rows)


@dataclass(frozen=True, eq=False)
class RunningBatch:
    """A micro-batch that Spark runs. Not all versions have what is called: :class:`BridgeError`."""

    _execution: Any

    @property
    def now(self) -> int:
        """Its time, in microseconds."""
        return int(self._execution.offsetSeqMetadata().batchTimestampMs()) * 1000

    @property
    def sources(self) -> list[str]:
        """What stands in its plan for each source."""
        return [class_of(leaf) for leaf in items_of(self._execution.analyzed().collectLeaves())]

    @property
    def scans(self) -> list[RunningScan]:
        """The operators that read files."""
        leaves = items_of(self._execution.executedPlan().collectLeaves())
        return [RunningScan(leaf) for leaf in leaves if class_of(leaf) == "FileSourceScanExec"]


def running_batch(spark: SparkSession) -> RunningBatch | None:
    """The micro-batch that Spark calls for in this thread; None where it does not, and on Connect.

    Raises
    ------
    BridgeError
        This version of Spark does not have it.
    """
    if of_connect(spark):
        return None
    query = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    running = None if query is None else spark._jsparkSession.streams().get(query)
    return None if running is None else RunningBatch(running.streamingQuery().lastExecution())
