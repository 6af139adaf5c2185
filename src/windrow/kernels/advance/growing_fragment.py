"""A step of growing sequences as tasks run it: rows are exchanged by their partitions' keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from windrow.kernels.advance.advancing import Ended, Frontier, Growing, advance, requested_of
from windrow.kernels.packing.chunks import pack, unpack, written
from windrow.kernels.packing.messages import CELL, CHUNK, KIND, NUMBER, MessageKind, message
from windrow.kernels.packing.shards import Layout
from windrow.kernels.patterns.pattern_plan import MatchPlan, is_asking

__all__ = ["GrowingFragment", "unpacked"]

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class GrowingFragment:
    """The work of tasks in a micro-batch."""

    growing: Growing
    layout: Layout
    frontier: Frontier | None
    ended: Ended | None = None

    def pack(self, batches: Batches, task: int, *, are_retained: bool) -> Iterator[pa.RecordBatch]:
        """Rows that came, or were kept, as chunks of cells."""
        kind = MessageKind.RIGHT if are_retained else MessageKind.ROWS
        growing = self.growing
        return pack(batches, self.layout, growing.partition, growing.order, None, task, kind)

    def run(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Of each bucket a message with the output, and one with the rows to retain (`Kind.RIGHT`).

        Where the plan asks Spark, the output is what for, and nothing is retained.
        """
        plan = self.growing.plan
        for bucket, came, retained in _cells(batches):
            if came is None:
                assert retained is not None
                came = retained.slice(0, 0)
                for key in self.growing.order:
                    if key.column not in came.column_names:
                        came = came.append_column(key.column, pa.nulls(0))
            if isinstance(plan, MatchPlan) and is_asking(plan):
                found = requested_of(self.growing, retained, came, self.frontier, self.ended)
                rows = pa.Table.from_batches(found, plan.result)
                yield message(bucket, MessageKind.ROWS, 0, written(rows))
                continue
            emitted, retained = advance(self.growing, retained, came, self.frontier, self.ended)
            yield message(bucket, MessageKind.ROWS, 0, written(pa.Table.from_batches(emitted, plan.result)))
            yield message(bucket, MessageKind.RIGHT, 0, written(retained))


def unpacked(batches: Batches, kind: MessageKind) -> Iterator[pa.RecordBatch]:
    """The rows in messages of a kind."""
    for batch in batches:
        for found, chunk in zip(batch.column(KIND).to_pylist(), batch.column(CHUNK), strict=True):
            if found == kind:
                yield from pa.ipc.open_stream(chunk.as_buffer()).read_all().to_batches()


def _cells(batches: Batches) -> Iterator[tuple[int, pa.Table | None, pa.Table | None]]:
    """Of each cell the rows that came and those that were kept, in the order of the messages' numbers."""
    found: dict[int, dict[int, list[tuple[int, pa.Buffer]]]] = {}
    for batch in batches:
        buckets, kinds, numbers = (batch.column(name).to_pylist() for name in (CELL, KIND, NUMBER))
        for bucket, kind, number, chunk in zip(buckets, kinds, numbers, batch.column(CHUNK), strict=True):
            by_kind = found.setdefault(bucket, {MessageKind.ROWS: [], MessageKind.RIGHT: []})
            by_kind[kind].append((number, chunk.as_buffer()))
    for bucket, by_kind in found.items():
        came, retained = (
            unpack(chunk for _, chunk in sorted(by_kind[kind], key=lambda one: one[0]))
            for kind in (MessageKind.ROWS, MessageKind.RIGHT)
        )
        yield bucket, came, retained
