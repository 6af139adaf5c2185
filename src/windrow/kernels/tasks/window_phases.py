"""The phases of slices of windows.

    summarise   every slice sorts its rows and sends a summary of them to all others
    share       every slice sends its chunks to the slices whose windows reach them
    finish      every slice emits the results of its own windows

Tumbling windows need two more phases before the last: ``chain``, in which every slice computes which of its
windows could follow each other, and ``compose``, in which the first slice computes where the windows of each
slice begin. Buckets pass through all phases but the last.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa

from windrow.kernels import slices
from windrow.kernels.packing.messages import MessageKind, message
from windrow.kernels.tasks.fragment import Batches, Fragment
from windrow.kernels.tasks.inbox import Inbox, inboxes_of, of_slices, own_chunks
from windrow.kernels.tasks.partitions import by_partitions

__all__ = ["chain", "compose", "finish", "share", "summarise"]


@of_slices
def summarise(fragment: Fragment, inbox: Inbox, shards: range) -> Iterator[pa.RecordBatch]:
    """From packed rows: every slice's sorted chunks to itself, and its summary to all slices."""
    table = fragment.sorted_slice(inbox.rows(), frozenset())
    yield from own_chunks(inbox.shard, table)
    summary = pickle.dumps(slices.summarise(fragment.windows, table))
    for other in shards:
        yield message(other, MessageKind.SUMMARY, inbox.shard, summary)


def share(fragment: Fragment, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Every slice's chunks to the slices that need them; the other messages stay."""
    for inbox in inboxes_of(batches, fragment):
        yield from inbox.again()
        if not inbox.is_slice:
            continue
        summaries = inbox.summaries()
        first = sum(len(summary.offsets) - 1 for summary in summaries[: inbox.place])
        for place, numbers in enumerate(slices.wanted(fragment.windows, summaries)):
            for at, chunk in inbox.chunks[MessageKind.OWN].items():
                if place != inbox.place and first + at in numbers:
                    yield message(inbox.present()[place], MessageKind.REMOTE, first + at, chunk)


def chain(fragment: Fragment, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Every slice's windows that could follow each other, to the sequence's first slice."""
    for inbox in inboxes_of(batches, fragment):
        yield from inbox.again()
        if inbox.is_slice:
            found = slices.chain(
                fragment.windows, inbox.place, inbox.summaries(), inbox.own(), inbox.remote()
            )
            yield message(inbox.present()[0], MessageKind.CHAIN, inbox.place, pickle.dumps(found))


def compose(fragment: Fragment, batches: Batches) -> Iterator[pa.RecordBatch]:
    """From the sequence's first slice to every slice: the row from which its windows follow those before."""
    for inbox in inboxes_of(batches, fragment):
        chains = inbox.in_order(MessageKind.CHAIN)
        inbox.chunks[MessageKind.CHAIN].clear()
        yield from inbox.again()
        if chains:
            entries = slices.compose([pickle.loads(chunk) for chunk in chains])
            for shard, entry in zip(inbox.present(), entries, strict=True):
                yield message(shard, MessageKind.ENTRY, 0, pickle.dumps(entry))


def finish(fragment: Fragment, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results."""
    for inbox in inboxes_of(batches, fragment):
        if inbox.is_slice:
            entries = [pickle.loads(chunk) for chunk in inbox.in_order(MessageKind.ENTRY)]
            yield from slices.finish(
                fragment.windows, inbox.place, inbox.summaries(), inbox.own(), inbox.remote(), *entries
            )
        else:
            yield from by_partitions(fragment, inbox.rows())
