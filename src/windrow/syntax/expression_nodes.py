"""The nodes of an expression's skeleton, and the names in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.syntax.nodes import Range

__all__ = [
    "Call",
    "Expression",
    "Literal",
    "Name",
    "Opaque",
    "OperationNode",
    "names_in",
    "parts_of",
    "plain_names",
]


@dataclass(frozen=True, slots=True)
class Name:
    """A dotted path such as ``s.val``; `parts` are as written, without backquotes."""

    parts: tuple[str, ...]
    range: Range


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, string, TRUE, FALSE, NULL or a parameter."""

    range: Range


@dataclass(frozen=True, slots=True)
class OperationNode:
    """An operator or predicate applied to operands.

    `operator` is the canonical name: OR AND NOT = <> < <= > >= <=> + - * / % DIV NEG, IS NULL, IN,
    BETWEEN. A negated predicate (NOT IN, IS NOT NULL …) is NOT around it; ``!=`` is ``<>``.
    """

    operator: str
    operands: tuple[Expression, ...]
    range: Range


@dataclass(frozen=True, slots=True)
class Call:
    """A function call with plain arguments; `function` is in lower case.

    Forms that are parsed on demand have special names: ``case`` has the operand, then conditions and values,
    and the value of ELSE, if any; ``case when`` the same without an operand; ``cast`` and ``try_cast`` have
    the operand; ``timestampdiff second`` and the like have the arguments after the unit.
    """

    function: str
    arguments: tuple[Expression, ...]
    range: Range


@dataclass(frozen=True, slots=True)
class Opaque:
    """A range that is not parsed, and the paths in it that may be names."""

    names: tuple[Name, ...]
    range: Range


Expression = Name | Literal | OperationNode | Call | Opaque


def names_in(expression: Expression) -> Iterator[Name]:
    """Every path in the expression that may be a name."""
    match expression:
        case Name():
            yield expression
        case Opaque(names=names):
            yield from names
        case OperationNode(operands=parts) | Call(arguments=parts):
            for part in parts:
                yield from names_in(part)
        case Literal():
            return


def parts_of(expression: Expression) -> list[Expression]:
    """The expression and everything in it."""
    match expression:
        case OperationNode(operands=parts) | Call(arguments=parts):
            return [expression, *(inner for part in parts for inner in parts_of(part))]
        case _:
            return [expression]


def plain_names(expression: Expression) -> Iterator[Name]:
    """The paths that are certainly operands: none inside opaque ranges."""
    match expression:
        case Name():
            yield expression
        case OperationNode(operands=parts) | Call(arguments=parts):
            for part in parts:
                yield from plain_names(part)
        case _:
            return
