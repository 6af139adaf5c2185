"""The last emitted rows of a live query, read from its target."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Around, Files, Sink
from windrow.streams import EntryKind, NamedStream
from windrow.streams.entries import KIND

__all__ = ["latest_of"]

_LOOKED_AT = 20
"""The greatest number of files that are opened."""


def latest_of(sink: Sink | IntoStream, count: int) -> pa.Table | None:
    """The last `count` rows of a folder or a named stream; None for other sinks.

    Those of a named stream include rows of other producers.
    """
    if isinstance(sink, Around):
        return latest_of(sink.inner, count)
    if isinstance(sink, IntoStream):
        return _of_stream(sink.stream, count)
    if isinstance(sink, Files):
        return _of_folder(sink.folder, sink.format, count)
    return None


def _of_stream(stream: NamedStream, count: int) -> pa.Table | None:
    last = stream.log.last()
    names = list(stream.definition.columns.names)
    found: list[pa.Table] = []
    for number in range(last, max(last - _LOOKED_AT, stream.log.base), -1):
        entries = stream.log.read(number)
        rows = entries.filter(pc.equal(entries.column(KIND), int(EntryKind.ROW))).select(names)
        found.insert(0, rows)
        if sum(table.num_rows for table in found) >= count:
            break
    return _tail(found, count)


def _of_folder(folder: Path, format: str, count: int) -> pa.Table | None:  # noqa: A002 - as Spark's
    found: list[pa.Table] = []
    for path in islice(sorted(folder.glob(f"part-*.{format}"), reverse=True), _LOOKED_AT):
        found.insert(0, _read(path, format))
        if sum(table.num_rows for table in found) >= count:
            break
    return _tail(found, count)


def _read(path: Path, format: str) -> pa.Table:  # noqa: A002 - as Spark's
    if format == "json":
        return pyarrow.json.read_json(path)
    return pyarrow.csv.read_csv(path) if format == "csv" else pq.read_table(path)


def _tail(tables: list[pa.Table], count: int) -> pa.Table | None:
    if not tables:
        return None
    whole = pa.concat_tables(tables, promote_options="permissive")
    return whole.slice(max(whole.num_rows - count, 0))
