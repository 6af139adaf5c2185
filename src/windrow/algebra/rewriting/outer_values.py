"""Clauses that read outer columns anywhere: windows, or matches, for each of the outer values.

    FROM t WHERE EXISTS (SELECT … FROM r WHERE r.v > t.x WINDOW BY w AS (… PARTITION BY k …))

    →   rows      FROM r, (SELECT DISTINCT t.x AS c FROM t) AS o WHERE r.v > o.c
        keys      PARTITION BY k, o.c
        windows   WHERE s.c <=> t.x

    FROM t WHERE EXISTS (SELECT … FROM r MATCH_RECOGNIZE (PARTITION BY k … DEFINE A AS v > t.x))

    →   rows      FROM r, (SELECT DISTINCT t.x AS c FROM t) AS o
        keys      PARTITION BY k, c AS c
        matches   (SELECT * EXCEPT (c) FROM … DEFINE A AS v > c … WHERE c <=> t.x)

This is the dependent join of Neumann and Kemper (2015), with the set of the outer values as its left side. It
may have more values than the outer query needs, but never fewer. NULL is a separate value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from windrow.algebra.names import OUTER, QUALIFIED, of_relation
from windrow.algebra.rewriting.changing import varies_by_run
from windrow.algebra.rewriting.outer_references import OuterReference, OuterReferences
from windrow.algebra.scopes import VisibleRelations, parts_of_from
from windrow.algebra.window_node import Uses, WindowBoundary, WindowFragment
from windrow.errors import NotSupportedError, Span
from windrow.syntax.expression_nodes import Expression, Name, OperationNode, names_in
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import BlockText, BoundaryClause, Cte, Range, Role, Variable
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.pattern_windows import PatternBlock
from windrow.syntax.query_parts import visible_ctes
from windrow.syntax.sqltext import Piece, RelationText, SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = [
    "ValuesOfMatches",
    "ValuesOfWindows",
    "boundary_row",
    "filters",
    "refuse_changing",
    "values_of_matches",
    "values_of_pattern_windows",
    "values_of_windows",
]

_ROWS = "__rows"


@dataclass(frozen=True)
class OuterValues:
    """The outer values that a clause reads, as a relation that its rows are joined with.

    Attributes
    ----------
    references
        The places where outer columns are read.
    fields
        The field of the rows that has a column, by the column with its relation.
    query
        SELECT DISTINCT over the outer query.
    ctes
        The named queries that it sees, outermost first.
    is_lateral
        Whether the rows are made for each value by itself, as they are not a plain join with the values.
    """

    tokens: TokenList
    references: OuterReferences
    fields: Mapping[tuple[str, str], str]
    query: SqlText
    ctes: tuple[Cte, ...]
    is_lateral: bool

    # -- the rows ----------------------------------------------------------------------------------

    def in_rows(self, text: SqlText) -> SqlText:
        """A text over the rows, in which columns of the relation of values replace the outer ones."""
        tokens = self.tokens
        words = {tokens.span(*one.range): quoted(self._field(one)) for one in self.references.rows}
        return text.with_words(tokens.sql, words)

    def relation(self) -> SqlText:
        """The relation of the values."""
        return SqlText.of("(", self.query, ") AS ", quoted(OUTER))

    def items(self) -> list[SqlText]:
        """The values, as fields of the rows."""
        return [
            SqlText.of(f"{quoted(OUTER)}.{quoted(field)} AS {quoted(field)}")
            for field in self.fields.values()
        ]

    def fragment(self, key: WindowFragment) -> WindowFragment:
        """A key over the rows."""
        return replace(key, text=self.in_rows(key.text))

    def keys(self) -> tuple[WindowFragment, ...]:
        """The values as keys of PARTITION BY."""
        found = []
        for field, one in self._first().items():
            name = Name((field,), one.range)
            found.append(WindowFragment(SqlText.of(quoted(field)), name, self.tokens.span(*one.range)))
        return tuple(found)

    def for_each(self, rows: SqlText) -> SqlText:
        """A query of the rows, run for each value."""
        inner = SqlText.of("(", rows, ") AS ", quoted(_ROWS))
        return SqlText.of(f"SELECT {quoted(_ROWS)}.* FROM ", self.relation(), ", LATERAL ", inner)

    # -- the windows or matches --------------------------------------------------------------------

    def comparisons(self, before: str, text: Callable[[Range], SqlText]) -> list[SqlText]:
        """The comparisons of the fields, after this prefix, with the outer query."""
        found = []
        for field, one in self._first().items():
            column, relation = text(one.range), self.references.qualifier(one)
            if relation and not one.relation:
                span = self.tokens.span(*one.range)
                whole = f"{quoted(relation)}.{column.render()}"
                column = SqlText.of(Piece(whole, self.tokens.sql, span.start, span.stop - span.start))
            found.append(SqlText.of(f"{before}{quoted(field)} <=> ", column))
        return found

    def _first(self) -> dict[str, OuterReference]:
        """The fields, each with its first reference."""
        found: dict[str, OuterReference] = {}
        for one in self.references.all():
            found.setdefault(self._field(one), one)
        return found

    def _field(self, one: OuterReference) -> str:
        # no other column has such a name, also where the rows are groups and their relations are gone
        return self.fields[one.relation, one.column]


@dataclass(frozen=True)
class ValuesOfWindows(OuterValues):
    """The outer columns that a SELECT with WINDOW BY reads; `row` is a variable for a row that every window
    has.
    """

    inner: BlockText
    row: Variable

    # -- the rows ----------------------------------------------------------------------------------

    def columns(self) -> list[SqlText]:
        """The values, as columns of its relation."""
        return [SqlText.of(quoted(field)) for field in self.fields.values()]

    def joined(self, text: Callable[[int, int], SqlText]) -> SqlText:
        """FROM and the following clauses, joined with the values."""
        parts = parts_of_from(self.tokens, self.inner.range)
        assert parts is not None
        (first, last), stop = parts[0], self.inner.source[1]
        rest = SqlText.of(" ", text(last, stop)) if last < stop else SqlText()
        return SqlText.of("FROM ", text(first, last), ", ", self.relation(), self.in_rows(rest))

    # -- the clause --------------------------------------------------------------------------------

    def atoms(self, boundary: BoundaryClause) -> dict[int, Name]:
        """The substitutes for outer columns in a WHEN: fields of the boundary's row."""
        row = boundary_row(boundary).name
        return {
            one.range[0]: Name((row, self._field(one)), one.range)
            for one in self.references.whens
            if one.side is boundary.side
        }

    def with_row(self, boundary: WindowBoundary) -> WindowBoundary:
        """The boundary with a variable for each row that is read."""
        read = {one.side for one in self.references.whens} | {self.row.side}
        if boundary.side not in read:
            return boundary
        row = boundary_row(boundary)
        if row in boundary.variables:
            return boundary
        return replace(boundary, variables=(*boundary.variables, row))

    # -- the windows -------------------------------------------------------------------------------

    def of_window(self) -> dict[int, Name]:
        """The substitutes for outer columns in aggregates over a window: fields of its rows."""
        window = self.inner.clause.name
        return {one.range[0]: Name((window, self._field(one)), one.range) for one in self.references.over}

    def read_in(self, call: Range) -> frozenset[str]:
        """The fields of the values that an aggregate reads."""
        start, stop = call
        return frozenset(self._field(one) for one in self.references.over if start <= one.range[0] < stop)

    def with_uses(self, uses: tuple[Uses, ...]) -> tuple[Uses, ...]:
        """The fields that are read of the variables, including the values."""
        name = QUALIFIED + self.row.name
        known = next((use.fields for use in uses if use.name == name), None)
        fields = frozenset(self.fields.values()) | (known or frozenset())
        return (*(use for use in uses if use.name != name), Uses(name, fields))

    def conditions(self, text: Callable[[Range, Mapping[Range, str]], SqlText]) -> list[SqlText]:
        """The comparisons that join the windows with the outer query."""
        return self.comparisons(f"{quoted(QUALIFIED + self.row.name)}.", lambda part: text(part, {}))


