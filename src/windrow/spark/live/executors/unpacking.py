"""The output of buckets as rows: changes in the requested form, groups, and late rows."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType

from windrow.algebra.time_scale import TimeScale
from windrow.kernels.incremental import Times, changes, netted
from windrow.kernels.zset.relation import AT, DIFF, ENTER, LEAVE, NEVER
from windrow.plan.arrow_types import arrow_type
from windrow.spark.live.executors.as_bytes import from_bytes
from windrow.spark.live.executors.buckets.windowed import EARLIER
from windrow.spark.live.executors.input.packing import DATA, NOTE
from windrow.spark.live.operators.envelopes import enveloped, inserted
from windrow.spark.relations.time_varying_relation import columns_of

__all__ = [
    "FILE",
    "Form",
    "Shape",
    "Unchanged",
    "is_of_rows",
    "late_rows",
    "outputs",
    "tables_of",
    "written",
]


class Form(Protocol):
    """The form of the output."""

    def of(self, rows: pa.Table) -> pa.Table:
        """The output for the rows in packets."""


_ANNOUNCED_NOW = Times(EARLIER + 1, NEVER)


@dataclass(frozen=True)
class Shape:
    """The form of the output.

    Attributes
    ----------
    names
        The columns of the query.
    chosen
        The output columns, in their order.
    scale
        The unit of instants.
    form
        An envelope; ``"ISTREAM"``, ``"DSTREAM"`` or ``"RSTREAM"``; None for the columns, `AT` and `DIFF`.
    is_net
        Whether no row enters at the instant at which an equal one leaves.
    """

    names: tuple[str, ...]
    chosen: tuple[str, ...]
    scale: TimeScale
    form: str | None
    is_net: bool

    def of(self, rows: pa.Table) -> pa.Table:
        """The output for rows with `ENTER` and `LEAVE`."""
        found = changes(rows, _ANNOUNCED_NOW, _STREAMS.get(self.form or "") if self.is_net else None)
        columns = [*(found.column(name) for name in self.chosen), found.column(AT), found.column(DIFF)]
        found = pa.Table.from_arrays(columns, names=[*columns_of(self.names), AT, DIFF])
        found = found if self.is_net else netted(found)
        if self.form is None:
            return found
        if self.form in _STREAMS:
            return inserted(found, self.names, self.scale, _STREAMS[self.form])
        return enveloped(found, self.names, self.scale, self.form)

    def schema(self, result: StructType) -> StructType:
        """The names and types of the output, for a query with these columns."""
        kinds = {name: arrow_type(field.dataType) for name, field in zip(self.chosen, result, strict=True)}
        times = [(name, pa.int64()) for name in (ENTER, LEAVE)]
        made = self.of(pa.schema([*kinds.items(), *times]).empty_table())
        first, schema = _FIRST.get(self.form or "", 0), StructType()
        for at, field in enumerate(made.schema):
            is_own = first <= at < first + len(result)
            kind = result[at - first].dataType if is_own else from_arrow_type(field.type, True)
            schema = schema.add(field.name, kind)
        return schema


@dataclass(frozen=True)
class Unchanged:
    """Rows that are output unchanged."""

    def of(self, rows: pa.Table) -> pa.Table:
        """The same rows."""
        return rows


_STREAMS = {"ISTREAM": 1, "DSTREAM": -1, "RSTREAM": 1}
"""The sign of the changes that are a stream's rows: those that enter or those that leave."""

FILE = "file"
"""The column with the name of a written file."""

_FIRST = {"op": 2, **dict.fromkeys(_STREAMS, 1)}
"""The position of the query's first column in the output, if it is not the first."""


def outputs(form: Form, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The output for all rows of a task, under internal names."""
    tables = list(_of_kind("rows", batches))
    if tables:
        made = form.of(pa.concat_tables(tables))
        yield from _numbered(made).to_batches()


def written(form: Form, folder: Path, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the output for all rows of a task into a file of a folder; the name of the file."""
    tables = list(_of_kind("rows", batches))
    made = form.of(pa.concat_tables(tables)) if tables else None
    if made is not None and made.num_rows:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{uuid.uuid4().hex}.parquet"  # other tries of the task may write too
        pq.write_table(made, folder / name)
        yield pa.RecordBatch.from_pydict({FILE: [name]})


def is_of_rows(note: str) -> bool:
    """Whether a packet has output rows."""
    return bool(json.loads(note)["kind"] == "rows")


def late_rows(place: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The late rows of a stream in packets, under generated names."""
    for table in _of_kind("late", batches, place):
        yield from _numbered(table).to_batches()


def tables_of(kind: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in packets of a kind."""
    for table in _of_kind(kind, batches):
        yield from table.to_batches()


def _of_kind(kind: str, batches: Iterable[pa.RecordBatch], stream: int | None = None) -> Iterator[pa.Table]:
    for batch in batches:
        for note, data in zip(batch.column(NOTE).to_pylist(), batch.column(DATA).to_pylist(), strict=True):
            pattern_schema = json.loads(note)
            if pattern_schema["kind"] == kind and pattern_schema.get("stream") == stream:
                yield from_bytes(data)


def _numbered(table: pa.Table) -> pa.Table:
    return table.rename_columns([f"o{at}" for at in range(table.num_columns)])
