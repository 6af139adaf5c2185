"""Named streams in a session: what has been recorded so far as rows, and what arrives."""

from __future__ import annotations

import atexit
import contextlib
import uuid
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from windrow.algebra.clock import Clock
from windrow.errors import NotSupportedError, WindrowError
from windrow.spark.admission import PROMISED
from windrow.spark.errors import raising
from windrow.spark.live.few import frame_of_few
from windrow.spark.live.source import BOUND, LOGGED, PRODUCER, PTIME, LiveSource
from windrow.spark.log_source import FORMAT, LogSource, log_schema
from windrow.spark.streams import ROWTIME, Stream
from windrow.streams import FOREVER, NO_BOUND, Kind, NamedStream, Position, Producer, Receipt
from windrow.streams.entries import AT, KIND, SEQUENCE
from windrow.streams.rows import to_table
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
    name
        That it has in the session.
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

    def in_types(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Rows whose values, by position, are those of these columns, in the columns' types."""
        schema = _in_spark(self.stream)
        numbered = rows.toDF(*(f"c{place}" for place in range(len(columns))))
        return numbered.select(*(_as_type(f"c{place}", schema[name]) for place, name in enumerate(columns)))

    def insert(self, rows: pa.Table) -> Receipt:
        """Insert rows of one statement: they have no order, so they come in that of their rowtimes."""
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
        shown = [*(F.col(quoted(name)) for name in columns), F.col(AT).alias(ROWTIME), *_ties()]
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
            name=self.name,
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


def _as_type(value: str, field: StructField) -> Column:
    """A value in the type of a column; one that has no such value is an error in all modes of Spark's."""
    if isinstance(field.dataType, StructType | ArrayType | MapType):
        return F.col(value).cast(field.dataType).alias(field.name)
    found = F.col(value).try_cast(field.dataType)
    wrong = raising(
        "INVALID_VALUE",
        f"a value of column {field.name} is not {field.dataType.simpleString().upper()}",
        "nothing was inserted; convert the values first",
    )
    is_lost = F.col(value).isNotNull() & found.isNull()
    return F.when(is_lost, wrong).otherwise(found).alias(field.name)


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
