"""Time-varying relations as DataFrames: every row with the instants of its insert and delete.

A row is in the relation at ``[__enter, __leave)``, in ticks of the relation's scale; ``__leave`` is `NEVER`
for a row that is not deleted. As a changelog, the same changes are rows with a count, +1 or −1, and an
instant.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windrow.algebra.time_scale import NEVER, TimeScale
from windrow.errors import AnalysisError, NotSupportedError, UsageError, WindrowError
from windrow.kernels.zset.relation import AT, DIFF, ENTER, LEAVE
from windrow.plan.arrow_types import contains, is_orderable
from windrow.spark.analysis.keyed_rows import sorted_rows
from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import ROWTIME, Stream, rescaled
from windrow.syntax.nodes import OrderItem
from windrow.syntax.sqltext import SqlText

__all__ = ["AT", "DIFF", "ENTER", "LEAVE", "TimeVarying", "columns_of", "tick_of"]

_CHANGE, _ENTERED = "__change", "__entered"


@dataclass(frozen=True)
class TimeVarying:
    """A time-varying relation.

    Attributes
    ----------
    frame
        A column for each of `names`, called c0, c1 and so on, and `ENTER` and `LEAVE`.
    names
        The names of the columns in queries, which may repeat.
    scale
        The unit of instants.
    instants
        `AT`: the distinct instants at which a row enters or leaves one of its windows.
    streams
        The streams that it is derived from.
    net_by
        Columns of `frame` such that no row is deleted at the instant at which one with equal values is
        inserted; None if no such columns are known.
    since
        The first instant whose changes are returned; None for all.
    """

    frame: DataFrame
    names: tuple[str, ...]
    scale: TimeScale
    instants: DataFrame
    streams: tuple[Stream, ...]
    net_by: frozenset[str] | None = None
    since: int | None = None

    @staticmethod
    def of(
        frame: DataFrame,
        scale: TimeScale,
        streams: Sequence[Stream],
        instants: DataFrame | None = None,
        *,
        net_by: frozenset[str] | None = None,
    ) -> TimeVarying:
        """A relation of rows whose last columns are `ENTER` and `LEAVE`."""
        names = tuple(frame.columns[:-2])
        inner = frame.toDF(*columns_of(names), ENTER, LEAVE)
        changes = instants if instants is not None else _changes(inner)
        return TimeVarying(inner, names, scale, changes, tuple(streams), net_by)

    @property
    def visible_names(self) -> tuple[str, ...]:
        """The names of the columns in queries."""
        return self.names

    def renamed(self, names: tuple[str, ...]) -> TimeVarying:
        """The relation with other names of the columns."""
        return replace(self, names=names)

    @property
    def columns(self) -> list[str]:
        """The internal names of the columns."""
        return columns_of(self.names)

    @cached_property
    def ends(self) -> tuple[int, int] | None:
        """The first and the last instants of the logs; None if they are empty."""
        found = [ends for stream in self.streams if (ends := stream.ends) is not None]
        return (min(first for first, _ in found), max(last for _, last in found)) if found else None

    def on(self, scale: TimeScale) -> TimeVarying:
        """The relation in ticks of a finer unit."""
        if scale == self.scale:
            return self
        streams = tuple(stream.on(scale) for stream in self.streams)

        def ticks(name: str) -> Column:
            finite = rescaled(name, self.scale, scale)
            return F.when(F.col(name) == NEVER, F.col(name)).otherwise(finite).alias(name)

        frame = self.frame.select(*self.columns, ticks(ENTER), ticks(LEAVE))
        return replace(
            self, frame=frame, scale=scale, streams=streams, instants=self.instants.select(ticks(AT))
        )

    def visible(self, *also: str) -> DataFrame:
        """The rows with the columns' names in queries, and further internal columns."""
        return self.frame.select(*self.columns, *also).toDF(*self.names, *also)

    def at(self, tick: int, order: Sequence[tuple[int, OrderItem]] = ()) -> DataFrame:
        """The rows at an instant, sorted by the columns at these places."""
        alive = (F.col(ENTER) <= F.lit(tick)) & (F.lit(tick) < F.col(LEAVE))
        return sorted_rows(self.frame.where(alive).select(*self.columns), order).toDF(*self.names)

    def now(self, order: Sequence[tuple[int, OrderItem]] = ()) -> DataFrame:
        """The rows at the last instant of the logs, sorted as :meth:`at` does."""
        ends = self.ends
        return self.at(ends[1], order) if ends is not None else self.visible().limit(0)

    def changes(self) -> DataFrame:
        """The inserted and deleted rows, with `AT` and the count `DIFF`, which is not 0.

        The counts are net: for equal rows and instants there is one row, or all have the same sign. With
        `net_by`, each is 1 or -1.

        Raises
        ------
        AnalysisError
            ``UNORDERABLE_TYPE`` for variants, which cannot be compared.
        """
        # one operator that Spark compiles; `explode` would make an array of structs for each row. Comparing
        # numbers is cheaper than comparing the names of ENTER and LEAVE
        diff = F.when(F.col(AT) == F.col(_ENTERED), 1).otherwise(-1).cast("bigint")
        rows = self.frame.where(F.col(ENTER) < F.col(LEAVE)).withColumn(_ENTERED, F.col(ENTER))
        both = rows.unpivot([*map(F.col, (*self.columns, _ENTERED))], [ENTER, LEAVE], _CHANGE, AT)
        both_changes = both.where(F.col(AT) != NEVER)
        if self.since is not None:
            both_changes = both_changes.where(F.col(AT) >= self.since)
        changes = both_changes.select(*self.columns, AT, diff.alias(DIFF))
        if self.net_by is not None:
            return changes
        for name, column in zip(self.names, self.columns, strict=True):
            if contains(self.frame.schema[column].dataType, "variant"):
                raise AnalysisError(
                    f"changes cannot be compared by column {name} of type VARIANT",
                    condition="UNORDERABLE_TYPE",
                    sqlstate="42822",
                    hint=f"cast it in the query, CAST({name} AS STRING), or select a field of it",
                )
        net = changes.groupBy(*self.columns, AT).agg(F.sum(DIFF).alias(DIFF))
        return net.where(F.col(DIFF) != 0)

    def instant_column(self) -> Column:
        """The instants of changes as values of the rowtime's type."""
        return F.expr(self.scale.to_column(AT))

    # -- streams -------------------------------------------------------------------------------------

    @staticmethod
    def refuse_twice(names: Sequence[str]) -> None:
        """Refuse a stream that has two columns with the same name.

        Raises
        ------
        AnalysisError
            ``DUPLICATE_COLUMN``.
        """
        named = [name.lower() for name in names]
        twice = next((name for name in names if named.count(name.lower()) > 1), None)
        if twice is not None:
            raise AnalysisError(
                f"a stream has two columns {twice}",
                condition="DUPLICATE_COLUMN",
                sqlstate="42711",
                hint="rename one of them with AS",
            )

    def stream(self, kind: str, using: Sequence[str] = ()) -> Stream:
        """The stream of inserts (ISTREAM), of deletes (DSTREAM), or of all rows at each instant (RSTREAM).

        Parameters
        ----------
        kind
            One of the three.
        using
            The internal columns by which rows differ; by default all.
        """
        self.refuse_twice(self.names)
        if kind == "RSTREAM":
            if using:
                raise NotSupportedError(
                    "RSTREAM does not compare rows",
                    condition="UNSUPPORTED_CLAUSE",
                    hint="leave DIFFERENCE USING out",
                )
            at, enter, leave = F.col(AT), F.col(ENTER), F.col(LEAVE)
            rows = self.frame.join(F.broadcast(self.instants), (enter <= at) & (at < leave))
            rows = rows.select(*self.columns, AT)
        else:
            sign = 1 if kind == "ISTREAM" else -1
            changes = self.changes().withColumn(DIFF, F.col(DIFF) * sign)
            rows = _inserted(changes, self.columns, using).select(*self.columns, AT)
        # rows of one instant are ordered by their values
        kinds = {field.name: field.dataType for field in rows.schema}
        ordered = [name for name in self.columns if is_orderable(kinds[name])]
        ties = {f"__tie{number}": F.col(name) for number, name in enumerate(ordered)}
        frame = rows.withColumns(ties).toDF(*self.names, ROWTIME, *ties)
        return Stream(frame, self.names, self.scale, tuple(ties), sources=self.streams)


