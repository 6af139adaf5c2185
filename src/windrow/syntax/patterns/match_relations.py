"""Finds the relations of FROM that MATCH_RECOGNIZE follows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from windrow.errors import ParseError
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.lengths import Length
from windrow.syntax.patterns.match_clause import parse_match_clause
from windrow.syntax.patterns.match_nodes import MatchClause, MatchRelation
from windrow.syntax.query_parts import visible_ctes
from windrow.syntax.tokens import TokenList

__all__ = ["find_matches", "has_parts", "match_lengths", "parameter_marks"]

_NAVIGATIONS = ("PREV", "NEXT", "FIRST", "LAST")


def find_matches(tokens: TokenList) -> list[MatchRelation]:
    """Every relation with MATCH_RECOGNIZE, in the order of their clauses in the text.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``, ``MISSING_PATTERN`` or ``MISSING_DEFINE``.
    AnalysisError
        ``DUPLICATE_VARIABLE``, ``DUPLICATE_MEASURE``, ``RESERVED_NAME``, ``UNKNOWN_VARIABLE``,
        ``VARIABLE_NOT_IN_PATTERN``, ``SUBSET_IN_PATTERN``, ``EXCLUSION_WITH_UNMATCHED_ROWS``,
        and those of the pattern.
    NotSupportedError
        ``UNSUPPORTED_CLAUSE`` for DURATION MULTIPLES OF.
    """
    return [_relation(tokens, at) for at in range(len(tokens)) if _is_clause(tokens, at)]


@lru_cache(maxsize=8)
def parameter_marks(tokens: TokenList) -> tuple[int, ...]:
    """The tokens ``?`` that stand for parameters; those in a PATTERN are quantifiers."""
    marks = (at for at in range(len(tokens)) if tokens.is_symbol(at, "?"))
    return tuple(at for at in marks if not _in_pattern(tokens, at))


def match_lengths(tokens: TokenList, clause: MatchClause) -> Iterator[Length]:
    """The numbers of rows in navigations of a clause that contain parameters."""
    for item in (*clause.measures, *clause.defines):
        for at in range(*item.expression):
            if tokens.word(at) not in _NAVIGATIONS or not tokens.is_symbol(at + 1, "("):
                continue
            arguments = tokens.split(at + 2, tokens.partner[at + 1])
            if len(arguments) == 2 and any(
                tokens.is_symbol(mark, "?") or tokens.is_symbol(mark, ":") for mark in range(*arguments[1])
            ):
                yield Length(arguments[1], least=0, counts_rows=True, navigates=True)


def _in_pattern(tokens: TokenList, at: int) -> bool:
    opened = tokens.parent[at]
    while opened >= 0:
        outer = tokens.parent[opened]
        if tokens.word(opened - 1) == "PATTERN" and tokens.word(outer - 1) in (
            "MATCH_RECOGNIZE",
            "OVER",
            "AS",
        ):
            return True
        opened = outer
    return False


def _is_clause(tokens: TokenList, at: int) -> bool:
    return (
        tokens.word(at) == "MATCH_RECOGNIZE" and tokens.is_symbol(at + 1, "(") and has_parts(tokens, at + 1)
    )


def has_parts(tokens: TokenList, opened: int) -> bool:
    """Whether the parentheses that open at a token have parts of the clause."""
    inside = tokens.level(opened + 1, tokens.partner[opened])
    return any(
        (tokens.word(index) in ("PATTERN", "DEFINE") and index + 1 < len(tokens))
        or (tokens.word(index) in ("ORDER", "PARTITION") and tokens.word(index + 1) == "BY")
        for index in inside
    )


def _relation(tokens: TokenList, at: int) -> MatchRelation:
    start = _start_of_relation(tokens, at)
    if start is None or start == at:
        raise ParseError(
            "MATCH_RECOGNIZE must follow a relation in FROM",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens[at].span,
            hint="write FROM t MATCH_RECOGNIZE (…)",
        )
    joined = [one for one in tokens.level(start, at) if tokens.parent[one] == tokens.parent[at]]
    if any(tokens.word(one) in ("ON", "USING") for one in joined):
        raise ParseError(
            "MATCH_RECOGNIZE cannot follow the condition of a join",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens[at].span,
            hint="match the join in brackets: FROM (SELECT * FROM a JOIN b …) MATCH_RECOGNIZE (…)",
        )
    stop = tokens.partner[at + 1] + 1
    clause = parse_match_clause(tokens, at)
    return MatchRelation((start, stop), (start, at), clause, visible_ctes(tokens, at))


def _start_of_relation(tokens: TokenList, at: int) -> int | None:
    """The token with which the relation before the clause begins; None outside of FROM."""
    parent = tokens.parent[at]
    start = parent + 1 if parent >= 0 and begins_relation(tokens, parent) else None
    for index in tokens.level(parent + 1, at):
        if tokens.parent[index] != parent or tokens.is_symbol(index - 1, "."):
            continue
        is_merge = tokens.word(index) == "USING" and tokens.word(parent + 1) == "MERGE"
        begins = tokens.word(index) in ("FROM", "JOIN") or is_merge
        comma = tokens.is_symbol(index, ",") and start is not None and not _lists_rows(tokens, start, index)
        if begins or comma:
            start = index + 1
    return start


def _lists_rows(tokens: TokenList, start: int, comma: int) -> bool:
    """Whether a comma separates the rows of VALUES."""
    rows = [index for index in tokens.level(start + 1, comma) if tokens.parent[index] == tokens.parent[start]]
    return tokens.word(start) == "VALUES" and not any(tokens[index].is_name for index in rows)
