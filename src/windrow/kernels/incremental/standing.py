"""All rows of a relation at each of some instants, as RSTREAM returns them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.incremental.timed_rows import TimedRows, Times
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.zset.relation import AT, DIFF, NEVER

__all__ = ["Standing", "instants_of"]

Ints = npt.NDArray[np.int64]


class Standing:
    """The rows of a relation, each distinct one with its count."""

    def __init__(self) -> None:
        self._rows: pa.Table | None = None

    def advance(self, changes: pa.Table, instants: Ints) -> pa.Table:
        """The rows at each instant: their columns, `AT`, and their count in `DIFF`.

        Parameters
        ----------
        changes
            The rows that enter and leave in a micro-batch: columns, `AT` and `DIFF`.
        instants
            Instants of the micro-batch, in order.

        >>> changes = pa.table({"k": ["a", "b", "a"], AT: [1, 3, 5], DIFF: [1, 2, -1]})
        >>> standing = Standing()
        >>> standing.advance(changes, np.array([1, 3, 5])).to_pydict()
        {'k': ['a', 'a', 'b', 'b'], '__at': [1, 3, 3, 5], '__diff': [1, 1, 2, 2]}
        >>> standing.advance(changes.slice(0, 0), np.array([7])).to_pydict()
        {'k': ['b'], '__at': [7], '__diff': [2]}
        """
        whole = changes if self._rows is None else pa.concat_tables([self._rows, changes])
        names = [name for name in whole.column_names if name not in (AT, DIFF)]
        group, at = numbered(whole, names), whole.column(AT).to_numpy()
        order = np.lexsort((at, group))
        group, at = group[order], at[order]
        count = np.cumsum(whole.column(DIFF).to_numpy()[order])
        ends = np.append(group[1:] != group[:-1], True)[: len(group)]  # of a group
        before = np.concatenate([[0], count[ends]])
        count -= before[np.cumsum(ends) - ends]
        last = ends | np.append(at[1:] != at[:-1], True)[: len(at)]  # of a group at an instant
        until = np.full(int(last.sum()), NEVER)
        begins, stays = at[last], ends[last]
        until[:-1] = np.where(stays[:-1], NEVER, begins[1:])
        place, many = order[last], count[last]
        rows = whole.select(names)
        remains = stays & (many != 0)
        self._rows = _counted(rows, place[remains], np.full(int(remains.sum()), -NEVER), many[remains])
        first = np.searchsorted(instants, begins)
        times = np.where(many > 0, np.searchsorted(instants, until) - first, 0)
        of = np.repeat(np.arange(len(times)), times)
        within = np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times)
        seen = instants[first[of] + within]
        by_time = np.argsort(seen, kind="stable")
        of = of[by_time]
        return _counted(rows, place[of], seen[by_time], many[of])


def instants_of(retained: Sequence[TimedRows], times: Times) -> Ints:
    """The instants of a micro-batch at which a row enters or leaves one of these windows, in order."""
    found = np.unique(np.concatenate([one for rows in retained for one in (rows.enter, rows.leave)]))
    since = -NEVER if times.since is None else times.since
    return found[(found >= since) & (found < times.until)]


def _counted(rows: pa.Table, places: Ints, at: Ints, count: Ints) -> pa.Table:
    found = rows.take(pa.array(places, pa.int64()))
    return found.append_column(AT, pa.array(at, pa.int64())).append_column(DIFF, pa.array(count, pa.int64()))
