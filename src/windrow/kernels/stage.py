"""The steps of a stage as its tasks run them: messages in, results or messages out.

Messages are :mod:`windrow.kernels.messages`. Whole partitions take one step, :func:`whole`, and so do slices
that were dealt all the rows around them that they can need, :func:`alone`. Other slices take three, with an
exchange after each but the last:

    summarise   every slice sorts its rows and tells all others what they need to know of them
    share       every slice sends its chunks to the slices whose windows reach them
    finish      every slice gives the results of its own windows

For tumbling windows two more come before the last: ``chain``, in which every slice says which windows could
follow each other, and ``compose``, in which the first slice says where each one's windows begin.
Cells of whole partitions pass through all but the last step.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels import chunks, slices
from windrow.kernels.cells import Layout
from windrow.kernels.chunks import joined, unpack, written
from windrow.kernels.files import FileScan
from windrow.kernels.messages import CELL, CHUNK, KIND, NUMBER, Kind, message
from windrow.kernels.patterns.match_recognize import match_recognize
from windrow.kernels.patterns.plan import MatchPlan
from windrow.kernels.plan import WindowPlan
from windrow.kernels.slices.expressions import columns as expression_columns
from windrow.kernels.sorting import SortKey, has_values_of_codes, sorted_partitions
from windrow.kernels.window_by import window_by

__all__ = ["STEPS", "Stage", "halo_for", "only_put_out", "steps"]

_ROWS_AT_ONCE = 1 << 17
_MOST_AROUND = 1 << 20  # rows that a task sends to all slices together
Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Stage:
    """What the tasks are told: the kernel's plan, how rows are sorted, which cells there are.

    `partition` and `order` name columns of the rows; `columns` are those that the kernel reads, and of
    them `coded` may stay dictionary-coded, as they are only put out. With a `scan` tasks read the rows
    themselves, by their numbers in it. With a `halo` slices need that many rows around them, and no more.
    """

    plan: WindowPlan | MatchPlan
    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    columns: tuple[str, ...]
    coded: frozenset[str]
    layout: Layout
    scan: FileScan | None = None
    halo: slices.Halo | None = None

    @property
    def windows(self) -> WindowPlan:
        """The plan of windows, whose long partitions come in slices."""
        assert isinstance(self.plan, WindowPlan)
        return self.plan

    def sorted(self, rows: pa.Table, coded: frozenset[str]) -> tuple[pa.Table, np.ndarray]:
        """The columns that the kernel reads, in order, and the bounds of the partitions.

        Only the columns `coded` stay dictionary-coded where they are.
        """
        order, bounds = sorted_partitions(rows, self.partition, self.order)
        rows = rows.select(self.columns)
        for at, column in enumerate(rows.schema):
            if pa.types.is_dictionary(column.type) and column.name not in coded:
                plain = rows.column(at).cast(column.type.value_type)
                rows = rows.set_column(at, column.name, plain)
        return (rows if order is None else rows.take(pa.array(order))), bounds


def only_put_out(plan: WindowPlan, columns: Iterable[str]) -> frozenset[str]:
    """Those of the columns that neither a predicate nor an aggregate reads."""
    read = {spec.argument for _, spec, _ in plan.aggregates}
    read |= {search.column for search in (plan.start, plan.end) if search is not None}
    for predicate in plan.expressions():
        read |= {ref.column for ref in expression_columns(predicate)}
    return frozenset(columns) - read


def halo_for(plan: WindowPlan, layout: Layout, order: SortKey, key: pa.Field) -> slices.Halo | None:
    """The rows around them that slices are dealt with their own, if they need no more and few.

    `key` says of the first order key of what type it is, and whether it may be NULL.
    """
    if not layout.sequences:
        return None
    reaches = not key.nullable and has_values_of_codes(key.type)
    halo = slices.halo_of(plan, order if reaches else None)
    if halo is None or (halo.before + halo.after) * layout.cells > _MOST_AROUND:
        return None
    reach = halo.reach
    if reach is not None and not all(reach.spans(cut.cuts, key.type) for cut in layout.sequences):
        return None
    return halo


def pack(stage: Stage, batches: Batches, task: int = 0) -> Iterator[pa.RecordBatch]:
    """Rows as chunks of cells: see :func:`windrow.kernels.chunks.pack`."""
    return chunks.pack(batches, stage.layout, stage.partition, stage.order, stage.halo, task)


def read(stage: Stage, batches: Batches, task: int = 0) -> Iterator[pa.RecordBatch]:
    """Rows that tasks read themselves as chunks of cells, from rows (task)."""
    scan = stage.scan
    assert scan is not None
    numbers = (number for batch in batches for number in batch.column(0).to_pylist())
    return pack(stage, (rows for number in numbers for rows in scan.read(number)), task)


def whole(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results of whole partitions."""
    for held in _cells(batches, stage):
        rows = unpack(held.in_order(Kind.ROWS))
        if rows is not None:
            yield from _by_partitions(stage, rows)


