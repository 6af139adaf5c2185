"""Late and malformed rows: their number by stream and reason, their folder, and a sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

__all__ = ["LATE_FOR_GROUP", "SetAside", "counted", "counted_late"]

_WHO = ("stream", "reason")
LATE_FOR_GROUP = "group"
"""The reason of rows of recorded streams below the watermark at which their groups were complete."""


@dataclass(frozen=True)
class SetAside:
    """The rows of one stream that went to a side output for one reason.

    Attributes
    ----------
    output
        The side output: ``late`` or ``malformed``.
    stream, reason
        Their stream and reason; late rows of old checkpoints have no reason.
    count
        Their number.
    first
        The first of them, with the columns of the side output.
    folder
        The folder with their files; None if they are deleted when the query ends, and for recorded streams.
    """

    output: str
    stream: str
    reason: str | None
    count: int
    first: tuple[Mapping[str, Any], ...]
    folder: Path | None


def counted(
    output: str, batches: Iterable[pa.RecordBatch], most: int, folder: Path | None
) -> tuple[SetAside, ...]:
    """Count the rows of a side output, and collect the first `most` of each stream and reason.

    >>> rows = pa.RecordBatch.from_pylist([{"stream": "s", "reason": "bound", "row": row} for row in "abc"])
    >>> [(found.count, [row["row"] for row in found.first]) for found in counted("late", [rows], 2, None)]
    [(3, ['a', 'b'])]
    """
    counts: dict[tuple[str, str | None], int] = {}
    first: dict[tuple[str, str | None], list[Mapping[str, Any]]] = {}
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        if "reason" not in rows.column_names:
            rows = rows.append_column("reason", pa.nulls(rows.num_rows, pa.string()))
        rows = rows.append_column("__place", pa.array(range(rows.num_rows)))
        groups = rows.group_by(list(_WHO)).aggregate([("__place", "count"), ("__place", "list")])
        for group in groups.to_pylist():
            who = (group["stream"], group["reason"])
            counts[who] = counts.get(who, 0) + group["__place_count"]
            sample = first.setdefault(who, [])
            places = sorted(group["__place_list"])[: most - len(sample)]
            sample += rows.take(places).drop_columns("__place").to_pylist()
    found = [SetAside(output, *who, count, tuple(first[who]), folder) for who, count in counts.items()]
    return tuple(sorted(found, key=lambda one: (one.stream, one.reason or "")))


def counted_late(late: DataFrame, most: int) -> tuple[SetAside, ...]:
    """Count the late rows of a recorded stream, and collect the first `most` of each reason by rowtime.

    Parameters
    ----------
    late
        The rows, with the columns of `windrow.spark.logs.session_streams.LATE`.
    """
    counts = {row["reason"]: row["count"] for row in late.groupBy("reason").count().collect()}
    if not counts:
        return ()
    place = F.row_number().over(Window.partitionBy("reason").orderBy("rowtime", "bound", "row"))
    first = late.withColumn("__place", place).where(F.col("__place") <= most)
    texts = [F.col(name).cast("string").alias(name) for name in late.columns]
    rows = [row.asDict() for row in first.orderBy("reason", "__place").select(*texts).collect()]
    return tuple(
        SetAside("late", of_reason[0]["stream"], reason, counts[reason], tuple(of_reason), None)
        for reason in sorted(counts)
        if (of_reason := [row for row in rows if row["reason"] == reason])
    )
