"""Which clauses can run in slices, and a description of the rows that slices exchange."""

from __future__ import annotations

from windrow.kernels.slices.reach import needs_rows
from windrow.kernels.window_plan import WindowPlan

__all__ = ["describe", "needs_chain", "unsliceable"]


def unsliceable(plan: WindowPlan) -> str | None:
    """Why the clause needs whole partitions; None if it can run in slices."""
    if plan.tumbling and plan.has_label:
        return "tumbling windows with LABEL are chosen among all windows of a partition"
    for side, search in (("START", plan.start), ("END", plan.end)):
        if search is not None and search.strategy == "given":
            return f"Spark tries all pairs of rows of a partition for {side}"
    return None


def needs_chain(plan: WindowPlan) -> bool:
    """Whether a slice must know where the windows of those before it end."""
    return plan.tumbling and plan.end is not None and not plan.first_only and not plan.has_label


def describe(plan: WindowPlan) -> list[str]:
    """The rows that slices need from each other: a line for each boundary, and for outputs that need rows."""
    lines = [
        f"{side}: {_REACH[search.strategy]}"
        for side, search in (("start", plan.start), ("end", plan.end))
        if search is not None and search.strategy in _REACH
    ]
    if plan.end is None and not plan.first_only:
        lines.append("end: the next slice with a start row")
    if needs_chain(plan):
        lines.append("tumbling: chains of windows are joined from slice to slice")
    wholly = needs_rows(plan)
    if wholly:
        lines.append(f"all rows of the windows: for {', '.join(wholly)}")
    return lines


_REACH = {
    "always": "the first row searched",
    "unbounded": "no rows",
    "first true": "the next slice with such a row",
    "position": "the rows at that distance",
    "monotone": "the rows that the values of the slice allow",
    "first of": "the rows that the values of the slice allow for any alternative",
    "scan": "all rows that the least and greatest values of the slice do not rule out",
}
