"""What a WHEN predicate must not contain, reported before Spark would in other words."""

from __future__ import annotations

from windrow.algebra.aggregate_calls import AGGREGATES
from windrow.algebra.rewriting.changing import reads_time, varies_by_run
from windrow.errors import AnalysisError, NotSupportedError
from windrow.syntax.nodes import Range, Side, WindowClause
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["refuse_changing_condition", "refuse_in_predicate"]

_SEES = "use variables of the same boundary, or of those before it, in a {} predicate"
# scalar functions that share a name with an aggregate of ours; over one row they are not aggregates
_SCALAR_TOO = {
    "any",
    "some",
    "every",
    "first",
    "last",
    "mode",
    "array_agg",
    "array_max",
    "array_min",
    "array_contains",
}


def refuse_in_predicate(tokens: TokenList, predicate: Range, clause: WindowClause) -> None:
    """Refuse aggregates, functions that change from run to run, and the window itself.

    Raises
    ------
    AnalysisError
        ``AGGREGATE_IN_PREDICATE``, ``WINDOW_FUNCTION_IN_PREDICATE`` or ``VARIABLE_OUT_OF_SCOPE``.
    NotSupportedError
        ``NONDETERMINISTIC_PREDICATE`` or ``SYSTEM_CLOCK_IN_PREDICATE``.
    """
    for index in range(*predicate):
        token = tokens[index]
        if tokens.is_symbol(index - 1, "."):
            continue
        _refuse_at(tokens, index)
        if token.word == "OVER" and index > predicate[0] and tokens.is_symbol(index - 1, ")"):
            raise AnalysisError(
                "a WHEN predicate cannot use a window function",
                condition="WINDOW_FUNCTION_IN_PREDICATE",
                sqlstate="42903",
                sql=tokens.sql,
                span=token.span,
                hint="read neighbours with PREV AS and NEXT AS, or compute OVER in a subquery in FROM",
            )
        name = token.text.lower()
        if token.kind is TokenKind.WORD and tokens.is_symbol(index + 1, "("):
            in_subquery = _in_subquery(tokens, index, predicate)
            if name in AGGREGATES - _SCALAR_TOO and not in_subquery:
                raise AnalysisError(
                    f"a WHEN predicate cannot use the aggregate {token.text}",
                    condition="AGGREGATE_IN_PREDICATE",
                    sqlstate="42903",
                    sql=tokens.sql,
                    span=tokens.span(index, tokens.partner[index + 1] + 1),
                    hint="test the aggregate in HAVING after the clause; a predicate sees single rows",
                )
        elif (
            token.is_name
            and token.name.lower() == clause.name.lower()
            and not _in_subquery(tokens, index, predicate)
        ):
            raise AnalysisError(
                f"window {clause.name} cannot be used in its own predicates",
                condition="VARIABLE_OUT_OF_SCOPE",
                sqlstate="42703",
                sql=tokens.sql,
                span=token.span,
                hint=_SEES.format("WHEN"),
            )


def refuse_changing_condition(tokens: TokenList, condition: Range) -> None:
    """Refuse functions in a condition that change from run to run.

    Raises
    ------
    NotSupportedError
        ``NONDETERMINISTIC_PREDICATE`` or ``SYSTEM_CLOCK_IN_PREDICATE``.
    """
    for index in range(*condition):
        if not tokens.is_symbol(index - 1, "."):
            _refuse_at(tokens, index)


def _refuse_at(tokens: TokenList, index: int) -> None:
    token = tokens[index]
    if reads_time(tokens, index):
        raise NotSupportedError(
            f"{token.text} reads the system clock, which a WHEN predicate cannot depend on",
            condition="SYSTEM_CLOCK_IN_PREDICATE",
            sql=tokens.sql,
            span=tokens.span(
                index, tokens.partner[index + 1] + 1 if tokens.is_symbol(index + 1, "(") else index + 1
            ),
            hint="compare with a time in the rows, or pass the time as a parameter",
        )
    if varies_by_run(tokens, index):
        raise NotSupportedError(
            f"{token.text} returns a different value in each run, so a WHEN predicate cannot use it",
            condition="NONDETERMINISTIC_PREDICATE",
            sql=tokens.sql,
            span=tokens.span(index, tokens.partner[index + 1] + 1),
            hint="compute it once into a column of a stored table",
        )


def _in_subquery(tokens: TokenList, index: int, predicate: Range) -> bool:
    parent = tokens.parent[index]
    while parent >= predicate[0]:
        if opens_query(tokens, parent):
            return True
        parent = tokens.parent[parent]
    return False


def out_of_scope(name: str, side: Side, clause_variables: dict[str, Side]) -> str | None:
    """The hint for a variable that exists but is not visible to a predicate of `side`."""
    owner = clause_variables.get(name.lower())
    if owner is None:
        return None
    return f"{name} belongs to {owner.name}; {_SEES.format(side.name)}"
