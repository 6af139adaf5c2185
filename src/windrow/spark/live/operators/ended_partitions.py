"""Which partitions of a query's clauses have ended: punctuation has closed their keys.

If a clause is partitioned by columns of its streams, and a partition's key is closed, the clause waits for
nothing in that partition: its open windows and matches are those of the whole partition, and its state can be
dropped. Between the streams and the clause there may be row-by-row queries, UNION ALL, and clauses whose
partitions end with the same keys (:mod:`windrow.spark.live.reading.beside`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.advance import Ended
from windrow.kernels.advance.retained_rows import Bools, Marks, Places, RetainedRows
from windrow.kernels.hashing import hashes
from windrow.plan.arrow_types import contains
from windrow.punctuations import Closing, Cover, lines_of
from windrow.punctuations.regions import NULL, Lines, Region, is_exact
from windrow.spark.live.operators.punctuated.new_punctuation import new_patterns, schema_of
from windrow.spark.logs.clause_view import Ends
from windrow.streams import Position, WatermarkState

__all__ = [
    "ClosedPartitions",
    "ClosingStream",
    "Closings",
    "EndingPartitions",
    "closings_of",
    "key_hashes",
    "may_end",
    "watermarks_of",
]


@dataclass(frozen=True, eq=False)
class ClosingStream:
    """A stream whose punctuation closes partitions, as tasks have it too.

    Attributes
    ----------
    name
        Its name.
    schema, rowtime
        Its columns, and that of the rowtime.
    keys
        Those that are the keys of partitions, by the names of these.
    """

    name: str
    schema: pa.Schema
    rowtime: str | None
    keys: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are keys."""
        return tuple(dict.fromkeys(self.keys.values()))


Closings: TypeAlias = Mapping[str, tuple[ClosingStream, ...]]
"""The streams of each clause, by its key."""


def closings_of(ends: Mapping[str, Ends]) -> Closings:
    """The streams of the clauses whose partitions may end."""
    return {
        key: tuple(
            ClosingStream(each.name, schema_of(each.stream), each.stream.rowtime, each.keys) for each in one
        )
        for key, one in ends.items()
        if may_end(one)
    }


class ClosedPartitions:
    """The closed keys of each clause of a query. It changes with each micro-batch.

    It is rebuilt from the watermarks in a checkpoint, so the checkpoint need not contain it.

    Parameters
    ----------
    closings
        The streams of clauses whose partitions may end.
    """

    def __init__(self, closings: Closings) -> None:
        self._closings = closings
        self._known: tuple[int, dict[str, list[Closing]]] | None = None
        self._new: dict[str, list[Region]] = {}

    def take(
        self,
        number: int,
        last: int,
        before: Mapping[str, WatermarkState],
        after: Mapping[str, WatermarkState],
    ) -> bool:
        """Add the punctuation of a micro-batch; returns whether it closes more keys.

        Parameters
        ----------
        number, last
            The numbers of the micro-batch, and of the one before.
        before, after
            The watermarks of the streams before the micro-batch, and after it.
        """
        is_known = self._known is not None and self._known[0] == last
        known = self._known[1] if is_known and self._known is not None else self._made()
        self._new = {key: [] for key in self._closings}
        for key, one in self._closings.items():
            for source, closing in zip(one, known[key], strict=True):
                watermark = before.get(source.name) if is_known else None
                new = new_patterns(source.schema, source.rowtime, watermark, after[source.name])
                self._new[key] += closing.add(new)
        self._known = number, known
        return any(self._new.values())

    def _made(self) -> dict[str, list[Closing]]:
        return {
            key: [Closing(lines_of(source.schema), source.columns) for source in one]
            for key, one in self._closings.items()
        }

    def closed(self, key: str, rows: pa.Table) -> np.ndarray:
        """For each row of the only stream of a clause, whether its partition is closed: bool.

        If the stream reaches a clause in several ways, no row is: each row is in several partitions.
        """
        if self._known is None or len(self._closings.get(key, ())) != 1:
            return np.zeros(rows.num_rows, bool)
        ((source,), (closing,)) = self._closings[key], self._known[1][key]
        return closing.closed.matches(rows.select(source.columns))

    def closed_now(self, key: str, names: Sequence[str]) -> npt.NDArray[np.uint64] | None:
        """The hashes of a clause's keys, of columns in this order, that are closed since the last
        micro-batch.

        None if they are not listed one by one, or the clause's rows come in several ways.
        """
        sources = self._closings.get(key, ())
        if not sources:
            return np.zeros(0, np.uint64)
        if len(sources) > 1 or self._known is None:
            return None
        lines = self._known[1][key][0].closed.lines
        return key_hashes(self._new[key], lines, [sources[0].keys[name] for name in names])

    def ended(self, key: str, waiting: Callable[[str, tuple[str, ...]], pa.Table | None]) -> Ended | None:
        """The partitions of a clause that have ended; None if none has.

        Parameters
        ----------
        waiting
            Returns these columns of the buffered rows of a stream; None if they are many.
        """
        if key not in self._closings or self._known is None:
            return None
        found: Ended | None = None
        for source, closing in zip(self._closings[key], self._known[1][key], strict=True):
            closed = closing.closed
            if next(iter(closed), None) is None:
                return None
            rows = waiting(source.name, source.columns)
            if rows is None:
                return None
            one = Ended(source.keys, closed, _exactly(rows, closed) if rows.num_rows else None)
            found = one if found is None else replace(found, others=(*found.others, one))
        return found


