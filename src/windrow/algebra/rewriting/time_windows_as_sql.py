"""Time windows as SQL: the columns that TUMBLE, HOP, CUMULATE and SESSION add to the rows of a relation.

The SQL is Spark's, over any relation, a table or a time-varying one. Instants are ticks internally. Windows
are ``[start, end)`` and begin at multiples of their step from the epoch, in UTC, shifted by the offset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from windrow.algebra.time_scale import TimeScale
from windrow.syntax.sqltext import SqlText, quoted

__all__ = [
    "OF_WINDOWS",
    "TICKS",
    "TimeWindow",
    "last_instant",
    "sessions_of_alias",
    "windowed",
    "windows_of_alias",
]

TICKS = "__ticks"
"""The time of a row in ticks."""

_START, _ROWS, _BREAK, _NUMBER, _BEGIN = "__start", "__rows", "__break", "__number", "__begin"
_MILLISECOND = 1_000_000
_MARK = "__windows_"
_LASTING = "__lasting_"
_LENGTHS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "TUMBLE": ("dur", "offset"),
        "HOP": ("hopsize", "dur", "offset"),
        "CUMULATE": ("step", "dur", "offset"),
        "SESSION": ("gap",),
    }
)
"""The lengths of each kind."""

OF_WINDOWS = frozenset([TICKS, _START])
"""The columns from which begins and ends of windows are computed. Except for sessions, the least of these
never decreases as the time of a row increases.
"""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A windowing function with its lengths.

    Attributes
    ----------
    kind
        TUMBLE, HOP, CUMULATE or SESSION.
    time, time_type
        The column of the times, and its type as Spark's SQL names it.
    scale
        The unit of lengths and ticks.
    lengths
        Ticks, by the names of the parameters: dur, hopsize, step, gap, maxdur, offset.
    keys
        The key columns of sessions.
    names
        The names of the added columns: start, end, and maybe the last instant.
    """

    kind: str
    time: str
    time_type: str
    scale: TimeScale
    lengths: Mapping[str, int]
    names: tuple[str, ...]
    keys: tuple[str, ...] = ()

    @property
    def hop(self) -> int:
        """The length whose multiples windows begin at."""
        return self.lengths["hopsize" if self.kind == "HOP" else "dur"]

    def floor(self, ticks: str) -> str:
        """SQL for the last begin of a window at or before an instant."""
        offset = self.lengths.get("offset", 0)
        moved = f"{ticks} - {offset}L" if offset else ticks
        return f"({ticks} - pmod({moved}, {self.hop}L))"

    def columns(self, start: str, end: str) -> list[str]:
        """SQL for the added columns, from ticks."""
        last = last_instant(self.scale)
        values = (start, end, f"{end} - {last}L")[: len(self.names)]
        return [
            f"{self.scale.to_column(f'({value})')} AS {quoted(name)}"
            for value, name in zip(values, self.names, strict=True)
        ]

    def column_list(self, start: str, end: str) -> str:
        """The same as a list."""
        return ", ".join(self.columns(start, end))


