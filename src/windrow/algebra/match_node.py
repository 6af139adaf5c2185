"""The node of MATCH_RECOGNIZE: a relation of rows, and the clause over it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from windrow.algebra.navigations import Leaf
from windrow.algebra.window_node import WindowFragment
from windrow.errors import AnalysisError, Span, WindrowError
from windrow.kernels.patterns.program import PatternProgram, compile_pattern
from windrow.kernels.patterns.tree import (
    AnyOrder,
    Choice,
    Edge,
    Label,
    Repeat,
    Sequence,
    Tree,
    has_one_way,
    permutations,
)
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.expression_nodes import Expression, Name
from windrow.syntax.expressions import Atoms, parse_expression
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.patterns import row_patterns
from windrow.syntax.patterns.match_nodes import MatchClause
from windrow.syntax.query_parts import is_set_operator, level_around
from windrow.syntax.sqltext import RelationText, SqlText
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["Match", "MatchExpression", "Replace", "compiled", "mentioned_outside", "tree_of"]

_MOST_PERMUTED = 6
"""The most parts of a PERMUTE that match in several ways: more would need too many instructions."""

Replace = Callable[[Range, Mapping[Range, str]], SqlText]


@dataclass(frozen=True)
class MatchExpression:
    """A measure or a condition: its name or variable, its position, and what it reads of the match."""

    name: str
    range: Range
    span: Span
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True)
class Match:
    """One MATCH_RECOGNIZE.

    `rows` returns the input: a struct with the row, and the keys (:mod:`windrow.algebra.names`). `labels` are
    the variables of the pattern; `members` has, for each of them and each subset, the labels that it stands
    for. `mentioned` are the names outside of the clause that may be columns of its result, None for all
    columns. `replace` returns the user's text of a range with generated words in place of some parts. For a
    window of OVER, `functions` are the measures that are functions over the frame, and `query` is the SELECT
    over its result. If no order is written, `is_ordered` is false, and the key of `order_by` is a constant.
    The query `around` returns values of the outer query, and the columns of the rows with them are `hidden`;
    `outside` are those that replace parts of the clause, by `replace`. Some of both have values of subqueries
    that are `varying`.
    """

    key: str
    sql: str
    tokens: TokenList
    clause: MatchClause
    prefix: SqlText
    rows: SqlText
    partition_by: tuple[WindowFragment, ...]
    order_by: tuple[tuple[WindowFragment, OrderItem], ...]
    tree: Tree
    program: PatternProgram
    labels: tuple[str, ...]
    members: Mapping[str, frozenset[int]]
    measures: tuple[MatchExpression, ...]
    defines: tuple[MatchExpression, ...]
    mentioned: frozenset[str] | None
    replace: Replace
    functions: frozenset[str] = frozenset()
    is_ordered: bool = True
    query: SqlText | None = None
    outside: Mapping[Range, Name] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    around: SqlText | None = None
    varying: tuple[str, ...] = ()

    @property
    def span(self) -> Span:
        """The position of the clause."""
        return self.clause.span

    @property
    def outer(self) -> SqlText:
        """The text that replaces the relation and the clause, or the SELECT."""
        return SqlText.of(" ", RelationText(self.key)) if self.query is None else self.query

    def expression(
        self,
        part: Range,
        atoms: Atoms | None = None,
        *,
        deeply: bool = False,
        alone: Collection[int] | None = None,
    ) -> Expression:
        """An expression as from :func:`parse_expression`, in which columns replace `outside` values."""
        outside = {at: name for (at, _), name in self.outside.items()}
        return parse_expression(self.tokens, *part, outside | dict(atoms or {}), deeply=deeply, alone=alone)

    def reads_outside(self, part: Range) -> bool:
        """Whether a part contains values of the outer query."""
        return any(part[0] <= start < part[1] for start, _ in self.outside)

    def members_of(self, variable: str | None) -> frozenset[int] | None:
        """The labels that a variable stands for; None, for all rows, without a variable."""
        return None if variable is None else self.members[variable]


def tree_of(pattern: row_patterns.Pattern, labels: Mapping[str, int], *, excluded: bool = False) -> Tree:
    """The pattern with numbers for variables.

    Raises
    ------
    AnalysisError
        ``PATTERN_TOO_LONG``, at a PERMUTE whose permutations are too many instructions.
    """

    def inner(part: row_patterns.Pattern) -> Tree:
        return tree_of(part, labels, excluded=excluded)

    match pattern:
        case row_patterns.PatternVariable(name=name):
            return Label(labels[name], excluded)
        case row_patterns.Concatenation(parts=parts):
            return Sequence(tuple(map(inner, parts)))
        case row_patterns.Alternation(parts=parts):
            return Choice(tuple(map(inner, parts)))
        case row_patterns.Permutation(parts=parts, span=span):
            return _permuted(tuple(map(inner, parts)), span)
        case row_patterns.Quantified(part=part, low=low, high=high, greedy=greedy):
            return Repeat(inner(part), low, high, greedy)
        case row_patterns.Exclusion(part=part):
            return tree_of(part, labels, excluded=True)
        case row_patterns.Anchor(is_start=is_start):
            return Edge(is_start)


def _permuted(parts: tuple[Tree, ...], span: Span) -> Tree:
    is_long = f"PERMUTE of {len(parts)} parts has too many permutations"
    if not all(map(has_one_way, parts)) and len(parts) > _MOST_PERMUTED:
        raise _too_long(is_long, span)
    tree = AnyOrder(parts) if all(map(has_one_way, parts)) else permutations(parts)
    try:
        compile_pattern(tree)
    except AnalysisError:
        raise _too_long(is_long, span) from None
    return tree


def _too_long(text: str, span: Span) -> AnalysisError:
    return AnalysisError(
        text,
        condition="PATTERN_TOO_LONG",
        sqlstate="54001",
        span=span,
        hint="write the orders that occur as an alternation: A B C | B A C",
    )


def compiled(
    pattern: row_patterns.Pattern, labels: Mapping[str, int], tokens: TokenList, pattern_at: Range
) -> tuple[Tree, PatternProgram]:
    """The pattern's tree and its program.

    Raises
    ------
    AnalysisError
        ``PATTERN_TOO_LONG``, at the pattern or at what is too long of it.
    """
    try:
        tree = tree_of(pattern, labels)
        return tree, compile_pattern(tree)
    except WindrowError as error:
        error.span = error.span or tokens.span(*pattern_at)
        raise error.located(tokens.sql) from None


def mentioned_outside(tokens: TokenList, clause: Range) -> frozenset[str] | None:
    """The names in the text around a clause, in lower case; None if columns may be read without a name.

    So does a star, and what has all columns without one: FROM without SELECT, pipes, PIVOT and UNPIVOT. Names
    in IDENTIFIER are computed.
    """
    after = clause[1] + (tokens.word(clause[1]) == "AS")
    if after < len(tokens) and tokens[after].is_name and tokens.is_symbol(after + 1, "("):
        return None  # an alias that names all columns
    names = set()
    for at, token in enumerate(tokens.tokens):
        if clause[0] <= at < clause[1]:
            continue
        if token.is_symbol("*"):
            counts = tokens.word(at - 2) == "COUNT" and tokens.is_symbol(at + 1, ")")
            before = tokens[at - 1]
            factor = (
                before.kind in (TokenKind.NUMBER, TokenKind.QUOTED)
                or before.is_symbol(")")
                or before.is_symbol("]")
            )
            if not counts and not factor and not _is_operand(tokens, at - 1):
                return None
        if token.word in ("NATURAL", "PIVOT", "UNPIVOT", "IDENTIFIER") or token.is_symbol("|>"):
            return None
        if token.word == "FROM" and begins_relation(tokens, at + 1) and not _has_select(tokens, at):
            return None
        if token.is_name:
            names.add(token.name.lower())
    return frozenset(names)


def _has_select(tokens: TokenList, at: int) -> bool:
    """Whether SELECT stands before FROM in its query."""
    first, _ = level_around(tokens, at)
    own = [one for one in tokens.level(first, at) if tokens.parent[one] == tokens.parent[at]]
    begun = max(
        (one for one in own if is_set_operator(tokens, one) or tokens.is_symbol(one, ";")), default=first
    )
    return any(one >= begun and tokens.word(one) == "SELECT" for one in own)


def _is_operand(tokens: TokenList, at: int) -> bool:
    """Whether a word is a name, so that a following star multiplies."""
    return tokens[at].kind is TokenKind.WORD and tokens.word(at) not in (
        "SELECT", "DISTINCT", "ALL", "INSERT", "SET"
    )  # fmt: skip
