"""Named streams in a session: what has been recorded so far as rows, and what arrives."""

from __future__ import annotations

import atexit
import contextlib
import uuid
import weakref
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from windrow.algebra.clock import Clock
from windrow.errors import NotSupportedError, WindrowError
from windrow.spark.admission import PROMISED
from windrow.spark.live.few import frame_of_few
from windrow.spark.live.source import BOUND, LOGGED, PRODUCER, PTIME, LiveSource
from windrow.spark.log_source import FORMAT, LogSource, log_schema
from windrow.spark.streams import ROWTIME, Stream
from windrow.streams import FOREVER, NO_BOUND, Kind, NamedStream, Position, Producer
from windrow.streams.entries import AT, KIND, SEQUENCE
from windrow.syntax.sqltext import quoted

__all__ = ["Named"]

_FILES_AT_ONCE = 1000
_TIES = {"__tie0": PTIME, "__tie1": PRODUCER, "__tie2": SEQUENCE}
_VIOLATED = "__violated"
_registered: weakref.WeakSet[SparkSession] = weakref.WeakSet()


@dataclass
class Named:
    """A named stream as a session has it: what it has read of the log, and its own producer.

    Attributes
    ----------
    spark
        The session's.
    stream
        The stream.
    """

    spark: SparkSession
    stream: NamedStream
    _position: Position = field(init=False)
    _rows: list[pa.Table] = field(default_factory=list, init=False)
    _late: list[pa.Table] = field(default_factory=list, init=False)
    _made: Stream | None = field(default=None, init=False)
    _producer: Producer | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._position = self.stream.start

    @property
    def clock(self) -> Clock:
        """What its rowtimes are counted in."""
        rowtime = self.stream.definition.rowtime
        schema = _in_spark(self.stream)
        found = Clock.of(schema[rowtime.column].dataType.simpleString())
        assert found is not None
        return replace(found, unit=rowtime.unit)

    def as_recorded(self) -> Stream:
        """The stream with the rows that have been recorded so far; over it queries can be started live."""
        before = self._position
        while True:
            batch, position = self.stream.read(self._position, _FILES_AT_ONCE)
            if position.number == self._position.number:
                break
            self._rows.append(batch.admitted)
            if batch.late.num_rows:
                self._late.append(batch.late)
            self._position = position
        if self._made is None or self._position != before:
            self._made = self._stream()
        return self._made

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
        shown = [*map(quoted, columns), F.col(AT).alias(ROWTIME), *_ties()]
        rows = self._frame(self._rows, definition.stored).select(*shown)
        late = None
        if self._late:
            schema = self._late[0].schema
            late = self._frame(self._late, schema).select(*shown, F.col(_VIOLATED).alias(PROMISED))
        at = self._position.clock.at
        return Stream(
            rows,
            columns,
            self.clock,
            tuple(_TIES),
            () if at in (NO_BOUND, FOREVER) else (at,),
            definition.rowtime.column,
            late=late,
            live=self._live,
        )

    def _frame(self, tables: list[pa.Table], schema: pa.Schema) -> DataFrame:
        whole = pa.concat_tables([schema.empty_table(), *tables])
        return frame_of_few(self.spark, whole, from_arrow_schema(schema, prefer_timestamp_ntz=True))

    @cached_property
    def _live(self) -> LiveSource:
        """What arrives: all entries of the log."""
        if self.spark not in _registered:
            self.spark.dataSource.register(LogSource)
            _registered.add(self.spark)
        folder = str(self.stream.folder.absolute())
        source = self.spark.readStream.format(FORMAT).schema(_in_spark(self.stream))
        entries = source.option("folder", folder).load()
        kind = F.col(KIND)
        is_bound = kind.isin(int(Kind.BOUND), int(Kind.WATERMARK))
        made = (
            *(F.col(quoted(name)) for name in self.stream.definition.columns.names),
            F.when(kind == int(Kind.ROW), F.col(AT)).alias(ROWTIME),
            F.col(PRODUCER),
            F.col(PTIME),
            F.when(is_bound, F.col(AT)).alias(BOUND),
            *(F.col(name) for name in LOGGED),
        )
        definition = self.stream.definition
        return LiveSource(entries.select(*made), made, definition.ordering, identity=definition.identity)


def _ties() -> list[Column]:
    return [F.col(name).alias(tie) for tie, name in _TIES.items()]


def _in_spark(stream: NamedStream) -> StructType:
    """The columns of the log as Spark has them.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_TYPE``.
    """
    try:
        return log_schema(stream)
    except PySparkException as error:
        raise NotSupportedError(
            f"the stream in {stream.folder} has a column of a type that Spark does not have",
            condition="UNSUPPORTED_TYPE",
            hint="read it with windrow.streams",
        ) from error
