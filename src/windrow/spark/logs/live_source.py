"""The source of a live stream: its streaming DataFrame, and the columns of its entries."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from windrow.plan.arrow_types import arrow_type, travelling_type
from windrow.spark.logs.log_source import NUMBER
from windrow.spark.scan.file_scan import is_simple
from windrow.streams import NamedStream, Ordering, Position
from windrow.streams.entries import GENERATION, KIND, PATTERN, SEQUENCE

__all__ = [
    "BOUND",
    "LOGGED",
    "MICRO_BATCH",
    "NUMBER",
    "PLACE",
    "PRODUCER",
    "PTIME",
    "FileColumns",
    "LiveSource",
]

PRODUCER, PTIME, BOUND = "__producer", "__ptime", "__bound"
LOGGED = (KIND, GENERATION, SEQUENCE, NUMBER, PATTERN)
"""Further columns of an entry of a named stream: its kind, lease and number, file, and punctuation."""
MICRO_BATCH, PLACE = "__step", "__place"
"""The columns that order the rows of a stream by arrival: the micro-batch, and the position in it."""


@dataclass(frozen=True)
class FileColumns:
    """The columns of the files of a stream.

    Attributes
    ----------
    format
        ``"parquet"``, or ``"csv"`` without and ``"csv, header"`` with a line of names.
    schema
        The schema of the reader.
    visible
        The columns of the stream.
    rowtime, producer, bound
        The columns with these; None without.
    """

    format: str
    schema: StructType
    visible: tuple[str, ...]
    rowtime: str
    producer: str | None
    bound: str | None

    def kind(self, column: str) -> pa.DataType | None:
        """The type of a column in Arrow; None if Arrow may read other values than Spark."""
        kind = self.schema[column].dataType
        found = arrow_type(kind) if travelling_type(kind) == kind else None
        return found if found is not None and is_simple(found) else None

    @property
    def is_plain(self) -> bool:
        """Whether rowtimes, bounds and producers are unchanged values of columns."""
        of_time = [self.kind(column) for column in (self.rowtime, self.bound) if column is not None]
        if not all(kind is not None and _has_ticks(kind) for kind in of_time):
            return False
        return self.producer is None or self.schema[self.producer].dataType.simpleString() == "string"


@dataclass(frozen=True)
class LiveSource:
    """The source of a live stream.

    Attributes
    ----------
    frame
        A streaming DataFrame: the stream's columns, `ROWTIME`, `PRODUCER` (string), `PTIME` (microseconds),
        and `BOUND`, the producer's bound for later rows, in ticks; an entry without a rowtime is no row.
    columns
        The expressions of these columns over those of the source.
    ordering
        The watermark strategy of producers: a lag, order, or bounds alone.
    idle
        The microseconds without an entry after which a producer is idle; None for never.
    named
        The named stream, whose entries also have the columns of `LOGGED`; None for other streams.
    on_late
        What happens to late rows in every query: ``"keep"`` or ``"fail"``.
    declared
        Which of `PRODUCER`, `BOUND` and `PATTERN` the source has. Without them there is one producer, with
        the empty name, and there are no bounds and no punctuations.
    files
        The columns of the files, if the stream consists of unchanged columns of Parquet or CSV files.
    """

    frame: DataFrame
    columns: tuple[Column, ...]
    ordering: Ordering
    idle: int | None = None
    named: NamedStream | None = None
    on_late: str = "keep"
    declared: frozenset[str] = frozenset({PRODUCER, BOUND})
    files: FileColumns | None = None

    @property
    def has_patterns(self) -> bool:
        """Whether entries may have punctuations."""
        return bool(self.identity) or PATTERN in self.declared

    @property
    def identity(self) -> str:
        """The identity of a named stream; else empty."""
        return "" if self.named is None else self.named.definition.identity

    @property
    def domain(self) -> tuple[str, ...]:
        """The patterns that no row of a named stream ever matches."""
        return () if self.named is None else self.named.definition.domain

    @property
    def start(self) -> Position:
        """The position of a new reader."""
        return Position("") if self.named is None else self.named.start


def _has_ticks(kind: pa.DataType) -> bool:
    is_time = pa.types.is_timestamp(kind) and kind.unit == "us"
    return bool(is_time or pa.types.is_date32(kind) or pa.types.is_signed_integer(kind))
