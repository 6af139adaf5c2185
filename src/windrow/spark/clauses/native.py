"""Strategy ``native``: Spark's own OVER finds windows that are frames of rows, if it returns the same and is
cheaper.

Rows that Spark computes anyway then need no transfer to Python and back. The cost of a row was measured
(`rows-20`, `join-20`, `join-1000` in the benchmarks); the longer a frame is, the more it costs Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from windrow.algebra.names import ROW
from windrow.algebra.physical import PlanDraft
from windrow.errors import refuse_unknown
from windrow.kernels.sorting import SortKey
from windrow.rules.plain_frames import PlainFrame, plain_frame
from windrow.spark.analysis.keyed_rows import sort_key
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import Role
from windrow.syntax.sqltext import quoted

__all__ = ["CHOSEN", "NATIVE_SETTING", "Native", "native_frame", "windows_of", "with_chosen"]

NATIVE_SETTING = "spark.windrow.native"

_CHOICES = ("auto", "always", "never")
_MOST_ROWS = 32  # of a frame, from which the kernel costs less
_FEW = 100_000  # the number of rows at which both cost the same
CHOSEN = "__chosen"
"""The column that says which rows have a window."""


@dataclass(frozen=True)
class Native:
    """A frame that Spark finds, and why."""

    frame: PlainFrame
    reason: str


def native_frame(
    gateway: Gateway, draft: PlanDraft, types: Mapping[str, DataType], rows: float | None
) -> Native | None:
    """The frame, if Spark finds the windows of these rows; None if the kernel does.

    Parameters
    ----------
    gateway, draft
        The session, and the window.
    types
        The types of the hoisted columns.
    rows
        The approximate number of rows that Spark sends to Python; None if unknown, or if tasks read files.

    Raises
    ------
    UsageError
        ``INVALID_SETTING`` if the setting has another value.
    """
    wanted = str(gateway.spark.conf.get(NATIVE_SETTING, "auto")).lower()
    refuse_unknown(f"{NATIVE_SETTING} = {wanted!r}", wanted, _CHOICES, "INVALID_SETTING")
    if wanted == "never" or (wanted == "auto" and (rows is None or rows < _FEW)):
        return None
    frame = plain_frame(draft, {name: kind.simpleString() for name, kind in types.items()})
    if frame is None or (frame.own.when is not None and gateway.parameters):
        return None
    if wanted == "always":
        return Native(frame, f"{NATIVE_SETTING} = always")
    if frame.rows > _MOST_ROWS:
        return None
    return Native(frame, "the rows come from Spark, and short frames cost it less than the way to Python")


def with_chosen(rows: DataFrame, native: Native) -> DataFrame:
    """The rows with a column that says which of them have a window."""
    when = native.frame.own.when
    if when is None:
        return rows
    (name,) = (one.name for one in native.frame.own.variables if one.role is Role.ROW)
    condition = F.expr(f"({when.text.render()})").alias(CHOSEN)
    return rows.select("*", F.col(ROW).alias(name)).select(*map(quoted, rows.columns), condition)


def windows_of(
    wide: DataFrame,
    native: Native,
    draft: PlanDraft,
    keys: tuple[tuple[str, ...], tuple[SortKey, ...]],
    columns: Sequence[tuple[str, str]],
) -> DataFrame:
    """The result: columns of the rows and aggregates over their frames, each with its name."""
    partition, order = keys
    over = (
        SparkWindow.partitionBy(*map(quoted, partition))
        .orderBy(*(sort_key(quoted(key.column), key.descending, key.nulls_first) for key in order))
        .rowsBetween(-native.frame.before, native.frame.after)
    )
    aggregates = {
        call.name: _AGGREGATES[call.function or ""](F.lit(1) if column is None else F.col(quoted(column)))
        for call, column in draft.kernel_aggregates
    }
    made = [
        (aggregates[source].over(over) if source in aggregates else F.col(quoted(source))).alias(name)
        for source, name in columns
    ]
    if native.frame.own.when is None:
        return wide.select(*made)
    names = [name for _, name in columns]
    found = wide.select(*made, F.col(CHOSEN)).where(F.col(CHOSEN))
    return found.select(*map(quoted, names))


def _count(column: Column) -> Column:
    return F.count(column)


_AGGREGATES = {"count": _count, "count_star": _count, "min": F.min, "max": F.max, "sum": F.sum, "avg": F.avg}
