"""The expressions of a query over a single row of a stream, read from its text.

A maximal expression over the columns of one relation in FROM, without aggregates, OVER and subqueries, is
computed from each row that passes those conditions of WHERE that are over the row alone. The relation is a
stream, a query that only filters and computes, or a row variable in a predicate of WINDOW BY or
MATCH_RECOGNIZE, which is computed from all rows. An expression after a branch of CASE or the like that
depends on other rows is excluded, and so is the output of these clauses for rows that they select: they may
never be computed. docs/limits.md says what is not read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from windrow.algebra.names import piece_of
from windrow.syntax.expression_nodes import Call, Expression, Literal, Name, OperationNode, names_in
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import BlockText, Range, Role
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.row_patterns import variables_of
from windrow.syntax.queries import (
    FromItem,
    OrderedBlock,
    Select,
    UnknownShapeError,
    conjuncts,
    parse_query,
    parse_select,
)
from windrow.syntax.query_parts import find_window_queries, is_set_operator, level_around
from windrow.syntax.select_list import alias_of, without_alias
from windrow.syntax.sqltext import RelationText, SqlText, quoted
from windrow.syntax.streams.emit_clause import parse_emission
from windrow.syntax.tokens import TokenList

__all__ = ["ROWS", "ComputedOfRow", "ExpressionAnalysis", "OfRows", "of_each_row"]

ROWS = "rows"
"""The key of the stream's rows in texts."""

_TIME_WINDOWS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
_CHOOSING = {"case", "case when", "if", "iff", "coalesce", "nvl", "nvl2", "ifnull", "nullif", "decode"}
_TRYING = ("try_", "is_")
_NOT_TRYING = ("try_sum", "try_avg")  # an argument that fails fails them


@dataclass(frozen=True)
class ComputedOfRow:
    """An expression, computed from rows for which all of these conditions are true, in this order."""

    text: str
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True)
class OfRows:
    """The expressions computed from the rows of a stream.

    Attributes
    ----------
    stream
        Its name.
    rows
        A relation with one row for each of them, and its name: in it `ROWS` stands for the stream.
    computed
        The expressions, each before those that have it as a condition.
    """

    stream: str
    rows: SqlText
    computed: tuple[ComputedOfRow, ...]


class ExpressionAnalysis(Protocol):
    """Spark's analysis of expressions."""

    def takes(self, stream: str, rows: SqlText, expression: str) -> bool:
        """Whether an expression can be computed from each row of a relation derived from a stream's rows."""

    def columns(self, stream: str | None, relation: SqlText) -> Sequence[str] | None:
        """The columns of a relation, which may be derived from a stream's rows; None if Spark does not know
        it.
        """


def of_each_row(
    tokens: TokenList,
    streams: Mapping[str, Sequence[str]],
    live: Mapping[str, str],
    context: ExpressionAnalysis,
    place: str,
) -> list[OfRows]:
    """The expressions of a text over a single row, those of inner queries first.

    Parameters
    ----------
    tokens
        The text, in which views and named queries over streams are expanded to queries in brackets.
    streams
        The columns of streams by their names in lower case.
    live
        The streams whose rows are requested, by their names in the text, in lower case.
    place
        A column besides those of a stream, which identifies rows.
    """
    return list(dict.fromkeys(_Text(tokens, streams, live, context, place).found()))


@dataclass(frozen=True)
class _Made:
    """A relation with one row for each row of a stream, as a text without an alias, and its columns."""

    stream: str
    text: SqlText
    columns: frozenset[str]


@dataclass(frozen=True)
class _Item:
    """A relation in FROM; `made` if it has one row for each row of a stream."""

    alias: str | None
    made: _Made | None
    columns: frozenset[str] | None


_Own = Callable[[Expression], bool]


@dataclass
class _RowExpressions:
    """The expressions over one relation's rows, collected while the text is read."""

    stream: str
    rows: SqlText
    own: _Own
    text: Callable[[Range], str]
    found: list[ComputedOfRow] = field(default_factory=list)

    def conditions(self, several: Iterable[Expression], *, alone: bool = False) -> list[str]:
        """The conditions in a conjunction that are over the row alone, in their order.

        Parts of the others that are over the row alone are computed after them, or, with `alone`, from every
        row.
        """
        own, rest = list[str](), []
        for one in several:
            if self.own(one):
                text = self.text(one.range)
                self.found.append(ComputedOfRow(text, tuple(own)))
                own.append(text)
            else:
                rest.append(one)
        self.values(rest, () if alone else own)
        return own

    def values(self, several: Iterable[Expression], conditions: Sequence[str]) -> None:
        """The maximal parts of these expressions that are over the row alone."""
        for one in several:
            for part in _maximal(one, self.own):
                self.found.append(ComputedOfRow(self.text(part.range), tuple(conditions)))

    @property
    def whole(self) -> OfRows | None:
        """The collected expressions; None if there are none."""
        known = tuple(dict.fromkeys(self.found))
        return OfRows(self.stream, self.rows, known) if known else None


