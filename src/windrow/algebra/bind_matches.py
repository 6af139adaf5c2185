"""MATCH_RECOGNIZE and windows with patterns as nodes: the rows, the pattern, the conditions and measures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from windrow.algebra.match_node import Match, MatchExpression, Replace, compiled, mentioned_outside
from windrow.algebra.names import order_key, partition_key
from windrow.algebra.navigations import find_leaves
from windrow.algebra.predicates import refuse_changing_condition
from windrow.algebra.rewriting.outer_references import (
    Clause,
    ColumnsOf,
    find_in_match,
    find_in_pattern_windows,
)
from windrow.algebra.rewriting.outer_values import (
    ValuesOfMatches,
    values_of_matches,
    values_of_pattern_windows,
)
from windrow.algebra.rewriting.varying_subqueries import (
    VaryingValues,
    refuse_varying,
    varying_values,
)
from windrow.algebra.scopes import first_of
from windrow.algebra.window_node import Window, WindowFragment
from windrow.algebra.windows_with_patterns import WindowCalls
from windrow.errors import NotSupportedError, ParseError
from windrow.syntax.canonical_text import canonical_place
from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.expression_nodes import Literal, Name
from windrow.syntax.nodes import Cte, OrderItem, Range
from windrow.syntax.patterns.match_nodes import MatchClause, MatchRelation, Named
from windrow.syntax.patterns.pattern_windows import PatternBlock
from windrow.syntax.patterns.row_patterns import variables_of
from windrow.syntax.query_parts import used_ctes, visible_ctes
from windrow.syntax.sqltext import RelationText, SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["MatchBinder", "stands_in_from"]


def stands_in_from(tokens: TokenList, index: int) -> bool:
    """Whether a name is that of a relation of the session, and not of a named query."""
    name = tokens[index].name.lower()
    return (
        not tokens.is_symbol(index - 1, ".")
        and not tokens.is_symbol(index + 1, ".")
        and not tokens.is_symbol(index + 1, "(")
        and begins_relation(tokens, index)
        and all(cte.name.lower() != name for cte in visible_ctes(tokens, index))
    )


class BoundTexts(Protocol):
    """The SQL of a statement's parts, in which the clauses inside are replaced by their windows and
    matches.
    """

    tokens: TokenList
    rowtimes: Mapping[str, str]
    own: frozenset[str]
    varying: Collection[str] | None
    windows: dict[Range, Window | Match]

    def text(self, start: int, stop: int) -> SqlText:
        """A part of the user's text."""

    def prefix(self, ctes: tuple[Cte, ...]) -> SqlText:
        """WITH and the named queries that a clause sees."""

    def clauses(self) -> list[Clause]:
        """The SELECTs with WINDOW BY and the relations with MATCH_RECOGNIZE."""

    def columns_in(self) -> ColumnsOf | None:
        """A function that returns the names of the columns of relations in FROM; None if they are not
        needed.
        """

    def fragment(
        self, tokens: Range, names: Callable[[Range], dict[Range, str]] | None = None
    ) -> WindowFragment:
        """An expression, with the substitutes in `names` for parts of it."""

    def keyed_rows(
        self,
        prefix: SqlText,
        source: SqlText,
        partition_by: tuple[WindowFragment, ...],
        order_by: tuple[WindowFragment, ...],
        qualified: Sequence[SqlText] = (),
    ) -> SqlText:
        """Every row as a struct, and its keys."""

    def replace(self, tokens: Range, replaced: Mapping[Range, str]) -> SqlText:
        """A range with other words in some places."""

    def stars(self, select: Range) -> list[int]:
        """The bare * items of SELECT."""


