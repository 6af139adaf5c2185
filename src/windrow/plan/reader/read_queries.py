"""Queries: SELECTs, set operators, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from windrow.algebra.continuous import Query, Reader
from windrow.algebra.rewriting.windows_in_text import windows_in
from windrow.kernels.sorting import SortKey
from windrow.plan.columns import Column, Scope
from windrow.plan.nodes import Distinct, Filter, Node, Project, SetOperation, Sort, TimeWindows
from windrow.plan.reader.groups import grouped, is_grouped, read_of_rows
from windrow.plan.reader.pieces import framed_pieces, grouped_pieces, whole_pieces
from windrow.plan.reader.query_rows import BlockRows, cast, filtered, passed, renamed
from windrow.plan.reader.read_over import named_in, over_of, with_windows
from windrow.plan.reader.reader_state import KnownNames, ReaderState
from windrow.plan.reader.select import each, place_of, visible_names
from windrow.plan.reader.sessions import session_lengths, sessions
from windrow.plan.reader.sources import from_where, relation_of
from windrow.plan.reader.statement_text import Analyser, NotAnalysed, StatementText, UnreadError
from windrow.plan.reader.subqueries_as_joins import unnested
from windrow.plan.reader.ways import instead, or_instead
from windrow.plan.reasons import Reason
from windrow.syntax.expression_nodes import Name
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.order_by import order_at, order_item
from windrow.syntax.queries import (
    FromItem,
    OrderedBlock,
    Select,
    Shape,
    parse_query,
    parse_select,
)
from windrow.syntax.queries import SetOperationText as SetShape
from windrow.syntax.select_list import alias_of, without_alias
from windrow.syntax.sqltext import SqlText

__all__ = ["QueryReader"]

_NAMES = ("UNRESOLVED_COLUMN", "AMBIGUOUS_REFERENCE")
_ANY = ""


class QueryReader:
    """Reads the queries of one statement into plans.

    Parameters
    ----------
    reader
        The statement.
    analyser, known
        Spark's analysis of texts, and the meaning of names.
    numbers
        As for :class:`StatementText`: the plan of a view continues the numbers of the query that reads it.
    path
        The views through which the statement is read.
    of_windows
        Whether a stream without a window is one of an instant, as of ``[NOW]``.
    """

    def __init__(
        self,
        reader: Reader,
        analyser: Analyser,
        known: KnownNames,
        numbers: list[int] | None = None,
        path: str = "",
        *,
        of_windows: bool = False,
    ) -> None:
        self.statement = StatementText(reader, analyser, numbers)
        self.tokens = reader.tokens
        self._reading = ReaderState(
            self.statement,
            known,
            self.query,
            self._shape,
            self._bracket,
            self._united,
            self._bounds,
            from_where,
            unnested,
            self._inside,
            self.relation,
            path=path,
            of_windows=of_windows,
        )

    def whole(self, start: int, stop: int, names: Sequence[str] | None = None) -> Node | Reason:
        """The plan of a whole query with its ORDER BY, or the reason why it has none; with `names`, of these
        columns.
        """
        return self.statement.attempt(lambda: self._whole(start, stop, names))

    def _whole(self, start: int, stop: int, names: Sequence[str] | None) -> Node:
        body = self.statement.reader.after_with(start, stop)
        order = order_at(self.tokens, body, stop)
        shape = parse_query(self.tokens, body, stop, wholly=True)
        items: Sequence[OrderItem] = ()
        bounds: tuple[int, int | None] = 0, None
        if isinstance(shape, OrderedBlock):
            items, bounds, stop = shape.order, self._bounds(shape), _tail(shape)
            order = _head(shape) if order is None else order
            shape = shape.query
        elif order is not None:
            items = [order_item(self.tokens, item) for item in self.tokens.split(order + 2, stop)]
        node, keys, _ = self._with_keys(shape, items)
        if keys or bounds != (0, None):
            node = self._sorted(node, keys, (order or 0, stop), bounds)
        visible = names or [column.name for column in node.columns]
        ids = [column.id for column in node.columns[: len(visible)]]
        return renamed(self.statement, node, visible, "rows given", ids)

    def relation(self, query: Query) -> Node | Reason:
        """The plan of a relation in a statement, whose order does not matter, or the reason why it
        has none.
        """
        found = self.statement.attempt(
            lambda: self._planned(lambda: self._relation(query), lambda: query.text, query.tokens), *_NAMES
        )
        if isinstance(found, NotAnalysed):
            return Reason(found.what, query.tokens, "write the relation before it, as in t.x")
        return found

    def _relation(self, query: Query) -> Node:
        start = self.statement.reader.after_with(*query.tokens) if query.items is None else query.items[0]
        self._reading.outside = frozenset({self.tokens.parent[start]})
        if query.items is not None:
            return self.query(parse_select(self.tokens, query.items, *query.rest))
        start, stop = query.tokens
        if stop - start == 1:
            return relation_of(self._reading, FromItem((start, stop), None, ())).node
        return self.query(self._shape(query.tokens))

    def _bracket(self, stretch: Range) -> Node:
        """The plan of a query in brackets, or of a named one."""
        return self._planned(
            lambda: self.query(self._shape(stretch)),
            lambda: SqlText.of(
                self.statement.reader.with_list(stretch[0], stretch), self.statement.reader.text(*stretch)
            ),
            stretch,
        )

    def _shape(self, stretch: Range) -> Shape:
        """The parsed shape of a query, which may have its own WITH list."""
        start, stop = stretch
        while self.tokens.is_symbol(start, "(") and self.tokens.partner[start] == stop - 1:
            start, stop = start + 1, stop - 1
        body = self.statement.reader.after_with(start, stop)
        return parse_query(self.tokens, body, stop, wholly=True)

    def _planned(self, read: Callable[[], Node], text: Callable[[], SqlText], at: Range) -> Node:
        """The plan that is read from a query; if it has no nodes, that of its text in each interval."""
        # a name that Spark does not know may be one of the outer query
        return or_instead(
            self.statement, read, lambda why: whole_pieces(self._reading, text(), at, why), *_NAMES
        )

    def query(self, shape: Shape) -> Node:
        """The plan of a query inside another."""
        if isinstance(shape, OrderedBlock):
            bounds = self._bounds(shape)
            first = shape.order[0].expression[0] - 2 if shape.order else _head(shape)
            node, keys, visible = self._with_keys(shape.query, shape.order)
            node = self._sorted(node, keys, (first, _tail(shape)), bounds)
            columns = node.columns[:visible]
            names, ids = [one.name for one in columns], [one.id for one in columns]
            return renamed(self.statement, node, names, "columns", ids)
        return self._set(shape) if isinstance(shape, SetShape) else self._with_keys(shape, [])[0]

    def _inside(self, reader: Reader, path: str) -> ReaderState:
        """A reader for the text of a view, whose columns belong to the same plan."""
        statement = self.statement
        reading = self._reading
        inside = QueryReader(
            reader, statement.analyser, reading.known, statement.numbers, path, of_windows=reading.of_windows
        )
        return inside._reading

    # -- SELECTs --------------------------------------------------------------------------------------

    def _with_keys(self, shape: Shape, items: Sequence[OrderItem]) -> tuple[Node, list[SortKey], int]:
        """The rows of a query, and its sort keys: its own columns, or hidden ones after this count."""
        if not isinstance(shape, Select):
            node = self.query(shape)
            return node, [self._sort_key(node, item) for item in items], len(node.columns)
        lengths = session_lengths(shape)
        if lengths is not None:
            node = self._timed(shape, sessions(self.statement, shape, lengths, self.query))
            return node, [self._sort_key(node, item) for item in items], len(node.columns)
        return self._one_select(shape, items)

    def _one_select(self, shape: Select, items: Sequence[OrderItem]) -> tuple[Node, list[SortKey], int]:
        """A SELECT, with or without FROM."""
        rows, conditions = from_where(self._reading, shape)
        if is_grouped(self.tokens, shape):
            rows = unnested(self._reading, shape, rows, read_of_rows(self.statement, shape, rows))
            return self._grouped(shape, rows, conditions, items)
        rows = unnested(self._reading, shape, rows, _of_list(shape))
        found = self.statement.attempt(lambda: self._each(shape, rows, conditions, items), "MISSING_GROUP_BY")
        if isinstance(found, NotAnalysed):  # an aggregate that only Spark knows
            return self._grouped(shape, rows, conditions, items)
        if not isinstance(found, Reason):
            return found

        def framed(why: Reason) -> tuple[Node, list[SortKey], int] | None:
            if over_of(self.statement, shape) is None:
                return None
            wider, hidden = self._with_hidden(shape, items)
            node = framed_pieces(self.statement, wider, rows, conditions, why)
            return None if node is None else self._with_sort_keys(shape, node, items, hidden)

        return instead(self.statement, found, framed)

    def _each(
        self, select: Select, rows: BlockRows, conditions: Sequence[Range], items: Sequence[OrderItem]
    ) -> tuple[Node, list[SortKey], int]:
        """SELECT without groups."""
        if over_of(self.statement, select) is not None:
            rows = with_windows(self._reading, select, rows, conditions)
        else:
            rows = filtered(self.statement, rows, conditions, "WHERE")
        hidden = []
        if not select.distinct and items:
            hidden = self._hidden(select, items, visible_names(self.statement, select, rows))
        node: Node = each(self.statement, select, rows, [item.expression for item in hidden])
        node = self._distinct(node) if select.distinct else self._timed(select, node)
        return node, *self._keys(node, items, hidden)

    def _grouped(
        self, select: Select, rows: BlockRows, conditions: Sequence[Range], items: Sequence[OrderItem]
    ) -> tuple[Node, list[SortKey], int]:
        """SELECT with groups."""
        wider, hidden = self._with_hidden(select, items)
        return self._with_sort_keys(select, self._groups(wider, rows, conditions), items, hidden)

    def _with_hidden(self, select: Select, items: Sequence[OrderItem]) -> tuple[Select, Sequence[OrderItem]]:
        """A SELECT with the expressions of ORDER BY added after its own columns, and those elements."""
        visible = [self._group_name(item) for item in select.items]
        hidden = [] if select.distinct else self._hidden(select, items, visible)
        return replace(select, items=(*select.items, *(item.expression for item in hidden))), hidden

    def _with_sort_keys(
        self, select: Select, node: Node, items: Sequence[OrderItem], hidden: Sequence[OrderItem]
    ) -> tuple[Node, list[SortKey], int]:
        """The rows of such a SELECT, and its sort keys."""
        node = self._distinct(node) if select.distinct else node
        return node, *self._keys(node, items, hidden)

    def _hidden(self, select: Select, items: Sequence[OrderItem], visible: Sequence[str]) -> list[OrderItem]:
        """The elements of ORDER BY that are not columns of SELECT."""
        hidden = [item for item in items if place_of(self.tokens, visible, item) is None]
        for item in hidden:
            self._refuse_renamed(select, item.expression)
        return hidden

    def _keys(
        self, node: Node, items: Sequence[OrderItem], hidden: Sequence[OrderItem]
    ) -> tuple[list[SortKey], int]:
        """The sort keys, of which the `hidden` columns follow so many others."""
        first = len(node.columns) - len(hidden)
        keys = [
            _key(node.columns[first + hidden.index(item)], item)
            if item in hidden
            else self._sort_key(node, item)
            for item in items
        ]
        return keys, first

    def _timed(self, select: Select, node: Node) -> Node:
        """The rows with time windows, for a SELECT that adds them."""
        found = windows_in(self.tokens, select)
        if found is None:
            return node
        below = node
        while not isinstance(below, Filter):  # which leaves out rows without a time
            (below,) = below.inputs
        rows = below.input
        columns = {column.name.lower(): column.id for column in rows.columns}
        if len(columns) < len(rows.columns):
            return node
        keys = tuple(columns[key.lower()] for key in found.keys)
        time = columns[found.time.lower()]
        return TimeWindows(node, rows, found.kind, found.lengths, time, keys)

    def _groups(self, select: Select, rows: BlockRows, conditions: Sequence[Range]) -> Node:
        """A grouped SELECT, possibly with OVER."""
        found = self.statement.attempt(lambda: self._known_groups(select, rows, conditions), _ANY)
        if isinstance(found, NotAnalysed):
            place = over_of(self.statement, select) or select.group_by
            found = Reason("an expression over groups that only Spark evaluates", place)
        if not isinstance(found, Reason):
            return found
        return instead(
            self.statement, found, lambda why: grouped_pieces(self.statement, select, rows, conditions, why)
        )

    def _known_groups(self, select: Select, rows: BlockRows, conditions: Sequence[Range]) -> Node:
        """SELECT over the columns of keys and aggregates."""
        groups = grouped(self.statement, select, rows, conditions)
        if select.having is not None:
            having = [select.having]
            groups = unnested(self._reading, select, groups, having, is_condition=True)
            named_in(self.statement, select, select.having, groups)
            groups = filtered(self.statement, groups, having, "HAVING")
        groups = unnested(self._reading, select, groups, _of_list(select))
        if over_of(self.statement, select) is not None:
            groups = with_windows(self._reading, select, groups, [])
        node = each(self.statement, select, groups, [])
        names = [self._group_name(item) for item in select.items]
        outputs = [(column.named(name), one) for name, (column, one) in zip(names, node.outputs, strict=True)]
        return replace(node, outputs=tuple(outputs))

    def _group_name(self, item: Range) -> str:
        """The name of a column of a grouped SELECT, as far as it is known without the rows."""
        bare = without_alias(self.tokens, item)
        last = self.tokens[item[1] - 1]
        named = bare != item or isinstance(parse_expression(self.tokens, *bare), Name)
        return last.name if named and last.is_name else self.statement.written(item)

    def _distinct(self, node: Node) -> Node:
        return Distinct(node, f"DISTINCT {', '.join(column.name for column in node.columns)}")

    # -- set operators -------------------------------------------------------------------------------

    def _set(self, operation: SetShape) -> Node:
        return self._united(operation, self.query(operation.left), self.query(operation.right))

    def _united(self, operation: SetShape, left: Node, right: Node) -> Node:
        kinds = [field.dataType for field in self.statement.analyser.union(left.columns, right.columns)]
        sides = [self._as(side, kinds) for side in (left, right)]
        operator: str = operation.operator
        return SetOperation(sides[0], sides[1], operator, operation.all, sides[0].columns)  # type: ignore[arg-type]

    def _as(self, node: Node, kinds: Sequence[object]) -> Node:
        """The columns cast to the types of a union."""
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
        written = self.statement.written((at[0] + 2, at[1])) if keys else self.statement.written(at)
        label = f"ORDER BY {written}" if keys else written
        return Sort(node, tuple(keys), *bounds, label, at)

    def _sort_key(self, node: Node, item: OrderItem) -> SortKey:
        place = place_of(self.tokens, [column.name for column in node.columns], item)
        if place is None:
            what = f"ORDER BY {self.statement.written(item.expression)}, which the query does not return,"
            raise UnreadError(what, item.expression, "select it, and order by its name")
        return _key(node.columns[place], item)

    def _refuse_renamed(self, select: Select, expression: Range) -> None:
        """Refuse an expression over an alias of SELECT that is also the name of another column."""
        tokens, renamed = self.tokens, set()
        aliases = {source.alias.lower() for source in select.source if source.alias}
        for item in select.items:
            item_tree = parse_expression(tokens, *without_alias(tokens, item))
            path = [part.lower() for part in item_tree.parts] if isinstance(item_tree, Name) else [""]
            name = alias_of(tokens, item) or path[-1]
            if path[-1] != name or not (len(path) == 1 or (len(path) == 2 and path[0] in aliases)):
                renamed.add(name)
        for at in range(*expression):
            is_bare = not tokens.is_symbol(at - 1, ".") and not any(
                tokens.is_symbol(at + 1, mark) for mark in (".", "(", ":")
            )
            if tokens[at].is_name and tokens[at].name.lower() in renamed and is_bare:
                what = "ORDER BY of an expression with an alias of SELECT"
                raise UnreadError(what, expression, "select it, and order by its name")

    def _bounds(self, shape: OrderedBlock) -> tuple[int, int | None]:
        """OFFSET and LIMIT of a query."""
        limit = None if shape.limit is None else self._count(shape.limit)
        return 0 if shape.offset is None else self._count(shape.offset) or 0, limit

    def _count(self, stretch: Range) -> int | None:
        """The value of LIMIT or OFFSET; None for ALL."""
        start, stop = stretch
        if stop - start == 1 and self.tokens.word(start) == "ALL":
            return None
        text = self.tokens.text(*stretch)
        if stop - start == 1 and text.isdigit():
            return int(text)
        value = self.statement.analyser.value(self.statement.text(stretch))
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise UnreadError("LIMIT or OFFSET by a value that is not a whole number", stretch)
        return value


def _of_list(select: Select) -> list[Range]:
    """The items of SELECT, and the windows that they name."""
    return [*select.items, *([] if select.window is None else [select.window])]


def _head(shape: OrderedBlock) -> int:
    """The token at which LIMIT or OFFSET begins."""
    return min(stretch[0] for stretch in (shape.limit, shape.offset) if stretch is not None) - 1


def _tail(shape: OrderedBlock) -> int:
    """The token at which LIMIT and OFFSET end."""
    return max(stretch[1] for stretch in (shape.limit, shape.offset) if stretch is not None)


def _key(column: Column, item: OrderItem) -> SortKey:
    return SortKey(column.id, item.descending, item.nulls_first)
