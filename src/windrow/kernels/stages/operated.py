"""Operators over relations that vary, a step at a time: what they hold, and what changes from step to step.

A step gives an operator the rows that enter or leave in it. The operator works on all rows of their keys, as
:class:`windrow.kernels.zset.stage.Keyed` would on all rows, and gives the rows that enter or leave by that. A
row that was there before a step enters a tick before it, and is given only when it leaves. It leaves with the
values with which it was given, also where adding the same floats again gives another last digit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.aggregates import Aggregate
from windrow.kernels.stages.held import Held, Times
from windrow.kernels.stages.operators import numbered
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.kernels.zset.stage import Keyed

__all__ = ["Operated", "UnmatchedError", "places_of", "told_in", "with_changes"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


_SAME_IN_ANY_ORDER = frozenset(
    {"bool_and", "bool_or", "count", "count_distinct", "count_if", "max", "median", "min", "percentile"}
)


class UnmatchedError(Exception):
    """A step that the operator cannot take, so that Spark is to evaluate all anew.

    Rows leave that are not held, as what makes them has given other values than it gave when they came; or
    numbers do not fit.
    """


@dataclass
class Operated:
    """An operator and the rows that it holds.

    Parameters
    ----------
    stage
        The operator.
    schemas
        The columns of each of its sides, without `ENTER` and `LEAVE`.
    result
        Those that it gives, with them.
    """

    stage: Keyed
    schemas: tuple[pa.Schema, ...]
    result: pa.Schema
    sides: list[Held] = field(init=False)
    given: Held | None = field(init=False)

    def __post_init__(self) -> None:
        self.empty()

    def empty(self) -> None:
        """Hold nothing."""
        none = np.zeros(0, np.int64)
        keys = (self.stage.keys,)
        self.sides = [Held.of(schema.empty_table(), none, none, none, keys) for schema in self.schemas]
        # of groups with values that depend on the order of the rows, what was told of each
        self.given = None
        if not all(map(self._is_exact, self.stage.aggregates)):
            told = self.result.empty_table().drop_columns([ENTER, LEAVE])
            self.given = Held.of(told, none, none, none, keys)

    def _is_exact(self, aggregate: tuple[str, Aggregate]) -> bool:
        """Whether an aggregate gives the same of the same rows in any order."""
        _, spec = aggregate
        if spec.function in _SAME_IN_ANY_ORDER or spec.argument is None:
            return True
        kind = self.schemas[0].field(spec.argument).type
        return spec.function in ("sum", "avg") and not pa.types.is_floating(kind)

    @property
    def held(self) -> int:
        """How many rows are held."""
        return sum(len(side) for side in self.sides)

    def step(self, changes: list[pa.Table | None], times: Times) -> pa.Table:
        """What changes by changes of its sides: rows with `ENTER` and `LEAVE`.

        Raises
        ------
        UnmatchedError
            With rows that leave and were not there; what is held is then no longer right.
        """
        for at, change in enumerate(changes):
            if change is not None and change.num_rows:
                self.sides[at], unknown = with_changes(self.sides[at], change, self.stage.keys, times)
                if unknown.num_rows:
                    raise UnmatchedError
        made = [self.result.empty_table()]
        for sides in self._work(times):
            batches = self.stage.rows(*sides)
            made += [
                told_in(pa.Table.from_batches([batch]).select(self.result.names).cast(self.result), times)
                for batch in batches
            ]
        self.sides = [side.at(times.until) for side in self.sides]
        told = pa.concat_tables(made).combine_chunks()
        return told if self.given is None else self._as_given(self.given, told, times)

    def _as_given(self, given: Held, told: pa.Table, times: Times) -> pa.Table:
        """The same, in which groups leave with the values with which they were given."""
        keys = self.stage.keys
        leaves = np.zeros(told.num_rows, bool)
        if times.since is not None:
            leaves = _ints(told, ENTER) < times.since
        if leaves.any():
            leaving = told.filter(pa.array(leaves))
            none = np.zeros(leaving.num_rows, np.int64)
            groups = Held.of(leaving.select(keys), none, none, none, (keys,))
            places, found = places_of(replace(given, rows=given.rows.select(keys)), groups, keys)
            if not found.all():
                raise UnmatchedError
            values = given.rows.take(pa.array(places))
            for name in (ENTER, LEAVE):
                values = values.append_column(self.result.field(name), leaving.column(name))
            others = told.filter(pa.array(~leaves))
            told = pa.concat_tables([values.select(self.result.names), others]).combine_chunks()
        self.given = with_changes(given, told, keys, times)[0].at(times.until)
        return told

    def _work(self, times: Times) -> list[tuple[pa.Table | None, ...]]:
        """The rows that the operator is to be given, once or twice."""
        seen = [times.seen(side.enter, side.leave) for side in self.sides]
        changed = [times.changed(side.enter, side.leave) for side in self.sides]
        if not any(some.any() for some in changed):
            return []
        touched = self._touched(changed)
        if self.stage.operator != "join":
            chosen = [self._chosen(at, seen[at] & touched[at], times) for at in range(len(self.sides))]
            return [tuple(table if table.num_rows else None for table in chosen)]
        # a pair changes by either row: those of the left that change with all, then the rest of the left
        left, right = seen
        keys = self.stage.keys
        of_left, of_right = (
            side.having(keys, self._marks(1 - at, changed[1 - at])) for at, side in enumerate(self.sides)
        )
        some = [(changed[0], right & of_right), (left & ~changed[0] & of_left, changed[1])]
        both = [tuple(self._chosen(at, which, times) for at, which in enumerate(pair)) for pair in some]
        return [pair for pair in both if all(table.num_rows for table in pair)]

    def _touched(self, changed: list[Bools]) -> list[Bools]:
        """The rows of either side with a key of which a row changes."""
        marks = [self._marks(at, some) for at, some in enumerate(changed)]
        whole = np.concatenate(marks)
        return [side.having(self.stage.keys, whole) for side in self.sides]

    def _marks(self, at: int, some: Bools) -> npt.NDArray[np.uint64]:
        return self.sides[at].marks[self.stage.keys][some]

    def _chosen(self, at: int, which: Bools, times: Times) -> pa.Table:
        side, places = self.sides[at], np.flatnonzero(which)
        rows = side.rows.take(pa.array(places)).combine_chunks()
        enter, leave = times.clipped(side.enter[places], side.leave[places])
        return rows.append_column(ENTER, pa.array(enter)).append_column(LEAVE, pa.array(leave))


def told_in(rows: pa.Table, times: Times) -> pa.Table:
    """Those of the rows that enter or leave in a step."""
    changed = times.changed(_ints(rows, ENTER), _ints(rows, LEAVE))
    return rows if changed.all() else rows.filter(pa.array(changed))


def with_changes(held: Held, changes: pa.Table, key: tuple[str, ...], times: Times) -> tuple[Held, pa.Table]:
    """What is held after rows have entered and left, and those of the rows that left without being held.

    Parameters
    ----------
    changes
        The rows, with `ENTER` and `LEAVE`.
    key
        One by which rows are looked up; equal rows have equal keys.
    """
    enter, leave = _ints(changes, ENTER), _ints(changes, LEAVE)
    rows = changes.drop_columns([ENTER, LEAVE])
    is_new = np.ones(len(enter), bool) if times.since is None else enter >= times.since
    unknown = changes.slice(0, 0)
    if not is_new.all():
        leaving = np.flatnonzero(~is_new)
        gone = rows.take(pa.array(leaving))
        places, found = places_of(held, Held.of(gone, leaving, leaving, leaving, (key,)), key)
        held = held.pushed(places, leave[leaving[found]])
        unknown = changes.take(pa.array(leaving[~found]))
        rows, enter, leave = rows.filter(pa.array(is_new)), enter[is_new], leave[is_new]
    chunk = np.zeros(len(enter), np.int64)
    return held.with_rows(Held.of(rows, enter, leave, chunk, (key,))), unknown


def places_of(held: Held, rows: Held, key: tuple[str, ...]) -> tuple[Ints, Bools]:
    """For each of some rows the place of an equal one that is held and stays, and which of them have one.

    Of equal ones each has its own. `key` is one by which the rows of both are marked.
    """
    candidates = np.flatnonzero(held.having(key, rows.marks[key]) & held.stays)
    both = pa.concat_tables([rows.rows, held.rows.take(pa.array(candidates))]).combine_chunks()
    group = numbered(both, both.column_names)
    wanted, offered = group[: len(rows)], group[len(rows) :]
    order, offers = np.argsort(wanted, kind="stable"), np.argsort(offered, kind="stable")
    wanted, offered = wanted[order], offered[offers]
    rank = np.arange(len(wanted)) - np.searchsorted(wanted, wanted, "left")
    place = np.searchsorted(offered, wanted, "left") + rank
    has_one = place < np.searchsorted(offered, wanted, "right")
    found = np.zeros(len(order), bool)
    found[order] = has_one
    places = np.zeros(len(order), np.int64)
    places[order[has_one]] = candidates[offers[place[has_one]]]
    return places[found], found


def _ints(table: pa.Table, name: str) -> Ints:
    return np.asarray(table.column(name).to_numpy(), np.int64)
