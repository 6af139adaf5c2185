"""Queries: blocks, set operators, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.algebra.continuous import Query, Reader
from windrow.errors import AnalysisError
from windrow.kernels.sorting import SortKey
from windrow.plan.columns import Column, Scope
from windrow.plan.nodes import Distinct, Node, Project, SetOperation, Sort
from windrow.plan.reader.groups import grouped, is_grouped
from windrow.plan.reader.over import named_in, over_of, with_windows
from windrow.plan.reader.rows import Rows, cast, filtered, passed, renamed
from windrow.plan.reader.select import each, shown_names
from windrow.plan.reader.sessions import session_lengths, sessions
from windrow.plan.reader.sources import Known, Reading, from_where
from windrow.plan.reader.statement import Analyser, NotPlannedError, Statement
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.ordering import order_item
from windrow.syntax.queries import Ordered, Select, Shape, parse_query, parse_select
from windrow.syntax.queries import SetOperation as SetShape
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import Kind, TokenList

__all__ = ["QueryReader", "order_at"]


def order_at(tokens: TokenList, start: int, stop: int) -> int | None:
    """Where the ORDER BY of a whole query stands."""
    level = [at for at in tokens.level(start, stop) if not tokens.is_symbol(at - 1, ".")]
    return next((at for at in level if tokens.word(at) == "ORDER" and tokens.word(at + 1) == "BY"), None)


class QueryReader:
    """Reads the queries of one statement into plans.

    Parameters
    ----------
    reader
        The statement.
    analyser, known
        What Spark says of texts, and what names stand for.
    numbers
        As :class:`Statement` has them: the plan of a view goes on with those of the query that reads it.
    """

    def __init__(
        self, reader: Reader, analyser: Analyser, known: Known, numbers: list[int] | None = None
    ) -> None:
        self.statement = Statement(reader, analyser, numbers)
        self.tokens = reader.tokens
        self._reading = Reading(self.statement, known, self.query, self._inside)

    def whole(self, start: int, stop: int, names: Sequence[str] | None = None) -> Node:
        """The plan of a whole query, with its ORDER BY; of its columns those that have `names`.

        Raises
        ------
        NotPlannedError, UnknownShapeError
            Saying what of it has no plan.
        """
        body = self.statement.reader.after_with(start, stop)
        order = order_at(self.tokens, body, stop)
        shape = parse_query(self.tokens, body, stop)
        items: Sequence[OrderItem] = ()
        bounds: tuple[int, int | None] = 0, None
        if isinstance(shape, Ordered):
            items, bounds, stop = shape.order, self._bounds(shape), _tail(shape)
            shape = shape.query
        elif order is not None:
            items = [order_item(self.tokens, item) for item in self.tokens.split(order + 2, stop)]
        node, keys, _ = self._with_keys(shape, items)
        if keys:
            node = self._sorted(node, keys, (order or 0, stop), bounds)
        shown = names or [column.name for column in node.columns]
        ids = [column.id for column in node.columns[: len(shown)]]
        return renamed(self.statement, node, shown, "rows given", ids)

    def relation(self, query: Query) -> Node:
        """The plan of a relation in a statement, of which order does not matter.

        Raises
        ------
        NotPlannedError, UnknownShapeError
            Saying what of it has no plan.
        """
        if query.items is not None:
            return self.query(parse_select(self.tokens, query.items, *query.rest))
        start, stop = query.tokens
        if stop - start == 1:
            raise NotPlannedError("a relation by its name", (start, stop))
        return self.query(parse_query(self.tokens, self.statement.reader.after_with(start, stop), stop))

    def query(self, shape: Shape) -> Node:
        """The plan of a query inside of another."""
        if isinstance(shape, Ordered):
            bounds, (first, _) = self._bounds(shape), shape.order[0].expression
            node, keys, shown = self._with_keys(shape.query, shape.order)
            node = self._sorted(node, keys, (first - 2, _tail(shape)), bounds)
            columns = node.columns[:shown]
            names, ids = [one.name for one in columns], [one.id for one in columns]
            return renamed(self.statement, node, names, "columns", ids)
        return self._set(shape) if isinstance(shape, SetShape) else self._with_keys(shape, [])[0]

    def _inside(self, reader: Reader) -> Reading:
        """Reads the text of a view, whose columns are of the same plan."""
        statement = self.statement
        inside = QueryReader(reader, statement.analyser, self._reading.known, statement.numbers)
        return inside._reading

    # -- blocks --------------------------------------------------------------------------------------

    def _with_keys(self, shape: Shape, items: Sequence[OrderItem]) -> tuple[Node, list[SortKey], int]:
        """The rows of a query, and the columns of ORDER BY: its own, or further ones after so many."""
        if not isinstance(shape, Select):
            node = self.query(shape)
            return node, [self._sort_key(node, item) for item in items], len(node.columns)
        lengths = session_lengths(shape)
        if lengths is not None:
            node = sessions(self.statement, shape, lengths, self.query)
            return node, [self._sort_key(node, item) for item in items], len(node.columns)
        rows, conditions = from_where(self._reading, shape)
        if is_grouped(self.tokens, shape):
            node = self._groups(shape, rows, conditions)
            node = self._distinct(node) if shape.distinct else node
            return node, [self._sort_key(node, item) for item in items], len(node.columns)
        if over_of(self.statement, shape) is not None:
            rows = with_windows(self.statement, shape, rows, conditions)
        else:
            rows = filtered(self.statement, rows, conditions, "WHERE")
        hidden = []
        if not shape.distinct and items:
            shown = shown_names(self.statement, shape, rows)
            hidden = [item for item in items if self._place_of(shown, item) is None]
        node = each(self.statement, shape, rows, [item.expression for item in hidden])
        node = self._distinct(node) if shape.distinct else node
        first = len(node.columns) - len(hidden)
        keys = [
            _key(node.columns[first + hidden.index(item)], item)
            if item in hidden
            else self._sort_key(node, item)
            for item in items
        ]
        return node, keys, first

    def _groups(self, select: Select, rows: Rows, conditions: Sequence[Range]) -> Node:
        """SELECT with groups, of which it may look at several by OVER."""
        over = over_of(self.statement, select)
        try:
            groups = grouped(self.statement, select, rows, conditions)
            if select.having is not None:
                named_in(self.statement, select, select.having, groups)
                groups = filtered(self.statement, groups, [select.having], "HAVING")
            if over is not None:
                groups = with_windows(self.statement, select, groups, [])
            node = each(self.statement, select, groups, [])
        except AnalysisError:
            place = over or select.group_by
            raise NotPlannedError("an expression over groups that only Spark understands", place) from None
        names = [self._group_name(item) for item in select.items]
        outputs = [(column.named(name), one) for name, (column, one) in zip(names, node.outputs, strict=True)]
        return Project(node.input, node.scope, tuple(outputs), node.listed, node.label)

    def _group_name(self, item: Range) -> str:
        """The name of a column of a block with groups, as far as it can be known without the rows."""
        bare = without_alias(self.tokens, item)
        last = self.tokens[item[1] - 1]
        named = bare != item or isinstance(parse_expression(self.tokens, *bare), Name)
        return last.name if named and last.is_name else self.statement.written(item)

    def _distinct(self, node: Node) -> Node:
        return Distinct(node, f"DISTINCT {', '.join(column.name for column in node.columns)}")

    # -- set operators -------------------------------------------------------------------------------

    def _set(self, operation: SetShape) -> Node:
        left, right = self.query(operation.left), self.query(operation.right)
        if len(left.columns) != len(right.columns):
            raise NotPlannedError("sides of a set operator with other numbers of columns")
        kinds = [field.dataType for field in self.statement.analyser.union(left.columns, right.columns)]
        sides = [self._as(side, kinds) for side in (left, right)]
        operator: str = operation.operator
        return SetOperation(sides[0], sides[1], operator, operation.all, sides[0].columns)  # type: ignore[arg-type]

    def _as(self, node: Node, kinds: Sequence[object]) -> Node:
        """The columns in the types of a union."""
        names = [column.name for column in node.columns]
        if [column.type for column in node.columns] == [*kinds]:
            return renamed(self.statement, node, names, "columns")
        outputs = []
        ids = self.statement.fresh(len(names))
        for made, column, kind in zip(ids, node.columns, kinds, strict=True):
            if column.type == kind:
                ((_, own),) = passed([column])
                outputs.append((Column(made, column.name, column.type), own))
            else:
                outputs.append(cast(self.statement, column, kind, made, is_beside=False))  # type: ignore[arg-type]
        whole = SqlText.join(", ", [SqlText.of(one.text, f" AS {column.id}") for column, one in outputs])
        return Project(node, Scope(), tuple(outputs), whole, "columns")

    # -- ORDER BY ------------------------------------------------------------------------------------

    def _sorted(self, node: Node, keys: Sequence[SortKey], at: Range, bounds: tuple[int, int | None]) -> Node:
        label = f"ORDER BY {self.statement.written((at[0] + 2, at[1]))}"
        return Sort(node, tuple(keys), *bounds, label, at)

    def _sort_key(self, node: Node, item: OrderItem) -> SortKey:
        place = self._place_of([column.name for column in node.columns], item)
        if place is None:
            what = f"ORDER BY {self.statement.written(item.expression)}, which the query does not give,"
            raise NotPlannedError(what, item.expression, "select it, and order by its name")
        return _key(node.columns[place], item)

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
        """How many rows of an order are left out, and how many come then.

        Without an order it would be any rows, and others whenever the query is run.
        """
        what, stretch = ("OFFSET", shape.offset) if shape.limit is None else ("LIMIT", shape.limit)
        if not shape.order:
            place = None if stretch is None else (stretch[0] - 1, stretch[1])
            raise NotPlannedError(f"{what} without ORDER BY", place)
        limit = None if shape.limit is None else self._count(shape.limit)
        return 0 if shape.offset is None else self._count(shape.offset) or 0, limit

    def _count(self, stretch: Range) -> int | None:
        """The value of LIMIT or OFFSET; None for ALL."""
        start, stop = stretch
        if stop - start == 1 and self.tokens.word(start) == "ALL":
            return None
        text = self.tokens.text(*stretch)
        if stop - start > 1 or not text.isdigit():
            raise NotPlannedError("a number of rows that is computed", stretch)
        return int(text)


def _tail(shape: Ordered) -> int:
    """Where LIMIT and OFFSET end."""
    return max(stretch[1] for stretch in (shape.limit, shape.offset) if stretch is not None)


def _key(column: Column, item: OrderItem) -> SortKey:
    return SortKey(column.id, item.descending, item.nulls_first)
