"""The last rule: converts a finished draft to the kernel's plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from windrow.algebra.names import QUALIFIED
from windrow.algebra.physical import FoundBoundary, PlanDraft
from windrow.algebra.window_node import Window
from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.window_plan import (
    ColumnRef,
    FieldOutput,
    Output,
    PairExpression,
    PositionOutput,
    RowOutput,
    RowsOutput,
    Search,
    WindowPlan,
)
from windrow.rules.elsewhere import elsewhere
from windrow.syntax.nodes import Role, Side

__all__ = ["IS_LABEL", "ROWS", "flat", "is_flat", "joined_position", "kernel_plan", "needs_join"]

IS_LABEL = "__is_label"
ROWS = "__rows"
"""The column with a window's rows for the aggregates that Spark computes."""


def needs_join(draft: PlanDraft) -> bool:
    """Whether a predicate of the window is beyond the kernel."""
    return any(predicate.typed is None for predicate in draft.predicates)


def joined_position(side: Side) -> str:
    """The column in which the join plan returns the position of a boundary."""
    return f"__{side.value}_position"


def kernel_plan(
    draft: PlanDraft,
    columns: Mapping[str, pa.DataType],
    aggregates: Mapping[str, pa.DataType],
    constants: pa.Table,
    *,
    ansi: bool,
) -> WindowPlan:
    """The kernel's plan.

    Parameters
    ----------
    draft
        After all rules.
    columns
        The Arrow types of the hoisted columns.
    aggregates
        The Arrow types of the kernel's aggregates, by their column's name.
    constants
        One row with the draft's constants.
    ansi
        Whether overflow and division by zero raise.
    """
    window = draft.window
    outputs = _outputs(draft)
    specs = []
    for call, column in draft.kernel_aggregates:
        kind = aggregates[call.name]
        spec = AggregateSpec(call.function or "", column, kind, call.ignore_nulls, call.parameters, ansi)
        specs.append((call.name, spec, (call.span.start, call.span.stop)))
    fields = [_field(output, columns) for output in outputs]
    fields += [pa.field(name, aggregates[name]) for name, _, _ in specs]
    return WindowPlan(
        tumbling=window.tumbling,
        has_label=window.label is not None,
        labels=_labels(draft),
        start=_search(draft.search(Side.START)),
        end=_search(draft.search(Side.END)),
        only_start=window.start.only,
        only_end=window.end is not None and window.end.only,
        first_only=window.label is None and window.start.unbounded,
        outputs=outputs,
        aggregates=tuple(specs),
        result=pa.schema(fields),
        ansi=ansi,
        sql=window.sql,
        constants=constants,
        elsewhere=elsewhere(draft),
    )


def _outputs(draft: PlanDraft) -> tuple[Output, ...]:
    variables = {variable.name: variable for variable in draft.window.variables()}
    positions = draft.window.positions()
    outputs: list[Output] = []
    for name, fields in draft.fields:
        variable = name.removeprefix(QUALIFIED)
        if variable == draft.window.name:
            outputs.append(RowsOutput(name, fields))
        elif name in positions:
            side, shift = positions[name]
            outputs.append(PositionOutput(name, side.value, shift))
        elif is_flat(draft.window, name, fields):
            side = variables[variable].side
            outputs += [FieldOutput(flat(name, field), side.value, column) for field, column in fields]
        else:
            row = variables[variable]
            outputs.append(RowOutput(name, row.side.value, row.role.shift, fields))
    if draft.spark_aggregates:
        outputs.append(RowsOutput(ROWS, draft.spark_fields, markers=False))
    return tuple(outputs)


def is_flat(window: Window, name: str, fields: Sequence[tuple[str, str]]) -> bool:
    """Whether a row variable is carried as columns: it has fields, and cannot be missing: the label row is
    its own row.
    """
    side = Side.START if window.label is None else Side.LABEL
    variable = name.removeprefix(QUALIFIED)
    there = any(v.name == variable and v.side is side and v.role is Role.ROW for v in window.variables())
    return there and bool(fields)


def flat(variable: str, field: str) -> str:
    """The column with a field of a row variable that is carried as columns."""
    return f"__{len(variable)}.{variable}.{field}"


def _field(output: Output, columns: Mapping[str, pa.DataType]) -> pa.Field:
    match output:
        case FieldOutput(name=name, column=column):
            return pa.field(name, columns[column])
        case PositionOutput(name=name):
            return pa.field(name, pa.int64())
        case RowOutput(name=name, fields=fields):
            return pa.field(name, _struct(fields, columns))
        case RowsOutput(name=name, fields=fields):
            return pa.field(name, pa.list_(pa.field("element", _struct(fields, columns))))


def _struct(fields: tuple[tuple[str, str], ...], columns: Mapping[str, pa.DataType]) -> pa.DataType:
    return pa.struct([pa.field(name, columns[column]) for name, column in fields])


def _labels(draft: PlanDraft) -> PairExpression | None:
    side = Side.LABEL if draft.window.label is not None else Side.START
    predicate = draft.predicate(side)
    if predicate is not None and predicate.typed is None:
        return ColumnRef(IS_LABEL, side.value)
    return draft.labels


def _search(found: FoundBoundary | None) -> Search | None:
    return None if found is None else found.search
