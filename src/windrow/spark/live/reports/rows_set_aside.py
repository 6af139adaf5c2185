"""What a live query has set aside: how many rows of each stream, why, where, and the first of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["SetAside", "counted"]

_WHO = ("stream", "reason")


@dataclass(frozen=True)
class SetAside:
    """Rows of one stream that were set aside for one reason.

    Attributes
    ----------
    output
        The side output: ``late`` or ``malformed``.
    stream, reason
        Of which rows; of early checkpoints late rows have no reason.
    count
        How many there are.
    first
        The first of them, with the columns of the side output.
    folder
        Where their files are; None if they go with the query.
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
    """Count the rows of a side output, and keep so many of each stream and reason.

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
            kept = first.setdefault(who, [])
            places = sorted(group["__place_list"])[: most - len(kept)]
            kept += rows.take(places).drop_columns("__place").to_pylist()
    found = [SetAside(output, *who, count, tuple(first[who]), folder) for who, count in counts.items()]
    return tuple(sorted(found, key=lambda one: (one.stream, one.reason or "")))
