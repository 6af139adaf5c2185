"""PySpark's Columns as SQL: what a clause of ours says must be text, which is taken apart.

A Column is a tree, which Spark keeps in Java and Spark Connect in Python; either is read by its own names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from windrow.syntax.sqltext import quoted

__all__ = ["column_text", "name_of"]

_INFIX = {
    "=", "==", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&", "|", "^", "and", "or", "like",
    "rlike", "ilike", "div",
}  # fmt: skip
_SUFFIX = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_PREFIX = {"!": "NOT ", "not": "NOT ", "negative": "- ", "~": "~"}
_IGNORES_NULLS = {"first", "first_value", "last", "last_value", "any_value"}
_SUFFIXES = {"ByteType": "Y", "ShortType": "S", "IntegerType": "", "LongType": "L"}
_SIMPLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# words that a clause of ours, or an expression of Spark's, would read as its own
_KEYWORDS = {
    "ALL", "AND", "ANY", "AS", "ASC", "AT", "BETWEEN", "BY", "CASE", "CAST", "DATE", "DEFINE", "DESC",
    "DISTINCT", "ELSE", "END", "EXISTS", "FALSE", "FILTER", "FINAL", "FOR", "FROM", "GROUP", "HAVING",
    "IN", "INTERVAL", "IS", "LABEL", "LIKE", "LIMIT", "MEASURES", "NEXT", "NOT", "NULL", "NULLS", "ON",
    "ONLY", "OR", "ORDER", "OVER", "PARTITION", "PATTERN", "PREV", "RUNNING", "SELECT", "SOME", "START",
    "SUBSET", "THEN", "TIME", "TIMESTAMP", "TRUE", "TYPE", "UNION", "USING", "VALUES", "WHEN", "WHERE",
    "WINDOW", "WITH", "WITHIN",
}  # fmt: skip


class _NoTextError(Exception):
    """A part of a Column has no text, such as a function in Python."""


def column_text(column: Column) -> str | None:
    """A Column as SQL without its alias; None for one that is no SQL, as with a function in Python."""
    node = _node(column)
    try:
        return _without_brackets(_text(_child(node) if _kind(node) in ("Alias", "ColumnAlias") else node))
    except _NoTextError:
        return None


def name_of(column: Column) -> str | None:
    """The alias of a Column, if it has one."""
    node = _node(column)
    match _kind(node):
        case "Alias":
            names = _several(node.name())
        case "ColumnAlias":
            names = list(node._alias)
        case _:
            return None
    return names[0] if len(names) == 1 else None


def _node(column: Column) -> Any:
    given: Any = column
    return given._jc.node() if hasattr(given, "_jc") else given._expr


def _kind(node: Any) -> str:
    """What a part of a Column is, by the name of its class."""
    return str(node.getClass().getSimpleName()) if hasattr(node, "getClass") else type(node).__name__


def _child(node: Any) -> Any:
    return node.child() if hasattr(node, "getClass") else node._child


def _several(given: Any) -> list[Any]:
    """The elements of a sequence of Scala's."""
    return [given.apply(at) for at in range(given.size())]


def _text(node: Any) -> str:
    match _kind(node):
        case "UnresolvedAttribute":
            return _path(_several(node.nameParts()))
        case "ColumnReference":
            return _path(_parts(node._unparsed_identifier))
        case "Literal":
            return _literal_of_java(node)
        case "LiteralExpression":
            return _literal(node._value, node._dataType)
        case "SqlExpression":
            return f"({node.expression()})"
        case "SQLExpression":
            return f"({node._expr})"
        case "UnresolvedStar" if hasattr(node, "getClass"):
            return "*" if node.unparsedTarget().isEmpty() else f"{node.unparsedTarget().get()}"
        case "UnresolvedStar":
            return str(node._unparsed_target or "*")
        case "UnresolvedFunction" if hasattr(node, "getClass"):
            if node.isInternal():
                raise _NoTextError
            return _call(node.functionName(), _several(node.arguments()), node.isDistinct())
        case "UnresolvedFunction":
            return _call(node._name, node._args, node._is_distinct)
        case "CallFunction":
            return _call(node._name, node._args, distinct=False)
        case "Cast":
            tries = node.evalMode().isDefined() and "try" in str(node.evalMode().get()).lower()
            return _cast(_text(node.child()), node.dataType().sql(), tries=tries)
        case "CastExpression":
            kind = node._data_type
            told = kind if isinstance(kind, str) else kind.simpleString()
            return _cast(_text(node._expr), told, tries="try" in str(node._eval_mode).lower())
        case "CaseWhenOtherwise":
            branches = [(pair._1(), pair._2()) for pair in _several(node.branches())]
            otherwise = node.otherwise().get() if node.otherwise().isDefined() else None
            return _case(branches, otherwise)
        case "CaseWhen":
            return _case(node._branches, node._else_value)
        case "UnresolvedExtractValue" if hasattr(node, "getClass"):
            return _part(node.child(), node.extraction())
        case "UnresolvedExtractValue":
            return _part(node._child, node._extraction)
        case "LambdaFunction" if hasattr(node, "getClass"):
            return _lambda(_several(node.arguments()), node.function())
        case "LambdaFunction":
            return _lambda(node._arguments, node._function)
        case "UnresolvedNamedLambdaVariable":
            is_java = hasattr(node, "getClass")
            return str(node.name()) if is_java else ".".join(node._name_parts)
    raise _NoTextError


