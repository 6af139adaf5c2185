"""What a live stream is: what arrives at it, and the columns that say so of its entries."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from windrow.spark.arrow import arrow_type, travelling_type
from windrow.spark.logs.log_source import NUMBER
from windrow.spark.scan.file_scan import is_simple
from windrow.streams import Ordering, Position, WatermarkState
from windrow.streams.entries import GENERATION, KIND, PATTERN, SEQUENCE

__all__ = [
    "BOUND",
    "LOGGED",
    "NUMBER",
    "PLACE",
    "PRODUCER",
    "PTIME",
    "STEP",
    "FileColumns",
    "LiveSource",
]

PRODUCER, PTIME, BOUND = "__producer", "__ptime", "__bound"
LOGGED = (KIND, GENERATION, SEQUENCE, NUMBER, PATTERN)
"""What an entry of a named stream says besides: its kind, lease and number, the file that it is in, and what
it promises."""
STEP, PLACE = "__step", "__place"
"""Columns that order the rows of a stream as they came: the micro-batch, and the place in it."""


@dataclass(frozen=True)
class FileColumns:
    """The columns of files that a stream is made of.

    Attributes
    ----------
    schema
        As the reader has them.
    shown
        Those that are the stream's.
    rowtime, producer, bound
        Those that say so of an entry; None where there is none.
    """

    schema: StructType
    shown: tuple[str, ...]
    rowtime: str
    producer: str | None
    bound: str | None

    def kind(self, column: str) -> pa.DataType | None:
        """The type of a column in memory; None where the file may say another thing than Spark does."""
        kind = self.schema[column].dataType
        found = arrow_type(kind) if travelling_type(kind) == kind else None
        return found if found is not None and is_simple(found) else None

    @property
    def is_plain(self) -> bool:
        """Whether rowtimes, bounds and producers are values of columns as they are."""
        of_time = [self.kind(column) for column in (self.rowtime, self.bound) if column is not None]
        if not all(kind is not None and _has_ticks(kind) for kind in of_time):
            return False
        return self.producer is None or self.schema[self.producer].dataType.simpleString() == "string"


@dataclass(frozen=True)
class LiveSource:
    """What arrives at a live stream.

    Attributes
    ----------
    frame
        A streaming DataFrame: the stream's columns, `ROWTIME`, `PRODUCER` (string), `PTIME` (microseconds),
        and `BOUND`: a promise, in ticks, about the producer's later rows; an entry without a rowtime is no
        row.
    columns
        How they were made of the columns of the source.
    ordering
        What a row says about the later ones of its producer.
    idle
        After so many microseconds without an entry a producer is idle; None for never.
    identity
        That of the named stream, of which all entries of the log arrive; they then have the columns of
        `LOGGED` too.
    domain
        Of a named stream: the patterns that none of its rows ever matches.
    on_late
        What becomes of late rows in every query: ``"keep"`` or ``"fail"``.
    given
        Those of `PRODUCER`, `BOUND` and `PATTERN` that are not the same in all rows: without them there is
        one producer, with the empty name, and there are no bounds, and no patterns.
    files
        Of what arrives in Parquet files, and is nothing but their columns: which.
    """

    frame: DataFrame
    columns: tuple[Column, ...]
    ordering: Ordering
    idle: int | None = None
    identity: str = ""
    domain: tuple[str, ...] = ()
    on_late: str = "keep"
    given: frozenset[str] = frozenset({PRODUCER, BOUND})
    files: FileColumns | None = None

    @property
    def has_patterns(self) -> bool:
        """Whether entries may promise patterns."""
        return bool(self.identity) or PATTERN in self.given

    @property
    def start(self) -> Position:
        """Where reading begins."""
        return Position(self.identity, watermark=WatermarkState(shared=self.domain))


def _has_ticks(kind: pa.DataType) -> bool:
    is_time = pa.types.is_timestamp(kind) and kind.unit == "us"
    return bool(is_time or pa.types.is_date32(kind) or pa.types.is_signed_integer(kind))
