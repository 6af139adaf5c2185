"""Operators over time-varying relations whose state is rows: joins, groups and others, by micro-batch.

An operator processes the rows that enter or leave in a micro-batch. It recomputes all rows of the affected
keys, as :class:`windrow.kernels.zset.keyed_operator.Keyed` computes all rows, and emits the differences. A
row from before the micro-batch has an ENTER a tick before it, and is emitted again only when it leaves. It
leaves with the values with which it was emitted, even if a float sum has another last digit by then.

The state is the present rows of the inputs, in a :class:`windrow.kernels.trace.Trace`. So a micro-batch
costs what it receives, and the present rows of the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import WindrowError
from windrow.kernels.aggregates import FUNCTIONS, AggregateSpec
from windrow.kernels.hashing import hashes
from windrow.kernels.incremental.timed_rows import Times
from windrow.kernels.trace import Trace
from windrow.kernels.zset.keyed_operator import OF_PARTNERS, Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER

__all__ = ["Moves", "Operated", "UnmatchedError", "changed_in"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Marks = npt.NDArray[np.uint64]

_STORED = {"given": "emitted"}
"""The names in checkpoints of attributes that have another name."""

_TIMES = (pa.field(ENTER, pa.int64()), pa.field(LEAVE, pa.int64()))


class UnmatchedError(Exception):
    """A micro-batch that the operator cannot process, so that Spark must recompute everything.

    Rows leave that are not retained, because they were computed with other values than when they entered; or
    numbers do not fit. `reason` is the error for the user.
    """

    def __init__(self, reason: WindrowError | None = None) -> None:
        super().__init__()
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Moves:
    """The rows added to a trace and removed from it in a micro-batch.

    Attributes
    ----------
    places, leave
        Where the rows are that were there before and leave, and when they do.
    entering
        The rows that enter, with `ENTER` and `LEAVE`; they may leave in the micro-batch too.
    unknown
        Rows that leave and were not present.
    """

    places: Ints
    leave: Ints
    entering: pa.Table
    unknown: pa.Table

    @staticmethod
    def of(trace: Trace, changes: pa.Table, times: Times) -> Moves:
        """The moves of rows that enter or leave, with `ENTER` and `LEAVE`."""
        enter = _ints(changes, ENTER)
        is_new = np.ones(len(enter), bool) if times.since is None else enter >= times.since
        none = np.zeros(0, np.int64)
        if is_new.all():
            return Moves(none, none, changes, changes.slice(0, 0))
        leaving = changes.filter(pa.array(~is_new))
        places, found = trace.equals(leaving)
        leave = _ints(leaving, LEAVE)
        return Moves(places, leave[found], changes.filter(pa.array(is_new)), leaving.filter(pa.array(~found)))

    def done(self, trace: Trace, times: Times) -> None:
        """Update the trace to the rows that are present after the micro-batch."""
        trace.remove(self.places)
        stay = _ints(self.entering, LEAVE) >= times.until
        trace.add(self.entering if stay.all() else self.entering.filter(pa.array(stay)))

    def changed(self, trace: Trace, times: Times) -> pa.Table:
        """The rows that move, those that leave first."""
        return pa.concat_tables([_timed(trace.rows(self.places), times, self.leave), self.entering])

    def others(self, trace: Trace, marks: Marks, times: Times) -> pa.Table:
        """The rows with keys of these hashes that were present before, and stay."""
        places = np.setdiff1d(trace.having(marks), self.places, assume_unique=True)
        return _timed(trace.rows(places), times, np.full(len(places), NEVER))

    def whole(self, trace: Trace, marks: Marks, times: Times) -> pa.Table:
        """The rows with keys of these hashes that are present at some instant, in order of arrival; and
        possibly others that enter.
        """
        places = trace.having(marks)
        leave = np.full(len(places), NEVER)
        known = np.isin(self.places, places)
        leave[np.searchsorted(places, self.places[known])] = self.leave[known]
        return pa.concat_tables([_timed(trace.rows(places), times, leave), self.entering])


@dataclass
class Operated:
    """An operator and its retained rows.

    Parameters
    ----------
    operator
        The operator.
    schemas
        The columns of each of its sides, without `ENTER` and `LEAVE`.
    result
        The columns of its output, including the times.
    appends
        Whether no row of its sides ever leaves.
    """

    operator: Keyed
    schemas: tuple[pa.Schema, ...]
    result: pa.Schema
    appends: bool = False
    sides: list[Trace] = field(init=False)
    emitted: Trace | None = field(init=False)

    def __post_init__(self) -> None:
        self.empty()

    def empty(self) -> None:
        """Drop all state."""
        keys = self.operator.keys
        self.sides = [Trace(schema, keys) for schema in self.schemas]
        # the emitted row of each group, if values depend on the order of the rows
        is_exact = all(map(self._is_exact, self.operator.aggregates))
        output = pa.schema([column for column in self.result if column.name not in (ENTER, LEAVE)])
        self.emitted = None if is_exact else Trace(output, keys)

    def _is_exact(self, aggregate: tuple[str, AggregateSpec]) -> bool:
        """Whether an aggregate of the same rows is the same in any order."""
        _, spec = aggregate
        kind = pa.null() if spec.argument is None else self.schemas[0].field(spec.argument).type
        return FUNCTIONS[spec.function].in_any_order(kind)

    @property
    def retained(self) -> int:
        """How many rows are retained."""
        return sum(map(len, self.sides))

    @property
    def looked_at(self) -> int:
        """How many retained rows it has read so far."""
        return sum(trace.looked_at for trace in self.sides)

    @property
    def state(self) -> dict[str, Any]:
        """The state between micro-batches, by the names in checkpoints."""
        return {"sides": self.sides, "given": self.emitted}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        for name in self.state:
            setattr(self, _STORED.get(name, name), state[name])

    def is_due(self, times: Times) -> bool:  # noqa: ARG002 - of some
        """Whether its output changes in a micro-batch without changes of its sides."""
        return False

    def forget(self, is_over: Callable[[pa.Table], Bools]) -> None:
        """Drop the state of keys that are final; `is_over` finds their rows."""
        for trace in (*self.sides, *([] if self.emitted is None else [self.emitted])):
            trace.remove(trace.where(is_over))

    def drop(self, side: int, rows: pa.Table) -> None:
        """Drop rows of a side that change nothing any more; of groups, all rows of theirs."""
        if not rows.num_rows:
            return
        trace = self.sides[side]
        places, _ = trace.equals(rows.select(trace.schema.names))
        trace.remove(places)
        if self.emitted is not None:
            self.emitted.remove(np.unique(self.emitted.find(rows).places))

    def advance(self, changes: list[pa.Table | None], times: Times) -> pa.Table:
        """The changes of the output by changes of its sides: rows with `ENTER` and `LEAVE`.

        Raises
        ------
        UnmatchedError
            For rows that leave and were not present; the state is then no longer valid.
        """
        moves = []
        for trace, change in zip(self.sides, changes, strict=True):
            schema = pa.schema([*trace.schema, *_TIMES])
            rows = schema.empty_table() if change is None else change.select(schema.names).cast(schema)
            moves.append(Moves.of(trace, rows, times))
            if moves[-1].unknown.num_rows:
                raise UnmatchedError
        made = [self.result.empty_table()]
        for sides in self._work(moves, times):
            batches = self.operator.rows(*(side if side.num_rows else None for side in sides))
            made += [
                changed_in(pa.Table.from_batches([batch]).select(self.result.names).cast(self.result), times)
                for batch in batches
            ]
        for trace, each in zip(self.sides, moves, strict=True):
            each.done(trace, times)
        output = pa.concat_tables(made).combine_chunks()
        return output if self.emitted is None else self._as_emitted(self.emitted, output, times)

    def _as_emitted(self, emitted: Trace, output: pa.Table, times: Times) -> pa.Table:
        """The output, in which groups leave with the values with which they were emitted."""
        leaves = np.zeros(output.num_rows, bool)
        if times.since is not None:
            leaves = _ints(output, ENTER) < times.since
        if leaves.any():
            leaving = output.filter(pa.array(leaves))
            found = emitted.find(leaving)
            order = np.argsort(found.probed, kind="stable")
            if not np.array_equal(found.probed[order], np.arange(leaving.num_rows)):
                raise UnmatchedError
            values = emitted.rows(found.places[order])
            for name in (ENTER, LEAVE):
                values = values.append_column(self.result.field(name), leaving.column(name))
            others = output.filter(pa.array(~leaves))
            output = pa.concat_tables([values.select(self.result.names), others]).combine_chunks()
        moves = Moves.of(emitted, output, times)
        moves.done(emitted, times)
        return output

    def _work(self, moves: list[Moves], times: Times) -> Iterator[tuple[pa.Table, ...]]:
        """The rows that the operator processes, in one or two passes."""
        changed = [each.changed(trace, times) for each, trace in zip(moves, self.sides, strict=True)]
        marks = [hashes(rows, self.operator.keys) for rows in changed]
        if not any(map(len, marks)):
            return
        of_partners = self.operator.name in OF_PARTNERS
        if self.operator.name != "join" and not of_partners:
            affected = np.concatenate(marks)
            yield tuple(
                self._near(each.whole(trace, affected, times), times)
                for each, trace in zip(moves, self.sides, strict=True)
            )
            return
        # either row may change a pair: the changed rows of the left with all others, then its other rows
        if changed[0].num_rows:
            yield changed[0], moves[1].whole(self.sides[1], marks[0], times)
        if changed[1].num_rows:
            others = moves[1].whole(self.sides[1], marks[1], times) if of_partners else changed[1]
            yield moves[0].others(self.sides[0], marks[1], times), others

    def _near(self, rows: pa.Table, times: Times) -> pa.Table:  # noqa: ARG002 - of some
        """Of the rows with affected keys, those that may change."""
        return rows


def changed_in(rows: pa.Table, times: Times) -> pa.Table:
    """The rows that enter or leave in a micro-batch."""
    changed = times.changed(_ints(rows, ENTER), _ints(rows, LEAVE))
    return rows if changed.all() else rows.filter(pa.array(changed))


def _timed(rows: pa.Table, times: Times, leave: Ints) -> pa.Table:
    """Rows from before a micro-batch, with the instants of their changes in it."""
    assert times.since is not None or not rows.num_rows
    enter = np.full(rows.num_rows, (times.since or 0) - 1)
    return rows.append_column(ENTER, pa.array(enter)).append_column(LEAVE, pa.array(leave))


def _ints(table: pa.Table, name: str) -> Ints:
    return np.asarray(table.column(name).to_numpy(), np.int64)