def last_instant(scale: TimeScale) -> int:
    """How many ticks before the end of a window its last instant is."""
    return 1 if scale.kind == "bigint" else max(_MILLISECOND // scale.nanoseconds, 1)


def windows_of_alias(alias: str | None) -> tuple[str, dict[str, int]] | None:
    """The kind and the lengths of the windows that a query adds, encoded in its alias; None for other
    aliases.
    """
    found = re.fullmatch(rf"{_MARK}([a-z]+)((?:_m?\d+)+)", alias or "")
    if found is None or (names := _LENGTHS.get(found[1].upper())) is None:
        return None
    values = [int(length.replace("m", "-")) for length in found[2].split("_")[1:]]
    return (found[1].upper(), dict(zip(names, values, strict=True))) if len(names) == len(values) else None


def sessions_of_alias(alias: str | None) -> tuple[int, int | None] | None:
    """The gap and the longest duration, if any, of the sessions that a query adds, encoded in its alias."""
    written = windows_of_alias(alias)
    if written is not None:
        return (written[1]["gap"], None) if written[0] == "SESSION" else None
    found = re.fullmatch(rf"{_LASTING}(\d+)_(\d+)", alias or "")
    return None if found is None else (int(found[1]), int(found[2]))


def windowed(window: TimeWindow, rows: SqlText) -> SqlText:
    """A query for the rows with their windows; rows without a time have none."""
    column = quoted(window.time)
    ticks = window.scale.of_column(column, window.time_type, window.scale.unit)
    timed = SqlText.of(f"SELECT *, {ticks} AS {TICKS} FROM ", rows, f" WHERE {column} IS NOT NULL")
    if window.kind == "SESSION":
        return _sessions(window, timed)
    if window.kind == "TUMBLE":
        start = window.floor(TICKS)
        listed = window.column_list(start, f"{start} + {window.lengths['dur']}L")
        return SqlText.of(f"SELECT * EXCEPT ({TICKS}), {listed} FROM (", timed, ") ", _mark(window))
    if window.kind == "HOP":
        starts, end = _hops(window), f"{_START} + {window.lengths['dur']}L"
        start = _START
    else:
        starts, start = _ends(window), window.floor(TICKS)
        end = _START
    listed = window.column_list(start, end)
    dealt = SqlText.of(f"SELECT *, explode({starts}) AS {_START} FROM (", timed, ")")
    return SqlText.of(f"SELECT * EXCEPT ({TICKS}, {_START}), {listed} FROM (", dealt, ") ", _mark(window))


def _mark(window: TimeWindow) -> str:
    """A name that encodes the windows of a query; :func:`windows_of_alias` reads it."""
    lengths = "_".join(str(window.lengths.get(name, 0)) for name in _LENGTHS[window.kind])
    return f"AS {_MARK}{window.kind.lower()}_{lengths.replace('-', 'm')}"


def _hops(window: TimeWindow) -> str:
    """The begins of the windows that an instant is in, as an array."""
    hop, length = window.hop, window.lengths["dur"]
    last = window.floor(TICKS)
    most = -(-length // hop)
    begins = f"transform(sequence(0, {most - 1}), i -> {last} - i * {hop}L)"
    return f"filter({begins}, s -> s > {TICKS} - {length}L)"


def _ends(window: TimeWindow) -> str:
    """The ends of the windows that contain an instant, all with one begin, as an array."""
    start, step = window.floor(TICKS), window.lengths["step"]
    first = f"(({TICKS} - {start}) DIV {step}L + 1)"
    return f"transform(sequence({first}, {window.lengths['dur'] // step}L), n -> {start} + n * {step}L)"


def _sessions(window: TimeWindow, timed: SqlText) -> SqlText:
    """Rows with their sessions: a row begins one if no row of its key is at most the gap before it."""
    gap, longest = window.lengths["gap"], window.lengths.get("maxdur")
    keys = [quoted(key) for key in window.keys]
    by = f"PARTITION BY {', '.join(keys)} " if keys else ""
    before = f"lag({TICKS}) OVER ({by}ORDER BY {TICKS})"
    breaks = SqlText.of(
        f"SELECT *, CASE WHEN {TICKS} - {before} <= {gap}L THEN 0 ELSE 1 END AS {_BREAK} FROM (", timed, ")"
    )
    numbered = SqlText.of(
        f"SELECT *, sum({_BREAK}) OVER ({by}ORDER BY {TICKS}) AS {_NUMBER} FROM (", breaks, ")"
    )
    if longest is None:
        of = f"OVER (PARTITION BY {', '.join([*keys, _NUMBER])})"
        begin = f"min({TICKS}) {of}"
        last = f"max({TICKS}) {of} + {gap}L"
        inner = ", ".join((TICKS, _BREAK, _NUMBER))
        listed = window.column_list(begin, last)
        return SqlText.of(f"SELECT * EXCEPT ({inner}), {listed} FROM (", numbered, ") ", _mark(window))
    # within a run of rows without a gap, a row begins a session where the last one has reached its length
    begins = (
        f"aggregate(array_sort(collect_list({TICKS})), CAST(array() AS ARRAY<BIGINT>), (begins, t) -> "
        f"CASE WHEN size(begins) = 0 OR t - element_at(begins, -1) >= {longest}L "
        f"THEN array_append(begins, t) ELSE begins END)"
    )
    group = ", ".join([*keys, _NUMBER])
    runs = SqlText.of(
        f"SELECT {begins} AS {_BEGIN}s, collect_list(struct(*)) AS {_ROWS} FROM (",
        numbered,
        f") GROUP BY {group}",
    )
    dealt = SqlText.of(f"SELECT {_BEGIN}s, explode({_ROWS}) AS {_ROWS} FROM (", runs, ")")
    begun = SqlText.of(
        f"SELECT {_ROWS}.*, array_max(filter({_BEGIN}s, s -> s <= {_ROWS}.{TICKS})) AS {_BEGIN} FROM (",
        dealt,
        ")",
    )
    of = f"OVER (PARTITION BY {', '.join([*keys, _BEGIN])})"
    last = f"least(max({TICKS}) {of} + {gap}L, {_BEGIN} + {longest}L)"
    inner = ", ".join((TICKS, _BREAK, _NUMBER, _BEGIN))
    lasting = f"AS {_LASTING}{gap}_{longest}"
    return SqlText.of(
        f"SELECT * EXCEPT ({inner}), {window.column_list(_BEGIN, last)} FROM (", begun, ") ", lasting
    )