@dataclass(frozen=True)
class ValuesOfMatches(OuterValues):
    """The outer columns that MATCH_RECOGNIZE and its input read."""

    def names(self) -> dict[Range, Name]:
        """The substitutes for outer columns in the clause: columns of the rows."""
        return {one.range: Name((self._field(one),), one.range) for one in self.references.over}

    def fragment(self, key: WindowFragment) -> WindowFragment:
        """A key over the rows; an outer value is not a column of the result."""
        found = super().fragment(key)
        at = None if key.expression is None else key.expression.range
        whole = next((one for one in self.references.rows if one.range == at), None)
        return found if whole is None else replace(found, expression=Name((self._field(whole),), whole.range))

    def joined(self, source: SqlText) -> SqlText:
        """FROM, joined with the values."""
        return SqlText.of(source, ", ", self.relation())

    def result(self, key: str, text: Callable[[int, int], SqlText]) -> SqlText:
        """The relation of the matches for the values of the current outer row."""
        hidden = ", ".join(map(quoted, self.fields.values()))
        where = self.condition(text)
        return SqlText.of(f" (SELECT * EXCEPT ({hidden}) FROM ", RelationText(key), " WHERE ", where, ")")

    def condition(self, text: Callable[[int, int], SqlText]) -> SqlText:
        """The condition that the values are those of the current outer row."""
        return SqlText.join(" AND ", self.comparisons("", lambda part: text(*part)))


