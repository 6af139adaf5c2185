"""Clauses over streams, and streams beside them, as the relations that they are so far.

SELECT k, COUNT(*) FROM (SELECT f.k FROM s WINDOW BY w AS (… ORDER BY ts START AS f …)) GROUP BY k
→  SELECT k, COUNT(*) FROM (SELECT * EXCEPT (__since)
   FROM (SELECT f.k, f.ts AS __since FROM s WINDOW BY w AS (…)) [RANGE UNBOUNDED]) GROUP BY k

What gathers rows of a clause reads all that it returns over the whole log. Live these are its rows so far,
which are a relation: the window of unlimited length over the stream that the clause returns. `__since` is the
rowtime of a window's label row, or of the last row of a match, as the query need not select it.

A clause over rows that are gathered is itself one over a relation:

SELECT … FROM s JOIN t ON s.k = t.k WINDOW BY w AS (…)
→  SELECT … FROM s [RANGE UNBOUNDED] JOIN t [RANGE UNBOUNDED] ON s.k = t.k WINDOW BY w AS (…)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from windrow.algebra.names import SINCE, piece_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.patterns.over_beside_patterns import has_over_of_rows, put_over_around_patterns
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import BlockText, Range, Role
from windrow.syntax.patterns.match_nodes import MatchRelation
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
    tokens: TokenList, streams: Collection[str], rowtimes: Mapping[str, str], *, below: bool = False
) -> SqlText | None:
    """The text in which clauses over streams, and streams beside them, are relations.

    None if there is nothing to change, or if groups of windows in the SELECT of their clause read more than
    fields of their rows.

    Parameters
    ----------
    streams
        The names of the session's streams, in lower case.
    rowtimes
        The columns that show the rowtimes of streams, by the streams' names.
    below
        Whether rows are gathered below a clause.
    """
    edits = Edits(tokens)
    clauses = [] if below else _outermost(tokens)
    for clause in clauses:
        if not any(_is_stream(tokens, at, streams) for at in range(*clause.range)):
            continue
        match clause:
            case BlockText(groups_after=None):
                _put_around_windows(edits, clause)
            case PatternBlock(made_by=None) if has_over_of_rows(tokens, clause):
                put_over_around_patterns(edits, clause, _WINDOW)
            case PatternBlock(made_by=None):
                _put_around_select(edits, clause, "")
            case MatchRelation():
                _put_around_matches(edits, clause, rowtimes)
            case BlockText() if (groups := _Groups.of(tokens, clause)) is not None:
                groups.put(edits)
            case _:
                return None
    for at in range(len(tokens)):
        inside = any(start <= at < stop for start, stop in (clause.range for clause in clauses))
        if not inside and _is_stream(tokens, at, streams) and not tokens.is_symbol(at + 1, "["):
            edits.put(at + 1, _WINDOW)
    return edits.text(0, len(tokens)) if edits.is_changed else None


def _outermost(tokens: TokenList) -> list[_Clause]:
    """The SELECTs and relations with a clause that are in no other one."""
    found: list[_Clause] = [
        *find_window_queries(tokens),
        *find_matches(tokens),
        *find_pattern_windows(tokens),
    ]
    ranges = [one.range for one in found]
    return [one for one in found if not any(_is_in(one.range, other) for other in ranges)]


def _is_in(inside: Range, around: Range) -> bool:
    return inside != around and around[0] <= inside[0] and inside[1] <= around[1]


def _is_stream(tokens: TokenList, at: int, streams: Collection[str]) -> bool:
    """Whether a token is a stream in FROM, and no query of WITH."""
    if not tokens[at].is_name or tokens[at].name.lower() not in streams or not begins_relation(tokens, at):
        return False
    if tokens.is_symbol(at + 1, ".") or tokens.is_symbol(at + 1, "("):
        return False
    return tokens[at].name.lower() not in (cte.name.lower() for cte in visible_ctes(tokens, at))


# -- SELECTs -----------------------------------------------------------------------------------------


def _put_around_windows(edits: Edits, query: BlockText) -> None:
    """Make a SELECT with WINDOW BY one over the relation of its windows."""
    hidden = _of_label_row(edits.tokens, query)
    if hidden is not None:
        edits.put(query.select[1], ", ", hidden, f" AS {SINCE}")
    _put_around_select(edits, query, "" if hidden is None else f" EXCEPT ({SINCE})")


def _put_around_select(edits: Edits, query: BlockText | PatternBlock, excepted: str) -> None:
    """Make a SELECT one over its relation, which takes DISTINCT, and what is behind the clause."""
    tokens, first = edits.tokens, query.select[0]
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


def _of_label_row(tokens: TokenList, query: BlockText) -> SqlText | None:
    """The rowtime of a window: the first key of ORDER BY of its label row; None where that has no name."""
    labels = query.clause.label or query.clause.start
    row = next((one for one in labels.variables if one.role is Role.ROW), None)
    key = _name(tokens, query.clause.order_by[0].expression)
    return None if row is None or key is None else SqlText.of(quoted(row.name), ".", key)


def _name(tokens: TokenList, key: Range) -> SqlText | None:
    """The column that a key is, without its relation; None of an expression."""
    is_path = all(
        tokens.is_symbol(at, ".") if (at - key[0]) % 2 else tokens[at].is_name for at in range(*key)
    )
    return piece_of(tokens, key[1] - 1, key[1]) if is_path and (key[1] - key[0]) % 2 else None


def _selected(tokens: TokenList, items: Range, tail: Range) -> Iterator[tuple[Range, str]]:
    """Where ORDER BY reads what is selected, with the name of that column."""
    named: dict[tuple[str, ...], str] = {}
    for item in tokens.split(*items):
        expression = without_alias(tokens, item)
        if expression != item or _name(tokens, item) is not None:
            named.setdefault(tokens.folded(*expression), tokens[item[1] - 1].name)
    at = tail[0]
    while at < tail[1]:
        lengths = sorted({len(said) for said in named}, reverse=True)
        found = next((end for end in map(at.__add__, lengths) if _reads(tokens, at, end, tail, named)), None)
        if found is not None:
            yield (at, found), named[tokens.folded(at, found)]
        at = found or at + 1


def _reads(tokens: TokenList, at: int, end: int, tail: Range, named: Mapping[tuple[str, ...], str]) -> bool:
    """Whether a stretch is an expression that is selected, and not a part of a longer path."""
    is_part = tokens.is_symbol(at - 1, ".") or tokens.is_symbol(end, ".") or tokens.is_symbol(end, "(")
    return end <= tail[1] and not is_part and tokens.folded(at, end) in named


@dataclass(frozen=True)
class _Groups:
    """GROUP BY after WINDOW BY in one SELECT, which becomes one over the relation of the windows.

    Attributes
    ----------
    tokens, query
        The text, and the SELECT.
    fields
        Where it reads fields of rows, and positions, by the names that these have in the relation.
    """

    tokens: TokenList
    query: BlockText
    fields: Mapping[Range, str]

    @staticmethod
    def of(tokens: TokenList, query: BlockText) -> _Groups | None:
        """The groups; None if they read windows or whole rows, or an item needs a name."""
        assert query.groups_after is not None
        roles = {variable.name.lower(): variable.role for variable in query.clause.variables()}
        fields: dict[Range, str] = {}
        names: dict[tuple[str, ...], str] = {}
        for at in (at for part in (query.select, query.groups_after, query.tail) for at in range(*part)):
            name = tokens[at].name.lower() if tokens[at].is_name else ""
            if tokens.is_symbol(at - 1, ".") or tokens.word(at - 1) == "AS":
                continue
            is_field = tokens.is_symbol(at + 1, ".") and tokens[at + 2].is_name
            is_whole = name in roles and is_field == (roles[name] is Role.POSITION)
            if is_whole or name == query.clause.name.lower() or tokens.word(at) == "SELECT":
                return None
            if name in roles:
                path = (at, at + 3) if is_field else (at, at + 1)
                fields[path] = names.setdefault(tokens.folded(*path), f"{SINCE}{len(names)}")
        found = _Groups(tokens, query, fields)
        has_star = any(tokens.is_symbol(start, "*") for start, _ in found._items)
        return None if has_star or not all(map(found._has_name, found._items)) else found

    @property
    def _items(self) -> list[Range]:
        return self.tokens.split(*without_distinct(self.tokens, self.query.select))

    def _has_name(self, item: Range) -> bool:
        """Whether what an item returns is called as in the SELECT: by an alias, or as it reads no field."""
        is_read = any(item[0] <= start and stop <= item[1] for start, stop in self.fields)
        return not is_read or item in self.fields or without_alias(self.tokens, item) != item

    def put(self, edits: Edits) -> None:
        """Put the SELECT of the windows below that of the groups."""
        tokens, query = self.tokens, self.query
        assert query.groups_after is not None
        for item in (item for item in self._items if item in self.fields):
            edits.put(item[1], f"AS {quoted(tokens[item[1] - 1].name)}")
        read = {name: place for place, name in self.fields.items()}
        columns = [SqlText.of(piece_of(tokens, *place), f" AS {name}") for name, place in read.items()]
        hidden = _of_label_row(tokens, query)
        columns += [] if hidden is None else [SqlText.of(hidden, f" AS {SINCE}")]
        edits.put(query.select[1], "FROM (SELECT ", SqlText.join(", ", columns or [SqlText.of("1 AS one")]))
        edits.put(query.groups_after[0], f") {_WINDOW}")
        for place, name in self.fields.items():
            edits.instead.update(dict.fromkeys(range(*place), SqlText()))
            edits.put(place[0], name)


# -- matches -----------------------------------------------------------------------------------------


def _put_around_matches(edits: Edits, matched: MatchRelation, rowtimes: Mapping[str, str]) -> None:
    """Make a relation with MATCH_RECOGNIZE that of its matches so far."""
    hidden = _of_last_row(edits.tokens, matched, rowtimes)
    start, stop = matched.range
    excepted = "" if hidden is None else f" EXCEPT ({SINCE})"
    edits.put(start, f"(SELECT *{excepted} FROM (SELECT * FROM ")
    if hidden is not None:
        measure = SqlText.of("LAST(", hidden, f") AS {SINCE}")
        if matched.clause.measures:
            edits.put(matched.clause.measures[0].expression[0], measure, ", ")
        else:
            edits.put(_after_order(edits.tokens, matched), "MEASURES ", measure, " ")
    edits.put(stop, f") {_WINDOW})")


def _of_last_row(tokens: TokenList, matched: MatchRelation, rowtimes: Mapping[str, str]) -> SqlText | None:
    """The column with the rowtime of a match's rows; None if all rows show it, and if there may be none."""
    clause, (start, stop) = matched.clause, matched.source
    if clause.all_rows or may_be_empty(clause.pattern):
        return None
    if clause.order_by:
        return _name(tokens, clause.order_by[0].expression)
    rowtime = (
        rowtimes.get(tokens[start].name.lower()) if stop - start == 1 and tokens[start].is_name else None
    )
    return None if rowtime is None else SqlText.of(quoted(rowtime))


def _after_order(tokens: TokenList, matched: MatchRelation) -> int:
    """Where MEASURES stand, if there are none: before what says which rows there are, or the pattern."""
    inside = matched.source[1] + 2, matched.range[1] - 1
    words = {"ONE": "ROW", "ALL": "MATCHES", "AFTER": "MATCH"}
    level = [at for at in tokens.level(*inside) if tokens.word(at) in words]
    found = [at for at in level if tokens.word(at + 1) == words[tokens.word(at)]]
    return min([*found, matched.clause.pattern_at[0] - 1])
