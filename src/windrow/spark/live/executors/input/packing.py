"""Entries as packets: the rows of each bucket as Arrow tables, and a task's watermark information."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InputError
from windrow.kernels.dividing import DerivedKey
from windrow.kernels.hashing import hashes
from windrow.spark.live.executors.as_bytes import to_bytes
from windrow.spark.live.executors.bucket_state import not_computed
from windrow.spark.live.executors.bucket_task import BucketTask, TaskSide, TaskStream
from windrow.spark.live.executors.input.marked_rows import ROW, in_tables
from windrow.spark.live.input.arrivals import VIOLATED, read_patterns
from windrow.spark.live.input.entry_columns import TICKS
from windrow.spark.logs.live_source import BOUND, PRODUCER, PTIME
from windrow.spark.logs.session_streams import REASON, ROWTIME
from windrow.streams.admission.parts import Ahead, BatchPart
from windrow.streams.entries import NO_BOUND, PATTERN, Decision, reasons

__all__ = [
    "BOUNDED",
    "BUCKET",
    "DATA",
    "INDEX",
    "LATE_AT",
    "LIMIT",
    "NOTE",
    "PACKETS",
    "SEEN",
    "divided",
    "key_of",
    "pack",
]

BUCKET, NOTE, DATA = "bucket", "note", "data"
PACKETS = f"{BUCKET} int, {NOTE} string, {DATA} binary"
"""A packet: its bucket, its note in JSON, and rows as an Arrow stream."""

SEEN, BOUNDED = "__seen", "__promised"
"""The watermark information before a row within its part."""
LIMIT = "__limit"
"""The greatest allowed rowtime of a row that is too far ahead of its processing time; otherwise NULL."""
INDEX = "__index"
"""The place of a row among the entries that its bucket judges."""
LATE_AT = "__late_at"
"""The rowtime of a late row."""

Ints = npt.NDArray[np.int64]
Order = list[Any]


@dataclass
class _Read:
    """The state of a task's reading of a part of a stream.

    Attributes
    ----------
    summary
        The watermark information of its entries.
    ptime
        The processing time of the last entry.
    ahead
        How many of its bounds are too far ahead of their processing time.
    """

    summary: BatchPart = field(default_factory=BatchPart)
    ptime: int = 0
    ahead: int = 0


def pack(task: BucketTask, batches: Iterable[pa.RecordBatch], number: int) -> Iterator[pa.RecordBatch]:
    """The packets of the entries that the task with a number reads.

    Raises
    ------
    InputError
        ``NULL_ROWTIME``.
    ExecutionError
        ``VALUE_ON_EXECUTORS``.
    """
    read: dict[tuple[int, str], _Read] = {}
    counted = 0
    for table in in_tables(batches):
        for order, entries in _parts(task, table, number):
            part, malformed = _sound(task, entries)
            if malformed is not None:
                yield _packet(task.buckets[0], json.dumps({"malformed": counted}), malformed)
                counted += 1
                # time passes for all buckets, each of which accounts for its rows
                known = read.setdefault((TICKS, json.dumps(order)), _Read())
                known.ptime = max(known.ptime, *_ptimes(task, entries))
            ticks = _ticks_in(task, part)
            if ticks:
                known = read.setdefault((TICKS, json.dumps(order)), _Read())
                known.ptime = max(known.ptime, *ticks)
            for place, own, rows in _of_streams(task, order, part):
                known = read.setdefault((place, json.dumps(own)), _Read())
                for packet in _packed(task, place, rows, known, own, counted):
                    counted += 1
                    yield packet
    notes_of = [
        json.dumps(
            {
                "stream": place,
                "order": json.loads(order),
                "ptime": one.ptime,
                "ahead": one.ahead,
                **asdict(one.summary),
            }
        )
        for (place, order), one in read.items()
    ]
    if notes_of:
        buckets = np.repeat(np.array(task.buckets, np.int32), len(notes_of))
        notes = pa.array(notes_of * len(task.buckets), pa.string())
        yield _packets(buckets, notes, pa.nulls(len(notes), pa.binary()))


def _sound(task: BucketTask, entries: pa.Table) -> tuple[pa.Table, pa.Table | None]:
    """The entries that are not malformed, and what is reported of the others, if there are any."""
    marks = None if task.malformed is None else entries.column(task.malformed)
    if marks is None or marks.null_count == len(marks):
        return entries, None
    reported = marks.drop_null().combine_chunks()
    names = [field.name for field in reported.type]
    return entries.filter(marks.is_null()), pa.Table.from_arrays(reported.flatten(), names=names)


def _parts(task: BucketTask, table: pa.Table, number: int) -> Iterator[tuple[Order, pa.Table]]:
    """The entries of each part of a file, with their order; all of them if there are no files."""
    if not task.origin:
        yield [1, number], table
        return
    edges, columns = {0, table.num_rows}, [table.column(name).combine_chunks() for name in task.origin]
    for column in columns:
        codes = column.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False)
        edges.update((np.flatnonzero(np.diff(codes)) + 1).tolist())
    cuts = sorted(edges)
    for start, stop in pairwise(cuts):
        values = [column[start].cast(_plain(column.type)).as_py() for column in columns]
        order = [1, number] if values[0] is None else [0, *values]
        yield order, table.slice(start, stop - start)


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def _ticks_in(task: BucketTask, table: pa.Table) -> list[int]:
    """The processing times of the ticks among entries."""
    return [] if task.tick is None else table.column(task.tick).drop_null().to_pylist()


def _ptimes(task: BucketTask, entries: pa.Table) -> list[int]:
    """The last processing time of each stream's entries; 0 for none."""
    return [pc.max(entries.column(stream.ptime)).as_py() or 0 for stream in task.streams]


