"""The steps of a stage as its tasks run them: chunks in, results or messages to other cells out.

Whole partitions take one step, :func:`whole`. Slices take three, with an exchange after each but the last:

    summarise   every slice sorts its rows and tells all others what they need to know of them
    share       every slice sends its chunks to the slices whose windows reach them
    finish      every slice gives the results of its own windows

For tumbling windows two more come before the last: ``chain``, in which every slice says which windows could
follow each other, and ``compose``, in which the first slice says where each one's windows begin.
A message is a row (cell, kind, number, chunk). Cells of whole partitions pass through all but the last step.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels import chunks, slices
from windrow.kernels.cells import Layout
from windrow.kernels.chunks import CELL, CHUNK, unpack, written
from windrow.kernels.files import FileScan
from windrow.kernels.plan import WindowPlan
from windrow.kernels.slices.expressions import columns as expression_columns
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.window_by import window_by

__all__ = ["KIND", "MESSAGE", "NUMBER", "STEPS", "Stage", "only_put_out", "steps"]

KIND = "__kind"
NUMBER = "__number"
MESSAGE = pa.schema({CELL: pa.int32(), KIND: pa.int32(), NUMBER: pa.int32(), CHUNK: pa.binary()})
_ROWS_AT_ONCE = 1 << 17
Batches = Iterable[pa.RecordBatch]


class _Kind(IntEnum):
    """What a message holds.

    Its number counts the chunks of a slice (OWN) or of the sequence (REMOTE), or says which slice it is
    from by its cell (SUMMARY) or its place (CHAIN).
    """

    ROWS = 0
    OWN = 1
    REMOTE = 2
    SUMMARY = 3
    CHAIN = 4
    ENTRY = 5


@dataclass(frozen=True)
class Stage:
    """What the tasks are told: the kernel's plan, how rows are sorted, which cells there are.

    `partition` and `order` name columns of the rows; `columns` are those that the kernel reads, and of
    them `coded` may stay dictionary-coded, as they are only put out. With a `scan` tasks read the rows
    themselves, by their numbers in it.
    """

    plan: WindowPlan
    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    columns: tuple[str, ...]
    coded: frozenset[str]
    layout: Layout
    scan: FileScan | None = None

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


def pack(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Rows as chunks of cells: see :func:`windrow.kernels.chunks.pack`."""
    return chunks.pack(batches, stage.layout, stage.partition, stage.order[0])


