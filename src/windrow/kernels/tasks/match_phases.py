"""The phases of slices of matches (:mod:`windrow.kernels.advance.slices`).

    guess       every slice sorts its rows, guesses which match is open at its end, and sends it to the next
    follow      every slice finds its matches from there on, and reports whether its guess was right
    gather      the slices after a wrong guess send their rows to the first of them
    emit        that slice finds the remaining matches, and every other slice emits its own

Buckets pass through all phases but the last.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.advance import slices as matches
from windrow.kernels.packing.chunks import written
from windrow.kernels.packing.messages import MessageKind, message
from windrow.kernels.tasks.fragment import Batches, Fragment
from windrow.kernels.tasks.inbox import Inbox, inboxes_of, of_slices, own_chunks
from windrow.kernels.tasks.partitions import by_partitions

__all__ = ["emit", "follow", "gather", "guess"]


@of_slices
def guess(fragment: Fragment, inbox: Inbox, shards: range) -> Iterator[pa.RecordBatch]:
    """From packed rows: every slice's sorted chunks to itself; its guess also to the next slice."""
    table = fragment.sorted_slice(inbox.rows(), frozenset())
    yield from own_chunks(inbox.shard, table)
    if inbox.shard < shards[-1]:
        guessed = written(matches.guess(fragment.matches, table, is_first=inbox.shard == shards[0]))
        for shard in (inbox.shard, inbox.shard + 1):
            yield message(shard, MessageKind.OPEN, inbox.shard, guessed)


@of_slices
def follow(fragment: Fragment, inbox: Inbox, shards: range) -> Iterator[pa.RecordBatch]:
    """Every slice's results and open match to itself; to all others, whether its guess was right."""
    is_last, opened = inbox.shard == shards[-1], inbox.open()
    before, guessed = opened.get(inbox.shard - 1), opened.get(inbox.shard)
    inbox.chunks[MessageKind.OPEN].clear()
    yield from inbox.again()
    reached = matches.Reached(False, False, 0)
    if before is not None or inbox.shard == shards[0]:
        try:
            found = matches.follow(fragment.matches, before, inbox.own(), is_last=is_last)
        except ExecutionError:  # if the match is real, it fails again in the last phase
            pass
        else:
            as_guessed = is_last or (guessed is not None and found.leaves(guessed))
            reached = matches.Reached(True, as_guessed, found.matches)
            yield message(inbox.shard, MessageKind.FOUND, inbox.shard, written(found.emitted))
            yield message(inbox.shard, MessageKind.OPEN, inbox.shard, written(found.open))
    for shard in shards:
        yield message(shard, MessageKind.SUMMARY, inbox.shard, pickle.dumps(reached))


@of_slices
def gather(fragment: Fragment, inbox: Inbox, shards: range) -> Iterator[pa.RecordBatch]:  # noqa: ARG001 - as others
    """The results of final slices to themselves; all rows of the others to the first of these others."""
    present, final = inbox.present(), matches.final_slices(inbox.reached(), shards)
    for shard, reached in inbox.chunks[MessageKind.SUMMARY].items():
        yield message(inbox.shard, MessageKind.SUMMARY, shard, reached)
    if inbox.place < final:
        (found,) = inbox.in_order(MessageKind.FOUND)
        yield message(inbox.shard, MessageKind.FOUND, inbox.shard, found)
        if inbox.place == final - 1 < len(present) - 1:
            yield message(
                present[final], MessageKind.OPEN, inbox.shard, inbox.chunks[MessageKind.OPEN][inbox.shard]
            )
    else:
        for at, chunk in inbox.chunks[MessageKind.OWN].items():
            yield message(present[final], MessageKind.OWN, inbox.shard << 32 | at, chunk)


def emit(fragment: Fragment, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results."""
    for inbox in inboxes_of(batches, fragment):
        shards = fragment.layout.sequence_of(inbox.shard)
        if shards is None:
            yield from by_partitions(fragment, inbox.rows())
            continue
        reached = inbox.reached()
        final = min(inbox.place, matches.final_slices(reached, shards))
        before = sum(reached[shard].matches for shard in inbox.present()[:final])
        if inbox.chunks[MessageKind.FOUND]:
            (found,) = inbox.in_order(MessageKind.FOUND)
            output = pa.ipc.open_stream(found).read_all()
        else:
            (opened,) = inbox.open().values() or (None,)
            output = matches.follow(fragment.matches, opened, inbox.own(), is_last=True).emitted
        yield from matches.numbered(fragment.matches, output, before).to_batches()
