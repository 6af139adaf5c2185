"""A named stream as the sink of a live query: the query is one of its producers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, InputError, NotSupportedError
from windrow.punctuations import Pattern
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.live.reading.moved_rowtime import MovedRowtime
from windrow.spark.live.sinks.sink import Receiver
from windrow.spark.logs.columns_taken import TextPlace, columns_taken
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.logs.storable import in_spark, in_types, scale_of
from windrow.streams import FOREVER, NamedStream, Producer
from windrow.streams.row_arguments import to_table
from windrow.syntax.sqltext import quoted

__all__ = ["IntoStream", "refuse_other", "rescaled_tick"]

_TICKS = "__ticks"
_WAIT = 30.0
"""Seconds: a killed process retains the lease of its producer for some time."""


class IntoStream(Receiver):
    """Inserts the rows of a query into a named stream, with the query's watermark as bounds.

    A micro-batch is one insert. Its rows have consecutive sequence numbers after those of all earlier rows,
    so that a repeated insert adds no row twice.

    Parameters
    ----------
    stream
        The stream.
    columns
        The columns of the stream for the rows, by position; by default all, or all but the rowtime.
    """

    def __init__(self, stream: NamedStream, columns: Sequence[str] | None = None) -> None:
        self.stream, self.columns = stream, columns
        self.moved: MovedRowtime | None = None
        """The expression of the stream's rowtimes over the query's, if there is one."""
        self._producer: Producer | None = None

    @property
    def target(self) -> str:
        """The stream."""
        return f"stream {self.stream.folder}"

    def had(self, identity: str) -> bool:
        """Whether the query is one of the stream's producers."""
        return _name(identity) in self.stream.position().watermark.producers

    def may_repeat(self, number: int) -> bool:  # noqa: ARG002 - of other sinks
        """Always: sequence numbers prevent duplicates."""
        return True

    def begin(self, spark: SparkSession, identity: str) -> None:  # noqa: ARG002 - of other sinks
        """Attach the query as a producer."""
        self._producer = self.stream.producer(_name(identity), wait=_WAIT)

    def insert(self, rows: Stream, until: int | None, punctuations: Sequence[Pattern], before: int) -> int:
        """Insert the rows of a micro-batch, followed by punctuations of the query; the number of rows.

        Parameters
        ----------
        rows
            The rows, with rowtimes in ticks of their time scale.
        until
            A bound: no later row has a rowtime below it, in the same ticks; None without.
        punctuations
            Patterns that no later row of the query matches, over the stream's columns.
        before
            The number of rows of all earlier micro-batches.
        """
        producer = self._producer
        assert producer is not None
        table = self._stored(rows)
        bound = None if until is None else self._bound(until, rows.scale)
        if table.num_rows:
            producer.insert(table, sequence=before + 1, bound=bound)
        elif bound is not None and (producer.bound_ticks is None or producer.bound_ticks < bound):
            producer.bound(bound)
        for pattern in punctuations:
            if pattern.names:
                producer.promise(pattern)
            else:
                producer.finish()
        return int(table.num_rows)

    def end(self) -> None:
        """Leave the stream, so that the query no longer delays it; its bounds and punctuations stay valid."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.leave()

    def _bound(self, until: int, scale: TimeScale) -> int:
        """A bound of the query in ticks of the stream."""
        target = scale_of(self.stream)
        if self.moved is None or until == FOREVER:
            return rescaled_tick(until, scale, target)
        kind = in_spark(self.stream)[self.stream.definition.rowtime.column].dataType.simpleString()
        return self.moved.bound(until, scale, target, kind)

    def _stored(self, rows: Stream) -> pa.Table:
        """The rows with the stream's types, in order of rowtime."""
        definition = self.stream.definition
        rowtime = definition.rowtime
        target = scale_of(self.stream)
        columns = columns_taken(self.stream, rows.columns, self.columns)
        own = rows.frame.withColumn(_TICKS, _rescaled(rows.scale, target))
        instant = F.expr(target.to_column(_TICKS))
        if self.moved is not None:
            instant = F.col(quoted(rows.columns[columns.index(rowtime.column)]))
        placed = own.select(*map(quoted, rows.columns), instant)
        typed = in_types(self.stream, placed, (*columns, rowtime.column))
        table = typed.toDF(*(f"c{place}" for place in range(len(columns) + 1))).toArrow()
        instants = table.column(len(columns))
        if rowtime.column not in columns:
            columns = (*columns, rowtime.column)
        else:
            rowtimes = table.column(columns.index(rowtime.column))
            if rowtimes.null_count:
                raise InputError(
                    f"a row has NULL as its rowtime {rowtime.column}",
                    condition="NULL_ROWTIME",
                    hint=f"leave {rowtime.column} out of the query: it is the rowtime of each row",
                )
            if not pc.all(pc.fill_null(pc.equal(rowtimes, instants), False), min_count=0).as_py():
                raise InputError(
                    f"the {rowtime.column} of a row differs from its rowtime",
                    condition="ROWTIME_DIFFERS",
                    hint=f"leave {rowtime.column} out of the query: it is the rowtime of each row",
                )
        named = pa.table(table.columns[: len(columns)], names=list(columns))
        whole = to_table(named, definition.columns)
        order = np.argsort(rowtime.ticks(whole.column(rowtime.column)), kind="stable")
        return whole.take(pa.array(order))


