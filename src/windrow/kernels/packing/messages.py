"""What tasks tell each other: rows of (cell, kind, number, chunk)."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import pyarrow as pa

__all__ = ["CELL", "CHUNK", "KIND", "MESSAGE", "NUMBER", "MessageKind", "message"]

CELL = "__cell"
KIND = "__kind"
NUMBER = "__number"
CHUNK = "__chunk"
MESSAGE = pa.schema({CELL: pa.int32(), KIND: pa.int32(), NUMBER: pa.int64(), CHUNK: pa.binary()})


class MessageKind(IntEnum):
    """What a message holds, and what its number is.

    Rows as they were packed, and those before and after a slice (`ROWS`, `BEFORE`, `AFTER`): the task that
    packed them, and a count in its low 32 bits; in order of these numbers they are in one order everywhere.
    Rows of the right side of an operator of two (`RIGHT`): the same. A slice's sorted chunks (`OWN`): a
    count. Those of other slices (`REMOTE`): a count through the sequence. A `SUMMARY` has the cell of the
    slice that it is of, a `CHAIN` its place, an `ENTRY` none.

    What a slice of matches leaves `OPEN`, and what it has `FOUND`: the slice's cell.
    """

    ROWS = 0
    OWN = 1
    REMOTE = 2
    SUMMARY = 3
    CHAIN = 4
    ENTRY = 5
    BEFORE = 6
    AFTER = 7
    RIGHT = 8
    OPEN = 9
    FOUND = 10


def message(cell: int, kind: MessageKind, number: int, chunk: Any) -> pa.RecordBatch:
    """One message."""
    value = chunk.to_pybytes() if isinstance(chunk, pa.Buffer) else chunk
    columns = [[cell], [int(kind)], [number], [value]]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, MESSAGE, strict=True)], schema=MESSAGE
    )