def boundary_row(boundary: BoundaryClause | WindowBoundary) -> Variable:
    """The variable of a boundary's row, with a generated name if it is not declared."""
    declared = [variable for variable in boundary.variables if variable.role is Role.ROW]
    name = f"{OUTER}_{boundary.side.value}"
    return declared[0] if declared else Variable(name, boundary.side, Role.ROW, boundary.span)


def values_of_windows(
    tokens: TokenList,
    inner: BlockText,
    references: OuterReferences,
    text: Callable[[int, int], SqlText],
) -> ValuesOfWindows:
    """The values of the outer columns that a SELECT reads; `text` returns the user's text.

    Raises
    ------
    NotSupportedError
        ``NONDETERMINISTIC_QUERY`` if the outer query would have other values when it is read again.
    """
    fields, query, ctes = _values(tokens, inner.range[0], references, text)
    is_lateral = _is_lateral(tokens, inner, references, ctes)
    row = boundary_row(inner.clause.label or inner.clause.start)
    return ValuesOfWindows(tokens, references, fields, query, ctes, is_lateral, inner, row)


def values_of_matches(
    tokens: TokenList,
    relation: MatchRelation,
    references: OuterReferences,
    text: Callable[[int, int], SqlText],
) -> ValuesOfMatches:
    """The same for MATCH_RECOGNIZE; raises as :func:`values_of_windows`."""
    fields, query, ctes = _values(tokens, relation.range[0], references, text)
    clause, source = relation.clause, relation.source
    keys = (*clause.partition_by, *(item.expression for item in clause.order_by))
    words = {tokens.word(at) for at in tokens.level(*source)}
    words |= {tokens.word(at) for start, stop in keys for at in range(start, stop)}
    is_lateral = (
        len(ctes) < len(relation.ctes)
        or any(source[0] <= one.range[0] < source[1] for one in references.rows)
        or not words.isdisjoint(_OVER_ROWS)
    )
    return ValuesOfMatches(tokens, references, fields, query, ctes, is_lateral)


def values_of_pattern_windows(
    tokens: TokenList,
    query: PatternBlock,
    references: OuterReferences,
    text: Callable[[int, int], SqlText],
) -> ValuesOfMatches:
    """The same for windows with patterns, whose rows are made for each value."""
    fields, values, ctes = _values(tokens, query.range[0], references, text)
    return ValuesOfMatches(tokens, references, fields, values, ctes, is_lateral=True)


def _values(
    tokens: TokenList, at: int, references: OuterReferences, text: Callable[[int, int], SqlText]
) -> tuple[dict[tuple[str, str], str], SqlText, tuple[Cte, ...]]:
    """The fields of the values, their query, and the named queries that it sees.

    A clause that begins at another token, in the rows of this one, has other field names.
    """
    scope = references.scope
    assert scope.source is not None
    ctes = visible_ctes(tokens, scope.source[0])
    refuse_changing(tokens, scope.source, ctes)
    fields: dict[tuple[str, str], str] = {}
    columns: list[SqlText] = []
    for one in references.all():
        if (one.relation, one.column) in fields:
            continue
        name = f"{one.relation}.{one.column}" if one.relation else one.column
        fields[one.relation, one.column] = field = of_relation(f"{OUTER}{at}", name)
        columns.append(SqlText.of(text(*one.range), " AS ", quoted(field)))
    parts: list[str | SqlText] = [
        "SELECT DISTINCT ",
        SqlText.join(", ", columns),
        " FROM ",
        text(*scope.source),
    ]
    where = filters(tokens, scope, text)
    if where:
        parts += [" WHERE ", SqlText.join(" AND ", where)]
    return fields, SqlText.of(*parts), ctes


_OVER_ROWS = ("OVER", "QUALIFY", "VIEW", "PIVOT", "UNPIVOT")
"""Words of computations over several rows, or that read no further relation of FROM."""


