"""The state of operators, in a file of the checkpoint, in place of the rows that it is computed from.

If rows would be needed forever, the operators' state is written now and then: when more rows have arrived
since than it contains, so that a micro-batch writes about as much as it reads. A restart reads the state, and
processes the rows that have arrived since again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from windrow.kernels.stored import ROWS_BEFORE_STATE, from_stored, stored
from windrow.spark.live.checkpoints.checkpoint import Checkpoint, CommittedBatch

__all__ = ["Carried"]

_NAME = "carry"
"""The name of the file, and of the instant up to which the state includes rows."""


@dataclass(frozen=True)
class Carried:
    """The stored state of operators: the number of its file, its instant, and its number of rows."""

    chunk: int
    at: int
    rows: int

    @staticmethod
    def of(batch: CommittedBatch) -> Carried | None:
        """The stored state of a committed micro-batch; None without."""
        for chunk, rows in batch.chunks.get(_NAME, {}).items():
            return Carried(int(chunk), batch.marks[_NAME], rows)
        return None

    @staticmethod
    def written(checkpoint: Checkpoint, number: int, at: int, rows: int, state: object) -> Carried:
        """Write the state of operators after a micro-batch."""
        checkpoint.write_chunk(_NAME, number, stored(state))
        return Carried(number, at, rows)

    @staticmethod
    def is_due(last: Carried | None, arrived: int) -> bool:
        """Whether to write the state, after so many rows have arrived since the last."""
        return arrived > max(ROWS_BEFORE_STATE, 0 if last is None else last.rows)

    def read(self, checkpoint: Checkpoint) -> Any:
        """Read the state."""
        return from_stored(checkpoint.read_chunk(_NAME, self.chunk))

    def size(self, checkpoint: Checkpoint, batch: CommittedBatch) -> int:
        """The size of the file in bytes."""
        return checkpoint.chunk_bytes(batch, _NAME)

    def named(self, batch: CommittedBatch) -> CommittedBatch:
        """A micro-batch with this state."""
        chunks = {**batch.chunks, _NAME: {str(self.chunk): self.rows}}
        return replace(batch, chunks=chunks, marks={**batch.marks, _NAME: self.at})
