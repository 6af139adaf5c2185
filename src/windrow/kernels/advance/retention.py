"""When a growing sequence emits its output, and which rows it retains until then, in words."""

from __future__ import annotations

from typing import Literal, TypeAlias

from windrow.kernels.advance.final_matches import limits_of
from windrow.kernels.advance.frontier import Frontier
from windrow.kernels.advance.starts import bounding, rows_before
from windrow.kernels.advance.timeouts import ends_by_time, has_timeouts
from windrow.kernels.patterns.pattern_plan import MatchPlan, PatternFrame
from windrow.kernels.patterns.program import END, JUMP, MATCH, SPLIT, PatternProgram
from windrow.kernels.window_plan import Search, WindowPlan

__all__ = ["RetainedBy", "retained_by", "retention"]

RetainedBy: TypeAlias = Literal["time", "rows", "all"]

_AT_END = "when the stream is closed"


def retention(plan: WindowPlan | MatchPlan, frontier: Frontier) -> tuple[str, str]:
    """When windows or matches are emitted, and which rows are retained, as far as the frontier
    determines it.
    """
    return _matches(plan, frontier) if isinstance(plan, MatchPlan) else _windows(plan, frontier)


def retained_by(plan: WindowPlan | MatchPlan, frontier: Frontier) -> RetainedBy:
    """What bounds the retained rows of a partition: the frontier, so that no row is retained forever; a
    number of rows; or nothing.
    """
    if isinstance(plan, MatchPlan):
        rising = frozenset(frontier.values.column_names)
        by_duration = plan.frame is None and plan.duration is not None and plan.duration.key in rising
        if by_duration or (limits_of(plan, rising) and not (plan.frame is not None and plan.frame.seek)):
            return "time"
        seeks = plan.frame is not None and plan.frame.seek
        following = None if plan.frame is None else plan.frame.following
        is_counted = not seeks and (following is not None or _longest(plan.program) is not None)
        return "rows" if is_counted else "all"
    if _is_emitted_at_end(plan, frontier) or (plan.end is not None and plan.end.strategy == "unbounded"):
        return "all"
    if ends_by_time(plan, frontier):
        return "time"
    if plan.has_label:
        return "rows" if rows_before(plan) is not None and _rows_after(plan.end) is not None else "all"
    return "all" if _rows_after(plan.end) is None else "rows"


def _windows(plan: WindowPlan, frontier: Frontier) -> tuple[str, str]:
    if _is_emitted_at_end(plan, frontier):
        return f"{_AT_END}: a later row's window may begin before any other", "all rows: not bounded"
    if plan.end is not None and plan.end.strategy == "unbounded":
        return f"{_AT_END}: only then the last row is known", "the rows of windows: not bounded"
    if has_timeouts(plan, frontier):
        emitted = "when its last row is known, by a later row or by the watermark"
    elif plan.end is None:
        emitted = "when the next one begins"
    else:
        emitted = "once its last row has arrived, and the rows beside it are known"
    return emitted, _retention(plan, frontier)


def _is_emitted_at_end(plan: WindowPlan, frontier: Frontier) -> bool:
    """Whether windows are chosen only when all label rows are known, because any may reach back to the first
    row.
    """
    bounded = rows_before(plan) is not None or bounding(plan, frozenset(frontier.values.column_names))
    return plan.tumbling and plan.has_label and not bounded


def _retention(plan: WindowPlan, frontier: Frontier) -> str:
    if plan.has_label:
        if rows_before(plan) is not None:
            return f"the last {_plural(rows_before(plan) or 0)} of each partition, and windows that are open"
        if bounding(plan, frozenset(frontier.values.column_names)):
            return "rows in which a later row's window may begin, by START, and windows that are open"
        return "all rows, as a later row's window may begin at any: not bounded"
    count = _rows_after(plan.end)
    if count is not None:
        return f"the last {_plural(count)} of each partition"
    return "rows from the first window that is open: not bounded in partitions in which one stays open"


def _rows_after(search: Search | None) -> int | None:
    """The most rows of a window, if END counts them."""
    if search is None or search.strategy != "position" or search.base != "start":
        return None
    return max(search.offset, 0) + 1 if search.comparison in ("=", ">=", ">") and search.offset >= 0 else None


def _matches(plan: MatchPlan, frontier: Frontier) -> tuple[str, str]:
    if plan.frame is not None:
        return "when no later row can change the row's match", _of_frame(plan, plan.frame, frontier)
    at_end = "; before $, when the stream is closed" if (plan.program.op == END).any() else ""
    if plan.duration is not None and plan.duration.key in frontier.values.column_names:
        emitted = f"when its time is over by the bound{at_end}"
        return emitted, "rows from the first one on whose time is not over"
    emitted = f"when no later row can change it{at_end}"
    if plan.every and at_end:
        emitted = f"when the next row of the partition is known{at_end}"
    if limits_of(plan, frozenset(frontier.values.column_names)):
        return emitted, "rows of matches that may continue, which WITHIN bounds"
    longest = _longest(plan.program)
    if longest is not None:
        return emitted, f"rows of matches that may continue: the last {_plural(longest)} of each partition"
    return (
        emitted,
        "rows of matches that may continue: not bounded, as the pattern and WITHIN do not bound them",
    )


def _of_frame(plan: MatchPlan, frame: PatternFrame, frontier: Frontier) -> str:
    """The rows that windows with patterns retain."""
    longest = None if frame.seek else _longest(plan.program)
    count = min((most for most in (frame.following, longest) if most is not None), default=None)
    if count is not None:
        return (
            f"rows whose match may continue: the last {_plural(count)} of each partition" if count else "none"
        )
    if frame.seek:
        return "all rows from the first one on for which no match is found: not bounded"
    if limits_of(plan, frozenset(frontier.values.column_names)):
        return "rows whose match may continue, which WITHIN bounds"
    return (
        "rows whose match may continue: not bounded, as the frame, the pattern and WITHIN do not bound them"
    )


def _longest(program: PatternProgram) -> int | None:
    """The most rows of a match; None if it is unbounded."""
    least: dict[int, int] = {}
    stack = [(0, 0)]
    while stack:
        at, length = stack.pop()
        if least.get(at, -1) >= length:
            continue
        if length > len(program):
            return None  # it went round
        least[at] = length
        op, x, y = int(program.op[at]), int(program.x[at]), int(program.y[at])
        if op == MATCH:
            stack.append((at + 1, length + 1))
        elif op == SPLIT:
            stack += [(x, length), (y, length)]
        elif op == JUMP:
            stack.append((x, length))
        elif at + 1 < len(program):
            stack.append((at + 1, length))
    return max(least.values())


def _plural(count: int) -> str:
    return "row" if count == 1 else f"{count} rows"
