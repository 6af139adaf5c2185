"""PySpark's Columns as SQL text, for Windrow's clauses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_never

from pyspark.sql import Column

from windrow.kernels.aggregates import FUNCTIONS
from windrow.spark.jvm.column_trees import (
    INTERNAL,
    Aliased,
    Case,
    Cast,
    ColumnCall,
    ColumnPart,
    ColumnTree,
    FieldsChanged,
    Lambda,
    LambdaVariable,
    NamedColumn,
    Other,
    Star,
    WrittenColumn,
    column_tree,
    parts_of_name,
)
from windrow.syntax.sqltext import quoted
from windrow.syntax.tokens import without_comment

__all__ = ["NoTextError", "as_name", "column_text", "written_column"]

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
    "AFTER", "ALL", "AND", "ANTI", "ANY", "AS", "ASC", "AT", "BETWEEN", "BY", "CASE", "CAST", "CLUSTER",
    "CROSS", "DATE", "DEFINE", "DELAY", "DESC", "DISTINCT", "DISTRIBUTE", "DSTREAM", "DURATION", "ELSE",
    "EMIT", "END", "EXCEPT", "EXISTS", "FALSE", "FILTER", "FINAL", "FOR", "FROM", "FULL", "GROUP", "HAVING",
    "IN", "INCLUDE", "INNER", "INTERSECT", "INTERVAL", "INTO", "IS", "ISTREAM", "JOIN", "LABEL", "LATERAL",
    "LEFT", "LET", "LIKE", "LIMIT", "MATCH", "MATCH_RECOGNIZE", "MEASURES", "MINUS", "NATURAL", "NEXT",
    "NOT", "NULL", "NULLS", "OFFSET", "ON", "ONE", "ONLY", "OR", "ORDER", "OUTER", "OVER", "PARTITION",
    "PATTERN", "PER", "PERMUTE", "PIVOT", "PREV", "QUALIFY", "RANGE", "RIGHT", "ROW", "ROWS", "RSTREAM",
    "RUNNING", "SELECT", "SEMI", "SET", "SETMINUS", "SLIDING", "SOME", "SORT", "START", "STREAM", "SUBSET",
    "TABLE", "TABLESAMPLE", "THEN", "TIME", "TIMESTAMP", "TO", "TRUE", "TUMBLING", "TYPE", "UNBOUNDED",
    "UNION", "UNPIVOT", "USING", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH", "WITHIN",
}  # fmt: skip
_FUNCTION = "a Python function"
_UNIT = re.compile(r"'(\w+)'")


class NoTextError(Exception):
    """A part of a Column has no SQL; the error's text says which."""


def column_text(column: Column) -> str | None:
    """A Column as SQL without its alias; None if it has no SQL, such as a Python function."""
    try:
        return written_column(column)
    except NoTextError:
        return None


def written_column(column: Column) -> str:
    """A Column as SQL without its alias.

    Raises
    ------
    NoTextError
        For a Column with a part that is no SQL.
    """
    return _without_brackets(_text(column_tree(column)))


def as_name(name: str) -> str:
    """A name as SQL."""
    return name if _SIMPLE.fullmatch(name) and name.upper() not in _KEYWORDS else quoted(name)


def _text(tree: ColumnTree) -> str:
    match tree:
        case NamedColumn(parts):
            return ".".join(map(as_name, parts))
        case Aliased(value):
            return _text(value)
        case FieldsChanged():
            return _text(_changed(tree))
        case WrittenColumn(sql, is_whole):
            return sql if is_whole else f"({without_comment(sql)})"
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
        case Other(kind):
            raise NoTextError(_WITHOUT_SQL.get(kind, "a part of the Column"))
    assert_never(tree)


_WITHOUT_SQL = {
    **dict.fromkeys(("InvokeInlineUserDefinedFunction", "CommonInlineUserDefinedFunction"), _FUNCTION),
    **dict.fromkeys(("PythonUDF", "PythonUDAF"), _FUNCTION),
    "ResolvedStar": "df['*']",
    **dict.fromkeys(("Window", "WindowExpression"), "over()"),
    "SortOrder": "a direction",
}
"""What the user wrote, by the class of Spark that stands for it."""


def _changed(tree: FieldsChanged) -> ColumnTree:
    """The struct with this change, if its fields are listed in the Column."""
    whole = _changed(tree.whole) if isinstance(tree.whole, FieldsChanged) else tree.whole
    is_listed = isinstance(whole, ColumnCall) and whole.name == "struct"
    names = [_field_name(one) for one in whole.arguments] if isinstance(whole, ColumnCall) else []
    if not isinstance(whole, ColumnCall) or not is_listed or None in names or "." in tree.name:
        raise NoTextError("withField or dropFields of a struct that the Column does not make")
    at = [
        number for number, name in enumerate(names) if name is not None and name.lower() == tree.name.lower()
    ]
    value = None if tree.value is None else Aliased(tree.value, [tree.name])
    fields = [value if number in at else one for number, one in enumerate(whole.arguments)]
    added = [value] if not at else []
    return ColumnCall("struct", [one for one in (*fields, *added) if one is not None])


def _field_name(tree: ColumnTree) -> str | None:
    """The name of a field of a struct; None where Spark chooses it."""
    match tree:
        case Aliased(_, [name]):
            return name
        case NamedColumn(parts):
            return parts[-1]
    return None


def _part(whole: ColumnTree, extraction: ColumnTree) -> str:
    """A field of a struct, or an element of an array or a map."""
    value, part = _text(whole), _text(extraction)
    named = re.fullmatch(r"'([A-Za-z_]\w*)'", part, re.ASCII) if isinstance(whole, NamedColumn) else None
    return f"{value}[{part}]" if named is None else f"{value}.{as_name(named[1])}"


def _call(name: str, trees: Sequence[ColumnTree], distinct: bool) -> str:
    arguments = [_text(argument) for argument in trees]
    lower, count = name.lower(), len(arguments)
    if lower == "struct":
        arguments = [
            f"{text} AS {as_name(tree.names[0])}" if isinstance(tree, Aliased) else text
            for tree, text in zip(trees, arguments, strict=True)
        ]
    if lower in INTERNAL and (unit := _UNIT.fullmatch(arguments[0])) is not None:
        arguments[0] = unit[1]
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
