"""Clauses in subqueries that read variables of an outer WINDOW BY, rewritten to read columns.

SELECT s.d, (SELECT COUNT(*) FROM r WHERE r.v > s.v WINDOW BY …) FROM t WINDOW BY w AS (…)
→  SELECT __inside0 AS d, (SELECT COUNT(*) FROM r WHERE r.v > __around.__inside1 WINDOW BY …)
   FROM (SELECT s.d AS __inside0, s.v AS __inside1 FROM t WINDOW BY w AS (…)) AS __around
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from windrow.algebra.names import verbatim
from windrow.algebra.qualified import relations_of
from windrow.algebra.rewriting.patterns.patterns_over_results import QueryAround
from windrow.algebra.scopes import scopes
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import BlockText, Range, Role, WindowClause, is_within
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.pattern_windows import PatternBlock
from windrow.syntax.query_parts import begins_window_by, find_window_queries
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.subqueries import subqueries
from windrow.syntax.tokens import TokenList

__all__ = ["clauses_over_variables"]

_AROUND = "__around"


def clauses_over_variables(tokens: TokenList, calls: Sequence[int] = ()) -> SqlText | None:
    """The text with the first such SELECT around a query of its windows; None if there is none.

    A subquery may be an item of SELECT, or stand behind the clause, but not before groups of its windows.
    Calls at these tokens, of functions with clauses, are like clauses.

    Raises
    ------
    ParseError, AnalysisError
        As `find_window_queries` and `find_matches`.
    """
    if not calls and not _are_several(tokens):
        return None
    blocks = find_window_queries(tokens)
    clauses: list[BlockText | MatchRelation] = [*blocks, *find_matches(tokens)]
    for query in blocks:
        around = _Windows(
            tokens, _as_block(tokens, query), name=quoted(_AROUND), clauses=clauses, of=query, calls=calls
        )
        if query.having is not None and query.groups_after is None and around.read(query.having):
            word = query.having[0] - 1
            around.query = replace(around.query, source=(query.source[0], word))
            around.replaced[word, word + 1] = "WHERE"
        elif not any(around.read(part) for part in (query.select, query.tail)):
            continue
        start, stop = tokens.span(*query.range).start, tokens.span(*query.range).stop
        end = len(tokens.sql)
        return SqlText.of(verbatim(tokens, 0, start), around.text(), verbatim(tokens, stop, end))
    return None


def _are_several(tokens: TokenList) -> bool:
    """Whether the text has several clauses, so that one may be inside another."""
    places = range(len(tokens))
    windows = sum(begins_window_by(tokens, at) for at in places)
    return windows > 1 or (windows == 1 and any(tokens.word(at) == "MATCH_RECOGNIZE" for at in places))


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
    """Such a SELECT; `clauses` and `calls` are those of the text."""

    clauses: Sequence[BlockText | MatchRelation] = ()
    calls: Sequence[int] = ()
    of: BlockText | None = None
    paths: dict[tuple[str, ...], str] = field(default_factory=dict)

    def has_over(self, item: Range) -> bool:
        """Whether an item stays in the outer query: if a clause in it reads variables."""
        return bool(self.read(item)) or super().has_over(item)

    def read(self, part: Range) -> list[Range]:
        """The positions where clauses in the subqueries of a range read variables, or their columns."""
        return [path for query in subqueries(self.tokens, part) for path in self.read_in(query)]

    def read_in(self, query: Range) -> Iterator[Range]:
        """The positions where a subquery with a clause reads columns of rows, and positions."""
        tokens = self.tokens
        if not self.has_clause(query):
            return
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
        """Whether a subquery has a clause of ours, or a call."""
        inside = (one.range for one in self.clauses)
        return any(is_within(one, query) for one in (*inside, *((at, at + 1) for at in self.calls)))

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

    def take_window(self, outside: list[Range], clause: WindowClause, names: set[str]) -> None:
        """The same, including what clauses in subqueries read."""
        super().take_window(outside, clause, names)
        for part in outside:
            for path in self.read(part):
                said = self.tokens.folded(*path)
                if said not in self.paths:
                    self.paths[said] = self.hide(self.piece(path))
                self.replaced[path] = f"{quoted(_AROUND)}.{quoted(self.paths[said])}"