def _of_streams(task: BucketTask, order: Order, part: pa.Table) -> Iterator[tuple[int, Order, pa.Table]]:
    """The entries of each stream in a part, or those of the row groups of which the part has markers."""
    for place, stream in enumerate(task.streams):
        rows = _of_stream(task, place, part)
        if not rows.num_rows:
            continue
        if stream.files is None:
            yield place, order, rows
            continue
        _, _, uri, _ = order
        ptime = rows.column(stream.ptime)[0]
        for group, entries in stream.files.rows(uri, set(rows.column(ROW).to_pylist())):
            ptimes = pa.repeat(ptime, entries.num_rows)
            yield place, [*order, group], entries.append_column(stream.ptime, ptimes)


def _of_stream(task: BucketTask, place: int, table: pa.Table) -> pa.Table:
    if task.stream is None:
        return table
    return table.filter(pc.equal(table.column(task.stream), task.streams[place].number))


def _packed(
    task: BucketTask, place: int, entries: pa.Table, read: _Read, order: Order, counted: int
) -> Iterator[pa.RecordBatch]:
    """The packets of the next entries of a part of a stream; `read` records them."""
    stream = task.streams[place]
    rowtimes, is_row = _ticks(entries.column(stream.rowtime))
    bounds, has_bound = None, np.zeros(len(is_row), bool)
    if stream.bound is not None:
        bounds, has_bound = _ticks(entries.column(stream.bound))
    patterns = None if stream.pattern is None else entries.column(stream.pattern)
    is_other = (
        has_bound if patterns is None else has_bound | np.asarray(pc.is_valid(patterns.combine_chunks()))
    )
    if not (is_row | is_other).all():
        raise InputError(
            f"a row of stream {stream.name} has NULL as its rowtime",
            condition="NULL_ROWTIME",
            hint="filter the stream: df.where('… IS NOT NULL'); or start the query with on_malformed='keep'",
        )
    ptimes = entries.column(stream.ptime).to_numpy()
    read.ptime = max(read.ptime, int(ptimes.max()))
    limit, ahead = {}, None
    if stream.ordering.future is not None:
        ahead = Ahead.of(stream.ordering.future, rowtimes, bounds, ptimes)
        limit = {LIMIT: pa.array(ahead.limits, mask=~ahead.rows)}
        rowtimes = np.where(ahead.rows, NO_BOUND, rowtimes)
        wrong = [] if bounds is None else [_bounds_ahead(stream, entries, bounds, ahead)]
        if patterns is not None:
            instants = read_patterns(patterns, rows_of(stream, entries).schema, stream.timed_by).instants
            of_patterns = Ahead.of(stream.ordering.future, rowtimes, instants, ptimes)
            wrong.append(_bounds_ahead(stream, entries, instants, of_patterns))
        for found in (one for one in wrong if one.num_rows):
            note = json.dumps({"bounds": place, "order": order, "place": counted})
            yield _packet(task.buckets[0], note, found)
            read.ahead += found.num_rows
        bounds = None if bounds is None else np.where(ahead.bounds, NO_BOUND, bounds)
    greatest = {}
    if not stream.is_judged_by_all:
        read.summary, seen, bounded = read.summary.read(rowtimes, bounds)
        greatest = {SEEN: seen} if bounds is None else {SEEN: seen, BOUNDED: bounded}
    else:
        greatest, limit = {INDEX: np.arange(len(is_row))}, {}
        yield _for_all(task, {"judge": place, "order": order, "place": counted}, _control(stream, entries))
    for at, side in enumerate(task.sides):
        if side.stream != place:
            continue
        columns = {name: entries.column(name) for name in _travelling(task, side)}
        table = pa.table({**columns, **greatest, **(limit if side.is_first else {})})
        # a row too far ahead is nothing but a late row of the first side
        chosen = is_row if ahead is None or side.is_first else is_row & ~ahead.rows
        rows = table if chosen.all() else table.filter(pa.array(chosen))
        note = json.dumps({"side": at, "order": order, "place": counted})
        buckets, data = [], []
        keys = [_key(side, one, rows) for one in side.key] if rows.num_rows else []
        for bucket, own in divided(task.buckets, keys, rows):
            buckets.append(bucket)
            data.append(to_bytes(own))
        yield _packets(np.array(buckets, np.int32), pa.array([note] * len(buckets), pa.string()), data)


