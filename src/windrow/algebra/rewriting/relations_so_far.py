"""Clauses over streams, and streams beside them, as time-varying relations.

SELECT k, COUNT(*) FROM (SELECT f.k FROM s WINDOW BY w AS (… ORDER BY ts START AS f …)) GROUP BY k
→  SELECT k, COUNT(*) FROM (SELECT * EXCEPT (__since)
   FROM (SELECT f.k, f.ts AS __since FROM s WINDOW BY w AS (…)) [RANGE UNBOUNDED]) GROUP BY k

A query that combines rows of a clause reads all of its output over the whole log. Live, this is the output so
far, a time-varying relation: the unbounded window over the stream of the clause's output. `__since` is the
rowtime of a window's label row, or of the last row of a match, because the query need not select it; of a
pattern that may match no row, that of the first row, at which an empty match is.

A clause over combined rows is itself one over a relation:

SELECT … FROM s JOIN t ON s.k = t.k WINDOW BY w AS (…)
→  SELECT … FROM s [RANGE UNBOUNDED] JOIN t [RANGE UNBOUNDED] ON s.k = t.k WINDOW BY w AS (…)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from windrow.algebra.names import SINCE, piece_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import end_of_windows, put_windows_below
from windrow.algebra.rewriting.label_rowtime import column_of_key, put_label_row
from windrow.algebra.rewriting.patterns.over_beside_patterns import has_over_of_rows, put_over_around_patterns
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import BlockText, Range, is_within
from windrow.syntax.patterns.match_nodes import MatchClause, MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.pattern_windows import PatternBlock, find_pattern_windows
from windrow.syntax.patterns.row_patterns import may_be_empty
from windrow.syntax.query_parts import find_window_queries, visible_ctes
from windrow.syntax.select_list import without_alias, without_distinct
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["relations_so_far"]

_WINDOW = "[RANGE UNBOUNDED]"
_Clause = BlockText | MatchRelation | PatternBlock


def relations_so_far(
    tokens: TokenList,
    streams: Collection[str],
    rowtimes: Mapping[str, str],
    own: frozenset[str] = frozenset(),
    *,
    below: bool = False,
) -> SqlText | None:
    """The text in which clauses over streams, and streams beside them, are relations.

    None if there is nothing to change, or if windows with patterns are over the groups of their own SELECT.

    Parameters
    ----------
    streams
        The names of the session's streams, in lower case.
    rowtimes
        The columns that show the rowtimes of streams, by the streams' names.
    own
        The names, in lower case, of the user's own aggregates.
    below
        Whether rows are combined below a clause.
    """
    edits = Edits(tokens)
    clauses = {} if below else _outermost(tokens, own)
    for clause, end in clauses.items():
        if not any(_is_stream(tokens, at, streams) for at in range(*clause.range)):
            continue
        match clause:
            case BlockText() if end is not None:
                put_windows_below(edits, clause, own, _WINDOW, end)
            case BlockText():
                _put_around_windows(edits, clause)
            case PatternBlock(made_by=None) if has_over_of_rows(tokens, clause):
                put_over_around_patterns(edits, clause, _WINDOW)
            case PatternBlock(made_by=None):
                first = clause.windows[0].clause
                rowtime = _rowtime(tokens, first, clause.relations, rowtimes)
                if first.order_by:  # with its relation, if it is written so
                    rowtime = piece_of(tokens, *first.order_by[0].expression)
                _put_around_select(edits, clause, rowtime)
            case MatchRelation():
                _put_around_matches(edits, clause, rowtimes)
            case _:
                return None
    below_relations = _below(clauses)
    for at in range(len(tokens)):
        inside = any(start <= at < stop for start, stop in below_relations)
        if not inside and _is_stream(tokens, at, streams) and not tokens.is_symbol(at + 1, "["):
            edits.put(at + 1, _WINDOW)
    return edits.text(0, len(tokens)) if edits.is_changed else None


def _outermost(tokens: TokenList, own: frozenset[str]) -> dict[_Clause, int | None]:
    """The outermost SELECTs and relations with a clause; for windows, where the part begins that
    groups them.
    """
    queries = find_window_queries(tokens)
    found: dict[_Clause, int | None] = {one: end_of_windows(tokens, one, own) for one in queries}
    found |= dict.fromkeys([*find_matches(tokens), *find_pattern_windows(tokens)])
    ranges = _below(found)
    return {one: end for one, end in found.items() if not any(_is_in(one.range, other) for other in ranges)}


def _below(clauses: Mapping[_Clause, int | None]) -> list[Range]:
    """The part below the relations of clauses: for groups of windows, everything except the groups."""
    return [
        one.range if end is None or not isinstance(one, BlockText) else (one.select[1], end)
        for one, end in clauses.items()
    ]


def _is_in(inside: Range, around: Range) -> bool:
    return inside != around and is_within(inside, around)


def _is_stream(tokens: TokenList, at: int, streams: Collection[str]) -> bool:
    """Whether a token is a stream in FROM, and not a query of WITH."""
    if not tokens[at].is_name or tokens[at].name.lower() not in streams or not begins_relation(tokens, at):
        return False
    if tokens.is_symbol(at + 1, ".") or tokens.is_symbol(at + 1, "("):
        return False
    return tokens[at].name.lower() not in (cte.name.lower() for cte in visible_ctes(tokens, at))


# -- SELECTs -----------------------------------------------------------------------------------------


def _put_around_windows(edits: Edits, query: BlockText) -> None:
    """Rewrite a SELECT with WINDOW BY as one over the relation of its windows."""
    tokens, (rowtime, variables) = edits.tokens, put_label_row(edits, query)
    items = tokens.split(*without_distinct(tokens, query.select))
    has_star = any(tokens.is_symbol(start, "*") for start, _ in items)
    _put_around_select(edits, query, rowtime, variables if has_star else [])


def _put_around_select(
    edits: Edits, query: BlockText | PatternBlock, rowtime: SqlText | None, variables: Sequence[str] = ()
) -> None:
    """Rewrite a SELECT as one over its relation, which has DISTINCT and the part after the clause.

    It leaves out the rowtime, and `variables` of the clause.
    """
    tokens, first, excepted = edits.tokens, query.select[0], ""
    if rowtime is not None:
        edits.put(query.select[1], ", ", rowtime, f" AS {SINCE}")
        excepted = f" EXCEPT ({', '.join([SINCE, *variables])})"
    is_distinct = tokens.word(first) == "DISTINCT"
    if is_distinct:
        edits.instead[first] = SqlText()
    tail = query.tail if query.tail[0] < query.tail[1] else (query.range[1], query.range[1])
    word = "DISTINCT " if is_distinct else ""
    edits.put(query.range[0], f"SELECT {word}*{excepted} FROM (")
    edits.put(tail[0], f") {_WINDOW}")
    for place, name in _selected(tokens, (first + is_distinct, query.select[1]), tail):
        edits.instead.update(dict.fromkeys(range(*place), SqlText()))
        edits.put(place[0], quoted(name))


def _selected(tokens: TokenList, items: Range, tail: Range) -> Iterator[tuple[Range, str]]:
    """The positions where ORDER BY reads selected columns, with their names."""
    named: dict[tuple[str, ...], str] = {}
    for item in tokens.split(*items):
        expression = without_alias(tokens, item)
        if expression != item or column_of_key(tokens, item) is not None:
            named.setdefault(tokens.folded(*expression), tokens[item[1] - 1].name)
    at = tail[0]
    while at < tail[1]:
        lengths = sorted({len(said) for said in named}, reverse=True)
        found = next((end for end in map(at.__add__, lengths) if _reads(tokens, at, end, tail, named)), None)
        if found is not None:
            yield (at, found), named[tokens.folded(at, found)]
        at = found or at + 1


def _reads(tokens: TokenList, at: int, end: int, tail: Range, named: Mapping[tuple[str, ...], str]) -> bool:
    """Whether a range is a selected expression, and not a part of a longer path."""
    is_part = tokens.is_symbol(at - 1, ".") or tokens.is_symbol(end, ".") or tokens.is_symbol(end, "(")
    return end <= tail[1] and not is_part and tokens.folded(at, end) in named


# -- matches -----------------------------------------------------------------------------------------


def _put_around_matches(edits: Edits, matched: MatchRelation, rowtimes: Mapping[str, str]) -> None:
    """Rewrite a relation with MATCH_RECOGNIZE as that of its matches so far."""
    tokens, clause, (start, stop) = edits.tokens, matched.clause, matched.range
    rowtime = None if clause.all_rows else _rowtime(tokens, clause, matched.source, rowtimes)
    excepted = "" if rowtime is None else f" EXCEPT ({SINCE})"
    edits.put(start, f"(SELECT *{excepted} FROM (SELECT * FROM ")
    if rowtime is not None:
        # a column as it is, of the row at which a match without rows is
        measure = SqlText.of(*([rowtime] if may_be_empty(clause.pattern) else ["LAST(", rowtime, ")"]))
        measure = SqlText.of(measure, f" AS {SINCE}")
        if clause.measures:
            edits.put(clause.measures[0].expression[0], measure, ", ")
        else:
            edits.put(_after_order(tokens, matched), "MEASURES ", measure, " ")
    edits.put(stop, f") {_WINDOW})")


def _rowtime(
    tokens: TokenList, clause: MatchClause, source: Range, rowtimes: Mapping[str, str]
) -> SqlText | None:
    """The column that orders rows: that of a stream if no other is written."""
    if clause.order_by:
        return column_of_key(tokens, clause.order_by[0].expression)
    rowtime = rowtimes.get(tokens[source[0]].name.lower()) if tokens[source[0]].is_name else None
    return None if rowtime is None else SqlText.of(quoted(rowtime))


def _after_order(tokens: TokenList, matched: MatchRelation) -> int:
    """The position for MEASURES, if there are none: before the options of output rows, or the pattern."""
    inside = matched.source[1] + 2, matched.range[1] - 1
    words = {"ONE": "ROW", "ALL": "MATCHES", "AFTER": "MATCH"}
    level = [at for at in tokens.level(*inside) if tokens.word(at) in words]
    found = [at for at in level if tokens.word(at + 1) == words[tokens.word(at)]]
    return min([*found, matched.clause.pattern_at[0] - 1])
