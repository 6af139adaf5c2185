"""Rule: carry only the fields that the query reads of each variable.

SELECT s.station, AVG(w.val)   →   s: {station}, e: nothing, w: not materialised
"""

from __future__ import annotations

from dataclasses import replace

from windrow.algebra.names import visible_field
from windrow.algebra.physical import Analyzer, DraftColumns, PlanDraft, find_field
from windrow.algebra.window_node import Uses

__all__ = ["prune_fields"]


def prune_fields(draft: PlanDraft, analyzer: Analyzer) -> PlanDraft:
    """Fill in `fields`, for each variable that is read, and `spark_fields`, for Spark's aggregates."""
    columns = DraftColumns(draft)
    positions = draft.window.positions()
    fields: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for use in draft.window.uses or _to_count(draft):
        if use.name in positions:
            fields.append((use.name, ()))
            continue
        read = _read(use, list(analyzer.fields))
        fields.append((use.name, tuple((field, columns.field(field)) for field in read)))
    spark_fields: tuple[tuple[str, str], ...] = ()
    if draft.spark_aggregates:
        reads = [call.reads for call in draft.spark_aggregates]
        whole = any(read is None for read in reads)
        needed = Uses(
            draft.window.name, None if whole else frozenset().union(*(read or () for read in reads))
        )
        spark_fields = tuple((field, columns.field(field)) for field in _read(needed, list(analyzer.fields)))
    return replace(
        draft, fields=tuple(fields), spark_fields=spark_fields, hoisted=tuple(columns.hoisted.values())
    )


def _to_count(draft: PlanDraft) -> tuple[Uses, ...]:
    """The uses for windows of which nothing is read: they are counted all the same."""
    if draft.window.aggregates:
        return ()
    names = [variable.name for variable in draft.window.variables()]
    return (Uses([*names, draft.window.name][0], frozenset()),)


def _read(use: Uses, fields: list[str]) -> list[str]:
    """The fields to carry; all of them if the variable is used whole or a name is not a plain field."""
    if use.fields is None:
        return [field for field in fields if visible_field(field) is not None]
    wanted = {find_field(dict.fromkeys(fields, ""), written) for written in use.fields}
    named = {written.lower() for written in use.fields}
    # of columns that share a name all are carried, so that Spark says of the name that it is ambiguous
    read = [field for field in fields if field in wanted or (visible_field(field) or "").lower() in named]
    # a struct without fields cannot say whether its row exists
    return read or fields[:1]
