"""Relational operators over relations that vary, for whole logs at once.

Every row carries the time in which it is there through projections and filters, which are Spark's. Joins,
groups and set operators are kernels (:mod:`windrow.kernels.zset`). Expressions are the user's text, evaluated
by Spark over a scope in which the relations of FROM have their names. What has no operator here raises
:class:`Unplanned`, and is evaluated instant by instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegralType, MapType, StructField, StructType, VariantType

from windrow.algebra.aggregates import AGGREGATES
from windrow.algebra.clock import NEVER, Clock
from windrow.algebra.continuous import ChangelogOf, Query, Reader
from windrow.errors import WindrowError
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.spark.gateway import Gateway
from windrow.spark.grouping import alias_of, groups_of, without_alias
from windrow.spark.keyed import can_be_keyed, run_keyed
from windrow.spark.scope import ROWS, Part, Rows, Scope, Texts, Unplanned
from windrow.spark.streams import Stream
from windrow.spark.varying import Varying
from windrow.syntax.expressions import Expression, Name, Operation, parse_expression
from windrow.syntax.nodes import Cte, Range
from windrow.syntax.queries import (
    FromItem,
    Select,
    SetOperation,
    Shape,
    UnknownShapeError,
    parse_query,
    parse_select,
)
from windrow.syntax.sqltext import Relation, SqlText, quoted
from windrow.syntax.tokens import Kind

__all__ = ["Planner", "Unplanned"]

_SPARK_JOINS = {"left": "LEFT JOIN", "semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN"}


class Planner(Texts):
    """Plans the relations of one statement.

    Parameters
    ----------
    gateway, reader, clock
        The session, the statement, and what instants are counted in.
    inputs, tables
        What varies in it, on that clock, and what does not, by key.
    """

    def __init__(
        self,
        gateway: Gateway,
        reader: Reader,
        clock: Clock,
        inputs: Mapping[str, Varying],
        tables: Mapping[str, DataFrame],
    ) -> None:
        super().__init__(gateway, reader)
        self.clock, self.inputs, self.tables = clock, inputs, tables
        self._ctes: dict[Range, Rows] = {}

    def relation(self, query: Query) -> Varying:
        """The relation of a query that varies.

        Raises
        ------
        Unplanned
            Where it has no plan for whole logs.
        """
        try:
            rows = self._query(query)
        except UnknownShapeError as found:
            raise Unplanned(str(found)) from None
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
        return self._set_operation(shape) if isinstance(shape, SetOperation) else self._select(shape)

    def _select(self, select: Select) -> Rows:
        scope = self._from(select)
        grouped = select.group_by is not None or select.having is not None or self._aggregates(select)
        if not scope.varies:
            return self._last(select, scope, where=select.where)
        try:
            rows = self._grouped(select, scope) if grouped else self._last(select, scope, where=select.where)
        except WindrowError as error:
            if grouped or error.condition != "MISSING_GROUP_BY":
                raise
            rows = self._grouped(select, scope)  # an aggregate that only Spark knows
        return self._counted("distinct", [rows]) if select.distinct else rows

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
            query = SqlText.of(query, " WHERE ", self._text(where))
        if group_by is not None:
            query = SqlText.of(query, " GROUP BY ", group_by)
        elif select.group_by is not None:
            query = SqlText.of(query, " GROUP BY ", self._text(select.group_by))
        if select.having is not None:
            query = SqlText.of(query, " HAVING ", self._text(select.having))
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
                raise Unplanned("other names for the columns than there are columns")
            columns = tuple(f"__{number}_{at}" for at in range(len(names)))
            times = (ENTER, LEAVE) if rows.varies else ()
            part = Part(alias, names, columns)
            inside = dict(zip(_columns(names), columns, strict=True))
            net_by = None if rows.net_by is None else frozenset(inside[name] for name in rows.net_by)
            one = Scope(rows.frame.toDF(*columns, *times), (part,), rows.varies, net_by)
            scope = one if scope is None else self._join(select, scope, one, item)
        assert scope is not None
        aliases = [part.alias.lower() for part in scope.parts]
        if len(set(aliases)) < len(aliases):
            raise Unplanned("relations of one name")
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
        cte = self._cte(start) if stop - start == 1 and self.tokens[start].is_name else None
        if cte is not None and self._varies(cte.body):
            return self._named(cte)
        if self.tokens.is_symbol(start, "(") and self._varies(item.source):
            return self._shape(parse_query(self.tokens, start, stop))
        if self._varies(item.source):
            raise Unplanned("a function of a relation that varies")
        text = SqlText.of(self._prefix(position), "SELECT * FROM ", self.reader.text(start, stop))
        return _still(self.gateway.sql(text))

    def _named(self, cte: Cte) -> Rows:
        if cte.recursive:
            raise Unplanned("WITH RECURSIVE")
        if cte.body not in self._ctes:
            self._ctes[cte.body] = self._shape(parse_query(self.tokens, *cte.body))
        rows = self._ctes[cte.body]
        at = cte.item[0] + 1
        if self.tokens.is_symbol(at, "("):
            names = tuple(
                self.tokens[first].name for first, _ in self.tokens.split(at + 1, self.tokens.partner[at])
            )
            if len(names) != len(rows.names):
                raise Unplanned("other names for the columns than there are columns")
            return Rows(rows.frame, names, rows.varies)
        return rows

    def _join(self, select: Select, left: Scope, right: Scope, item: FromItem) -> Scope:
        """The scope with one relation more."""
        both = (*left.parts, *right.parts)
        if item.join == "inner" and left.varies and right.varies:
            frame = self._pairs(select, left, right, item)
        elif item.join == "inner":
            frame = left.frame.crossJoin(right.frame)
        elif item.join in ("left", "semi", "anti") and left.varies and not right.varies:
            frame = self._beside_table(select, left, right, item)
            both = left.parts if item.join in ("semi", "anti") else both
        else:
            raise Unplanned(f"{item.join.upper()} JOIN of relations that vary")
        scope = Scope(frame, both, left.varies or right.varies)
        if item.on is None or item.join != "inner":
            return scope
        query = SqlText.of(f"SELECT {ROWS}.* FROM ", self._scoped(scope), " WHERE ", self._text(item.on))
        return Scope(self._sql(query, frame, select), both, scope.varies)

    def _beside_table(self, select: Select, left: Scope, right: Scope, item: FromItem) -> DataFrame:
        """Outer, semi and anti joins with what does not vary: Spark's own, row by row of the left."""
        (part,) = right.parts
        columns = ", ".join(
            [f"{column} AS {quoted(name)}" for column, name in zip(part.columns, part.names, strict=True)]
        )
        given = (
            ""
            if item.join in ("semi", "anti")
            else "".join(
                f", {quoted(part.alias)}.{quoted(name)} AS {column}"
                for column, name in zip(part.columns, part.names, strict=True)
            )
        )
        on = SqlText.of(" ON ", self._text(item.on)) if item.on is not None else SqlText()
        query = SqlText.of(
            f"SELECT {ROWS}.*{given} FROM ", self._scoped(left), f" {_SPARK_JOINS[item.join]} ",
            f"(SELECT {columns} FROM ", Relation("__right"), f") AS {quoted(part.alias)}", on,
        )  # fmt: skip
        text = SqlText.of(self._prefix(select.items[0][0]), query)
        return self.gateway.sql(text, {ROWS: left.frame, "__right": right.frame})

    def _pairs(self, select: Select, left: Scope, right: Scope, item: FromItem) -> DataFrame:
        """The pairs of rows that are there at one time, of those that an equality of both must hold for."""
        conditions = [condition for condition in (item.on, select.where) if condition is not None]
        parts = [
            part for condition in conditions for part in _conjuncts(parse_expression(self.tokens, *condition))
        ]
        found = [
            keys
            for part in parts
            # what is computed may fail for rows that another condition leaves out
            if (len(parts) == 1 or _compares_columns(part))
            and (keys := self._equal(select, left, right, part)) is not None
        ]
        names = [f"__k{number}" for number in range(len(found))]
        sides = []
        for side, scope in enumerate((left, right)):
            listed = [
                SqlText.of(", ", pair[side], f" AS {name}") for name, pair in zip(names, found, strict=True)
            ]
            query = SqlText.of(f"SELECT {ROWS}.*", *listed, " FROM ", self._scoped(scope))
            sides.append(self._sql(query, scope.frame, select) if listed else scope.frame)
        if not all(map(can_be_keyed, sides)):
            raise Unplanned("columns that a join cannot carry")
        fields = [
            field for side in sides for field in side.schema if field.name not in (*names, ENTER, LEAVE)
        ]
        return run_keyed(self.gateway, "join", sides, names, StructType(fields))

    def _equal(
        self, select: Select, left: Scope, right: Scope, part: Expression
    ) -> tuple[SqlText, SqlText] | None:
        """The sides of an equality of something of the left relations with something of the right one."""
        if not isinstance(part, Operation) or part.operator != "=":
            return None
        one, other = (operand.range for operand in part.operands)
        for first, second in ((one, other), (other, one)):
            try:
                texts = self._text(first), self._text(second)
                kinds = [
                    self._kind(text, scope, select) for text, scope in zip(texts, (left, right), strict=True)
                ]
            except WindrowError:  # of the other side, or of both: no key
                continue
            if all(isinstance(kind, IntegralType) for kind in kinds):
                return SqlText.of("CAST(", texts[0], " AS BIGINT)"), SqlText.of(
                    "CAST(", texts[1], " AS BIGINT)"
                )
            if kinds[0] == kinds[1] and not isinstance(
                kinds[0], ArrayType | MapType | StructType | VariantType
            ):
                return SqlText.of("(", texts[0], ")"), SqlText.of("(", texts[1], ")")
        return None

    # -- groups --------------------------------------------------------------------------------------

    def _aggregates(self, select: Select) -> bool:
        """Whether the SELECT list has an aggregate."""
        tokens = self.tokens

        def calls(at: int, stop: int) -> bool:
            while at < stop:
                if tokens.is_symbol(at, "(") and tokens.word(at + 1) in ("SELECT", "WITH"):
                    at = tokens.partner[at]
                elif tokens[at].kind is Kind.WORD and tokens.is_symbol(at + 1, "("):
                    is_one = tokens[at].text.lower() in AGGREGATES and not tokens.is_symbol(at - 1, ".")
                    if is_one and tokens.word(tokens.partner[at + 1] + 1) != "OVER":
                        return True
                at += 1
            return False

        return any(calls(*item) for item in select.items)

    def _grouped(self, select: Select, scope: Scope) -> Rows:
        """Groups and their aggregates: each stretch of time in which a group stays as it is is a group."""
        keys = [] if select.group_by is None else self._group_keys(select, scope)
        where = SqlText() if select.where is None else SqlText.of(" WHERE ", self._text(select.where))
        rows, found = self._pieces(select, scope, [text for _, text in keys], where)
        better, is_net = self._by_kernel(select, scope, keys, where) or (None, False)
        if better is not None:
            net_by = frozenset(_columns(found.names)) if is_net else None
            found = Rows(better.toDF(*found.frame.columns), found.names, varies=True, net_by=net_by)
        return found if select.group_by is not None else self._with_empty(select, scope, rows, found)

    def _by_kernel(
        self, select: Select, scope: Scope, keys: list[tuple[Range, SqlText]], where: SqlText
    ) -> tuple[DataFrame, bool] | None:
        """The groups, with the columns of SELECT and whether they are net; None if beyond the kernel."""
        groups = groups_of(self.tokens, select, keys, self._text)
        if groups is None or not groups.calls:
            return None
        listed = SqlText.of("SELECT ", groups.columns(), f", {ROWS}.{ENTER}, {ROWS}.{LEAVE} FROM ")
        rows = self._sql(SqlText.of(listed, self._scoped(scope), where), scope.frame, select)
        made = groups.run(self.gateway, rows, lambda text: self._kind(text, scope, select))
        if made is None:
            return None
        query = SqlText.of(self._prefix(select.items[0][0]), groups.select(select, self.tokens, self._text))
        try:
            return self.gateway.sql(query, {"__groups": made}), groups.tells_apart(select, self.tokens, made)
        except WindrowError:  # reads its groups in a way that only Spark understands
            return None

    def _pieces(
        self, select: Select, scope: Scope, keys: list[SqlText], where: SqlText
    ) -> tuple[DataFrame, Rows]:
        """The rows of the groups, and the groups by Spark: every row once for each piece of its time."""
        names = [f"__g{number}" for number in range(len(keys))]
        listed = [SqlText.of(", ", text, f" AS {name}") for name, text in zip(names, keys, strict=True)]
        query = SqlText.of(f"SELECT {ROWS}.*", *listed, " FROM ", self._scoped(scope), where)
        rows = self._sql(query, scope.frame, select)
        if not can_be_keyed(rows):
            raise Unplanned("columns that a group cannot carry")
        given = StructType([field for field in rows.schema if field.name not in (ENTER, LEAVE)])
        pieces = run_keyed(self.gateway, "expand", [rows], names, given)
        inner = Scope(pieces.drop(*names), scope.parts, varies=True)
        times = f"{ROWS}.{ENTER}, {ROWS}.{LEAVE}"
        written = self._text(select.group_by) if select.group_by is not None else None
        group_by = SqlText.of(times) if written is None else SqlText.of(written, f", {times}")
        return rows, self._last(select, inner, where=None, group_by=group_by)

    def _with_empty(self, select: Select, scope: Scope, rows: DataFrame, found: Rows) -> Rows:
        """Without GROUP BY there is a row also while nothing is there, from the log's first instant on."""
        origin = self._origin()
        if origin is None:
            return found
        nothing = Scope(
            rows.limit(0).select(*(c for part in scope.parts for c in part.columns)),
            scope.parts,
            varies=False,
        )
        empty = self._last(select, nothing, where=None)
        times = run_keyed(self.gateway, "gaps", [rows.select(ENTER, LEAVE)], [], StructType([]), origin)
        all_of_time = [(origin, NEVER)]
        none = self.gateway.spark.createDataFrame(all_of_time, f"{ENTER} bigint, {LEAVE} bigint")
        # where there are no rows at all, no task says so
        times = times.unionAll(none.join(rows.select(F.lit(1).alias("__one")).limit(1), how="left_anti"))
        return Rows(found.frame.unionAll(empty.frame.crossJoin(times)), found.names, varies=True)

    def _origin(self) -> int | None:
        if self.gateway.plan_only:
            return 0
        firsts = [ends[0] for item in self.inputs.values() if (ends := item.ends) is not None]
        return min(firsts, default=None)

    def _group_keys(self, select: Select, scope: Scope) -> list[tuple[Range, SqlText]]:
        """The expressions of GROUP BY, and where they stand, be it in SELECT for numbers and aliases."""
        tokens = self.tokens
        assert select.group_by is not None
        start, stop = select.group_by
        words = {tokens.word(at) for at in tokens.level(start, stop)}
        if tokens.word(start) == "ALL" or words & {"ROLLUP", "CUBE", "GROUPING", "WITH"}:
            raise Unplanned("this form of GROUP BY")
        keys = []
        for first, last in tokens.split(start, stop):
            key = (first, last)
            if last - first == 1 and tokens[first].kind is Kind.NUMBER and tokens[first].text.isdigit():
                number = int(tokens[first].text)
                if not 1 <= number <= len(select.items):
                    raise Unplanned("a number in GROUP BY that is of no item")
                key = self._expression(select, scope, select.items[number - 1])
            elif not self._is_expression(select, scope, key):
                name = tokens[first].name.lower() if last - first == 1 and tokens[first].is_name else None
                named = [item for item in select.items if name and alias_of(tokens, item) == name]
                if not named:
                    raise Unplanned("a key of GROUP BY that is no expression")
                key = self._expression(select, scope, named[0])
            keys.append((key, self._text(key)))
        return keys

    def _expression(self, select: Select, scope: Scope, item: Range) -> Range:
        """An item of SELECT without its alias."""
        for key in (item, without_alias(self.tokens, item)):
            if self._is_expression(select, scope, key):
                return key
        raise Unplanned("an item of SELECT in GROUP BY")

    def _is_expression(self, select: Select, scope: Scope, key: Range) -> bool:
        try:
            # with an alias it would be no expression in brackets
            self._kind(SqlText.of("(", self._text(key), ")"), scope, select)
        except WindrowError:
            return False
        return True

    # -- set operators -------------------------------------------------------------------------------

    def _set_operation(self, operation: SetOperation) -> Rows:
        left, right = self._shape(operation.left), self._shape(operation.right)
        if not left.varies and not right.varies:
            raise Unplanned("a set operator over tables")
        sides = [self._varying(side) for side in (left, right)]
        if len(left.names) != len(right.names):
            raise Unplanned("sides of a set operator with other numbers of columns")
        both = SqlText.of("SELECT * FROM ", Relation("l"), " UNION ALL SELECT * FROM ", Relation("r"))
        union = self.gateway.sql(both, {"l": sides[0].frame, "r": sides[1].frame})
        if operation.operator == "union" and operation.all:
            return Rows(union, left.names, varies=True)
        # both sides in the types that Spark gives their union
        cast = [Rows(_as(side.frame, union.schema), left.names, varies=True) for side in sides]
        operator = operation.operator + (" all" if operation.all else "")
        return self._counted(operator, cast)

    def _counted(self, operator: str, sides: Sequence[Rows]) -> Rows:
        frames = [side.frame for side in sides]
        if not all(map(can_be_keyed, frames)):
            raise Unplanned("columns that are not compared")
        columns = frames[0].columns[:-2]
        result = StructType(
            [StructField(field.name, field.dataType) for field in frames[0].schema.fields[:-2]]
        )
        return Rows(run_keyed(self.gateway, operator, frames, columns, result), sides[0].names, varies=True)

    # -- what varies ---------------------------------------------------------------------------------

    def _varying(self, rows: Rows) -> Rows:
        """Rows of a table are there from the log's first instant on."""
        if rows.varies:
            return rows
        origin = self._origin()
        frame = rows.frame.withColumns(
            {ENTER: F.lit(origin or 0).cast("bigint"), LEAVE: F.lit(NEVER).cast("bigint")}
        )
        return Rows(frame if origin is not None else frame.limit(0), rows.names, varies=True)


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


def _compares_columns(expression: Expression) -> bool:
    return isinstance(expression, Operation) and all(isinstance(part, Name) for part in expression.operands)


def _conjuncts(expression: Expression) -> list[Expression]:
    if isinstance(expression, Operation) and expression.operator == "AND":
        return [part for operand in expression.operands for part in _conjuncts(operand)]
    return [expression]
