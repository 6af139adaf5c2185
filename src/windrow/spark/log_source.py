"""The log of a named stream as a source of Spark's: its entries, of which the offsets are file numbers.

Workers import this module, so it imports little.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from windrow.streams import NamedStream

__all__ = ["FORMAT", "NUMBER", "LogSource", "log_schema"]

FORMAT = "windrow"
"""What the source is called."""

NUMBER = "__number"
"""The column of the number of an entry's file."""

_FOLDER = "folder"
_FILES_AT_ONCE = 10_000
_FILES_OF_A_TASK = 500
_BETWEEN_LOOKS = 1.0  # seconds


class LogSource(DataSource):
    """The source ``windrow``: the named stream in a ``folder``."""

    @classmethod
    def name(cls) -> str:
        """What the source is called."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of the log and `NUMBER`."""
        return log_schema(NamedStream.open(self.options[_FOLDER]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's
        """Reads the log as it grows."""
        return _Reader(NamedStream.open(self.options[_FOLDER]))


def log_schema(stream: NamedStream) -> StructType:
    """The columns of a stream's log, as Spark has them, and `NUMBER`."""
    return from_arrow_schema(_stored(stream), prefer_timestamp_ntz=True)


def _stored(stream: NamedStream) -> pa.Schema:
    return stream.definition.stored.append(pa.field(NUMBER, pa.int64(), nullable=False))


@dataclass
class _Files(InputPartition):
    """The files after one number, up to another."""

    after: int
    last: int


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, stream: NamedStream) -> None:
        self.stream = stream
        self.until: int | None = None
        self.looked = 0.0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        return {"number": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxFiles(_FILES_AT_ONCE)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.until = self.stream.log.last()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        after = int(start["number"])
        last = self.until
        if last is None:
            self._expire()
            last = self.stream.log.last(after)
        if not isinstance(limit, ReadAllAvailable):
            most = limit.max_files if isinstance(limit, ReadMaxFiles) else _FILES_AT_ONCE
            last = min(last, after + most)
        return {"number": max(after, last)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        last = int(end["number"])
        firsts = range(int(start["number"]), last, _FILES_OF_A_TASK)
        return [_Files(after, min(after + _FILES_OF_A_TASK, last)) for after in firsts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Files)
        schema = _stored(self.stream)
        for number in range(partition.after + 1, partition.last + 1):
            entries = self.stream.log.read(number)
            numbered = [*entries.columns, pa.repeat(pa.scalar(number, pa.int64()), entries.num_rows)]
            yield from pa.table(numbered, schema=schema).to_batches()

    def _expire(self) -> None:
        """Let producers that have died hold nothing back: where all have, nobody else would."""
        if time.monotonic() - self.looked >= _BETWEEN_LOOKS:
            self.stream.expire()
            self.looked = time.monotonic()
