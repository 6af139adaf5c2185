"""What operators hold, in a file of the checkpoint, in place of the rows that it is made of.

Where rows would be needed for ever, what operators hold of them is written now and then: when more rows have
come since than it is long, so that a step writes about as much as it takes. After a restart it is read, and
the rows that have come since are taken again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from windrow.kernels.stored import from_stored, stored
from windrow.spark.live.checkpoints.checkpoint import Checkpoint, CommittedBatch

__all__ = ["Carried"]

_NAME = "carry"
"""The name of the file, and of the instant up to which it holds rows."""
_FEWEST = 10_000
"""So many rows are taken again after a restart rather than writing anew what operators hold."""


@dataclass(frozen=True)
class Carried:
    """What operators hold of the rows up to an instant: the number of its file, and how many rows it is."""

    chunk: int
    at: int
    rows: int

    @staticmethod
    def of(step: CommittedBatch) -> Carried | None:
        """What a step names."""
        for chunk, rows in step.chunks.get(_NAME, {}).items():
            return Carried(int(chunk), step.marks[_NAME], rows)
        return None

    @staticmethod
    def written(checkpoint: Checkpoint, number: int, at: int, rows: int, state: object) -> Carried:
        """What operators hold after the step of a number, written."""
        checkpoint.write_chunk(_NAME, number, stored(state))
        return Carried(number, at, rows)

    @staticmethod
    def is_due(last: Carried | None, came: int) -> bool:
        """Whether to write it, where so many rows came since the last."""
        return came > max(_FEWEST, 0 if last is None else last.rows)

    def read(self, checkpoint: Checkpoint) -> Any:
        """What was written."""
        return from_stored(checkpoint.read_chunk(_NAME, self.chunk))

    def size(self, checkpoint: Checkpoint, step: CommittedBatch) -> int:
        """Its bytes."""
        return checkpoint.chunk_bytes(step, _NAME)

    def named(self, step: CommittedBatch) -> CommittedBatch:
        """A step that names it."""
        chunks = {**step.chunks, _NAME: {str(self.chunk): self.rows}}
        return replace(step, chunks=chunks, marks={**step.marks, _NAME: self.at})
