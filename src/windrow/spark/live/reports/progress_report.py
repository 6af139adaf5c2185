"""The progress of a live query, for people and listeners."""

from __future__ import annotations

import datetime
import time
import warnings
from collections.abc import Mapping
from typing import Any

from windrow.algebra.time_scale import TimeScale
from windrow.spark.live.checkpoints.checkpoint import EARLIER_NAMES
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.runtime.settings import zone_named
from windrow.streams import FOREVER, NO_BOUND

__all__ = ["QueryProgress", "described", "in_words", "instant_text"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_END = "the end"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_EARLIER_NAMES = {**EARLIER_NAMES, "lag": "seconds_behind"}
"""Deprecated names in progress, and the names of today."""


class QueryProgress(dict[str, Any]):
    """The progress of a micro-batch by names, where earlier names of counts still work, with a warning.

    >>> QueryProgress(rows_buffered=3)["rows_buffered"]
    3
    """

    def get(self, name: str, default: Any = None, /) -> Any:
        """The value of a name, also of an earlier one."""
        return super().get(self._name_of_today(name) if name not in self else name, default)

    def __missing__(self, name: str) -> Any:
        now = self._name_of_today(name)
        if now not in self:
            raise KeyError(name)
        return self[now]

    @staticmethod
    def _name_of_today(name: str) -> str:
        """The name that replaces an earlier one, with a warning where the caller reads it; others as is."""
        now = _EARLIER_NAMES.get(name, name)
        if now != name:
            warnings.warn(f"progress has {now} for {name}", DeprecationWarning, stacklevel=3)
        return now


def described(name: str, plan: LivePlan, counts: Mapping[str, Any], seconds: float) -> QueryProgress:
    """The progress of a micro-batch, with its rates and how far the query is behind the time of day.

    Parameters
    ----------
    name, plan
        The query.
    counts
        The counts of the micro-batch.
    seconds
        How long it took.
    """
    if not counts:
        return QueryProgress()
    zone = str(plan.gateway.spark.conf.get("spark.sql.session.timeZone") or "UTC")
    frontier = counts["frontier"]
    return QueryProgress(
        query=name,
        **counts,
        seconds=round(seconds, 3),
        rows_per_second=round(counts["batch_rows_in"] / seconds, 1) if seconds else 0.0,
        bound=None if frontier is None else instant_text(plan.scale, frontier, zone),
        bound_in=plan.bound_in,
        seconds_behind=None if frontier is None else _behind(plan.scale, frontier, zone),
    )


def in_words(progress: Mapping[str, Any], rate: float | None = None) -> str:
    """The line of a query for people.

    >>> counts = {"query": "highs", "rows_in": 1200, "rows_emitted": 7, "rows_buffered": 12, "rows_late": 1}
    >>> counts |= {"rows_in_windows": 800, "state_bytes": 41_000}
    >>> counts |= {"bound": "2026-01-31 10:00:00", "seconds_behind": 3.2}
    >>> in_words(counts, rate=250.4)
    'highs: 250 rows/s · bound 2026-01-31 10:00:00, 3 s ago · 12 buffered · 1 late · 800 in windows, 41 kB'
    >>> in_words({**counts, "bound": None, "seconds_behind": None})
    'highs: 1,200 rows in, 7 out · no bound yet · 12 buffered · 1 late · 800 in windows, 41 kB'
    >>> in_words({**counts, "bound_in": "processing time"}).split(" · ")[1]
    'processed up to 2026-01-31 10:00:00, 3 s ago'
    """
    rows = (
        f"{progress['rows_in']:,} rows in, {progress['rows_emitted']:,} out"
        if rate is None
        else f"{rate:,.0f} rows/s"
    )
    what = "processed up to" if progress.get("bound_in") == "processing time" else "bound"
    bound = "no bound yet" if progress["bound"] is None else f"{what} {progress['bound']}"
    behind = progress["seconds_behind"]
    if behind is not None and 0 <= behind < 86_400:
        bound += f", {behind:.0f} s ago"
    parts = [
        rows,
        bound,
        f"{progress['rows_buffered']:,} buffered",
        f"{progress['rows_late']:,} late",
        *([f"{malformed:,} malformed"] if (malformed := progress.get("rows_malformed", 0)) else []),
        f"{progress['rows_in_windows']:,} in windows, {_size(progress['state_bytes'])}",
    ]
    return f"{progress['query']}: {' · '.join(parts)}"


def _size(count: float) -> str:
    """A number of bytes as text.

    >>> _size(999), _size(41_000), _size(3_200_000_000)
    ('999 B', '41 kB', '3.2 GB')
    """
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.1f} {_UNITS[unit]}" if unit and count < 10 else f"{count:.0f} {_UNITS[unit]}"


def instant_text(scale: TimeScale, tick: int, zone: str = "UTC") -> str | None:
    """An instant as text; None without a bound, and ``the end`` for the bound of a closed stream.

    >>> instant_text(TimeScale("timestamp_ntz", "MICROSECOND"), 1_767_261_600_000_000)
    '2026-01-01 10:00:00'
    >>> instant_text(TimeScale("bigint", "SECOND"), 12)
    '12'
    """
    if tick in (NO_BOUND, FOREVER):
        return None if tick == NO_BOUND else _END
    if scale.kind == "bigint":
        return str(tick)
    at = _instant(scale, tick)
    if at is None:
        return f"{tick} {scale.unit.lower()}s"
    if scale.kind == "date":
        return at.date().isoformat()
    if scale.kind == "timestamp":
        at = at.astimezone(_zone(zone))
    return at.replace(tzinfo=None).isoformat(" ")


def _behind(scale: TimeScale, tick: int, zone: str) -> float | None:
    """Seconds from an instant to now; None for an integer rowtime, or a closed stream."""
    at = None if scale.kind == "bigint" or tick == FOREVER else _instant(scale, tick)
    if at is None:
        return None
    if scale.kind != "timestamp":
        at = at.replace(tzinfo=_zone(zone))
    return round(time.time() - at.timestamp(), 3)


def _instant(scale: TimeScale, tick: int) -> datetime.datetime | None:
    try:
        return _EPOCH + datetime.timedelta(microseconds=tick * scale.nanoseconds // 1000)
    except OverflowError:
        return None


def _zone(name: str) -> datetime.tzinfo:
    return zone_named(name) or datetime.UTC
