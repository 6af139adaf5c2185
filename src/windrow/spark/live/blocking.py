"""Reads queries over whole streams: their blocks become operators over punctuated streams.

Windows bound what a query keeps by time. Without them, groups, joins, DISTINCT, set operators and ORDER BY
wait for what the streams promise: a :class:`~windrow.kernels.punctuated.flow.Flow`. What the text computes of
rows Spark computes as they come (:mod:`windrow.spark.live.row_maps`), the rest is done by kernels. On the way
columns have names of ours, and no two blocks the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import StructType

from windrow.algebra.continuous import Query, Reader
from windrow.errors import NotSupportedError, Span
from windrow.kernels.punctuated import Project, SetOperator, Sort
from windrow.kernels.punctuated.flow import Flow, Node
from windrow.kernels.sorting import SortKey
from windrow.punctuations.lines import line_if_any
from windrow.spark.arrow import arrow_type
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.grouping import without_alias
from windrow.spark.live.block_groups import BlockGroups
from windrow.spark.live.block_nodes import Joined, Rows, is_bare
from windrow.spark.live.row_maps import RowMap
from windrow.spark.scope import ROWS, Unplanned
from windrow.syntax.expressions import Operation, parse_expression
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.ordering import order_item
from windrow.syntax.queries import (
    Ordered,
    Select,
    SetOperation,
    Shape,
    UnknownShapeError,
    parse_query,
)
from windrow.syntax.sqltext import Relation, SqlText
from windrow.syntax.tokens import Kind, TokenList

__all__ = ["Blocking", "Blocks", "blocking", "in_order_of", "is_blocking", "order_of"]


@dataclass(frozen=True)
class Blocking:
    """A query over whole streams.

    Attributes
    ----------
    flow
        Its operators; their inputs are streams by their names, and tables by keys.
    tables
        The queries of tables that stand beside the streams.
    names, result
        The columns of the query as it knows them, and as the flow does.
    origins
        Of columns of ours: the stream and its column that they pass on.
    followed
        Of those that are computed: the stream and its column of which they are, if they differ where it does.
    sorted_by
        The first key of ORDER BY, a column of ours, if it ascends.
    """

    flow: Flow
    tables: Mapping[str, SqlText]
    names: tuple[str, ...]
    result: StructType
    origins: Mapping[str, tuple[str, str]]
    followed: Mapping[str, tuple[str, str]]
    sorted_by: str | None

    @property
    def only_orders(self) -> bool:
        """Whether all that it keeps rows for is ORDER BY."""
        return all(isinstance(node.operator, Project | RowMap | Sort) for node in self.flow.nodes)


def order_of(tokens: TokenList, start: int, stop: int) -> int | None:
    """Where the ORDER BY of a whole query stands."""
    level = [at for at in tokens.level(start, stop) if not tokens.is_symbol(at - 1, ".")]
    return next((at for at in level if tokens.word(at) == "ORDER" and tokens.word(at + 1) == "BY"), None)


def is_blocking(gateway: Gateway, catalog: Catalog, reader: Reader, query: Query) -> bool:
    """Whether a query over streams without windows waits for what they promise, or only looks at each row."""
    tokens, (start, stop) = reader.tokens, query.tokens
    if not query.inputs or not all(is_bare(item) for item in query.inputs):
        return False
    body = reader.after_with(start, stop)
    if order_of(tokens, body, stop) is not None:
        return True
    try:
        return Blocks(gateway, reader, catalog).merged(parse_query(tokens, body, stop)) != len(query.inputs)
    except UnknownShapeError:
        return len(query.inputs) > 1


def blocking(
    gateway: Gateway, catalog: Catalog, reader: Reader, query: Query, names: Sequence[str]
) -> Blocking:
    """The operators of a query over streams without windows.

    Parameters
    ----------
    names
        Those of the query's columns.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM``: what no operator does.
    """
    try:
        return Blocks(gateway, reader, catalog).read(query, tuple(names))
    except (Unplanned, UnknownShapeError) as found:
        raise NotSupportedError(
            f"{found} over live streams without windows is not supported",
            condition="UNSUPPORTED_STREAM",
            sql=reader.tokens.sql,
            span=query.span if found.at is None else reader.tokens.span(*found.at),
            hint="run it over what was recorded: leave STREAM out",
        ) from None


def in_order_of(query: Blocking, column: int) -> Blocking:
    """The query whose rows come in the order of a column, and those that have none in the end."""
    by = query.result.names[column]
    sort = Sort((SortKey(by, nulls_first=False),))
    node = Node(f"in order of {query.names[column]}", sort, (len(query.flow.nodes) - 1,))
    return replace(query, flow=Flow((*query.flow.nodes, node)))


class Blocks(BlockGroups):
    """Reads the blocks of one query; takes what :class:`BlockNodes` does."""

    def merged(self, shape: Shape) -> int:
        """How many streams a query takes its rows from, looking at each row by itself; 0 if it does more."""
        if isinstance(shape, SetOperation):
            left, right = self.merged(shape.left), self.merged(shape.right)
            return left + right if shape.operator == "union" and shape.all and left and right else 0
        if not isinstance(shape, Select) or shape.distinct or self._over(shape) is not None:
            return 0
        if shape.group_by is not None or shape.having is not None or self._aggregates(shape):
            return 0
        varying = [one.source for one in shape.source if self._varies(one.source)]
        if len(varying) != 1:
            return 0
        ((start, stop),) = varying
        cte = self._cte(start) if stop - start == 1 and self.tokens[start].is_name else None
        if cte is not None or self.tokens.is_symbol(start, "("):
            return self.merged(parse_query(self.tokens, *(cte.body if cte is not None else (start, stop))))
        return 1

    def read(self, query: Query, names: tuple[str, ...]) -> Blocking:
        """The operators of a query."""
        start, stop = query.tokens
        body = self.reader.after_with(start, stop)
        order = order_of(self.tokens, body, stop)
        shape = parse_query(self.tokens, body, stop)
        items: Sequence[OrderItem] = ()
        bounds: tuple[int, int | None] = 0, None
        if isinstance(shape, Ordered):
            items, bounds, stop = shape.order, self._bounds(shape), _tail(shape)
            shape = shape.query
        elif order is not None:
            items = [order_item(self.tokens, item) for item in self.tokens.split(order + 2, stop)]
        rows, keys, _ = self._with_keys(shape, items)
        sorted_by = None
        if keys:
            rows = self._sorted(rows, keys, self.tokens.span(order or 0, stop), bounds)
            first = keys[0]
            sorted_by = None if first.descending else first.column
        shown = rows.columns[: len(names)]
        rows = self._project(rows, shown, [f"c{at}" for at in range(len(names))], names, "rows given")
        flow = Flow(tuple(self._found.nodes))
        found = self._found
        return Blocking(flow, found.tables, names, rows.kinds, found.origins, found.followed, sorted_by)

    # -- queries -------------------------------------------------------------------------------------

    def _rows_of(self, shape: Shape) -> Rows:
        if isinstance(shape, Ordered):
            bounds, (first, _) = self._bounds(shape), shape.order[0].expression
            rows, keys, shown = self._with_keys(shape.query, shape.order)
            rows = self._sorted(rows, keys, self.tokens.span(first - 2, _tail(shape)), bounds)
            return self._project(
                rows, rows.columns[:shown], self._fresh(shown), rows.names[:shown], "columns"
            )
        return self._set(shape) if isinstance(shape, SetOperation) else self._with_keys(shape, [])[0]

    def _with_keys(self, shape: Shape, items: Sequence[OrderItem]) -> tuple[Rows, list[SortKey], int]:
        """The rows of a query, and the columns of ORDER BY: its own, or further ones after so many."""
        if not isinstance(shape, Select):
            rows = self._rows_of(shape)
            return rows, [self._sort_key(rows, item) for item in items], len(rows.columns)
        lengths = self._session_lengths(shape)
        if lengths is not None:
            rows = self._sessions(shape, lengths)
            return rows, [self._sort_key(rows, item) for item in items], len(rows.columns)
        joined, conditions = self._from_where(shape)
        over, is_grouped = self._over(shape), self._is_grouped(shape)
        if over is not None and not is_grouped:
            joined, conditions = self._looked(shape, joined, conditions), []
        if is_grouped:
            rows = self._groups(shape, joined, conditions, over)
            rows = self._distinct(rows) if shape.distinct else rows
            return rows, [self._sort_key(rows, item) for item in items], len(rows.columns)
        hidden = []
        if not shape.distinct:
            shown = self._shown_names(shape, joined)
            hidden = [item for item in items if self._place_of(shown, item) is None]
        rows = self._each(shape, joined, conditions, [item.expression for item in hidden])
        rows = self._distinct(rows) if shape.distinct else rows
        first = len(rows.columns) - len(hidden)
        keys = []
        for item in items:
            if item in hidden:
                keys.append(_key(rows.columns[first + hidden.index(item)], item))
            else:
                keys.append(self._sort_key(rows, item))
        return rows, keys, first

    def _sort_key(self, rows: Rows, item: OrderItem) -> SortKey:
        place = self._place_of(rows.names, item)
        if place is None:
            raise self._refused(
                item.expression,
                f"ORDER BY {self._told(item.expression)}, which the query does not give,",
                "select it, and order by its name",
            )
        return _key(rows.columns[place], item)

    def _place_of(self, names: Sequence[str], item: OrderItem) -> int | None:
        """The column of the result that an element of ORDER BY names."""
        start, stop = item.expression
        token = self.tokens[start]
        if stop - start > 1:
            return None
        if token.kind is Kind.NUMBER and token.text.isdigit():
            return int(token.text) - 1 if 0 < int(token.text) <= len(names) else None
        found = [at for at, name in enumerate(names) if token.is_name and name.lower() == token.name.lower()]
        return found[0] if len(found) == 1 else None

    def _bounds(self, shape: Ordered) -> tuple[int, int | None]:
        """How many rows of an order are left out, and how many are given then.

        Without an order it would be any rows, and others whenever the query is run.
        """
        what, stretch = ("OFFSET", shape.offset) if shape.limit is None else ("LIMIT", shape.limit)
        place = None if stretch is None else (stretch[0] - 1, stretch[1])
        if not shape.order:
            raise Unplanned(f"{what} without ORDER BY", place)
        limit = None if shape.limit is None else self._count(shape.limit)
        return 0 if shape.offset is None else self._count(shape.offset) or 0, limit

    def _count(self, stretch: Range) -> int | None:
        """The value of LIMIT or OFFSET; None for ALL."""
        start, stop = stretch
        if stop - start == 1 and self.tokens.word(start) == "ALL":
            return None
        text = self.tokens.text(*stretch)
        if stop - start > 1 or not text.isdigit():
            raise Unplanned("a number of rows that is computed", stretch)
        return int(text)

    def _sorted(
        self, rows: Rows, keys: Sequence[SortKey], span: Span, bounds: tuple[int, int | None] = (0, None)
    ) -> Rows:
        for key in keys:
            kind = rows.kinds[key.column].dataType
            if line_if_any(arrow_type(kind)) is None:
                raise NotSupportedError(
                    f"ORDER BY a {kind.simpleString().upper()} over live streams is not supported",
                    condition="UNSUPPORTED_STREAM",
                    sql=self.tokens.sql,
                    span=span,
                    hint="order by numbers, times, booleans, strings or binaries",
                )
        told = f"ORDER BY {self._told((self.tokens_at(span.start) + 2, self.tokens_at(span.stop - 1) + 1))}"
        return replace(rows, place=self._add(told, Sort(tuple(keys), (), *bounds), rows.place))

    def tokens_at(self, place: int) -> int:
        """The token at a place of the text."""
        return next(at for at, token in enumerate(self.tokens.tokens) if token.start <= place < token.stop)

    def _distinct(self, rows: Rows) -> Rows:
        self._refuse_unordered(rows.kinds, "DISTINCT")
        shown = ", ".join(rows.names)
        return replace(rows, place=self._add(f"DISTINCT {shown}", SetOperator("distinct"), rows.place))

    def _set(self, operation: SetOperation) -> Rows:
        left, right = self._rows_of(operation.left), self._rows_of(operation.right)
        if len(left.names) != len(right.names):
            raise Unplanned("sides of a set operator with other numbers of columns")
        both = SqlText.of("SELECT * FROM ", Relation("l"), " UNION ALL SELECT * FROM ", Relation("r"))
        union = self.gateway.sql(both, {"l": self._frame(left), "r": self._frame(right)}).schema
        sides = [self._as(side, union) for side in (left, right)]
        name = operation.operator + (" all" if operation.all else "")
        if name != "union all":
            self._refuse_unordered(sides[0].kinds, name.upper())
        places = [side.place for side in sides]
        return replace(sides[0], place=self._add(name.upper(), SetOperator(name), *places))

    def _as(self, rows: Rows, union: StructType) -> Rows:
        """The columns in the types of a union."""
        made = self._fresh(len(rows.columns))
        wanted = [kind.dataType for kind in union]
        if [kind.dataType for kind in rows.kinds] == wanted:
            return self._project(rows, rows.columns, made, rows.names, "columns")
        cast = ", ".join(
            f"CAST({column} AS {kind.simpleString()}) AS {name}"
            for column, kind, name in zip(rows.columns, wanted, made, strict=True)
        )
        result = StructType()
        for name, kind in zip(made, wanted, strict=True):
            result = result.add(name, kind)
        same = zip(made, rows.columns, rows.kinds, wanted, strict=True)
        plain = [(name, column) for name, column, kind, other in same if kind.dataType == other]
        text = SqlText.of(f"SELECT {cast} FROM ", Relation(ROWS))
        going = [
            one
            for name, column, kind, other in zip(made, rows.columns, rows.kinds, wanted, strict=True)
            if kind.dataType != other
            for one in self._cast(name, column, other, Joined(rows, ()))
        ]
        return self._map(rows, text, ROWS, result, plain, rows.names, "columns", going)

    # -- SELECT --------------------------------------------------------------------------------------

    def _shown_names(self, select: Select, joined: Joined) -> tuple[str, ...]:
        scope = self._scope(joined)
        query = SqlText.of("SELECT ", self._items(select, scope), " FROM ", self._scoped(scope))
        return tuple(self._sql(query, scope.frame, select).columns)

    def _each(
        self, select: Select, joined: Joined, conditions: Sequence[Range], further: Sequence[Range]
    ) -> Rows:
        """SELECT without groups, with further columns after its own."""
        scope = self._scope(joined)
        items = [self._items(select, scope), *(self._text(item) for item in further)]
        listed = SqlText.join(", ", items)
        query = SqlText.of("SELECT ", listed, " FROM ", self._scoped(scope), self._where(conditions))
        found = self._sql(query, scope.frame, select)
        of_items = [self._item_sources(item, joined) for item in select.items]
        sources = [one for each in of_items for one in each]
        sources += [self._source_of(one, joined) for one in further]
        if len(sources) != len(found.columns):
            raise Unplanned("columns that are told in another way")
        made = self._fresh(len(found.columns))
        if not conditions and None not in sources:
            columns = [source for source in sources if source is not None]
            return self._project(joined.rows, columns, made, found.columns, "columns")
        result = found.toDF(*made).schema
        plain = [(name, source) for name, source in zip(made, sources, strict=True) if source is not None]
        prefixed = SqlText.of(self._prefix(select.items[0][0]), query)
        told = " AND ".join(map(self._told, conditions))
        name = f"WHERE {told}" if told else "expressions"
        own: list[Range | None] = []
        for item, columns_of in zip(select.items, of_items, strict=True):
            own += [None] * len(columns_of) if self._is_star(item) else [without_alias(self.tokens, item)]
        named = zip(made, [*own, *further], strict=True)
        each = [(column, expression) for column, expression in named if expression is not None]
        going = self._moved(joined, each)
        return self._map(joined.rows, prefixed, ROWS, result, plain, found.columns, name, going)

    def _is_star(self, item: Range) -> bool:
        """Whether an item of SELECT is all columns, or all but some."""
        if self.tokens.is_symbol(item[0], "*"):
            return True
        is_last = self.tokens.is_symbol(item[1] - 1, "*")
        return is_last and not isinstance(parse_expression(self.tokens, *item), Operation)

    def _item_sources(self, item: Range, joined: Joined) -> list[str | None]:
        """Of each column that an item of SELECT gives, the one that it passes on."""
        if not self._is_star(item):
            return [self._source_of(without_alias(self.tokens, item), joined)]
        start, stop = item
        is_bare_star = self.tokens.is_symbol(start, "*")
        alias = None if is_bare_star else self.tokens[start].name.lower()
        left_out = set()
        if is_bare_star and stop - start > 1:  # * EXCEPT (…)
            left_out = {
                self.tokens[at].name.lower() for at in range(start + 3, stop - 1) if self.tokens[at].is_name
            }
        return [
            column
            for part in joined.parts
            if alias in (None, part.alias.lower())
            for name, column in zip(part.names, part.columns, strict=True)
            if name.lower() not in left_out
        ]


def _tail(shape: Ordered) -> int:
    """Where LIMIT and OFFSET end."""
    return max(stretch[1] for stretch in (shape.limit, shape.offset) if stretch is not None)


def _key(column: str, item: OrderItem) -> SortKey:
    return SortKey(column, item.descending, item.nulls_first)
