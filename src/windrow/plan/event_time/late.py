"""Removes rows that are late for their groups, by conditions over the watermark before each row.

Lateness is decided twice. The plan decides it for the groups of a row or the pairs of a join, and removes the
row from the groups that were complete. Admission decides it for each row of a stream by the rowtime alone.
Each row that the plan removes is late at admission too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql.types import BooleanType

from windrow.algebra.rewriting.time_windows_as_sql import TimeWindow
from windrow.plan.columns import ROWS, Expression, Scope
from windrow.plan.event_time.facts import EventColumn
from windrow.plan.nodes import Filter, Join, Node, Project, walk
from windrow.plan.nodes import Input as Relation
from windrow.plan.visible import VisibleColumns
from windrow.syntax.sqltext import SqlText

__all__ = [
    "late_for_groups",
    "late_for_sessions",
    "not_late",
    "without",
    "without_merged_pairs",
    "without_pairs",
]

Marks = Mapping[int, str]
"""The columns with watermarks, by the place of their stream."""

_LABEL = "rows that are not late for their groups"


def late_for_groups(timed_keys: Sequence[tuple[SqlText, EventColumn]], marks: Marks) -> SqlText:
    """SQL for whether a row is late: for each stream of its keys, one key is below the watermark."""
    least = _least(marks)
    by_origin: dict[int, list[SqlText]] = {}
    for key, event in timed_keys:
        text = SqlText.of("(", key, f") < {event.mapped.replace('{t}', least)}")
        by_origin.setdefault(event.origin, []).append(text)
    return SqlText.join(
        " AND ", [SqlText.of("(", SqlText.join(" OR ", each), ")") for each in by_origin.values()]
    )


def late_for_sessions(
    window: TimeWindow, time: str, event: EventColumn, marks: Marks
) -> tuple[SqlText, str, str]:
    """SQL for whether the session of a row alone would be complete, and the two sides of that comparison: SQL
    of a rowtime, and SQL of a watermark.
    """
    at, mapped = (
        f"({window.scale.of_column(text, window.time_type, window.scale.unit)})"
        for text in (f"{ROWS}.{time}", event.mapped)
    )
    after = f" + {window.lengths['gap']}L"
    return SqlText.of(f"{at}{after} < {mapped.replace('{t}', _least(marks))}"), mapped + after, mapped


def _least(marks: Marks) -> str:
    names = [f"{ROWS}.{marks[at]}" for at in sorted(marks)]
    return names[0] if len(names) == 1 else f"greatest({', '.join(names)})"


def without(rows: Node, scope: Scope, late: SqlText) -> Filter:
    """A filter that removes late rows."""
    return Filter(rows, scope, (not_late(late),), "WHERE", _LABEL)


def not_late(late: SqlText) -> Expression:
    """The condition that a row or pair is not late."""
    return Expression(SqlText.of("NOT coalesce(", late, ", FALSE)"), BooleanType())


def without_pairs(rows: Node, late: SqlText, marks: Marks, visible: VisibleColumns) -> Node:
    """Rows of an outer join of streams, in which a late row is not a partner either."""
    if isinstance(rows, Filter):
        return replace(rows, input=without_pairs(rows.input, late, marks, visible))
    if not isinstance(rows, Join) or rows.kind not in ("left", "right", "full") or rows.is_of_subquery:
        return rows
    if not all(_is_temporal(side) for side in (rows.left, rows.right)):
        return rows
    made = visible.showing(rows, marks.values())
    assert isinstance(made, Join)
    return replace(made, conditions=(*made.conditions, not_late(late)))


def without_merged_pairs(
    rows: Node,
    merged: Sequence[tuple[str, str] | None],
    late: SqlText,
    marks: Marks,
    visible: VisibleColumns,
) -> Node | None:
    """The same for keys of a FULL JOIN whose columns are merged above it; None if it is not below them."""
    if isinstance(rows, Filter | Project):
        inside = without_merged_pairs(rows.input, merged, late, marks, visible)
        return None if inside is None else replace(rows, input=inside)
    if not isinstance(rows, Join) or not {*merged} <= {*rows.keys, *(key[::-1] for key in rows.keys)}:
        return None
    return without_pairs(rows, late, marks, visible)


def _is_temporal(node: Node) -> bool:
    return any(isinstance(one, Relation) and one.is_temporal for one in walk(node))
