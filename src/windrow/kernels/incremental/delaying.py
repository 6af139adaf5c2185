"""AFTER DELAY, live: buffers the changes of a group until some time after the first of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.aggregates.windows import expanded
from windrow.kernels.hashing import hashes
from windrow.kernels.incremental.changes import netted
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.trace import Trace
from windrow.kernels.zset.relation import AT, DIFF, NEVER
from windrow.punctuations.lines import line_of
from windrow.punctuations.regions import Lines, Region

__all__ = ["Delaying"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_FIRST = "__first"
_TICKS = line_of(pa.int64())


@dataclass
class Delaying:
    """The buffered changes, and the timers of their groups.

    A timer is an entry by group: the time of the group's first change since its last emission. Buffered
    changes are netted, so a group has only the difference from its emitted rows.

    Parameters
    ----------
    schema
        The columns of the rows.
    keys
        The keys of the groups.
    delay
        For how long changes wait, in ticks of processing time.
    lines
        The lines of the keys that decide when groups are complete.
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    delay: int
    lines: Lines = field(default_factory=dict)
    timers: Trace = field(init=False)
    waiting: Trace = field(init=False)

    def __post_init__(self) -> None:
        of_timers = pa.schema([*(self.schema.field(key) for key in self.keys), pa.field(_FIRST, pa.int64())])
        self.timers = Trace(of_timers, self.keys, {**self.lines, _FIRST: _TICKS})
        self.waiting = Trace(self.schema, self.keys, notes=[DIFF])

    def __len__(self) -> int:
        return len(self.timers) + len(self.waiting)

    @property
    def looked_at(self) -> int:
        """How many retained rows it has read so far."""
        return self.timers.looked_at + self.waiting.looked_at

    @property
    def due(self) -> int | None:
        """When the next changes must be emitted, if no group becomes complete; None for never."""
        first = self.timers.least(_FIRST)
        return None if first is None else first + self.delay

    def advance(
        self,
        changes: pa.Table,
        since_when: Callable[[pa.Table], Ints] | None,
        times: Times,
        near: Sequence[Region] | None,
    ) -> pa.Table:
        """The net changes that are emitted in a micro-batch.

        Parameters
        ----------
        changes
            The changes of the micro-batch, with `AT` and `DIFF`.
        since_when
            The times since when groups are complete, as known by the end of the micro-batch; otherwise
            `NEVER`. None if they never are.
        near
            Regions that contain all groups that may have become complete; all, if that is unknown.
        """
        new = netted(changes.select([*self.schema.names, AT, DIFF]))
        places = self._timers_near(new, times, near)
        running = self.timers.rows(places)
        number, groups = self._groups(running, new)
        count = groups.num_rows
        first = np.full(count, NEVER)
        first[number[: len(places)]] = running.column(_FIRST).to_numpy()
        complete = np.full(count, NEVER) if since_when is None else since_when(groups)
        of_new = number[len(places) :]
        order = np.lexsort((new.column(AT).to_numpy(), of_new))
        new, of_new = new.take(pa.array(order)), of_new[order]
        emitted, when, now = _emissions(
            of_new, new.column(AT).to_numpy(), first, complete, self.delay, times.until
        )
        self.timers.remove(places[(now != first)[number[: len(places)]]])
        starts = (now != first) & (now != NEVER)
        self._start(groups.filter(pa.array(starts)), now[starts])
        changed = (when != NEVER) | np.isin(np.arange(count), of_new)
        return self._emitted(groups, np.flatnonzero(changed), when, _at(new, emitted))

    def _groups(self, running: pa.Table, new: pa.Table) -> tuple[Ints, pa.Table]:
        """The group of each timer and change, and a row for each group, with its key."""
        schema = pa.schema([self.timers.schema.field(key) for key in self.keys or (_FIRST,)])
        both = [running.select(schema.names), new.rename_columns({AT: _FIRST}).select(schema.names)]
        whole = pa.concat_tables([part.cast(schema) for part in both])
        number = numbered(whole, self.keys)
        one_of = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
        one_of[number[::-1]] = np.arange(len(number))[::-1]
        return number, whole.take(pa.array(one_of)).combine_chunks()

    def _timers_near(self, new: pa.Table, times: Times, near: Sequence[Region] | None) -> Ints:
        """The places of the timers of groups that change, are due, or may have become complete."""
        due: Region = {_FIRST: (_TICKS.first, max(times.until - self.delay, _TICKS.first))}
        regions = [{}] if near is None else [due, *near]
        found = self.timers.matching(regions)
        self.timers.looked_at += len(found)
        return np.union1d(self.timers.having(hashes(new, self.keys)), found)

    def _start(self, groups: pa.Table, first: Ints) -> None:
        columns = [*groups.select(self.keys).columns, pa.array(first)]
        self.timers.add(pa.Table.from_arrays(columns, schema=self.timers.schema))

    def _emitted(self, groups: pa.Table, changed: Ints, when: Ints, new: pa.Table) -> pa.Table:
        """The emitted changes of groups, at their times; `NEVER` marks changes that stay buffered."""
        found = self.waiting.find(groups.take(pa.array(changed)))
        waited = self.waiting.rows(found.places)
        diff = self.waiting.note(DIFF, found.places)
        self.waiting.remove(found.places)
        waited = waited.append_column(AT, pa.array(when[changed[found.probed]]))
        waited = waited.append_column(DIFF, pa.array(diff))
        net = netted(pa.concat_tables([waited, new.cast(waited.schema)]))
        waits = net.column(AT).to_numpy() == NEVER
        stays = net.filter(pa.array(waits))
        self.waiting.add(stays.select(self.schema.names), **{DIFF: stays.column(DIFF).to_numpy()})
        return net.filter(pa.array(~waits))


def _emissions(
    group: Ints, at: Ints, first: Ints, complete: Ints, delay: int, until: int
) -> tuple[Ints, Ints, Ints]:
    """When changes are emitted, by their groups and in order of time.

    Parameters
    ----------
    group, at
        The group and time of each change.
    first
        For each group, the first earlier change that is buffered, or `NEVER`.
    complete
        When it is complete, or `NEVER`.

    Returns
    -------
    emitted
        When each change is emitted: before `until`, or `NEVER`.
    when
        For each group, when its earlier buffered changes are emitted, or `NEVER`.
    first
        For each group, the first change that is then buffered, or `NEVER`.
    """
    emitted, when, first = np.full(len(at), NEVER), np.full(len(first), NEVER), first.copy()
    numbers = np.arange(len(first))
    place, stop = np.searchsorted(group, numbers, "left"), np.searchsorted(group, numbers, "right")
    instants, rank = np.unique(at, return_inverse=True)
    width = len(instants) + 1
    word = group * width + rank
    while True:
        begins = (first == NEVER) & (place < stop)
        first[begins] = at[place[begins]]
        due = np.where(first < until, first, until) + delay
        on_time = (first <= complete) & (complete <= due)
        due[on_time] = complete[on_time]
        fired = np.flatnonzero((first < until) & (due < until))
        if not len(fired):
            return emitted, when, first
        after = np.searchsorted(word, fired * width + np.searchsorted(instants, due[fired], "right"))
        of, row = expanded(place[fired], after)
        emitted[row] = due[fired[of]]
        is_first = when[fired] == NEVER
        when[fired[is_first]] = due[fired[is_first]]
        place[fired], first[fired] = after, NEVER


def _at(changes: pa.Table, at: Ints) -> pa.Table:
    """The changes, at other times."""
    return changes.set_column(changes.column_names.index(AT), AT, pa.array(at))
