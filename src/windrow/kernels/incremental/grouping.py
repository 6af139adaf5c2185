"""GROUP BY and DISTINCT whose state is aggregates, not rows; :func:`goes_on` says where that applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.incremental.operated import Operated, UnmatchedError, changed_in
from windrow.kernels.incremental.running import Added, Events, Gathering, MismatchError, Running, running
from windrow.kernels.incremental.tally import Tally
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.packing.numbering import numbered
from windrow.kernels.zset.group_and_time import by_group_and_time
from windrow.kernels.zset.grouped import merged
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER, with_one_zero

__all__ = ["RunningGroups", "goes_on"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


_ALL = "__all"
"""The constant key of groups without keys."""


def goes_on(operator: Keyed, schema: pa.Schema, *, appends: bool) -> bool:
    """Whether all aggregates of an operator are updated from their state, as COUNT(DISTINCT) is."""
    is_distinct = operator.name == "distinct" and {*schema.names} <= {*operator.keys}
    if not (is_distinct or operator.name == "group"):
        return False
    kinds = [(spec, _kind(schema, spec.argument)) for _, spec in operator.aggregates]
    return all(running(spec, kind, appends=appends) is not None for spec, kind in kinds)


def _kind(schema: pa.Schema, argument: str | None) -> pa.DataType:
    return pa.bool_() if argument is None else schema.field(argument).type


@dataclass(frozen=True, eq=False)
class _Pieces:
    """The intervals of groups that begin when something happens.

    Attributes
    ----------
    keys, places
        Of each group: its key, and the place of its numbers.
    group, instant
        Of each interval, in order: its group, and when it begins.
    which, piece
        What happened, in this order, and the interval that begins with each.
    """

    keys: pa.Table
    places: Ints
    group: Ints
    instant: Ints
    which: Ints
    piece: Ints


@dataclass
class RunningGroups(Operated):
    """Groups whose aggregates are all updated from state; it has the interface of :class:`Operated`."""

    groups: Tally = field(init=False)
    aggregates: list[Running] = field(init=False)
    otherwise: pa.Table | None = field(init=False)
    """The row of a group without keys while it is empty."""

    def empty(self) -> None:
        """Drop all state."""
        schema, keys = self.schemas[0], self.operator.keys
        self.sides, self.emitted, self.otherwise = [], None, None
        kinds = [schema.field(key) for key in keys] or [pa.field(_ALL, pa.int64())]
        self.groups = Tally(pa.schema(kinds), 1)
        found = [
            running(spec, _kind(schema, spec.argument), appends=self.appends)
            for _, spec in self.operator.aggregates
        ]
        self.aggregates = [each for each in found if each is not None]

    @property
    def state(self) -> dict[str, Any]:
        """As :attr:`Operated.state`."""
        own = {} if self.operator.keys else {"otherwise": self.otherwise}
        return {"groups": self.groups, "aggregates": self.aggregates, **own}

    @property
    def retained(self) -> int:
        """How many groups are retained, and values of these."""
        return len(self.groups) + sum(each.retained for each in self.aggregates)

    @property
    def looked_at(self) -> int:
        """How many groups, and values of these, it has read so far."""
        return self.groups.looked_at + sum(each.looked_at for each in self.aggregates)

    def forget(self, is_over: Callable[[pa.Table], Bools]) -> None:
        """As :meth:`Operated.forget`; it drops empty groups too."""
        values = self.groups.values
        gone = self.groups.forget_where(lambda keys, places: is_over(keys) | (values[places, 0] == 0))
        for aggregate in self.aggregates:
            aggregate.forget(gone)

    def everything(self, at: int) -> pa.Table:
        """All groups, from an instant on, if no row leaves them."""
        keys, places = self.groups.everything()
        values = [aggregate.values_of(places) for aggregate in self._gathering]
        times = [pa.array(np.full(len(places), instant)) for instant in (at, NEVER)]
        names = [*keys.column_names, *(name for name, _ in self.operator.aggregates), ENTER, LEAVE]
        made = pa.Table.from_arrays([*keys.columns, *values, *times], names=names)
        return made.select(self.result.names).cast(self.result)

    def drop(self, side: int, rows: pa.Table) -> None:  # noqa: ARG002 - there is one
        """As :meth:`Operated.drop`."""
        keys = rows.select(self.groups.schema.names).cast(self.groups.schema)
        places = self.groups.forget(keys)
        for aggregate in self.aggregates:
            aggregate.forget(places)

    def advance(self, changes: list[pa.Table | None], times: Times) -> pa.Table:
        """As :meth:`Operated.advance`."""
        rows, *others = changes
        defaults = [other for other in others if other is not None and other.num_rows]
        if defaults:
            self.otherwise = defaults[0].select([name for name, _ in self.operator.aggregates])
        has_rows = rows is not None and rows.num_rows > 0
        output = self._of_rows(rows, times) if has_rows else self.result.empty_table()
        if self.otherwise is not None and (defaults or has_rows):
            begin = defaults[0].column(ENTER)[0].as_py() if defaults else (times.since or 0) - 1
            row = self.otherwise.append_column(ENTER, pa.array([begin]))
            empty = [pa.Table.from_batches([batch]) for batch in self.operator.while_empty(row, output)]
            output = pa.concat_tables(
                [output, *(one.select(output.column_names).cast(output.schema) for one in empty)]
            )
        return changed_in(output, times).combine_chunks()

    def add(self, rows: pa.Table) -> None:
        """Add rows, none of which leaves, to groups whose values nothing reads yet; the rows' times do not
        count.
        """
        once = [pa.array(np.full(rows.num_rows, instant)) for instant in (0, NEVER)]
        for name, instants in zip((ENTER, LEAVE), once, strict=True):
            rows = rows.set_column(rows.column_names.index(name), name, instants)
        events, _ = self._events(rows, Times(None, 1))
        self._counted(events)
        for aggregate in self._gathering:
            aggregate.add(events)

    @property
    def _gathering(self) -> list[Gathering]:
        """The aggregates, of which all are such if no row leaves the groups."""
        found = [each for each in self.aggregates if isinstance(each, Gathering)]
        assert len(found) == len(self.aggregates)
        return found

    def _of_rows(self, rows: pa.Table, times: Times) -> pa.Table:
        """The groups of these rows in each interval of the micro-batch."""
        return self._output(*self._events(rows, times))

    def _events(self, rows: pa.Table, times: Times) -> tuple[Events, _Pieces]:
        """What happens in the groups of these rows, and the intervals that begin with it."""
        keys = self.operator.keys
        if not keys:
            keys = (_ALL,)
            rows = rows.append_column(_ALL, pa.array(np.zeros(rows.num_rows, np.int64)))
        enter, leave = (np.asarray(rows.column(name).to_numpy(), np.int64) for name in (ENTER, LEAVE))
        since = times.since
        enters = np.flatnonzero(enter >= since) if since is not None else np.arange(len(enter))
        leaves = np.flatnonzero(leave != NEVER)
        at = np.concatenate([enter[enters], leave[leaves]])
        place = np.concatenate([enters, leaves])
        sign = np.concatenate([np.ones(len(enters), np.int64), -np.ones(len(leaves), np.int64)])
        number = numbered(rows, keys)
        pieces = self._pieces(rows.select(keys), number, number[place], at, times)
        read = {spec.argument for _, spec in self.operator.aggregates if spec.argument is not None}
        arguments, which = rows.select(sorted(read)), pieces.which
        events = Events(
            arguments.take(pa.array(place[which])).combine_chunks() if arguments.num_columns else arguments,
            pieces.piece,
            sign[which],
            pieces.group,
            pieces.places,
        )
        return events, pieces

    def _pieces(self, keys: pa.Table, number: Ints, group: Ints, at: Ints, times: Times) -> _Pieces:
        """The intervals that begin when something happens in groups.

        Parameters
        ----------
        keys, number
            The keys of rows, and the number of the group of each.
        group, at
            For each thing that happens: the number of its group, and when.
        """
        if len(at) and int(at.max()) >= times.until:
            raise UnmatchedError
        first = np.full(int(number.max()) + 1, len(number))
        np.minimum.at(first, number, np.arange(len(number)))
        found = self.groups.find(with_one_zero(keys.take(pa.array(first))).combine_chunks())
        # an interval for the earlier state
        there = np.flatnonzero(self.groups.values[found.places, 0] > 0)
        group = np.concatenate([there, group])
        instant = np.concatenate([np.full(len(there), (times.since or 0) - 1), at])
        order = by_group_and_time(group, instant)
        group, instant = group[order], instant[order]
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(group) != 0) | (np.diff(instant) != 0)
        is_event = order >= len(there)
        piece, which = (np.cumsum(new) - 1)[is_event], order[is_event] - len(there)
        return _Pieces(found.keys, found.places, group[new], instant[new], which, piece)

    def _output(self, events: Events, pieces: _Pieces) -> pa.Table:
        """The groups in each interval in which they have rows."""
        try:
            return self._values(events, pieces.keys, pieces.instant)
        except MismatchError:
            raise UnmatchedError from None

    def _counted(self, events: Events) -> Ints:
        """How many rows the groups have in each interval."""
        changes = np.zeros(len(events.group), np.int64)
        np.add.at(changes, events.piece, events.sign)
        count = events.summed(changes, self.groups.values[events.places, 0])
        if (count < 0).any():
            raise MismatchError
        self.groups.values[events.places[events.group], 0] = count
        return count

    def _values(self, events: Events, groups: pa.Table, enter: Ints) -> pa.Table:
        count = self._counted(events)
        values = [aggregate.advance(events) for aggregate in self.aggregates]
        gone = events.places[self.groups.values[events.places, 0] == 0]
        if any(
            isinstance(each, Added) and each.numbers is not None and each.numbers.values[gone].any()
            for each in self.aggregates
        ):
            raise MismatchError  # the rows that have left are not those that entered
        leave = np.append(enter[1:], NEVER)
        leave[np.append(events.first[1:], len(events.group)) - 1] = NEVER
        is_present = count > 0
        chosen = pa.array(np.flatnonzero(is_present))
        row, since, until, output = merged(
            events.group[is_present],
            events.group[is_present],
            enter[is_present],
            leave[is_present],
            [value.take(chosen) for value in values],
        )
        keys = groups.take(pa.array(row))
        names = [*keys.column_names, *(name for name, _ in self.operator.aggregates), ENTER, LEAVE]
        columns = [*keys.columns, *output, pa.array(since), pa.array(until)]
        return pa.Table.from_arrays(columns, names=names).select(self.result.names).cast(self.result)
