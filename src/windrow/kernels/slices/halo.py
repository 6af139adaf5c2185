"""One pass over slices with short windows: every slice receives its halo, the rows in reach of its windows.

The size of the halo follows from the clause if its boundaries are a fixed number of rows from the label row.
No task knows which rows follow a slice. Each sends the nearest of its own rows, and the nearest of all rows
are among them. If fewer rows follow, the slice receives all of them, and their edge is the edge of the
sequence.

If windows end by the value of the first order key, they reach no further than a window that begins where the
next slice begins. This can be decided for each row by itself, and so can the rows to send.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.pairs import Array, PairRows, satisfied
from windrow.kernels.slices.predicate_analysis import columns, own_side, reads_positions, shifts
from windrow.kernels.sorting import SortKey, array_of_codes, cut_codes, one_array
from windrow.kernels.strategies.monotone import computes_integers, conjuncts, direction
from windrow.kernels.window_by import label_rows, only, results, windows_at
from windrow.kernels.window_plan import (
    ColumnRef,
    Operation,
    PairExpression,
    PositionOutput,
    RowOutput,
    Search,
    WindowPlan,
    sides_of,
)

__all__ = ["MOST", "Halo", "HaloReach", "finish_alone", "halo_of", "pieces"]

MOST = 10_000
"""Rows that each task sends to each slice."""
ROWS_AT_ONCE = 1 << 17
"""Rows of which a task finds the windows at once."""


@dataclass(frozen=True)
class HaloReach:
    """The reach of windows by the values of a key of integers, dates or times without NULLs.

    A window that begins at a row ends before the first row for which `ends` is true of both. `ends` increases
    with the row at which the window ends (side ``end``) and decreases with the others.
    """

    key: str
    ends: PairExpression
    constants: pa.Table

    def is_beyond(self, keys: pa.Array, edge: int) -> Array:
        """Whether windows that begin before a key end before rows of these keys; `edge` is its cut code.

        False if that cannot be computed.
        """
        both = pa.concat_arrays([keys, array_of_codes([edge], keys.type)])
        bounds = np.array([0, len(both)], np.int64)
        rows = PairRows(pa.table({self.key: both}), bounds, self.constants, (self.ends,))
        sides = {side: np.full(len(keys), len(keys), np.int64) for side in sides_of(self.ends)}
        try:
            return satisfied(self.ends, rows, {**sides, "end": np.arange(len(keys), dtype=np.int64)})
        except ExecutionError:  # possible for pairs of rows that no window evaluates
            return np.zeros(len(keys), bool)

    def spans(self, cuts: Iterable[int], kind: pa.DataType) -> bool:
        """Whether windows reach no further than one slice, whose first codes these are."""
        return all(
            bool(self.is_beyond(array_of_codes([following], kind), edge)[0])
            for edge, following in pairwise(cuts)
        )


@dataclass(frozen=True, slots=True)
class Halo:
    """How many rows before and after its own rows a slice needs; after them, beyond those in reach."""

    before: int
    after: int
    reach: HaloReach | None = None


def halo_of(plan: WindowPlan, key: SortKey | None = None) -> Halo | None:
    """The halo of a slice; None if the clause does not determine it.

    The clause determines it for sliding windows whose END is a fixed number of rows after the label row, or
    the first row searched, and whose START is a fixed number of rows before it. A boundary that is not found
    is then beyond the sequence's edge. With `key`, the first order key if it has a `HaloReach`, END may also
    be a fixed distance of that key after the label row.
    """
    if plan.tumbling or plan.first_only or plan.end is None:
        return None
    if plan.labels is not None and reads_positions(plan.labels):
        return None
    if any(isinstance(output, PositionOutput) for output in plan.outputs):
        return None
    own = own_side(plan)
    before = 0 if plan.start is None else _rows_to(plan.start, own, -1)
    after = 0 if plan.end.strategy == "always" else _rows_to(plan.end, own, 1)
    reach = None if key is None or after is not None else _reach(plan, own, key)
    if before is None or (after is None and reach is None) or before + (after or 0) > MOST:
        return None
    puts_out_around = any(isinstance(output, RowOutput) and output.shift for output in plan.outputs)
    looks_around = puts_out_around or _looks_around(plan.labels)
    if after is not None:
        return Halo(before + looks_around, after + looks_around)
    ends_around = _looks_around(plan.end.predicate)
    # after: the first row beyond, the one after it where END reads the row before, and the one beside that
    return Halo(before + (looks_around or ends_around), 1 + ends_around + looks_around, reach)


def _looks_around(predicate: PairExpression | None) -> bool:
    """Whether a predicate reads the rows beside its own."""
    return predicate is not None and len(shifts(predicate)) > 1


def _reach(plan: WindowPlan, own: str, key: SortKey) -> HaloReach | None:
    """The reach of windows that end where comparisons of the key become true."""
    search = plan.end
    if search is None or search.strategy != "monotone" or search.guard or key.descending:
        return None
    ends = search.predicate
    assert ends is not None
    if not plan.ansi and computes_integers(ends):
        return None  # they wrap round
    read = columns(ends)
    if sides_of(ends) != {"end", own} or reads_positions(ends):
        return None
    if any(ref.column != key.column or ref.rank is not None for ref in read):
        return None
    if any(ref.shift or ref.missing is not None for ref in read if ref.side == own):
        return None
    parts = conjuncts(ends)
    if any(direction(part, "end") != 1 or direction(part, own) != -1 for part in parts):
        return None
    return HaloReach(key.column, _unshifted(ends), plan.constants)


def _unshifted(expression: PairExpression) -> PairExpression:
    """The expression without shifts to neighbouring rows."""
    if isinstance(expression, ColumnRef):
        return replace(expression, shift=0, missing=None)
    if isinstance(expression, Operation):
        return replace(expression, operands=tuple(map(_unshifted, expression.operands)))
    return expression


def _rows_to(search: Search, base: str, way: int) -> int | None:
    """The distance of a boundary from the label row, if it is on this side of it."""
    if search.strategy != "position" or search.base != base or search.offset * way < 0:
        return None
    if search.comparison == "=":
        return abs(search.offset)
    if way > 0 and search.comparison in (">", ">="):
        return search.offset + 1
    return None


def pieces(halo: Halo, table: pa.Table, first: int, count: int) -> Iterator[tuple[pa.Table, int, int]]:
    """The rows of a slice in pieces that fit into the cache, each with the rows around it.

    Takes and yields the rows with those around them; the place of the first, and the number of its own rows.
    """
    for at in range(first, first + count, ROWS_AT_ONCE):
        stop = min(at + ROWS_AT_ONCE, first + count)
        low = max(at - halo.before, 0)
        beyond = stop if halo.reach is None else _beyond(halo.reach, table, stop)
        yield table.slice(low, beyond + halo.after - low), at - low, stop - at


def _beyond(reach: HaloReach, table: pa.Table, stop: int) -> int:
    """A row beyond the reach of windows that begin before `stop`; the number of rows if there is none."""
    if stop == table.num_rows:
        return stop
    steps = stop - 1 + (1 << np.arange((table.num_rows - stop).bit_length()))
    key = one_array(table.column(reach.key))
    (edge,) = cut_codes(pa.chunked_array([key.slice(stop - 1, 1)]), SortKey(reach.key)).tolist()
    is_beyond = reach.is_beyond(key.take(pa.array(steps)), edge)
    return int(steps[np.argmax(is_beyond)]) if is_beyond.any() else table.num_rows


def finish_alone(plan: WindowPlan, table: pa.Table, first: int, count: int) -> Iterator[pa.RecordBatch]:
    """The windows of a slice, from its rows and those around it: `count` are its own, from `first` on."""
    bounds = np.array([0, table.num_rows], np.int64)
    rows = PairRows(table, bounds, plan.constants, plan.expressions(), plan.ansi)
    label = label_rows(plan, rows, np.arange(first, first + count, dtype=np.int64))
    yield from results(plan, rows, only(plan, windows_at(plan, rows, label)))
