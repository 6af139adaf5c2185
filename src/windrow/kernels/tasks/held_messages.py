"""What a task holds: the messages of each of its cells."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pyarrow as pa

from windrow.kernels.advance.slices import Reached
from windrow.kernels.packing.chunks import unpack, written
from windrow.kernels.packing.messages import CELL, CHUNK, KIND, NUMBER, MessageKind, message
from windrow.kernels.slices import Summary, chunks_of
from windrow.kernels.tasks.task_stage import Batches, TaskStage

__all__ = ["HeldMessages", "cells_of", "of_slices", "own_chunks"]


class HeldMessages:
    """The messages of one cell, by kind and number.

    Slices to which no row was dealt take no part: the others count as if they were all.
    """

    def __init__(self, stage: TaskStage, cell: int) -> None:
        self.cell = cell
        self.is_slice = stage.layout.sequence_of(cell) is not None
        self.chunks: dict[MessageKind, dict[int, Any]] = {kind: {} for kind in MessageKind}

    def in_order(self, kind: MessageKind) -> list[Any]:
        """The chunks of a kind by number."""
        return [chunk for _, chunk in sorted(self.chunks[kind].items())]

    def present(self) -> list[int]:
        """The cells of the sequence's slices, in order."""
        return sorted(self.chunks[MessageKind.SUMMARY])

    @property
    def place(self) -> int:
        """The slice's place among them."""
        return self.present().index(self.cell)

    def again(self) -> Iterator[pa.RecordBatch]:
        """The same messages to the same cell."""
        for kind, numbered in self.chunks.items():
            for number, chunk in numbered.items():
                yield message(self.cell, kind, number, chunk)

    def summaries(self) -> list[Summary]:
        """Those of the sequence's slices, in order."""
        return [pickle.loads(chunk) for chunk in self.in_order(MessageKind.SUMMARY)]

    def reached(self) -> dict[int, Reached]:
        """What the sequence's slices have told of their matches, by their cells."""
        return {cell: pickle.loads(told) for cell, told in sorted(self.chunks[MessageKind.SUMMARY].items())}

    def open(self) -> dict[int, pa.Table]:
        """What slices leave open, by their cells."""
        told = self.chunks[MessageKind.OPEN].items()
        return {cell: pa.ipc.open_stream(chunk).read_all() for cell, chunk in told}

    def rows(self) -> pa.Table:
        """The rows of whole partitions."""
        rows = unpack(self.in_order(MessageKind.ROWS))
        assert rows is not None
        return rows

    def own(self) -> pa.Table:
        """The slice's rows, sorted."""
        rows = unpack(self.in_order(MessageKind.OWN))
        assert rows is not None
        return rows

    def remote(self) -> dict[int, pa.Table]:
        """Chunks of other slices, by their number in the sequence."""
        numbered = self.chunks[MessageKind.REMOTE].items()
        return {number: pa.ipc.open_stream(chunk).read_all() for number, chunk in numbered}


def cells_of(batches: Batches, stage: TaskStage) -> list[HeldMessages]:
    """The messages of a task by their cell; of the slices, those that have rows."""
    found: dict[int, HeldMessages] = {}
    for batch in batches:
        cells, kinds, numbers = (batch.column(name).to_pylist() for name in (CELL, KIND, NUMBER))
        for cell, kind, number, chunk in zip(cells, kinds, numbers, batch.column(CHUNK), strict=True):
            if cell not in found:
                found[cell] = HeldMessages(stage, cell)
            found[cell].chunks[MessageKind(kind)][number] = chunk.as_buffer()
    has_rows = (MessageKind.ROWS, MessageKind.OWN, MessageKind.FOUND)
    return [
        held for held in found.values() if not held.is_slice or any(held.chunks[kind] for kind in has_rows)
    ]


def of_slices(
    step: Callable[[TaskStage, HeldMessages, range], Batches],
) -> Callable[[TaskStage, Batches], Batches]:
    """A step of slices, each with the cells of its sequence; cells of whole partitions pass through."""

    @wraps(step)
    def run(stage: TaskStage, batches: Batches) -> Iterator[pa.RecordBatch]:
        for held in cells_of(batches, stage):
            cells = stage.layout.sequence_of(held.cell)
            yield from held.again() if cells is None else step(stage, held, cells)

    return run


def own_chunks(cell: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A slice's sorted rows to itself."""
    for at, part in enumerate(chunks_of(table)):
        yield message(cell, MessageKind.OWN, at, written(part))
