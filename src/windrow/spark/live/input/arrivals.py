"""The entries of a micro-batch, judged by the watermarks of their streams: admitted rows and late rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InputError
from windrow.punctuations import Pattern
from windrow.spark.logs.live_source import BOUND, NUMBER, PLACE, PRODUCER, PTIME, LiveSource
from windrow.spark.logs.session_streams import ARRIVED, REASON, ROWTIME, Stream
from windrow.streams import Decision, EntryKind, Ordering, Position, WatermarkState
from windrow.streams.admission.batch_watermark import advance
from windrow.streams.admission.watermark import Decided
from windrow.streams.definition import bound_of
from windrow.streams.entries import (
    AT,
    BEFORE,
    CONTROL,
    KIND,
    NO_BOUND,
    PATTERN,
    SEQUENCE,
    Entries,
    Ints,
    reasons,
)
from windrow.streams.log_position import Punctuations, Watermarks, judge, new_punctuations
from windrow.streams.punctuation_json import pattern_of

__all__ = [
    "VIOLATED",
    "Arrivals",
    "ReadPatterns",
    "arrivals",
    "decided_one_by_one",
    "entries_in",
    "read_patterns",
    "with_idle",
]

VIOLATED = "__violated"
"""The bound that a late row violates; NULL if it matches a punctuation. For a row too far ahead, the greatest
rowtime that is admitted.
"""

_PTIME, _AT = "__ptime_of_log", "__late_at"


@dataclass(frozen=True, eq=False)
class _Judged:
    """The decisions about the rows, in their order.

    `ptimes` are processing times that differ from those in the rows, `bounds` the quarantined bounds, and
    `before` is the stream's watermark before each late row.
    """

    place: Ints
    decision: npt.NDArray[np.int8]
    violated: Ints
    before: Ints
    position: Position
    ptimes: pa.Table | None = None
    watermarks: Watermarks = ()
    punctuations: Punctuations = ()
    bounds: pa.Table | None = None

    def late(self, is_late: npt.NDArray[np.bool_]) -> pa.Table:
        """The entries among the late rows: `PLACE`, the instant of a bound, `VIOLATED` and `REASON`."""
        decision, violated = self.decision[is_late], self.violated[is_late]
        count = int(is_late.sum())
        rows = pa.table(
            {
                PLACE: self.place[is_late],
                _AT: pa.nulls(count, pa.int64()),
                VIOLATED: pa.array(violated, mask=violated == NO_BOUND),
                REASON: reasons(decision, violated),
            }
        )
        return rows if self.bounds is None else pa.concat_tables([rows, self.bounds])


def _bounds_of(
    entries: Entries, place: Ints, decision: npt.NDArray[np.int8], violated: Ints
) -> pa.Table | None:
    """The quarantined bounds and punctuations, with the columns of :meth:`_Judged.late`."""
    is_ahead = (decision == Decision.QUARANTINED) & (entries.kind != EntryKind.ROW)
    if not is_ahead.any():
        return None
    why = reasons(decision[is_ahead], violated[is_ahead], np.zeros(int(is_ahead.sum()), bool))
    return pa.table(
        {PLACE: place[is_ahead], _AT: entries.at[is_ahead], VIOLATED: violated[is_ahead], REASON: why}
    )


_NOT_AGAIN = (Decision.DUPLICATE, Decision.FENCED)


def _refused(*, timed: bool) -> tuple[Decision, ...]:
    """The decisions by which rows are late."""
    refused = (Decision.REJECTED, Decision.QUARANTINED)
    return refused if timed else (Decision.LATE, *refused)


def _moved(source: LiveSource, judged: _Judged, before: Position, now: int) -> Watermarks:
    """The changes of the stream's watermark, each with its processing time."""
    at = judged.position.watermark.at
    return ((now, at),) if not source.identity and at != before.watermark.at else judged.watermarks


