"""PySpark's Columns as trees: of Java nodes, and of Spark Connect's, which are Python objects."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeAlias

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame
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

from windrow.spark.jvm.bridge import class_of, items_of
from windrow.spark.jvm.connect import of_connect

__all__ = [
    "Aliased",
    "Case",
    "Cast",
    "ColumnCall",
    "ColumnPart",
    "ColumnTree",
    "FieldsChanged",
    "Lambda",
    "LambdaVariable",
    "NamedColumn",
    "Other",
    "Star",
    "WrittenColumn",
    "aliases_of",
    "column_tree",
    "columns_identified",
    "columns_of_frames",
    "parts_of_name",
    "sort_order",
]

INTERNAL = {"timestampadd", "timestampdiff"}
"""Functions of classic Spark that it calls internal, and that are SQL."""
_SUFFIXES = {"ByteType": "Y", "ShortType": "S", "IntegerType": "", "LongType": "L"}


@dataclass(frozen=True)
class NamedColumn:
    """A column, or a field of one; `of` identifies it if it was taken from a DataFrame, as ``df.x`` is."""

    parts: list[str]
    of: str | None = None


@dataclass(frozen=True)
class WrittenColumn:
    """SQL; `is_whole` if it needs no brackets, such as a constant."""

    sql: str
    is_whole: bool = False


@dataclass(frozen=True)
class Star:
    """All columns; with a qualifier, all of one relation as it was written: ``r.*``."""

    written: str


@dataclass(frozen=True)
class ColumnCall:
    """A function, or an operator by its name."""

    name: str
    arguments: list[ColumnTree]
    is_distinct: bool = False


@dataclass(frozen=True)
class Cast:
    """A value cast to another type, written as SQL."""

    value: ColumnTree
    kind: str
    tries: bool


@dataclass(frozen=True)
class Case:
    """``CASE WHEN``."""

    branches: list[tuple[ColumnTree, ColumnTree]]
    otherwise: ColumnTree | None


@dataclass(frozen=True)
class ColumnPart:
    """A field of a struct, or an element of an array or a map."""

    whole: ColumnTree
    part: ColumnTree


@dataclass(frozen=True)
class Lambda:
    """A function that is written as SQL."""

    variables: list[ColumnTree]
    body: ColumnTree


@dataclass(frozen=True)
class LambdaVariable:
    """A variable of a lambda."""

    name: str


@dataclass(frozen=True)
class Aliased:
    """An expression with a name, or with a name for each of several columns."""

    value: ColumnTree
    names: list[str]


@dataclass(frozen=True)
class FieldsChanged:
    """A struct with another value of a field, or without the field if there is none."""

    whole: ColumnTree
    name: str
    value: ColumnTree | None


@dataclass(frozen=True)
class Other:
    """A part without SQL, such as a Python function: its class in Spark."""

    kind: str


ColumnTree: TypeAlias = (
    "NamedColumn | WrittenColumn | Star | ColumnCall | Cast | Case | ColumnPart | Lambda"
    " | LambdaVariable | Aliased | FieldsChanged | Other"
)


def column_tree(column: Column) -> ColumnTree:
    """A Column as a tree."""
    untyped: Any = column
    return _connect_tree(untyped._expr) if of_connect(column) else _java_tree(untyped._jc.node())


def aliases_of(column: Column) -> list[str]:
    """The aliases of a Column: several for a function that returns several columns."""
    tree = column_tree(column)
    return tree.names if isinstance(tree, Aliased) else []


def columns_of_frames(tree: ColumnTree) -> list[NamedColumn]:
    """The columns in a tree that were taken from DataFrames."""
    if isinstance(tree, NamedColumn):
        return [tree] if tree.of is not None else []
    found: list[NamedColumn] = []
    pending: list[Any] = [getattr(tree, one.name) for one in fields(tree)]
    while pending:
        part = pending.pop()
        if isinstance(part, list | tuple):
            pending += part
        elif is_dataclass(part):
            found += columns_of_frames(part)  # type: ignore[arg-type]
    return found


def columns_identified(frame: DataFrame) -> set[str]:
    """What identifies the columns of a DataFrame of a classic session in Columns that were taken from it."""
    untyped: Any = frame
    return {str(one.exprId()) for one in items_of(untyped._jdf.queryExecution().analyzed().output())}


def sort_order(column: Column) -> tuple[Column, str]:
    """A Column without its sort direction, and the direction as SQL; empty for a Column without one.

    ``F.col("t").desc()`` is ``t`` and ``DESC NULLS LAST``.
    """
    untyped: Any = column
    if of_connect(column):
        order = untyped._expr
        if type(order).__name__ != "SortOrder":
            return column, ""
        direction = "ASC" if order._ascending else "DESC"
        return type(untyped)(order._child), f"{direction} NULLS {'FIRST' if order._nullsFirst else 'LAST'}"
    node = untyped._jc.node()
    if class_of(node) != "SortOrder":
        return column, ""
    child = _java().org.apache.spark.sql.Column(node.child())
    return type(untyped)(child), f"{node.sortDirection().sql()} {node.nullOrdering().sql()}"


def parts_of_name(written: str) -> list[str]:
    """The parts of a name as PySpark reads it, with other characters between backquotes.

    >>> parts_of_name("s.`a.b`.c")
    ['s', 'a.b', 'c']
    """
    found = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", written)
    return [one.replace("``", "`") or other for one, other in found]


def _java_tree(node: Any) -> ColumnTree:
    match class_of(node):
        case "UnresolvedAttribute":
            return NamedColumn(items_of(node.nameParts()))
        case "Literal":
            return WrittenColumn(_java_constant(node.value()), is_whole=True)
        case "SqlExpression":
            return WrittenColumn(node.expression())
        case "UnresolvedStar":
            target = node.unparsedTarget()
            return Star("*" if target.isEmpty() else str(target.get()))
        case "UnresolvedFunction" if not node.isInternal() or node.functionName() in INTERNAL:
            return ColumnCall(node.functionName(), _java_trees(node.arguments()), node.isDistinct())
        case "Cast":
            mode = node.evalMode()
            tries = mode.isDefined() and "try" in str(mode.get()).lower()
            return Cast(_java_tree(node.child()), node.dataType().sql(), tries)
        case "CaseWhenOtherwise":
            branches = [(_java_tree(pair._1()), _java_tree(pair._2())) for pair in items_of(node.branches())]
            otherwise = node.otherwise()
            return Case(branches, _java_tree(otherwise.get()) if otherwise.isDefined() else None)
        case "UnresolvedExtractValue":
            return ColumnPart(_java_tree(node.child()), _java_tree(node.extraction()))
        case "LambdaFunction":
            return Lambda(_java_trees(node.arguments()), _java_tree(node.function()))
        case "UnresolvedNamedLambdaVariable":
            return LambdaVariable(str(node.name()))
        case "Alias":
            return Aliased(_java_tree(node.child()), [str(name) for name in items_of(node.name())])
        case "UpdateFields":
            value = node.valueExpression()
            changed = _java_tree(value.get()) if value.isDefined() else None
            return FieldsChanged(_java_tree(node.structExpression()), str(node.fieldName()), changed)
        case "ExpressionColumnNode":
            return _java_attribute(node.expression())
    return Other(class_of(node))


def _java_attribute(expression: Any) -> ColumnTree:
    """A column that was taken from a DataFrame, or a field of it."""
    match class_of(expression):
        case "AttributeReference":
            return NamedColumn([str(expression.name())], str(expression.exprId()))
        case "GetStructField":
            whole = _java_attribute(expression.child())
            if isinstance(whole, NamedColumn):
                return NamedColumn([*whole.parts, str(expression.extractFieldName())], whole.of)
        case "Alias":
            return _java_attribute(expression.child())
    return Other(class_of(expression))


def _java_trees(nodes: Any) -> list[ColumnTree]:
    return [_java_tree(node) for node in items_of(nodes)]


def _java_constant(value: Any) -> str:
    """A constant, as Spark itself writes it."""
    if value is None:
        return "NULL"
    literal = getattr(_java(), "org.apache.spark.sql.catalyst.expressions.Literal$")
    return str(getattr(literal, "MODULE$").apply(value).sql())


def _java() -> Any:
    """Java of the session that the Columns are made for: they do not identify it."""
    return SparkContext._active_spark_context._jvm  # type: ignore[union-attr]


def _connect_tree(node: Any) -> ColumnTree:
    match type(node).__name__:
        case "ColumnReference":
            return NamedColumn(parts_of_name(node._unparsed_identifier))
        case "LiteralExpression":
            text = _connect_constant(node._value, node._dataType)
            return Other("a constant") if text is None else WrittenColumn(text, is_whole=True)
        case "SQLExpression":
            return WrittenColumn(node._expr)
        case "UnresolvedStar":
            return Star(str(node._unparsed_target or "*"))
        case "UnresolvedFunction":
            return ColumnCall(node._name, _connect_trees(node._args), node._is_distinct)
        case "CallFunction":
            return ColumnCall(node._name, _connect_trees(node._args))
        case "CastExpression":
            kind = node._data_type
            type_text = kind if isinstance(kind, str) else kind.simpleString()
            return Cast(_connect_tree(node._expr), type_text, "try" in str(node._eval_mode).lower())
        case "CaseWhen":
            branches = [(_connect_tree(when), _connect_tree(value)) for when, value in node._branches]
            otherwise = node._else_value
            return Case(branches, None if otherwise is None else _connect_tree(otherwise))
        case "UnresolvedExtractValue":
            return ColumnPart(_connect_tree(node._child), _connect_tree(node._extraction))
        case "LambdaFunction":
            return Lambda(_connect_trees(node._arguments), _connect_tree(node._function))
        case "UnresolvedNamedLambdaVariable":
            return LambdaVariable(".".join(node._name_parts))
        case "ColumnAlias":
            return Aliased(_connect_tree(node._child), [str(name) for name in node._alias])
        case "WithField":
            changed = _connect_tree(node._valueExpr)
            return FieldsChanged(_connect_tree(node._structExpr), node._fieldName, changed)
        case "DropField":
            return FieldsChanged(_connect_tree(node._structExpr), node._fieldName, None)
    return Other(type(node).__name__)


def _connect_trees(nodes: Any) -> list[ColumnTree]:
    return [_connect_tree(node) for node in nodes]


def _connect_constant(value: Any, kind: DataType) -> str | None:
    """A constant of Spark Connect, in Spark's storage form: days, microseconds."""
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
    return None
