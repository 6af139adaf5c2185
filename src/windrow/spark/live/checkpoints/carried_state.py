"""The state of operators in the manifests of micro-batches."""

from __future__ import annotations

from dataclasses import replace

from windrow.kernels.operator_state import CARRIED, TABLES, Carried
from windrow.spark.live.checkpoints.checkpoint import Checkpoint, CommittedBatch

__all__ = ["carried_bytes", "carried_in", "with_carried"]


def carried_in(batch: CommittedBatch) -> Carried | None:
    """The stored state of a committed micro-batch; None without."""
    tables = {int(chunk): rows for chunk, rows in batch.chunks.get(TABLES, {}).items()}
    for chunk, rows in batch.chunks.get(CARRIED, {}).items():
        return Carried(int(chunk), batch.marks.get(CARRIED, batch.number), rows, tables, rows)
    return None


def with_carried(batch: CommittedBatch, carried: Carried | None) -> CommittedBatch:
    """A micro-batch with this state."""
    if carried is None:
        return batch
    chunks = {**batch.chunks, CARRIED: {str(carried.chunk): carried.rows}}
    if carried.tables:
        chunks[TABLES] = {str(chunk): rows for chunk, rows in carried.tables.items()}
    return replace(batch, chunks=chunks, marks={**batch.marks, CARRIED: carried.at})


def carried_bytes(checkpoint: Checkpoint, batch: CommittedBatch) -> int:
    """The bytes of its files."""
    return sum(checkpoint.chunk_bytes(batch, name) for name in (CARRIED, TABLES))
