"""What a SELECT computes from the rows in its windows: rows, groups or pairs that enter or leave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.incremental.timed_rows import TimedRows, Times
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.zset.group_and_time import by_group_and_time
from windrow.kernels.zset.grouped import grouped
from windrow.kernels.zset.join import overlapping
from windrow.kernels.zset.relation import ENTER, LEAVE, with_one_zero

__all__ = ["group", "join", "rows_of"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def rows_of(retained: TimedRows, times: Times, columns: Sequence[str], passes: str | None = None) -> pa.Table:
    """The rows that enter or leave.

    Parameters
    ----------
    columns
        The columns of the rows to emit.
    passes
        The column of a condition; rows for which it is not true are left out.
    """
    chosen = times.changed(retained.enter, retained.leave) & _passing(retained, passes)
    return _with_times(retained.rows, np.flatnonzero(chosen), retained, times, columns)


def group(
    retained: TimedRows,
    times: Times,
    key: tuple[str, ...],
    aggregates: Sequence[tuple[str, AggregateSpec]],
    passes: str | None = None,
) -> pa.Table:
    """The keys and aggregates of groups that a row enters or leaves, for each interval of their time."""
    passing = _passing(retained, passes)
    changed = times.changed(retained.enter, retained.leave) & passing
    chosen = retained.alike(key, changed) & times.seen(retained.enter, retained.leave) & passing
    places = np.flatnonzero(chosen)
    specs = [spec for _, spec in aggregates]
    needed = dict.fromkeys([*key, *(spec.argument for spec in specs if spec.argument is not None)])
    rows = _rows_at(retained.rows.select(list(needed)), places)
    enter, leave = times.clipped(retained.enter[places], retained.leave[places])
    keys = with_one_zero(rows.select(key))
    names = [*key, *(name for name, _ in aggregates), ENTER, LEAVE]
    made = []
    for row, begins, ends, values in grouped(rows, numbered(rows, key), enter, leave, specs):
        output = [*_rows_at(keys, row).columns, *values, pa.array(begins), pa.array(ends)]
        made.append(pa.Table.from_arrays(output, names=names))
    if not made:
        kinds = [*(keys.schema.field(name).type for name in key), *(spec.result_type for spec in specs)]
        nothing = [pa.array([], kind) for kind in (*kinds, pa.int64(), pa.int64())]
        return pa.Table.from_arrays(nothing, names=names)
    return pa.concat_tables(made)


def join(
    sides: tuple[TimedRows, TimedRows],
    times: Times,
    keys: tuple[tuple[str, ...], tuple[str, ...]],
    columns: tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str]]],
    passes: tuple[str | None, str | None] = (None, None),
) -> pa.Table:
    """The pairs of rows with equal keys of which one enters or leaves.

    Parameters
    ----------
    columns
        The columns of each side to return, and their names in the pairs.
    """
    left, right = sides
    passing = [_passing(side, condition) for side, condition in zip(sides, passes, strict=True)]
    changed = [
        times.changed(side.enter, side.leave) & passed for side, passed in zip(sides, passing, strict=True)
    ]
    # either row may change a pair: the changed rows of the left with all others, then the rest of the left
    still = times.seen(left.enter, left.leave) & passing[0] & ~changed[0]
    whole = times.seen(right.enter, right.leave) & passing[1]
    parts = [_pairs(sides, keys, changed[0], whole), _pairs(sides, keys, still, changed[1])]
    one, other = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    enter = np.maximum(left.enter[one], right.enter[other])
    leave = np.minimum(left.leave[one], right.leave[other])
    enter, leave = times.clipped(enter, leave)
    arrays, names = [], []
    for side, places, listed in zip(sides, (one, other), columns, strict=True):
        arrays += _rows_at(side.rows.select([name for name, _ in listed]), places).columns
        names += [name for _, name in listed]
    return pa.Table.from_arrays([*arrays, pa.array(enter), pa.array(leave)], names=[*names, ENTER, LEAVE])


def _pairs(
    sides: tuple[TimedRows, TimedRows],
    keys: tuple[tuple[str, ...], tuple[str, ...]],
    of_left: Bools,
    of_right: Bools,
) -> tuple[Ints, Ints]:
    """The places of the pairs of some rows of either side with equal keys that exist at the same time."""
    places = [np.flatnonzero(some) for some in (of_left, of_right)]
    both = pa.concat_tables(
        [
            _rows_at(side.rows.select(key), at).rename_columns([f"k{number}" for number in range(len(key))])
            for side, key, at in zip(sides, keys, places, strict=True)
        ]
    )
    count = len(places[0])
    group = numbered(both, tuple(both.column_names))
    known = np.ones(len(group), bool)
    for column in both.columns:
        known &= np.asarray(column.is_valid())
    sorted_sides, orders = [], []
    for side, at, part in zip(sides, places, (slice(0, count), slice(count, None)), strict=True):
        enter, leave = side.enter[at], side.leave[at]
        order = by_group_and_time(group[part], enter)
        order = order[known[part][order]]
        sorted_sides.append((group[part][order], enter[order], leave[order]))
        orders.append(at[order])
    one, other = overlapping(sorted_sides[0], sorted_sides[1])
    return orders[0][one], orders[1][other]


def _passing(retained: TimedRows, condition: str | None) -> Bools:
    if condition is None:
        return np.ones(len(retained), bool)
    return np.asarray(pc.fill_null(retained.rows.column(condition).combine_chunks(), False))


def _with_times(
    rows: pa.Table, places: Ints, retained: TimedRows, times: Times, columns: Sequence[str]
) -> pa.Table:
    enter, leave = times.clipped(retained.enter[places], retained.leave[places])
    chosen = _rows_at(rows.select(list(columns)), places)
    return pa.Table.from_arrays(
        [*chosen.columns, pa.array(enter), pa.array(leave)], names=[*columns, ENTER, LEAVE]
    )


def _rows_at(rows: pa.Table, places: Ints) -> pa.Table:
    if len(places) == rows.num_rows and len(places) and (np.diff(places) == 1).all():
        return rows
    return rows.take(pa.array(places)) if rows.num_columns else rows
