"""The partitions to draw, in order, and the rows of them to draw."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import WindowSpec

from windrow.algebra.match_node import Match
from windrow.algebra.names import ROW, order_key, partition_key
from windrow.algebra.window_node import Window, WindowFragment
from windrow.errors import UsageError
from windrow.plot.reading.chart_options import Options
from windrow.plot.reading.distances import gaps_of, touch
from windrow.plot.reading.drawn_values import drawn_column, levels_of
from windrow.plot.reading.places import as_place, is_time
from windrow.plot.scene import Axis, Row
from windrow.plot.scene import DrawnSequence as Drawn
from windrow.spark.analysis.keyed_rows import sort_key
from windrow.spark.clauses.join_plan import tie_break
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import OrderItem
from windrow.syntax.sqltext import SqlText, quoted

__all__ = ["ID", "POSITION", "Sequences", "by_position", "in_a_line", "read_sequences"]

ID = "__drawn_sequence"
"""Names the partition of a row."""

POSITION = "__drawn_position"
"""The row's position in its partition, from 1."""

_COUNT = "__drawn_count"
_NO_VALUE = "NULL"
_BEFORE = 8  # what share of the rows is drawn before the first window or match
_WORDS = 110


@dataclass(frozen=True)
class Sequences:
    """The partitions to draw.

    Attributes
    ----------
    frame
        All their rows, numbered: those of the clause, `ID` and `POSITION`.
    drawn
        What is drawn of each, by its ID and in the order of the keys.
    x, y
        The axes.
    more
        Whether there are more partitions.
    by_position
        Whether the x axis has positions, and not the first key of ORDER BY.
    order
        That key, if it is a number or a time that rises.
    notes
        What values are not drawn, in lines.
    """

    frame: DataFrame
    drawn: dict[str, Drawn]
    x: Axis
    y: Axis | None
    more: bool
    by_position: bool
    order: str | None
    notes: tuple[str, ...] = ()


Firsts = Callable[[DataFrame], DataFrame]
"""A function of numbered rows, as in `Sequences.frame`: the `ID` and first `POSITION` of everything found
there.
"""