def _maximal(one: Expression, own: _Own) -> Iterator[Expression]:
    """The maximal parts of an expression that are over the row alone, and computed regardless of others."""
    if isinstance(one, Name | Literal):
        return
    if own(one):
        yield one
        return
    match one:
        case OperationNode(operator="AND" | "OR" | "IN"):
            parts = one.operands[:1]
        case OperationNode(operator="BETWEEN"):
            parts = one.operands[:2]
        case OperationNode():
            parts = one.operands
        case Call(function=name) if name in _CHOOSING:
            parts = one.arguments[:1]
        case Call(function=name) if name.startswith(_TRYING) and name not in _NOT_TRYING:
            parts = ()
        case Call():
            parts = one.arguments
        case _:
            parts = ()
    for part in parts:
        yield from _maximal(part, own)


class _Text:
    def __init__(
        self,
        tokens: TokenList,
        streams: Mapping[str, Sequence[str]],
        live: Mapping[str, str],
        context: ExpressionAnalysis,
        place: str,
    ) -> None:
        self.tokens, self.streams, self.live, self.context, self.place = tokens, streams, live, context, place
        self.matches = find_matches(tokens)
        self.blocks = {query.range[0]: query for query in find_window_queries(tokens)}
        self.known: dict[tuple[str, str], bool] = {}

    def found(self) -> Iterator[OfRows]:
        """The found expressions; inner queries come after outer ones."""
        for match in self.matches:
            yield from self._match(match)
        for at in reversed(self.tokens.places("SELECT")):
            if self.tokens.is_symbol(at - 1, "."):
                continue
            try:
                if at in self.blocks:
                    yield from self._windows(self.blocks[at])
                elif not self._has_match(at):
                    yield from self._select(self._shape(at)[0])
            except UnknownShapeError:
                continue

    # -- texts -----------------------------------------------------------------------------------------

    def _text(self, part: Range) -> str:
        return piece_of(self.tokens, *part).render()

    def _parsed(self, part: Range) -> Expression:
        return parse_expression(self.tokens, *part, deeply=True)

    def _has_query(self, part: Range) -> bool:
        return any(self.tokens.word(at) in ("SELECT", "OVER") for at in range(*part))

    def _is_star(self, item: Range) -> bool:
        return any(
            self.tokens.is_symbol(at, "*") and (at == item[0] or self.tokens.is_symbol(at - 1, "."))
            for at in self.tokens.level(*item)
        )

    def _takes(self, made: _Made, rows: SqlText, text: str) -> bool:
        key = rows.render(), text
        if key not in self.known:
            self.known[key] = self.context.takes(made.stream, rows, text)
        return self.known[key]

    # -- SELECTs ----------------------------------------------------------------------------------------

    def _has_match(self, at: int) -> bool:
        """Whether the FROM of a SELECT has matches, whose columns are not those of rows."""
        _, stop = level_around(self.tokens, at)
        parent = self.tokens.parent[at]
        ends = (each for each in self.tokens.level(at, stop) if is_set_operator(self.tokens, each))
        stop = next(ends, stop)
        return any(
            at < match.range[0] < stop and self.tokens.parent[match.range[0]] == parent
            for match in self.matches
        )

    def _shape(self, at: int) -> tuple[Select, int]:
        """The SELECT, and the token after it."""
        tokens = self.tokens
        _, stop = level_around(tokens, at)
        if tokens.parent[at] < 0:
            stop = parse_emission(tokens, at, stop).query[1]
        stop = next((each for each in tokens.level(at, stop) if is_set_operator(tokens, each)), stop)
        shape = parse_query(tokens, at, stop)
        while isinstance(shape, OrderedBlock):
            shape = shape.query
        if not isinstance(shape, Select):
            raise UnknownShapeError("a query that is not a SELECT")
        return shape, stop

    def _select(self, select: Select) -> Iterator[OfRows]:
        """A SELECT of SQL."""
        items = [self._item(one) for one in select.source]
        aliases = {alias_of(self.tokens, item) for item in select.items}
        having = [] if select.having is None else self._conjuncts(select.having)
        # there a name of SELECT takes precedence over a column
        after = [one for one in having if aliases.isdisjoint(name.parts[0].lower() for name in names_in(one))]
        listed = [without_alias(self.tokens, item) for item in select.items if not self._is_star(item)]
        grouped = [] if select.group_by is None else self.tokens.split(*select.group_by)
        values = [*map(self._parsed, (*listed, *grouped)), *after]
        for item in items:
            expressions = self._expressions(item, items)
            if expressions is None:
                continue
            for one in select.source:
                if one.on is not None and one.join != "inner":
                    expressions.conditions(self._conjuncts(one.on))
            expressions.values(values, expressions.conditions(self._choosing(select)))
            if expressions.whole is not None:
                yield expressions.whole

    def _conjuncts(self, part: Range) -> list[Expression]:
        return [self._parsed(one) for one in conjuncts(self.tokens, *part)]

    def _choosing(self, select: Select) -> list[Expression]:
        """The conditions by which a SELECT filters rows."""
        parts = [one.on for one in select.source if one.on is not None and one.join == "inner"]
        parts += [] if select.where is None else [select.where]
        return [one for part in parts for one in self._conjuncts(part)]

    def _expressions(self, item: _Item, items: Sequence[_Item]) -> _RowExpressions | None:
        made = item.made
        if made is None:
            return None
        rows = _named(made.text, item.alias)

        def own(one: Expression) -> bool:
            names = list(names_in(one))
            if not names or self._has_query(one.range):
                return False
            if len(items) > 1 and any(self._resolved(name, items) is not item for name in names):
                return False
            return self._takes(made, rows, self._text(one.range))

        return _RowExpressions(made.stream, rows, own, self._text)

    @staticmethod
    def _resolved(name: Name, items: Sequence[_Item]) -> _Item | None:
        """The relation that a name belongs to; None if unknown."""
        first = name.parts[0].lower()
        by_alias = [item for item in items if item.alias is not None and item.alias.lower() == first]
        if by_alias:
            return by_alias[0] if len(by_alias) == 1 and len(name.parts) > 1 else None
        if any(item.columns is None for item in items):
            return None
        having = [item for item in items if first in (item.columns or ())]
        return having[0] if len(having) == 1 else None

    # -- relations in FROM -----------------------------------------------------------------------------

    def _item(self, one: FromItem) -> _Item:
        made = self._made(*one.source)
        if one.columns:
            return _Item(one.alias, None, None)
        if made is not None:
            return _Item(one.alias or made.stream, made, made.columns)
        start, stop = one.source
        name = self.tokens[start].name.lower()
        if name in self.streams:
            return _Item(one.alias, None, frozenset(column.lower() for column in self.streams[name]))
        columns = self.context.columns(None, SqlText.of(self._text((start, stop))))
        return _Item(one.alias, None, None if columns is None else frozenset(map(str.lower, columns)))

    def _made(self, start: int, stop: int) -> _Made | None:
        """The relation in these tokens, if it has a row for each row of a stream, or for some."""
        tokens = self.tokens
        if stop - 1 > start and tokens.is_symbol(stop - 1, "]"):
            stop = tokens.partner[stop - 1]
        if start >= stop:
            return None
        if tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
            if tokens.word(start + 1) == "SELECT":
                return self._derived(start + 1, stop - 1)
            return self._made(start + 1, stop - 1)
        if stop - start == 1 and tokens[start].is_name:
            name = tokens[start].name.lower()
            if name not in self.live:
                return None
            columns = frozenset(column.lower() for column in self.streams[name])
            return _Made(self.live[name], SqlText.of(RelationText(ROWS)), columns)
        if tokens.is_symbol(start + 1, "(") and tokens.partner[start + 1] == stop - 1:
            if tokens.word(start) == "TABLE" and tokens.word(start + 2) in _TIME_WINDOWS:
                return self._made(start + 2, stop - 1)
            if tokens.word(start) in _TIME_WINDOWS:
                return self._of_time_windows(start + 2, stop - 1)
        return None

    def _of_time_windows(self, start: int, stop: int) -> _Made | None:
        """The rows that TUMBLE or the like assigns to windows; the columns exclude the windows' bounds."""
        for first, last in self.tokens.split(start, stop):
            table = next((at for at in range(first, last) if self.tokens.word(at) == "TABLE"), None)
            if table is not None:
                return self._made(table + 1, last)
        return None

    def _derived(self, start: int, stop: int) -> _Made | None:
        """A query that only filters and computes."""
        if start in self.blocks or self._has_match(start):
            return None
        try:
            select, end = self._shape(start)
        except UnknownShapeError:
            return None
        gathers = (select.group_by, select.having, select.window, select.qualify)
        if end != stop or select.distinct or len(select.source) != 1 or gathers != (None,) * 4:
            return None
        if any(self.tokens.word(at) in ("ORDER", "LIMIT", "OFFSET") for at in self.tokens.level(start, stop)):
            return None
        item = self._item(select.source[0])
        if item.made is None:
            return None
        rows = _named(item.made.text, item.alias)
        stars = [one for one in select.items if self._is_star(one)]
        plain = [without_alias(self.tokens, one) for one in select.items if one not in stars]
        plain += [] if select.where is None else [select.where]
        if any(self._has_query(one) or not self._takes(item.made, rows, self._text(one)) for one in plain):
            return None
        listed = ", ".join(map(self._text, select.items)) + ("" if stars else f", {quoted(self.place)}")
        where = "" if select.where is None else f" WHERE {self._text(select.where)}"
        text = SqlText.of(f"(SELECT {listed} FROM ", rows, f"{where})")
        columns = self.context.columns(item.made.stream, text)
        if columns is None:
            return None
        return _Made(item.made.stream, text, frozenset(map(str.lower, columns)) - {self.place})

    # -- WINDOW BY -------------------------------------------------------------------------------------

    def _windows(self, query: BlockText) -> Iterator[OfRows]:
        """A SELECT with windows: its rows by the names of FROM, then by its row variables."""
        tokens, clause = self.tokens, query.clause
        select = parse_select(tokens, query.select, *query.source)
        items = [self._item(one) for one in select.source]
        values = [] if query.group_by is None else tokens.split(*query.group_by)
        values += [] if query.let is None else [(at + 2, end) for at, end in tokens.split(*query.let)]
        if query.group_by is None:
            values += [*clause.partition_by, *(key.expression for key in clause.order_by)]
        chosen: list[str] = []
        for item in items:
            expressions = self._expressions(item, items)
            if expressions is None:
                continue
            chosen = expressions.conditions(self._choosing(select))
            expressions.values(map(self._parsed, values), chosen)
            if expressions.whole is not None:
                yield expressions.whole
        item = items[0]
        if len(items) > 1 or item.made is None or query.group_by is not None:
            return
        star = "*" if item.alias is None else f"{quoted(item.alias)}.*"
        where = f" WHERE {' AND '.join(f'({one})' for one in chosen)}" if chosen else ""
        rows = _Made(
            item.made.stream,
            SqlText.of(f"(SELECT {star} FROM ", _named(item.made.text, item.alias), f"{where})"),
            item.made.columns,
        )
        known = [self._conjuncts(each.when) for each in clause.boundaries() if each.when is not None]
        for variable in clause.variables():
            if variable.role is Role.POSITION:
                continue
            expressions = self._of_variable(rows, variable.name)
            for conditions in known:
                expressions.conditions(conditions, alone=True)
            if expressions.whole is not None:
                yield expressions.whole

    def _of_variable(self, rows: _Made, name: str, *, is_current: bool = False) -> _RowExpressions:
        """The expressions over rows by a row variable; for the current row, also by unqualified names."""
        named = _named(rows.text, name)

        def own(one: Expression) -> bool:
            names = list(names_in(one))
            is_own = bool(names) and not self._has_query(one.range)
            for path in names:
                first, *rest = (part.lower() for part in path.parts)
                is_own &= (bool(rest) and first == name.lower()) or (is_current and first in rows.columns)
            return is_own and self._takes(rows, named, self._text(one.range))

        return _RowExpressions(rows.stream, named, own, self._text)

    # -- MATCH_RECOGNIZE -------------------------------------------------------------------------------

    def _match(self, match: MatchRelation) -> Iterator[OfRows]:
        """A clause of patterns: the keys by the names of FROM, then the expressions over its variables."""
        clause, rows = match.clause, self._made(*match.source)
        if rows is None:
            return
        keys = [*clause.partition_by, *(key.expression for key in clause.order_by)]
        alone = _Item(None, rows, rows.columns)
        expressions = self._expressions(alone, [alone])
        assert expressions is not None
        expressions.values(map(self._parsed, keys), ())
        if expressions.whole is not None:
            yield expressions.whole
        for name in variables_of(clause.pattern):
            for one in clause.defines:
                is_current = one.name.lower() == name.lower()
                expressions = self._of_variable(rows, name, is_current=is_current)
                expressions.conditions(self._conjuncts(one.expression), alone=True)
                if expressions.whole is not None:
                    yield expressions.whole


def _named(relation: SqlText, alias: str | None) -> SqlText:
    return relation if alias is None else SqlText.of(relation, f" AS {quoted(alias)}")
