"""Expressions that follow one of their parts: they increase or decrease as it increases, or differ if it
does.

One operation at a time: the operation around the part, which contains the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from windrow.syntax.expression_nodes import Call, Expression, Literal, OperationNode
from windrow.syntax.expressions.rising import rising
from windrow.syntax.expressions.skeleton import parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["Family", "Going", "going"]

Family: TypeAlias = OneOf["number", "time", "text"]

_WHOLE = {"BIGINT", "LONG", "INT", "INTEGER", "SMALLINT", "SHORT", "TINYINT", "BYTE"}
_EXACT = {"DECIMAL", "DEC", "NUMERIC"}
_OTHER = {"DOUBLE", "FLOAT", "REAL"}
_ROUNDED = {"floor", "ceil", "ceiling"}


@dataclass(frozen=True, slots=True)
class Going:
    """How an expression follows a part of it.

    Attributes
    ----------
    part
        The part.
    wants, gives
        What the part must be, and the expression is: numbers are integers and decimals here.
    rises
        Whether it never falls where the part rises; else it never rises. Of texts neither.
    differs
        Whether it has different values wherever the part has, if that is an integer; of texts always.
    """

    part: Range
    wants: Family
    gives: Family
    rises: bool = True
    differs: bool = False


def going(tokens: TokenList, start: int, stop: int) -> Going | None:
    """How an expression follows a part of it, if values outside its type raise errors.

    Sums, differences and multiples with literal numbers, quotients by these, casts of numbers and of integers
    to text, FLOOR, CEIL, YEAR, concatenation with literals, and the functions of times in :func:`rising`.
    """
    while tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    inner = rising(tokens, start, stop) if start < stop else None
    if inner is not None:
        return Going(inner, "time", "time")
    match parse_expression(tokens, start, stop, deeply=True):
        case OperationNode(operator="NEG", operands=(part,)):
            return Going(part.range, "number", "number", rises=False, differs=True)
        case OperationNode(operator="+" | "-" | "*" | "/" | "DIV" as operator, operands=(left, right)):
            return _computed(tokens, operator, left, right)
        case OperationNode(operator="||", operands=parts) | Call(function="concat", arguments=parts):
            others = [part for part in parts if not _is_text(tokens, part)]
            return Going(others[0].range, "text", "text", differs=True) if len(others) == 1 else None
        case Call(function="cast", arguments=(part,)):
            return _cast(tokens, part, (start, stop))
        case Call(function=function, arguments=(part,)) if function in _ROUNDED:
            return Going(part.range, "number", "number")
        case Call(function="year", arguments=(part,)):
            return Going(part.range, "time", "number")
    return None


def _computed(tokens: TokenList, operator: str, left: Expression, right: Expression) -> Going | None:
    one, other = _number(tokens, left), _number(tokens, right)
    if (one is None) == (other is None):
        return None
    if other is None:
        assert one is not None
        value, is_whole = one
        if operator in ("/", "DIV") or (operator == "*" and not value):
            return None
        rises = operator == "+" or (operator == "*" and value > 0)
        return Going(right.range, "number", "number", rises, is_whole)
    value, is_whole = other
    if operator in ("+", "-"):
        return Going(left.range, "number", "number", differs=is_whole)
    if not value:
        return None
    return Going(left.range, "number", "number", value > 0, is_whole and operator == "*")


def _cast(tokens: TokenList, part: Expression, whole: Range) -> Going | None:
    """A cast, in either syntax: the type follows the part."""
    start, stop = whole
    at = next(
        (at for at in range(part.range[1], stop) if tokens.word(at) == "AS" or tokens.is_symbol(at, "::")), -1
    )
    if at < 0 or start >= stop:
        return None
    to = tokens.word(at + 1)
    if to == "STRING":
        return Going(part.range, "text", "text", differs=True)
    if to in _WHOLE | _EXACT | _OTHER:
        return Going(part.range, "number", "number", differs=to not in _OTHER)
    return None


def _number(tokens: TokenList, part: Expression) -> tuple[float, bool] | None:
    """A literal number, and whether it is whole."""
    if isinstance(part, OperationNode) and part.operator == "NEG":
        found = _number(tokens, part.operands[0])
        return None if found is None else (-found[0], found[1])
    start, stop = part.range
    while tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    if not isinstance(part, Literal) or stop - start != 1 or tokens[start].kind is not TokenKind.NUMBER:
        return None
    text = tokens[start].text
    if re.fullmatch(r"\d+[LlSsYy]?", text):
        return float(re.sub(r"\D", "", text)), True
    written = re.match(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text)
    return None if written is None else (float(written[0]), False)


def _is_text(tokens: TokenList, part: Expression) -> bool:
    start, stop = part.range
    return isinstance(part, Literal) and all(tokens[at].kind is TokenKind.STRING for at in range(start, stop))
