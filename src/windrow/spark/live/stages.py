"""Queries as stages: what a step does with tables in memory, read once from the query's text.

A stage is one block over one window of a live stream, with groups or without, or over two windows joined by
equal columns. What the text computes of a row, Spark computes when the row comes, and what it computes of a
group, over the groups that change. Other queries raise :class:`Unstaged` and are evaluated by the operators
for whole logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from windrow.algebra.clock import Clock
from windrow.algebra.continuous import Continuous, Query, Reader, StreamQuery, WindowedStream
from windrow.kernels.aggregates import Aggregate
from windrow.kernels.stages import Window
from windrow.plan.columns import ROWS, Part
from windrow.plan.reader import NotPlannedError
from windrow.spark.arrow import arrow_type, contains, is_orderable, travelling_type
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.grouping import groups_of
from windrow.spark.relational import Planner
from windrow.spark.scope import Scope
from windrow.spark.streams import ROWTIME, Stream
from windrow.spark.varying import ENTER, LEAVE, Varying, columns_of
from windrow.syntax.expressions import Name, Operation, names_in, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select, UnknownShapeError, conjuncts, parse_query, parse_select
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import SqlText, quoted

__all__ = ["MINE", "Side", "Stage", "Unstaged", "staged"]

MINE = "__mine"
"""Whether a row is one of the stream: not of another, nor an entry that is no row."""
_PASSES = "__passes"


class Unstaged(Exception):  # noqa: N818 - it is no error: another way is taken
    """What is in a query that no stage does."""


@dataclass(frozen=True)
class Side:
    """A window of a live stream.

    Attributes
    ----------
    name
        Of what it holds, in the checkpoint.
    stream
        Whose rows they are, in lower case.
    window
        When they enter and leave.
    columns
        What is kept of a row: names inside, and the stream's columns; `ROWTIME` is kept besides.
    computed
        The query that computes further columns of the rows, whose key in the text is ``__w``; and the names
        that the stream's columns have in it. Those rows have `MINE` too, where it does not hold nothing is
        computed; all their columns are given, and after them those that are computed.
    passes
        The column of the condition on rows.
    marked
        Keys by which rows are looked up.
    schema
        Of what is kept, as it is in memory.
    """

    name: str
    stream: str
    window: Window
    columns: Mapping[str, str]
    computed: tuple[SqlText, tuple[str, ...]] | None
    passes: str | None
    marked: tuple[tuple[str, ...], ...]
    schema: pa.Schema


@dataclass(frozen=True)
class Stage:
    """A query as a step does it.

    Attributes
    ----------
    sides
        Its windows, one or two.
    outputs
        The columns of the rows that it gives, in order; of two sides (side, column).
    kind
        ISTREAM or DSTREAM, or RSTREAM of rows of one instant; None for the changes of the relation.
    names, result
        The columns of the query, and their types.
    is_net
        Whether no row enters at the instant at which an equal one leaves.
    key, aggregates
        Of groups: their keys, and the aggregates by the names of their columns; None without groups.
    after
        Of groups: the query that makes the rows of them, whose key in the text is ``__groups``; None where
        these are the keys and aggregates of `outputs`.
    groups
        The columns that `after` reads, but for `ENTER` and `LEAVE`.
    joined
        Of two sides: the columns that are equal.
    """

    sides: tuple[Side, ...]
    outputs: tuple[tuple[int, str], ...]
    kind: str | None
    names: tuple[str, ...]
    result: StructType
    is_net: bool
    key: tuple[str, ...] = ()
    aggregates: tuple[tuple[str, Aggregate], ...] | None = None
    after: SqlText | None = None
    groups: StructType = field(default_factory=StructType)
    joined: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    @property
    def passes_on(self) -> bool:
        """Whether all it does with rows is to give them, at their rowtimes, with what is computed of each."""
        window = self.sides[0].window
        alone = len(self.sides) == 1 and self.aggregates is None
        return alone and self.kind == "RSTREAM" and window.length == 1 and window.slide is window.rows is None


def staged(
    gateway: Gateway,
    catalog: Catalog,
    reader: Reader,
    query: Continuous,
    clock: Clock,
    sizes: Mapping[str, Window],
    unrun: Callable[[dict[str, Varying]], Varying],
) -> Stage:
    """The stage of a query.

    Parameters
    ----------
    sizes
        The windows of its streams, by the keys of the inputs; their keys are not known yet.
    unrun
        Makes a relation of the query's columns, from its inputs.

    Raises
    ------
    Unstaged
        With what stands in the way.
    """
    kind = query.kind if isinstance(query, StreamQuery) else None
    inner = query.query if isinstance(query, StreamQuery) else query
    if isinstance(query, StreamQuery) and (query.using or (kind == "RSTREAM" and not _of_one_instant(inner))):
        raise Unstaged("this kind of stream")
    inputs: dict[str, Varying] = {}
    streams: dict[str, Stream] = {}
    for item in inner.inputs:
        if not isinstance(item, WindowedStream) or not isinstance(item.source, str):
            raise Unstaged("what is no window of a stream with a name")
        stream = catalog.streams.get(item.source.lower())
        if stream is None or stream.live is None:
            raise Unstaged("a recorded stream or a view")
        if stream.clock.kind != clock.kind and clock.kind == "timestamp":
            raise Unstaged("rowtimes of two kinds")
        never = {ENTER: F.lit(0).cast("bigint"), LEAVE: F.lit(0).cast("bigint")}
        nothing = stream.frame.select(*map(quoted, stream.columns)).withColumns(never)
        inputs[item.key] = Varying.of(nothing, clock, [stream])
        streams[item.key] = stream
    stager = _Stager(gateway, reader, clock, inputs, {})
    try:
        return stager.stage(inner, kind, streams, sizes, unrun(inputs))
    except (NotPlannedError, UnknownShapeError) as found:
        raise Unstaged(str(found)) from None


@dataclass
class _Reads:
    """What a stage reads of a side, found while its text is read."""

    item: WindowedStream
    stream: Stream
    part: Part
    kinds: StructType
    plain: dict[str, str] = field(default_factory=dict)
    texts: list[tuple[SqlText, str]] = field(default_factory=list)
    conditions: list[SqlText] = field(default_factory=list)

    def column(self, name: str) -> str:
        """What holds a column of the stream."""
        for inside, own in self.plain.items():
            if own == name:
                return inside
        made = f"x{len(self.plain) + len(self.texts)}"
        self.plain[made] = name
        return made

    def computed(self, text: SqlText) -> str:
        """What holds the value of an expression."""
        made = f"x{len(self.plain) + len(self.texts)}"
        self.texts.append((text, made))
        return made


def _of_one_instant(query: Query) -> bool:
    """Whether a relation has each row of one stream at its rowtime alone."""
    (item, *others) = query.inputs
    return not others and isinstance(item, WindowedStream) and item.window.is_now


class _Stager(Planner):
    def stage(
        self,
        query: Query,
        kind: str | None,
        streams: Mapping[str, Stream],
        sizes: Mapping[str, Window],
        unrun: Varying,
    ) -> Stage:
        self._ctes = {}
        select = self._block(query)
        sides = self._sides(select, streams)
        result = StructType([unrun.frame.schema[column] for column in unrun.columns])
        for range_ in self._ranges(select):
            if any(self.tokens.word(at) in ("SELECT", "OVER", "WITH") for at in range(*range_)):
                raise Unstaged("a subquery or OVER")
        grouped = self._is_grouped(select)
        if len(sides) == 1 and select.where is not None:
            sides[0].conditions.append(self.text(select.where))
        if grouped:
            if len(sides) > 1:
                raise Unstaged("groups of pairs")
            if kind == "RSTREAM":
                raise Unstaged("groups of each instant")
            return self._grouped_stage(select, kind, sides[0], sizes, unrun.names, result)
        joined = self._joined(select, sides) if len(sides) > 1 else None
        outputs = self._outputs(select, sides)
        if len(outputs) != len(result):
            raise Unstaged("columns that are told in another way")
        made = [
            self._side(select, side, sizes, (joined[at],) if joined is not None else ())
            for at, side in enumerate(sides)
        ]
        known = [self._shown_rowtime(side) for side in sides]
        is_net = all(
            shown is not None
            and any(at == place and made[at].columns.get(name) == shown for place, name in outputs)
            for at, shown in enumerate(known)
        )
        return Stage(tuple(made), tuple(outputs), kind, unrun.names, result, is_net, joined=joined)

    # -- the block -----------------------------------------------------------------------------------

    def _block(self, query: Query) -> Select:
        body = self.reader.after_with(*query.tokens)
        self._outside = frozenset({self.tokens.parent[body if query.items is None else query.items[0]]})
        if query.items is not None:
            shape = parse_select(self.tokens, query.items, *query.rest)
        else:
            start, stop = query.tokens
            if stop - start == 1:
                raise Unstaged("a relation by its name")
            shape = parse_query(self.tokens, body, stop)  # type: ignore[assignment]
        if not isinstance(shape, Select):
            raise Unstaged("more than one block")
        if shape.distinct or shape.window is not None or shape.qualify is not None:
            raise Unstaged("DISTINCT or named windows")
        return shape

    def _ranges(self, select: Select) -> list[Range]:
        clauses = (select.where, select.group_by, select.having, *(item.on for item in select.source))
        return [*select.items, *(clause for clause in clauses if clause is not None)]

    def _sides(self, select: Select, streams: Mapping[str, Stream]) -> list[_Reads]:
        sides = []
        for number, item in enumerate(select.source):
            known = self.reader.inputs.get(item.source)
            if not isinstance(known, WindowedStream) or known.key not in streams:
                raise Unstaged("what is no window of a live stream")
            stream = streams[known.key]
            if item.join != "inner" or item.using != ():
                raise Unstaged("an outer join, or one by names")
            names = item.columns or stream.columns
            if len(names) != len(stream.columns):
                raise Unstaged("other names for the columns than there are columns")
            columns = tuple(f"__x{select.items[0][0]}_{number}_{at}" for at in range(len(names)))
            part = Part(item.alias or f"__t{number}", names, columns)
            kinds = StructType([self.inputs[known.key].frame.schema[name] for name in columns_of(names)])
            sides.append(_Reads(known, stream, part, kinds))
        aliases = {side.part.alias.lower() for side in sides}
        if not 1 <= len(sides) <= 2 or len(aliases) < len(sides):
            raise Unstaged("this many relations")
        return sides

    def _resolved(self, name: Name, sides: Sequence[_Reads]) -> tuple[int, str] | None:
        """The side and the stream's column that a path names."""
        *before, last = (part.lower() for part in name.parts)
        found = [
            (at, column)
            for at, side in enumerate(sides)
            for shown, column in zip(side.part.names, side.stream.columns, strict=True)
            if shown.lower() == last and (not before or before == [side.part.alias.lower()])
        ]
        return found[0] if len(found) == 1 else None

    def _column(self, expression: Range, sides: Sequence[_Reads]) -> tuple[int, str]:
        """The side that an expression reads, and the column that holds its value."""
        parsed = parse_expression(self.tokens, *expression)
        if isinstance(parsed, Name):
            found = self._resolved(parsed, sides)
            if found is not None:
                return found[0], sides[found[0]].column(found[1])
        at = self._one_side(expression, sides)
        return at, sides[at].computed(self.text(expression))

    def _one_side(self, expression: Range, sides: Sequence[_Reads]) -> int:
        if len(sides) == 1:
            return 0
        names = list(names_in(parse_expression(self.tokens, *expression)))
        places = {self._resolved(name, sides) for name in names}
        of = {place[0] for place in places if place is not None}
        if None in places or len(of) != 1:
            raise Unstaged("an expression over both sides")
        return of.pop()

    # -- rows and pairs ------------------------------------------------------------------------------

    def _outputs(self, select: Select, sides: Sequence[_Reads]) -> list[tuple[int, str]]:
        outputs: list[tuple[int, str]] = []
        for item in select.items:
            if self.tokens.is_symbol(item[1] - 1, "*") and not isinstance(
                parse_expression(self.tokens, *item), Operation
            ):
                alias = self.tokens[item[0]].name.lower() if item[1] - item[0] == 3 else None
                if item[1] - item[0] not in (1, 3):
                    raise Unstaged("this star")
                chosen = [at for at, side in enumerate(sides) if alias in (None, side.part.alias.lower())]
                outputs += [
                    (at, sides[at].column(name)) for at in chosen for name in sides[at].stream.columns
                ]
            elif any(self.tokens.is_symbol(at, "*") and self.is_inner_star(at) for at in range(*item)):
                raise Unstaged("this star")
            else:
                outputs.append(self._column(without_alias(self.tokens, item), sides))
        return outputs

    def _joined(self, select: Select, sides: Sequence[_Reads]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        keys: tuple[list[str], list[str]] = ([], [])
        given = [part for part in (*(item.on for item in select.source), select.where) if part is not None]
        for part in (inner for one in given for inner in conjuncts(self.tokens, *one)):
            parsed = parse_expression(self.tokens, *part)
            if isinstance(parsed, Operation) and parsed.operator == "=":
                pair = [
                    self._resolved(operand, sides) if isinstance(operand, Name) else None
                    for operand in parsed.operands
                ]
                found = sorted(place for place in pair if place is not None)
                if len(found) == 2 and [side for side, _ in found] == [0, 1]:
                    kinds = [self._kind_of(sides[side], name) for side, name in found]
                    if kinds[0] != kinds[1] or not is_orderable(kinds[0]):
                        raise Unstaged("keys of two types")
                    for (side, name), listed in zip(found, keys, strict=True):
                        listed.append(sides[side].column(name))
                    continue
            sides[self._one_side(part, sides)].conditions.append(self.text(part))
        if not keys[0]:
            raise Unstaged("a join without an equality")
        return tuple(keys[0]), tuple(keys[1])

    def _kind_of(self, side: _Reads, name: str) -> DataType:
        return side.kinds[side.stream.columns.index(name)].dataType

    def _shown_rowtime(self, side: _Reads) -> str | None:
        window = side.item.window
        moved = window.slide is not None
        return None if moved else side.stream.rowtime

    # -- groups --------------------------------------------------------------------------------------

    def _grouped_stage(
        self,
        select: Select,
        kind: str | None,
        side: _Reads,
        sizes: Mapping[str, Window],
        names: tuple[str, ...],
        result: StructType,
    ) -> Stage:
        scope = self._scope_of(side)
        keys = self._group_keys(select, scope)
        groups = None if not keys else groups_of(self.tokens, select, keys, self.text)
        if not keys or groups is None or not groups.calls:
            raise Unstaged("these groups")
        inside = [self._column(where, [side])[1] for where, _ in keys]
        arguments = {}
        for call in groups.calls.values():
            assert call.argument is not None
            parsed = call.argument.expression
            plain = self._resolved(parsed, [side]) if isinstance(parsed, Name) else None
            arguments[call.name] = (
                side.column(plain[1]) if plain is not None else side.computed(call.argument.text)
            )
        made = self._side(select, side, sizes, (tuple(inside),))
        kinds = self._kinds(select, side)
        if not all(is_orderable(kinds[name]) for name in inside):
            raise Unstaged("keys without an order")
        found = groups.aggregates(
            self.gateway,
            {name: kinds[column] for name, column in arguments.items()},
            lambda text: self._kind(text, scope, select),
        )
        if found is None:
            raise Unstaged("an aggregate that only Spark knows")
        renamed = {f"__g{number}": name for number, name in enumerate(inside)}
        specs = tuple(
            (
                spec_name,
                Aggregate(
                    spec.function,
                    arguments[spec_name],
                    spec.result_type,
                    spec.ignore_nulls,
                    spec.parameters,
                    spec.ansi,
                ),
            )
            for spec_name, spec, _ in found
        )
        shown = [groups.replaced.get(without_alias(self.tokens, item)) for item in select.items]
        after = None
        if select.having is not None or None in shown:
            after = SqlText.of(self.prefix(select.items[0][0]), groups.select(select, self.tokens, self.text))
            shown = []
        fields = StructType()
        for number, name in enumerate(inside):
            fields = fields.add(f"__g{number}", kinds[name])
        for spec_name, _, gives in found:
            fields = fields.add(spec_name, gives)
        every = {*renamed, *(spec_name for spec_name, _, _ in found)}
        is_net = after is None and every <= set(shown)
        outputs = tuple((0, renamed.get(name or "", name or "")) for name in shown)
        return Stage((made,), outputs, kind, names, result, is_net, tuple(inside), specs, after, fields)

    # -- sides ---------------------------------------------------------------------------------------

    def _scope_of(self, side: _Reads) -> Scope:
        frame = self.inputs[side.item.key].frame
        return Scope(frame.toDF(*side.part.columns, ENTER, LEAVE), (side.part,), varies=True)

    def _kinds(self, select: Select, side: _Reads) -> dict[str, DataType]:
        """The types of what is kept of a row."""
        kinds = {inside: self._kind_of(side, name) for inside, name in side.plain.items()}
        computed = self._computed(side)
        if computed is not None:
            frame = self._scope_of(side).frame.select(*side.part.columns, F.lit(True).alias(MINE))
            schema = self._sql(computed, frame, select).schema
            kinds |= {found.name: found.dataType for found in schema.fields[len(frame.columns) :]}
        return kinds

    def _computed(self, side: _Reads) -> SqlText | None:
        condition = SqlText.join(" AND ", [SqlText.of("(", one, ")") for one in side.conditions])
        # of rows for which the condition does not hold nothing is computed
        mine = f"CASE WHEN {ROWS}.{MINE} THEN ("
        guard = (mine, "CASE WHEN ", condition, " THEN (") if side.conditions else (mine,)
        end = ") END) END" if side.conditions else ") END"
        listed = [SqlText.of(*guard, text, f"{end} AS {name}") for text, name in side.texts]
        if side.conditions:
            listed.append(SqlText.of(mine, condition, f") END AS {_PASSES}"))
        if not listed:
            return None
        return SqlText.of(
            f"SELECT {ROWS}.*, ", SqlText.join(", ", listed), " FROM ", self._scoped(self._scope_of(side))
        )

    def _side(
        self,
        select: Select,
        side: _Reads,
        sizes: Mapping[str, Window],
        marked: tuple[tuple[str, ...], ...],
    ) -> Side:
        partition = []
        for expression in side.item.window.partition_by:
            parsed = parse_expression(self.tokens, *expression)
            name = parsed.parts[-1].lower() if isinstance(parsed, Name) else None
            own = [column for column in side.stream.columns if column.lower() == name]
            if not own:
                raise Unstaged("a computed key of a window")
            partition.append(side.column(own[0]))
        kinds = self._kinds(select, side)
        for kind in kinds.values():
            if travelling_type(kind) != kind or arrow_type(kind) is None or contains(kind, "collated"):
                raise Unstaged("columns of this type")
        if not all(is_orderable(kinds[name]) for name in partition):
            raise Unstaged("keys without an order")
        given = sizes[side.item.key]
        live = side.stream.live
        assert live is not None
        ties = side.stream.ties if live.identity and given.rows is not None else ()
        window = Window(ROWTIME, given.length, given.slide, given.rows, tuple(partition), ties)
        fields = [pa.field(name, arrow_type(kind)) for name, kind in kinds.items()]
        told = dict(zip(side.stream.ties, (pa.int64(), pa.string(), pa.int64()), strict=False))
        of_ties = [pa.field(tie, told[tie]) for tie in ties]
        text = self._computed(side)
        prefix = self.prefix(select.items[0][0])
        computed = None if text is None else (SqlText.of(prefix, text), side.part.columns)
        keys = (tuple(partition),) if given.rows is not None and partition else ()
        return Side(
            f"window{side.item.key}",
            str(side.item.source).lower(),
            window,
            dict(side.plain),
            computed,
            _PASSES if side.conditions else None,
            tuple(dict.fromkeys((*keys, *marked))),
            pa.schema([*fields, *of_ties, pa.field(ROWTIME, pa.int64())]),
        )