def watermarks_of(positions: Mapping[str, Position]) -> dict[str, WatermarkState]:
    """The watermarks of streams."""
    return {name: one.watermark for name, one in positions.items()}


class EndingPartitions:
    """The partitions of the only clause of a query: they end at once, including buffered rows.

    Parameters
    ----------
    closed
        The closed keys of the query.
    key, partition
        The key of the clause, and the columns of its partitions.
    """

    def __init__(self, closed: ClosedPartitions, key: str, partition: Sequence[str]) -> None:
        self._closed, self._key, self._partition = closed, key, partition
        self._final: int | None = None

    def is_after(self, number: int, last: int, *, is_final: bool) -> None:
        """Record a micro-batch, and whether no rows of ended partitions are retained after it."""
        self._final = number if is_final or self._final == last else None

    def closed(
        self, new_rows: pa.Table, waits: RetainedRows, last: int
    ) -> tuple[Marks | None, tuple[Bools, Places]]:
        """The hashes of the keys closed since the last micro-batch, None if rows must be searched; and the
        rows of ended partitions, in the form of :meth:`RetainedRows.due`.
        """
        over = self._closed.closed_now(self._key, self._partition) if self._final == last else None
        is_closed = partial(self._closed.closed, self._key)
        return over, (
            is_closed(new_rows),
            waits.where(is_closed, None if over is None else waits.having(over)),
        )

    def ended(
        self, over: Marks | None, due: pa.Table, waiting: Callable[[str, tuple[str, ...]], pa.Table]
    ) -> Ended | None:
        """The partitions that have ended; None if none has.

        Parameters
        ----------
        over
            As of :meth:`closed`.
        due
            The due rows, and all of newly closed partitions.
        waiting
            As for :meth:`ClosedPartitions.ended`.
        """

        def still(name: str, columns: tuple[str, ...]) -> pa.Table:
            # rows of newly closed partitions are no longer buffered
            return waiting(name, columns) if over is None else due.slice(0, 0).select(columns)

        return self._closed.ended(self._key, still)


def may_end(ends: Ends) -> bool:
    """Whether keys may be closed before the stream is: by patterns, or by the watermark."""
    for one in ends:
        live, lines = one.stream.live, lines_of(schema_of(one.stream))
        if live is None or not all(column in lines for column in one.columns):
            return False
        kinds = one.stream.frame.schema
        if any(contains(kinds[column].dataType, "collated") for column in one.columns):
            return False  # patterns compare bytes
        if not live.has_patterns and one.stream.rowtime not in one.columns:
            return False
    return bool(ends)


def key_hashes(
    regions: Sequence[Region], lines: Lines, columns: Sequence[str]
) -> npt.NDArray[np.uint64] | None:
    """The hashes of these columns; None if they have several values in a region."""
    if not all(
        name in region and is_exact(lines[name], region[name]) for region in regions for name in columns
    ):
        return None
    spans = {name: [region[name] for region in regions] for name in columns}
    places = {name: [NULL if span is NULL else span[0] for span in own] for name, own in spans.items()}
    keys = pa.table({name: lines[name].array(own) for name, own in places.items()})
    return hashes(keys, columns)


def _exactly(rows: pa.Table, closed: Cover) -> Cover | None:
    """The keys of those rows that are closed."""
    rows = rows.filter(pa.array(closed.matches(rows)))
    keys = rows.group_by(rows.column_names).aggregate([])
    if not keys.num_rows:
        return None
    places = {name: closed.lines[name].places(keys.column(name)).tolist() for name in keys.column_names}
    missing = {name: keys.column(name).is_null().to_pylist() for name in keys.column_names}
    found = Cover(closed.lines)
    for at in range(keys.num_rows):
        found.add_region(
            {
                name: None if missing[name][at] else closed.lines[name].point(places[name][at])
                for name in keys.column_names
            }
        )
    return found
