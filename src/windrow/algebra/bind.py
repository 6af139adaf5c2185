"""From SELECTs to the algebra: the SQL that makes the rows, and the SQL that reads the windows.

Only text is moved here; names and types are looked up when Spark analyses the pieces.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from windrow.algebra.aggregate_calls import Aggregates, aggregate_ranges, find_aggregates, find_uses
from windrow.algebra.bind_matches import MatchBinder, stands_in_from
from windrow.algebra.bound_statement import BoundStatement
from windrow.algebra.match_node import (
    Match,
)
from windrow.algebra.named_queries import NamedQueries
from windrow.algebra.names import IDENTITY, QUALIFIED, ROW, order_key, partition_key, verbatim
from windrow.algebra.predicates import refuse_in_predicate
from windrow.algebra.qualified import QualifiedFields, find_qualified
from windrow.algebra.rewriting.correlated import Correlated, find_correlated
from windrow.algebra.rewriting.grouped_rows import groups
from windrow.algebra.rewriting.outer_references import Clause, find_outer_references
from windrow.algebra.rewriting.outer_references import ColumnsOf as OuterColumnsOf
from windrow.algebra.rewriting.outer_values import ValuesOfWindows, boundary_row, values_of_windows
from windrow.algebra.rewriting.varying_subqueries import (
    VaryingValues,
    refuse_varying,
    varying_values,
)
from windrow.algebra.row_comparison import compared_rows
from windrow.algebra.window_node import Uses, Window, WindowBoundary, WindowFragment
from windrow.syntax.canonical_text import canonical_place
from windrow.syntax.cql_clauses import alias_after
from windrow.syntax.expression_nodes import Name, plain_names
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import (
    BlockText,
    BoundaryClause,
    Range,
    Variable,
    WindowClause,
    is_within,
)
from windrow.syntax.operands import names_a_field
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.pattern_windows import PatternBlock, find_pattern_windows
from windrow.syntax.query_parts import find_window_queries, used_ctes, visible_ctes
from windrow.syntax.select_list import aliased, computes_name, stars_in_calls, without_distinct
from windrow.syntax.sqltext import Piece, RelationText, SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["ColumnsOf", "bind"]


def bind(
    tokens: TokenList,
    statement: Range,
    rowtimes: Mapping[str, str] | None = None,
    relations: Mapping[str, str] | None = None,
    *,
    clauses: bool = True,
    own: frozenset[str] = frozenset(),
    columns_of: ColumnsOf | None = None,
    apart: Sequence[Range] = (),
    varying: Collection[str] | None = None,
) -> BoundStatement | None:
    """The algebra of one statement of a script; None if it has no WINDOW BY and no MATCH_RECOGNIZE.

    Parameters
    ----------
    tokens, statement
        The text, and where the statement is in it.
    rowtimes
        The columns of the rowtimes of streams, by the streams' names in lower case.
    relations
        The keys of relations of ours, by names in lower case that stand for them in FROM.
    clauses
        Whether there must be a clause; otherwise a statement may read `relations` alone.
    own
        The names, in lower case, of the user's own aggregates.
    columns_of
        The columns of a query over windows; with it, names without a relation may be columns of the query
        around a SELECT.
    apart
        Stretches whose clauses stay in the text as they are written.
    varying
        The names, in lower case, of the session's relations that change over time; None where the clause
        reads none.

    Raises
    ------
    ParseError
        ``MISSING_ORDER_BY`` for MATCH_RECOGNIZE without one over a query that reads streams.
    NotSupportedError
        ``UNSUPPORTED_STREAM`` for time-varying relations in places where no value can replace them.
    """
    binder = _Binder(tokens, rowtimes or {}, relations or {}, own, columns_of, varying)
    binder.islands = [
        one for one in binder.islands if not any(is_within(one.range, inside) for inside in apart)
    ]
    has_clause = any(statement[0] <= island.range[0] < statement[1] for island in binder.islands)
    if not has_clause and clauses:
        return None
    text = binder.text(*statement)
    return BoundStatement(tokens.sql, text, tuple(binder.windows.values()))


ColumnsOf = Callable[[SqlText, tuple[Window | Match, ...]], Sequence[str] | None]
"""The names of the columns of a query that reads these windows; None if they are unknown."""

Island = BlockText | MatchRelation | PatternBlock
_WORDS = {BlockText: "WINDOW BY", MatchRelation: "MATCH_RECOGNIZE", PatternBlock: "a pattern"}


class _Binder:
    def __init__(
        self,
        tokens: TokenList,
        rowtimes: Mapping[str, str],
        relations: Mapping[str, str],
        own: frozenset[str],
        columns_of: ColumnsOf | None,
        varying: Collection[str] | None,
    ) -> None:
        self.tokens, self.rowtimes, self.own, self.columns_of = tokens, rowtimes, own, columns_of
        self.varying = varying
        self.named = {
            token.start: (index, relations[token.name.lower()])
            for index, token in enumerate(tokens.tokens)
            if token.is_name and token.name.lower() in relations and stands_in_from(tokens, index)
        }
        self.islands: list[Island] = [
            *find_window_queries(tokens),
            *find_matches(tokens),
            *find_pattern_windows(tokens),
        ]
        self.windows: dict[Range, Window | Match] = {}
        clauses = [(one.range, _WORDS[type(one)]) for one in self.islands]
        self.prefix = NamedQueries(tokens, clauses, self.text, self.piece).prefix
        self.matches = MatchBinder(self)

    # -- text with windows in place of SELECTs ------------------------------------------------------

    def text(self, start: int, stop: int) -> SqlText:
        """A part of the user's text in which every clause of Windrow is replaced by its windows or
        matches.
        """
        inside = [one for one in self.islands if start <= one.range[0] and one.range[1] <= stop]
        outermost = [
            one
            for one in inside
            if not any(other is not one and is_within(one.range, other.range) for other in inside)
        ]
        parts: list[str | Piece | SqlText] = []
        at = self.tokens.span(start, stop).start
        end = self.tokens.span(start, stop).stop
        for island in sorted(outermost, key=lambda island: island.range):
            span = self.tokens.span(*island.range)
            parts += [self.verbatim(at, span.start), self.window(island).outer]
            at = span.stop
        parts.append(self.verbatim(at, end))
        return SqlText.of(*parts)

    def verbatim(self, start: int, stop: int) -> SqlText:
        """The user's text, with names replaced by their relations."""
        parts: list[SqlText | RelationText | str] = []
        for place, (index, key) in self.named.items():
            if start <= place < stop:
                token = self.tokens[index]
                has_alias = alias_after(self.tokens, index + 1, len(self.tokens)) is not None
                is_matched = self.tokens.word(index + 1) == "MATCH_RECOGNIZE"
                alias = "" if has_alias and not is_matched else f" AS {quoted(token.name)}"
                parts += [verbatim(self.tokens, start, place), RelationText(key), alias]
                start = token.stop
        return SqlText.of(*parts, verbatim(self.tokens, start, stop))

    def piece(self, tokens: Range) -> SqlText:
        span = self.tokens.span(*tokens)
        return self.verbatim(span.start, span.stop)

    # -- one SELECT ---------------------------------------------------------------------------------

    def window(self, island: Island) -> Window | Match:
        if island.range not in self.windows:
            match island:
                case BlockText():
                    bound: Window | Match = self.bind_query(island)
                case MatchRelation():
                    bound = self.matches.of_relation(island)
                case PatternBlock():
                    bound = self.matches.of_query(island)
            self.windows[island.range] = bound
        return self.windows[island.range]

    def bind_query(self, query: BlockText) -> Window:
        clause, tokens = query.clause, self.tokens
        prefix = self.prefix(tuple(used_ctes(tokens, query.ctes, query.range)))
        qualified = find_qualified(tokens, query)
        partition_by = tuple(self.fragment(item, qualified.in_keys) for item in clause.partition_by)
        order_by = tuple(
            (self.fragment(item.expression, qualified.in_keys), item) for item in clause.order_by
        )
        ranges = [
            part
            for part in (query.select, query.having, query.groups_after, query.tail)
            if part is not None and part[0] < part[1]
        ]
        correlated = self.correlated(query, ranges)
        values = correlated if isinstance(correlated, ValuesOfWindows) else None
        if values is not None:
            prefix = self.prefix(query.ctes)  # the relations around may be named queries
            partition_by = (*(values.fragment(key) for key in partition_by), *values.keys())
            order_by = tuple((values.fragment(key), item) for key, item in order_by)
        ordered = tuple(key for key, _ in order_by)
        changing = self.varying_values(query, ranges)
        rows = self.rows(
            query, SqlText() if changing else prefix, partition_by, ordered, qualified, correlated
        )
        if changing is not None:
            rows = changing.joined(prefix, rows, _key_columns(partition_by, ordered))
        key = f"__windows{len(self.windows)}_{canonical_place(tokens, query.range[0])}"
        variables = [variable.name for variable in clause.variables()]
        names = [*variables, clause.name]
        in_calls = qualified if values is None else qualified.with_atoms(values.of_window())
        in_window: dict[Range, str] = {}
        if changing is not None:
            for call in aggregate_ranges(tokens, ranges, clause.name, self.own):
                in_calls = in_calls.with_atoms(changing.atoms(call, clause.name))
                in_window |= changing.texts(call, clause.name)

        def piece(of: Range) -> SqlText:
            return self.replace(of, in_calls.replaced() | in_window)

        def read_around(call: Range) -> frozenset[str]:
            read = frozenset() if values is None else values.read_in(call)
            return read if changing is None else read | {one.field for one in changing.inside(call)}

        aggregates = find_aggregates(
            tokens, ranges, clause.name, variables, piece, in_calls.atoms, self.own, read_around
        )
        compared = compared_rows(tokens, ranges, clause)
        stars = [*self.stars(query.select), *stars_in_calls(tokens, ranges)]
        skipped = [*aggregates.at, *((at, at + 1) for at in compared)]
        uses = find_uses(tokens, ranges, names, skipped, qualified.atoms)
        if stars or any(computes_name(tokens, at) for part in ranges for at in range(*part)):
            whole = [use for use in uses if use.name not in names]
            uses = (*(Uses(name, None) for name in names), *whole)
        uses = _with_argument_uses(aggregates, uses, names)
        rows_compared = tuple({row.name: row for row in compared.values()}.values())
        uses = (*uses, *(Uses(IDENTITY + row.name, frozenset()) for row in rows_compared))
        if correlated is not None:
            uses = correlated.with_uses(uses)
        hidden = [use.name for use in uses if use.name not in names]
        having, outer = self.outer(
            query, key, aggregates, stars, names, hidden, compared, qualified, correlated
        )
        label, start, end = (
            self.boundary(clause, boundary, qualified, values, changing) if boundary else None
            for boundary in (clause.label, clause.start, clause.end)
        )
        assert start is not None
        if correlated is not None:
            label, start = label and correlated.with_row(label), correlated.with_row(start)
            end = end and correlated.with_row(end)
        return Window(
            key, tokens.sql, clause.name, clause.tumbling, prefix, rows, partition_by, order_by,
            label, start, end, aggregates.calls, uses, rows_compared, having, outer, clause.span,
            None if values is None else SqlText.of(self.prefix(values.ctes), values.query),
        )  # fmt: skip

    def correlated(self, query: BlockText, ranges: list[Range]) -> Correlated | ValuesOfWindows | None:
        """The outer columns that a SELECT reads before its windows are made; `ranges` are read after."""
        tokens = self.tokens
        calls = aggregate_ranges(tokens, ranges, query.clause.name, self.own)
        references = find_outer_references(tokens, query, self.clauses(), calls, self.columns_in())
        if references is None:
            return None
        by_keys = find_correlated(tokens, query, references)
        if by_keys is not None or references.scope.source is None:
            return by_keys
        return values_of_windows(tokens, query, references, self.text)

    def varying_values(self, query: BlockText, ranges: list[Range]) -> VaryingValues | None:
        """The time-varying values that subqueries of the clause, and of aggregates in `ranges`, read."""
        tokens, clause, varying = self.tokens, query.clause, self.varying
        if varying is None:
            return None
        whens = [one.when for one in clause.boundaries() if one.when is not None]
        calls = aggregate_ranges(tokens, ranges, clause.name, self.own)
        keys = (*clause.partition_by, *(item.expression for item in clause.order_by))
        refuse_varying(tokens, clause.span, varying, (*whens, *keys))
        rows = {clause.name.lower(), *(variable.name.lower() for variable in clause.variables())}
        parts, at = [*whens, *calls], query.range[0]
        return varying_values(tokens, parts, varying, rows, self.text, at, columns_of=self.columns_in())

    def clauses(self) -> list[Clause]:
        """The SELECTs with WINDOW BY and the relations with MATCH_RECOGNIZE."""
        return [island for island in self.islands if not isinstance(island, PatternBlock)]

    def columns_in(self) -> OuterColumnsOf | None:
        """Returns what says which columns relations in FROM have; None without Spark."""
        columns_of = self.columns_of
        if columns_of is None:
            return None

        def columns(source: Range, around: Range | None, item: Range | None = None) -> Sequence[str] | None:
            what = SqlText.of("*") if item is None else self.text(*item)
            query = SqlText.of("SELECT ", what, " FROM ", self.text(*source))
            if around is not None:
                query = SqlText.of(
                    "SELECT __of.* FROM ", self.text(*around), ", LATERAL (", query, ") AS __of"
                )
            prefix = self.prefix(visible_ctes(self.tokens, source[0]))
            return columns_of(SqlText.of(prefix, query), tuple(self.windows.values()))

        return columns

    def boundary(
        self,
        clause: WindowClause,
        boundary: BoundaryClause,
        qualified: QualifiedFields,
        values: ValuesOfWindows | None,
        changing: VaryingValues | None,
    ) -> WindowBoundary:
        when, variables = None, boundary.variables
        if boundary.when:
            refuse_in_predicate(self.tokens, boundary.when, clause)
            around = QualifiedFields({} if values is None else values.atoms(boundary), {}, {})
            known, texts, words = qualified.with_atoms(around.atoms), {}, around.fields()
            row = boundary_row(boundary)
            if changing is not None and changing.inside(boundary.when):
                known = known.with_atoms(changing.atoms(boundary.when, row.name))
                texts = changing.texts(boundary.when, row.name)
                words |= changing.words(boundary.when, f"{quoted(row.name)}.")
                if row not in variables:
                    variables = (*variables, row)
            when = self.predicate(boundary.when, clause, known, texts)
            instead = ((self.tokens.span(*at), text) for at, text in words.items())
            when = replace(when, instead=tuple(instead))
        return WindowBoundary(
            boundary.side, variables, when, boundary.only, boundary.unbounded, boundary.span
        )

    def fragment(
        self, tokens: Range, names: Callable[[Range], dict[Range, str]] | None = None
    ) -> WindowFragment:
        """An expression, with the substitutes in `names` for parts of it."""
        text = self.text(*tokens) if names is None else self.replace(tokens, names(tokens))
        return WindowFragment(text, parse_expression(self.tokens, *tokens), self.tokens.span(*tokens))

    def predicate(
        self, tokens: Range, clause: WindowClause, qualified: QualifiedFields, texts: Mapping[Range, str]
    ) -> WindowFragment:
        """A predicate, with texts in place of parts; row variables that it compares are compared by
        identity.
        """
        expression = parse_expression(self.tokens, *tokens, qualified.atoms, deeply=True)
        replaced = _identities(compared_rows(self.tokens, [tokens], clause)) | qualified.replaced()
        replaced |= texts

        def part(of: Range) -> SqlText:
            return self.replace(of, replaced)

        return WindowFragment(part(tokens), expression, self.tokens.span(*tokens), part)

    def rows(
        self,
        query: BlockText,
        prefix: SqlText,
        partition_by: tuple[WindowFragment, ...],
        order_by: tuple[WindowFragment, ...],
        qualified: QualifiedFields,
        correlated: Correlated | ValuesOfWindows | None,
    ) -> SqlText:
        if isinstance(correlated, ValuesOfWindows):
            return self.rows_of_values(query, prefix, partition_by, order_by, qualified, correlated)
        columns = qualified.items(self.text)
        if correlated is not None:
            columns += correlated.columns(partition_by)
            source = correlated.source(self.text)
            return self.keyed_rows(prefix, source, partition_by, order_by, columns)
        if query.group_by is None:
            return self.keyed_rows(prefix, self.text(*query.source), partition_by, order_by, columns)
        source = SqlText.of("FROM (", groups(self.tokens, query, self.text, columns), ")")
        return self.keyed_rows(prefix, source, partition_by, order_by)

    def rows_of_values(
        self,
        query: BlockText,
        prefix: SqlText,
        partition_by: tuple[WindowFragment, ...],
        order_by: tuple[WindowFragment, ...],
        qualified: QualifiedFields,
        values: ValuesOfWindows,
    ) -> SqlText:
        """The rows for each value of the outer query."""

        def text(start: int, stop: int) -> SqlText:
            if (start, stop) == query.source and not values.is_lateral:
                return values.joined(self.text)
            return values.in_rows(self.text(start, stop))

        columns = qualified.items(text)
        more: list[SqlText] = []
        if values.is_lateral:
            hidden = len(values.ctes) < len(query.ctes)
            prefix, within = self.prefix(values.ctes), prefix if hidden else SqlText()
            more = values.items()
        if query.group_by is None:
            source, columns = text(*query.source), [*columns, *more]
        else:
            keys = [] if values.is_lateral else values.columns()
            source = SqlText.of("FROM (", groups(self.tokens, query, text, columns, keys), ")")
            columns = more
        if not values.is_lateral:
            return self.keyed_rows(prefix, source, partition_by, order_by, columns)
        rows = self.keyed_rows(within, source, partition_by, order_by, columns)
        return SqlText.of(prefix, values.for_each(rows))

    def keyed_rows(
        self,
        prefix: SqlText,
        source: SqlText,
        partition_by: tuple[WindowFragment, ...],
        order_by: tuple[WindowFragment, ...],
        qualified: Sequence[SqlText] = (),
    ) -> SqlText:
        """Every row as a struct, and its keys; `qualified` are columns that are read with a qualifier."""
        keys: list[SqlText] = []
        for name, fragments in ((partition_key, partition_by), (order_key, order_by)):
            keys += [
                SqlText.of("(", item.text, f") AS {name(number)}") for number, item in enumerate(fragments)
            ]
        more = [part for column in qualified for part in (", ", column)]
        columns = SqlText.join(", ", [SqlText.of("struct(*", *more, f") AS {ROW}"), *keys])
        return SqlText.of(prefix, "SELECT ", columns, " ", source)

    # -- the SELECT over the windows ---------------------------------------------------------------

    def stars(self, select: Range) -> list[int]:
        """The bare * items of the SELECT list."""
        tokens = self.tokens
        return [
            start
            for start, stop in tokens.split(*without_distinct(tokens, select))
            if tokens.is_symbol(start, "*") and (stop == start + 1 or tokens.word(start + 1) == "EXCEPT")
        ]

    def outer(
        self,
        query: BlockText,
        key: str,
        aggregates: Aggregates,
        stars: list[int],
        names: list[str],
        hidden: list[str],
        compared: dict[int, Variable],
        qualified: QualifiedFields,
        correlated: Correlated | ValuesOfWindows | None,
    ) -> tuple[SqlText | None, SqlText]:
        """HAVING and the whole SELECT, both over the relation `key`; a star leaves `hidden` out."""
        tokens = self.tokens
        select = without_distinct(tokens, query.select)
        found = {item: aliased(tokens, item) for item in tokens.split(*select)}
        clause_aliases = {item: alias for item, alias in found.items() if alias}
        replaced: dict[Range, str] = {
            # a column alone would name a field of a struct
            at: f"coalesce({quoted(call.name)})" if names_a_field(tokens, at) else quoted(call.name)
            for at, call in aggregates.at.items()
        }
        replaced |= _identities(compared)
        replaced |= {
            at: sql
            for at, sql in qualified.replaced().items()
            if not any(is_within(at, around) for around in aggregates.at)
        }
        hidden = [*(call.name for call in aggregates.calls), *hidden]
        for star in stars:
            if tokens.word(star + 1) == "EXCEPT":
                replaced[star + 2, star + 3] = "(" + "".join(f"{quoted(name)}, " for name in hidden)
            else:
                replaced[star, star + 1] = ", ".join(quoted(name) for name in names)
        items = []
        words = sorted(replaced)
        named = sorted([*aggregates.at, *qualified.named(), *((at, at + 1) for at in compared)])
        for at in found:
            item = self.replace(at, {inside: replaced[inside] for inside in _inside(words, at)})
            if at not in clause_aliases:
                item = SqlText.of(item, *self.own_name(*at, _inside(named, at)))
            items.append(item)
        head = SqlText.of(
            "SELECT ", self.piece((query.select[0], select[0])) if select[0] > query.select[0] else "", " "
        )
        parts: list[str | SqlText | RelationText] = [
            head,
            SqlText.join(", ", items),
            " FROM ",
            RelationText(key),
        ]
        having = None
        if query.having:
            for name in plain_names(parse_expression(tokens, *query.having)):
                self.substitute_alias(name, clause_aliases, names, replaced)
            having = self.replace(query.having, replaced)
        conditions = [] if having is None else [SqlText.of("(", having, ")") if correlated else having]
        conditions += [] if correlated is None else correlated.conditions(self.replace)
        if conditions:
            parts += [" WHERE ", SqlText.join(" AND ", conditions)]
        if query.groups_after:
            parts += [" ", self.replace(query.groups_after, replaced)]
        if query.tail[0] < query.tail[1]:
            parts += [" ", self.replace(query.tail, replaced)]
        return having, SqlText.of(*parts)

    def own_name(self, start: int, stop: int, replaced: list[Range]) -> list[str]:
        """The name that an item of SELECT has by its text, if the words in `replaced` are different."""
        if not replaced:
            return []
        is_path = (start, stop) in replaced and self.tokens.is_symbol(stop - 2, ".")
        name = self.tokens[stop - 1].name if is_path else self.tokens.text(start, stop)
        return [" AS ", quoted(name)]

    def substitute_alias(
        self,
        name: Name,
        aliases: dict[Range, tuple[str, Range]],
        names: list[str],
        replaced: dict[Range, str],
    ) -> None:
        """Substitute names of SELECT in HAVING, as in Spark, where one certainly stands for a value."""
        taken = {known.lower() for known in names}
        start, stop = name.range
        if len(name.parts) > 1 or name.parts[0].lower() in taken or any(a <= start < b for a, b in replaced):
            return
        for alias, expression in aliases.values():
            if alias.lower() == name.parts[0].lower():
                replaced[start, stop] = "(" + self.replace(expression, replaced).render() + ")"

    def replace(self, tokens: Range, replaced: Mapping[Range, str]) -> SqlText:
        """A range with some token ranges replaced by generated words; of nested ones the outermost count."""
        start, stop = tokens
        inside = sorted(at for at in replaced if start <= at[0] and at[1] <= stop)
        parts: list[str | Piece | SqlText] = []
        at = start
        for first, last in inside:
            if first < at:
                continue
            if at < first:
                parts += [self.spaced(at, first)]
            span = self.tokens.span(first, last)
            parts.append(Piece(replaced[first, last], self.tokens.sql, span.start, span.stop - span.start))
            at = last
            if at < stop:
                gap = self.tokens.sql[self.tokens[last - 1].stop : self.tokens[last].start]
                parts.append(" " if gap else "")
        if at < stop:
            parts.append(self.text(at, stop))
        return SqlText.of(*parts)

    def spaced(self, start: int, stop: int) -> SqlText:
        gap = self.tokens.sql[self.tokens[stop - 1].stop : self.tokens[stop].start]
        return SqlText.of(self.text(start, stop), " " if gap else "")


