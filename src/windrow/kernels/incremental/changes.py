"""The changelog of a micro-batch: rows that enter or leave, by instant, with signed counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windrow.kernels.chosen import chosen
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.packing.numbering import numbered, numbered_in_order
from windrow.kernels.zset.relation import AT, DIFF, ENTER, LEAVE, NEVER

__all__ = ["changes", "exceeding", "netted"]


def changes(rows: pa.Table, times: Times, sign: int | None = None) -> pa.Table:
    """The rows that enter and leave in a micro-batch, with `AT` and the count `DIFF`, +1 or −1.

    Parameters
    ----------
    rows
        With `ENTER` and `LEAVE`, which are left out of the output.
    sign
        1 for those that enter alone, −1 for those that leave.
    """
    enter, leave = rows.column(ENTER).to_numpy(), rows.column(LEAVE).to_numpy()
    others = rows.drop_columns([ENTER, LEAVE])
    enters = np.ones(len(enter), bool) if times.since is None else enter >= times.since
    leaves = leave != NEVER
    parts = []
    for which, instants, diff in ((leaves, leave, -1), (enters, enter, 1)):
        if sign not in (None, diff):
            continue
        moving, at = chosen(others, which), pa.array(instants[which])
        counts = pa.array(np.full(len(at), diff, np.int64))
        parts.append(
            pa.Table.from_arrays([*moving.columns, at, counts], names=[*others.column_names, AT, DIFF])
        )
    return pa.concat_tables(parts)


def netted(changes: pa.Table, compared: pa.Table | None = None) -> pa.Table:
    """The net changes: equal ones at one instant are merged, and zeros are dropped.

    `compared` has the values by which they are compared, if these differ from the rows' values.
    """
    keys = [name for name in changes.column_names if name != DIFF]
    group = numbered(changes if compared is None else compared, keys)
    count = np.bincount(group, changes.column(DIFF).to_numpy(), int(group.max(initial=-1)) + 1).astype(
        np.int64
    )
    place = np.zeros(len(count), np.int64)
    place[group[::-1]] = np.arange(len(group))[::-1]
    nonzero = np.flatnonzero(count)
    net = changes.select(keys).take(pa.array(place[nonzero]))
    return net.append_column(DIFF, pa.array(count[nonzero]))


def exceeding(
    changes: pa.Table, using: Sequence[str], sign: int, compared: pa.Table | None = None
) -> pa.Table:
    """The net changes that enter (`sign` 1) or leave (−1), as many as exceed their opposites.

    Opposites are changes at the same instant with equal values in the columns `using`. Of several rows, the
    first in the order of their values remain. `compared` is as in :func:`netted`.

    >>> rows = pa.table({"k": ["a", "a", "b"], "v": [1, 2, 3], AT: [1, 1, 1], DIFF: [2, -1, 1]})
    >>> exceeding(rows, ["k"], 1).to_pydict()
    {'k': ['a', 'b'], 'v': [1, 3], '__at': [1, 1], '__diff': [1, 1]}
    """
    count = changes.column(DIFF).to_numpy() * sign
    compared = changes if compared is None else compared
    group = numbered(compared, [AT, *using])
    more = np.bincount(group, count, int(group.max(initial=-1)) + 1).astype(np.int64)
    values = numbered_in_order(compared, [name for name in changes.column_names if name not in (AT, DIFF)])
    order = np.lexsort((values, group))
    copies, of = np.maximum(count[order], 0), group[order]
    before = np.cumsum(copies) - copies
    first = np.searchsorted(of, of)
    left = np.clip(more[of] - (before - before[first]), 0, copies)
    chosen = np.flatnonzero(left)
    found = changes.drop_columns([DIFF]).take(pa.array(order[chosen]))
    return found.append_column(DIFF, pa.array(left[chosen] * sign))