def _punctuated(source: LiveSource, judged: _Judged, before: Position, now: int) -> Punctuations:
    """The punctuations of the stream, each with its processing time."""
    return (
        judged.punctuations
        if source.identity
        else new_punctuations(now, before.watermark, judged.position.watermark)
    )


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The admitted rows of a micro-batch, in order of arrival, and its late rows, if there are any.

    `late` has the columns of the stream, `ROWTIME`, `PRODUCER`, `VIOLATED` and `REASON`. It includes
    quarantined bounds, with any values in the stream's columns. `position` is the stream's position after the
    micro-batch, with its watermark, and `count` the number of arrived rows without duplicates. Rows of a
    named stream have ties. For streams whose rows have processing times, `watermarks` are the changes of the
    watermark and `punctuations` the punctuations, each with its processing time, and `below` are the admitted
    rows below the watermark before them, with `PRODUCER`.
    """

    rows: pa.Table
    late: pa.Table | None
    position: Position
    count: int
    watermarks: Watermarks = ()
    punctuations: Punctuations = ()
    below: pa.Table | None = None


def arrivals(
    name: str,
    stream: Stream,
    entries: pa.Table,
    position: Position | None,
    now: int,
    *,
    timed: bool = False,
    columns: Sequence[str] | None = None,
) -> Arrivals:
    """Judge a micro-batch.

    Parameters
    ----------
    name, stream
        The live stream.
    entries
        The arriving entries, with `PLACE`: 0, 1 and so on.
    position
        The stream's position before the micro-batch; None before the first.
    now
        The time of the micro-batch, in microseconds.
    timed
        Whether rows have processing times, `ARRIVED`, in place of tie-breakers. Then rows that are only below
        an estimate are admitted, with the watermark before them in `BEFORE`, which is NULL in others.
    columns
        The columns of the rows; by default the stream's.
    """
    source = stream.live
    assert source is not None
    before = position if position is not None else source.start
    wanted = stream.columns if columns is None else columns
    if source.identity:
        judged = _judge_log(source, entries, before, entries.select(wanted), timed=timed)
    else:
        judged = _judge_rows(name, stream, entries, before, now, entries.select(wanted))
    late, under, bounds = None, entries.slice(0, 0), np.full(entries.num_rows, NO_BOUND)
    bounds[judged.place] = judged.before
    is_late = np.isin(judged.decision, _refused(timed=timed))
    if is_late.any() or judged.bounds is not None:
        wrong = judged.late(is_late)
        late = entries.take(wrong.column(PLACE))
        rowtime = pc.coalesce(wrong.column(_AT), late.column(ROWTIME))
        late = late.set_column(late.column_names.index(ROWTIME), ROWTIME, rowtime)
        late = late.append_column(VIOLATED, wrong.column(VIOLATED)).append_column(
            REASON, wrong.column(REASON)
        )
    admitted = np.asarray(pc.is_valid(entries.column(ROWTIME).combine_chunks()))
    admitted[judged.place[is_late | np.isin(judged.decision, _NOT_AGAIN)]] = False
    if judged.ptimes is not None:
        ptimes = entries.column(PTIME).to_numpy().copy()
        ptimes[judged.ptimes.column(PLACE).to_numpy()] = judged.ptimes.column(_PTIME).to_numpy()
        entries = entries.set_column(entries.column_names.index(PTIME), PTIME, pa.array(ptimes))
    if timed:
        entries = entries.append_column(BEFORE, _bounds(bounds))
        when = (
            entries.column(PTIME) if source.identity else pa.repeat(pa.scalar(now, pa.int64()), len(entries))
        )
        entries = entries.append_column(ARRIVED, when)
        under = entries.filter(pc.less(entries.column(ROWTIME), entries.column(BEFORE)))
    rows = entries if admitted.all() else entries.filter(pa.array(admitted))
    chosen = {own: rows.column(own) for own in (*wanted, ROWTIME)}
    if timed:
        chosen |= {own: rows.column(own) for own in (ARRIVED, BEFORE)}
    elif source.identity:  # other rows are in order of arrival already
        order = (PTIME, PRODUCER, SEQUENCE)
        chosen |= {tie: rows.column(name) for name, tie in zip(order, stream.ties, strict=True)}
    count = ~np.isin(judged.decision, _NOT_AGAIN)
    watermarks, punctuations = _moved(source, judged, before, now), _punctuated(source, judged, before, now)
    below = under if timed and under.num_rows else None
    return Arrivals(
        pa.table(chosen), late, judged.position, int(count.sum()), watermarks, punctuations, below
    )


def _bounds(bounds: Ints) -> pa.Array:
    """Watermarks, with NULL for none."""
    return pa.array(bounds, mask=bounds == NO_BOUND)


def _judge_log(
    source: LiveSource, control: pa.Table, position: Position, rows: pa.Table | None, *, timed: bool = False
) -> _Judged:
    """Judge the entries of a named stream's log, as all its readers do."""
    at = pc.coalesce(control.column(ROWTIME), control.column(BOUND))
    entries = control.append_column(AT, at).select(CONTROL.names)
    judged = judge(position, source.ordering, entries, control.column(NUMBER).to_numpy(), rows, timed=timed)
    is_row = control.column(KIND).to_numpy() == EntryKind.ROW
    place = control.column(PLACE).to_numpy()
    is_later = judged.ptime != control.column(PTIME).to_numpy()
    ptimes = pa.table({PLACE: place[is_later], _PTIME: judged.ptime[is_later]}) if is_later.any() else None
    decisions = (judged.decision[is_row], judged.violated[is_row], judged.before[is_row])
    bounds = _bounds_of(Entries.of_table(entries), place, judged.decision, judged.violated)
    return _Judged(
        place[is_row], *decisions, judged.position, ptimes, judged.watermarks, judged.punctuations, bounds
    )