def _path(parts: Sequence[str]) -> str:
    plain = (part for part in parts)
    return ".".join(
        part if _SIMPLE.fullmatch(part) and part.upper() not in _KEYWORDS else quoted(part) for part in plain
    )


def _parts(written: str) -> list[str]:
    """The parts of a name as PySpark takes one, between backquotes where it has other characters.

    >>> _parts("s.`a.b`.c")
    ['s', 'a.b', 'c']
    """
    found = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", written)
    return [one.replace("``", "`") or other for one, other in found]


def _part(whole: Any, extraction: Any) -> str:
    """A field of a struct, or an element of an array or a map."""
    value, part = _text(whole), _text(extraction)
    is_path = _kind(whole) in ("UnresolvedAttribute", "ColumnReference")
    named = re.fullmatch(r"'([A-Za-z_]\w*)'", part, re.ASCII) if is_path else None
    return f"{value}[{part}]" if named is None else f"{value}.{_path([named[1]])}"


def _call(name: str, given: Sequence[Any], distinct: bool) -> str:
    arguments = [_text(argument) for argument in given]
    lower, count = name.lower(), len(arguments)
    if lower in _INFIX and count == 2 and not distinct:
        return f"({arguments[0]} {lower.upper()} {arguments[1]})"
    if lower in _PREFIX and count == 1:
        return f"({_PREFIX[lower]}{arguments[0]})"
    if lower in _SUFFIX and count == 1:
        return f"({arguments[0]} {_SUFFIX[lower]})"
    if lower == "in" and count > 1:
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    ignores = lower in _IGNORES_NULLS and count == 2 and arguments[1].lower() in ("true", "false")
    told = " IGNORE NULLS" if ignores and arguments[1].lower() == "true" else ""
    if ignores or (lower == "mode" and [one.lower() for one in arguments[1:]] == ["false"]):
        arguments = arguments[:1]
    called = ".".join(part if _SIMPLE.fullmatch(part) else quoted(part) for part in _parts(name))
    return f"{called}({'DISTINCT ' if distinct else ''}{', '.join(arguments)}){told}"


def _cast(value: str, kind: str, *, tries: bool) -> str:
    return f"{'TRY_CAST' if tries else 'CAST'}({value} AS {kind})"


def _case(branches: Sequence[tuple[Any, Any]], otherwise: Any) -> str:
    parts = [f"WHEN {_text(condition)} THEN {_text(value)}" for condition, value in branches]
    if otherwise is not None:
        parts.append(f"ELSE {_text(otherwise)}")
    return f"CASE {' '.join(parts)} END"


def _lambda(arguments: Sequence[Any], function: Any) -> str:
    names = ", ".join(map(_text, arguments))
    return f"{f'({names})' if len(arguments) > 1 else names} -> {_text(function)}"


def _literal_of_java(node: Any) -> str:
    """A constant, as Spark itself writes it."""
    value = node.value()
    if value is None:
        return "NULL"
    java: Any = SparkContext._active_spark_context._jvm  # type: ignore[union-attr]
    literal = getattr(java, "org.apache.spark.sql.catalyst.expressions.Literal$")
    return str(getattr(literal, "MODULE$").apply(value).sql())


def _literal(value: Any, kind: DataType) -> str:
    """A constant of Spark Connect's, which is as Spark holds it: days, microseconds."""
    if value is None:
        return "NULL"
    match kind:
        case BooleanType():
            return str(value).upper()
        case IntegralType():
            return f"{value}{_SUFFIXES[type(kind).__name__]}"
        case DoubleType() | FloatType():
            return f"CAST('{value}' AS {kind.simpleString()})"
        case DecimalType():
            return f"{value:f}BD"
        case StringType():
            return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
        case BinaryType():
            return f"X'{bytes(value).hex()}'"
        case DateType():
            return f"DATE '{kind.fromInternal(value).isoformat()}'"
        case TimestampNTZType():
            return f"TIMESTAMP_NTZ '{kind.fromInternal(value)}'"
        case TimestampType():
            return f"timestamp_micros({value}L)"
        case DayTimeIntervalType():
            return f"make_dt_interval(0, 0, 0, {value}L / 1000000BD)"
    raise _NoTextError


def _without_brackets(text: str) -> str:
    """The text without brackets around the whole of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for at, sign in enumerate(text):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth == 0:
            return text[1:-1] if at == len(text) - 1 else text
    return text
