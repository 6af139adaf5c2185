"""The phases of a fragment as its tasks run them: messages in, results or messages out.

Messages are :mod:`windrow.kernels.packing.messages`. Whole partitions need one phase, :func:`whole`, and so
do slices that come with their halo, :func:`alone`. Other slices need several, with an exchange after each but
the last: :mod:`windrow.kernels.tasks.window_phases`, :mod:`windrow.kernels.tasks.match_phases`. The first of
them follows an exchange of all rows, unless tasks read those of whole shards from files, :func:`read_shards`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from windrow.kernels import slices
from windrow.kernels.packing import chunks
from windrow.kernels.packing.chunks import joined, unpack
from windrow.kernels.packing.file_slices import messages_of_slice
from windrow.kernels.packing.messages import MessageKind
from windrow.kernels.patterns.pattern_plan import MatchPlan
from windrow.kernels.patterns.pattern_slices import matches_alone
from windrow.kernels.tasks import match_phases, window_phases
from windrow.kernels.tasks.fragment import Batches, Fragment
from windrow.kernels.tasks.inbox import inboxes_of
from windrow.kernels.tasks.partitions import by_partitions

__all__ = ["PHASES", "phases"]


def pack(fragment: Fragment, batches: Batches, task: int = 0) -> Iterator[pa.RecordBatch]:
    """Rows as chunks for shards: see :func:`windrow.kernels.packing.chunks.pack`."""
    return chunks.pack(batches, fragment.layout, fragment.partition, fragment.order, fragment.halo, task)


def read(fragment: Fragment, batches: Batches, task: int = 0) -> Iterator[pa.RecordBatch]:
    """Rows that tasks read themselves, as chunks for shards, from rows (task)."""
    scan = fragment.scan
    assert scan is not None
    numbers = (number for batch in batches for number in batch.column(0).to_pylist())
    return pack(fragment, (rows for number in numbers for rows in scan.read(number)), task)


def read_shards(fragment: Fragment, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The first phase of buckets and slices that tasks read themselves, from rows (shard)."""
    scan = fragment.scan
    assert scan is not None
    first, *_ = _after_reading(fragment)
    for shard in (number for batch in batches for number in batch.column(0).to_pylist()):
        if shard >= fragment.layout.buckets:
            rows = messages_of_slice(scan, fragment.layout, shard, fragment.order, fragment.halo)
            yield from PHASES[first](fragment, rows)
        elif (whole := chunks.gathered(scan.rows_of(scan.whole[shard]))) is not None:
            yield from by_partitions(fragment, whole)


def whole(fragment: Fragment, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results of whole partitions."""
    for inbox in inboxes_of(batches, fragment):
        rows = unpack(inbox.in_order(MessageKind.ROWS))
        if rows is not None:
            yield from by_partitions(fragment, rows)


def alone(fragment: Fragment, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results of whole partitions, and of slices with their halo."""
    assert fragment.halo is not None
    for inbox in inboxes_of(batches, fragment):
        rows = unpack(inbox.in_order(MessageKind.ROWS))
        if rows is None:
            continue
        if not inbox.is_slice:
            yield from by_partitions(fragment, rows)
            continue
        own = fragment.sorted_slice(rows, fragment.coded)
        # every task has sent enough rows of its own, and all that are in reach
        before, after = (
            None if some is None else fragment.sorted_slice(some, fragment.coded)
            for some in (
                unpack(inbox.in_order(MessageKind.BEFORE)),
                unpack(inbox.in_order(MessageKind.AFTER)),
            )
        )
        before = None if before is None else before.slice(max(before.num_rows - fragment.halo.before, 0))
        if after is not None and fragment.halo.reach is None:
            after = after.slice(0, fragment.halo.after)
        around = joined([part for part in (before, own, after) if part is not None])
        assert around is not None
        first = 0 if before is None else before.num_rows
        for piece in slices.pieces(fragment.halo, around, first, own.num_rows):
            if isinstance(fragment.plan, MatchPlan):
                yield from matches_alone(fragment.plan, *piece)
            else:
                yield from slices.finish_alone(fragment.plan, *piece)


def phases(fragment: Fragment) -> list[str]:
    """The phases by their names in `PHASES`, with an exchange after each but the last."""
    later = _after_reading(fragment)
    if fragment.reads_shards:
        return ["read_shards", *later[1:]]
    return ["pack" if fragment.scan is None else "read", *later]


def _after_reading(fragment: Fragment) -> list[str]:
    """The phases after the rows have been packed."""
    if not fragment.layout.sequences:
        return ["whole"]
    if fragment.halo is not None:
        return ["alone"]
    if isinstance(fragment.plan, MatchPlan):
        return ["guess", "follow", "gather", "emit"]
    between = ["chain", "compose"] if slices.needs_chain(fragment.windows) else []
    return ["summarise", "share", *between, "finish"]


#: Every phase by its name.
PHASES = {
    phase.__name__: phase
    for phase in (
        pack, read, read_shards, whole, alone,
        window_phases.summarise, window_phases.share, window_phases.chain, window_phases.compose,
        window_phases.finish,
        match_phases.guess, match_phases.follow, match_phases.gather, match_phases.emit,
    )
}  # fmt: skip
