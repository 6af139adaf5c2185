"""Named streams in a session: the rows recorded so far, and the source of arriving entries."""

from __future__ import annotations

import atexit
import contextlib
import uuid
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from windrow.algebra.time_scale import TimeScale
from windrow.errors import WindrowError
from windrow.spark.collected import frame_of_collected
from windrow.spark.logs.admitted_rows import VIOLATED_BOUND
from windrow.spark.logs.arrived import arrived, before_end
from windrow.spark.logs.live_source import BOUND, LOGGED, PRODUCER, PTIME, LiveSource
from windrow.spark.logs.log_source import FORMAT, LogSource
from windrow.spark.logs.session_streams import ARRIVED, REASON, ROWTIME, Stream
from windrow.spark.logs.storable import in_spark, in_types, scale_of
from windrow.spark.runtime.interpreter import register_source
from windrow.streams import FOREVER, NO_BOUND, EntryKind, NamedStream, Position, Producer, Receipt
from windrow.streams.admission.ahead import ahead_warning
from windrow.streams.admission.reordering import too_late
from windrow.streams.entries import AT, BEFORE, KIND, SEQUENCE
from windrow.streams.row_arguments import to_table
from windrow.syntax.sqltext import quoted

__all__ = ["NamedStreamEntry"]

_FILES_AT_ONCE = 1000
_TIES = {"__tie0": PTIME, "__tie1": PRODUCER, "__tie2": SEQUENCE}
_BEFORE = pa.field(BEFORE, pa.int64())
_VIOLATED = "__violated"
_registered: weakref.WeakSet[SparkSession] = weakref.WeakSet()


@dataclass
class _Log:
    """The part of a log that has been read for queries with EMIT."""

    position: Position
    rows: list[pa.Table] = field(default_factory=list)
    rejected: list[pa.Table] = field(default_factory=list)
    watermark: list[tuple[int, int]] = field(default_factory=list)
    punctuations: list[tuple[int, str]] = field(default_factory=list)
    first: int | None = None