def _name(identity: str) -> str:
    """The name of a query as a producer."""
    return f"query-{identity}"


def refuse_other(sink: IntoStream, plan: LivePlan) -> None:
    """Refuse a query without a stream as its result, or with rows that do not fit the stream.

    Sets `moved` of the sink.

    Raises
    ------
    AnalysisError
        ``RELATION_WHERE_STREAM_IS_NEEDED``, ``INSERT_COLUMN_ARITY_MISMATCH``, ``MIXED_ROWTIMES``,
        ``ROWTIME_DIFFERS``, ``DUPLICATE_COLUMN``.
    NotSupportedError
        ``UNSUPPORTED_STREAM`` for a query that reads the stream.
    """
    plan.refuse_no_stream()
    for name in plan.streams:
        live = plan.catalog.streams[name].live
        if live is not None and live.identity == sink.stream.definition.identity:
            raise NotSupportedError(
                f"the query reads stream {name}, which is also its target",
                condition="UNSUPPORTED_STREAM",
                sql=plan.text,
                span=plan.span,
                hint="insert the rows into another stream",
            )
    plan.refuse_twice(plan.stream_columns, "a stream")
    targets = columns_taken(sink.stream, plan.stream_columns, sink.columns, TextPlace(plan.text, plan.span))
    plan.refuse_into(sink.stream, targets)
    target, rowtime = scale_of(sink.stream), sink.stream.definition.rowtime.column
    sink.moved = plan.moved(targets.index(rowtime)) if rowtime in targets else None
    kind = plan.rowtime_scale.kind
    if sink.moved is None and target.kind != kind:
        raise AnalysisError(
            f"rowtimes of the query are of type {kind.upper()},"
            f" but those of the stream in {sink.stream.folder} are of type {target.kind.upper()}",
            condition="MIXED_ROWTIMES",
            sql=plan.text,
            span=plan.span,
            hint=f"create the stream with a rowtime of type {kind.upper()}",
        )


def rescaled_tick(tick: int, old: TimeScale, new: TimeScale) -> int:
    """A tick in the unit of another time scale, rounded down; the end of a stream stays the end.

    >>> rescaled_tick(1999, TimeScale("bigint", "MILLISECOND"), TimeScale("bigint", "SECOND"))
    1
    """
    if tick == FOREVER:
        return tick
    return tick * old.nanoseconds // new.nanoseconds


def _rescaled(old: TimeScale, new: TimeScale) -> Column:
    if old.nanoseconds >= new.nanoseconds:
        return F.expr(f"{ROWTIME} * {old.nanoseconds // new.nanoseconds}L")
    factor = new.nanoseconds // old.nanoseconds
    return F.expr(f"({ROWTIME} - pmod({ROWTIME}, {factor}L)) DIV {factor}L")
