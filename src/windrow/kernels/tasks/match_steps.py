"""The steps of slices of matches (:mod:`windrow.kernels.advance.slices`).

    guess       every slice sorts its rows and tells the next one what seems to be open behind it
    follow      every slice finds its matches from there on, and tells all others whether that was right
    gather      slices behind one that was wrong send their rows to one of them
    give        that one finds the matches that are left, and every other slice gives its own

Cells of whole partitions pass through all but the last.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.advance import slices as matches
from windrow.kernels.packing.chunks import written
from windrow.kernels.packing.messages import MessageKind, message
from windrow.kernels.tasks.held_messages import HeldMessages, cells_of, of_slices, own_chunks
from windrow.kernels.tasks.partitions import by_partitions
from windrow.kernels.tasks.task_stage import Batches, TaskStage

__all__ = ["follow", "gather", "give", "guess"]


@of_slices
def guess(stage: TaskStage, held: HeldMessages, cells: range) -> Iterator[pa.RecordBatch]:
    """From packed rows: every slice's sorted chunks to itself; what seems open behind it also to the next."""
    table = stage.sorted_slice(held.rows(), frozenset())
    yield from own_chunks(held.cell, table)
    if held.cell < cells[-1]:
        guessed = written(matches.guess(stage.matches, table, is_first=held.cell == cells[0]))
        for cell in (held.cell, held.cell + 1):
            yield message(cell, MessageKind.OPEN, held.cell, guessed)


@of_slices
def follow(stage: TaskStage, held: HeldMessages, cells: range) -> Iterator[pa.RecordBatch]:
    """Every slice's results, and what it leaves open, to itself; to all others, whether that was guessed."""
    is_last, opened = held.cell == cells[-1], held.open()
    before, guessed = opened.get(held.cell - 1), opened.get(held.cell)
    held.chunks[MessageKind.OPEN].clear()
    yield from held.again()
    reached = matches.Reached(False, False, 0)
    if before is not None or held.cell == cells[0]:
        try:
            found = matches.follow(stage.matches, before, held.own(), is_last=is_last)
        except ExecutionError:  # if there is such a match, it fails again where slices are gathered
            pass
        else:
            as_guessed = is_last or (guessed is not None and found.leaves(guessed))
            reached = matches.Reached(True, as_guessed, found.matches)
            yield message(held.cell, MessageKind.FOUND, held.cell, written(found.given))
            yield message(held.cell, MessageKind.OPEN, held.cell, written(found.open))
    for cell in cells:
        yield message(cell, MessageKind.SUMMARY, held.cell, pickle.dumps(reached))


@of_slices
def gather(stage: TaskStage, held: HeldMessages, cells: range) -> Iterator[pa.RecordBatch]:  # noqa: ARG001 - as others
    """What settled slices have found to themselves; all rows of the others to the first of these."""
    present, settled = held.present(), matches.settled_slices(held.reached(), cells)
    for cell, reached in held.chunks[MessageKind.SUMMARY].items():
        yield message(held.cell, MessageKind.SUMMARY, cell, reached)
    if held.place < settled:
        (found,) = held.in_order(MessageKind.FOUND)
        yield message(held.cell, MessageKind.FOUND, held.cell, found)
        if held.place == settled - 1 < len(present) - 1:
            yield message(
                present[settled], MessageKind.OPEN, held.cell, held.chunks[MessageKind.OPEN][held.cell]
            )
    else:
        for at, chunk in held.chunks[MessageKind.OWN].items():
            yield message(present[settled], MessageKind.OWN, held.cell << 32 | at, chunk)


def give(stage: TaskStage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results."""
    for held in cells_of(batches, stage):
        cells = stage.layout.sequence_of(held.cell)
        if cells is None:
            yield from by_partitions(stage, held.rows())
            continue
        reached = held.reached()
        settled = min(held.place, matches.settled_slices(reached, cells))
        before = sum(reached[cell].matches for cell in held.present()[:settled])
        if held.chunks[MessageKind.FOUND]:
            (found,) = held.in_order(MessageKind.FOUND)
            given = pa.ipc.open_stream(found).read_all()
        else:
            (opened,) = held.open().values() or (None,)
            given = matches.follow(stage.matches, opened, held.own(), is_last=True).given
        yield from matches.numbered(stage.matches, given, before).to_batches()
