"""Event time in the columns of windows: the value of a watermark there, and the greatest value of a row."""

from __future__ import annotations

from windrow.algebra.rewriting.time_windows_as_sql import TimeWindow
from windrow.algebra.time_scale import TimeScale
from windrow.plan.columns import Column
from windrow.plan.nodes import SessionWindows, TimeWindows

__all__ = ["greatest", "least_open", "mapped", "window_of"]


def window_of(node: TimeWindows | SessionWindows, time: Column, *, by_ids: bool = False) -> TimeWindow:
    """The windowing function of a node.

    Parameters
    ----------
    time
        The column of the times.
    by_ids
        Whether the columns are identified by their ids, and the time is the node's own.
    """
    if isinstance(node, TimeWindows):
        rows, kind, lengths = node.rows, node.kind, node.lengths
        added = node.columns[len(rows.columns) :]
    else:
        rows, kind, added = node.input, "SESSION", node.bounds
        lengths = {"gap": node.gap} if node.longest is None else {"gap": node.gap, "maxdur": node.longest}
    names = {column.id: column.id if by_ids else column.name for column in rows.columns}
    time_type = added[0].type.simpleString() if isinstance(node, SessionWindows) else time.type.simpleString()
    scale = TimeScale.of(time_type, "NANOSECOND")
    assert scale is not None
    of_time = time.type.simpleString()
    return TimeWindow(
        kind,
        node.time if by_ids else time.name,
        scale.kind if of_time == "int" else of_time,
        scale,
        lengths,
        tuple(column.name for column in added),
        tuple(names[key] for key in node.keys),
    )


def mapped(window: TimeWindow, watermark: str) -> dict[str, str]:
    """SQL for a watermark in the columns of a window: the least value that a later row can have there."""
    ticks = f"({window.scale.of_column(watermark, window.time_type, window.scale.unit)})"
    if window.kind == "SESSION":
        # not the begin: a session that still grows may have begun long before
        _, end, *last = window.columns(ticks, ticks)
        return {name: _value(text) for name, text in zip(window.names[1:], [end, *last], strict=True)}
    start = window.floor(ticks)
    length = window.lengths["dur"]
    if window.kind == "HOP":
        start = f"({window.floor(f'({ticks} - {length}L)')} + {window.hop}L)"
    end = f"{start} + {length}L"
    if window.kind == "CUMULATE":
        step = window.lengths["step"]
        end = f"{start} + (({ticks} - {start}) DIV {step}L + 1) * {step}L"
    return {name: _value(text) for name, text in zip(window.names, window.columns(start, end), strict=True)}


def greatest(window: TimeWindow, time: str) -> dict[str, str]:
    """SQL for the greatest values of a row in the columns of a window; empty if they depend on other rows."""
    if window.kind == "SESSION":
        return {}
    ticks = f"({window.scale.of_column(time, window.time_type, window.scale.unit)})"
    start = window.floor(ticks)
    columns = window.columns(start, f"{start} + {window.lengths['dur']}L")
    return {name: _value(text) for name, text in zip(window.names, columns, strict=True)}


def least_open(window: TimeWindow, watermark: str) -> str:
    """SQL for the least end of a session that can still change, at a watermark.

    A row that is not late is at most the gap before the watermark, and joins a session that ends at most the
    gap before the row.
    """
    ticks = f"({window.scale.of_column(watermark, window.time_type, window.scale.unit)})"
    _, end, *_ = window.columns(ticks, f"{ticks} - {window.lengths['gap']}L")
    return _value(end)


def _value(column: str) -> str:
    """A column without its name."""
    return column.rpartition(" AS `")[0]
