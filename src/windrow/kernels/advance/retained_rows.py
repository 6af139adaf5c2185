"""Retained rows, from which each micro-batch removes some and to which it adds others, at a cost proportional
to these.

The rows are in memory, and in chunks of the checkpoint, in any order. A removed row stays in the file of its
chunk; its place is stored as *gone*, in separate chunks. A chunk that is small, or that has lost half of its
rows, is rewritten with the new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.hashing import among, hashes
from windrow.kernels.incremental.chunking import PER_MICRO_BATCH, SMALLEST, merging

__all__ = ["GONE", "Bools", "Marks", "Places", "RetainedRows", "union"]

Bools: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]
Marks: TypeAlias = npt.NDArray[np.uint64]

Places: TypeAlias = Mapping[int, Ints]
"""Rows, as ascending places in each chunk, by the number of the chunk."""

GONE = ".gone"
"""The suffix of the stored name for places of removed rows."""

_CHUNK, _PLACE = "chunk", "place"


@dataclass(frozen=True, eq=False)
class _Chunk:
    """The rows of one file, the hashes of their keys, and which of them are still retained."""

    rows: pa.Table
    marks: Marks
    alive: Bools

    @staticmethod
    def of(rows: pa.Table, key: tuple[str, ...]) -> _Chunk:
        return _Chunk(rows, hashes(rows, key), np.ones(rows.num_rows, bool))

    @staticmethod
    def one(chunks: Collection[_Chunk]) -> _Chunk:
        """The retained rows of several chunks as one."""
        whole = [chunk.alive.all() for chunk in chunks]
        if len(chunks) == 1 and all(whole):
            return next(iter(chunks))
        rows = [
            chunk.rows if is_whole else chunk.rows.filter(pa.array(chunk.alive))
            for chunk, is_whole in zip(chunks, whole, strict=True)
        ]
        marks = np.concatenate([chunk.marks[chunk.alive] for chunk in chunks])
        return _Chunk(pa.concat_tables(rows).combine_chunks(), marks, np.ones(len(marks), bool))

    def __len__(self) -> int:
        return len(self.alive)

    @property
    def count(self) -> int:
        """How many rows are retained."""
        return int(np.count_nonzero(self.alive))

    def without(self, places: Ints) -> _Chunk:
        alive = self.alive.copy()
        alive[places] = False
        return replace(self, alive=alive)


@dataclass(frozen=True, eq=False)
class RetainedRows:
    """Rows with a key.

    Attributes
    ----------
    key
        The columns by which rows are found.
    chunks
        The rows, by the numbers of their chunks.
    gone
        The places of removed rows, in separate chunks.
    lost
        The places of rows removed in this micro-batch.
    """

    key: tuple[str, ...]
    chunks: Mapping[int, _Chunk] = field(default_factory=dict)
    gone: Mapping[int, _Chunk] = field(default_factory=dict)
    lost: Places = field(default_factory=dict)

    @staticmethod
    def read(
        key: tuple[str, ...], rows: Mapping[int, pa.Table], gone: Mapping[int, pa.Table]
    ) -> RetainedRows:
        """The rows in stored chunks."""
        chunks = {number: _Chunk.of(table, key) for number, table in rows.items()}
        places = {number: _Chunk.of(table, ()) for number, table in gone.items()}
        for number, one in places.items():
            of, at = (one.rows.column(name).to_numpy() for name in (_CHUNK, _PLACE))
            for chunk in np.unique(of).tolist():
                if chunk in chunks:
                    chunks[chunk] = chunks[chunk].without(at[of == chunk])
                else:
                    places[number] = places[number].without(np.flatnonzero(of == chunk))
        return RetainedRows(key, chunks, places)

    def __len__(self) -> int:
        return sum(chunk.count for chunk in self.chunks.values())

    # -- which rows ----------------------------------------------------------------------------------

    def all(self) -> Places:
        """All rows."""
        return {number: np.flatnonzero(chunk.alive) for number, chunk in self.chunks.items()}

    def having(self, marks: Marks) -> Places:
        """The rows whose keys have one of these hashes, with possible false positives."""
        if not len(marks):
            return {}
        found = {
            number: np.flatnonzero(among(chunk.marks, marks) & chunk.alive)
            for number, chunk in self.chunks.items()
        }
        return {number: places for number, places in found.items() if len(places)}

    def where(self, satisfied: Callable[[pa.Table], Bools], places: Places | None = None) -> Places:
        """The rows that satisfy a condition, among some places or all."""
        found = {}
        for number in self.chunks if places is None else places:
            chunk = self.chunks[number]
            if places is None:
                found[number] = np.flatnonzero(satisfied(chunk.rows) & chunk.alive)
            else:
                at = places[number]
                found[number] = at[satisfied(chunk.rows.take(pa.array(at)))]
        return {number: places for number, places in found.items() if len(places)}

    def rows(self, places: Places) -> pa.Table | None:
        """The rows at these places; None if there are none."""
        found = [
            self.chunks[number].rows
            if len(at) == len(self.chunks[number])
            else self.chunks[number].rows.take(pa.array(at))
            for number, at in places.items()
        ]
        return pa.concat_tables(found) if found else None

    def tables(self, *columns: str) -> Iterable[pa.Table]:
        """These columns of all rows, if they exist, one chunk at a time."""
        for chunk in self.chunks.values():
            rows = chunk.rows.select([name for name in columns if name in chunk.rows.column_names])
            yield rows if chunk.alive.all() else rows.filter(pa.array(chunk.alive))

    # -- what a micro-batch does ----------------------------------------------------------------------------

    def due(
        self,
        new_rows: pa.Table,
        satisfied: Callable[[pa.Table], Bools] | None,
        number: int,
        closed: tuple[Bools, Places] | None = None,
    ) -> tuple[pa.Table, RetainedRows]:
        """The retained and new rows that satisfy a condition; and the other rows, to retain.

        Parameters
        ----------
        new_rows
            The new rows.
        satisfied
            None for no row.
        number
            The number of the micro-batch.
        closed
            Rows that are due in any case: which of the new ones, and the places of the retained ones.
        """
        is_due, places = (np.zeros(new_rows.num_rows, bool), {}) if closed is None else closed
        if satisfied is not None:
            is_due = is_due | satisfied(new_rows)
            places = union(places, self.where(satisfied))
        waited, due = self.rows(places), new_rows.filter(pa.array(is_due))
        due = due if waited is None else pa.concat_tables([waited.cast(due.schema), due])
        return due, self.without(places).with_rows(new_rows.filter(pa.array(~is_due)), number)

    def without(self, places: Places) -> RetainedRows:
        """The rows except those at these places."""
        chunks, lost = dict(self.chunks), dict(self.lost)
        for number, at in places.items():
            if len(at):
                chunks[number] = chunks[number].without(at)
                lost[number] = np.concatenate([lost[number], at]) if number in lost else at
        return replace(self, chunks=chunks, lost=lost)

    def with_rows(self, rows: pa.Table, number: int) -> RetainedRows:
        """The rows, with those that the micro-batch of this number adds."""
        if not rows.num_rows:
            return self
        like = next((chunk.rows.schema for chunk in self.chunks.values()), None)
        names = rows.column_names if like is None else like.names
        schema = like or pa.schema([pa.field(one.name, one.type) for one in rows.schema])
        chunk = _Chunk.of(rows.select(names).cast(schema).combine_chunks(), self.key)
        own = sum(_is_of(number, at) for at in self.chunks)
        return replace(self, chunks={**self.chunks, number * PER_MICRO_BATCH + own: chunk})

    def merged(self, number: int) -> RetainedRows:
        """The rows as retained after the micro-batch of this number."""
        chunks = _merged(self.chunks, number)
        gone = dict(self.gone)
        for chunk in self.chunks.keys() - chunks.keys():
            if self.chunks[chunk].count < len(self.chunks[chunk]):
                gone = {
                    at: one.without(np.flatnonzero(one.rows.column(_CHUNK).to_numpy() == chunk))
                    for at, one in gone.items()
                }
        lost = {chunk: at for chunk, at in self.lost.items() if chunk in chunks and not _is_of(number, chunk)}
        if lost:
            of = np.concatenate([np.full(len(at), chunk) for chunk, at in lost.items()])
            places = pa.table({_CHUNK: of, _PLACE: np.concatenate([*lost.values()])})
            gone[number * PER_MICRO_BATCH] = _Chunk.of(places, ())
        return RetainedRows(self.key, chunks, _merged(gone, number))

    def stored(
        self, name: str, number: int
    ) -> Iterator[tuple[str, Mapping[int, int], Mapping[int, pa.Table]]]:
        """The stored form after the micro-batch of this number, by names: how many rows each chunk has, and
        the new chunks.
        """
        rows, gone = self.written(number)
        for kind, chunks, new in ((name, self.chunks, rows), (f"{name}{GONE}", self.gone, gone)):
            yield kind, {at: len(chunk) for at, chunk in chunks.items()}, new

    def written(self, number: int) -> tuple[dict[int, pa.Table], dict[int, pa.Table]]:
        """The chunks that the micro-batch of this number made: of rows, and of places of removed rows."""
        rows, gone = (
            {at: chunk.rows for at, chunk in chunks.items() if _is_of(number, at)}
            for chunks in (self.chunks, self.gone)
        )
        return rows, gone


def union(one: Places, other: Places) -> Places:
    """The rows at the places of either."""
    return {
        number: np.union1d(one[number], other[number])
        if number in one and number in other
        else (one if number in one else other)[number]
        for number in {**one, **other}
    }


def _merged(chunks: Mapping[int, _Chunk], number: int) -> dict[int, _Chunk]:
    """The chunks after a micro-batch: those that it made or must rewrite become one, and chunks are
    merged.
    """
    anew = {at: chunk for at, chunk in chunks.items() if _is_of(number, at) or _is_thin(chunk)}
    left = {at: chunk for at, chunk in chunks.items() if at not in anew}
    if any(chunk.count for chunk in anew.values()):
        left[number * PER_MICRO_BATCH] = _Chunk.one(anew.values())
    sizes = sorted(((at, len(chunk)) for at, chunk in left.items()), key=lambda one: -one[1])
    retained, merges = merging(sizes, {at: chunk.count for at, chunk in left.items()}, number)
    parts: dict[int, list[_Chunk]] = {at: [] for at, _ in retained}
    for at, chunk in left.items():
        parts[merges.get(at, at)].append(chunk)
    return {at: _Chunk.one(some) if at in merges.values() else some[0] for at, some in parts.items()}


def _is_of(number: int, chunk: int) -> bool:
    """Whether the micro-batch of a number made a chunk."""
    return chunk // PER_MICRO_BATCH == number


def _is_thin(chunk: _Chunk) -> bool:
    count = chunk.count
    return count < len(chunk) and (len(chunk) <= SMALLEST or 2 * count <= len(chunk))