def alone(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results of whole partitions, and of slices that have all the rows around them that they need."""
    assert stage.halo is not None
    for held in _cells(batches, stage):
        rows = unpack(held.in_order(Kind.ROWS))
        if rows is None:
            continue
        if not held.is_slice:
            yield from _by_partitions(stage, rows)
            continue
        own = _sorted_slice(stage, rows, stage.coded)
        # every task has sent as many as are needed of its own, and all that are in reach
        before, after = (
            None if some is None else _sorted_slice(stage, some, stage.coded)
            for some in (unpack(held.in_order(Kind.BEFORE)), unpack(held.in_order(Kind.AFTER)))
        )
        before = None if before is None else before.slice(max(before.num_rows - stage.halo.before, 0))
        if after is not None and stage.halo.reach is None:
            after = after.slice(0, stage.halo.after)
        around = joined([part for part in (before, own, after) if part is not None])
        assert around is not None
        first = 0 if before is None else before.num_rows
        yield from slices.finish_alone(stage.windows, around, first, own.num_rows)


def _sorted_slice(stage: Stage, rows: pa.Table, coded: frozenset[str]) -> pa.Table:
    """Rows of one partition, sorted."""
    table, bounds = stage.sorted(rows, coded)
    if len(bounds) != 2:
        raise ExecutionError(
            "two partitions have the same 64-bit hash",
            condition="HASH_COLLISION",
            sqlstate="XX000",
            hint="set spark.windrow.slice.rows to more rows than the longest partition has",
        )
    return table


def _by_partitions(stage: Stage, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The kernel over whole partitions, so many at once that what it makes of them stays in the cache."""
    table, bounds = stage.sorted(rows, stage.coded)
    at = 0
    while at < len(bounds) - 1:
        to = int(np.searchsorted(bounds, bounds[at] + _ROWS_AT_ONCE, side="right")) - 1
        to = max(to, at + 1)
        part = table.slice(bounds[at], bounds[to] - bounds[at])
        if isinstance(stage.plan, MatchPlan):
            yield from match_recognize(stage.plan, part, bounds[at : to + 1] - bounds[at])
        else:
            yield from window_by(stage.plan, part, bounds[at : to + 1] - bounds[at])
        at = to


def summarise(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """From packed rows: every slice's sorted chunks to itself, and its summary to all slices."""
    for held in _cells(batches, stage):
        cells = stage.layout.sequence_of(held.cell)
        if cells is None:
            yield from held.again()
            continue
        rows = unpack(held.in_order(Kind.ROWS))
        assert rows is not None
        table = _sorted_slice(stage, rows, frozenset())
        for at, part in enumerate(slices.chunks_of(table)):
            yield message(held.cell, Kind.OWN, at, written(part))
        summary = pickle.dumps(slices.summarise(stage.windows, table))
        for other in cells:
            yield message(other, Kind.SUMMARY, held.cell, summary)


def share(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Every slice's chunks to the slices that want them; what a cell has stays with it."""
    for held in _cells(batches, stage):
        yield from held.again()
        if not held.is_slice:
            continue
        summaries = held.summaries()
        first = sum(len(summary.offsets) - 1 for summary in summaries[: held.place])
        for place, numbers in enumerate(slices.wanted(stage.windows, summaries)):
            for at, chunk in held.chunks[Kind.OWN].items():
                if place != held.place and first + at in numbers:
                    yield message(held.present()[place], Kind.REMOTE, first + at, chunk)


def chain(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Every slice's windows that could follow each other, to the sequence's first slice."""
    for held in _cells(batches, stage):
        yield from held.again()
        if held.is_slice:
            found = slices.chain(stage.windows, held.place, held.summaries(), held.own(), held.remote())
            yield message(held.present()[0], Kind.CHAIN, held.place, pickle.dumps(found))


def compose(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """From the sequence's first slice to every slice: the row from which its windows follow those before."""
    for held in _cells(batches, stage):
        chains = held.in_order(Kind.CHAIN)
        held.chunks[Kind.CHAIN].clear()
        yield from held.again()
        if chains:
            entries = slices.compose([pickle.loads(chunk) for chunk in chains])
            for cell, entry in zip(held.present(), entries, strict=True):
                yield message(cell, Kind.ENTRY, 0, pickle.dumps(entry))


def finish(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results."""
    for held in _cells(batches, stage):
        if held.is_slice:
            entries = [pickle.loads(chunk) for chunk in held.in_order(Kind.ENTRY)]
            yield from slices.finish(
                stage.windows, held.place, held.summaries(), held.own(), held.remote(), *entries
            )
        else:
            rows = unpack(held.in_order(Kind.ROWS))
            assert rows is not None
            yield from _by_partitions(stage, rows)


def steps(stage: Stage) -> list[str]:
    """The steps after packing, by their names in `STEPS`, with an exchange after each but the last."""
    if not stage.layout.sequences:
        return ["whole"]
    if stage.halo is not None:
        return ["alone"]
    between = ["chain", "compose"] if slices.needs_chain(stage.windows) else []
    return ["summarise", "share", *between, "finish"]


class _Held:
    """The messages of one cell, by kind and number.

    Slices to which no row was dealt take no part: the others count as if they were all.
    """

    def __init__(self, stage: Stage, cell: int) -> None:
        self.cell = cell
        self.is_slice = stage.layout.sequence_of(cell) is not None
        self.chunks: dict[Kind, dict[int, Any]] = {kind: {} for kind in Kind}

    def in_order(self, kind: Kind) -> list[Any]:
        """The chunks of a kind by number."""
        return [chunk for _, chunk in sorted(self.chunks[kind].items())]

    def present(self) -> list[int]:
        """The cells of the sequence's slices, in order."""
        return sorted(self.chunks[Kind.SUMMARY])

    @property
    def place(self) -> int:
        """The slice's place among them."""
        return self.present().index(self.cell)

    def again(self) -> Iterator[pa.RecordBatch]:
        """The same messages to the same cell."""
        for kind, numbered in self.chunks.items():
            for number, chunk in numbered.items():
                yield message(self.cell, kind, number, chunk)

    def summaries(self) -> list[slices.Summary]:
        """Those of the sequence's slices, in order."""
        return [pickle.loads(chunk) for chunk in self.in_order(Kind.SUMMARY)]

    def own(self) -> pa.Table:
        """The slice's rows, sorted."""
        rows = unpack(self.in_order(Kind.OWN))
        assert rows is not None
        return rows

    def remote(self) -> dict[int, pa.Table]:
        """Chunks of other slices, by their number in the sequence."""
        numbered = self.chunks[Kind.REMOTE].items()
        return {number: pa.ipc.open_stream(chunk).read_all() for number, chunk in numbered}


def _cells(batches: Batches, stage: Stage) -> list[_Held]:
    """The messages of a task by their cell; of the slices, those that have rows."""
    found: dict[int, _Held] = {}
    for batch in batches:
        cells, kinds, numbers = (batch.column(name).to_pylist() for name in (CELL, KIND, NUMBER))
        for cell, kind, number, chunk in zip(cells, kinds, numbers, batch.column(CHUNK), strict=True):
            if cell not in found:
                found[cell] = _Held(stage, cell)
            found[cell].chunks[Kind(kind)][number] = chunk.as_buffer()
    has_rows = (Kind.ROWS, Kind.OWN)
    return [
        held for held in found.values() if not held.is_slice or any(held.chunks[kind] for kind in has_rows)
    ]


#: Every step by its name.
STEPS = {step.__name__: step for step in (pack, read, whole, alone, summarise, share, chain, compose, finish)}