@dataclass
class NamedStreamEntry:
    """A named stream as a session has it: what it has read of the log, and its own producer.

    Attributes
    ----------
    spark
        The session's.
    name
        Its name in the session.
    stream
        The stream.
    """

    spark: SparkSession
    name: str
    stream: NamedStream
    _position: Position = field(init=False)
    _rows: list[pa.Table] = field(default_factory=list, init=False)
    _late: list[pa.Table] = field(default_factory=list, init=False)
    _made: Stream | None = field(default=None, init=False)
    _log: _Log | None = field(default=None, init=False)
    _producer: Producer | None = field(default=None, init=False)
    _has_announced: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._position = self.stream.start

    @property
    def scale(self) -> TimeScale:
        """The unit of its rowtimes."""
        return scale_of(self.stream)

    def as_recorded(self) -> Stream:
        """The stream of the rows recorded so far; live queries can be started over it."""
        before = self._position
        if self.stream.log.base > before.number:  # the next entries were deleted: read the remaining ones
            self._position, self._rows, self._late = self.stream.start, [], []
        while True:
            batch, position = self.stream.read(self._position, _FILES_AT_ONCE)
            if position.number == self._position.number:
                break
            self._rows.append(batch.admitted)
            if batch.late.num_rows:
                self._late.append(batch.late)
            self._position = position
            self._warn_ahead()
        if self._made is None or self._position != before:
            self._made = self._stream()
        return self._made

    def _warn_ahead(self) -> None:
        """Warn, once, if a row or bound with a wrong clock has made all later rows late."""
        definition = self.stream.definition
        if self._has_announced or definition.ordering.future is not None:
            return
        at, rowtime = self._position, definition.rowtime
        warning = ahead_warning(self.name, at.watermark, at.ptime, rowtime.nanoseconds, rowtime.formatted)
        if warning is not None:
            self._has_announced = True
            warnings.warn(warning, RuntimeWarning, stacklevel=2)

    def as_arrived(self) -> Stream:
        """The stream as a log with processing times, including rows below an estimated watermark."""
        if self._log is None or self.stream.log.base > self._log.position.number:
            self._log = _Log(self.stream.start)
        log = self._log
        while True:
            batch, position = self.stream.read(log.position, _FILES_AT_ONCE, timed=True)
            if position.number == log.position.number:
                break
            log.rows.append(batch.admissible)
            if batch.rejected.num_rows:
                log.rejected.append(batch.rejected)
            log.watermark += batch.watermarks
            log.punctuations += batch.punctuations
            if log.first is None:
                log.first = batch.entries.column(PTIME)[0].as_py()
            log.position = position
        stream = self.as_recorded()
        stored = self._frame(log.rows, self.stream.definition.stored.append(_BEFORE))
        columns = [F.col(quoted(name)) for name in stream.columns]
        rows = stored.select(*columns, F.col(AT).alias(ROWTIME), F.col(PTIME).alias(ARRIVED), BEFORE)
        ends = None if log.first is None else (log.first, log.position.ptime)
        known = replace(stream, late=self._refused(log.rejected))
        return arrived(known, rows, before_end(stream.scale, log.watermark), ends, log.punctuations)

    @property
    def known_punctuations(self) -> frozenset[str]:
        """The punctuations so far, of producers or of the stream, except its domain."""
        scale = self._position.watermark
        punctuations = frozenset(chain(scale.shared, *scale.patterns.values()))
        return punctuations - {*self.stream.definition.domain}

    def recorded_within(self, ticks: int) -> DataFrame:
        """The rows that arrived at most so many ticks below the greatest rowtime before them."""
        stored = self.stream.definition.stored
        rows = pa.concat_tables([stored.empty_table(), *self._rows])
        found = too_late(rows.column(AT).to_numpy(), None, ticks)
        return self._frame([rows.filter(pa.array(~found.late))], stored)

    def in_types(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Rows whose values, by position, become those of these columns, in the columns' types."""
        return in_types(self.stream, rows, columns)

    def insert(self, rows: pa.Table) -> Receipt:
        """Insert rows of one statement: they have no order, so they are sorted by rowtime."""
        definition = self.stream.definition
        whole = to_table(rows, definition.columns)
        order = np.argsort(definition.rowtime.ticks(whole.column(definition.rowtime.column)), kind="stable")
        return self.producer().insert(whole.take(pa.array(order)))

    def producer(self) -> Producer:
        """The session's producer, which is attached when it is first needed."""
        if self._producer is None:
            self._producer = self.stream.producer(f"session-{uuid.uuid4().hex}")
            atexit.register(self.close)
        return self._producer

    def close(self) -> None:
        """Leave the stream, if the session has a producer."""
        atexit.unregister(self.close)
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(WindrowError):  # whose lease then ends by itself
                producer.close()

    def _stream(self) -> Stream:
        definition = self.stream.definition
        columns = tuple(definition.columns.names)
        rows = self._frame(self._rows, definition.stored).select(*self._columns())
        late = self._refused(self._late)
        at = self._position.watermark.at
        return Stream(
            rows,
            columns,
            self.scale,
            tuple(_TIES),
            () if at in (NO_BOUND, FOREVER) else (at,),
            definition.rowtime.column,
            late=late,
            name=self.name,
            live=self._live,
        )

    def _columns(self) -> list[Column]:
        """The columns of its rows, with rowtimes and tie-breakers."""
        names = self.stream.definition.columns.names
        ties = [F.col(name).alias(tie) for tie, name in _TIES.items()]
        return [*(F.col(quoted(name)) for name in names), F.col(AT).alias(ROWTIME), *ties]

    def _refused(self, tables: list[pa.Table]) -> DataFrame | None:
        """Late rows, as in :attr:`Stream.late`; None if there are none."""
        if not tables:
            return None
        broken = F.nullif(F.col(_VIOLATED), F.lit(NO_BOUND))
        return self._frame(tables, tables[0].schema).select(
            *self._columns(), broken.alias(VIOLATED_BOUND), REASON
        )

    def _frame(self, tables: list[pa.Table], schema: pa.Schema) -> DataFrame:
        whole = pa.concat_tables([schema.empty_table(), *tables])
        return frame_of_collected(self.spark, whole, from_arrow_schema(schema, prefer_timestamp_ntz=True))

    @cached_property
    def _live(self) -> LiveSource:
        """The arriving entries: all of the log."""
        if self.spark not in _registered:
            register_source(self.spark, LogSource)
            _registered.add(self.spark)
        folder = str(self.stream.folder.absolute())
        source = self.spark.readStream.format(FORMAT).schema(in_spark(self.stream))
        entries = source.option("folder", folder).load()
        kind = F.col(KIND)
        is_bound = kind.isin(int(EntryKind.BOUND), int(EntryKind.WATERMARK))
        made = (
            *(F.col(quoted(name)) for name in self.stream.definition.columns.names),
            F.when(kind == int(EntryKind.ROW), F.col(AT)).alias(ROWTIME),
            F.col(PRODUCER),
            F.col(PTIME),
            F.when(is_bound, F.col(AT)).alias(BOUND),
            *(F.col(name) for name in LOGGED),
        )
        return LiveSource(entries.select(*made), made, self.stream.definition.ordering, named=self.stream)