def _key_columns(partition_by: Sequence[WindowFragment], order_by: Sequence[WindowFragment]) -> list[str]:
    return [*map(partition_key, range(len(partition_by))), *map(order_key, range(len(order_by)))]


def _identities(compared: dict[int, Variable]) -> dict[Range, str]:
    return {(at, at + 1): quoted(IDENTITY + row.name) for at, row in compared.items()}


def _inside(places: Sequence[Range], around: Range) -> list[Range]:
    """Of positions in order, those within another one."""
    first, last = (bisect_left(places, (end, 0)) for end in around)
    return [place for place in places[first:last] if place[1] <= around[1]]


def _with_argument_uses(aggregates: Aggregates, uses: tuple[Uses, ...], names: list[str]) -> tuple[Uses, ...]:
    """Adds the columns that arguments of aggregates read besides the window's own rows (``AVG(w.val -
    s.val)``).
    """
    fields_of = {use.name: use.fields for use in uses}
    names = [*names, *(QUALIFIED + name for name in names)]
    for use in (use for call in aggregates.calls for use in call.others):
        known = fields_of.get(use.name, frozenset())
        fields_of[use.name] = None if known is None or use.fields is None else known | use.fields
    return tuple(Uses(name, fields_of[name]) for name in names if name in fields_of)
