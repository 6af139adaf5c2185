"""Aggregates that the kernel does not support: Spark computes them over the exploded windows and matches.

The kernel returns every window's rows as an array. Each window is exploded, grouped by a generated number,
and aggregated with the user's own call, in which the window's name is one row. The rows of a window reach the
aggregate in no particular order, as in any GROUP BY of Spark. For matches, the kernel returns a list for each
aggregate; the lists are exploded together.

Spark does not allow the user's own Python aggregates beside others in one GROUP BY, nor FILTER or DISTINCT in
them. They are computed over the rows of each number by OVER, separately from the rows that do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from windrow.algebra.names import IS_ROW, QUALIFIED
from windrow.algebra.window_node import AggregateCall, CallOfSpark, Window
from windrow.plan.arrow_types import is_orderable
from windrow.rules.kernel_plan import ROWS
from windrow.rules.match_draft import ELEMENT
from windrow.spark.analysis.row_fields import as_variable
from windrow.spark.gateway import Gateway
from windrow.syntax.sqltext import RelationText, SqlText, quoted

__all__ = ["aggregate_in_spark", "aggregate_lists"]

_ROW = "__row_of_window"
_SCOPE = "scope"
_PARTS = 256
"""The number of tasks in which rows get stable numbers."""


def aggregate_in_spark(
    gateway: Gateway, window: Window, calls: tuple[AggregateCall, ...], windows: DataFrame, keys: list[str]
) -> DataFrame:
    """Adds a column for each call to the windows, whose rows are in column `__rows`."""
    numbered = _numbered(windows, steady=gateway.is_steady)
    whole = {name: f"__whole_{name}" for name in (window.name, QUALIFIED + window.name)}
    numbered = numbered.withColumnsRenamed(whole)
    kind = windows.schema[ROWS].dataType
    assert isinstance(kind, ArrayType)
    assert isinstance(kind.elementType, StructType)
    exploded = numbered.select("*", F.explode_outer(ROWS).alias(_ROW)).drop(ROWS)
    exploded = exploded.select(
        "*",
        F.col(_ROW).isNotNull().alias(IS_ROW),
        *as_variable(F.col(_ROW), kind.elementType.fieldNames(), window.name),
    ).drop(_ROW)
    carried = []
    for name in keys:
        inside = whole.get(name, name)
        carried.append(f"{_of_all(quoted(inside), steady=gateway.is_steady)} AS {quoted('__kept_' + name)}")
    own = {call.name: call.own for call in calls if call.own is not None}
    exploded = _with_own(own, window.prefix, exploded, lambda text, scope: gateway.sql(text, {_SCOPE: scope}))
    texts = ((call.name, _picked(call.name, own, steady=gateway.is_steady) or call.text) for call in calls)
    results = SqlText.join(", ", (SqlText.of(text, f" AS {quoted(name)}") for name, text in texts))
    passed = "".join(f"{item}, " for item in carried)
    query = SqlText.of(
        window.prefix, "SELECT ", passed, results, " FROM ", RelationText("exploded"), " GROUP BY __number"
    )
    frame = gateway.sql(query, {"exploded": exploded})
    for name in keys:
        frame = frame.withColumnRenamed("__kept_" + name, name)
    return frame


def aggregate_lists(
    calls: Mapping[str, CallOfSpark],
    prefix: SqlText,
    frame: DataFrame,
    run: Callable[[SqlText, DataFrame], DataFrame],
    *,
    steady: bool,
) -> DataFrame:
    """Rows in which aggregates of lists replace the lists, by name.

    `run` evaluates SQL over a relation; `steady` is :attr:`windrow.spark.gateway.Gateway.is_steady`.
    """
    if not calls:
        return frame
    others = [name for name in frame.columns if name not in calls]
    numbered = _numbered(frame, steady=steady)
    elements = F.explode_outer(F.arrays_zip(*calls)).alias(ELEMENT)
    exploded = numbered.select("__number", *others, elements)
    own = {name: call for name, call in calls.items() if call.counts is not None}
    exploded = _with_own(own, prefix, exploded, run)
    items = [SqlText.of(f"{_of_all(quoted(name), steady=steady)} AS {quoted(name)}") for name in others]
    items += [
        SqlText.of(_picked(name, own, steady=steady) or call.text, f" AS {name}")
        for name, call in calls.items()
    ]
    listed = SqlText.join(", ", items)
    query = SqlText.of(
        prefix, "SELECT ", listed, " FROM ", RelationText(_SCOPE), " GROUP BY __number"
    )  # fmt: skip
    return run(query, exploded)


def _numbered(rows: DataFrame, *, steady: bool) -> DataFrame:
    """The rows, each with a unique number; Spark treats a `steady` one as the same in every run."""
    if not steady:
        return rows.withColumn("__number", F.monotonically_increasing_id())
    hashed = [F.col(quoted(item.name)) for item in rows.schema if is_orderable(item.dataType)]
    part = F.pmod(F.xxhash64(F.lit(0), *hashed), F.lit(_PARTS))
    place = F.row_number().over(SparkWindow.partitionBy("__part").orderBy(F.lit(0))).cast("bigint")
    return (
        rows.withColumn("__part", part)
        .withColumn("__number", place * _PARTS + F.col("__part"))
        .drop("__part")
    )


def _of_all(name: str, *, steady: bool) -> str:
    """The value of a quoted column that is the same in all rows of a number."""
    return f"max_by({name}, 0)" if steady else f"any_value({name})"


def _with_own(
    calls: Mapping[str, CallOfSpark],
    prefix: SqlText,
    exploded: DataFrame,
    run: Callable[[SqlText, DataFrame], DataFrame],
) -> DataFrame:
    """Exploded rows with the user's aggregates, each computed over the rows that count."""
    for name, call in calls.items():
        assert call.counts is not None
        counts = SqlText.of("coalesce((", call.counts, "), FALSE)")
        if call.distinct is not None:
            equal = SqlText.of("PARTITION BY __number, ", counts, ", ", call.distinct, " ORDER BY 1")
            counts = SqlText.of(counts, " AND ROW_NUMBER() OVER (", equal, ") = 1")
        counts = SqlText.of(counts, f" AS {_counts(name)}")
        exploded = run(SqlText.of(prefix, "SELECT *, ", counts, " FROM ", RelationText(_SCOPE)), exploded)
        value = SqlText.of(call.text, f" OVER (PARTITION BY __number, {_counts(name)}) AS {_value(name)}")
        exploded = run(SqlText.of(prefix, "SELECT *, ", value, " FROM ", RelationText(_SCOPE)), exploded)
    return exploded


def _picked(name: str, own: Mapping[str, CallOfSpark], *, steady: bool) -> SqlText | None:
    """The value of a user's own aggregate, which is in each row that counts; None for other aggregates."""
    if name not in own:
        return None
    return SqlText.of(f"{_of_all(_value(name), steady=steady)} FILTER (WHERE {_counts(name)})")


def _counts(name: str) -> str:
    return quoted(f"__counts_{name}")


def _value(name: str) -> str:
    return quoted(f"__value_{name}")