def read_sequences(
    gateway: Gateway,
    node: Window | Match,
    rows: DataFrame,
    read: Sequence[str],
    options: Options,
    firsts: Firsts,
) -> Sequences:
    """Fetch the rows that are drawn.

    Parameters
    ----------
    node, rows
        The clause, and its rows: a struct with the row, and the keys.
    read
        Texts of the query that read columns: the first number or text in them is what is drawn, unless the
        options name another.
    options
        How much is drawn.
    firsts
        Where windows or matches begin. Partitions that have some are drawn, if any has, and their rows from
        before the first of them on.

    Raises
    ------
    WindrowError
        ``UNRESOLVED_COLUMN``, ``INVALID_ARGUMENT`` for a value that cannot be drawn or a key of another
        length than PARTITION BY.
    """
    keys = [partition_key(number) for number in range(len(node.partition_by))]
    names = [_named(fragment) for fragment in node.partition_by]
    struct = rows.schema[ROW].dataType
    assert isinstance(struct, T.StructType)
    x, why_by_position = _x(node, rows)
    keyed = {*names, *((_named(key) for key, _ in node.order_by) if x is not None else ())}
    column = drawn_column(struct, keyed, read, options)
    row_id = F.to_json(F.struct(*keys)) if keys else F.lit("")
    known = rows.withColumn(ID, row_id)
    if options.keys:
        known = known.where(_is_key(keys, options))

    def numbered(chosen: DataFrame) -> DataFrame:
        return chosen.withColumn(POSITION, F.row_number().over(_order(node, keys, struct)).cast("bigint"))

    def among(ids: list[str]) -> DataFrame:
        return numbered(known.where(F.col(ID).isin(*ids)) if keys and ids else known)

    ids, more = _chosen(gateway, known, keys, options)
    begins = _begins(gateway, firsts(among(ids)))
    if more and len(begins) < len(ids):
        # looked for in all partitions only where the first ones lack them
        begins = _begins_in_all(gateway, known, firsts(numbered(known)), keys, options.partitions)
        ids = list(begins) or ids
    frame = among(ids)
    place = F.col(POSITION).cast("double") if x is None else x[1]
    is_text = column is not None and column.is_text
    value = F.lit(None) if column is None else F.col(f"{ROW}.{quoted(column.field)}")
    texts = [F.coalesce(F.col(key).cast("string"), F.lit(_NO_VALUE)) for key in keys]
    entries = frame.select(
        ID,
        POSITION,
        place.alias("x"),
        value.cast("string" if is_text else "double").alias("value"),
        F.coalesce(F.col(order_key(0)).cast("string"), F.lit(_NO_VALUE)).alias("text"),
        F.array(*texts).alias("keys") if texts else F.array().cast("array<string>").alias("keys"),
        F.count(F.lit(1)).over(SparkWindow.partitionBy(ID)).alias(_COUNT),
    )
    first = {each: max(begins.get(each, 1) - 1 - options.rows // _BEFORE, 0) for each in ids}
    is_drawn = F.lit(False)
    for each, skipped in first.items():
        # the last rows, where there are not as many after what was found
        begin = F.least(F.lit(skipped), F.greatest(F.col(_COUNT) - options.rows, F.lit(0)))
        after = (F.col(POSITION) > begin) & (F.col(POSITION) <= begin + options.rows)
        is_drawn |= (F.col(ID) == each) & after
    with gateway.translated():
        found = entries.where(is_drawn).orderBy(POSITION).collect()
    of_each = {each: [item for item in found if item[ID] == each] for each in ids}
    places = [[item["x"] for item in own if item["x"] is not None] for own in of_each.values()]
    is_cut = any(own[0][POSITION] > 1 for own in of_each.values() if own)
    by_position = x is None or any(
        touch(axis) for axis in ([[own] for own in places] if is_cut else [places])
    )
    levels = levels_of(item["value"] for own in of_each.values() for item in own) if is_text else ()
    drawn = {}
    for each, own in of_each.items():
        title = ", ".join(f"{name} = {text}" for name, text in zip(names, own[0]["keys"], strict=True))
        in_place = tuple(
            Row(
                float(item[POSITION] if by_position else at if item["x"] is None else item["x"]),
                _amount(item["value"], levels) if is_text else item["value"],
                item["text"],
            )
            for at, item in enumerate(own, 1)
        )
        gaps = (
            gaps_of([item["x"] for item in own], is_time=x[0].is_time)
            if by_position and x is not None
            else ()
        )
        drawn[each] = Drawn(
            title, in_place, row_count=own[0][_COUNT], skipped=own[0][POSITION] - 1, gaps=gaps
        )
    y: Axis | None = None
    notes: tuple[str, ...] = ("a dot is a row: no column of numbers or texts",)
    if column is not None and is_text and not levels:
        notes = (f"a dot is a row: {column.name} has too many texts to draw; value=… names another column",)
    elif column is not None:
        y, notes = Axis(column.name, is_whole=column.is_whole, levels=levels), ()
    axis = Axis(f"row number ({why_by_position})", is_whole=True) if by_position or x is None else x[0]
    order = None if x is None else x[0].title
    return Sequences(frame, drawn, axis, y, more, by_position=by_position, order=order, notes=notes)


def in_a_line(text: str) -> str:
    """The text of a clause on one line, no longer than a picture is wide."""
    words = " ".join(text.split())
    return words if len(words) <= _WORDS else f"{words[: _WORDS - 1]}…"


def _begins(gateway: Gateway, firsts: DataFrame) -> dict[str, int]:
    """The position at which the first thing found in each partition begins."""
    with gateway.translated():
        return {row[0]: row[1] for row in firsts.groupBy(ID).agg(F.min(POSITION)).collect()}


def _begins_in_all(
    gateway: Gateway, known: DataFrame, firsts: DataFrame, keys: list[str], most: int
) -> dict[str, int]:
    """The same of the first partitions, in the order of their keys, in which there is something."""
    found = firsts.groupBy(ID).agg(F.min(POSITION).alias(POSITION))
    named = known.select(ID, *keys).distinct().join(found, ID).orderBy(*keys).limit(most)
    with gateway.translated():
        return {row[ID]: row[POSITION] for row in named.select(ID, POSITION, *keys).collect()}


def by_position(
    node: Window | Match, frame: DataFrame
) -> tuple[tuple[tuple[WindowFragment, OrderItem], ...], DataFrame]:
    """The clause's order with the position as its last key, and the rows with it as one and in the row.

    So rows with equal keys have the same order everywhere.
    """
    last = order_key(len(node.order_by))
    order = (*node.order_by, (WindowFragment(SqlText.of(POSITION)), OrderItem((0, 0))))
    row = F.struct(f"{ROW}.*", ID, POSITION).alias(ROW)
    keys = [name for name in frame.columns if name not in (ROW, ID, POSITION)]
    return order, frame.select(row, *keys, F.col(POSITION).alias(last))


def _order(node: Window | Match, keys: list[str], row: T.StructType) -> WindowSpec:
    order: list[Column] = [
        sort_key(order_key(number), item.descending, item.nulls_first)
        for number, (_, item) in enumerate(node.order_by)
    ]
    return SparkWindow.partitionBy(*keys).orderBy(*order, tie_break(row))


def _named(fragment: WindowFragment) -> str:
    """A key by its column's name, without a qualifier."""
    text = fragment.text.render().strip()
    found = re.fullmatch(r"(?:\w+\s*\.\s*)?(`[^`]+`|\w+)", text)
    return found[1].strip("`") if found else text


def _chosen(gateway: Gateway, rows: DataFrame, keys: list[str], options: Options) -> tuple[list[str], bool]:
    """The IDs of the partitions that are drawn, and whether there are more."""
    distinct = rows.select(ID, *keys).distinct().orderBy(*keys) if keys else rows.select(ID)
    with gateway.translated():
        found = [row[0] for row in distinct.limit(options.partitions + 1 if keys else 1).collect()]
    return found[: options.partitions], len(found) > options.partitions


def _is_key(keys: list[str], options: Options) -> Column:
    if len(options.keys) != len(keys):
        raise UsageError(
            f"key has {len(options.keys)} values, but PARTITION BY has {len(keys)} expressions",
            condition="INVALID_ARGUMENT",
            hint="pass one value for each expression of PARTITION BY",
        )
    condition = F.lit(True)
    for name, wanted in zip(keys, options.keys, strict=True):
        condition &= F.col(name).cast("string").eqNullSafe(F.lit(None if wanted is None else str(wanted)))
    return condition


def _x(node: Window | Match, rows: DataFrame) -> tuple[tuple[Axis, Column] | None, str]:
    """The first key of ORDER BY if it is an ascending number or time; and why positions are drawn instead."""
    kind = rows.schema[order_key(0)].dataType
    name, place = _named(node.order_by[0][0]), as_place(order_key(0), kind)
    if place is None:
        return None, f"{name} is not a number or a time"
    if node.order_by[0][1].descending:
        return None, f"{name} is in descending order"
    axis = Axis(name, is_time(kind), isinstance(kind, T.IntegralType))
    return (axis, place), f"rows would overlap along {name}"


def _amount(text: str | None, levels: tuple[str, ...]) -> float | None:
    """The level of a text, from 0; None for NULL, and where there are no levels."""
    return None if text is None or not levels else float(levels.index(text))
