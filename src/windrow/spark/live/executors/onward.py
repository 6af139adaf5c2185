"""The second part of a query in buckets of its own: what its buckets are sent, and what they do.

    buckets of the first part ─▶ rows of crossing leaves, by another key ─▶ buckets of the second part

The first bucket of the first part tells those of the second of each micro-batch. These store the rows that
they get, and now and then the state of their operators in place of rows. What buckets of the first part
report, and the rows that they set aside, pass through the first bucket of the second.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from windrow.spark.live.executors.as_bytes import from_bytes, to_bytes
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.spark.live.executors.bucket_state import (
    Moment,
    Packet,
    Store,
    StoredChunks,
    StoredState,
)
from windrow.spark.live.executors.bucket_task import BucketTask, Onward, OnwardRun
from windrow.spark.live.executors.input.packing import divided, key_of
from windrow.spark.live.executors.judging import mark_of
from windrow.spark.live.executors.recent import Recent

__all__ = ["RECENT", "advanced_onward", "begun_at", "bucket_of", "crossing", "rows_of", "told"]

_ROWS_AT_ONCE = 1 << 18
_MOST = 64
"""The most micro-batches that are stored and processed again after a restart."""


# -- from the first part to the second ---------------------------------------------------------------------


def bucket_of(onward: Onward, note: str) -> int:
    """The bucket that gets a packet of the first part."""
    return int(json.loads(note).get("bucket", onward.buckets[0]))


def rows_of(tables: Iterable[pa.Table]) -> Iterator[Packet]:
    """The packets of a query's output."""
    for table in tables:
        for start in range(0, table.num_rows, _ROWS_AT_ONCE):
            yield json.dumps({"kind": "rows"}), to_bytes(table.slice(start, _ROWS_AT_ONCE))


def told(onward: Onward, moment: Moment) -> Iterator[Packet]:
    """The packets that tell all buckets of a micro-batch."""
    marks = {place: mark.data for place, mark in moment.marks.items()}
    what = {"kind": "moment", "now": moment.now, "marks": marks, "has_entries": moment.has_entries}
    for bucket in onward.buckets:
        yield json.dumps({**what, "bucket": bucket}), None


def begun_at(onward: Onward, first: int) -> Iterator[Packet]:
    """The packets that tell all buckets of the first instant of a bucket."""
    for bucket in onward.buckets:
        yield json.dumps({"kind": "first", "at": first, "bucket": bucket}), None


def crossing(onward: Onward, tables: Sequence[pa.Table]) -> Iterator[Packet]:
    """The packets of the rows of crossing leaves."""
    for (leaf, key), table in zip(onward.keys.items(), tables, strict=bool(tables)):
        keys = [key_of(one, table) for one in key] if table.num_rows else []
        for bucket, rows in divided(onward.buckets, keys, table):
            for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
                note = {"kind": "leaf", "leaf": leaf, "bucket": bucket}
                yield json.dumps(note), to_bytes(rows.slice(start, _ROWS_AT_ONCE))


# -- in the second part ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Arrived:
    """A micro-batch: its time, what is known of watermarks by its end, the first instant of new buckets, and
    the leaves of which rows arrived.
    """

    now: int
    has_entries: bool
    marks: Mapping[str, Any]
    first: int | None
    leaves: tuple[int, ...]

    def moment(self, number: int) -> Moment:
        """The same, with its number."""
        marks = {int(place): mark_of(one) for place, one in self.marks.items()}
        return Moment(number, self.now, {}, marks, self.has_entries)  # nothing reads what was before


@dataclass
class _Bucket:
    """The state of a bucket after a micro-batch.

    Attributes
    ----------
    token, number
        As of a bucket of the first part.
    run
        The operators.
    carried
        Their stored state after some micro-batch.
    chunks
        The rows of each leaf that have arrived since, in a chunk for each micro-batch.
    arrived
        These micro-batches, by their numbers.
    rows
        The number of these rows.
    """

    token: str
    number: int
    run: OnwardRun
    chunks: Mapping[int, StoredChunks]
    carried: StoredState = field(default_factory=StoredState)
    arrived: dict[int, _Arrived] = field(default_factory=dict)
    rows: int = 0

    @property
    def size(self) -> int:
        """The bytes of the stored state."""
        return self.carried.size + sum(one.size for one in self.chunks.values())


