"""Messages between tasks: rows of (shard, kind, number, chunk)."""

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
    """The content of a message, and the meaning of its number.

    Packed rows, and those before and after a slice (`ROWS`, `BEFORE`, `AFTER`): the number of the task that
    packed them, with a count in the low 32 bits; ordered by these numbers, rows are in the same order in
    every task. Rows of the right side of a binary operator (`RIGHT`): the same. A slice's sorted chunks
    (`OWN`): a count. Chunks of other slices (`REMOTE`): a count through the sequence. A `SUMMARY`: the shard
    of its slice. A `CHAIN`: the place of its slice. An `ENTRY`: none.

    The `OPEN` matches and the `FOUND` matches of a slice: the slice's shard.
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


def message(shard: int, kind: MessageKind, number: int, chunk: Any) -> pa.RecordBatch:
    """One message."""
    value = chunk.to_pybytes() if isinstance(chunk, pa.Buffer) else chunk
    columns = [[shard], [int(kind)], [number], [value]]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, MESSAGE, strict=True)], schema=MESSAGE
    )
