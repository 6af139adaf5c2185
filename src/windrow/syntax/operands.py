"""Which names of an expression are operands."""

from __future__ import annotations

from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["may_be_operand"]

_BEFORE_OPERANDS = {"AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "SELECT", "HAVING", "BY", "DISTINCT",
                    "ALL", "IN", "BETWEEN", "FROM", "WHERE", "ON", "DIV", "LIKE", "ILIKE", "RLIKE", "QUALIFY",
                    "ESCAPE"}  # fmt: skip
_NO_OPERANDS = {"ALL", "CASE", "DISTINCT", "ELSE", "END", "EXISTS", "FALSE", "INTERVAL", "NOT", "NULL",
                "THEN", "TRUE", "WHEN"}  # fmt: skip
_WITH_UNITS = {"DATEADD", "DATEDIFF", "DATE_ADD", "DATE_DIFF", "TIMESTAMPADD", "TIMESTAMPDIFF"}


def may_be_operand(tokens: TokenList, at: int) -> bool:
    """Whether an operand begins with the name at a token; not an alias, a type, a function or a relation.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("CASE WHEN a.b > 1 THEN DATE '2024-01-01' ELSE f(x => CAST(c AS INT)) END")
    >>> [tokens[at].text for at in range(len(tokens)) if may_be_operand(tokens, at)]
    ['a', 'c']
    """
    token, before = tokens[at], tokens[at - 1]
    if not token.is_name or tokens.is_symbol(at + 1, "(") or begins_relation(tokens, at):
        return False
    is_literal = at + 1 < len(tokens) and tokens[at + 1].kind is TokenKind.STRING
    is_parameter = tokens.is_symbol(at + 1, "=>") or tokens.is_symbol(at + 1, "->")
    is_unit = tokens.is_symbol(at - 1, "(") and tokens.word(at + 1) == "FROM"  # EXTRACT(YEAR FROM x)
    if tokens.word(at) in _NO_OPERANDS or is_literal or is_parameter or is_unit:
        return False
    if at == 0:
        return True
    if before.kind is TokenKind.SYMBOL:
        word = tokens.word(tokens.parent[at] - 1) if tokens.parent[at] == at - 1 else ""
        if tokens.word(tokens.parent[at] - 1) == "USING" or word in _WITH_UNITS:
            return False
        return before.text not in (".", ":", ")", "]", "::")
    return before.word in _BEFORE_OPERANDS
