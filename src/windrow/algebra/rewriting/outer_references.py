"""Where WINDOW BY and MATCH_RECOGNIZE read columns of the outer query to make windows or find matches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from windrow.algebra.scopes import VisibleRelations, first_of, parts_of_from, scopes
from windrow.errors import AnalysisError
from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.nodes import BlockText, Range, Side
from windrow.syntax.operands import may_be_operand
from windrow.syntax.patterns.match_nodes import MatchRelation, variable_name
from windrow.syntax.patterns.pattern_windows import PatternBlock
from windrow.syntax.patterns.row_patterns import variables_of
from windrow.syntax.tokens import TokenList

__all__ = [
    "Clause",
    "ColumnsOf",
    "OuterReference",
    "OuterReferences",
    "find_in_match",
    "find_in_pattern_windows",
    "find_outer_references",
]

Clause = BlockText | MatchRelation


class ColumnsOf(Protocol):
    """Asks which columns relations of FROM have."""

    def __call__(
        self, source: Range, around: Range | None, item: Range | None = None
    ) -> Sequence[str] | None:
        """The names of all columns, or of an item of SELECT over the relations, which may read those
        `around`; None where it is not known.
        """


@dataclass(frozen=True)
class OuterReference:
    """One place where a column is read: the column in lower case, with its qualifier, which may be empty.

    The relation is written with its schema where the column is. `side` is that of the WHEN in which it
    stands, or None.
    """

    relation: str
    column: str
    range: Range
    side: Side | None = None


@dataclass(frozen=True)
class OuterReferences:
    """The outer columns that a clause reads: to make its rows; in a WHEN; and over windows or matches.

    The last are aggregates over a window, or expressions in DEFINE, MEASURES and a length.
    """

    scope: VisibleRelations
    rows: tuple[OuterReference, ...]
    whens: tuple[OuterReference, ...]
    over: tuple[OuterReference, ...]

    def all(self) -> tuple[OuterReference, ...]:
        """All places."""
        return (*self.rows, *self.whens, *self.over)

    def qualifier(self, one: OuterReference) -> str:
        """The relation of a column, also of an unqualified one; empty if there are several."""
        names = self.scope.names
        return one.relation or (next(iter(names)) if len(names) == 1 else "")


def find_outer_references(
    tokens: TokenList,
    query: BlockText,
    clauses: Sequence[Clause],
    aggregates: Sequence[Range],
    columns_of: ColumnsOf | None,
) -> OuterReferences | None:
    """The outer columns that a SELECT reads before its windows are made; None without any.

    Unqualified names are resolved if `columns_of` knows the columns; `clauses` are those of the text, and
    `aggregates` the calls over the window.

    Raises
    ------
    AnalysisError
        ``AMBIGUOUS_REFERENCE`` where a variable of the clause hides a column, or its relation, from SELECT.
    """
    around = tokens.parent[query.range[0]]
    scope = next(scopes(tokens, around, clauses), None) if around >= 0 else None
    if scope is None or (scope.source is None and scope.columns is not None):
        return None  # the outer query is MATCH_RECOGNIZE
    clause = query.clause
    let = {tokens[at].name.lower() for at, _ in (tokens.split(*query.let) if query.let else [])}
    # in a WHEN the rows are read by variables alone, but `v` for `s.v` stays an error there
    own = parts_of_from(tokens, query.range)
    finder = _Finder(tokens, clauses, scope, columns_of, let, None if own is None else own[0])
    variables = {clause.name.lower(), *(variable.name.lower() for variable in clause.variables())}
    keys = (*clause.partition_by, *(item.expression for item in clause.order_by))
    parts = (query.source, query.group_by, query.let, query.group_having, query.group_over, *keys)
    rows = [found for part in parts if part is not None for found in finder.found(part)]
    whens = [
        found
        for boundary in clause.boundaries()
        if boundary.when is not None
        for found in finder.found(boundary.when, boundary.side)
    ]
    calls = [found for call in aggregates for found in finder.found(call)]
    if not rows and not whens and not calls:
        return None
    references = OuterReferences(scope, tuple(rows), tuple(whens), tuple(calls))
    for one in rows:
        if (references.qualifier(one) or one.column).partition(".")[0] in variables:
            raise _hidden(tokens, one, "variable of WINDOW BY", "rename the variable")
    return references


def find_in_match(
    tokens: TokenList, relation: MatchRelation, clauses: Sequence[Clause], columns_of: ColumnsOf | None
) -> OuterReferences | None:
    """The outer columns that MATCH_RECOGNIZE and its input read; None without any.

    None too if the outer rows are windows, or rows of MATCH_RECOGNIZE.

    Raises
    ------
    AnalysisError
        ``AMBIGUOUS_REFERENCE`` where a name of the result hides a column without its relation.
    """
    scope = next(scopes(tokens, first_of(tokens, relation), clauses), None)
    if scope is None or scope.source is None:
        return None
    finder = _Finder(tokens, clauses, scope, columns_of)
    clause = relation.clause
    keys = (*clause.partition_by, *(item.expression for item in clause.order_by))
    named = (item.expression for item in (*clause.measures, *clause.defines))
    lengths = (length.tokens for length in (clause.within, clause.duration) if length is not None)
    rows = tuple(found for part in (relation.source, *keys) for found in finder.found(part))
    over = tuple(found for part in (*named, *lengths) for found in finder.found(part))
    if not rows and not over:
        return None
    references = OuterReferences(scope, rows, (), over)
    names = {item.name.lower() for item in clause.measures}
    names |= {name.lower() for name in clause.key_names if name is not None}
    for one in references.all():
        if not references.qualifier(one) and one.column in names:
            raise _hidden(
                tokens,
                one,
                "column of the result of MATCH_RECOGNIZE",
                "write its relation before it, as in t.x",
            )
    return references


def find_in_pattern_windows(
    tokens: TokenList, query: PatternBlock, clauses: Sequence[Clause], columns_of: ColumnsOf | None
) -> OuterReferences | None:
    """The outer columns that windows with patterns and their rows read; None without any.

    None too if the outer rows are windows, or rows of MATCH_RECOGNIZE.
    """
    around = tokens.parent[query.range[0]]
    scope = next(scopes(tokens, around, clauses), None) if around >= 0 else None
    if scope is None or scope.source is None:
        return None
    finder = _Finder(tokens, clauses, scope, columns_of)
    rows, over = list(finder.found(query.source)), []
    for window in query.windows:
        clause = window.clause
        rows += [found for key in clause.partition_by for found in finder.found(key)]
        rows += [found for item in clause.order_by for found in finder.found(item.expression)]
        names = {*variables_of(clause.pattern), *(subset.name for subset in clause.subsets)}
        parts = [item.expression for item in (*clause.measures, *clause.defines)]
        parts += [clause.within.tokens] if clause.within is not None else []
        parts += [call.function for call in query.calls if call.window is window and call.measure is None]
        found = (one for part in parts for one in finder.found(part))
        over += [one for one in found if variable_name(tokens[one.range[0]]) not in names]
    return OuterReferences(scope, tuple(rows), (), tuple(over)) if rows or over else None


def _hidden(tokens: TokenList, one: OuterReference, by: str, hint: str) -> AnalysisError:
    name, what = (one.relation, "relation") if one.relation else (one.column, "column")
    return AnalysisError(
        f"{name} is both a {what} of the outer query and a {by}",
        condition="AMBIGUOUS_REFERENCE",
        sqlstate="42704",
        sql=tokens.sql,
        span=tokens.span(*one.range),
        hint=hint,
    )


class _Finder:
    """Finds them in parts of a clause, except names in `let` and columns of the relations in `hidden`."""

    def __init__(
        self,
        tokens: TokenList,
        clauses: Sequence[Clause],
        scope: VisibleRelations,
        columns_of: ColumnsOf | None,
        let: Collection[str] = (),
        hidden: Range | None = None,
    ) -> None:
        self.tokens, self.clauses, self.scope = tokens, clauses, scope
        self.columns_of, self.let, self.hidden = columns_of, let, hidden
        self.known: dict[Range, list[str] | None] = {}
        matches = [one.clause for one in clauses if isinstance(one, MatchRelation)]
        self.starts = {
            item.expression[0] for clause in matches for item in (*clause.measures, *clause.defines)
        }
        lengths = [length for clause in matches for length in (clause.within, clause.duration)]
        self.starts |= {length.tokens[0] for length in lengths if length is not None}

    def found(self, part: Range, side: Side | None = None) -> Iterator[OuterReference]:
        """The references in a part of the SELECT."""
        tokens = self.tokens
        plain = self.plain(part) if self.columns_of is not None else set()
        at = part[0]
        while at < part[1]:
            token = tokens[at]
            starts = token.is_name and not tokens.is_symbol(at - 1, ".") and not tokens.is_symbol(at - 1, ":")
            if starts and self.is_of_schema(at, part[1]):
                schema, table, column = (tokens[at + place].name.lower() for place in (0, 2, 4))
                yield OuterReference(f"{schema}.{table}", column, (at, at + 5), side)
                at += 4
            elif starts and self.is_path(at, part[1]):
                if token.name.lower() in self.scope.names and not self.is_inner(at, token.name.lower()):
                    column = tokens[at + 2].name.lower()
                    yield OuterReference(token.name.lower(), column, (at, at + 3), side)
                elif at in plain and self.is_outer_column(at):
                    yield OuterReference("", token.name.lower(), (at, at + 1), side)
                at += 2
            elif starts and at in plain and self.is_outer_column(at):
                yield OuterReference("", token.name.lower(), (at, at + 1), side)
            at += 1

    def is_path(self, at: int, stop: int) -> bool:
        """Whether a qualified name is here, which is not a function or a relation of FROM."""
        tokens = self.tokens
        return (
            at + 2 < stop
            and tokens.is_symbol(at + 1, ".")
            and tokens[at + 2].is_name
            and not (tokens.is_symbol(at + 3, "(") and at + 3 < stop)
            and not begins_relation(tokens, at)
        )

    def is_of_schema(self, at: int, stop: int) -> bool:
        """Whether ``x.t.c`` stands here, a column of a table in FROM of the query around.

        FROM names it ``x.t`` and the SELECT reads no ``t``, or Spark says so.
        """
        tokens, source = self.tokens, self.scope.source
        if source is None or not self.is_path(at, stop) or not self.is_path(at + 2, stop):
            return False
        schema, table = (tokens[at + place].name.lower() for place in (0, 2))
        if schema in self.scope.names or self.is_inner(at, schema):
            return False
        if self.is_named(schema, table, source) and not self.is_inner(at, table):
            return True
        path = (at, at + 5)
        return (
            self.columns_of is not None
            and table in self.scope.names
            and all(self.lacks(scope.columns, path) for scope in self.inner(at))
            and self.columns_of(source, None, path) is not None
        )

    def is_named(self, schema: str, table: str, source: Range) -> bool:
        """Whether a table is written with its schema in FROM, and without an alias."""
        tokens = self.tokens
        return any(
            begins_relation(tokens, one)
            and tokens.is_symbol(one + 1, ".")
            and all(tokens[part].is_name for part in (one, one + 2))
            and [tokens[part].name.lower() for part in (one, one + 2)] == [schema, table]
            and not tokens.is_symbol(one + 3, ".")
            and alias_after(tokens, one + 3, source[1]) is None
            for one in range(source[0], source[1] - 2)
        )

    def lacks(self, source: Range | None, path: Range) -> bool:
        """Whether relations are known, and have no such column."""
        if source is None or self.columns_of is None:
            return True
        return self.columns_of(source, None) is not None and self.columns_of(source, None, path) is None

    def inner(self, at: int) -> Iterator[VisibleRelations]:
        """The scopes of the SELECT itself around a token."""
        for scope in scopes(self.tokens, at, self.clauses):
            if scope.at == self.scope.at:
                return
            yield scope

    def is_inner(self, at: int, name: str) -> bool:
        """Whether a relation, or a variable, of the SELECT has this name there."""
        return any(name in scope.names for scope in self.inner(at))

    def is_outer_column(self, at: int) -> bool:
        """Whether an unqualified name is an outer column, and not one of the SELECT's own."""
        name = self.tokens[at].name.lower()
        if name in self.let or self.columns(self.scope).count(name) != 1:
            return False
        for scope in self.inner(at):
            if (name in scope.names and scope.source is None) or self.may_have(scope.columns, name):
                return False
        return not self.may_have(self.hidden, name)

    def may_have(self, source: Range | None, name: str) -> bool:
        """Whether relations have such a column, or their columns are unknown."""
        if source is None:
            return False
        found = self.columns_in(source)
        return found is None or name in found

    def columns(self, scope: VisibleRelations) -> list[str]:
        return [] if scope.columns is None else self.columns_in(scope.columns) or []

    def columns_in(self, source: Range) -> list[str] | None:
        """The columns of these relations, in lower case; None if unknown."""
        if self.columns_of is not None and source not in self.known:
            found = self.columns_of(source, None)
            if found is None and source != self.scope.source:  # it may be correlated
                found = self.columns_of(source, self.scope.source)
            self.known[source] = None if found is None else [name.lower() for name in found]
        return self.known.get(source)

    def plain(self, part: Range) -> set[int]:
        """The positions of names that may be unqualified columns."""
        return {at for at in range(*part) if self.may_be_column(at)}

    def may_be_column(self, at: int) -> bool:
        """Whether an operand begins with this name; not an alias, a type, a function or a relation."""
        tokens = self.tokens
        if at in self.starts:
            is_call = tokens.is_symbol(at + 1, "(")
            return tokens[at].is_name and not is_call and not begins_relation(tokens, at)
        return may_be_operand(tokens, at)
