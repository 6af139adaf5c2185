"""How tables are recorded streams: which columns have rowtimes, processing times, producers and bounds."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, Span, UsageError, did_you_mean
from windrow.syntax.lengths import TIME_UNITS

__all__ = ["TableLog", "unit_named"]


def unit_named(unit: str | None) -> str | None:
    """The unit of time of this name, in the singular or plural.

    Raises
    ------
    UsageError
        ``UNKNOWN_UNIT``.
    """
    if unit is None:
        return None
    known = unit.upper().removesuffix("S")
    if known not in TIME_UNITS:
        names = [f"{name.lower()}s" for name in TIME_UNITS]
        raise UsageError(
            f"{unit!r} is not a unit of time",
            condition="UNKNOWN_UNIT",
            hint=did_you_mean(unit.lower(), names) or f"use one of {', '.join(names)}",
        )
    return known


@dataclass(frozen=True)
class TableLog:
    """How a table is a log: its columns, and what its entries say of later ones.

    Attributes
    ----------
    rowtime, unit
        The column of rowtimes, and the unit of integers in it.
    ptime, producer
        The columns with the processing time and the producer of an entry. They order rows of equal rowtime.
    bound
        The column of bounds, or a single bound of the whole log in ticks. Entries with a bound and without a
        rowtime are no rows.
    on_late
        ``"keep"`` puts rows below their producer's bound among the late rows, ``"fail"`` fails the query.
    watermark
        The column of watermarks: like `bound`, but rows below an estimate are in the stream.
    punctuation
        The column of punctuations: patterns, as JSON, that no later row of the producer matches.
    places, options
        The places of the columns' names in `sql`, by the names in lower case, and of LAG, IDLE and FUTURE.
    lag
        A time, or ticks of the rowtime: how far rows are estimated to be below the greatest rowtime before
        them, beside bounds and watermarks in columns.
    idle, future
        In microseconds: the silence after which a producer is idle, and how far rowtimes and bounds may be
        ahead of the processing time of their entry before they are quarantined.
    """

    rowtime: str
    unit: str | None = None
    ptime: str | None = None
    producer: str | None = None
    bound: str | int | None = None
    on_late: str = "keep"
    watermark: str | None = None
    places: Mapping[str, Span] = field(default_factory=dict)
    sql: str | None = None
    punctuation: str | None = None
    lag: int | datetime.timedelta | None = None
    idle: int | None = None
    future: int | None = None
    options: Mapping[str, Span] = field(default_factory=dict)

    def wrong(
        self, column: str, message: str, condition: str, hint: str, sqlstate: str | None = None
    ) -> AnalysisError:
        """An error at the place of a column."""
        span = self.places.get(column.lower())
        return AnalysisError(
            message,
            condition=condition,
            sqlstate=sqlstate,
            hint=hint,
            span=span,
            sql=self.sql if span else None,
        )

    def ticks(self, scale: TimeScale) -> int:
        """The lag in ticks of the rowtime."""
        assert self.lag is not None
        if isinstance(self.lag, int):
            return self.lag
        return self.lag // datetime.timedelta(microseconds=1) * 1000 // scale.nanoseconds

    def refuse_unknown(self, names: Iterable[str | None], columns: Sequence[str]) -> None:
        """Refuse names of columns that do not exist.

        Raises
        ------
        AnalysisError
            ``UNKNOWN_ROWTIME``, or ``UNKNOWN_COLUMN`` for other columns.
        """
        known = {column.lower() for column in columns}
        for name in names:
            if name is not None and name.lower() not in known:
                condition = "UNKNOWN_ROWTIME" if name == self.rowtime else "UNKNOWN_COLUMN"
                hint = did_you_mean(name, columns) or f"use one of the columns {', '.join(columns)}"
                raise self.wrong(name, f"the rows have no column {name}", condition, hint, "42703")
