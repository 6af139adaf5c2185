"""Lowers a plan over windows to a program, and to what each window retains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import BooleanType, DataType, StructField, StructType

from windrow.algebra.continuous import WindowedStream
from windrow.algebra.time_scale import TimeScale
from windrow.kernels.incremental import BracketWindow, WindowInput
from windrow.plan import nodes as plan
from windrow.plan.arrow_types import arrow_type, contains, is_carried, is_orderable
from windrow.plan.columns import ROWS, Column, Part, Scope
from windrow.plan.rules import applied
from windrow.spark.analysis.arrow_columns import in_memory, not_in_memory
from windrow.spark.analysis.schemas import SparkAnalyser
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.incremental_plan import computed_elsewhere
from windrow.spark.live.operators.window_flow import WindowFlow, WindowQuery
from windrow.spark.live.reading.windowed_query import MINE, MadeStream, WindowedQuery, WindowedSide
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.syntax.sqltext import SqlText

__all__ = ["WindowLowering"]


@dataclass
class _Reads:
    """The columns of a window that a query retains.

    Attributes
    ----------
    window
        The window, whose rows have the columns of `stream`.
    plain
        The retained columns of the stream, by their internal names.
    texts
        The expressions in its bracket, which are computed and retained, with their types and internal names.
    scope
        The names by which they refer to the columns.
    """

    window: plan.StreamWindow
    stream: Stream
    plain: dict[str, str]
    texts: list[tuple[SqlText, DataType, str]] = field(default_factory=list)
    scope: Scope = field(default_factory=Scope)

    def computed(self, text: SqlText, kind: DataType) -> str:
        """The retained column for the value of an expression."""
        made = f"x{len(self.plain) + len(self.texts)}"
        self.texts.append((text, kind, made))
        return made

    @property
    def ids(self) -> dict[str, str]:
        """The ids of its columns in the plan, by their names."""
        return {name: column.id for column, name in self._columns}

    def name(self, column: str) -> str:
        """The name of a column, by its id."""
        return next(name for one, name in self._columns if one.id == column)

    def inside(self, name: str) -> str:
        """The internal name of a retained column."""
        return next(own for own, column in self.plain.items() if column == name)

    @property
    def _columns(self) -> list[tuple[Column, str]]:
        return list(zip(self.window.columns, self.window.input.sources, strict=True))


@dataclass
class WindowLowering:
    """Lowers a plan.

    Attributes
    ----------
    gateway
        The session.
    named, made
        The streams that have names, and the others by the keys of their windows.
    sizes, windows
        The windows by their keys: their lengths, and how they are written.
    kind, output
        The kind of query, as in :class:`.WindowedQuery`, and its columns.
    """

    gateway: Gateway
    named: Mapping[str, Stream]
    made: Mapping[str, MadeStream]
    sizes: Mapping[str, BracketWindow]
    windows: Mapping[str, WindowedStream]
    kind: str | None
    output: StructType

    @cached_property
    def streams(self) -> Mapping[str, Stream]:
        """The streams, by the names of their scans."""
        return {**self.named, **{key: one.stream for key, one in self.made.items()}}

    def windowed(self, node: plan.Node, scale: TimeScale) -> WindowedQuery | str:
        """The query of a plan, or the part of it without operators in memory."""
        found = [one for one in plan.walk(node) if isinstance(one, plan.StreamWindow)]
        windows = tuple({one.key: one for one in found}.values())
        if not windows:
            return "a query without windows of streams"
        if self.kind == "RSTREAM" and all(window.window.is_now for window in windows):
            node = applied(node, (_spelled,))  # rows may be emitted before all of their instant have arrived
        tumbling = {
            key: size.length
            for key, size in self.sizes.items()
            if size.length is not None and size.length == size.slide and size.rows is None
        }
        query = WindowQuery(self.streams, node, windows, scale, tumbling)
        gateway = Gateway(self.gateway.spark, self.gateway.parameters)
        flow = WindowFlow(gateway, query, Path("of-a-plan-alone"))
        if flow.why_not is not None:
            return flow.why_not
        if len(flow.columns) != len(self.output):
            return "SELECT of this form"
        sides = []
        for window in windows:
            side = self._side(query, window, flow)
            if isinstance(side, str):
                return side
            sides.append(side)
        return WindowedQuery(
            query,
            flow,
            tuple(sides),
            self.kind,
            tuple(self.output.names),
            self.output,
            by_spark=next(
                (one.label for one in plan.walk(node) if isinstance(one, plan.ClauseRelation)),
                computed_elsewhere(flow.program, takes_tables=True),
            ),
        )

    # -- what a window retains -------------------------------------------------------------------------

    def _side(self, query: WindowQuery, window: plan.StreamWindow, flow: WindowFlow) -> WindowedSide | str:
        """The state of a window whose rows operators read, or why it is not in memory."""
        read = flow.read(window.key)
        side = _Reads(window, self.streams[window.input.name], {})
        keys = {side.name(column) for column in window.partition if column is not None}
        columns = query.columns(window)
        side.plain.update({own: name for own, name in columns.items() if own in read or name in keys})
        in_bracket, item = self._in_bracket(side), self.windows[window.key]
        partition = tuple(
            in_bracket[text] if column is None else side.inside(side.name(column))
            for text, column in zip(item.partition_by, window.partition, strict=True)
        )
        kinds = {one.name: one.dataType for one in side.stream.frame.schema}
        types = {inside: kinds[name] for inside, name in side.plain.items()}
        types |= {inside: kind for _, kind, inside in side.texts}
        for kind in types.values():
            if not_in_memory(StructType().add("v", kind)) is not None:
                return f"a column of type {kind.simpleString()}"
        for name in partition:
            if not (is_orderable(types[name]) and is_carried(types[name])):
                return f"PARTITION BY a value of type {types[name].simpleString()}"
        sizes, live, by_value = self.sizes[window.key], side.stream.live, None
        is_ordered = live is not None and not live.identity  # its rows are in order
        if item.on is not None:
            *_, value, limit = in_bracket.values()
            by_value = value, limit
        ties = () if is_ordered or (sizes.rows is None and by_value is None) else side.stream.ties
        odd = next((kinds[tie] for tie in ties if contains(kinds[tie], "collated")), None)
        if odd is not None:
            return f"an order of rows of one instant by a column of type {odd.simpleString()}"
        of_ties = {tie: arrow_type(kinds[tie]) for tie in ties}
        if None in of_ties.values():
            return "columns of this type"
        fields = [*in_memory(StructType([StructField(*one) for one in types.items()]))]
        schema = pa.schema(
            [*fields, *(pa.field(tie, of_ties[tie]) for tie in ties), pa.field(ROWTIME, pa.int64())]
        )
        bracket = replace(sizes, partition=partition, ties=ties, by_value=by_value)
        sources = [self.streams[one.input.name].live for one in query.windows]
        window_input = WindowInput(
            f"window{window.key}",
            bracket,
            schema,
            at_arrival=window.key in flow.at_arrival,
            closes=any(source is not None and source.has_patterns for source in sources),
        )
        return WindowedSide(
            window.input.name,
            dict(side.plain),
            self._computed(side, kinds),
            window_input,
            item,
            self.made.get(window.key),
        )

    def _in_bracket(self, side: _Reads) -> dict[SqlText, str]:
        """The retained columns with the expressions in the bracket of a window."""
        item, window = self.windows[side.window.key], side.window
        side.scope = Scope((Part(str(item.source), tuple(side.ids), tuple(side.ids.values())),))
        computed = [
            text for text, key in zip(item.partition_by, window.partition, strict=True) if key is None
        ]
        if item.on is not None and item.distance is not None:
            limit = SqlText.of("(", item.on, ") + (", item.distance, ")")
            kind = self._typed(side, limit)
            # values are compared with limits in the type of these
            value = SqlText.of("CAST(", item.on, f" AS {kind.simpleString()})")
            computed += [value, limit]
        return {text: side.computed(text, self._typed(side, text)) for text in computed}

    def _typed(self, side: _Reads, text: SqlText) -> DataType:
        """The type of an expression over the rows of a window."""
        query = side.scope.select(SqlText.of("(", text, ") AS value"))
        return SparkAnalyser(self.gateway).schema(query, side.window.columns)[0].dataType

    def _computed(
        self, side: _Reads, kinds: Mapping[str, DataType]
    ) -> tuple[SqlText, tuple[str, ...]] | None:
        """The query for the computed columns of rows; None if there are none."""
        if not side.texts:
            return None
        listed = [
            SqlText.of(f"CASE WHEN {ROWS}.{MINE} THEN (", text, f") END AS {name}")
            for text, _, name in side.texts
        ]
        query = side.scope.select(SqlText.of(f"{ROWS}.*, ", SqlText.join(", ", listed)))
        columns = tuple(side.ids[name] for name in side.stream.columns)
        known = [
            Column(own, name, kinds[name]) for own, name in zip(columns, side.stream.columns, strict=True)
        ]
        SparkAnalyser(self.gateway).schema(query, (*known, Column(MINE, MINE, BooleanType())))
        return query, columns


def _spelled(node: plan.Node) -> plan.Node | None:
    """Time windows as SQL that processes each row alone, in place of an operator that retains rows."""
    return node.spelled if isinstance(node, plan.TimeWindows) and node.kind != "SESSION" else None