def _judge_rows(
    name: str, stream: Stream, control: pa.Table, position: Position, now: int, rows: pa.Table | None
) -> _Judged:
    """Judge the rows of a streaming DataFrame; then let producers that were silent for too long be idle."""
    source = stream.live
    assert source is not None
    entries, places = entries_in(name, control, rows, stream.rowtime)
    decided = decided_one_by_one(position.watermark, source.ordering, entries)
    is_row = entries.kind == EntryKind.ROW
    after = replace(position, watermark=with_idle(decided.state, source.ordering, source.idle, now))
    bounds = _bounds_of(entries, places, decided.decision, decided.violated)
    decisions = (decided.decision[is_row], decided.violated[is_row], decided.before[is_row])
    return _Judged(places[is_row], *decisions, after, bounds=bounds)


def decided_one_by_one(state: WatermarkState, ordering: Ordering, entries: Entries) -> Decided:
    """The decisions about entries. With punctuations, each entry that opens a producer is judged apart: the
    decisions about later ones depend on it.
    """
    known = {name for name, one in state.producers.items() if one.is_open}
    opening = []
    if entries.patterns is not None or state.patterns or state.shared:
        codes, firsts = np.unique(entries.code, return_index=True)
        each = zip(codes.tolist(), firsts.tolist(), strict=True)
        opening = [first for code, first in each if entries.names[code] not in known]
    edges = sorted({0, len(entries), *opening, *(first + 1 for first in opening)})
    parts = []
    for low, stop in pairwise(edges):
        parts.append(advance(state, ordering, entries.part(low, stop)))
        state = parts[-1].state
    if len(parts) == 1:
        return parts[0]
    decision = np.concatenate([np.zeros(0, np.int8), *(part.decision for part in parts)])
    nothing = np.zeros(0, np.int64)
    violated = np.concatenate([nothing, *(part.violated for part in parts)])
    return Decided(decision, violated, state, np.concatenate([nothing, *(part.before for part in parts)]))