def tick_of(gateway: Gateway, scale: TimeScale, instant: Any) -> int:
    """The tick of an instant that a user has passed.

    Raises
    ------
    UsageError
        ``INVALID_INSTANT``.
    """
    is_time = scale.kind in ("timestamp", "timestamp_ntz")
    if isinstance(instant, str):
        known = not {"'", "\\"} & {*instant}
    elif scale.kind == "bigint":
        known = isinstance(instant, Integral) and not isinstance(instant, bool)
    elif isinstance(instant, datetime.datetime):
        # Spark drops the zone when it casts to TIMESTAMP_NTZ
        known = is_time and (scale.kind == "timestamp" or instant.tzinfo is None)
    else:
        known = isinstance(instant, datetime.date)
    if known:
        fine = TimeScale(scale.kind, "MICROSECOND") if is_time else scale
        text = f"CAST('{instant}' AS {scale.kind})"
        tick = None
        try:
            found = gateway.sql(SqlText.of(f"SELECT {fine.of_column(text, fine.kind, fine.unit)}"))
            with gateway.translated():
                tick = found.collect()[0][0]
        except WindrowError as error:
            if not error.condition.startswith("CAST_"):
                raise
        if tick is not None:
            # an instant within a tick belongs to that tick
            return int(tick) * fine.nanoseconds // scale.nanoseconds
    unit = f" of {scale.unit.lower()}s" if scale.kind == "bigint" else ""
    raise UsageError(
        f"{instant!r} is not an instant: rowtimes are of type {scale.kind.upper()}{unit}",
        condition="INVALID_INSTANT",
        hint="pass a value of that type, or its text",
    )


def columns_of(names: Sequence[str]) -> list[str]:
    """The internal names of columns, by position."""
    return [f"c{number}" for number in range(len(names))]


def _changes(frame: DataFrame) -> DataFrame:
    both = frame.select(F.explode(F.array(ENTER, LEAVE)).alias(AT))
    return both.where(F.col(AT) != NEVER).distinct()


def _inserted(changes: DataFrame, columns: Sequence[str], using: Sequence[str]) -> DataFrame:
    """A row for each inserted copy; with `using`, only as many as inserts exceed deletes by these columns."""
    copy = F.explode(F.array_repeat(F.lit(0), F.greatest(F.col(DIFF), F.lit(0)).cast("int")))
    if not using:
        return changes.withColumn("__copy", copy)
    alike = Window.partitionBy(AT, *using)
    numbered = Window.partitionBy(AT, *using).orderBy(*columns)
    more = changes.withColumn("__more", F.sum(DIFF).over(alike)).withColumn("__copy", copy)
    return more.withColumn("__number", F.row_number().over(numbered)).where("__number <= __more")
