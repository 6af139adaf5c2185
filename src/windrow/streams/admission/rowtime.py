"""Rowtimes as ticks: integers in the unit of the rowtime column."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import AnalysisError, InputError, UsageError, did_you_mean, no_column
from windrow.streams.entries import FOREVER, NO_BOUND, Ints

__all__ = ["Rowtime"]

_UNITS = {
    "DAY": 86_400_000_000_000,
    "HOUR": 3_600_000_000_000,
    "MINUTE": 60_000_000_000,
    "SECOND": 1_000_000_000,
    "MILLISECOND": 1_000_000,
    "MICROSECOND": 1000,
    "NANOSECOND": 1,
}
"""The lengths of the units, in nanoseconds."""
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class Rowtime:
    """The rowtime column.

    Attributes
    ----------
    column
        Its name.
    kind
        timestamp[us] with or without UTC, date32, int64 or int32.
    unit
        The unit of a tick, in the singular: ``MICROSECOND`` for timestamps, ``DAY`` for dates.
    """

    column: str
    kind: pa.DataType
    unit: str

    @staticmethod
    def of(schema: pa.Schema, column: str, unit: str | None = None) -> Rowtime:
        """The column of this name.

        Raises
        ------
        AnalysisError
            ``UNKNOWN_ROWTIME``, ``INVALID_ROWTIME``.
        UsageError
            ``UNKNOWN_UNIT``.
        """
        found = {name.lower(): name for name in schema.names}.get(column.lower())
        if found is None:
            raise no_column("the rows have", column, schema.names, condition="UNKNOWN_ROWTIME")
        kind = schema.field(found).type
        own = _own_unit(kind)
        if own is None or (unit is not None and not pa.types.is_integer(kind)):
            message = (
                f"a rowtime of type {kind} takes no unit" if own else f"a rowtime cannot be of type {kind}"
            )
            raise AnalysisError(
                message,
                condition="INVALID_ROWTIME",
                hint="leave the unit out"
                if own
                else "use timestamp[us], with UTC or without a zone, date32, int64 or int32",
            )
        return Rowtime(found, kind, _unit_named(unit) if unit is not None else own)

    @property
    def nanoseconds(self) -> int:
        """The length of a tick."""
        return _UNITS[self.unit]

    def ticks(self, column: pa.ChunkedArray) -> Ints:
        """The ticks of values that are not NULL.

        Raises
        ------
        InputError
            ``NULL_ROWTIME``; ``ROWTIME_OVERFLOW`` for the least and the greatest integer.
        """
        if column.null_count:
            row = pc.index(pc.is_null(column), True).as_py()
            raise InputError(
                f"row {row} has NULL as its rowtime {self.column}",
                condition="NULL_ROWTIME",
                hint="set the rowtime of every row; nothing was inserted",
            )
        whole = column.cast(pa.int32()) if pa.types.is_date(self.kind) else column
        ticks: Ints = whole.cast(pa.int64()).to_numpy()
        if len(ticks) and (ticks.min() == NO_BOUND or ticks.max() == FOREVER):
            raise InputError(
                "a rowtime cannot be the least or the greatest integer",
                condition="ROWTIME_OVERFLOW",
                hint="use other values: these two are reserved",
            )
        return ticks

    def tick(self, value: object, zone: datetime.tzinfo | None = None) -> int:
        """The ticks of an instant: ticks, a date, a datetime, or an ISO 8601 text of one.

        A datetime must have a zone if the column has one, unless `zone` sets a default.

        Raises
        ------
        UsageError
            ``INVALID_INSTANT``.
        """
        if isinstance(value, int) and not isinstance(value, bool) and NO_BOUND < value <= FOREVER:
            return value
        if pa.types.is_integer(self.kind):
            raise self._invalid(value, f"an int of {self.unit.lower()}s")
        if isinstance(value, str):
            try:
                value = datetime.datetime.fromisoformat(value)
            except ValueError:
                raise self._invalid(value, "a text such as 2026-01-31 or 2026-01-31 10:00:00") from None
            if pa.types.is_date(self.kind) and value.time() == datetime.time(0):
                value = value.date()
        if pa.types.is_date(self.kind):
            if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
                return (value - _EPOCH.date()).days
            raise self._invalid(value, "a date")
        if not isinstance(value, datetime.datetime):
            raise self._invalid(value, "a datetime")
        if value.tzinfo is None and self.kind.tz is not None:
            value = value.replace(tzinfo=zone)
        if (value.tzinfo is None) != (self.kind.tz is None):
            raise self._invalid(value, f"a datetime {'without' if self.kind.tz is None else 'with'} a zone")
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return (value - _EPOCH) // _MICROSECOND

    def formatted(self, ticks: int) -> str:
        """Format an instant for messages."""
        if ticks == FOREVER:
            return "forever"
        try:
            if pa.types.is_date(self.kind):
                return str(_EPOCH.date() + datetime.timedelta(days=ticks))
            if pa.types.is_timestamp(self.kind):
                return str(_EPOCH + ticks * _MICROSECOND)
        except OverflowError:  # outside of Python's years
            return f"{ticks} {self.unit.lower()}s"
        return str(ticks)

    def _invalid(self, value: object, wanted: str) -> UsageError:
        return UsageError(
            f"{value!r} is not an instant of rowtime {self.column} ({self.kind})",
            condition="INVALID_INSTANT",
            hint=f"use {wanted}",
        )


def _own_unit(kind: pa.DataType) -> str | None:
    """The default unit of a type; None if a rowtime cannot have it."""
    if kind in (pa.int64(), pa.int32()):
        return "MILLISECOND"
    if kind == pa.date32():
        return "DAY"
    return "MICROSECOND" if kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")) else None


def _unit_named(unit: str) -> str:
    known = unit.upper().removesuffix("S")
    if known not in _UNITS:
        names = [f"{name.lower()}s" for name in _UNITS]
        raise UsageError(
            f"{unit!r} is not a unit of time",
            condition="UNKNOWN_UNIT",
            hint=did_you_mean(unit.lower(), names) or f"use one of {', '.join(names)}",
        )
    return known
