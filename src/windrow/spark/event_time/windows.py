"""Event time in the columns of windows: what a watermark is there, and which values a row has at most."""

from __future__ import annotations

from collections.abc import Iterable

from windrow.algebra.time_windows import TimeWindow
from windrow.spark.event_time.edits import Edits
from windrow.spark.event_time.facts import Occurrence, Sessions
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.table_functions import FunctionCall, window_call

__all__ = ["greatest", "mapped", "settled", "told_sessions"]


def mapped(window: TimeWindow, watermark: str) -> dict[str, str]:
    """What a watermark is in the columns of a window: the least that can still come."""
    ticks = f"({window.clock.of_column(watermark, window.time_type, window.clock.unit)})"
    if window.kind == "SESSION":
        # the begin of a session that still grows may be long past
        _, end, *last = window.columns(ticks, ticks)
        return {name: _value(text) for name, text in zip(window.names[1:], [end, *last], strict=True)}
    start = window.floor(ticks)
    length = window.lengths["dur"]
    if window.kind == "HOP":
        start = f"({window.floor(f'({ticks} - {length}L)')} + {window.step}L)"
    end = f"{start} + {length}L"
    if window.kind == "CUMULATE":
        step = window.lengths["step"]
        end = f"{start} + (({ticks} - {start}) DIV {step}L + 1) * {step}L"
    return {name: _value(text) for name, text in zip(window.names, window.columns(start, end), strict=True)}


def greatest(window: TimeWindow, time: str) -> dict[str, str]:
    """The greatest values that a row has in the columns of a window; none where they depend on other rows."""
    if window.kind == "SESSION":
        return {}
    ticks = f"({window.clock.of_column(time, window.time_type, window.clock.unit)})"
    start = window.floor(ticks)
    columns = window.columns(start, f"{start} + {window.lengths['dur']}L")
    return {name: _value(text) for name, text in zip(window.names, columns, strict=True)}


def settled(window: TimeWindow, watermark: str) -> str:
    """What the ends of sessions are below that nothing changes any more: rows that come end theirs later.

    A row that is not late is at most the gap before the watermark, and takes in rows at most the gap before.
    """
    ticks = f"({window.clock.of_column(watermark, window.time_type, window.clock.unit)})"
    _, end, *_ = window.columns(ticks, f"{ticks} - {window.lengths['gap']}L")
    return _value(end)


def told_sessions(
    edits: Edits,
    query: Range,
    occurrences: Iterable[Occurrence],
    call: FunctionCall,
    window: TimeWindow,
    time: str,
    number: str,
) -> Sessions:
    """Which session each row is in, as a query of its own; the query begins with what is in a range."""
    start, body = query
    first, last = call.tokens
    relation = SqlText.of(edits.text(first, last - 1), edits.piece(last - 1, last))
    (occurrence,) = (each for each in occurrences if each.number == number)
    listed = f"SELECT {quoted(number)} AS number, {quoted(window.names[1])} AS end FROM "
    text = SqlText.of(edits.text(start, body), listed, relation, " AS v")
    of, stop = window_call(edits.tokens, call).data
    is_plain = stop - of == 1 and edits.tokens[of].name.lower() == occurrence.stream
    return Sessions(text, occurrence.stream, time, window if is_plain else None)


def _value(column: str) -> str:
    """A column without its name."""
    return column.rpartition(" AS `")[0]
