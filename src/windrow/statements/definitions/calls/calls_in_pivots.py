"""Calls of SQL functions over windows in PIVOT: columns of the relation that is pivoted.

FROM t PIVOT (SUM(f(v)) FOR k IN ('a', 'b'))
→  FROM (SELECT * EXCEPT (v), f(v) AS __called0 FROM t) PIVOT (SUM(__called0) FOR k IN ('a', 'b'))

PIVOT groups by the columns that it does not read, so those which the calls alone read are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.algebra.names import piece_of
from windrow.statements.definitions.function_calls import every_call, first_of_call, outermost_calls
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import Range
from windrow.syntax.operands import may_be_operand
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["calls_in_pivot", "pivoted"]

_CALLED = "__called"


def calls_in_pivot(tokens: TokenList, functions: KnownFunctions) -> SqlText | None:
    """The text with the calls in the first such PIVOT as columns; None if there are none."""
    for call in every_call(tokens, functions):
        bracket = tokens.parent[first_of_call(tokens, call)]
        while bracket >= 0 and tokens.word(bracket - 1) != "PIVOT":
            bracket = tokens.parent[bracket]
        at = bracket - 1
        own = [one for one in range(max(at, 0)) if tokens.parent[one] == tokens.parent[at]]
        start = next((one for one in reversed(own) if begins_relation(tokens, one)), None)
        if bracket < 0 or start is None or tokens.is_symbol(at - 1, "|>"):
            continue
        stop = tokens.partner[bracket] + 1
        outermost = [one for one in outermost_calls(tokens, functions) if bracket < one < stop]
        relation, rest = pivoted(tokens, piece_of(tokens, start, at, " "), (at, stop), outermost)
        text = piece_of(tokens, 0, start, " "), relation, rest, piece_of(tokens, stop, len(tokens))
        return SqlText.of(*text)
    return None


def pivoted(
    tokens: TokenList, source: SqlText, pivot: Range, calls: Sequence[int]
) -> tuple[SqlText, SqlText]:
    """The relation of a PIVOT with columns for these calls, and the PIVOT over them."""
    places = [(first_of_call(tokens, call), tokens.partner[call + 1] + 1) for call in calls]
    inside = {at for start, stop in places for at in range(start, stop)}
    read = {_column(tokens, at) for at in range(*pivot) if _is_column(tokens, at) and at not in inside}
    alone = {_column(tokens, at) for at in inside if _is_column(tokens, at)} - read
    items = [SqlText.of(piece_of(tokens, *place), f" AS {_CALLED}{n}") for n, place in enumerate(places)]
    star = f"* EXCEPT ({', '.join(map(quoted, sorted(alone)))})" if alone else "*"
    relation = SqlText.of(f"(SELECT {star}, ", SqlText.join(", ", items), " FROM ", source, ") ")
    parts, at = [], pivot[0]
    for number, (start, stop) in enumerate(places):
        parts += [piece_of(tokens, at, start, " "), SqlText.of(f"{_CALLED}{number} ")]
        at = stop
    return relation, SqlText.of(*parts, piece_of(tokens, at, pivot[1], " "))


def _is_column(tokens: TokenList, at: int) -> bool:
    return may_be_operand(tokens, at) or tokens.word(at - 1) == "FOR"


def _column(tokens: TokenList, at: int) -> str:
    """The column of a name, which may have its relation before it."""
    return tokens[at + 2 if tokens.is_symbol(at + 1, ".") else at].name.lower()