class MatchBinder:
    """Makes the nodes of a statement's clauses."""

    def __init__(self, texts: BoundTexts) -> None:
        self._texts, self._tokens = texts, texts.tokens
        self._rowtimes, self._own = texts.rowtimes, texts.own

    def of_relation(self, relation: MatchRelation) -> Match:
        """MATCH_RECOGNIZE after a relation."""
        clause, tokens, texts = relation.clause, self._tokens, self._texts
        source = SqlText.of("FROM ", texts.text(*relation.source))
        mentioned = mentioned_outside(tokens, (relation.source[1], relation.range[1]))
        order_by = self._order(clause) or self._rowtime(relation.source, clause)
        partition_by = tuple(texts.fragment(item) for item in clause.partition_by)
        measures, at = clause.measures, relation.range[0]
        references = find_in_match(tokens, relation, texts.clauses(), texts.columns_in())
        if references is None:
            prefix = texts.prefix(tuple(used_ctes(tokens, relation.ctes, relation.range)))
            return self._match(clause, prefix, source, partition_by, order_by, measures, at, mentioned)
        prefix = texts.prefix(relation.ctes)
        values = values_of_matches(tokens, relation, references, texts.text)
        source = SqlText.of("FROM ", texts.text(first_of(tokens, relation), relation.source[1]))
        hidden = tuple(values.fields.values())
        partition_by = (*map(values.fragment, partition_by), *values.keys())
        order_by = tuple((values.fragment(key), item) for key, item in order_by)
        clause = replace(clause, key_names=(*clause.key_names, *hidden))
        if mentioned is not None:
            mentioned |= {name.lower() for name in (*hidden, *_some_columns(clause, partition_by))}
        found = self._match(clause, prefix, source, partition_by, order_by, measures, at, mentioned, values)
        word = " LATERAL" if first_of(tokens, relation) > at else ""
        query = SqlText.of(word, values.result(found.key, texts.text))
        return replace(found, query=query, hidden=(*hidden, *found.hidden))

    def _rows_of_values(
        self,
        prefix: SqlText,
        source: SqlText,
        partition_by: tuple[WindowFragment, ...],
        order_by: tuple[WindowFragment, ...],
        values: ValuesOfMatches,
    ) -> SqlText:
        """The rows for each value of the outer query; `prefix` is the WITH list that the clause sees."""
        texts = self._texts
        if not values.is_lateral:
            return texts.keyed_rows(prefix, values.joined(source), partition_by, order_by)
        around, source = texts.prefix(values.ctes), values.in_rows(source)
        within = SqlText() if around.render() == prefix.render() else prefix
        rows = texts.keyed_rows(within, source, partition_by, order_by, values.items())
        return SqlText.of(around, values.for_each(rows))

    def of_query(self, query: PatternBlock) -> Match:
        """The windows one after the other, each over the rows and the results of the one before."""
        prefix = self._texts.prefix(tuple(used_ctes(self._tokens, query.ctes, query.range)))
        source = self._texts.text(*query.source)
        calls = WindowCalls(self._tokens, query, self._own)
        if query.made_by is not None:
            raise self._not_rewritten(query.made_by)
        texts = self._texts
        references = find_in_pattern_windows(self._tokens, query, texts.clauses(), texts.columns_in())
        values = None
        if references is not None:
            values = values_of_pattern_windows(self._tokens, query, references, texts.text)
            calls.around = tuple(values.fields.values())
        alias = f" AS {quoted(self._tokens[query.alias[0]].name)}" if query.alias else ""
        for number, window in enumerate(query.windows):
            order_by = self._order(window.clause) or self._rowtime(query.relations, window.clause)
            partition_by = tuple(map(self._texts.fragment, window.clause.partition_by))
            if values is not None:
                partition_by = (*map(values.fragment, partition_by), *values.keys())
                order_by = tuple((values.fragment(key), item) for key, item in order_by)
            found = self._match(
                window.clause,
                prefix,
                source,
                partition_by,
                order_by,
                calls.measures(window),
                query.range[0],
                calls.mentioned,
                values,
                has_values=number > 0,
                relation=calls.relation(),
            )
            found = replace(found, functions=calls.functions, hidden=(*calls.around, *found.hidden))
            source = SqlText.of("FROM ", RelationText(found.key), alias)
            if number < len(query.windows) - 1:
                self._texts.windows[query.range[0], -1 - number] = found
        stars = texts.stars(query.select)
        where = None if values is None else values.condition(texts.text)
        return replace(found, query=calls.outer(source, texts.replace, stars, where))

    def _match(
        self,
        clause: MatchClause,
        prefix: SqlText,
        source: SqlText,
        partition_by: tuple[WindowFragment, ...],
        order_by: tuple[tuple[WindowFragment, OrderItem], ...],
        measured: tuple[Named, ...],
        at: int,
        mentioned: frozenset[str] | None,
        values: ValuesOfMatches | None = None,
        *,
        has_values: bool = False,
        relation: str | None = None,
    ) -> Match:
        """The node.

        `has_values` says that the rows already have the values of the outer query. The name of the `relation`
        is that of a variable that all rows match, unless one of the pattern has the name.
        """
        tokens = self._tokens
        is_ordered = bool(order_by)
        if not order_by:
            nowhere = clause.pattern_at[0], clause.pattern_at[0]
            key = WindowFragment(SqlText.of("CAST(NULL AS INT)"), Literal(nowhere), clause.unordered_at)
            order_by = ((key, OrderItem(nowhere)),)
        ordered = tuple(key for key, _ in order_by)
        changing = self._varying_values(clause, at)
        varying = () if changing is None else changing.fields
        within = SqlText() if changing else prefix
        rows = (
            self._texts.keyed_rows(within, source, partition_by, ordered)
            if values is None or has_values
            else self._rows_of_values(within, source, partition_by, ordered, values)
        )
        outside = {} if values is None else values.names()
        texts: dict[Range, str] = {}
        if changing is not None:
            count = len(partition_by)
            keys = [*map(partition_key, range(count)), *map(order_key, range(len(order_by)))]
            more = [partition_key(count + number) for number in range(len(varying))]
            rows = changing.joined(prefix, rows, keys, more)
            partition_by = (*partition_by, *changing.keys())
            clause = replace(clause, key_names=(*clause.key_names, *varying))
            clause = _with_lengths_of_rows(clause, changing)
            if mentioned is not None:
                mentioned |= {name.lower() for name in varying}
            outside = {**outside, **changing.columns()}
            texts = changing.words((0, len(tokens)), "")
        around = None
        if values is not None and not has_values:
            around = SqlText.of(self._texts.prefix(values.ctes), values.query)
        labels = tuple(variables_of(clause.pattern))
        numbers = {name: number for number, name in enumerate(labels)}
        members = {} if relation is None else {relation: frozenset(numbers.values())}
        members |= {name: frozenset([number]) for name, number in numbers.items()}
        for subset in clause.subsets:
            members[subset.name] = frozenset(numbers[name] for name in subset.members)
        tree, program = compiled(clause.pattern, numbers, tokens, clause.pattern_at)
        known = frozenset(members)
        in_window = clause.frame is not None
        for item in (*measured, *clause.defines):
            self._texts.text(
                *item.expression
            )  # binds the clauses of its subqueries, which are run before this one
        for condition in (*(item.expression for item in clause.defines), *_lengths(clause)):
            refuse_changing_condition(tokens, condition)
        measures, defines = (
            tuple(
                MatchExpression(
                    item.name,
                    item.expression,
                    tokens.span(*item.expression),
                    find_leaves(
                        tokens,
                        item.expression,
                        known,
                        in_define=in_define,
                        in_window=in_window,
                        own=self._own,
                    ),
                )
                for item in items
            )
            for items, in_define in ((measured, False), (clause.defines, True))
        )
        return Match(
            f"__matches{len(self._texts.windows)}_{canonical_place(tokens, at)}",
            tokens.sql, tokens, clause, prefix, rows, partition_by, order_by, tree, program, labels, members,
            measures, defines, mentioned, self._with_columns(outside, texts), is_ordered=is_ordered,
            outside=outside, hidden=varying, around=around, varying=varying,
        )  # fmt: skip

    def _varying_values(self, clause: MatchClause, at: int) -> VaryingValues | None:
        """The time-varying values that subqueries of the clause read."""
        tokens, varying = self._tokens, self._texts.varying
        if varying is None:
            return None
        parts = [item.expression for item in (*clause.measures, *clause.defines)]
        keys = (*clause.partition_by, *(item.expression for item in clause.order_by))
        lengths = _lengths(clause)
        refuse_varying(tokens, clause.span, varying, (*parts, *keys, *lengths))
        texts = self._texts
        return varying_values(tokens, parts, varying, None, texts.text, at, lengths, texts.columns_in())

    def _with_columns(self, outside: Mapping[Range, Name], texts: Mapping[Range, str]) -> Replace:
        """A function that returns texts with columns substituted, except in ranges with other substitutes."""
        columns = {at: quoted(name.parts[0]) for at, name in outside.items()} | dict(texts)

        def text(part: Range, replaced: Mapping[Range, str]) -> SqlText:
            own = {
                at: word
                for at, word in columns.items()
                if not any(start <= at[0] and at[1] <= stop for start, stop in replaced)
            }
            return self._texts.replace(part, own | dict(replaced))

        return text

    def _order(self, clause: MatchClause) -> tuple[tuple[WindowFragment, OrderItem], ...]:
        """ORDER BY; empty if it is left out."""
        return tuple((self._texts.fragment(item.expression), item) for item in clause.order_by)

    def _not_rewritten(self, made_by: int) -> NotSupportedError:
        """The error for windows with patterns over groups or windows that could not be rewritten."""
        return NotSupportedError(
            "a window with a pattern over groups of the same SELECT is not supported here",
            condition="UNSUPPORTED_CLAUSE",
            sql=self._tokens.sql,
            span=self._tokens[made_by].span,
            hint="put that part of the query in a subquery in FROM",
        )

    def _refuse_streams(self, source: Range, clause: MatchClause) -> None:
        """Refuse an arbitrary order of rows of streams, which are in order of their rowtime."""
        tokens = self._tokens
        for at in range(*source):
            if (
                tokens[at].is_name
                and tokens[at].name.lower() in self._rowtimes
                and stands_in_from(tokens, at)
            ):
                column = self._rowtimes[tokens[at].name.lower()]
                raise ParseError(
                    f"MATCH_RECOGNIZE over stream {tokens[at].name} has no ORDER BY",
                    condition="MISSING_ORDER_BY",
                    sql=tokens.sql,
                    span=clause.unordered_at,
                    hint=f"add ORDER BY {column}, after PARTITION BY",
                )

    def _rowtime(self, source: Range, clause: MatchClause) -> tuple[tuple[WindowFragment, OrderItem], ...]:
        """The order of a stream, if no other is written; empty for other relations."""
        (start, stop), tokens = source, self._tokens
        is_name = stop == start + 1 or alias_after(tokens, start + 1, stop) == stop - 1
        is_stream = stands_in_from(tokens, start) and tokens[start].name.lower() in self._rowtimes
        if not is_name or not is_stream:
            self._refuse_streams(source, clause)
            return ()
        column, at = self._rowtimes[tokens[start].name.lower()], (start, start + 1)
        key = WindowFragment(SqlText.of(quoted(column)), Name((column,), at), tokens.span(*at))
        return ((key, OrderItem(at)),)


def _lengths(clause: MatchClause) -> list[Range]:
    """WITHIN or DURATION."""
    return [length.tokens for length in (clause.within, clause.duration) if length is not None]


def _with_lengths_of_rows(clause: MatchClause, changing: VaryingValues) -> MatchClause:
    """The clause, whose lengths are of rows where these have values for subqueries in them."""
    within, duration = (
        replace(length, reads_row=True) if length is not None and changing.inside(length.tokens) else length
        for length in (clause.within, clause.duration)
    )
    return replace(clause, within=within, duration=duration)


def _some_columns(clause: MatchClause, keys: Sequence[WindowFragment]) -> list[str]:
    """Names of columns of the result, at least one that is not hidden, even if none is read."""
    names = [key.expression.parts[-1] for key in keys if isinstance(key.expression, Name)]
    return [*names[:1], *(item.name for item in clause.measures[:1])]
