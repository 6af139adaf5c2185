"""Calls of SQL functions over windows for a row of a clause: the value becomes a column of its rows.

    SELECT MAX(f(w.v + 1)) FROM t WINDOW BY w AS (… START AS s WHEN s.v < 9 END NEXT AS n WHEN f(n.v) > 1)
      →  SELECT MAX(w.__of_call0)
         FROM t, LATERAL (SELECT f(v + 1) AS __of_call0) AS __call0,
           LATERAL (SELECT f(v) AS __of_call1) AS __call1, LATERAL (SELECT TRUE AS __of_row) AS __call2
         WINDOW BY w AS (… START AS s WHEN s.v < 9
           END NEXT AS n WHEN IF(n.__of_row IS NULL, (SELECT f(NULL)), n.__of_call1) > 1)

    t MATCH_RECOGNIZE (… DEFINE A AS f(A.v) > 1)
      →  (SELECT *, f(v) AS __of_call0 FROM t) AS t MATCH_RECOGNIZE (… DEFINE A AS A.__of_call0 > 1)

A condition over several rows looks the value up among those of all rows of the partition together:

    WHEN f(e.v - s.v) > 1
      →  WHEN (SELECT ANY_VALUE(__values.__value)
               FROM (…) AS __values WHERE __values.__given0 <=> (e.v - s.v)) > 1

Fields with such names are no part of ``*`` (:func:`windrow.algebra.names.visible_field`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from windrow.algebra.aggregate_calls import aggregate_ranges, calls_aggregate, places_of_calls
from windrow.algebra.names import QUALIFIED, piece_of
from windrow.algebra.qualified import relations_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import put_instead, put_name
from windrow.algebra.scopes import first_of, parts_of_from
from windrow.errors import NotSupportedError
from windrow.statements.definitions.calls.calls_in_measures import measures_above
from windrow.statements.definitions.calls.calls_over_selects import ColumnsOf
from windrow.statements.definitions.function_calls import (
    end_of_column,
    every_call,
    first_of_call,
    operands_of_call,
    outermost_calls,
)
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.statements.definitions.values_of_calls import GivenValues, name_of_row, rows_together
from windrow.syntax.nodes import BlockText, Range, Role, WindowClause, is_within
from windrow.syntax.patterns.match_nodes import MatchClause, MatchRelation, Named
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.pattern_windows import PatternWindow, find_pattern_windows
from windrow.syntax.patterns.row_patterns import variables_of
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.select_list import without_distinct
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["calls_in_clauses"]

_BARE = frozenset({""})
_VALUES = "__values"
_VALUE, _HERE, _RELATION = f"{QUALIFIED}call", f"{QUALIFIED}row", "__call"
_NAVIGATIONS = frozenset({"PREV", "NEXT", "FIRST", "LAST"})
_OF_MATCHES = _NAVIGATIONS | {"CLASSIFIER", "MATCH_NUMBER"}


@dataclass(frozen=True)
class _Place:
    """A condition, key, measure or aggregate, in which calls read one row.

    Attributes
    ----------
    range
        Its tokens.
    rows
        The names, in lower case, of rows that calls may read.
        The empty name is that of columns without a row.
    there
        Those of them that are never missing; the value of a missing row is that of NULLs.
    is_last
        Whether columns without a row are those of the last one.
    measure
        The measure that it is.
    current
        In a condition, which can look values up, the row of columns without one; empty if there is none.
    """

    range: Range
    rows: frozenset[str] = frozenset()
    there: frozenset[str] = frozenset()
    is_last: bool = False
    measure: Named | None = None
    current: str | None = None


def calls_in_clauses(
    tokens: TokenList,
    functions: KnownFunctions,
    own_aggregates: Callable[[], frozenset[str]],
    is_constant: Callable[[SqlText], bool],
    columns_of: ColumnsOf,
) -> SqlText | None:
    """The text with such calls of the first clause as columns of its rows; None if there are none.

    Calls with subqueries, of constants, and over rows that are groups stay where they are.

    Parameters
    ----------
    own_aggregates
        Finds the names, in lower case, of the user's aggregates.
    is_constant
        Whether arguments read no columns, but variables of the session at most.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_QUERY`` for arguments that are computed in each step of a search, and for calls in
        patterns of OVER.
    """
    calls, own = list(outermost_calls(tokens, functions)), own_aggregates()
    every = frozenset(every_call(tokens, functions)) if calls else frozenset()
    for match in find_matches(tokens):
        relation = piece_of(tokens, first_of(tokens, match), match.source[1])
        rows = _Rows(relation, match.clause.partition_by, bool(match.ctes), every, columns_of)
        columns = _Columns(tokens, calls, list(_places_of_match(tokens, match)), is_constant, rows)
        if columns.measures:
            return measures_above(tokens, match, columns.measures, own)
        if columns.replaced:
            return columns.below_match(match)
    for query in find_window_queries(tokens):
        parts = None if query.group_by is not None else parts_of_from(tokens, query.range)
        if parts is None:
            continue
        relation = SqlText.join(" WHERE ", [piece_of(tokens, *part) for part in parts if part is not None])
        rows = _Rows(relation, query.clause.partition_by, bool(query.ctes), every, columns_of)
        columns = _Columns(tokens, calls, list(_places_of_windows(tokens, query, own)), is_constant, rows)
        found = columns.below_windows(query, parts[0]) if columns.replaced else None
        if found is not None:
            return found
    for at in calls:
        if any(is_within((at, at + 1), window.range) for window in _windows_with_patterns(tokens)):
            place = (first_of_call(tokens, at), tokens.partner[at + 1] + 1)
            raise _refused(
                tokens, place, "cannot be called in a pattern of OVER", "use MATCH_RECOGNIZE in FROM"
            )
    return None


def _windows_with_patterns(tokens: TokenList) -> list[PatternWindow]:
    return [window for block in find_pattern_windows(tokens) for window in block.windows]


def _refused(tokens: TokenList, place: Range, what: str, hint: str) -> NotSupportedError:
    return NotSupportedError(
        f"a function over windows {what}",
        condition="UNSUPPORTED_QUERY",
        sql=tokens.sql,
        span=tokens.span(*place),
        hint=hint,
    )


def _reason(place: _Place, *, reads_rows: bool) -> tuple[str, str]:
    """Why a call in a place is refused, and what to write."""
    hint = "call it for each row, or select what it reads, and call it in a query around"
    if place.current is None:
        return "can only be called here with columns of one row", hint
    if reads_rows:
        return "would need a query for each step of the search, in which its argument is computed", hint
    return "can only read rows in FROM here, and no other call", "compute it in a subquery in FROM"


def _places_of_match(tokens: TokenList, match: MatchRelation) -> Iterator[_Place]:
    clause = match.clause
    names = [*variables_of(clause.pattern), *(one.name for one in clause.subsets)]
    rows = frozenset(name.lower() for name in names) | _BARE
    yield from _keys(clause)
    for define in clause.defines:
        yield from _navigations(tokens, define.expression, rows)
        own = frozenset({"", define.name.lower()})
        yield _Place(define.expression, rows, own, current=define.name)
    for measure in clause.measures:
        aggregates = places_of_calls(tokens, [measure.expression])
        yield from (_Place(one, rows, rows) for one in aggregates)
        yield from _navigations(tokens, measure.expression, rows)
        yield _Place(measure.expression, rows, is_last=True, measure=measure)


def _navigations(tokens: TokenList, part: Range, rows: frozenset[str]) -> Iterator[_Place]:
    """The rows that PREV and the like go to: they return NULL where there is none."""
    for at in range(*part):
        if tokens.word(at) in _NAVIGATIONS and tokens.is_symbol(at + 1, "("):
            yield _Place((at, tokens.partner[at + 1] + 1), rows, rows)


def _places_of_windows(tokens: TokenList, query: BlockText, own: frozenset[str]) -> Iterator[_Place]:
    clause = query.clause
    yield from _keys(clause)
    rows = frozenset(one.name.lower() for one in clause.variables() if one.role is not Role.POSITION)
    for boundary in clause.boundaries():
        there = frozenset(one.name.lower() for one in boundary.variables if one.role is Role.ROW)
        if boundary.when is not None:
            yield _Place(boundary.when, rows, there, current="")
    parts = [part for part in (query.select, query.having, query.groups_after, query.tail) if part]
    window = frozenset({clause.name.lower()})
    for aggregate in aggregate_ranges(tokens, parts, clause.name, own):
        yield _Place(aggregate, window | rows, window, current="")


def _keys(clause: WindowClause | MatchClause) -> Iterator[_Place]:
    for key in (*clause.partition_by, *(item.expression for item in clause.order_by)):
        yield _Place(key, _BARE, _BARE)


@dataclass(frozen=True)
class _Rows:
    """The rows that a clause reads.

    Attributes
    ----------
    relation
        What follows FROM, with WHERE.
    keys
        Those of the partitions.
    has_ctes
        Whether the relation may be a query of WITH, which cannot be read alone.
    calls
        All calls of the text.
    """

    relation: SqlText
    keys: tuple[Range, ...]
    has_ctes: bool
    calls: frozenset[int]
    columns_of: ColumnsOf


@dataclass
class _Columns:
    """The values of calls in some places, as columns of rows, and the text that reads them."""

    tokens: TokenList
    calls: list[int]
    places: list[_Place]
    is_constant: Callable[[SqlText], bool]
    rows: _Rows
    values: list[SqlText] = field(default_factory=list)
    numbers: dict[tuple[str, ...], int] = field(default_factory=dict)
    replaced: list[Range] = field(default_factory=list)
    measures: list[Named] = field(default_factory=list)
    may_be_missing: bool = False

    def __post_init__(self) -> None:
        self.edits = Edits(self.tokens)
        for at in self.calls:
            call = (first_of_call(self.tokens, at), self.tokens.partner[at + 1] + 1)
            place = next((one for one in self.places if is_within(call, one.range)), None)
            if place is not None and not self._has_query(call, place):
                self._take(call, place)

    def _arguments(self, call: Range) -> Range:
        return next(at for at in range(*call) if self.tokens.is_symbol(at, "(")) + 1, call[1] - 1

    def _has_query(self, call: Range, place: _Place) -> bool:
        """Whether a query is in a call, or a query or lambda function around it in its place."""
        tokens, around, parents = self.tokens, self.tokens.parent[call[0]], list(range(*call))
        while around >= place.range[0]:
            if any(tokens.is_symbol(at, "->") for at in tokens.level(around + 1, call[0])):
                return True
            parents.append(around)
            around = tokens.parent[around]
        return any(opens_query(tokens, at) for at in parents)

    def _take(self, call: Range, place: _Place) -> None:
        """Read a call as a column of its row, if it reads one."""
        tokens, operands = self.tokens, operands_of_call(self.tokens, call)
        is_bare = all(self._row_of(at, place) == "" for at in operands)
        if operands and is_bare and self.is_constant(piece_of(tokens, *self._arguments(call))):
            return
        row, reads_rows = self._row(operands, place), self._reads_rows(call)
        needs_types = bool(operands) and row not in place.there and self._needs_types(call, operands)
        if reads_rows or (operands and row is None) or needs_types:
            self._take_of_rows(call, place, reads_rows)
            return
        if operands and row is not None:
            self._add(call, place, row)

    def _take_of_rows(self, call: Range, place: _Place, reads_rows: bool) -> None:
        """Compute a measure with such a call above, and look its value up in a condition."""
        tokens, measure = self.tokens, place.measure
        if measure is not None and not any(opens_query(tokens, at) for at in range(*measure.expression)):
            if measure not in self.measures:
                self.measures.append(measure)
            return
        values = None if reads_rows or place.current is None else self._values(call, place)
        if values is None:
            raise _refused(tokens, call, *_reason(place, reads_rows=reads_rows))
        self.replaced.append(call)
        found = SqlText.of(
            f"(SELECT ANY_VALUE({values.names(_VALUES)[0]}) FROM (", values.table(), f") AS {_VALUES} WHERE ",
            values.condition(_VALUES), ")",
        )  # fmt: skip
        put_instead(self.edits, call, found)

    def _values(self, call: Range, place: _Place) -> GivenValues | None:
        """The values of a call over rows together; None for other columns, calls, and what is not known."""
        tokens, inside, around = self.tokens, Edits(self.tokens), Edits(self.tokens)
        names: list[str] = []
        for at in operands_of_call(tokens, call):
            row = self._row_of(at, place)
            name = row or (place.current or "").lower()
            if not name:
                return None
            names += [] if name in names else [name]
            relation = f"{name_of_row(names.index(name))}."
            if row:
                put_instead(inside, (at, at + 2), relation)
            else:
                inside.put(at, relation)
                around.put(at, f"{quoted(place.current or '')}.")
        if sum(at in range(*call) for at in self.rows.calls) > 1:
            return None
        keys = [piece_of(tokens, *key) for key in self.rows.keys if self.rows.calls.isdisjoint(range(*key))]
        source = rows_together(self.rows.relation, keys, [name not in place.there for name in names])
        values = GivenValues(tokens, call, source, inside, around)
        return values if self.rows.has_ctes or values.is_known(self.rows.columns_of) else None

    def _reads_rows(self, call: Range) -> bool:
        """Whether other rows are read than the current ones: by aggregates and navigations."""
        tokens, words = self.tokens, (at for at in range(*call) if self.tokens.word(at) in _OF_MATCHES)
        return calls_aggregate(tokens, call) or any(tokens.is_symbol(at + 1, "(") for at in words)

    def _needs_types(self, call: Range, operands: list[int]) -> bool:
        """Whether a NULL in place of a column may be of a type that the call cannot have."""
        tokens = self.tokens
        has_length = any(tokens.word(at) == "INTERVAL" for at in range(*call))
        has_lambda = any(tokens.is_symbol(at, "->") for at in range(*call))
        return (
            has_length
            or has_lambda
            or any(tokens.is_symbol(end_of_column(tokens, at), "[") for at in operands)
        )

    def _row(self, operands: list[int], place: _Place) -> str | None:
        """The row whose columns a call reads: empty for columns without one, None if there are several."""
        found = {self._row_of(at, place) for at in operands}
        row = found.pop() if len(found) == 1 else None
        return row if row in place.rows else None

    def _row_of(self, at: int, place: _Place) -> str:
        name = self.tokens[at].name.lower()
        return name if name in place.rows and self.tokens.is_symbol(at + 1, ".") else ""

    def _add(self, call: Range, place: _Place, row: str) -> None:
        """Add the column of a call, unless there is an equal one, and read it in its place."""
        tokens, operands = self.tokens, operands_of_call(self.tokens, call)
        value, nulls = Edits(tokens), Edits(tokens)
        for at in operands:
            put_instead(nulls, (at, end_of_column(tokens, at)), "NULL")
            if row:
                put_instead(value, (at, at + 2), "")
        text = value.text(*call)
        said = tokenize(text.render())  # where each ? is a parameter of its own
        number = self.numbers.setdefault(said.folded(0, len(said)), len(self.values))
        if number == len(self.values):
            self.values.append(SqlText.of(text, f" AS {_VALUE}{number}"))
        before = f"{tokens[operands[0]].text}." if row else ""
        column, here = f"{before}{_VALUE}{number}", f"{before}{_HERE}"
        if not row and place.is_last:
            column, here = f"LAST({column})", f"LAST({here})"
        read: str | SqlText = column
        if row not in place.there:
            self.may_be_missing = True
            read = SqlText.of(f"IF({here} IS NULL, (SELECT ", nulls.text(*call), f"), {column})")
        self.replaced.append(call)
        put_instead(self.edits, call, read)

    def _columns(self) -> list[SqlText]:
        return [*self.values, *([SqlText.of(f"TRUE AS {_HERE}")] if self.may_be_missing else [])]

    def below_match(self, match: MatchRelation) -> SqlText:
        """The text with the columns in the relation that is matched."""
        tokens, stop = self.tokens, match.source[1]
        first = first_of(tokens, match)
        names = list(relations_of(tokens, (first - 1, stop)))
        columns = self._columns()
        if columns:
            self.edits.put(first, "(SELECT *, ", SqlText.join(", ", columns), " FROM ")
            self.edits.put(stop, ")", f" AS {quoted(names[0])}" if len(names) == 1 else "")
        return self.edits.text(0, len(tokens))

    def below_windows(self, query: BlockText, source: Range) -> SqlText | None:
        """The text with the columns in FROM; None where it has LATERAL VIEW."""
        tokens = self.tokens
        if any(tokens.word(at) == "VIEW" for at in tokens.level(*source)):
            return None
        for item in tokens.split(*without_distinct(tokens, query.select)):
            put_name(self.edits, item, self.replaced, ())
        for number, value in enumerate(self._columns()):
            self.edits.put(source[1], ", LATERAL (SELECT ", value, f") AS {_RELATION}{number}")
        return self.edits.text(0, len(tokens))