def _control(stream: TaskStream, entries: pa.Table) -> pa.Table:
    """What all buckets judge entries by."""
    nothing, one = pa.nulls(len(entries), pa.int64()), pa.repeat("", len(entries))
    control = {
        ROWTIME: entries.column(stream.rowtime),
        BOUND: nothing if stream.bound is None else entries.column(stream.bound),
        PRODUCER: one if stream.producer is None else entries.column(stream.producer),
        PTIME: entries.column(stream.ptime),
    }
    if stream.pattern is None:
        return pa.table(control)
    rows = rows_of(stream, entries)
    return pa.table(
        {
            **dict(zip(rows.column_names, rows.columns, strict=True)),
            **control,
            PATTERN: entries.column(stream.pattern),
        }
    )


def rows_of(stream: TaskStream, entries: pa.Table) -> pa.Table:
    """The stream's columns of entries, under its names."""
    return entries.select([*stream.columns.values()]).rename_columns([*stream.columns])


def _bounds_ahead(stream: TaskStream, entries: pa.Table, bounds: Ints, ahead: Ahead) -> pa.Table:
    """The bounds that are too far ahead, in the form of late rows."""
    at, limits = bounds[ahead.bounds], ahead.limits[ahead.bounds]
    why = reasons(np.full(len(at), Decision.QUARANTINED), limits, np.zeros(len(at), bool))
    nothing = {name: pa.nulls(len(at), entries.schema.field(name).type) for name in stream.columns.values()}
    found = pa.table({**nothing, LATE_AT: at, VIOLATED: limits, REASON: why})
    if stream.producer is None:
        return found
    return found.append_column(
        stream.producer, entries.column(stream.producer).filter(pa.array(ahead.bounds))
    )


def _travelling(task: BucketTask, side: TaskSide) -> list[str]:
    """The columns of entries that a window's rows have: the retained ones; the first window has all others
    too.
    """
    stream = task.streams[side.stream]
    producer = [] if stream.producer is None else [stream.producer]
    whole = (*stream.columns.values(), *producer) if side.is_first else ()
    return list(dict.fromkeys([stream.rowtime, *side.columns.values(), *whole]))


def _ticks(column: pa.ChunkedArray) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Instants, `NO_BOUND` for NULL; and which are not NULL."""
    array = column.combine_chunks()
    found: Ints = array.fill_null(NO_BOUND).to_numpy(zero_copy_only=False)
    return found, np.asarray(array.is_valid())


def divided(
    buckets: Sequence[int], keys: Sequence[pa.ChunkedArray | pa.Array], rows: pa.Table
) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each bucket that has any, in their order; without keys, the first bucket has all."""
    if not rows.num_rows:
        return
    if not keys:
        yield buckets[0], rows
        return
    table = pa.table({str(at): one for at, one in enumerate(keys)})
    which = (hashes(table, table.column_names) % np.uint64(len(buckets))).astype(np.int64)
    order = np.argsort(which, kind="stable")
    cuts = np.searchsorted(which[order], np.arange(len(buckets) + 1))
    in_order = rows.take(pa.array(order))
    for at, (start, stop) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)):
        if stop > start:
            yield buckets[at], in_order.slice(start, stop - start)


def _key(side: TaskSide, key: str | DerivedKey, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
    """The values of a column by which the rows of a side are divided."""
    if not isinstance(key, DerivedKey):
        return rows.column(side.columns[key])
    read = key.way.columns.names
    if not read:  # a value that does not depend on the row
        return key_of(key, rows)
    return key_of(key, pa.table([rows.column(side.columns[name]) for name in read], names=read))


def key_of(key: str | DerivedKey, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
    """The values of a column by which rows are divided.

    Raises
    ------
    ExecutionError
        ``VALUE_ON_EXECUTORS``.
    """
    found = key.of(rows) if isinstance(key, DerivedKey) else rows.column(key)
    if found is None:
        raise not_computed()
    return found


def _for_all(task: BucketTask, note: Mapping[str, Any], table: pa.Table) -> pa.RecordBatch:
    """A packet for each bucket."""
    count, data = len(task.buckets), to_bytes(table)
    notes = pa.array([json.dumps(note)] * count, pa.string())
    return _packets(np.array(task.buckets, np.int32), notes, [data] * count)


def _packet(bucket: int, note: str, table: pa.Table) -> pa.RecordBatch:
    return _packets(np.array([bucket], np.int32), pa.array([note], pa.string()), [to_bytes(table)])


def _packets(
    buckets: npt.NDArray[np.int32], notes: pa.Array, data: Sequence[bytes] | pa.Array
) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(buckets), notes, pa.array(data, pa.binary())], names=[BUCKET, NOTE, DATA]
    )
