"""The changes of a micro-batch by key: upserts and deletes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.incremental.changes import netted
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.zset.relation import AT, DIFF

__all__ = ["Became", "upserts"]

_KEY = "__key"


@dataclass(frozen=True, eq=False)
class Became:
    """The upserts and deletes of keys.

    Attributes
    ----------
    rows
        For each changed key, its row, or its last row if it has none any more.
    at
        When the key changed last.
    is_there
        Whether it has a row now.
    was_there
        Whether it had a row before.
    twice
        The place of a row whose key has two rows at the same time; None if there is none.
    """

    rows: pa.Table
    at: npt.NDArray[np.int64]
    is_there: npt.NDArray[np.bool_]
    was_there: npt.NDArray[np.bool_]
    twice: int | None


def upserts(changes: pa.Table, key: Sequence[str], compared: pa.Table | None = None) -> Became:
    """The upserts and deletes from changes, which have `DIFF` and `AT`, in ticks, besides their columns.

    `compared` is as in :func:`windrow.kernels.incremental.netted`.
    """
    columns = [name for name in changes.column_names if name not in (AT, DIFF)]
    compared = changes if compared is None else compared
    of_change = numbered(compared, key)
    count = int(of_change.max(initial=-1)) + 1
    last = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(last, of_change, changes.column(AT).to_numpy())
    own, other = (
        rows.select([*columns, DIFF]).append_column(_KEY, pa.array(of_change)) for rows in (changes, compared)
    )
    net = netted(own, other)
    diff, group = net.column(DIFF).to_numpy(), net.column(_KEY).to_numpy()
    added = np.bincount(group, np.maximum(diff, 0), count)[group]
    removed = np.bincount(group, np.maximum(-diff, 0), count)[group]
    changed = np.flatnonzero((diff > 0) | (added == 0))
    twice = np.flatnonzero((added[changed] > 1) | (removed[changed] > 1))
    return Became(
        net.select(columns).take(pa.array(changed)),
        last[group[changed]],
        diff[changed] > 0,
        removed[changed] > 0,
        int(twice[0]) if len(twice) else None,
    )