def _is_lateral(
    tokens: TokenList, query: BlockText, references: OuterReferences, ctes: tuple[Cte, ...]
) -> bool:
    """Whether rows joined with the values would differ from the rows for each value.

    This is so for computations over several rows, and for relations that read the values inside FROM.
    """
    parts = parts_of_from(tokens, query.range)
    assert parts is not None
    source = parts[0]
    if len(ctes) < len(query.ctes) or any(source[0] <= one.range[0] < source[1] for one in references.rows):
        return True
    clause = query.clause
    keys = (*clause.partition_by, *(item.expression for item in clause.order_by))
    read = [part for part in (query.source, query.group_by, query.group_over, *keys) if part is not None]
    words = {tokens.word(at) for start, stop in read for at in range(start, stop)}
    if not words.isdisjoint(_OVER_ROWS):
        return True
    if query.group_by is None:
        return False
    grouping = {tokens.word(at) for at in range(*query.group_by)}
    return not grouping.isdisjoint(("ALL", "ROLLUP", "CUBE", "GROUPING"))


def filters(
    tokens: TokenList,
    scope: VisibleRelations,
    text: Callable[[int, int], SqlText],
    calls: Collection[int] = (),
    is_known: Callable[[Range], bool] | None = None,
) -> list[SqlText]:
    """The conditions of WHERE over these relations alone, without any of these `calls`.

    Values of rows that WHERE filters out would be unneeded work, and a WHEN may fail for them: ``o.x <> 0``.
    `is_known` decides for conditions where the text does not.
    """
    if scope.where is None:
        return []
    condition = parse_expression(tokens, *scope.where)
    is_and = isinstance(condition, OperationNode) and condition.operator == "AND"
    parts = condition.operands if is_and and isinstance(condition, OperationNode) else (condition,)
    # an unqualified name belongs to these relations if there are no others, here and in outer queries
    is_sole = scope.is_whole and tokens.parent[scope.at] < 0

    def is_about_them(part: Expression) -> bool:
        if any(varies_by_run(tokens, at) or at in calls for at in range(*part.range)):
            return False
        has_query = any(tokens.word(at) in ("SELECT", "WITH", "FROM") for at in range(*part.range))
        names = (name.parts for name in names_in(part))
        if not has_query and (is_sole or all(_is_of(name, scope) for name in names)):
            return True
        return is_known is not None and is_known(part.range)

    return [SqlText.of("(", text(*part.range), ")") for part in parts if is_about_them(part)]


def _is_of(name: Sequence[str], scope: VisibleRelations) -> bool:
    return len(name) > 1 and name[0].lower() in scope.names


def refuse_changing(tokens: TokenList, source: Range, ctes: tuple[Cte, ...]) -> None:
    """Refuse an outer FROM whose rows may differ when they are computed again."""
    named = {cte.name.lower(): cte for cte in ctes}
    waiting, seen = [source], set()
    while waiting:
        start, stop = waiting.pop()
        for at in range(start, stop):
            found = _changing(tokens, at)
            if found is not None:
                what, span = found
                raise NotSupportedError(
                    f"{what}, and a clause in a subquery reads the rows again",
                    condition="NONDETERMINISTIC_QUERY",
                    sql=tokens.sql,
                    span=span,
                    hint="store the rows of the outer query in a table first",
                )
            cte = named.get(tokens[at].name.lower()) if tokens[at].is_name else None
            if cte is not None and cte.body not in seen and not tokens.is_symbol(at - 1, "."):
                seen.add(cte.body)
                waiting.append(cte.body)


def _changing(tokens: TokenList, at: int) -> tuple[str, Span] | None:
    """The construct at a token that makes the outer rows differ between runs, and its position."""
    if tokens.is_symbol(at - 1, "."):
        return None
    if varies_by_run(tokens, at):
        what = f"{tokens[at].text} in the outer query returns a different value each time"
        return what, tokens.span(at, tokens.partner[at + 1] + 1)
    if tokens.word(at) == "TABLESAMPLE":
        return "TABLESAMPLE in the outer query returns different rows each time", tokens[at].span
    if tokens.word(at) in ("LIMIT", "OFFSET") and at + 1 < len(tokens) and not tokens.is_symbol(at + 1, "."):
        level = [one for one in tokens.level(tokens.parent[at] + 1, at) if tokens.word(one) == "ORDER"]
        if not level:
            return (
                f"{tokens.word(at)} without ORDER BY in the outer query returns different rows each time",
                tokens[at].span,
            )
    return None
