"""PySpark's Columns as SQL text, for Windrow's clauses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column

from windrow.kernels.aggregates import FUNCTIONS
from windrow.spark.jvm.column_trees import (
    Aliased,
    Case,
    Cast,
    ColumnCall,
    ColumnPart,
    ColumnTree,
    Lambda,
    LambdaVariable,
    NamedColumn,
    Star,
    WrittenColumn,
    column_tree,
    parts_of_name,
)
from windrow.syntax.sqltext import quoted

__all__ = ["column_text"]

_INFIX = {
    "=", "==", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&", "|", "^", "and", "or", "like",
    "rlike", "ilike", "div",
}  # fmt: skip
_SUFFIX = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
_PREFIX = {"!": "NOT ", "not": "NOT ", "negative": "- ", "~": "~"}
_IGNORES_NULLS = {name for one in FUNCTIONS.values() if not one.skips_nulls for name in one.names}
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
    """A part of a Column without a text, such as a Python function."""


def column_text(column: Column) -> str | None:
    """A Column as SQL without its alias; None if it has no SQL, such as a Python function."""
    tree = column_tree(column)
    try:
        return _without_brackets(_text(tree.value if isinstance(tree, Aliased) else tree))
    except _NoTextError:
        return None


def _text(tree: ColumnTree) -> str:
    match tree:
        case NamedColumn(parts):
            return _path(parts)
        case WrittenColumn(sql, is_whole):
            return sql if is_whole else f"({sql})"
        case Star(written):
            return written
        case ColumnCall(name, arguments, is_distinct):
            return _call(name, arguments, is_distinct)
        case Cast(value, kind, tries):
            return f"{'TRY_CAST' if tries else 'CAST'}({_text(value)} AS {kind})"
        case Case(branches, otherwise):
            return _case(branches, otherwise)
        case ColumnPart(whole, part):
            return _part(whole, part)
        case Lambda(variables, body):
            names = ", ".join(map(_text, variables))
            return f"{f'({names})' if len(variables) > 1 else names} -> {_text(body)}"
        case LambdaVariable(name):
            return name
    raise _NoTextError


def _path(parts: Sequence[str]) -> str:
    return ".".join(
        part if _SIMPLE.fullmatch(part) and part.upper() not in _KEYWORDS else quoted(part) for part in parts
    )


def _part(whole: ColumnTree, extraction: ColumnTree) -> str:
    """A field of a struct, or an element of an array or a map."""
    value, part = _text(whole), _text(extraction)
    named = re.fullmatch(r"'([A-Za-z_]\w*)'", part, re.ASCII) if isinstance(whole, NamedColumn) else None
    return f"{value}[{part}]" if named is None else f"{value}.{_path([named[1]])}"


def _call(name: str, trees: Sequence[ColumnTree], distinct: bool) -> str:
    arguments = [_text(argument) for argument in trees]
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
    suffix = " IGNORE NULLS" if ignores and arguments[1].lower() == "true" else ""
    if ignores or (lower == "mode" and [one.lower() for one in arguments[1:]] == ["false"]):
        arguments = arguments[:1]
    called = ".".join(part if _SIMPLE.fullmatch(part) else quoted(part) for part in parts_of_name(name))
    return f"{called}({'DISTINCT ' if distinct else ''}{', '.join(arguments)}){suffix}"


def _case(branches: Sequence[tuple[ColumnTree, ColumnTree]], otherwise: ColumnTree | None) -> str:
    parts = [f"WHEN {_text(condition)} THEN {_text(value)}" for condition, value in branches]
    if otherwise is not None:
        parts.append(f"ELSE {_text(otherwise)}")
    return f"CASE {' '.join(parts)} END"


def _without_brackets(text: str) -> str:
    """The text without enclosing parentheses."""
    if not text.startswith("("):
        return text
    depth = 0
    for at, sign in enumerate(text):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth == 0:
            return text[1:-1] if at == len(text) - 1 else text
    return text
