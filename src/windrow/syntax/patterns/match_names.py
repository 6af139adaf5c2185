"""The rules for names in MATCH_RECOGNIZE: variables of the pattern, subsets, definitions and measures."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.errors import AnalysisError, Span, did_you_mean
from windrow.syntax.patterns.match_nodes import MatchClause, Subset
from windrow.syntax.patterns.row_patterns import (
    Alternation,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Quantified,
    variables_of,
)
from windrow.syntax.tokens import TokenList

__all__ = ["check_names"]


def check_names(tokens: TokenList, clause: MatchClause) -> None:
    """Refuse invalid names of variables, subsets and measures.

    Raises
    ------
    AnalysisError
        ``UNKNOWN_VARIABLE``, ``VARIABLE_NOT_IN_PATTERN``, ``SUBSET_IN_PATTERN``, ``RESERVED_NAME``,
        ``DUPLICATE_VARIABLE``, ``DUPLICATE_MEASURE``, ``EXCLUSION_WITH_UNMATCHED_ROWS``.
    """
    primary = variables_of(clause.pattern)
    subsets = {subset.name: subset for subset in clause.subsets}
    _check_pattern_names(tokens, primary, subsets)
    seen: set[str] = set()
    for subset in clause.subsets:
        _once(tokens, subset.name, subset.span, seen, "subset", "DUPLICATE_VARIABLE")
        start = _index_of(tokens, subset.span) + 3
        members = tokens.split(start, tokens.partner[start - 1])
        for name, (at, _) in zip(subset.members, members, strict=True):
            if name not in primary:
                raise _unknown(tokens, name, tokens[at].span, list(primary))
    seen = set()
    for item in clause.defines:
        _once(tokens, item.name, item.span, seen, "definition of", "DUPLICATE_VARIABLE")
        if item.name not in primary:
            is_subset = item.name in subsets
            raise AnalysisError(
                f"{item.name} is a subset and cannot be defined"
                if is_subset
                else f"variable {item.name} is defined but not in PATTERN",
                condition="VARIABLE_NOT_IN_PATTERN",
                sqlstate="42601",
                sql=tokens.sql,
                span=item.span,
                hint=did_you_mean(item.name, set(primary) - seen) or "add it to PATTERN, or leave it out",
            )
    seen = set()
    for measure in clause.measures:
        _once(tokens, measure.name.lower(), measure.span, seen, "measure", "DUPLICATE_MEASURE")
    target = clause.skip.target
    if target is not None and target not in primary and target not in subsets:
        raise _unknown(tokens, target, clause.skip.span, [*primary, *subsets])
    excluded = next(_exclusions(clause.pattern), None)
    if excluded is not None and clause.with_unmatched and clause.frame is None:
        raise AnalysisError(
            "an exclusion cannot be combined with WITH UNMATCHED ROWS",
            condition="EXCLUSION_WITH_UNMATCHED_ROWS",
            sqlstate="42601",
            sql=tokens.sql,
            span=excluded.span,
            hint="leave WITH UNMATCHED ROWS out, or filter by CLASSIFIER() in an outer query",
        )


def _check_pattern_names(tokens: TokenList, primary: dict[str, Span], subsets: dict[str, Subset]) -> None:
    for name, span in [*primary.items(), *((name, subset.span) for name, subset in subsets.items())]:
        if name.startswith("__"):
            raise AnalysisError(
                f"name {name} begins with two underscores, which are reserved for Windrow's columns",
                condition="RESERVED_NAME",
                sqlstate="42939",
                sql=tokens.sql,
                span=span,
                hint="choose another name",
            )
    for name in subsets:
        if name in primary:
            raise AnalysisError(
                f"PATTERN cannot contain the subset {name}",
                condition="SUBSET_IN_PATTERN",
                sqlstate="42601",
                sql=tokens.sql,
                span=primary[name],
                hint="write the alternation of its variables, or give the subset another name",
            )


def _once(tokens: TokenList, name: str, span: Span, seen: set[str], what: str, condition: str) -> None:
    if name in seen:
        raise AnalysisError(
            f"{what} {name} is declared twice",
            condition=condition,
            sqlstate="42712",
            sql=tokens.sql,
            span=span,
            hint="rename one of them, or leave it out",
        )
    seen.add(name)


def _unknown(tokens: TokenList, name: str, span: Span, known: list[str]) -> AnalysisError:
    return AnalysisError(
        f"variable {name} is not in PATTERN",
        condition="UNKNOWN_VARIABLE",
        sqlstate="42703",
        sql=tokens.sql,
        span=span,
        hint=did_you_mean(name, known) or f"use one of {', '.join(known)}",
    )


def _index_of(tokens: TokenList, span: Span) -> int:
    return next(at for at in range(len(tokens)) if tokens[at].span == span)


# -- the cursor ------------------------------------------------------------------------------


def _exclusions(pattern: Pattern) -> Iterator[Exclusion]:
    """The exclusions in a pattern, in order."""
    match pattern:
        case Exclusion():
            yield pattern
        case Concatenation(parts=parts) | Alternation(parts=parts) | Permutation(parts=parts):
            for part in parts:
                yield from _exclusions(part)
        case Quantified(part=part):
            yield from _exclusions(part)
        case _:
            return
