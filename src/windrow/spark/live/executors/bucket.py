"""One bucket of a query: its state, and its output for a micro-batch.

:func:`advanced` judges the rows, advances the operators and stores the state, as the driver does for all
rows. The state is chunks in the store, as it is files on the driver. A bucket that is still in memory is not
read again if the store has the same version.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InputError
from windrow.spark.live.executors.as_bytes import from_bytes, to_bytes
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.spark.live.executors.bucket_state import BucketState, Moment, Packet, Store, StreamMark
from windrow.spark.live.executors.bucket_task import BucketTask, TaskStream
from windrow.spark.live.executors.input.packing import LATE_AT
from windrow.spark.live.executors.judging import Admission, Decisions, begun_mark, mark_of
from windrow.spark.live.executors.onward import begun_at, crossing, rows_of, told
from windrow.spark.live.executors.recent import Recent
from windrow.spark.live.input.arrivals import VIOLATED
from windrow.spark.live.input.entry_columns import TICKS
from windrow.spark.logs.session_streams import REASON
from windrow.streams.admission.several_producers import SharedWatermark
from windrow.streams.entries import BEFORE, NO_BOUND, Decision, reasons

__all__ = ["RECENT", "advanced"]

_COUNTS = ("late", "rejected", "quarantined", "quarantined_bounds")


@dataclass
class _Bucket:
    """The state of a bucket after a micro-batch.

    Attributes
    ----------
    token
        A text that distinguishes this state from that after any other micro-batch.
    number
        The number of micro-batches that it has processed.
    marks
        The watermark information of each stream.
    now
        The time of the last micro-batch.
    late, rejected, quarantined, quarantined_bounds
        As of :class:`BucketAccount`.
    state
        Its state.
    """

    token: str
    number: int
    marks: dict[int, StreamMark]
    now: int
    late: dict[int, int]
    rejected: dict[int, int]
    quarantined: dict[int, int]
    quarantined_bounds: dict[int, int]
    state: BucketState

    @property
    def size(self) -> int:
        """The bytes of the stored state."""
        return self.state.size


RECENT = Recent[_Bucket]()
"""The buckets of this process, but for one whose state is changing: if that fails, it is read again."""


def advanced(
    task: BucketTask, store: Store, packets: Iterable[Packet], *, is_first: bool = True
) -> Iterator[Packet]:
    """The output of a bucket for the packets of a micro-batch.

    The first packet is an account, the next ones have late rows and malformed entries, the others are from
    :meth:`.bucket_state.BucketState.process`. If the query has a second part, they are packets for its
    buckets, which :func:`.onward.bucket_of` reads; the first bucket tells these of the micro-batch.

    Raises
    ------
    InputError
        ``CHECKPOINT_OF_ANOTHER_QUERY``.
    """
    life, bucket = _read(task, store)
    notes, rows = list[dict[str, Any]](), list[tuple[dict[str, Any], bytes]]()
    for text, data in packets:
        note = json.loads(text)
        if data is None:
            notes.append(note)
        else:
            rows.append((note, data))
    now = max([bucket.now + 1, *(note["ptime"] for note in notes)])
    before = dict(bucket.marks)
    admission = Admission(task, bucket.marks, notes, (one for one in rows if "judge" in one[0]), now)
    _count_bounds_ahead(bucket, notes)
    has_entries = any(note["stream"] != TICKS for note in notes)
    moment = Moment(bucket.number + 1, now, before, bucket.marks, has_entries)
    account = BucketAccount(now)
    apart: list[Packet] = []
    for note, data in rows:
        if "malformed" in note:
            apart.append((json.dumps({"kind": "malformed"}), data))
        elif "bounds" in note:
            place = note["bounds"]
            account.apart[place] = account.apart.get(place, 0) + from_bytes(data).num_rows
            apart.append((json.dumps({"kind": "late", "stream": place}), data))
    rows = [one for one in rows if "side" in one[0]]
    for note, data in sorted(rows, key=lambda one: (one[0]["side"], one[0]["order"], one[0]["place"])):
        side = note["side"]
        place = task.sides[side].stream
        stream = task.streams[place]
        table = from_bytes(data)
        found = _judged(bucket.state, table, admission.of(note, place, table))
        wrong = [found.late, bucket.state.take(side, found.admitted, moment)]
        if task.sides[side].is_first:
            _count(bucket, account, place, found.decision)
            for some in (one for one in wrong if one is not None):
                account.apart[place] = account.apart.get(place, 0) + some.num_rows
                kind = json.dumps({"kind": "late", "stream": place})
                apart.append((kind, to_bytes(_apart(stream, some))))
    first = bucket.state.first
    tables = bucket.state.process(moment, account)
    chunks = bucket.state.save(store, moment.number)
    after = replace(bucket, token=uuid.uuid4().hex, number=moment.number, now=now)
    store.save(_text(task, life, after, chunks))
    RECENT.add(life, task.version(after.token), task, after)
    account.late, account.rejected, account.marks = after.late, after.rejected, _data(after.marks)
    account.quarantined, account.quarantined_bounds = after.quarantined, after.quarantined_bounds
    after.state.report(account)
    account.due = _due(task, after.marks, account.due)
    yield account.note, None
    yield from apart
    if task.onward is None:
        yield from rows_of(tables)
        return
    if is_first:
        yield from told(task.onward, moment)
    if first is None and bucket.state.first is not None:
        yield from begun_at(task.onward, bucket.state.first)
    yield from crossing(task.onward, tables)


# -- a micro-batch -----------------------------------------------------------------------------------------


def _count_bounds_ahead(bucket: _Bucket, notes: list[dict[str, Any]]) -> None:
    """Count the bounds that are too far ahead, in all parts."""
    known = bucket.quarantined_bounds
    for note in notes:
        if note["ahead"]:
            known[note["stream"]] = known.get(note["stream"], 0) + note["ahead"]


def _due(task: BucketTask, marks: Mapping[int, StreamMark], due: int | None) -> int | None:
    """When the query needs a tick: when changes are due, or the first producer becomes idle."""
    shared = [(stream, marks[place]) for place, stream in enumerate(task.streams)]
    times = [mark.due(stream.idle) for stream, mark in shared if isinstance(mark, SharedWatermark)]
    return min((at for at in (due, *times) if at is not None), default=None)


@dataclass(frozen=True, eq=False)
class _Judged:
    """The judged entries: the admitted ones, with `BEFORE`, the late ones, and the reasons."""

    admitted: pa.Table
    late: pa.Table | None
    decision: npt.NDArray[np.int8]


def _judged(state: BucketState, rows: pa.Table, found: Decisions) -> _Judged:
    decision, violated = found.decision, found.violated
    is_estimated = decision == Decision.LATE
    is_late = decision != Decision.ADMITTED
    if state.takes_late:
        is_late &= ~is_estimated
    rows = rows.append_column(BEFORE, pa.array(found.before, mask=~is_estimated))
    if not is_late.any():
        return _Judged(rows, None, decision)
    wrong = violated[is_late]
    late = rows.filter(pa.array(is_late)).append_column(VIOLATED, pa.array(wrong, mask=wrong == NO_BOUND))
    late = late.append_column(REASON, reasons(decision[is_late], wrong))
    return _Judged(rows.filter(pa.array(~is_late)), late, decision)


def _apart(stream: TaskStream, late: pa.Table) -> pa.Table:
    """Late rows in the form in which they are emitted."""
    producer = [] if stream.producer is None else [stream.producer]
    table = late.select([*stream.columns.values(), VIOLATED, REASON, *producer])
    at = len(stream.columns)
    return table.add_column(at, LATE_AT, late.column(stream.rowtime))


def _count(bucket: _Bucket, account: BucketAccount, place: int, decision: npt.NDArray[np.int8]) -> None:
    account.arrived[place] = account.arrived.get(place, 0) + len(decision)
    kinds = (
        (bucket.late, Decision.LATE),
        (bucket.rejected, Decision.REJECTED),
        (bucket.quarantined, Decision.QUARANTINED),
    )
    for counts, kind in kinds:
        found = int((decision == kind).sum())
        if found:
            counts[place] = counts.get(place, 0) + found


# -- what is stored ----------------------------------------------------------------------------------------


def _read(task: BucketTask, store: Store) -> tuple[str, _Bucket]:
    """The stored bucket and its name; a bucket without state if there is none."""
    text = store.text()
    if text is None:
        marks = {place: begun_mark(stream) for place, stream in enumerate(task.streams)}
        return uuid.uuid4().hex, _Bucket("", 0, marks, 0, {}, {}, {}, {}, task.work.begin(task))
    stored = json.loads(text)
    _refuse_another(task, stored)
    known = RECENT.take(stored["life"], task.version(stored["token"]))
    if known is not None:
        return stored["life"], known
    counts = {name: {int(at): count for at, count in stored.get(name, {}).items()} for name in _COUNTS}
    marks = {int(place): mark_of(one) for place, one in stored["said"].items()}
    state = task.work.again(task, stored["held"], store)
    return stored["life"], _Bucket(
        stored["token"], stored["number"], marks, stored["now"], state=state, **counts
    )


def _refuse_another(task: BucketTask, stored: Mapping[str, Any]) -> None:
    if stored["query"] != task.query:
        raise InputError(
            "the checkpoint is of another query",
            condition="CHECKPOINT_OF_ANOTHER_QUERY",
            hint="start a changed query with a checkpoint of its own",
        )
    if stored["buckets"] != len(task.buckets):
        raise InputError(
            f"the checkpoint has {stored['buckets']} buckets, but the query has {len(task.buckets)}",
            condition="CHECKPOINT_OF_OTHER_BUCKETS",
            hint=f"SET spark.windrow.live.buckets = {stored['buckets']}, or start with a new checkpoint",
        )


def _data(marks: Mapping[int, StreamMark]) -> dict[int, Any]:
    return {place: mark.data for place, mark in marks.items()}


def _text(task: BucketTask, life: str, bucket: _Bucket, state: Mapping[str, Any]) -> str:
    return json.dumps(
        {
            "query": task.query,
            "buckets": len(task.buckets),
            "life": life,
            "token": bucket.token,
            "number": bucket.number,
            "said": _data(bucket.marks),
            "now": bucket.now,
            **{name: getattr(bucket, name) for name in _COUNTS},
            "held": state,
        }
    )
