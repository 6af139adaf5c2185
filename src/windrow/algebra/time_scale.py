"""Time scales: the units of a query's instants.

Internally, an instant is an int64: a number of ticks of the query's time scale since the epoch. Externally it
has the type of the streams' rowtimes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from windrow.errors import AnalysisError
from windrow.syntax.lengths import TIME_UNITS

__all__ = ["NEVER", "TimeScale", "common_scale"]

NEVER = 2**63 - 1
"""The instant at which rows leave that never leave."""

_UNITS = list(TIME_UNITS)  # from the longest
_FINEST = {"date": "DAY", "timestamp": "MICROSECOND", "timestamp_ntz": "MICROSECOND"}


@dataclass(frozen=True, slots=True)
class TimeScale:
    """The external type of the instants, by its name in Spark's SQL, and the unit of one tick."""

    kind: str
    unit: str

    def __str__(self) -> str:
        """The text by which checkpoints compare time scales."""
        return f"Clock(kind={self.kind!r}, unit={self.unit!r})"

    @staticmethod
    def of(kind: str, unit: str | None = None) -> TimeScale | None:
        """The scale of a rowtime of this type; `unit` is that of integers, milliseconds by default.

        None for types that are not rowtimes.
        """
        if kind in _FINEST:
            return TimeScale(kind, _FINEST[kind])
        return TimeScale("bigint", unit or "MILLISECOND") if kind in ("bigint", "int") else None

    @property
    def nanoseconds(self) -> int:
        """The length of one tick."""
        return TIME_UNITS[self.unit]

    def ticks(self, nanoseconds: Decimal | int) -> int:
        """The ticks of a whole number of nanoseconds."""
        return int(nanoseconds / self.nanoseconds)

    def length(self, ticks: int) -> str:
        """SQL for a number of ticks, as a length to add to an external instant."""
        if self.kind == "bigint":
            return str(ticks)
        if self.kind == "date":
            return f"INTERVAL {ticks} DAYS"
        return f"INTERVAL {ticks * self.nanoseconds // 1000} MICROSECONDS"

    def of_column(self, column: str, kind: str, unit: str) -> str:
        """SQL for the ticks of a rowtime of a type; NULL where it is NULL."""
        if kind == "date" and self.kind == "timestamp":
            column, kind, unit = f"CAST({column} AS TIMESTAMP)", "timestamp", "MICROSECOND"
        whole = {
            "bigint": f"CAST({column} AS BIGINT)",
            "date": f"CAST(unix_date({column}) AS BIGINT)",
            "timestamp": f"unix_micros({column})",
            "timestamp_ntz": _micros_of_local_time(column),
        }[kind]
        factor = TIME_UNITS[unit] // self.nanoseconds
        return whole if factor == 1 else f"{whole} * {factor}L"

    def to_column(self, ticks: str) -> str:
        """SQL for instants as they are displayed."""
        if self.kind == "bigint":
            return ticks
        if self.kind == "date":
            return f"date_from_unix_date(CAST({ticks} AS INT))"
        micros = f"{ticks} * {self.nanoseconds // 1000}L"
        if self.kind == "timestamp":
            return f"timestamp_micros({micros})"
        return f"timestampadd(MICROSECOND, {micros}, TIMESTAMP_NTZ '1970-01-01 00:00:00')"


def _micros_of_local_time(column: str) -> str:
    """SQL for the microseconds of a TIMESTAMP_NTZ.

    It is computed from parts, because a subtraction uses the session's zone, in which an hour may be missing.
    """
    minutes = f"hour({column}) * 60L + minute({column})"
    seconds = f"CAST(extract(SECOND FROM {column}) * 1000000 AS BIGINT)"
    return f"(unix_date(CAST({column} AS DATE)) * 86400000000L + ({minutes}) * 60000000L + {seconds})"


def common_scale(scales: Iterable[TimeScale], lengths: Iterable[Decimal] = ()) -> TimeScale:
    """The time scale of a query over streams of these time scales and windows of these lengths.

    Its unit is the longest one that divides all of them.

    Raises
    ------
    AnalysisError
        ``NO_COMMON_CLOCK`` where that is finer than the instants' type can show.
    """
    scales = list(scales)
    kinds = {scale.kind for scale in scales}
    units = [scale.nanoseconds for scale in scales]
    needed = [*map(Decimal, units), *lengths]
    unit = next((unit for unit in _UNITS if all(length % TIME_UNITS[unit] == 0 for length in needed)), None)
    times = kinds - {"bigint"}
    if not times:
        kind = "bigint"
    elif "timestamp" in times:
        kind = "timestamp"
    else:
        kind = "date" if times == {"date"} and unit == "DAY" else "timestamp_ntz"
    if unit is None or (times and TIME_UNITS[unit] < 1000):
        raise AnalysisError(
            "no time type is precise enough for the streams and windows of this query",
            condition="NO_COMMON_CLOCK",
            hint="write lengths of whole microseconds, or, over BIGINT rowtimes, of whole nanoseconds",
        )
    return TimeScale(kind, unit)
