"""The watermark of a stream in a bucket, and the decisions about its rows.

Of one producer, tasks summarise the entries that they read, and a bucket judges its own rows by these
summaries (:mod:`windrow.streams.admission.parts`). Several producers wait for each other, and a row that
matches a punctuation may be the first of its producer. So every bucket gets the rowtimes, bounds and
producers of all entries, with punctuations all their columns, and judges all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.spark.live.executors.as_bytes import from_bytes
from windrow.spark.live.executors.bucket_state import StreamMark
from windrow.spark.live.executors.bucket_task import BucketTask, TaskStream
from windrow.spark.live.executors.input.packing import BOUNDED, INDEX, LIMIT, SEEN
from windrow.spark.live.input.arrivals import decided_one_by_one, entries_in, with_idle
from windrow.spark.logs.live_source import PLACE
from windrow.streams.admission.parts import BatchPart, EntrySummary, judge_part
from windrow.streams.admission.several_producers import SharedWatermark
from windrow.streams.entries import NO_BOUND, Decision, EntryKind, Ints

__all__ = ["Admission", "Decisions", "begun_mark", "mark_of"]

Note = Mapping[str, Any]


def begun_mark(stream: TaskStream) -> StreamMark:
    """The watermark information of a stream without entries."""
    return SharedWatermark() if stream.is_judged_by_all else EntrySummary()


def mark_of(data: Any) -> StreamMark:
    """The watermark information that was stored as `data`."""
    return SharedWatermark.of(data) if isinstance(data, str) else EntrySummary(*data)


@dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions about rows: the bound that each refused one is below, or the greatest rowtime that it may
    have; and the stream's watermark before each late one.
    """

    decision: npt.NDArray[np.int8]
    violated: Ints
    before: Ints

    def at(self, places: Ints) -> Decisions:
        """Those about the rows at these places."""
        return Decisions(self.decision[places], self.violated[places], self.before[places])


class Admission:
    """The decisions about the entries of a micro-batch.

    Parameters
    ----------
    task
        The query.
    marks
        The watermark information of each stream before the micro-batch, which is updated.
    notes
        What tasks have summarised.
    entries
        The notes with ``"judge"``, and the entries that they are about, as bytes.
    now
        The time of the micro-batch, in microseconds.
    """

    def __init__(
        self,
        task: BucketTask,
        marks: dict[int, StreamMark],
        notes: Sequence[Note],
        entries: Iterable[tuple[Note, bytes]],
        now: int,
    ) -> None:
        self._streams, self._before = task.streams, dict[tuple[int, str], EntrySummary]()
        self._known = dict[tuple[int, str, int], Decisions]()
        given = list(entries)
        for place, stream in enumerate(task.streams):
            mark = marks[place]
            if isinstance(mark, EntrySummary):
                marks[place] = self._summarised(place, mark, notes)
            else:
                own = [one for one in given if one[0]["judge"] == place]
                marks[place] = self._all_judged(place, stream, mark, own, now)

    def of(self, note: Note, place: int, rows: pa.Table) -> Decisions:
        """The decisions about rows of a stream, which have this note."""
        stream, order = self._streams[place], json.dumps(note["order"])
        if stream.is_judged_by_all:
            return self._known[place, order, note["place"]].at(rows.column(INDEX).to_numpy())
        before = self._before[place, order]
        at, seen = (rows.column(name).to_numpy() for name in (stream.rowtime, SEEN))
        has_bounds = BOUNDED in rows.column_names
        bounded = rows.column(BOUNDED).to_numpy() if has_bounds else np.full(len(seen), NO_BOUND)
        decision, violated = judge_part(stream.ordering, before, at, seen, bounded)
        if LIMIT in rows.column_names:
            limits = rows.column(LIMIT).combine_chunks()
            is_ahead = np.asarray(limits.is_valid())
            decision[is_ahead] = Decision.QUARANTINED
            greatest = limits.fill_null(NO_BOUND).to_numpy(zero_copy_only=False)
            violated = np.where(is_ahead, greatest, violated)
        return Decisions(decision, violated, violated)  # of one producer, the watermark is its bound

    def _summarised(self, place: int, mark: EntrySummary, notes: Sequence[Note]) -> EntrySummary:
        """The summary after all parts; records that before each."""
        for note in sorted((one for one in notes if one["stream"] == place), key=lambda one: one["order"]):
            self._before[place, json.dumps(note["order"])] = mark
            mark = mark.then(BatchPart(note["seen"], note["bound"], note["highest"]))
        return mark

    def _all_judged(
        self,
        place: int,
        stream: TaskStream,
        mark: SharedWatermark,
        given: Sequence[tuple[Note, bytes]],
        now: int,
    ) -> SharedWatermark:
        """The watermark after all entries, of which those of idle producers do not count; records the
        decisions about each.
        """
        state = mark.state
        if given:
            in_order = sorted(given, key=lambda one: (one[0]["order"], one[0]["place"]))
            parts = [from_bytes(data) for _, data in in_order]
            control = pa.concat_tables(parts)
            control = control.append_column(PLACE, pa.array(np.arange(control.num_rows)))
            rows = None if stream.pattern is None else control.select([*stream.columns])
            entries, places = entries_in(stream.name, control, rows, stream.timed_by)
            decided = decided_one_by_one(state, stream.ordering, entries)
            state, is_row = decided.state, entries.kind == EntryKind.ROW
            whole = Decisions(
                np.zeros(control.num_rows, np.int8),
                np.full(control.num_rows, NO_BOUND),
                np.full(control.num_rows, NO_BOUND),
            )
            of_rows = places[is_row]
            whole.decision[of_rows] = decided.decision[is_row]
            whole.violated[of_rows] = decided.violated[is_row]
            whole.before[of_rows] = decided.before[is_row]
            first = 0
            for (note, _), part in zip(in_order, parts, strict=True):
                key = place, json.dumps(note["order"]), note["place"]
                self._known[key] = whole.at(np.arange(first, first + part.num_rows))
                first += part.num_rows
        return SharedWatermark(with_idle(state, stream.ordering, stream.idle, now))
