"""The program of a query with EMIT, as data that is also sent to tasks, and its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.algebra.time_scale import TimeScale
from windrow.algebra.watermarks import WatermarkHistory as Marks
from windrow.algebra.watermarks import least_watermark
from windrow.kernels.incremental import (
    Completing,
    Delaying,
    Ending,
    Program,
    Run,
    Times,
    Versions,
    changes,
    first_above,
    netted,
)
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.zset.relation import AT, DIFF, ENTER, LEAVE, NEVER
from windrow.kernels.zset.time_windows import ticks_of
from windrow.punctuations.lines import line_of
from windrow.punctuations.regions import Lines, Region
from windrow.spark.live.operators.envelopes import as_instants, copies_of, enveloped
from windrow.spark.logs.arrived import PTIMES, before_end
from windrow.spark.logs.session_streams import ARRIVED, ROWTIME
from windrow.spark.relations.time_varying_relation import columns_of
from windrow.streams.entries import BEFORE

__all__ = [
    "MARK",
    "EmitProgram",
    "EmitRun",
    "EmitSource",
    "Promising",
    "first_part",
    "mark_before",
    "times_of",
]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MARK = "__mark"
"""The watermark that a row is below; NULL for others."""
_VERSION = "__version"

_Map = tuple[str, str]
"""How a watermark is mapped, and to which type."""


@dataclass(frozen=True)
class EmitSource:
    """A stream at one place of a query.

    Attributes
    ----------
    stream
        Its name.
    leaf
        The leaf of its rows in the program.
    reads
        The columns of its rows that are read.
    watermark_of
        The streams whose watermark decides which rows are late for groups; none if there are no such groups.
    lateness
        For how long after the watermark rows count, in ticks of the rowtime.
    """

    stream: str
    leaf: int
    reads: tuple[str, ...]
    watermark_of: frozenset[str]
    lateness: int

    def leaf_rows(
        self, rows: pa.Table, marks: Mapping[str, Marks], scales: Mapping[str, TimeScale]
    ) -> pa.Table:
        """New rows, with the columns of the program's input.

        Parameters
        ----------
        rows
            The rows, with `ARRIVED`, and, if they may be late for groups, with `ROWTIME` and `BEFORE`.
        marks, positions
            Up to which rowtime each stream was complete, over time, and the units of its rowtimes.
        """
        table = rows.select(self.reads)
        if self.watermark_of:
            table = table.append_column(MARK, self.mark_before(rows, marks, scales))
        never = pa.array(np.full(rows.num_rows, NEVER))
        return table.append_column(ENTER, rows.column(ARRIVED)).append_column(LEAVE, never)

    def mark_before(
        self, rows: pa.Table, marks: Mapping[str, Marks], scales: Mapping[str, TimeScale]
    ) -> pa.Array:
        """As :func:`mark_before`."""
        others = [before_end(scales[name], marks[name]) for name in sorted(self.watermark_of - {self.stream})]
        return mark_before(rows, others, self.lateness)


def mark_before(rows: pa.Table, others: Sequence[Marks], lateness: int) -> pa.Array:
    """The watermark before each row that is below it, minus the allowed lateness; NULL for others.

    Parameters
    ----------
    rows
        With `ROWTIME`, `ARRIVED` and `BEFORE`.
    others
        The same for each other stream with a part in the watermark.
    """
    before = rows.column(BEFORE).combine_chunks()
    if others:
        moved = least_watermark(others)
        since, values = [at + 1 for at, _ in moved], [value for _, value in moved]
        other = _last_of(since, values, rows.column(ARRIVED).to_numpy())
        before = pc.min_element_wise(before, other, skip_nulls=False)
    mark = pc.subtract(before, lateness)
    is_below = pc.less(rows.column(ROWTIME).combine_chunks(), mark)
    return pc.if_else(is_below, mark, pa.scalar(None, pa.int64()))


@dataclass(frozen=True, eq=False)
class EmitProgram:
    """A query.

    Attributes
    ----------
    program
        Its operators.
    sources
        The streams in it.
    positions
        The units of their rowtimes.
    streams
        The streams whose least watermark is that of the query.
    names, columns
        Its output: the column names in queries, and internally.
    hidden
        The prefix of columns that are not in the output.
    groups
        The columns by which changes are counted; None if they are not.
    complete
        The conditions by which rows are complete; None if completeness does not matter.
    delay
        For how long changes wait, in ticks of processing time, and the columns by which they wait together;
        None if they do not.
    over
        The conditions by which groups change no more, by their keys.
    maps
        The mappings of watermarks.
    stay
        How long keys stay after the watermark has passed them, in ticks of each stream.
    forgets
        Whether time alone drops all state.
    envelope
        The form of its changes.
    """

    program: Program
    sources: tuple[EmitSource, ...]
    scales: Mapping[str, TimeScale]
    streams: frozenset[str]
    names: tuple[str, ...]
    columns: tuple[str, ...]
    hidden: str
    groups: tuple[str, ...] | None
    complete: tuple[Ending, ...] | None
    delay: tuple[int, tuple[str, ...]] | None
    over: tuple[Ending, ...]
    maps: tuple[_Map, ...]
    stay: Mapping[str, int]
    forgets: bool
    envelope: str

    @property
    def schema(self) -> pa.Schema:
        """The first output of its operators, without `ENTER` and `LEAVE`."""
        output = self.program.outputs[0]
        return pa.schema([column for column in output.schema if column.name not in (ENTER, LEAVE)])

    @property
    def visible(self) -> list[tuple[str, str]]:
        """The columns of the output: their names in queries, and internally."""
        pairs = zip(self.names, self.columns, strict=True)
        return [(name, column) for name, column in pairs if not name.startswith(self.hidden)]


def first_part(program: EmitProgram) -> EmitProgram:
    """A query that ends in the middle of its operators: nothing waits, and nothing is counted."""
    return replace(program, groups=None, complete=None, delay=None, over=())


@dataclass(frozen=True)
class Promising:
    """Punctuation: since when it makes rows complete, and when the last one arrived."""

    since: Callable[[pa.Table], Ints]
    last: int


class EmitRun:
    """A query with EMIT, and its state.

    Parameters
    ----------
    program
        The query.
    operators
        The operators of its program.
    mapped
        Maps changes of a watermark to columns of event time: it adds a column for each of the program's
        `maps` to a table with ``at`` and ``mark``.
    """

    def __init__(self, program: EmitProgram, operators: Run, mapped: Callable[[pa.Table], pa.Table]) -> None:
        self.program, self.operators, self._map = program, operators, mapped
        self._known_marks: dict[tuple[int, int], tuple[int, ...]] = {}
        self.empty()

    def empty(self) -> None:
        """Drop all state."""
        self.operators.empty()
        program, schema = self.program, self.program.schema
        self._completing = self._delaying = None
        if program.delay is not None:
            delay, keys = program.delay
            self._delaying = Delaying(schema, keys, delay, self._lines)
        elif program.complete is not None:
            self._completing = Completing(schema, self._lines)
        self._versions = Versions(pa.schema([schema.field(name) for name in program.groups or ()]))

    @property
    def retained(self) -> int:
        """How many rows are in the state of the operators or buffered for a delay."""
        return self.operators.retained + (0 if self._delaying is None else len(self._delaying))

    @property
    def due(self) -> int | None:
        """When changes must be emitted, if no entry arrives; None for never."""
        return None if self._delaying is None else self._delaying.due

    @cached_property
    def _lines(self) -> Lines:
        """The lines of the columns that decide when rows are complete."""
        schema = self.program.schema
        return {each.column: line_of(schema.field(each.column).type) for each in self.program.complete or ()}

    def forget(self, marks: Mapping[str, Marks]) -> None:
        """Drop final groups, by the watermarks by which their last changes were emitted."""
        stay = self.program.stay
        moved = [[(at, mark - stay[name]) for at, mark in marks[name]] for name in self.program.streams]
        mapped = self._mapped(least_watermark(moved)[-1:])

        def is_over(closed: Sequence[Ending]) -> Callable[[pa.Table], Bools]:
            return lambda rows: _since(closed, mapped, rows) < NEVER

        self.operators.forget(is_over)
        if self.program.over:
            self._versions.forget(is_over(self.program.over))
        if self.program.complete is None:  # else they are requested again
            self._known_marks.clear()

    @property
    def state(self) -> dict[str, Any]:
        """The state, for :mod:`windrow.kernels.stored`."""
        own = {"completing": self._completing, "versions": self._versions}
        delaying = {} if self._delaying is None else {"delaying": self._delaying}
        return {"operators": self.operators.state, **own, **delaying}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self.operators.restore(state["operators"])
        self._completing, self._versions = state["completing"], state["versions"]
        self._delaying = state.get("delaying")

    def advance(
        self,
        new_rows: Sequence[pa.Table],
        marks: Mapping[str, Marks],
        span: tuple[int | None, int],
        origin: int | None = None,
        promising: Promising | None = None,
    ) -> pa.Table:
        """The changes after one processing time, up to another.

        Parameters
        ----------
        new_rows
            The new rows of each source.
        marks
            The changes of each stream's watermark, with their processing times.
        origin
            In the first call, the first processing time of the logs.
        promising
            The punctuation of the streams, if the query reads it.
        """
        return self.advance_leaves(self.leaves(new_rows, marks), marks, span, origin, promising)

    def leaves(self, new_rows: Sequence[pa.Table], marks: Mapping[str, Marks]) -> dict[int, pa.Table]:
        """The new rows of each source, as rows of leaves."""
        pairs = zip(self.program.sources, new_rows, strict=True)
        return {one.leaf: one.leaf_rows(rows, marks, self.program.scales) for one, rows in pairs}

    def advance_leaves(
        self,
        leaves: Mapping[int, pa.Table],
        marks: Mapping[str, Marks],
        span: tuple[int | None, int],
        origin: int | None = None,
        promising: Promising | None = None,
    ) -> pa.Table:
        """As :meth:`advance`, for rows of leaves."""
        times = times_of(span)
        (rows,) = self.operators.advance(leaves, times, origin)
        if self._completing is not None:
            rows = self._completing.advance(rows, *self._completed(marks, times, promising))
        changed = changes(rows.select([*self.program.columns, ENTER, LEAVE]), times)
        if self._delaying is not None:
            completed: tuple[Callable[[pa.Table], Ints] | None, Times, Sequence[Region] | None]
            waits = self.program.complete is None
            completed = (None, times, ()) if waits else self._completed(marks, times, promising)
            changed = copies_of(self._delaying.advance(changed, *completed))
        return self._in_envelope(changed)

    def _completed(
        self, marks: Mapping[str, Marks], times: Times, promising: Promising | None
    ) -> tuple[Callable[[pa.Table], Ints], Times, list[Region] | None]:
        """A function with the times since when rows are complete, by the watermarks of the streams; the
        times; and the regions of the rows that may have become complete.
        """
        complete = self.program.complete or ()
        watermark = least_watermark([marks[name] for name in self.program.streams])
        mapped = self._mapped(watermark)
        for entry in self._known_marks.keys() - set(watermark):
            del self._known_marks[entry]

        def since_when(rows: pa.Table) -> Ints:
            in_time = _since(complete, mapped, rows)
            return in_time if promising is None else np.minimum(in_time, promising.since(rows))

        has_news = times.since is None or (promising is not None and promising.last >= times.since)
        is_known = promising is None or not has_news
        return since_when, times, self._passed(mapped) if is_known else None

    def _passed(self, mapped: Mapping[_Map, tuple[Ints, Ints]]) -> list[Region]:
        """The regions of all rows that the watermark of one of the streams has passed."""
        complete = self.program.complete or ()
        first = min((each.origin for each in complete), default=None)
        found: list[Region] = []
        for each in complete:
            values, _ = mapped[each.mapped, each.kind]
            if each.origin == first and len(values):
                found.append({each.column: (self._lines[each.column].first, int(values.max()))})
        return found

    def _mapped(self, watermark: Marks) -> dict[_Map, tuple[Ints, Ints]]:
        """The mapped watermark in event-time columns, in ticks, with its times."""
        new = [entry for entry in watermark if entry not in self._known_marks]
        if new and self.program.maps:
            at, marks = zip(*new, strict=True)
            found = self._map(pa.table({"at": at, "mark": marks}))
            values = [column.to_pylist() for column in found.columns]
            self._known_marks |= {(row[0], row[1]): row[2:] for row in zip(*values, strict=True)}
        since = np.asarray([at for at, _ in watermark], np.int64)
        return {
            name: (np.asarray([self._known_marks[entry][number] for entry in watermark], np.int64), since)
            for number, name in enumerate(self.program.maps)
        }

    def _in_envelope(self, changed: pa.Table) -> pa.Table:
        """Changes in the envelope."""
        program = self.program
        names = [name for name, _ in program.visible]
        if program.envelope != "one-sql":
            own = changed.select([*(column for _, column in program.visible), AT, DIFF])
            inner = own.rename_columns([*columns_of(names), AT, DIFF])
            inner = netted(inner) if program.envelope == "diff" or _leaves(inner) else inner
            return enveloped(_in_order(inner), names, PTIMES, program.envelope)
        changed = copies_of(netted(changed)) if _leaves(changed) else changed
        order = tuple(map(SortKey, (AT, DIFF, *program.columns)))
        if program.groups is None:
            changed = _in_order(changed)
            changed = changed.append_column(_VERSION, pa.array(np.zeros(changed.num_rows, np.int64)))
        elif changed.num_rows:
            changed = self._versions.numbered(changed, order)
            at = changed.column(AT).to_numpy()
            if (at[1:] < at[:-1]).any():
                changed = changed.take(pa.array(np.argsort(at, kind="stable")))
        else:
            changed = changed.append_column(_VERSION, pa.array([], pa.int64()))
        undo = pc.less(changed.column(DIFF), 0)
        columns = [
            *(changed.column(column) for _, column in program.visible),
            undo,
            as_instants(changed.column(AT), PTIMES),
        ]
        return pa.Table.from_arrays(
            [*columns, changed.column(_VERSION)], names=[*names, "undo", "ptime", "ver"]
        )


def times_of(span: tuple[int | None, int]) -> Times:
    """The instants after one processing time, up to another."""
    since, until = span
    return Times(None if since is None else since + 1, until + 1)


def _since(closed: Iterable[Ending], mapped: Mapping[_Map, tuple[Ints, Ints]], rows: pa.Table) -> Ints:
    """The times since when rows are final: by any column of a stream, for all streams."""
    by_origin: dict[int, Ints] = {}
    for each in closed:
        column = rows.column(each.column)
        ticks = np.full(rows.num_rows, NEVER)
        valid = np.asarray(column.is_valid())
        ticks[valid] = ticks_of(column.drop_null())
        found = first_above(*mapped[each.mapped, each.kind], ticks)
        before = by_origin.get(each.origin)
        by_origin[each.origin] = found if before is None else np.minimum(before, found)
    return np.maximum.reduce([*by_origin.values()]) if by_origin else np.full(rows.num_rows, NEVER)


def _last_of(since: Sequence[int], values: Sequence[int], ticks: Ints) -> pa.Array:
    """The value of the last change at or before a tick; NULL before the first."""
    place = np.searchsorted(np.asarray(since, np.int64), ticks, side="right")
    found = np.asarray([0, *values], np.int64)[place]
    return pa.array(found, mask=place == 0)


def _in_order(changed: pa.Table) -> pa.Table:
    """Changes in the order of time, those that leave first."""
    place, _ = sorted_partitions(changed, (), (SortKey(AT), SortKey(DIFF)))
    return changed if place is None else changed.take(pa.array(place))


def _leaves(changed: pa.Table) -> bool:
    """Whether rows leave: otherwise no change retracts another."""
    return bool((changed.column(DIFF).to_numpy() < 0).any())
