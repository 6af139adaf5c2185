"""Streams as the session knows them: recorded rows with their rowtimes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow.algebra.clock import Clock
from windrow.errors import AnalysisError, InputError, UsageError, did_you_mean
from windrow.spark.errors import raising, translate
from windrow.spark.gateway import Gateway
from windrow.spark.text_log import TextLog
from windrow.syntax.sqltext import quoted
from windrow.syntax.streams import TIME_UNITS

if TYPE_CHECKING:
    from windrow.spark.varying import Varying

__all__ = ["ROWTIME", "Catalog", "Stream", "is_text_log", "of_frame", "of_text_log", "rescaled", "unit_named"]

ROWTIME = "__rowtime"
SEQUENCE = "__sequence"


@dataclass(frozen=True)
class Stream:
    """A recorded stream.

    Attributes
    ----------
    frame
        The columns that queries see, `ROWTIME` in ticks of the clock, and those of `ties`.
    columns
        Those that queries see.
    clock
        What its rowtimes are counted in.
    ties
        The columns that order rows of one rowtime.
    bounds
        Instants up to which the log is known, apart from its rows.
    rowtime
        The column that shows the rowtime, if one does.
    sources
        The streams that it was made of by a query.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    clock: Clock
    ties: tuple[str, ...] = ()
    bounds: tuple[int, ...] = ()
    rowtime: str | None = None
    sources: tuple[Stream, ...] = ()

    def on(self, clock: Clock) -> Stream:
        """The same with rowtimes in ticks of a finer clock."""
        if self.clock == clock:
            return self
        frame = self.frame.withColumn(ROWTIME, rescaled(ROWTIME, self.clock, clock))
        factor = self.clock.nanoseconds // clock.nanoseconds
        same = self.clock.kind == clock.kind or clock.kind != "timestamp"
        bounds = tuple(bound * factor for bound in self.bounds) if same else ()
        sources = tuple(source.on(clock) for source in self.sources)
        return replace(self, frame=frame, clock=clock, bounds=bounds, sources=sources)

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that queries see."""
        return self.columns

    def renamed(self, names: tuple[str, ...]) -> Stream:
        """The same with other names for the columns."""
        hidden = [name for name in self.frame.columns if name == ROWTIME or name in self.ties]
        frame = self.frame.select(*map(quoted, self.columns), *hidden).toDF(*names, *hidden)
        new = dict(zip(self.columns, names, strict=True))
        return replace(self, frame=frame, columns=names, rowtime=self.rowtime and new[self.rowtime])

    def df(self, *, ordered: bool = False) -> DataFrame:
        """The rows with their rowtimes; if they are to be `ordered`, by these."""
        name = "rowtime" if "rowtime" not in {column.lower() for column in self.columns} else "_rowtime"
        shown = F.expr(self.clock.to_column(ROWTIME)).alias(name)
        frame = self.frame.orderBy(ROWTIME, *self.ties) if ordered else self.frame
        return frame.select(shown, *map(quoted, self.columns))

    @cached_property
    def ends(self) -> tuple[int, int] | None:
        """The log's first and last instants; None if it is empty."""
        try:
            found = self.frame.agg(F.min(ROWTIME).alias("first"), F.max(ROWTIME).alias("last")).collect()[0]
        except PySparkException as error:
            raise translate(error) from None
        made_of = [ends for source in self.sources if (ends := source.ends) is not None]
        instants = [*self.bounds, *(value for value in found if value is not None), *chain(*made_of)]
        return (min(instants), max(instants)) if instants else None


def rescaled(column: str, old: Clock, new: Clock) -> Column:
    """Ticks of a clock in those of a finer one."""
    if old.kind in ("date", "timestamp_ntz") and new.kind == "timestamp":
        # as the session's clock shows them
        shown = f"CAST({old.to_column(column)} AS TIMESTAMP)"
        return F.expr(new.of_column(shown, "timestamp", "MICROSECOND"))
    factor = old.nanoseconds // new.nanoseconds
    if factor == 1:
        return F.col(column)
    wrong = raising("ROWTIME_OVERFLOW", f"a rowtime is too large for a clock of {new.unit.lower()}s")
    return F.when(F.abs(F.col(column)) <= 2**62 // factor, F.col(column) * F.lit(factor)).otherwise(wrong)


@dataclass
class Catalog:
    """The streams and varying relations of a session, by their names in lower case."""

    streams: dict[str, Stream] = field(default_factory=dict)
    relations: dict[str, Varying] = field(default_factory=dict)

    def forget(self, name: str) -> None:
        """Drop what has a name, if anything has."""
        self.streams.pop(name.lower(), None)
        self.relations.pop(name.lower(), None)

    @property
    def names(self) -> frozenset[str]:
        """All names."""
        return frozenset(self.streams) | frozenset(self.relations)


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
            f"{unit!r} is no unit of time",
            condition="UNKNOWN_UNIT",
            hint=did_you_mean(unit.lower(), names) or f"units are {', '.join(names)}",
        )
    return known


