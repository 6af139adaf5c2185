"""The steps of slices of windows: what each tells the others, and what it gives.

    summarise   every slice sorts its rows and tells all others what they need to know of them
    share       every slice sends its chunks to the slices whose windows reach them
    finish      every slice gives the results of its own windows

For tumbling windows two more come before the last: ``chain``, in which every slice says which windows could
follow each other, and ``compose``, in which the first slice says where each one's windows begin.
Cells of whole partitions pass through all but the last.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa

from windrow.kernels import slices
from windrow.kernels.packing.messages import MessageKind, message
from windrow.kernels.tasks.held_messages import HeldMessages, cells_of, of_slices, own_chunks
from windrow.kernels.tasks.partitions import by_partitions
from windrow.kernels.tasks.task_stage import Batches, TaskStage

__all__ = ["chain", "compose", "finish", "share", "summarise"]


@of_slices
def summarise(stage: TaskStage, held: HeldMessages, cells: range) -> Iterator[pa.RecordBatch]:
    """From packed rows: every slice's sorted chunks to itself, and its summary to all slices."""
    table = stage.sorted_slice(held.rows(), frozenset())
    yield from own_chunks(held.cell, table)
    summary = pickle.dumps(slices.summarise(stage.windows, table))
    for other in cells:
        yield message(other, MessageKind.SUMMARY, held.cell, summary)


def share(stage: TaskStage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Every slice's chunks to the slices that want them; what a cell has stays with it."""
    for held in cells_of(batches, stage):
        yield from held.again()
        if not held.is_slice:
            continue
        summaries = held.summaries()
        first = sum(len(summary.offsets) - 1 for summary in summaries[: held.place])
        for place, numbers in enumerate(slices.wanted(stage.windows, summaries)):
            for at, chunk in held.chunks[MessageKind.OWN].items():
                if place != held.place and first + at in numbers:
                    yield message(held.present()[place], MessageKind.REMOTE, first + at, chunk)


def chain(stage: TaskStage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Every slice's windows that could follow each other, to the sequence's first slice."""
    for held in cells_of(batches, stage):
        yield from held.again()
        if held.is_slice:
            found = slices.chain(stage.windows, held.place, held.summaries(), held.own(), held.remote())
            yield message(held.present()[0], MessageKind.CHAIN, held.place, pickle.dumps(found))


def compose(stage: TaskStage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """From the sequence's first slice to every slice: the row from which its windows follow those before."""
    for held in cells_of(batches, stage):
        chains = held.in_order(MessageKind.CHAIN)
        held.chunks[MessageKind.CHAIN].clear()
        yield from held.again()
        if chains:
            entries = slices.compose([pickle.loads(chunk) for chunk in chains])
            for cell, entry in zip(held.present(), entries, strict=True):
                yield message(cell, MessageKind.ENTRY, 0, pickle.dumps(entry))


def finish(stage: TaskStage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results."""
    for held in cells_of(batches, stage):
        if held.is_slice:
            entries = [pickle.loads(chunk) for chunk in held.in_order(MessageKind.ENTRY)]
            yield from slices.finish(
                stage.windows, held.place, held.summaries(), held.own(), held.remote(), *entries
            )
        else:
            yield from by_partitions(stage, held.rows())
