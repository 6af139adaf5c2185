"""Which streams' files tasks read themselves, and copies of those that only Spark reads as they are meant."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windrow.spark.errors import local_path
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.bridge import BridgeError
from windrow.spark.jvm.plans import hidden_columns, without_views
from windrow.spark.jvm.streams import are_local, root_of, running_batch
from windrow.spark.live.executors.bucket_task import BucketTask, TaskStream
from windrow.spark.live.executors.input.marked_rows import EVERY, ROW, MarkedFiles
from windrow.spark.live.input.entry_columns import STREAM, in_one, inside, ticks_among
from windrow.spark.live.input.file_order import origin
from windrow.spark.live.sinks.sink import uri, write_one
from windrow.spark.logs.live_source import PTIME
from windrow.spark.logs.session_streams import Stream
from windrow.spark.scan.file_scan import may_read

__all__ = ["MarkedSources"]

_METADATA, _ROW_INDEX = "_metadata", "row_index"
_GLOBS = "__globPaths__"
"""Spark's option by which names of files are no patterns, as for the files of a stream."""


class MarkedSources:
    """The streams of a query whose files tasks read.

    Parameters
    ----------
    streams
        The streams of the query, by number and name.
    folder
        The folder for copies of files.
    """

    def __init__(self, streams: Sequence[tuple[int, str, Stream]], folder: Path) -> None:
        self._streams, self._folder = streams, folder
        self._marks = False

    def marking(
        self, gateway: Gateway, entries: DataFrame, task: BucketTask, ticks: DataFrame | None, most: int
    ) -> tuple[DataFrame, BucketTask]:
        """Markers in place of entries, in `most` tasks at most, and the description for tasks; the arguments
        if Spark must read entries.
        """
        self._marks = False
        known = list[MarkedFiles]()
        for (_, _, stream), read in zip(self._streams, task.streams, strict=True):
            files = self._of_stream(stream, task, read) if may_read(gateway) and task.origin else None
            if files is None:
                return entries, task
            known.append(files)
        self._marks = True
        parts = [_markers(at, stream) for at, _, stream in self._streams]
        wanted = [*task.origin, STREAM, ROW, *(one.ptime for one in task.streams)]
        if ticks is not None:
            parts.append(ticks_among(ticks))
            assert task.tick is not None
            wanted.append(task.tick)
        streams = tuple(replace(one, files=of) for one, of in zip(task.streams, known, strict=True))
        return in_one(parts).select(*wanted).coalesce(most), replace(task, streams=streams)

    def copy_others(self, spark: SparkSession) -> None:
        """Let Spark copy the files of the running micro-batch that Arrow may read differently."""
        if not self._marks:
            return
        if self._folder.exists():
            shutil.rmtree(self._folder)
        self._folder.mkdir(parents=True)
        try:
            batch = running_batch(spark)
            sources = [] if batch is None else batch.files_of(len(self._streams))
        except BridgeError:  # not there in all versions of Spark: a task reports such a file
            return
        for (at, _, stream), uris in zip(self._streams, sources, strict=False):
            assert stream.live is not None
            assert stream.live.files is not None
            files, root = self._files(at, stream), root_of(stream.live.frame)
            reader = spark.read.schema(stream.live.files.schema).option(_GLOBS, "false")
            reader = reader if root is None else reader.option("basePath", root)
            for path in dict.fromkeys(map(local_path, uris)):
                if files.footer(path) is None:
                    rows = reader.parquet(uri(Path(path))).select("*", _METADATA)
                    in_order = rows.orderBy(F.col(_METADATA)[_ROW_INDEX]).drop(_METADATA)
                    write_one(in_order, self._folder, files.copy_of(path).stem, "parquet")

    def _files(self, at: int, stream: Stream) -> MarkedFiles:
        """The files of a stream, of which no columns are read."""
        assert stream.live is not None
        files, root = stream.live.files, root_of(stream.live.frame)
        assert files is not None
        kinds = {name: kind for name in files.schema.names if (kind := files.kind(name)) is not None}
        return MarkedFiles(
            pa.schema([*kinds.items()]),
            {},
            {},
            None,
            self._folder,
            at,
            "" if root is None else local_path(root),
        )

    def _of_stream(self, stream: Stream, task: BucketTask, read: TaskStream) -> MarkedFiles | None:
        """The files of a stream with the columns that a task reads; None if Spark must read its entries."""
        live = stream.live
        files = None if live is None else live.files
        if live is None or files is None or files.format != "parquet" or not files.is_plain:
            return None
        has_rows = f"{_ROW_INDEX}:" in hidden_columns(live.frame).get(_METADATA, "")
        if not has_rows or not are_local(live.frame):
            return None
        marked, place = self._files(read.number, stream), task.streams.index(read)
        sides = [side.columns.values() for side in task.sides if side.stream == place]
        wanted = {*read.columns.values(), *chain(*sides)}
        pairs = ((read.rowtime, files.rowtime), (read.bound, files.bound))
        ticks = {name: own for name, own in pairs if name is not None and own is not None}
        producer = None if read.producer is None else (read.producer, files.producer or "")
        columns = {name: own for own in stream.columns if (name := inside(read.number, own)) in wanted}
        names = {*columns.values(), *ticks.values(), *([] if producer is None else [producer[1]])}
        is_known = wanted <= {*columns, *ticks, read.producer} and names <= {*marked.kinds.names}
        return replace(marked, columns=columns, ticks=ticks, producer=producer) if is_known else None


def _markers(at: int, stream: Stream) -> DataFrame:
    assert stream.live is not None
    frame = without_views(stream.live.frame)
    row = frame.metadataColumn(_METADATA)[_ROW_INDEX]
    chosen = frame.where(row % EVERY == 0)
    ptime = F.col(PTIME).alias(inside(at, PTIME))
    return chosen.select(F.lit(at).alias(STREAM), ptime, *origin(frame), row.alias(ROW))
