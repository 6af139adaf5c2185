"""Chunks: files of retained rows that are written once, and merged as they grow in number.

The new rows of a micro-batch are a chunk. Eight chunks of similar size are merged into one. So a micro-batch
writes about as much as it receives, and the number of files is small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TypeAlias

__all__ = ["PER_MICRO_BATCH", "SMALLEST", "Chunks", "merging"]

Chunks: TypeAlias = Mapping[int, int]
"""The numbers of chunks, in order of creation, and how many rows are in each."""

PER_MICRO_BATCH = 1000
"""The numbers of chunks available to a micro-batch: it begins at this times its own number."""
SMALLEST = 512
"""Chunks with at most this many rows count as the same size."""
_FAN = 8


def merging(
    chunks: Sequence[tuple[int, int]], alive: Mapping[int, int], number: int
) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """The chunks after a micro-batch, and for each old one that is merged, the chunk that it is merged into.

    Parameters
    ----------
    chunks
        The earlier chunks, and how many rows are in each.
    alive
        How many of these are retained still.
    number
        The number of the micro-batch.
    """
    remaining, merges, made = list(chunks), dict[int, int](), number * PER_MICRO_BATCH
    while len(tail := _tail(remaining)) >= _FAN:
        made += 1
        merges = {chunk: made if into in tail else into for chunk, into in merges.items()}
        merges |= dict.fromkeys(tail, made)
        rows = sum(alive.get(chunk, 0) for chunk, into in merges.items() if into == made)
        remaining = [*remaining[: -len(tail)], (made, rows)]
    return remaining, merges


def _tail(remaining: Sequence[tuple[int, int]]) -> list[int]:
    """The longest run of last chunks that are no larger than the last one."""
    if not remaining:
        return []
    last = _level(remaining[-1][1])
    return [chunk for chunk, _ in takewhile(lambda one: _level(one[1]) <= last, reversed(remaining))]


def _level(rows: int) -> int:
    level = 0
    while rows > SMALLEST:
        rows //= _FAN
        level += 1
    return level
