"""Which parts of a plan have no operator over punctuated streams, before any operator is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from pyspark.sql.types import DataType

from windrow.plan import nodes as plan
from windrow.plan.arrow_types import arrow_type, contains, is_orderable, travelling_type
from windrow.plan.columns import Column
from windrow.plan.reasons import Reason
from windrow.punctuations.lines import line_if_any
from windrow.spark.gateway import Gateway
from windrow.spark.relations.aggregates_of_plan import kernel_aggregates
from windrow.syntax.nodes import Range

__all__ = ["has_line", "why_no_operator"]


def why_no_operator(gateway: Gateway, node: plan.Node) -> Reason | None:
    """Why a node of a plan has no operator; None if it has one."""
    return _of_types(node) or _of_node(gateway, node)


def has_line(kind: DataType) -> bool:
    """Whether the values of a type have an order for punctuations."""
    return line_if_any(arrow_type(kind)) is not None


def _of_node(gateway: Gateway, node: plan.Node) -> Reason | None:
    match node:
        case plan.Input():
            return Reason("a time-varying relation", node.at)
        case plan.StreamWindow():
            return Reason("a stream with a window together with one without", node.at)
        case plan.ClauseRelation():
            return Reason(f"{node.label} over windows", node.at)
        case plan.Project() if node.is_whole:
            return Reason("SELECT of this form")
        case plan.Join() | plan.Mark():
            return _of_join(node)
        case plan.Value():
            raise AssertionError("a rule makes a join of it")
        case plan.OneRow():
            what = "a subquery that may return several rows for one value"
            return Reason(what, node.at, "select one row, with an aggregate without GROUP BY")
        case plan.Pieces():
            return node.why
        case plan.Aggregate():
            unordered = _of_order([column for column, _ in node.keys], "GROUP BY", node.at)
            specs = kernel_aggregates(gateway, node)
            return unordered or (specs if isinstance(specs, Reason) else None)
        case plan.Over():
            by = {*node.partition, *(key.column for key in node.order)}
            return _of_order([column for column in node.input.columns if column.id in by], "OVER", node.at)
        case plan.Distinct():
            return _of_order(node.columns, "DISTINCT", None)
        case plan.SetOperation() if not (node.operator == "union" and node.all):
            return _of_order(node.columns, f"{node.operator}{' all' if node.all else ''}".upper(), None)
        case plan.Sort():
            return _of_sort(node)
        case plan.Scan() | plan.Filter() | plan.Project() | plan.SessionWindows() | plan.TimeWindows():
            return None
        case plan.SetOperation():  # UNION ALL
            return None
    assert_never(node)


def _of_join(node: plan.Join | plan.Mark) -> Reason | None:
    for column, _ in node.keys:
        kind = _type(node.left, column)
        if not is_orderable(kind):
            columns = kind.simpleString().upper()
            return Reason(
                f"a comparison of {columns} and {columns} by =", node.at, "cast one to the type of the other"
            )
    return None


def _of_sort(node: plan.Sort) -> Reason | None:
    if not node.keys:  # it would be any rows, and others whenever the query is run
        return Reason(f"{node.label.split()[0].upper()} without ORDER BY", node.at)
    if node.partition:
        what = "LIMIT in a correlated subquery"
        return Reason(what, node.at, "write an aggregate, such as MAX, instead of ORDER BY … LIMIT 1")
    for key in node.keys:
        kind = _type(node.input, key.column)
        if not has_line(kind):
            what = f"ORDER BY a {kind.simpleString().upper()}"
            return Reason(what, node.at, "order by numbers, times, booleans, strings or binaries")
    return None


def _of_types(node: plan.Node) -> Reason | None:
    at = node.at if isinstance(node, plan.Scan) else None
    for column in node.columns:
        kind = column.type
        if travelling_type(kind) != kind or arrow_type(kind) is None or contains(kind, "collated"):
            return Reason(f"a column of type {kind.simpleString().upper()}", at)
    return None


def _of_order(columns: Sequence[Column], what: str, at: Range | None) -> Reason | None:
    kinds = [column.type for column in columns if not is_orderable(column.type)]
    if not kinds:
        return None
    between = "by" if what == "OVER" else "of"
    return Reason(f"{what} {between} {kinds[0].simpleString().upper()}", at)


def _type(node: plan.Node, column: str) -> DataType:
    return next(one.type for one in node.columns if one.id == column)