def of_frame(
    frame: DataFrame,
    rowtime: str,
    *,
    unit: str | None = None,
    ties: tuple[str, ...] = (),
    bound: int | None = None,
) -> Stream:
    """The rows of a table as a stream.

    Raises
    ------
    AnalysisError
        ``UNKNOWN_ROWTIME``, ``INVALID_ROWTIME`` for a column of another type than a rowtime has.
    """
    found = {name.lower(): name for name in frame.columns}
    for name in (rowtime, *ties):
        if name.lower() not in found:
            raise AnalysisError(
                f"the rows have no column {name}",
                condition="UNKNOWN_ROWTIME",
                sqlstate="42703",
                hint=did_you_mean(name, frame.columns) or f"columns are {', '.join(frame.columns)}",
            )
    kind = frame.schema[found[rowtime.lower()]].dataType.simpleString()
    clock = Clock.of(kind, unit)
    if clock is None or (unit is not None and clock.kind != "bigint"):
        told = (
            f"a rowtime of type {kind.upper()} has a unit of its own"
            if clock
            else f"{kind.upper()} is no type of a rowtime"
        )
        raise AnalysisError(
            told,
            condition="INVALID_ROWTIME",
            hint="leave the unit out" if clock else "rowtimes are TIMESTAMP, DATE or BIGINT with a unit",
        )
    column = quoted(found[rowtime.lower()])
    missing = raising(
        "NULL_ROWTIME", f"a row has NULL as its rowtime {rowtime}", "leave such rows out with WHERE"
    )
    ticks = F.coalesce(F.expr(clock.of_column(column, clock.kind, clock.unit)), missing)
    names = tuple(f"__tie{number}" for number in range(len(ties)))
    order = [F.col(quoted(found[tie.lower()])).alias(name) for tie, name in zip(ties, names, strict=True)]
    bounds = () if bound is None else (bound,)
    whole = frame.select("*", ticks.alias(ROWTIME), *order)
    return Stream(whole, tuple(frame.columns), clock, names, bounds, found[rowtime.lower()])


def of_text_log(
    gateway: Gateway,
    log: TextLog,
    columns: tuple[tuple[str, str], ...] | None,
    clock: Clock,
    rowtime: str | None,
) -> Stream:
    """The rows of a recorded text.

    Parameters
    ----------
    columns
        The names of the values and their types, as Spark writes them; by default c1, c2 and so on, with types
        told from the values.
    clock
        What the instants are in.
    rowtime
        The name of the column of the instants, if queries are to see one. It may be among the columns.
    """
    values = (
        [name for name, _ in columns if name != rowtime]
        if columns
        else [f"c{at + 1}" for at in range(log.width)]
    )
    if log.rows and log.width != len(values):
        raise InputError(
            f"rows have {log.width} values, and {len(values)} columns are declared",
            condition="MALFORMED_LINE",
            hint="declare a column for each value, and ROWTIME for the instant",
        )
    schema = ", ".join(
        [f"{ROWTIME} BIGINT, {SEQUENCE} BIGINT", *(f"{quoted(name)} STRING" for name in values)]
    )
    data = [(instant, line, *row) for instant, row, line in log.rows]
    frame = gateway.spark.createDataFrame(data, schema)
    types = (
        dict(columns)
        if columns
        else {name: _guessed([row[at] for _, row, _ in log.rows]) for at, name in enumerate(values)}
    )
    made = [f"{_cast(name, types[name])} AS {quoted(name)}" for name in values]
    if rowtime is not None:
        place = [name for name, _ in columns or ()].index(rowtime) if columns else 0
        made.insert(place, f"{clock.to_column(ROWTIME)} AS {quoted(rowtime)}")
    with gateway.translated():
        frame = frame.selectExpr(*made, ROWTIME, SEQUENCE)
    shown = tuple(name for name in frame.columns if name not in (ROWTIME, SEQUENCE))
    return Stream(frame, shown, clock, (SEQUENCE,), log.beats, rowtime)


def _guessed(values: list[str | None]) -> str:
    """The narrowest type that all values have."""
    present = [value for value in values if value is not None]
    if not present:
        return "STRING"
    if all(re.fullmatch(r"[+-]?\d{1,18}", value) for value in present):
        return "BIGINT"
    number = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
    return "DOUBLE" if all(re.fullmatch(number, value) for value in present) else "STRING"


def _cast(name: str, kind: str) -> str:
    plain = f"CAST({quoted(name)} AS {kind})"
    if kind.upper() in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        text = f"try_to_timestamp({quoted(name)}, 'MM/dd/yyyy HH:mm:ss')"
        return f"CAST(CASE WHEN {text} IS NULL THEN {plain} ELSE {text} END AS {kind})"
    return plain


def is_text_log(path: object) -> bool:
    """Whether a path is of a recorded text, by its name."""
    return isinstance(path, str | Path) and Path(str(path)).suffix.lower() == ".cql"
