"""The inbox of a shard: the messages that its task has received."""

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
from windrow.kernels.tasks.fragment import Batches, Fragment

__all__ = ["Inbox", "inboxes_of", "of_slices", "own_chunks"]


class Inbox:
    """The messages of one shard, by kind and number.

    Slices without rows take no part: they are not counted.
    """

    def __init__(self, fragment: Fragment, shard: int) -> None:
        self.shard = shard
        self.is_slice = fragment.layout.sequence_of(shard) is not None
        self.chunks: dict[MessageKind, dict[int, Any]] = {kind: {} for kind in MessageKind}

    def in_order(self, kind: MessageKind) -> list[Any]:
        """The chunks of a kind, ordered by number."""
        return [chunk for _, chunk in sorted(self.chunks[kind].items())]

    def present(self) -> list[int]:
        """The shards of the sequence's slices that have rows, in order."""
        return sorted(self.chunks[MessageKind.SUMMARY])

    @property
    def place(self) -> int:
        """The slice's place among them."""
        return self.present().index(self.shard)

    def again(self) -> Iterator[pa.RecordBatch]:
        """The same messages, sent to the same shard again."""
        for kind, numbered in self.chunks.items():
            for number, chunk in numbered.items():
                yield message(self.shard, kind, number, chunk)

    def summaries(self) -> list[Summary]:
        """The summaries of the sequence's slices, in order."""
        return [pickle.loads(chunk) for chunk in self.in_order(MessageKind.SUMMARY)]

    def reached(self) -> dict[int, Reached]:
        """The reports of the sequence's slices about their matches, by shard."""
        return {
            shard: pickle.loads(report) for shard, report in sorted(self.chunks[MessageKind.SUMMARY].items())
        }

    def open(self) -> dict[int, pa.Table]:
        """The open matches that slices pass on, by shard."""
        report = self.chunks[MessageKind.OPEN].items()
        return {shard: pa.ipc.open_stream(chunk).read_all() for shard, chunk in report}

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
        """The chunks of other slices, by their number in the sequence."""
        numbered = self.chunks[MessageKind.REMOTE].items()
        return {number: pa.ipc.open_stream(chunk).read_all() for number, chunk in numbered}


def inboxes_of(batches: Batches, fragment: Fragment) -> list[Inbox]:
    """The inboxes of a task's shards, without slices that have no rows."""
    found: dict[int, Inbox] = {}
    for batch in batches:
        shards, kinds, numbers = (batch.column(name).to_pylist() for name in (CELL, KIND, NUMBER))
        for shard, kind, number, chunk in zip(shards, kinds, numbers, batch.column(CHUNK), strict=True):
            if shard not in found:
                found[shard] = Inbox(fragment, shard)
            found[shard].chunks[MessageKind(kind)][number] = chunk.as_buffer()
    has_rows = (MessageKind.ROWS, MessageKind.OWN, MessageKind.FOUND)
    return [
        inbox
        for inbox in found.values()
        if not inbox.is_slice or any(inbox.chunks[kind] for kind in has_rows)
    ]


def of_slices(
    phase: Callable[[Fragment, Inbox, range], Batches],
) -> Callable[[Fragment, Batches], Batches]:
    """Apply a phase to slices, with the shards of the sequence; buckets pass through."""

    @wraps(phase)
    def run(fragment: Fragment, batches: Batches) -> Iterator[pa.RecordBatch]:
        for inbox in inboxes_of(batches, fragment):
            shards = fragment.layout.sequence_of(inbox.shard)
            yield from inbox.again() if shards is None else phase(fragment, inbox, shards)

    return run


def own_chunks(shard: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Send a slice's sorted rows to itself."""
    for at, part in enumerate(chunks_of(table)):
        yield message(shard, MessageKind.OWN, at, written(part))