def read(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Rows that tasks read themselves as chunks of cells, from rows (task)."""
    scan = stage.scan
    assert scan is not None
    tasks = (task for batch in batches for task in batch.column(0).to_pylist())
    return pack(stage, (rows for task in tasks for rows in scan.read(task)))


def whole(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results of whole partitions, from rows (cell, chunk)."""
    rows = unpack(chunk.as_buffer() for batch in batches for chunk in batch.column(CHUNK))
    if rows is not None:
        yield from _by_partitions(stage, rows)


def _by_partitions(stage: Stage, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The kernel over whole partitions, so many at once that what it makes of them stays in the cache."""
    table, bounds = stage.sorted(rows, stage.coded)
    at = 0
    while at < len(bounds) - 1:
        to = int(np.searchsorted(bounds, bounds[at] + _ROWS_AT_ONCE, side="right")) - 1
        to = max(to, at + 1)
        part = table.slice(bounds[at], bounds[to] - bounds[at])
        yield from window_by(stage.plan, part, bounds[at : to + 1] - bounds[at])
        at = to


def summarise(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """From rows (cell, chunk): every slice's sorted chunks to itself, and its summary to all slices."""
    packed: dict[int, list[pa.Buffer]] = {}
    for batch in batches:
        for cell, chunk in zip(batch.column(CELL).to_pylist(), batch.column(CHUNK), strict=True):
            packed.setdefault(cell, []).append(chunk.as_buffer())
    for cell, buffers in packed.items():
        cells = stage.layout.sequence_of(cell)
        if cells is None:
            for buffer in buffers:
                yield _message(cell, _Kind.ROWS, 0, buffer.to_pybytes())
            continue
        rows = unpack(buffers)
        assert rows is not None
        table, bounds = stage.sorted(rows, frozenset())
        if len(bounds) != 2:
            raise ExecutionError(
                "two partitions have the same 64-bit hash",
                condition="HASH_COLLISION",
                sqlstate="XX000",
                hint="set spark.windrow.slice.rows to more rows than the longest partition has",
            )
        for at, part in enumerate(slices.chunks_of(table)):
            yield _message(cell, _Kind.OWN, at, written(part))
        summary = pickle.dumps(slices.summarise(stage.plan, table))
        for other in cells:
            yield _message(other, _Kind.SUMMARY, cell, summary)


def share(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Every slice's chunks to the slices that want them; what a cell has stays with it."""
    for held in _cells(stage, batches):
        yield from held.again()
        if not held.is_slice:
            continue
        summaries = held.summaries()
        first = sum(len(summary.offsets) - 1 for summary in summaries[: held.place])
        for place, numbers in enumerate(slices.wanted(stage.plan, summaries)):
            for at, chunk in held.chunks[_Kind.OWN].items():
                if place != held.place and first + at in numbers:
                    yield _message(held.present()[place], _Kind.REMOTE, first + at, chunk)


def chain(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Every slice's windows that could follow each other, to the sequence's first slice."""
    for held in _cells(stage, batches):
        yield from held.again()
        if held.is_slice:
            found = slices.chain(stage.plan, held.place, held.summaries(), held.own(), held.remote())
            yield _message(held.present()[0], _Kind.CHAIN, held.place, pickle.dumps(found))


def compose(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """From the sequence's first slice to every slice: the row from which its windows follow those before."""
    for held in _cells(stage, batches):
        chains = held.in_order(_Kind.CHAIN)
        held.chunks[_Kind.CHAIN].clear()
        yield from held.again()
        if chains:
            entries = slices.compose([pickle.loads(chunk) for chunk in chains])
            for cell, entry in zip(held.present(), entries, strict=True):
                yield _message(cell, _Kind.ENTRY, 0, pickle.dumps(entry))


def finish(stage: Stage, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The results."""
    for held in _cells(stage, batches):
        if held.is_slice:
            entries = [pickle.loads(chunk) for chunk in held.in_order(_Kind.ENTRY)]
            yield from slices.finish(
                stage.plan, held.place, held.summaries(), held.own(), held.remote(), *entries
            )
        else:
            rows = unpack(held.in_order(_Kind.ROWS))
            assert rows is not None
            yield from _by_partitions(stage, rows)


def steps(stage: Stage) -> list[str]:
    """The steps after packing, by their names in `STEPS`, with an exchange after each but the last."""
    if not stage.layout.sequences:
        return ["whole"]
    between = ["chain", "compose"] if slices.needs_chain(stage.plan) else []
    return ["summarise", "share", *between, "finish"]


class _Held:
    """The messages of one cell, by kind and number.

    Slices to which no row was dealt take no part: the others count as if they were all.
    """

    def __init__(self, stage: Stage, cell: int) -> None:
        self.cell = cell
        self.is_slice = stage.layout.sequence_of(cell) is not None
        self.chunks: dict[_Kind, dict[int, Any]] = {kind: {} for kind in _Kind}

    def in_order(self, kind: _Kind) -> list[Any]:
        """The chunks of a kind by number."""
        return [chunk for _, chunk in sorted(self.chunks[kind].items())]

    def present(self) -> list[int]:
        """The cells of the sequence's slices, in order."""
        return sorted(self.chunks[_Kind.SUMMARY])

    @property
    def place(self) -> int:
        """The slice's place among them."""
        return self.present().index(self.cell)

    def again(self) -> Iterator[pa.RecordBatch]:
        """The same messages to the same cell."""
        for kind, numbered in self.chunks.items():
            for number, chunk in numbered.items():
                yield _message(self.cell, kind, number, chunk)

    def summaries(self) -> list[slices.Summary]:
        """Those of the sequence's slices, in order."""
        return [pickle.loads(chunk) for chunk in self.in_order(_Kind.SUMMARY)]

    def own(self) -> pa.Table:
        """The slice's rows, sorted."""
        rows = unpack(self.in_order(_Kind.OWN))
        assert rows is not None
        return rows

    def remote(self) -> dict[int, pa.Table]:
        """Chunks of other slices, by their number in the sequence."""
        numbered = self.chunks[_Kind.REMOTE].items()
        return {number: pa.ipc.open_stream(chunk).read_all() for number, chunk in numbered}


def _cells(stage: Stage, batches: Batches) -> list[_Held]:
    """The messages of a task by their cell; of the slices, those that have rows."""
    found: dict[int, _Held] = {}
    for batch in batches:
        cells, kinds, numbers = (batch.column(name).to_pylist() for name in (CELL, KIND, NUMBER))
        for cell, kind, number, chunk in zip(cells, kinds, numbers, batch.column(CHUNK), strict=True):
            if cell not in found:
                found[cell] = _Held(stage, cell)
            held = found[cell].chunks[_Kind(kind)]
            # chunks of whole partitions come from several tasks, which do not count them
            held[len(held) if kind == _Kind.ROWS else number] = chunk.as_buffer()
    return [held for held in found.values() if held.chunks[_Kind.OWN] or not held.is_slice]


def _message(cell: int, kind: _Kind, number: int, chunk: Any) -> pa.RecordBatch:
    value = chunk.to_pybytes() if isinstance(chunk, pa.Buffer) else chunk
    columns = [[cell], [int(kind)], [number], [value]]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, MESSAGE, strict=True)], schema=MESSAGE
    )


#: Every step by its name.
STEPS = {step.__name__: step for step in (pack, read, whole, summarise, share, chain, compose, finish)}
