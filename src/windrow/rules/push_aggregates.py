"""Rule: compute aggregates over the window inside the kernel where it has them, else in Spark.

AVG(w.val), corr(w.x, w.y)   →   avg over column h3 in the kernel; corr over the exploded windows
"""

from __future__ import annotations

from dataclasses import replace

from windrow.algebra.physical import Analyzer, DraftColumns, PlanDraft, find_field
from windrow.algebra.window_node import AggregateCall
from windrow.syntax.expression_nodes import Name
from windrow.syntax.sqltext import SqlText

__all__ = ["push_aggregates"]


def push_aggregates(draft: PlanDraft, analyzer: Analyzer) -> PlanDraft:
    """Assign each aggregate to the kernel or to Spark."""
    columns = DraftColumns(draft)
    in_kernel: list[tuple[AggregateCall, str | None]] = []
    in_spark: list[AggregateCall] = []
    for call in draft.window.aggregates:
        analyzer.aggregate_type(call)
        argument = call.argument
        if call.function is None or argument is None or call.others:
            in_spark.append(call)
            continue
        counts_rows = isinstance(argument.expression, Name) and len(argument.expression.parts) == 1
        if counts_rows and call.function == "count":
            in_kernel.append((replace(call, function="count_star"), None))
        elif counts_rows or not analyzer.kernel_supports(call.function, argument):
            in_spark.append(call)
        else:
            in_kernel.append((call, _column(argument.text, argument.expression, draft, analyzer, columns)))
    return replace(
        draft,
        kernel_aggregates=tuple(in_kernel),
        spark_aggregates=tuple(in_spark),
        hoisted=tuple(columns.hoisted.values()),
    )


def _column(
    text: SqlText, expression: object, draft: PlanDraft, analyzer: Analyzer, columns: DraftColumns
) -> str:
    if isinstance(expression, Name) and len(expression.parts) == 2:
        field = find_field(analyzer.fields, expression.parts[1])
        if field is not None:
            return columns.field(field)
    return columns.add(SqlText.of("(", text, ")"), draft.window.name)
