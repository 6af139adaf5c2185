"""Which names of an expression are operands."""

from __future__ import annotations

from functools import lru_cache

from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["is_of_lambda", "may_be_operand", "names_a_field", "parameters_of_lambda"]

_BEFORE_OPERANDS = {"AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "SELECT", "HAVING", "BY", "DISTINCT",
                    "ALL", "IN", "BETWEEN", "FROM", "WHERE", "ON", "DIV", "LIKE", "ILIKE", "RLIKE", "QUALIFY",
                    "ESCAPE"}  # fmt: skip
_NO_OPERANDS = {"ALL", "CASE", "DISTINCT", "ELSE", "END", "EXISTS", "FALSE", "INTERVAL", "NOT", "NULL",
                "THEN", "TRUE", "WHEN"}  # fmt: skip
_WITH_UNITS = {"DATEADD", "DATEDIFF", "DATE_ADD", "DATE_DIFF", "TIMESTAMPADD", "TIMESTAMPDIFF"}


def is_of_lambda(tokens: TokenList, at: int) -> bool:
    """Whether a name in a lambda function is one of its parameters.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("f(xs, x -> x.a + y, x), g(ys, (x, y) -> x + f(y))")
    >>> [tokens.text(at - 1, at + 1) for at in range(len(tokens)) if is_of_lambda(tokens, at)]
    ['-> x', '-> x', '(y']
    """
    name, inside = tokens[at].name.lower(), at
    while (opened := tokens.parent[inside]) >= 0:
        for arrow in range(inside - 1, opened, -1):
            if tokens.parent[arrow] != opened:
                continue
            if tokens.is_symbol(arrow, ","):
                break
            if tokens.is_symbol(arrow, "->"):
                parameters = parameters_of_lambda(tokens, arrow)
                if any(tokens[one].name.lower() == name for one in parameters):
                    return True
        inside = opened
    return False


def parameters_of_lambda(tokens: TokenList, arrow: int) -> list[int]:
    """Where the parameters of the lambda function with this arrow are named."""
    first = tokens.partner[arrow - 1] if tokens.is_symbol(arrow - 1, ")") else arrow - 1
    return [at for at in range(first, arrow) if tokens[at].is_name]


@lru_cache(maxsize=8)
def _has_lambdas(tokens: TokenList) -> bool:
    return any(tokens.is_symbol(at, "->") for at in range(len(tokens)))


def _names_parameter(tokens: TokenList, at: int) -> bool:
    """Whether a name is one of a lambda function's parameters, there or before its arrow."""
    opened = tokens.parent[at]
    is_named = opened >= 0 and tokens.is_symbol(tokens.partner[opened] + 1, "->")
    return is_named or is_of_lambda(tokens, at)


def names_a_field(tokens: TokenList, part: Range) -> str:
    """The function that names a field of its result after an argument; empty if none does.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("struct(a, COUNT(w), b AS c)")
    >>> [names_a_field(tokens, part) for part in ((2, 3), (4, 8), (9, 10))]
    ['STRUCT', 'STRUCT', '']
    """
    start, stop = part
    opened = tokens.parent[start]
    begins = start - 1 == opened or tokens.is_symbol(start - 1, ",")
    ends = tokens.is_symbol(stop, ",") or tokens.is_symbol(stop, ")")
    word = tokens.word(opened - 1) if opened > 0 else ""
    return word if begins and ends and word in ("STRUCT", "ARRAYS_ZIP") else ""


def may_be_operand(tokens: TokenList, at: int) -> bool:
    """Whether an operand begins with the name at a token; not an alias, a type, a function or a relation.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("CASE WHEN a.b > 1 THEN DATE '2024-01-01' ELSE f(x => CAST(c AS INT)) END")
    >>> [tokens[at].text for at in range(len(tokens)) if may_be_operand(tokens, at)]
    ['a', 'c']
    >>> tokens = tokenize("f(xs, (x, i) -> x + y)")
    >>> [tokens[at].text for at in range(len(tokens)) if may_be_operand(tokens, at)]
    ['xs', 'y']
    """
    token, before = tokens[at], tokens[at - 1]
    if not token.is_name or tokens.is_symbol(at + 1, "(") or begins_relation(tokens, at):
        return False
    is_literal = at + 1 < len(tokens) and tokens[at + 1].kind is TokenKind.STRING
    is_parameter = tokens.is_symbol(at + 1, "=>") or tokens.is_symbol(at + 1, "->")
    is_unit = tokens.is_symbol(at - 1, "(") and tokens.word(at + 1) == "FROM"  # EXTRACT(YEAR FROM x)
    if tokens.word(at) in _NO_OPERANDS or is_literal or is_parameter or is_unit:
        return False
    if _has_lambdas(tokens) and _names_parameter(tokens, at):
        return False
    if at == 0:
        return True
    if before.kind is TokenKind.SYMBOL:
        word = tokens.word(tokens.parent[at] - 1) if tokens.parent[at] == at - 1 else ""
        if tokens.word(tokens.parent[at] - 1) == "USING" or word in _WITH_UNITS:
            return False
        return before.text not in (".", ":", ")", "]", "::")
    return before.word in _BEFORE_OPERANDS
