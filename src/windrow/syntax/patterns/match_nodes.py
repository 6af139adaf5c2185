"""The nodes that the parser of MATCH_RECOGNIZE makes: frozen trees of ranges of tokens."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import Span
from windrow.syntax.lengths import Length
from windrow.syntax.nodes import Cte, OrderItem, Range
from windrow.syntax.patterns.row_patterns import Pattern
from windrow.syntax.tokens import Token, TokenKind

__all__ = ["FrameClause", "MatchClause", "MatchRelation", "Named", "Skip", "Subset", "variable_name"]


@dataclass(frozen=True, slots=True)
class Named:
    """A measure or a definition: an expression and the name that it has or defines."""

    name: str
    span: Span
    expression: Range


@dataclass(frozen=True, slots=True)
class Subset:
    """A union of variables under a name of its own."""

    name: str
    span: Span
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Skip:
    """Where the search resumes after a match: ``past last``, ``next``, ``first`` or ``last`` of `target`."""

    kind: str
    target: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class FrameClause:
    """ROWS BETWEEN CURRENT ROW AND …: how many rows after the current one, None for all; SEEK."""

    following: int | None
    seek: bool


@dataclass(frozen=True, slots=True)
class MatchClause:
    """A MATCH_RECOGNIZE clause, or, with a `frame`, a window of OVER with a pattern.

    `shows_empty` and `with_unmatched` say which rows beside those of matches are in the output. `within` is a
    length that is longer than any match, or, if `inclusive`, as long as the longest; `duration`
    that of the time that a match fills. `every` is ALL MATCHES. `key_names` are the names that PARTITION BY
    gives to its keys.
    Without ORDER BY `unordered_at` is where it would stand.
    """

    span: Span
    word: Span
    partition_by: tuple[Range, ...]
    order_by: tuple[OrderItem, ...]
    measures: tuple[Named, ...]
    all_rows: bool
    shows_empty: bool
    with_unmatched: bool
    skip: Skip
    pattern: Pattern
    pattern_at: Range
    within: Length | None
    inclusive: bool
    subsets: tuple[Subset, ...]
    defines: tuple[Named, ...]
    every: bool = False
    duration: Length | None = None
    frame: FrameClause | None = None
    key_names: tuple[str | None, ...] = ()
    unordered_at: Span | None = None


@dataclass(frozen=True, slots=True)
class MatchRelation:
    """A relation in FROM with the clause: the range of both, the relation's alone, and the queries it
    sees.
    """

    range: Range
    source: Range
    clause: MatchClause
    ctes: tuple[Cte, ...]


def variable_name(token: Token) -> str:
    """The name of a variable as CLASSIFIER returns it: in upper case unless it is quoted."""
    return token.name if token.kind is TokenKind.QUOTED else token.name.upper()
