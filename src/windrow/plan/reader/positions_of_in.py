"""IN with a subquery in the text of an expression: its operand, and what its NULL means there."""

from __future__ import annotations

from windrow.plan.reader.statement_text import StatementText, UnreadError
from windrow.syntax.expression_nodes import Opaque, OperationNode
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["decides", "is_negated", "operand_of", "values_of"]

_BEFORE_OPERAND = ("AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE")
_BOOLEAN = ("AND", "OR", "NOT", "=", "<>", "<", "<=", ">", ">=", "<=>", "IS NULL", "IN", "BETWEEN")


def operand_of(statement: StatementText, start: int, stop: int) -> Range:
    """The operand before IN."""
    tokens = statement.tokens
    parent = tokens.parent[stop]
    first = max(start, parent + 1)
    for at in range(first, stop):
        begins = tokens.word(at) in _BEFORE_OPERAND or tokens.is_symbol(at, ",")
        if begins and tokens.parent[at] == parent and not tokens.is_symbol(at - 1, "."):
            first = at + 1
    if (first, stop) in statement.columns_at:
        return first, stop
    if first >= stop or not all(_is_value(tokens, value) for value in values_of(tokens, (first, stop))):
        raise UnreadError("this expression before IN", (first, stop + 1))
    return first, stop


def values_of(tokens: TokenList, operand: Range) -> list[Range]:
    """The values of an operand: `(a, b)` has two."""
    first, stop = operand
    if not tokens.is_symbol(first, "(") or tokens.partner[first] != stop - 1:
        return [operand]
    values = tokens.split(first + 1, stop - 1)
    return values if len(values) > 1 else [operand]


def _is_value(tokens: TokenList, part: Range) -> bool:
    found = parse_expression(tokens, *part)
    is_value = isinstance(found, OperationNode) and found.operator not in _BOOLEAN
    return is_value or not isinstance(found, OperationNode | Opaque)


def decides(statement: StatementText, stretch: Range, condition: Range) -> bool:
    """Whether a condition is selected, or is used only under AND, OR, NOT and brackets.

    In other uses, Spark treats unknown as false in some and not in others.
    """
    tokens, (first, stop) = statement.tokens, condition
    bracket = tokens.parent[first]
    inner = bracket >= stretch[0]
    begin, end = (bracket + 1, tokens.partner[bracket]) if inner else stretch
    if any(tokens.word(at) in ("CASE", "THEN", "ELSE") for at in tokens.level(begin, first)):
        of_case = tokens.word(begin) == "CASE" and (begin + 1, begin + 2) == (first - 1, first)
        return not inner and of_case and tokens.word(stop) == "THEN"
    begins = first == begin or tokens.word(first - 1) in ("AND", "OR", "NOT")
    ends = stop == end or tokens.word(stop) in ("AND", "OR")
    return begins and ends and (not inner or decides(statement, stretch, (bracket, end + 1)))


def is_negated(statement: StatementText, start: int, at: int) -> bool:
    """Whether a negation applies to what begins at a token of a condition."""
    tokens, count = statement.tokens, 0
    while at >= start:
        before = at - 1
        while before >= start and (tokens.word(before) == "NOT" or tokens.is_symbol(before, "!")):
            before, count = before - 1, count + 1
        at = tokens.parent[at]
    return count % 2 == 1