def entries_in(
    name: str, control: pa.Table, rows: pa.Table | None = None, rowtime: str | None = None
) -> tuple[Entries, Ints]:
    """The entries of a stream, with the place of each: a row comes before its own punctuation and bound.

    Parameters
    ----------
    name
        The stream.
    control
        `ROWTIME`, `BOUND`, `PRODUCER`, `PTIME`, `PLACE`, maybe `PATTERN`.
    rows, rowtime
        The columns of the rows and that of the rowtime, for patterns.
    """
    columns = {column: control.column(column) for column in control.column_names}
    has_rowtime, has_bound = (columns[column].is_valid().to_numpy() for column in (ROWTIME, BOUND))
    texts = columns.get(PATTERN)
    has_pattern = np.zeros(control.num_rows, bool) if texts is None else texts.is_valid().to_numpy()
    if not (has_rowtime | has_bound | has_pattern).all():
        raise InputError(
            f"a row of stream {name} has NULL as its rowtime",
            condition="NULL_ROWTIME",
            hint="restart the query from its checkpoint with on_malformed='keep', which puts such rows"
            " into a side output; or filter the stream: df.where('… IS NOT NULL')",
        )
    which = np.arange(control.num_rows)
    kind = np.full(control.num_rows, EntryKind.ROW, np.int8)
    if has_bound.any() or has_pattern.any():
        present = (
            (EntryKind.ROW, has_rowtime),
            (EntryKind.PATTERN, has_pattern),
            (EntryKind.BOUND, has_bound),
        )
        which = np.concatenate([which[has] for _, has in present])
        kind = np.repeat(
            np.array([one for one, _ in present], np.int8), [int(has.sum()) for _, has in present]
        )
        order = np.lexsort((kind == EntryKind.BOUND, kind != EntryKind.ROW, which))
        which, kind = which[order], kind[order]
    rowtimes, bounds = (columns[column].fill_null(0).to_numpy() for column in (ROWTIME, BOUND))
    producers = columns[PRODUCER].combine_chunks().dictionary_encode()
    entries = Entries(
        kind,
        producers.indices.to_numpy(zero_copy_only=False).astype(np.int32)[which],
        np.where(kind == EntryKind.ROW, rowtimes[which], bounds[which]),
        columns[PTIME].to_numpy()[which],
        tuple(producers.dictionary.to_pylist()),
    )
    if texts is not None and rows is not None:
        read = read_patterns(texts, rows.schema, rowtime)
        patterns_of = read.texts.take(pa.array(which)) if has_pattern.any() else None
        at = np.where(entries.kind == EntryKind.PATTERN, read.instants[which], entries.at)
        entries = replace(entries, at=at, patterns=patterns_of, rows=rows.take(pa.array(which)))
    return entries, columns[PLACE].to_numpy()[which]


@dataclass(frozen=True, eq=False)
class ReadPatterns:
    """The patterns of entries: in the form of :meth:`Pattern.to_json`, NULL for none; and the instant of each
    that is a bound, 0 for other patterns, `NO_BOUND` for none.
    """

    texts: pa.Array
    instants: Ints


def read_patterns(texts: pa.ChunkedArray, schema: pa.Schema, rowtime: str | None) -> ReadPatterns:
    """Read the patterns of entries, of which some have none.

    Parameters
    ----------
    schema
        The columns of the rows.
    rowtime
        That of the rowtime.

    Raises
    ------
    InputError
        ``INVALID_VALUE``: a text is no punctuation.
    """
    distinct = pc.unique(texts).drop_null().to_pylist()
    patterns = {text: pattern_of(text, schema) for text in distinct}
    known = {text: pattern.to_json() for text, pattern in patterns.items()}
    instants = {text: _instant_of(pattern, rowtime) for text, pattern in patterns.items()}
    every = texts.to_pylist()
    made = pa.array([known.get(text) for text in every], pa.string())
    return ReadPatterns(made, np.array([instants.get(text, NO_BOUND) for text in every], np.int64))


def _instant_of(pattern: Pattern, rowtime: str | None) -> int:
    """The instant of a pattern that is a bound; 0 for others."""
    bound = None if rowtime is None else bound_of(pattern, rowtime)
    return 0 if bound is None else bound


def with_idle(state: WatermarkState, ordering: Ordering, idle: int | None, now: int) -> WatermarkState:
    """The state after producers that were silent for too many microseconds have become idle."""
    if idle is None:
        return state
    names = state.silent(now, idle)
    return advance(state, ordering, Entries.of([(EntryKind.IDLE, name, 0, now) for name in names])).state
