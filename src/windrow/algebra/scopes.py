"""The relations that an expression can see, from its own query outwards.

SELECT … FROM t, LATERAL (SELECT … FROM r WHERE r.v > t.x)
                                                ↑ sees r, then t
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from windrow.algebra.qualified import relations_of
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import BlockText, Range
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.row_patterns import variables_of
from windrow.syntax.query_parts import find_window_queries, is_set_operator, level_around
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList

__all__ = [
    "JOINS",
    "VisibleRelations",
    "ends_from",
    "first_of",
    "is_clause",
    "is_of_subquery",
    "parts_of_from",
    "scopes",
]

JOINS = {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "NATURAL"}
"""Words of joins."""
_ENDS_FROM = {"WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET",
              "WINDOW", "QUALIFY", "SELECT"}  # fmt: skip


@dataclass(frozen=True)
class VisibleRelations:
    """The relations of one query that an expression in it can see.

    Attributes
    ----------
    names
        The names of the relations, in lower case; behind WINDOW BY those of its variables as well.
    at
        The token of the query where the expression, or the subquery with it, stands.
    source
        The relations in FROM, without this word; None behind WINDOW BY and in MATCH_RECOGNIZE, where they are
        seen no more.
    columns
        The relations whose columns are seen without a name before them.
    where
        WHERE of the query; None where the expression stands in FROM and depends on more than it leaves.
    is_whole
        Whether the relations are all of the query's.
    """

    names: frozenset[str]
    at: int
    source: Range | None
    columns: Range | None
    where: Range | None = None
    is_whole: bool = False


def scopes(
    tokens: TokenList, at: int, clauses: Sequence[BlockText | MatchRelation]
) -> Iterator[VisibleRelations]:
    """The scopes around a token, from the innermost outwards; `clauses` are those of the text."""
    blocks = [one for one in clauses if isinstance(one, BlockText)]
    matches = {one.range[1] - 1: one for one in clauses if isinstance(one, MatchRelation)}
    inside = at
    while at >= 0:
        parent = tokens.parent[at]
        match = matches.get(tokens.partner[parent]) if parent >= 0 else None
        if match is not None:
            yield _of_match(tokens, match, at)
            inside = at = first_of(tokens, match)
            continue
        first, last = level_around(tokens, at)
        if parent < 0 or tokens.word(first) in ("SELECT", "WITH", "FROM"):
            scope = _of_query(tokens, (first, last), at, inside, blocks)
        elif begins_relation(tokens, parent):  # brackets around relations
            scope = _left_of(tokens, (first, last), at)
        else:
            scope = None
        if scope is not None:
            yield scope
        inside, at = at, parent


def is_of_subquery(tokens: TokenList, at: int, start: int) -> bool:
    """Whether a name is one that a subquery behind `start` has for a relation, a window or a variable.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("SELECT MAX(w.v), (SELECT MAX(w.v) FROM t AS w) FROM r")
    >>> [is_of_subquery(tokens, at, 1) for at in range(len(tokens)) if tokens[at].text == "w"]
    [False, True, True]
    """
    name = tokens[at].name.lower()
    around = list(takewhile(lambda opened: opened >= start, _brackets(tokens, at)))
    if not any(opens_query(tokens, opened) for opened in around):
        return False
    if any(name in _names_in_from(tokens, inside) for inside in (at, *around[:-1])):
        return True
    inner = takewhile(lambda scope: tokens.parent[scope.at] >= start, scopes(tokens, at, _clauses(tokens)))
    return any(name in scope.names for scope in inner)


def _brackets(tokens: TokenList, at: int) -> Iterator[int]:
    """Where the brackets around a token open, from the innermost outwards."""
    while (at := tokens.parent[at]) >= 0:
        yield at


def _names_in_from(tokens: TokenList, at: int) -> Iterable[str]:
    """The names of all relations in the FROM around a token; none elsewhere."""
    parts = parts_of_from(tokens, level_around(tokens, at))
    if parts is None or not parts[0][0] <= at < parts[0][1]:
        return ()
    return relations_of(tokens, (parts[0][0] - 1, parts[0][1]))


@lru_cache(maxsize=8)
def _clauses(tokens: TokenList) -> tuple[BlockText | MatchRelation, ...]:
    return (*find_window_queries(tokens), *find_matches(tokens))


def first_of(tokens: TokenList, match: MatchRelation) -> int:
    """The first token of the relation before MATCH_RECOGNIZE, after LATERAL."""
    return match.range[0] + (tokens.word(match.range[0]) == "LATERAL")


def parts_of_from(tokens: TokenList, within: Range) -> tuple[Range, Range | None] | None:
    """The relations in FROM of a query, and its WHERE; None without FROM."""
    own = [at for at in tokens.level(*within) if tokens.parent[at] == tokens.parent[within[0]]]
    start = next((at for at in own if is_clause(tokens, at, "FROM")), None)
    if start is None:
        return None
    ends = [at for at in own if at > start + 1 and ends_from(tokens, at)]
    stop = ends[0] if ends else within[1]
    if tokens.word(stop) != "WHERE" or not ends:
        return (start + 1, stop), None
    return (start + 1, stop), (stop + 1, ends[1] if len(ends) > 1 else within[1])


def _of_match(tokens: TokenList, match: MatchRelation, at: int) -> VisibleRelations:
    """The scope of MATCH_RECOGNIZE: columns of its rows, and its variables in conditions and measures.

    The name of its relation hides others, although it is not visible.
    """
    clause = match.clause
    names = set(relations_of(tokens, (match.source[0] - 1, match.source[1])))
    keys = (*clause.partition_by, *(item.expression for item in clause.order_by))
    if not any(start <= at < stop for start, stop in keys):
        variables = (*variables_of(clause.pattern), *(subset.name for subset in clause.subsets))
        names |= {name.lower() for name in variables}
    return VisibleRelations(frozenset(names), at, None, match.source)


def _of_query(
    tokens: TokenList, level: Range, at: int, inside: int, blocks: Sequence[BlockText]
) -> VisibleRelations | None:
    """The scope of a query at a token; `inside` is the scope before it on the way outwards, in brackets at
    the token.
    """
    first, last = level
    own = [index for index in tokens.level(first, last) if tokens.parent[index] == tokens.parent[at]]
    sets = [index for index in own if is_set_operator(tokens, index) or tokens.is_symbol(index, ";")]
    first = max((index + 1 for index in sets if index < at), default=first)
    last = min((index for index in sets if index > at), default=last)
    begins = (
        index for index in own if index >= first and any(is_clause(tokens, index, word) for word in _BEGIN)
    )
    if at < next(begins, last):
        return None  # a query of WITH
    parts = parts_of_from(tokens, (first, last))
    if parts is None:
        return None
    source, where = parts
    if source[0] <= at < source[1]:
        left = _left_of(tokens, source, at)
        return replace(left, where=where) if left is not None and _is_filtered(tokens, source, at) else left
    names = frozenset(relations_of(tokens, (source[0] - 1, source[1])))
    query = next((query for query in blocks if query.source[0] == source[0] - 1), None)
    if query is not None and not _sees_rows(query, at, inside):
        clause = query.clause
        variables = {clause.name.lower(), *(variable.name.lower() for variable in clause.variables())}
        return VisibleRelations(names | variables, at, None, None)
    return VisibleRelations(names, at, source, source, where, is_whole=True)


_BEGIN = ("SELECT", "FROM")


def _sees_rows(query: BlockText, at: int, inside: int) -> bool:
    """Whether a token of a SELECT is read before its windows are made."""
    clause = query.clause
    keys = (*clause.partition_by, *(item.expression for item in clause.order_by))
    parts = (query.source, query.group_by, query.let, query.group_having, query.group_over)
    return any(part is not None and part[0] <= at < part[1] for part in parts) or any(
        key[0] <= inside < key[1] for key in keys
    )


def _is_filtered(tokens: TokenList, source: Range, at: int) -> bool:
    """Whether WHERE applies to the rows of LATERAL for all conditions over the row to its left.

    Not if a join retains rows without a partner there, nor in ON, which decides that.
    """
    words = {tokens.word(one) for one in tokens.level(*source)}
    return tokens.word(at - 1) == "LATERAL" and words.isdisjoint(("RIGHT", "FULL"))


def _left_of(tokens: TokenList, source: Range, at: int) -> VisibleRelations | None:
    """The relations to the left in FROM, if an expression there, or a subquery, can see them."""
    start = source[0]
    if tokens.word(at - 1) == "LATERAL" and tokens.word(at) != "VIEW":
        stop = at - 1
    elif begins_relation(tokens, at):
        return None
    else:
        words = [index for index in tokens.level(start, at) if tokens.word(index) in ("ON", "VIEW")]
        if not words:
            return None
        stop = words[-1] - (tokens.word(words[-1]) == "VIEW")
    while stop > start and (tokens.is_symbol(stop - 1, ",") or tokens.word(stop - 1) in JOINS):
        stop -= 1
    if stop <= start:
        return None
    return VisibleRelations(frozenset(relations_of(tokens, (start, stop))), at, (start, stop), (start, stop))


def is_clause(tokens: TokenList, at: int, word: str) -> bool:
    """Whether a word begins a part of a query: FROM is not that of IS DISTINCT FROM."""
    if tokens.word(at) != word or tokens.is_symbol(at - 1, "."):
        return False
    distinct = tokens.word(at - 1) == "DISTINCT" and tokens.word(at - 2) in ("IS", "NOT")
    return word != "FROM" or not distinct


def ends_from(tokens: TokenList, at: int) -> bool:
    """Whether a clause that may follow FROM begins at a token, or a SELECT."""
    if tokens.word(at) not in _ENDS_FROM or tokens.is_symbol(at - 1, "."):
        return False
    if tokens.word(at) in ("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"):
        return tokens.word(at + 1) == "BY"
    if tokens.word(at) == "WINDOW" and "AS" not in (tokens.word(at + 2), tokens.word(at + 3)):
        return False
    return tokens.word(at - 1) != "AS"
