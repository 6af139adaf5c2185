"""The changelog of a micro-batch: rows that enter or leave, by instant, with signed counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.zset.relation import AT, DIFF, ENTER, LEAVE, NEVER

__all__ = ["changes", "netted"]


def changes(rows: pa.Table, times: Times) -> pa.Table:
    """The rows that enter and leave in a micro-batch, with `AT` and the count `DIFF`, +1 or −1.

    Parameters
    ----------
    rows
        With `ENTER` and `LEAVE`, which are left out of the output.
    """
    enter, leave = rows.column(ENTER).to_numpy(), rows.column(LEAVE).to_numpy()
    others = rows.drop_columns([ENTER, LEAVE])
    enters = np.ones(len(enter), bool) if times.since is None else enter >= times.since
    leaves = leave != NEVER
    parts = []
    for which, instants, diff in ((leaves, leave, -1), (enters, enter, 1)):
        chosen = others if which.all() else others.filter(pa.array(which))
        count = int(which.sum())
        at, counts = pa.array(instants[which]), pa.array(np.full(count, diff, np.int64))
        parts.append(
            pa.Table.from_arrays([*chosen.columns, at, counts], names=[*others.column_names, AT, DIFF])
        )
    return pa.concat_tables(parts)


def netted(changes: pa.Table) -> pa.Table:
    """The changes of which equal ones at one instant are one, and none is 0."""
    keys = [name for name in changes.column_names if name != DIFF]
    group = numbered(changes, keys)
    count = np.bincount(group, changes.column(DIFF).to_numpy(), int(group.max(initial=-1)) + 1).astype(
        np.int64
    )
    place = np.zeros(len(count), np.int64)
    place[group[::-1]] = np.arange(len(group))[::-1]
    nonzero = np.flatnonzero(count)
    net = changes.select(keys).take(pa.array(place[nonzero]))
    return net.append_column(DIFF, pa.array(count[nonzero]))
