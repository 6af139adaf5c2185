"""Relational operators over relations that vary, for whole logs at once.

Every row carries the time in which it is there through projections and filters, which are Spark's. Joins,
groups and set operators are kernels (:mod:`windrow.kernels.zset`). Expressions are the user's text, evaluated
by Spark over a scope in which the relations of FROM have their names. What has no operator here raises
:class:`NotPlannedError`, and is evaluated instant by instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.algebra.clock import NEVER
from windrow.algebra.continuous import ChangelogOf, Query
from windrow.errors import WindrowError
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.columns import ROWS, Part
from windrow.plan.reader import NotPlannedError
from windrow.spark.group_keys import GroupKeys
from windrow.spark.grouping import groups_of
from windrow.spark.keyed import can_be_keyed, run_keyed
from windrow.spark.over import Frames
from windrow.spark.scope import Rows, Scope
from windrow.spark.streams import Stream
from windrow.spark.timed_rows import TimedRows
from windrow.spark.varying import Varying
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.nodes import Cte, Range
from windrow.syntax.queries import (
    FromItem,
    Ordered,
    Select,
    SetOperation,
    Shape,
    UnknownShapeError,
    parse_query,
    parse_select,
)
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import Relation, SqlText, quoted

__all__ = ["Planner"]


class Planner(GroupKeys, TimedRows, Frames):
    """Plans the relations of one statement; takes what :class:`windrow.spark.bags.Bags` does."""

    _ctes: dict[Range, Rows]

    def relation(self, query: Query) -> Varying:
        """The relation of a query that varies.

        Raises
        ------
        NotPlannedError
            Where it has no plan for whole logs.
        """
        self._ctes = {}
        body = self.reader.after_with(*query.tokens)
        given = body if query.items is None else query.items[0]
        self._outside = frozenset({self.tokens.parent[given]})
        try:
            rows = self._query(query)
        except UnknownShapeError as found:
            raise NotPlannedError(str(found)) from None
        rows = self._varying(rows)
        streams: dict[int, Stream] = {}
        instants: DataFrame | None = None
        for item in self.inputs.values():
            streams |= {id(stream): stream for stream in item.streams}
            instants = item.instants if instants is None else instants.unionAll(item.instants)
        assert instants is not None
        frame = rows.frame.toDF(*rows.names, ENTER, LEAVE)
        every = instants.distinct()
        return Varying.of(frame, self.clock, list(streams.values()), every, net_by=rows.net_by)

    def _query(self, query: Query) -> Rows:
        if query.items is not None:
            shape = parse_select(self.tokens, query.items, *query.rest)
            return self._select(shape)
        start, stop = query.tokens
        if stop - start == 1:
            return self._source(FromItem((start, stop), None, ()), start)
        return self._shape(parse_query(self.tokens, self.reader.after_with(start, stop), stop))

    # -- blocks --------------------------------------------------------------------------------------

    def _shape(self, shape: Shape) -> Rows:
        if isinstance(shape, Ordered):
            return self._ordered(shape)
        return self._set_operation(shape) if isinstance(shape, SetOperation) else self._select(shape)

    def _select(self, select: Select) -> Rows:
        found = self._windowed(select)
        if found is not None:
            return found
        scope = self._from(select)
        grouped = self._is_grouped(select)
        conditions = () if select.where is None else (select.where,)
        scope = self._with_subqueries(select, scope, (*conditions, *(() if grouped else select.items)))
        if not scope.varies:
            return self._last(select, scope, where=select.where)
        try:
            rows = self._grouped(select, scope) if grouped else self._each(select, scope)
        except WindrowError as error:
            if grouped or error.condition != "MISSING_GROUP_BY":
                raise
            rows = self._grouped(select, scope)  # an aggregate that only Spark knows
        return self._bag("distinct", [rows]) if select.distinct else rows

    def _each(self, select: Select, scope: Scope) -> Rows:
        """SELECT without groups."""
        framed = self._framed(select, scope)
        if framed is not None:
            return self._last(select, framed, where=None)
        return self._last(select, scope, where=select.where)

    def _last(
        self, select: Select, scope: Scope, *, where: Range | None, group_by: SqlText | None = None
    ) -> Rows:
        """SELECT over the scope; what it gives of time is the scope's."""
        times = f", {ROWS}.{ENTER}, {ROWS}.{LEAVE}" if scope.varies else ""
        distinct = "DISTINCT " if select.distinct and not scope.varies else ""
        query = SqlText.of(
            f"SELECT {distinct}", self._items(select, scope), times, " FROM ", self._scoped(scope),
        )  # fmt: skip
        if where is not None:
            query = SqlText.of(query, " WHERE ", self.text(where))
        if group_by is not None:
            query = SqlText.of(query, " GROUP BY ", group_by)
        elif select.group_by is not None:
            query = SqlText.of(query, " GROUP BY ", self.text(select.group_by))
        clauses = ("HAVING", select.having), ("WINDOW", select.window), ("QUALIFY", select.qualify)
        for word, clause in clauses:
            if clause is not None:
                query = SqlText.of(query, f" {word} ", self.text(clause))
        frame = self._sql(query, scope.frame, select)
        if not scope.varies:
            return Rows(frame.toDF(*_columns(frame.columns)), tuple(frame.columns), varies=False)
        names = tuple(frame.columns[:-2])
        net_by = self._kept(select, scope) if group_by is None else None
        return Rows(frame.toDF(*_columns(names), ENTER, LEAVE), names, varies=True, net_by=net_by)

    def _kept(self, select: Select, scope: Scope) -> frozenset[str] | None:
        """The columns that a relation is net by, where SELECT has them as they are: they are net by these."""
        if scope.net_by is None:
            return None
        kept: dict[str, str] = {}
        place = 0
        for item in select.items:
            if self.tokens.is_symbol(item[0], "*"):
                if item[1] - item[0] > 1:
                    return None
                every = [column for part in scope.parts for column in part.columns]
                kept |= {column: f"c{place + at}" for at, column in enumerate(every)}
                place += len(every)
                continue
            expression = parse_expression(self.tokens, *without_alias(self.tokens, item))
            if isinstance(expression, Name):
                *alias, name = (part.lower() for part in expression.parts)
                found = [
                    column
                    for part in scope.parts
                    for named, column in zip(part.names, part.columns, strict=True)
                    if named.lower() == name and (not alias or alias == [part.alias.lower()])
                ]
                kept |= {column: f"c{place}" for column in found[:1] if len(found) == 1}
            elif any(self.tokens.is_symbol(at, "*") for at in range(*item)):
                return None  # s.* is so many columns
            place += 1
        return frozenset(kept[column] for column in scope.net_by) if scope.net_by <= kept.keys() else None

    # -- FROM ----------------------------------------------------------------------------------------

    def _from(self, select: Select) -> Scope:
        scope: Scope | None = None
        for number, item in enumerate(select.source):
            rows = self._source(item, select.items[0][0])
            alias = item.alias or f"__t{number}"
            names = item.columns or rows.names
            if len(names) != len(rows.names):
                raise NotPlannedError("other names for the columns than there are columns")
            first = select.items[0][0]  # no other block's
            columns = tuple(f"__{first}_{number}_{at}" for at in range(len(names)))
            times = (ENTER, LEAVE) if rows.varies else ()
            part = Part(alias, names, columns)
            inside = dict(zip(_columns(names), columns, strict=True))
            net_by = None if rows.net_by is None else frozenset(inside[name] for name in rows.net_by)
            one = Scope(rows.frame.toDF(*columns, *times), (part,), rows.varies, net_by)
            scope = one if scope is None else self._join(select, scope, one, item)
        assert scope is not None
        aliases = [part.alias.lower() for part in scope.parts]
        if len(set(aliases)) < len(aliases):
            raise NotPlannedError("relations of one name")
        self._name_merged(select, scope)
        return scope

    def _source(self, item: FromItem, position: int) -> Rows:
        """The relation that stands in FROM."""
        known = self.reader.inputs.get(item.source)
        if known is not None:
            if isinstance(known, ChangelogOf):
                return _still(self.tables[known.key])
            varying = self.inputs[known.key]
            return Rows(varying.frame, varying.names, varies=True, net_by=varying.net_by)
        start, stop = item.source
        cte = self.cte(start) if stop - start == 1 and self.tokens[start].is_name else None
        if cte is not None and self.varies(cte.body):
            return self._named(cte)
        if self.tokens.is_symbol(start, "(") and self.varies(item.source):
            return self._shape(parse_query(self.tokens, start, stop))
        if self.varies(item.source):
            raise NotPlannedError("a function of a relation that varies")
        text = SqlText.of(self.prefix(position), "SELECT * FROM ", self.reader.text(start, stop))
        return _still(self.gateway.sql(text))

    def _named(self, cte: Cte) -> Rows:
        if cte.recursive:
            raise NotPlannedError("WITH RECURSIVE")
        if cte.body not in self._ctes:
            self._ctes[cte.body] = self._shape(parse_query(self.tokens, *cte.body))
        rows = self._ctes[cte.body]
        at = cte.item[0] + 1
        if self.tokens.is_symbol(at, "("):
            names = tuple(
                self.tokens[first].name for first, _ in self.tokens.split(at + 1, self.tokens.partner[at])
            )
            if len(names) != len(rows.names):
                raise NotPlannedError("other names for the columns than there are columns")
            return Rows(rows.frame, names, rows.varies)
        return rows

    # -- groups --------------------------------------------------------------------------------------

    def _grouped(self, select: Select, scope: Scope) -> Rows:
        """Groups and their aggregates: each stretch of time in which a group stays as it is is a group."""
        keys = self._group_keys(select, scope)
        where = SqlText() if select.where is None else SqlText.of(" WHERE ", self.text(select.where))
        rows, found = self._pieces(select, scope, keys, where)
        better, is_net = (keys is not None and self._by_kernel(select, scope, keys, where)) or (None, False)
        if better is not None:
            net_by = frozenset(_columns(found.names)) if is_net else None
            found = Rows(better.toDF(*found.frame.columns), found.names, varies=True, net_by=net_by)
        is_whole = keys is not None and not keys
        return self._with_empty(select, scope, rows, found) if is_whole else found

    def _by_kernel(
        self, select: Select, scope: Scope, keys: list[tuple[Range, SqlText]], where: SqlText
    ) -> tuple[DataFrame, bool] | None:
        """The groups, with the columns of SELECT and whether they are net; None if beyond the kernel."""
        groups = groups_of(self.tokens, select, keys, self.text)
        if groups is None or not (groups.calls or groups.keys):
            return None
        listed = SqlText.of("SELECT ", groups.columns(), f", {ROWS}.{ENTER}, {ROWS}.{LEAVE} FROM ")
        rows = self._sql(SqlText.of(listed, self._scoped(scope), where), scope.frame, select)
        made = groups.run(self.gateway, rows, lambda text: self._kind(text, scope, select))
        if made is None:
            return None
        query = SqlText.of(self.prefix(select.items[0][0]), groups.select(select, self.tokens, self.text))
        try:
            return self.gateway.sql(query, {"__groups": made}), groups.tells_apart(select, self.tokens, made)
        except WindrowError:  # reads its groups in a way that only Spark understands
            return None

    def _pieces(
        self, select: Select, scope: Scope, keys: list[tuple[Range, SqlText]] | None, where: SqlText
    ) -> tuple[DataFrame, Rows]:
        """The rows of the groups, and the groups by Spark: every row once for each piece of its time."""
        texts = [text for _, text in keys or ()]
        names = [f"__g{number}" for number in range(len(texts))]
        listed = [SqlText.of(", ", text, f" AS {name}") for name, text in zip(names, texts, strict=True)]
        query = SqlText.of(f"SELECT {ROWS}.*", *listed, " FROM ", self._scoped(scope), where)
        rows = self._sql(query, scope.frame, select)
        if not can_be_keyed(rows):
            raise NotPlannedError("columns that a group cannot carry")
        given = StructType([field for field in rows.schema if field.name not in (ENTER, LEAVE)])
        pieces = run_keyed(self.gateway, "expand", [rows], names, given)
        inner = replace(scope, frame=pieces.drop(*names), net_by=None)
        if select.group_by is not None and not self._groups_by_all(select):
            texts = [self.text(select.group_by)]
        group_by = SqlText.join(", ", [*texts, SqlText.of(f"{ROWS}.{ENTER}, {ROWS}.{LEAVE}")])
        return rows, self._last(select, inner, where=None, group_by=group_by)

    def _with_empty(self, select: Select, scope: Scope, rows: DataFrame, found: Rows) -> Rows:
        """Without GROUP BY there is a row also while nothing is there, from the log's first instant on."""
        origin = self._origin()
        if origin is None:
            return found
        nothing = replace(scope, frame=rows.limit(0).drop(ENTER, LEAVE), varies=False)
        empty = self._last(select, nothing, where=None)
        times = run_keyed(self.gateway, "gaps", [rows.select(ENTER, LEAVE)], [], StructType([]), origin)
        all_of_time = [(origin, NEVER)]
        none = self.gateway.spark.createDataFrame(all_of_time, f"{ENTER} bigint, {LEAVE} bigint")
        # where there are no rows at all, no task says so
        times = times.unionAll(none.join(rows.select(F.lit(1).alias("__one")).limit(1), how="left_anti"))
        return Rows(found.frame.unionAll(empty.frame.crossJoin(times)), found.names, varies=True)

    # -- set operators -------------------------------------------------------------------------------

    def _set_operation(self, operation: SetOperation) -> Rows:
        left, right = self._shape(operation.left), self._shape(operation.right)
        if not left.varies and not right.varies:
            raise NotPlannedError("a set operator over tables")
        sides = [self._varying(side) for side in (left, right)]
        if len(left.names) != len(right.names):
            raise NotPlannedError("sides of a set operator with other numbers of columns")
        both = SqlText.of("SELECT * FROM ", Relation("l"), " UNION ALL SELECT * FROM ", Relation("r"))
        union = self.gateway.sql(both, {"l": sides[0].frame, "r": sides[1].frame})
        if operation.operator == "union" and operation.all:
            return Rows(union, left.names, varies=True)
        # both sides in the types that Spark gives their union
        cast = [Rows(_as(side.frame, union.schema), left.names, varies=True) for side in sides]
        operator = operation.operator + (" all" if operation.all else "")
        return self._bag(operator, cast)

    def _bag(self, operator: str, sides: Sequence[Rows]) -> Rows:
        frames = [side.frame for side in sides]
        return Rows(self._counted(operator, frames), sides[0].names, varies=True)


def _columns(names: Sequence[str]) -> list[str]:
    return [f"c{number}" for number in range(len(names))]


def _still(frame: DataFrame) -> Rows:
    return Rows(frame.toDF(*_columns(frame.columns)), tuple(frame.columns), varies=False)


def _as(frame: DataFrame, schema: StructType) -> DataFrame:
    """The columns in these types."""
    cast = [
        F.col(quoted(name)).cast(field.dataType).alias(field.name)
        for name, field in zip(frame.columns, schema, strict=True)
    ]
    return frame.select(*cast)
