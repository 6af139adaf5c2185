"""Time windows over time-varying rows: which windows a row is in, and when.

The definition is :mod:`windrow.kernels.reference.time_windows`. Instants of event time are ticks. A row is in
the same windows of TUMBLE, HOP and CUMULATE all the time; its session changes with the other rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import ExecutionError
from windrow.kernels.aggregates.windows import expanded
from windrow.kernels.zset.elementary_intervals import elementary
from windrow.kernels.zset.group_and_time import by_group_and_time
from windrow.kernels.zset.grouped import parts

__all__ = ["WindowingFunction", "of_ticks", "overflow", "runs", "sessions", "ticks_of", "with_time"]

Ints = npt.NDArray[np.int64]

_LEAST, _GREATEST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class WindowingFunction:
    """A windowing function.

    Attributes
    ----------
    kind
        TUMBLE, HOP, CUMULATE or SESSION, this without a longest length.
    time
        The column of the times; rows without one are in no window.
    lengths
        Ticks, as :class:`windrow.algebra.rewriting.time_windows_as_sql.TimeWindow` has them.
    names
        The names of the added columns: start, end, and maybe the last instant.
    last
        How far the last instant is before the end.
    """

    kind: str
    time: str
    lengths: Mapping[str, int]
    names: tuple[str, ...]
    last: int

    def fits(self, ticks: Ints) -> bool:
        """Whether :meth:`fixed` certainly does not overflow."""
        reach = sum(map(abs, self.lengths.values()))
        return _fits(ticks, reach, reach)

    def fixed(self, ticks: Ints) -> tuple[Ints, Ints, Ints]:
        """The rows' windows of TUMBLE, HOP and CUMULATE: the places of the rows, begins, ends."""
        if not self.fits(ticks):
            raise overflow()
        length, offset = self.lengths["dur"], self.lengths.get("offset", 0)
        hop = self.lengths["hopsize"] if self.kind == "HOP" else length
        begin = ticks - (ticks - offset) % hop
        row = np.arange(len(ticks))
        if self.kind == "TUMBLE":
            return row, begin, begin + length
        if self.kind == "HOP":
            # the windows that begin up to here and end after it
            count = np.maximum(-((begin + length - ticks) // -hop), 0)
        else:
            count = (length - (ticks - begin) - 1) // self.lengths["step"] + 1
        row = np.repeat(row, count)
        number = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        if self.kind == "HOP":
            begin = begin[row] - number * hop
            return row, begin, begin + length
        return row, begin[row], begin[row] + length - number * self.lengths["step"]

    def pane(self, ticks: Ints) -> Ints:
        """The first tick of the pane of each row, in TUMBLE, HOP and CUMULATE: all its rows are in the same
        windows.
        """
        length, offset = self.lengths["dur"], self.lengths.get("offset", 0)
        if self.kind == "CUMULATE":
            begin, step = ticks - (ticks - offset) % length, self.lengths["step"]
            later = (begin + length - 1 - ticks) // step
            first: Ints = np.maximum(begin, begin + length - (later + 1) * step)
            return first
        shared = length if self.kind == "TUMBLE" else math.gcd(length, self.lengths["hopsize"])
        return ticks - (ticks - offset) % shared

    def with_columns(self, rows: pa.Table, begin: Ints, end: Ints) -> pa.Table:
        """Rows with the added columns."""
        kind = rows.schema.field(self.time).type
        for name, ticks in zip(self.names, (begin, end, end - self.last), strict=False):
            rows = rows.append_column(name, of_ticks(ticks, kind))
        return rows


def ticks_of(times: pa.ChunkedArray | pa.Array) -> Ints:
    """Times without NULLs, in ticks."""
    days = pa.types.is_date(times.type)
    return np.asarray(times.cast(pa.int32()).cast(pa.int64()) if days else times.cast(pa.int64()))


def of_ticks(ticks: Ints, kind: pa.DataType) -> pa.Array:
    """Ticks as times of a type."""
    return (pa.array(ticks).cast(pa.int32()) if pa.types.is_date(kind) else pa.array(ticks)).cast(kind)


def _fits(ticks: Ints, before: int, after: int) -> bool:
    """Whether int64 has room for so much before and after all of these."""
    if not len(ticks):
        return True
    return int(ticks.min()) - before >= _LEAST and int(ticks.max()) + after <= _GREATEST


def overflow() -> ExecutionError:
    """The error for times whose windows exceed int64."""
    return ExecutionError(
        "the end of a window does not fit into BIGINT",
        condition="ARITHMETIC_OVERFLOW",
        sqlstate="22003",
        hint="filter out rows whose times are that large",
    )


_LEAST, _GREATEST = -(2**63), 2**63 - 1


def runs(group: Ints, ticks: Ints, gap: int) -> tuple[Ints, Ints]:
    """Rows of a group in order of time, and their runs: within a run there is no longer gap.

    Returns
    -------
    order, run
        The places of the rows in order of group and time, and the number of the run of each of these.
    """
    order = by_group_and_time(group, ticks)
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(group[order]) != 0) | _is_beyond(ticks[order], gap)
    return order, np.cumsum(begins) - 1


def sessions(
    run: Ints, ticks: Ints, enter: Ints, leave: Ints, gap: int
) -> Iterator[tuple[Ints, Ints, Ints, Ints, Ints]]:
    """The sessions of rows, for each period in which they do not change.

    Rows of different runs are never in one session. A row is therefore processed again only if its run
    changes.

    Parameters
    ----------
    run, ticks, enter, leave
        Of each row, int64, in order of run and ticks.

    Yields
    ------
    row, begin, end, enter, leave

    Raises
    ------
    ExecutionError
        ``ARITHMETIC_OVERFLOW`` if a session ends after the last instant.
    """
    if not _fits(ticks, 0, gap):
        raise overflow()
    pieces = elementary(run, enter, leave)
    for part in parts(pieces):
        row, piece = expanded(pieces.first[part], pieces.stop[part])
        row = row + part.start
        by_piece = np.argsort(piece, kind="stable")
        time, of = ticks[row[by_piece]], piece[by_piece]
        begins = np.ones(len(time), bool)
        begins[1:] = (np.diff(of) != 0) | _is_beyond(time, gap)
        first = np.flatnonzero(begins)
        length = np.diff(first, append=len(time))
        begin, end = np.empty(len(time), np.int64), np.empty(len(time), np.int64)
        begin[by_piece] = np.repeat(time[first], length)
        end[by_piece] = np.repeat(time[first + length - 1] + gap, length)
        # the pieces of a row follow each other
        changes = np.ones(len(row), bool)
        changes[1:] = (np.diff(row) != 0) | (np.diff(begin) != 0) | (np.diff(end) != 0)
        since = np.flatnonzero(changes)
        until = np.append(since[1:], len(row)) - 1
        yield row[since], begin[since], end[since], pieces.enter[piece[since]], pieces.leave[piece[until]]


def _is_beyond(ticks: Ints, gap: int) -> npt.NDArray[np.bool_]:
    """Whether each tick but the first is more than the gap after the one before; ticks increase."""
    beyond: npt.NDArray[np.bool_] = np.diff(ticks.view(np.uint64)) > np.uint64(gap)
    return beyond


def with_time(rows: pa.Table, time: str) -> pa.Table:
    """The rows that have a time."""
    column = rows.column(time)
    return rows.filter(pc.is_valid(column)) if column.null_count else rows