RECENT = Recent[_Bucket]()
"""As :data:`.bucket.RECENT`, of second parts."""


def advanced_onward(task: BucketTask, store: Store, packets: Iterable[Packet]) -> Iterator[Packet]:
    """The output of a bucket of the second part for the packets of a micro-batch, which buckets of the first
    part have made: an account, what passes through, and the rows of the query.
    """
    assert task.onward is not None
    life, bucket = _read(task, store)
    told_of, firsts = dict[str, Any](), list[int]()
    tables: dict[int, list[pa.Table]] = {leaf: [] for leaf in task.onward.keys}
    for text, data in packets:
        note = json.loads(text)
        if note["kind"] == "moment":
            told_of = note
        elif note["kind"] == "first":
            firsts.append(note["at"])
        elif note["kind"] == "leaf":
            assert data is not None
            tables[note["leaf"]].append(from_bytes(data))
        else:
            yield text, data
    rows = {leaf: pa.concat_tables(own) for leaf, own in tables.items() if own}
    first = min(firsts, default=None)
    arrived = _Arrived(told_of["now"], told_of["has_entries"], told_of["marks"], first, tuple(rows))
    number = bucket.number + 1
    changed = bucket.run.advance(rows, arrived.moment(number), first)
    for leaf, table in rows.items():
        bucket.chunks[leaf].write(store, number, table)
    bucket.arrived[number] = arrived
    bucket.rows += sum(table.num_rows for table in rows.values())
    if bucket.carried.is_due(bucket.rows) or len(bucket.arrived) >= _MOST:
        bucket.carried.write(store, number, number, bucket.run.retained, bucket.run.saved())
        for one in bucket.chunks.values():
            one.drop_others(store, set())
        bucket.arrived, bucket.rows = {}, 0
    after = replace(bucket, token=uuid.uuid4().hex, number=number)
    store.save(_text(life, after))
    RECENT.add(life, task.version(after.token), task, after)
    account = BucketAccount(arrived.now, groups=after.run.retained, stored=after.size, due=after.run.due)
    yield account.note, None
    yield from rows_of([] if changed is None else [changed])


def _read(task: BucketTask, store: Store) -> tuple[str, _Bucket]:
    """The stored bucket and its name; a bucket without state if there is none."""
    assert task.onward is not None
    text = store.text()
    stored = None if text is None else json.loads(text)
    if stored is not None:
        known = RECENT.take(stored["life"], task.version(stored["token"]))
        if known is not None:
            return stored["life"], known
    chunks = {leaf: StoredChunks(f"leaf-{leaf}") for leaf in task.onward.keys}
    bucket = _Bucket("", 0, task.onward.work.begin(task.streams), chunks)
    if stored is None:
        return uuid.uuid4().hex, bucket
    if stored["carried"] is not None:
        bucket.run.restore(bucket.carried.read(store, stored["carried"]))
    for number, told_of in stored["arrived"].items():
        arrived = _Arrived(**{**told_of, "leaves": tuple(told_of["leaves"])})
        rows = {leaf: bucket.chunks[leaf].read(store, [number])[int(number)] for leaf in arrived.leaves}
        bucket.run.advance(rows, arrived.moment(int(number)), arrived.first)
        bucket.arrived[int(number)] = arrived
        bucket.rows += sum(table.num_rows for table in rows.values())
    bucket.token, bucket.number = stored["token"], stored["number"]
    return stored["life"], bucket


def _text(life: str, bucket: _Bucket) -> str:
    return json.dumps(
        {
            "life": life,
            "token": bucket.token,
            "number": bucket.number,
            "carried": bucket.carried.to_json(),
            "arrived": {number: vars(one) for number, one in bucket.arrived.items()},
        }
    )
