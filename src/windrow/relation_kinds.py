"""The results of queries over streams: time-varying relations, streams, and relations of live queries."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from windrow.algebra.time_scale import TimeScale
from windrow.errors import UsageError
from windrow.relation import Changes, Relation
from windrow.spark.analysis.keyed_rows import sorted_rows
from windrow.spark.gateway import Gateway
from windrow.spark.live import LivePlan, LiveQuery, streaming, streaming_late
from windrow.spark.live.reports.rows_set_aside import LATE_FOR_GROUP, SetAside, counted_late
from windrow.spark.logs.session_streams import LATE, Stream
from windrow.spark.recorded.emission import Emitted
from windrow.spark.relations.changelog import changelog
from windrow.spark.relations.time_varying_relation import TimeVarying, tick_of
from windrow.syntax.nodes import OrderItem
from windrow.tracebacks import briefly

__all__ = ["LiveRelation", "StartedRelation", "StreamRelation", "TimeVaryingRelation", "VaryingRelation"]


@briefly
class VaryingRelation(Relation):
    """A time-varying relation. Its rows are those at the last instant of the logs.

    Parameters
    ----------
    order
        The places of the columns by which the rows at an instant are sorted.
    sorted_by
        The relation with more columns, by which its rows are sorted, and their names; None without.
    """

    def __init__(
        self,
        temporal: TimeVarying,
        plan: str,
        gateway: Gateway,
        *,
        live: LivePlan | None = None,
        order: Sequence[tuple[int, OrderItem]] = (),
        sorted_by: tuple[VaryingRelation, Sequence[str]] | None = None,
    ) -> None:
        self._temporal, self.made_of, self._live, self._order = temporal, temporal, live, order
        self._sorted_by = sorted_by
        self._explained, self._gateway, self._is_plan, self._ordered = plan, gateway, False, None

    @property
    def schema(self) -> T.StructType:
        """The columns with their types."""
        return self._temporal.visible().schema

    @cached_property
    def df(self) -> DataFrame:  # type: ignore[override]
        """The rows at the last instant of the logs."""
        with self._gateway.translated():
            if self._sorted_by is not None:
                wide, keys = self._sorted_by
                return wide._temporal.now(wide._order).drop(*keys)
            return self._temporal.now(self._order)

    def at(self, instant: Any = None, *, ptime: Any = None) -> Relation:
        """The relation at an instant of rowtime: see :meth:`Relation.at`."""
        if ptime is not None:
            raise _other_time("rowtime", "relation.at(instant)")
        tick = tick_of(self._gateway, self._temporal.scale, instant)
        if self._sorted_by is not None:
            wide, keys = self._sorted_by
            rows = wide._temporal.at(tick, wide._order).drop(*keys)
        else:
            rows = self._temporal.at(tick, self._order)
        return Relation(rows, f"{self._plan}\n\nat {instant}", self._gateway)

    @property
    def late(self) -> Relation:
        """The late rows: see :attr:`Relation.late`."""
        return _late(self._gateway, self._temporal.streams, self._temporal.scale)

    def changelog(self, envelope: str = "delta", key: str | Sequence[str] = ()) -> Relation:
        """The changes of the relation, each with its time: see :meth:`Relation.changelog`."""
        keys = [(name, None) for name in ([key] if isinstance(key, str) else key)]
        with self._gateway.translated():
            frame, ordered = (
                changelog(self._temporal, envelope, key=keys, ordered=order) for order in (False, True)
            )
        changes = Changes(self._temporal, tuple(name for name, _ in keys))
        return Relation(
            frame, f"{self._plan}\n\nits changelog", self._gateway, ordered=ordered, made_of=changes
        )

    def __repr__(self) -> str:
        columns = zip(self._temporal.names, self._temporal.frame.schema, strict=False)
        typed = ", ".join(f"{name}: {field.dataType.simpleString()}" for name, field in columns)
        return f"VaryingRelation[{typed}]"


@briefly
class TimeVaryingRelation(Relation):
    """A query with EMIT over recorded logs: a table that changes as entries arrive.

    Its rows are the table as of now, or the changes of ``EMIT STREAM``.

    Parameters
    ----------
    order
        Finds the places of the columns by which the table is sorted, from their names.
    """

    def __init__(
        self,
        query: Emitted,
        is_stream: bool,
        envelope: str,
        gateway: Gateway,
        order: Callable[[Sequence[str]], Sequence[tuple[int, OrderItem]]],
        *,
        live: LivePlan | None = None,
        plan: Callable[[], str] | None = None,
    ) -> None:
        self._query, self._is_stream, self._envelope, self._live = query, is_stream, envelope, live
        self._order = order
        self._explained, self._gateway, self._is_plan = plan or query.plan(is_stream), gateway, False

    @cached_property
    def df(self) -> DataFrame:  # type: ignore[override]
        """The rows at the last processing time of the logs or at AS OF SYSTEM TIME, or the changes."""
        with self._gateway.translated():
            if self._is_stream:
                return self._changes(self._envelope, ordered=False)
            return self._at(self._now)

    @property
    def query(self) -> Emitted:
        """The query."""
        return self._query

    @property
    def emits(self) -> str | None:
        """The envelope of the changes of ``EMIT STREAM``; None for the table."""
        return self._envelope if self._is_stream else None

    def _at(self, tick: int) -> DataFrame:
        rows = self._query.at(tick)
        return sorted_rows(rows, self._order(rows.columns))

    @cached_property
    def _ordered(self) -> DataFrame | None:  # type: ignore[override]
        if not self._is_stream:
            return None
        with self._gateway.translated():
            return self._changes(self._envelope, ordered=True)

    @property
    def _now(self) -> int:
        if self._query.how.until is not None:
            return self._query.how.until
        ends = self._query.ends
        return 0 if ends is None else ends[1]

    @property
    def schema(self) -> T.StructType:
        """The columns with their types."""
        return self.df.schema

    def _changes(self, envelope: str, *, ordered: bool, key: Sequence[tuple[str, None]] = ()) -> DataFrame:
        return self._query.emitted(envelope, ordered=ordered, key=key)

    def at(self, instant: Any = None, *, ptime: Any = None) -> Relation:
        """The table as of a processing time: see :meth:`Relation.at`."""
        if instant is not None or ptime is None:
            raise _other_time("processing time", "relation.at(ptime=instant)")
        tick = tick_of(self._gateway, self._query.scale, ptime)
        with self._gateway.translated():
            return Relation(self._at(tick), f"{self.plan()}\n\nat processing time {ptime}", self._gateway)

    def changelog(self, envelope: str = "delta", key: str | Sequence[str] = ()) -> Relation:
        """The changes of the table, each with its processing time: see :meth:`Relation.changelog`.

        The envelope may also be ``"one-sql"``: the columns, ``undo``, ``ptime`` and ``ver``.
        """
        keys = [(name, None) for name in ([key] if isinstance(key, str) else key)]
        if envelope == "one-sql" and keys:
            raise UsageError(
                "envelope one-sql has no updates, so it takes no key",
                condition="INVALID_ARGUMENT",
                hint="leave the key out: ver counts the changes of each group",
            )
        with self._gateway.translated():
            frame, ordered = (self._changes(envelope, ordered=order, key=keys) for order in (False, True))
        return Relation(frame, f"{self.plan()}\n\nits changelog", self._gateway, ordered=ordered)

    @property
    def late(self) -> Relation:
        """Rows below a bound, excluded by punctuation, or late for a group: see :attr:`Relation.late`."""
        with self._gateway.translated():
            streams = self._query.late_for_groups.streams_with_late()
        return _late(self._gateway, streams, streams[0].scale)

    def late_for_groups(self, most: int = 3) -> tuple[SetAside, ...]:
        """How many rows of each stream are late for a group, and a sample of at most `most` of each."""
        with self._gateway.translated():
            late = [stream.own_late() for stream in self._query.late_for_groups.streams_late()]
            found = [one for rows in late if rows is not None for one in counted_late(rows, most)]
        return tuple(replace(one, reason=LATE_FOR_GROUP) for one in found)

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.dataType.simpleString()}" for field in self.schema)
        return f"TimeVaryingRelation[{columns}]"


@briefly
class StreamRelation(Relation):
    """A stream. Its first column is the rowtime, and its rows are displayed in order of rowtime."""

    def __init__(self, stream: Stream, plan: str, gateway: Gateway, *, live: LivePlan | None = None) -> None:
        super().__init__(stream.df(), plan, gateway, ordered=stream.df(ordered=True), made_of=stream)
        self._stream, self._live = stream, live

    @property
    def late(self) -> Relation:
        """The late rows: see :attr:`Relation.late`."""
        return _late(self._gateway, (self._stream,), self._stream.scale)


def _other_time(kind: str, call: str) -> UsageError:
    return UsageError(
        f"the relation changes with {kind}",
        condition="MIXED_CLOCKS",
        hint=f"write {call}",
    )


def _late(gateway: Gateway, streams: Sequence[Stream], scale: TimeScale) -> Relation:
    """The late rows of all streams, without duplicates."""
    frame = gateway.spark.createDataFrame([], LATE.format(kind=scale.kind))
    found = {name: rows for stream in streams for name, rows in stream.on(scale).all_late()}
    for name in sorted(found):
        frame = frame.unionByName(found[name])
    return Relation(frame, "late rows", gateway)


@briefly
class StartedRelation(Relation):
    """The result of INSERT INTO of a live query: one row that describes the started query.

    Attributes
    ----------
    query
        The query that runs; None where a pipeline starts it later.
    """

    def __init__(self, frame: DataFrame, gateway: Gateway, query: LiveQuery | None) -> None:
        super().__init__(frame, "the statement has started the query", gateway)
        self.query = query


@briefly
class LiveRelation(Relation):
    """A query over live streams: it emits rows as long as it runs."""

    def __init__(
        self, live: LivePlan, result: TimeVarying | Stream | DataFrame, plan: str | Callable[[], str]
    ) -> None:
        self._live, self._explained, self._gateway = live, plan, live.gateway
        self._is_plan, self._ordered = False, None
        self._names = list(result.columns if isinstance(result, DataFrame) else result.visible_names)
        self._schema: T.StructType = (
            result.schema
            if isinstance(result, DataFrame)
            else (result.visible() if isinstance(result, TimeVarying) else result.df()).schema
        )

    @property
    def schema(self) -> T.StructType:
        """The columns with their types."""
        return self._schema

    @property
    def df(self) -> DataFrame:  # type: ignore[override]
        """A streaming DataFrame: the changelog of a relation, or the rows of a stream, for ``writeStream``.

        It is append-only. A changelog has, after the columns of the query, ``_change_type``,
        ``_commit_version`` and ``_commit_timestamp``. The query runs on Spark's executors, whatever
        ``spark.windrow.live.host`` says. Its state is in Spark's state store, in the checkpoint of the query
        that writes the DataFrame. Late rows are in `late`.

        Raises
        ------
        UsageError
            ``LIVE_RELATION`` if the query cannot run on executors; ``STATE_STORE`` if Spark's state store is
            not RocksDB.
        """
        assert self._live is not None
        return streaming(self._live)

    @property
    def late(self) -> Relation:
        """The late rows of its streams: a streaming DataFrame that reads the streams itself, as :attr:`df`.

        Its columns are ``stream``, ``row`` (as JSON), ``rowtime``, ``bound``, ``producer`` and ``reason``.

        Raises
        ------
        UsageError
            As :attr:`df` does.
        """
        assert self._live is not None
        return Relation(streaming_late(self._live), f"late rows of\n{self._plan}", self._gateway)

    @property
    def ordered(self) -> DataFrame:
        """Always raises: a live relation has no last row.

        Raises
        ------
        UsageError
            ``LIVE_RELATION``.
        """
        raise self._not_temporal()

    def _not_temporal(self) -> UsageError:
        """The error of every operation other than to start it."""
        return UsageError(
            "the relation is live: it has rows only while a query runs",
            condition="LIVE_RELATION",
            hint="start it: relation.start('folder', checkpoint='folder of its own')",
        )

    def __repr__(self) -> str:
        return f"LiveRelation[{', '.join(self._names)}]"

    def _repr_html_(self) -> str:
        columns = ", ".join(html.escape(name) for name in self._names)
        return (
            f"<div>a live relation of {columns}: relation.start(…) emits its rows as they arrive;"
            " after %load_ext windrow they are displayed here</div>"
        )
