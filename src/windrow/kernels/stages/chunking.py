"""Chunks: files of retained rows that are written once, and merged as they grow in number.

The new rows of a step are a chunk. Eight chunks of about one size are merged into one. So a step writes about
as much as it receives, and there are few files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TypeAlias

__all__ = ["PER_STEP", "SMALLEST", "Chunks", "merging"]

Chunks: TypeAlias = Mapping[int, int]
"""The numbers of chunks, in the order in which they came, and how many rows are in each."""

PER_STEP = 1000
"""So many chunks may be numbered in a step: from so many times the number of the step on."""
SMALLEST = 512
"""Chunks with no more rows than this are of one size."""
_FAN = 8


def merging(
    chunks: Sequence[tuple[int, int]], alive: Mapping[int, int], number: int
) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """The chunks after a step, and into which of them others are merged, by the numbers of these.

    Parameters
    ----------
    chunks
        Those before, and how many rows are in each.
    alive
        How many of these are kept still.
    number
        Of the step.
    """
    kept, merges, made = list(chunks), dict[int, int](), number * PER_STEP
    while len(tail := _tail(kept)) >= _FAN:
        made += 1
        merges = {chunk: made if into in tail else into for chunk, into in merges.items()}
        merges |= dict.fromkeys(tail, made)
        rows = sum(alive.get(chunk, 0) for chunk, into in merges.items() if into == made)
        kept = [*kept[: -len(tail)], (made, rows)]
    return kept, merges


def _tail(kept: Sequence[tuple[int, int]]) -> list[int]:
    """The last chunks, as far as they are no larger than the last of all."""
    if not kept:
        return []
    last = _level(kept[-1][1])
    return [chunk for chunk, _ in takewhile(lambda one: _level(one[1]) <= last, reversed(kept))]


def _level(rows: int) -> int:
    level = 0
    while rows > SMALLEST:
        rows //= _FAN
        level += 1
    return level
