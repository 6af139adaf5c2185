"""Lowers a plan over windows to one operator, or to a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import BooleanType, DataType, StructField, StructType

from windrow.algebra.continuous import WindowedStream
from windrow.algebra.time_scale import TimeScale
from windrow.kernels.incremental import BracketWindow, WindowInput, WindowOperator
from windrow.plan import nodes as plan
from windrow.plan.arrow_types import arrow_type, contains, is_carried, is_orderable
from windrow.plan.columns import ROWS, Column, Expression, Part, Scope, schema_of
from windrow.plan.reasons import Reason
from windrow.plan.rules import applied
from windrow.spark.analysis.arrow_columns import in_memory, not_in_memory
from windrow.spark.analysis.schemas import SparkAnalyser
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.incremental_plan import computed_elsewhere
from windrow.spark.live.operators.window_flow import WindowFlow, WindowQuery
from windrow.spark.live.reading.windowed_query import MINE, MadeStream, WindowedQuery, WindowedSide
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.relations.aggregates_of_plan import kernel_aggregates
from windrow.spark.relations.time_varying_relation import ENTER, LEAVE
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import tokenize

__all__ = ["WindowLowering"]

_PASSES = "__passes"

Joined = tuple[tuple[str, ...], tuple[str, ...]]
"""The equal columns of either side."""


@dataclass
class _Reads:
    """The columns of a window that a query reads, collected while its plan is walked.

    Attributes
    ----------
    window
        The window, whose rows have the columns of `stream`.
    retained
        The columns of the stream, by the ids in the plan.
    parts
        The names by which texts refer to the columns.
    plain, texts, conditions
        The retained columns by their internal names: columns of the stream, and expressions; and the
        conditions on rows.
    """

    window: plan.StreamWindow
    stream: Stream
    retained: dict[str, str]
    computed_ids: dict[str, Expression] = field(default_factory=dict)
    scope: Scope = field(default_factory=Scope)
    plain: dict[str, str] = field(default_factory=dict)
    texts: list[tuple[Expression, str]] = field(default_factory=list)
    conditions: list[SqlText] = field(default_factory=list)

    def state(self, column: str) -> str:
        """The retained column for a column of the plan."""
        if column in self.computed_ids:
            return self.computed(self.computed_ids[column])
        name = self.retained[column]
        for inside, own in self.plain.items():
            if own == name:
                return inside
        made = f"x{len(self.plain) + len(self.texts)}"
        self.plain[made] = name
        return made

    def computed(self, expression: Expression) -> str:
        """The retained column for the value of an expression."""
        if expression.column is not None:
            return self.state(expression.column)
        made = f"x{len(self.plain) + len(self.texts)}"
        self.texts.append((expression, made))
        return made

    @property
    def moves_late(self) -> bool:
        """Whether rows enter later than they arrive."""
        bracket = self.window.window
        return bracket.slide is not None or (bracket.row_slide or 1) > 1

    def has(self, column: str) -> bool:
        """Whether a column of the plan belongs to this window."""
        return column in self.retained or column in self.computed_ids


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

    def windowed(self, node: plan.Node) -> WindowedQuery | str:
        """A plan of one SELECT as an operator, or the part of it that has none."""
        if (why := self._beyond(node)) is not None:
            return why
        if not isinstance(node, plan.Project) or node.is_whole:
            return _KINDS.get(type(node), "more than one SELECT")
        having = node.input if isinstance(node.input, plan.Filter) else None
        below = node.input if having is None else having.input
        if isinstance(below, plan.Aggregate):
            return self._groups(node, having, below)
        if isinstance(below, plan.Join):
            return self._pairs(node, having, below)
        side = self._side(below)
        return side if isinstance(side, str) else self._rows(node, having, [side], None)

    def _rows(
        self, node: plan.Project, having: plan.Filter | None, sides: Sequence[_Reads], joined: Joined | None
    ) -> WindowedQuery | str:
        """SELECT without groups, over one window or two."""
        if len(node.outputs) != len(self.output):
            return "SELECT of this form"
        for side in sides:
            self._name(side, node.scope)
        for condition in () if having is None else having.conditions:
            if (read := _read_by(sides, condition)) is None:
                return _OF_BOTH
            read.conditions.append(condition.text)
        outputs = []
        for _, one in node.outputs:
            if (read := _read_by(sides, one)) is None:
                return _OF_BOTH
            outputs.append((sides.index(read), read.computed(one)))
        made = []
        for at, side in enumerate(sides):
            window_input = self._made(side, () if joined is None else (joined[at],))
            if isinstance(window_input, str):
                return window_input
            made.append(window_input)
        rowtimes = [None if side.moves_late else side.stream.rowtime for side in sides]
        is_net = all(
            rowtime is not None
            and any(at == place and made[at].columns.get(name) == rowtime for place, name in outputs)
            for at, rowtime in enumerate(rowtimes)
        )
        names = tuple(self.output.names)
        operator = WindowOperator(tuple(side.window_input for side in made), tuple(outputs), joined=joined)
        shows = frozenset(name for at, name in outputs if at == 0)
        return WindowedQuery(node, tuple(made), operator, self.kind, names, self.output, is_net, shows)

    def flowing(self, node: plan.Node, scale: TimeScale, instead: str) -> WindowedQuery | str:
        """The same for any plan over windows, or the part of it without operators in memory.

        `instead` says why a single :class:`WindowOperator` is not enough.
        """
        found = [one for one in plan.walk(node) if isinstance(one, plan.StreamWindow)]
        windows = tuple({one.key: one for one in found}.values())
        if not windows:
            return instead
        if self.kind == "RSTREAM" and all(window.window.is_now for window in windows):
            node = applied(node, (_spelled,))  # rows may be emitted before all of their instant have arrived
        query = WindowQuery(self.streams, node, windows, scale)
        gateway = Gateway(self.gateway.spark, self.gateway.parameters)
        operators = WindowFlow(gateway, query, Path("of-a-plan-alone"))
        if operators.why_not is not None or len(operators.columns) != len(self.output):
            return operators.why_not or instead
        sides = []
        for window in windows:
            side = _Reads(window, self.streams[window.input.name], {})
            scanned = dict(zip((column.id for column in window.columns), window.input.sources, strict=True))
            keys = {scanned[column] for column in window.partition if column is not None}
            read = operators.read(window.key)
            side.retained.update(scanned)
            side.plain.update(
                {own: name for own, name in query.columns(window).items() if own in read or name in keys}
            )
            made = self._made(side, (), self._in_bracket(side))
            if isinstance(made, str):
                return made
            sides.append(made)
        names = tuple(self.output.names)
        operator = WindowOperator(tuple(side.window_input for side in sides))
        retains = bool(operators.program.nodes) or operators.program.beginning is not None
        return WindowedQuery(
            node,
            tuple(sides),
            operator,
            self.kind,
            names,
            self.output,
            is_net=False,
            over_windows=query,
            is_stateless=not retains,
            by_spark=next(
                (one.label for one in plan.walk(node) if isinstance(one, plan.ClauseRelation)),
                computed_elsewhere(operators.program, takes_tables=True),
            ),
        )

    # -- windows -------------------------------------------------------------------------------------

    def _side(self, node: plan.Node) -> _Reads | str:
        """A window, with the computed columns of its rows and the conditions on them; or another kind of
        input.
        """
        if isinstance(node, plan.StreamWindow):
            stream = self.streams[node.input.name]
            retained = {
                column.id: name for column, name in zip(node.columns, node.input.sources, strict=True)
            }
            return _Reads(node, stream, retained)
        if isinstance(node, plan.TimeWindows):
            return self._side(node.spelled)
        if not isinstance(node, plan.Filter | plan.Project):
            return _KINDS.get(type(node), "more than one SELECT")
        side = self._side(node.input)
        if isinstance(side, str):
            return side
        if isinstance(node, plan.Filter):
            self._name(side, node.scope)
            side.conditions += [one.text for one in node.conditions]
            return side
        passed = [one.column for _, one in node.outputs]
        if not side.conditions and all(column in side.retained for column in passed):
            side.retained |= {made.id: side.retained[one.column or ""] for made, one in node.outputs}
            return side
        window_input = [(column.id, column.id) for column in node.input.columns]
        if [(made.id, one.column) for made, one in node.outputs[: len(window_input)]] == window_input:
            self._name(side, node.scope)
            side.computed_ids |= {made.id: one for made, one in node.outputs[len(window_input) :]}
            return side
        return "more than one SELECT"

    def _name(self, side: _Reads, scope: Scope) -> None:
        """Record the names by which texts refer to the columns of a window."""
        ids = {
            name: own for own, name in reversed(side.retained.items())
        }  # a stream's column has its first id
        parts = tuple(
            replace(part, columns=tuple(ids[side.retained[column]] for column in part.columns))
            for part in scope.parts
            if all(column in side.retained for column in part.columns)
        )
        side.scope = Scope(parts, scope.prefix)

    def _pairs(self, node: plan.Project, having: plan.Filter | None, join: plan.Join) -> WindowedQuery | str:
        """SELECT over two windows."""
        if join.kind != "inner" or join.conditions:
            return "an outer join, or a join with a subquery"
        if not join.keys:
            return "a join without an = condition"
        left, right = self._side(join.left), self._side(join.right)
        if isinstance(left, str):
            return left
        if isinstance(right, str):
            return right
        kinds = {column.id: column.type for column in join.left.columns}
        if not all(_is_key(kinds[column]) for column, _ in join.keys):
            return "keys of a type without an order"
        keys = (
            tuple(left.state(one) for one, _ in join.keys),
            tuple(right.state(other) for _, other in join.keys),
        )
        return self._rows(node, having, [left, right], keys)

    # -- groups --------------------------------------------------------------------------------------

    def _groups(
        self, node: plan.Project, having: plan.Filter | None, groups: plan.Aggregate
    ) -> WindowedQuery | str:
        if not groups.keys or not groups.calls:
            return "GROUP BY of this form"
        if not all(_is_key(column.type) for column, _ in groups.keys):
            return "keys of a type without an order"
        below = groups.input
        assert isinstance(below, plan.Project)
        side = self._side(below.input)
        if isinstance(side, str):
            return side
        self._name(side, below.scope)
        read = {column.id: one for column, one in below.outputs}
        inside = tuple(side.computed(read[source]) for _, source in groups.keys)
        arguments = {
            one.argument: side.computed(read[one.argument])
            for one in groups.calls
            if one.argument is not None
        }
        specs = kernel_aggregates(self.gateway, groups, lambda column: arguments[column])
        if isinstance(specs, Reason):
            return str(specs)
        made = self._made(side, (inside,))
        if isinstance(made, str):
            return made
        names = {column.id: key for (column, _), key in zip(groups.keys, inside, strict=True)}
        names |= {one.column.id: one.column.id for one in groups.calls}
        output = [one.column for _, one in node.outputs]
        after = None
        if having is not None or None in output:
            times = f", {ROWS}.{ENTER}, {ROWS}.{LEAVE}"
            conditions = () if having is None else [one.text for one in having.conditions]
            after = node.scope.select(SqlText.of(node.listed, times), conditions)
        outputs = (
            tuple((0, names[column]) for column in output if column is not None) if after is None else ()
        )
        is_net = after is None and names.keys() <= set(output)
        return WindowedQuery(
            node,
            (made,),
            WindowOperator((made.window_input,), outputs, inside, specs),
            self.kind,
            tuple(self.output.names),
            self.output,
            is_net,
            frozenset(names[column] for column in output if column is not None),
            after,
            schema_of(groups.columns),
        )

    # -- what a window retains -------------------------------------------------------------------------

    def _in_bracket(self, side: _Reads) -> dict[SqlText, str]:
        """The retained columns with the expressions in the bracket of a window."""
        item, window = self.windows[side.window.key], side.window
        by_name = {column.id: name for column, name in zip(window.columns, window.input.sources, strict=True)}
        side.scope = Scope((Part(str(item.source), tuple(by_name.values()), tuple(by_name)),))
        computed = [
            text for text, key in zip(item.partition_by, window.partition, strict=True) if key is None
        ]
        if item.on is not None and item.distance is not None:
            limit = SqlText.of("(", item.on, ") + (", item.distance, ")")
            kind = self._typed(side, limit)
            # values are compared with limits in the type of these
            value = SqlText.of("CAST(", item.on, f" AS {kind.simpleString()})")
            computed += [value, limit]
        found = {}
        for text in computed:
            found[text] = side.computed(Expression(text, self._typed(side, text)))
        return found

    def _typed(self, side: _Reads, text: SqlText) -> DataType:
        """The type of an expression over the rows of a window."""
        query = side.scope.select(SqlText.of("(", text, ") AS value"))
        return SparkAnalyser(self.gateway).schema(query, side.window.columns)[0].dataType

    def _made(
        self,
        side: _Reads,
        marked: tuple[tuple[str, ...], ...],
        in_bracket: Mapping[SqlText, str] | None = None,
    ) -> WindowedSide | str:
        """The state of a window, or why it is not in memory.

        `in_bracket` are the columns of expressions in its bracket; without them there may be none.
        """
        item = self.windows[side.window.key]
        if in_bracket is None and (None in side.window.partition or item.on is not None):
            return "this expression in the brackets of a window"
        in_bracket = in_bracket or {}
        scanned = {
            column.id: name
            for column, name in zip(side.window.columns, side.window.input.sources, strict=True)
        }
        again = {name: own for own, name in reversed(side.retained.items())}
        partition = tuple(
            in_bracket[text] if column is None else side.state(again[scanned[column]])
            for text, column in zip(item.partition_by, side.window.partition, strict=True)
        )
        kinds = {field.name: field.dataType for field in side.stream.frame.schema}
        types = {inside: kinds[name] for inside, name in side.plain.items()}
        types |= {inside: one.type for one, inside in side.texts}
        if side.conditions:
            types[_PASSES] = BooleanType()
        for kind in types.values():
            if not_in_memory(StructType().add("v", kind)) is not None:
                return f"a column of type {kind.simpleString()}"
        for name in partition:
            if not _is_key(types[name]):
                return f"PARTITION BY a value of type {types[name].simpleString()}"
        sizes = self.sizes[side.window.key]
        live = side.stream.live
        is_ordered = live is not None and not live.identity  # its rows are in order
        by_value = None
        if item.on is not None:
            *_, value, limit = in_bracket.values()
            by_value = value, limit
        ties = () if is_ordered or (sizes.rows is None and by_value is None) else side.stream.ties
        window = replace(sizes, partition=partition, ties=ties, by_value=by_value)
        fields = [*in_memory(StructType([StructField(*one) for one in types.items()]))]
        odd = next((kinds[tie] for tie in ties if contains(kinds[tie], "collated")), None)
        if odd is not None:
            return f"an order of rows of one instant by a column of type {odd.simpleString()}"
        of_ties = {tie: arrow_type(kinds[tie]) for tie in ties}
        if None in of_ties.values():
            return "columns of this type"
        text = _computing(side)
        columns = tuple(again[name] for name in side.stream.columns)
        if text is not None:  # an expression may have no meaning alone, such as one with a name of SELECT
            known = [
                Column(own, name, kinds[name]) for own, name in zip(columns, side.stream.columns, strict=True)
            ]
            SparkAnalyser(self.gateway).schema(text, (*known, Column(MINE, MINE, BooleanType())))
        keys = (partition,) if sizes.rows is not None and partition else ()
        schema = pa.schema(
            [*fields, *(pa.field(tie, of_ties[tie]) for tie in ties), pa.field(ROWTIME, pa.int64())]
        )
        passes, all_marked = _PASSES if side.conditions else None, tuple(dict.fromkeys((*keys, *marked)))
        window_input = WindowInput(f"window{side.window.key}", window, passes, all_marked, schema)
        computed = None if text is None else (text, columns)
        made = self.made.get(side.window.key)
        return WindowedSide(side.window.input.name, dict(side.plain), computed, window_input, item, made)

    def _beyond(self, node: plan.Node) -> str | None:
        """The first operator that reads several rows, or subqueries over tables, which every micro-batch
        would run.
        """
        for one in plan.walk(node):
            if isinstance(one, plan.Pieces):
                return str(one.why)
            if type(one) in _KINDS:
                return _KINDS[type(one)]
            if any(_asks(expression.text) for expression in _expressions(one)):
                return "a subquery"
        return None


_KINDS = {
    plan.Mark: "a subquery",
    plan.Value: "a subquery",
    plan.OneRow: "a subquery",
    plan.Over: "OVER",
    plan.ClauseRelation: "a clause over windows",
    plan.Distinct: "DISTINCT",
    plan.SetOperation: "a set operator",
    plan.Sort: "ORDER BY with LIMIT",
    plan.SessionWindows: "SESSION",
}


_OF_BOTH = "an expression over both sides"


def _read_by(sides: Sequence[_Reads], expression: Expression) -> _Reads | None:
    """The one window that an expression reads."""
    if len(sides) == 1:
        return sides[0]
    reads = expression.reads or frozenset()
    found = [side for side in sides if reads and all(map(side.has, reads))]
    return found[0] if len(found) == 1 else None


def _expressions(node: plan.Node) -> Sequence[Expression]:
    match node:
        case plan.Project():
            return [one for _, one in node.outputs]
        case plan.Filter() | plan.Join():
            return node.conditions
    return ()


def _is_key(kind: DataType) -> bool:
    """Whether an operator compares values of a type as Spark does."""
    return is_orderable(kind) and is_carried(kind)


def _spelled(node: plan.Node) -> plan.Node | None:
    """Time windows as SQL that processes each row alone, in place of an operator that retains rows."""
    return node.spelled if isinstance(node, plan.TimeWindows) and node.kind != "SESSION" else None


def _asks(text: SqlText) -> bool:
    """Whether an expression contains a subquery."""
    return any(token.word in ("SELECT", "WITH") for token in tokenize(text.render()).tokens)


def _computing(side: _Reads) -> SqlText | None:
    """The query for the computed columns of rows; they are NULL if the condition is false."""
    condition = SqlText.join(" AND ", [SqlText.of("(", one, ")") for one in side.conditions])
    mine = f"CASE WHEN {ROWS}.{MINE} THEN ("
    guard = (mine, "CASE WHEN ", condition, " THEN (") if side.conditions else (mine,)
    end = ") END) END" if side.conditions else ") END"
    listed = [SqlText.of(*guard, one.text, f"{end} AS {name}") for one, name in side.texts]
    if side.conditions:
        listed.append(SqlText.of(mine, condition, f") END AS {_PASSES}"))
    if not listed:
        return None
    return side.scope.select(SqlText.of(f"{ROWS}.*, ", SqlText.join(", ", listed)))
