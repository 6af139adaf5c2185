"""Sources of streams, and the running micro-batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from windrow.spark.jvm.bridge import class_of, items_of
from windrow.spark.jvm.connect import of_connect
from windrow.spark.jvm.files import options_of

__all__ = [
    "RunningBatch",
    "RunningScan",
    "StreamedFiles",
    "are_local",
    "await_sources",
    "root_of",
    "running_batch",
    "streamed_files",
]

_PATIENCE = 10_000  # milliseconds; Spark itself waits as long for a process that it starts


@dataclass(frozen=True)
class StreamedFiles:
    """A source of files: their format, and its options by names in lower case."""

    format: str
    options: dict[str, str]


def streamed_files(frame: DataFrame) -> StreamedFiles | None:
    """The source of a streaming DataFrame without further operations; None for any other, and on Connect."""
    if of_connect(frame):
        return None
    plan = frame._jdf.queryExecution().analyzed()
    if plan.nodeName() != "StreamingRelation":
        return None
    source = plan.dataSource()
    return StreamedFiles(str(source.className()), options_of(source))


def are_local(frame: DataFrame) -> bool:
    """Whether the sources of a streaming DataFrame read files of this machine; not on Connect."""
    if of_connect(frame):
        return False
    default = str(frame.sparkSession._jsparkSession.sessionState().newHadoopConf().get("fs.defaultFS"))
    leaves = items_of(frame._jdf.queryExecution().analyzed().collectLeaves())
    sources = [leaf.dataSource() for leaf in leaves if leaf.nodeName() == "StreamingRelation"]
    paths = [options_of(source).get("path", "") for source in sources]
    schemes = [urlsplit(path).scheme or urlsplit(default).scheme for path in paths]
    return len(sources) == len(leaves) and all(scheme == "file" for scheme in schemes)


def root_of(frame: DataFrame) -> str | None:
    """The folder of a stream of files, below which directories may have values; None for a pattern."""
    leaves = items_of(frame._jdf.queryExecution().analyzed().collectLeaves())
    path = str(options_of(leaves[0].dataSource()).get("path", ""))
    return None if not path or set(path) & set("{}[]*?\\") else path


def await_sources(query: StreamingQuery) -> None:
    """Wait until the sources of a started query exist; not on Connect."""
    if not of_connect(query):
        with suppress(PySparkException):  # the query reports its failure itself
            query._jsq.streamingQuery().awaitInitialization(_PATIENCE)


@dataclass(frozen=True, eq=False)
class RunningScan:
    """The operator of a micro-batch that reads files."""

    _scan: Any

    @property
    def has_values(self) -> bool:
        """Whether it takes values of columns from the names of directories."""
        return bool(self._scan.relation().partitionSchema().size())

    @property
    def number_of_files(self) -> int:
        """How many files it reads."""
        return int(self._scan.selectedPartitions().totalNumberOfFiles())

    def files(self) -> Iterator[tuple[int, str, int, int]]:
        """The parts that it reads: the file's modification time, its URI, first byte, and number of bytes."""
        for partition in items_of(self._scan.inputRDD().filePartitions()):
            for file in partition.files():
                yield file.modificationTime(), file.urlEncodedPath(), file.start(), file.length()

    def count(self, rows: int) -> None:
        """Add rows to Spark's progress that Spark has not read."""
        self._scan.metrics().apply("numOutputRows").add(rows)


@dataclass(frozen=True, eq=False)
class RunningBatch:
    """A micro-batch that Spark runs. Some versions lack the methods it calls: :class:`BridgeError`."""

    _execution: Any

    @property
    def now(self) -> int:
        """Its time, in microseconds."""
        return int(self._execution.offsetSeqMetadata().batchTimestampMs()) * 1000

    @property
    def sources(self) -> list[str]:
        """The text in its plan for each source."""
        return [class_of(leaf) for leaf in items_of(self._execution.analyzed().collectLeaves())]

    def files_of(self, count: int) -> list[list[str]]:
        """The URIs of the files that each of the first sources reads, so many as `count`."""
        rest = iter(self.scans)
        found = [next(rest, None) if source == "LogicalRelation" else None for source in self.sources[:count]]
        return [[] if scan is None else [uri for _, uri, _, _ in scan.files()] for scan in found]

    @property
    def scans(self) -> list[RunningScan]:
        """The operators that read files."""
        leaves = items_of(self._execution.executedPlan().collectLeaves())
        return [RunningScan(leaf) for leaf in leaves if class_of(leaf) == "FileSourceScanExec"]


def running_batch(spark: SparkSession) -> RunningBatch | None:
    """The micro-batch for which Spark calls this thread; None if there is none, and on Connect.

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
