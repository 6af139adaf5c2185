"""Clauses in subqueries that read variables of an outer WINDOW BY, rewritten to read columns.

SELECT s.d, (SELECT COUNT(*) FROM r WHERE r.v > s.v WINDOW BY …) FROM t WINDOW BY w AS (…)
→  SELECT __inside0 AS d, (SELECT COUNT(*) FROM r WHERE r.v > __around.__inside1 WINDOW BY …)
   FROM (SELECT s.d AS __inside0, s.v AS __inside1 FROM t WINDOW BY w AS (…)) AS __around
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from windrow.algebra.aggregate_calls import aggregate_ranges, places_of_calls
from windrow.algebra.names import verbatim
from windrow.algebra.qualified import relations_of
from windrow.algebra.rewriting.patterns.patterns_over_results import QueryAround
from windrow.algebra.scopes import scopes
from windrow.errors import NotSupportedError
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.expression_nodes import plain_names
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import BlockText, Range, Role, WindowClause, is_within
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.pattern_windows import PatternBlock
from windrow.syntax.query_parts import begins_window_by, find_window_queries
from windrow.syntax.select_list import aliased, without_distinct
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.subqueries import subqueries
from windrow.syntax.tokens import TokenList

__all__ = ["clauses_over_variables"]

_AROUND = "__around"


def clauses_over_variables(tokens: TokenList, calls: Sequence[int] = ()) -> SqlText | None:
    """The text with the first such SELECT around a query of its windows; None if there is none.

    A subquery may be an item of SELECT, or stand behind the clause. If it is in HAVING before groups of the
    windows, the outer query makes the groups. Calls at these tokens, of functions with clauses, are like
    clauses.

    Raises
    ------
    ParseError, AnalysisError
        As `find_window_queries` and `find_matches`.
    NotSupportedError
        ``UNSUPPORTED_QUERY`` for such a subquery within an aggregate.
    """
    if not calls and not _are_several(tokens):
        return None
    blocks = find_window_queries(tokens)
    clauses: list[BlockText | MatchRelation] = [*blocks, *find_matches(tokens)]
    for query in blocks:
        around = _Windows(
            tokens, _as_block(tokens, query), name=quoted(_AROUND), clauses=clauses, of=query, calls=calls
        )
        if query.having is not None and around.read(query.having):
            around.filter_windows(query.having)
        elif (having := _having_of_groups(tokens, query)) is not None and around.read(having):
            around.filter_rows(having)
        elif not any(around.read(part) for part in (query.select, query.tail)):
            continue
        if not around.gathers:
            _refuse_in_aggregates(tokens, query, around.read(query.select))
        start, stop = tokens.span(*query.range).start, tokens.span(*query.range).stop
        end = len(tokens.sql)
        return SqlText.of(verbatim(tokens, 0, start), around.text(), verbatim(tokens, stop, end))
    return None


def _refuse_in_aggregates(tokens: TokenList, query: BlockText, read: list[Range]) -> None:
    calls = places_of_calls(tokens, [query.select])
    for path in read:
        if any(is_within(path, call) for call in calls):
            raise NotSupportedError(
                "a clause in a subquery within an aggregate cannot read variables of the windows around",
                condition="UNSUPPORTED_QUERY",
                sql=tokens.sql,
                span=tokens.span(*path),
                hint="select the subquery's value for each window, and aggregate it in a query around",
            )


def _are_several(tokens: TokenList) -> bool:
    """Whether the text has several clauses, so that one may be inside another."""
    places = range(len(tokens))
    windows = sum(begins_window_by(tokens, at) for at in places)
    return windows > 1 or (windows == 1 and any(tokens.word(at) == "MATCH_RECOGNIZE" for at in places))


def _having_of_groups(tokens: TokenList, query: BlockText) -> Range | None:
    """The condition on groups of windows."""
    if query.groups_after is None:
        return None
    start, stop = query.groups_after
    words = (at for at in tokens.level(start, stop) if tokens.word(at) == "HAVING")
    return next(((at + 1, stop) for at in words if not tokens.is_symbol(at - 1, ".")), None)


def _as_block(tokens: TokenList, query: BlockText) -> PatternBlock:
    """The SELECT as one over its windows, without any pattern."""
    start, stop = query.range
    window_by = next(at for at in tokens.level(start, stop) if begins_window_by(tokens, at))
    tail = query.tail if query.tail[0] < query.tail[1] else (stop, stop)
    source = (query.source[0], tail[0])
    return PatternBlock(
        query.range, query.select, source, source, None, (), tail, (), (), query.ctes, made_by=window_by
    )


@dataclass
class _Windows(QueryAround):
    """Such a SELECT; `clauses` and `calls` are those of the text. It may group the inner query's windows."""

    clauses: Sequence[BlockText | MatchRelation] = ()
    calls: Sequence[int] = ()
    of: BlockText | None = None
    gathers: bool = False

    def filter_windows(self, having: Range) -> None:
        """Let a condition on the windows be one on the rows of the query inside."""
        assert self.of is not None
        self.filter_rows(having)
        calls, over = places_of_calls(self.tokens, [self.of.select]), self.of.clause.name
        of_windows = aggregate_ranges(self.tokens, [self.of.select], over)
        self.gathers = self.of.groups_after is not None or not set(calls) <= set(of_windows)

    def filter_rows(self, having: Range) -> None:
        """End the query inside before a condition, which is one on its rows."""
        word = having[0] - 1
        self.query = replace(self.query, source=(self.query.source[0], word))
        self.replaced[word, word + 1] = "WHERE"

    def has_over(self, item: Range) -> bool:
        """Whether the outer query has an item: if a clause in it reads variables, or it groups windows."""
        return self.gathers or bool(self.read(item)) or super().has_over(item)

    def read(self, part: Range) -> list[Range]:
        """The positions where clauses in the subqueries of a range read variables, or their columns."""
        found = filter(self.has_clause, subqueries(self.tokens, part))
        return [path for query in found for path in self.read_in(query)]

    def read_in(self, query: Range) -> Iterator[Range]:
        """The positions where a subquery with a clause reads columns of rows, and positions."""
        tokens = self.tokens
        assert self.of is not None
        clause, relations = self.of.clause, set(relations_of(tokens, self.of.source))
        is_row = {item.name.lower(): item.role is not Role.POSITION for item in clause.variables()}
        for at in range(*query):
            name = tokens[at].name.lower() if tokens[at].is_name else ""
            path = self.path(at, query[1], relations) if name in is_row else None
            if path is None or tokens.is_symbol(at - 1, ":") or tokens.word(at - 1) == "AS":
                continue
            if (path[1] > at + 1) == is_row[name] and not begins_relation(tokens, at) and not self.is_own(at):
                yield path

    def has_clause(self, query: Range) -> bool:
        """Whether a subquery has a clause of ours, or a call, outside of queries that read no variable."""
        places = [*(one.range for one in self.clauses), *((at, at + 1) for at in self.calls)]
        within = [one for one in places if is_within(one, query)]
        inner = subqueries(self.tokens, (query[0] + 1, query[1])) if within else ()
        closed = [one for one in inner if next(self.read_in(one), None) is None]
        return any(not any(is_within(place, one) for one in closed) for place in within)

    def without_patterns(self, parts: list[Range]) -> list[Range]:
        """The ranges without subqueries with clauses, which have other windows and variables."""
        return self.outside_of_clauses(super().without_patterns(parts))

    def stretches(self, parts: list[Range]) -> list[Range]:
        """The same for all expressions."""
        return self.outside_of_clauses(super().stretches(parts))

    def outside_of_clauses(self, parts: list[Range]) -> list[Range]:
        """The rest of ranges, without such subqueries."""
        found = []
        for part in parts:
            holes = [query for query in subqueries(self.tokens, part) if self.has_clause(query)]
            found += self.outside_of(part, holes)
        return found

    def is_own(self, at: int) -> bool:
        """Whether a name is a relation or a variable of a query inside the SELECT."""
        tokens, name = self.tokens, self.tokens[at].name.lower()
        level = tokens.parent[self.query.range[0]]
        for scope in scopes(tokens, at, self.clauses):
            if tokens.parent[scope.at] == level:
                return False
            if name in scope.names:
                return True
        return True

    def calls_over_rows(self, ranges: list[Range]) -> list[Range]:
        """Aggregates that the query inside computes: of the windows' rows alone, where it is gathered."""
        return [] if self.gathers else super().calls_over_rows(ranges)

    def take_window(self, outside: list[Range], clause: WindowClause, names: set[str]) -> None:
        """The same, including what subqueries read, and what HAVING reads by names of SELECT."""
        super().take_window(outside, clause, names)
        for query in (query for part in outside for query in subqueries(self.tokens, part)):
            for path in self.read_in(query):
                self.replaced[path] = f"{quoted(_AROUND)}.{quoted(self.column_of(path))}"
        if self.gathers:
            self.take_aliases({variable.name.lower() for variable in clause.variables()})

    def take_aliases(self, variables: set[str]) -> None:
        """Put expressions of SELECT for their names in HAVING, which is read before these."""
        assert self.of is not None
        assert self.of.having is not None
        tokens = self.tokens
        items = tokens.split(*without_distinct(tokens, self.of.select))
        aliases = filter(None, (aliased(tokens, item) for item in items))
        named = {alias.lower(): expression for alias, expression in aliases}
        for name in plain_names(parse_expression(tokens, *self.of.having)):
            word = name.parts[0].lower()
            if len(name.parts) == 1 and word in named and word not in variables:
                self.replaced[name.range] = f"({self.written(named[word]).render()})"
