"""The state of windows in brackets in a checkpoint: read at a start, and known from then on."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.kernels.incremental import InputState, WindowInput
from windrow.spark.live.checkpoints.checkpoint import Checkpoint, CommittedBatch

__all__ = ["States", "WindowStates"]

States = dict[str, InputState]


class WindowStates:
    """The states of some windows after micro-batches.

    Parameters
    ----------
    checkpoint
        Where their rows are.
    inputs
        The windows.
    """

    def __init__(self, checkpoint: Checkpoint, inputs: Sequence[WindowInput]) -> None:
        self._checkpoint, self._inputs = checkpoint, inputs
        self._known: tuple[int, States] | None = None

    def is_known(self, batch: CommittedBatch) -> bool:
        """Whether the states after a micro-batch are in memory."""
        return self._known is not None and self._known[0] == batch.number

    def after(self, batch: CommittedBatch, frontier: int | None) -> States:
        """The states after a micro-batch that reached a frontier."""
        if self._known is not None and self.is_known(batch):
            return dict(self._known[1])
        states = {}
        for one in self._inputs:
            chunks = {int(chunk): rows for chunk, rows in batch.chunks.get(one.name, {}).items()}
            tables = (self._checkpoint.read_chunk(one.name, chunk) for chunk in chunks)
            states[one.name] = InputState.read(one, chunks, tables, frontier)
        return states

    def forget(self) -> None:
        """Forget the states, which change in memory now: a failed micro-batch begins again from the files."""
        self._known = None

    def write(self, states: States, number: int) -> dict[str, dict[str, int]]:
        """Write the states after a micro-batch; returns all chunks, by name."""
        known: States = {}
        chunks = {}
        for name, state in states.items():
            known[name], new = state.merged(number)
            chunks[name] = self._checkpoint.write_chunks(name, known[name].chunks, new)
        self._known = number, known  # which counts once it is committed
        return chunks

    def unchanged(self, before: CommittedBatch, number: int) -> dict[str, dict[str, int]]:
        """The chunks after a micro-batch that changed nothing since another."""
        if self._known is not None and self.is_known(before):
            self._known = number, self._known[1]
        return {one.name: dict(before.chunks.get(one.name, {})) for one in self._inputs}
