"""The first rows of each key, over rows that never leave: its state is only the requested number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.hashing import hashes
from windrow.kernels.incremental.operated import Operated
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.sorting import sorted_partitions
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER

__all__ = ["FirstRows", "is_bounded"]

Ints = npt.NDArray[np.int64]


def is_bounded(operator: Keyed, *, appends: bool) -> bool:
    """Whether rows after the first ones can never become first."""
    return operator.first is not None and operator.first.limit is not None and appends


@dataclass
class FirstRows(Operated):
    """Retains only the requested number of rows for each key: rows after them never become first."""

    def advance(self, changes: list[pa.Table | None], times: Times) -> pa.Table:
        """As :meth:`Operated.advance`."""
        (new_rows,) = changes
        if new_rows is None or not new_rows.num_rows:
            return self.result.empty_table()
        enter, leave = (new_rows.column(name).to_numpy() for name in (ENTER, LEAVE))
        is_at_once = (enter == enter[0]).all() and (leave == NEVER).all()
        if is_at_once and (times.since is None or enter[0] >= times.since):
            return self._at_once(new_rows, int(enter[0]), times)
        output, first, (trace,) = super().advance(changes, times), self.operator.first, self.sides
        assert first is not None
        assert first.limit is not None
        places = trace.having(hashes(new_rows, self.operator.keys))
        order, bounds = sorted_partitions(trace.rows(places), self.operator.keys, first.order)
        rank = np.arange(len(places)) - np.repeat(bounds[:-1], np.diff(bounds))
        behind = np.flatnonzero(rank >= first.offset + first.limit)
        trace.remove(places[behind if order is None else order[behind]])
        return output

    def _at_once(self, new_rows: pa.Table, instant: int, times: Times) -> pa.Table:
        """The changes by rows that all enter at one instant: retained and new rows are ranked together."""
        first, keys, (trace,) = self.operator.first, self.operator.keys, self.sides
        assert first is not None
        assert first.limit is not None
        new = new_rows.select(trace.schema.names).cast(trace.schema).combine_chunks()
        places = trace.having(hashes(new, keys))
        # without keys and an order at least one: rows without columns cannot be counted
        read = list(dict.fromkeys([*keys, *(key.column for key in first.order)])) or new.column_names[:1]
        whole = pa.concat_tables([trace.rows(places, read), new.select(read)]).combine_chunks()
        order, bounds = sorted_partitions(whole, keys, first.order)
        place = np.arange(whole.num_rows) if order is None else order
        sizes, is_old = np.diff(bounds), place < len(places)
        rank = np.arange(len(place)) - np.repeat(bounds[:-1], sizes)
        old_before: Ints = np.cumsum(is_old) - is_old
        rank_before: Ints = old_before - np.repeat(old_before[bounds[:-1]], sizes)
        stop = first.offset + first.limit
        is_first = (rank >= first.offset) & (rank < stop)
        was_first = is_old & (rank_before >= first.offset) & (rank_before < stop)
        leaving = places[place[was_first & ~is_first]]
        entering = place[is_first & ~was_first]
        is_new = entering >= len(places)  # with an offset, a retained row may become first
        changed = [
            (trace.rows(leaving), (times.since or 0) - 1, instant),
            (trace.rows(places[entering[~is_new]]), instant, NEVER),
            (new.take(pa.array(entering[is_new] - len(places))), instant, NEVER),
        ]
        retained = np.sort(place[~is_old & (rank < stop)]) - len(places)
        trace.remove(places[place[is_old & (rank >= stop)]])
        trace.add(new.take(pa.array(retained)))
        return pa.concat_tables([self._timed(*each) for each in changed]).combine_chunks()

    def _timed(self, rows: pa.Table, enter: int, leave: int) -> pa.Table:
        """Rows with the same times."""
        for name, instant in ((ENTER, enter), (LEAVE, leave)):
            rows = rows.append_column(name, pa.array(np.full(rows.num_rows, instant)))
        return rows.select(self.result.names).cast(self.result)
