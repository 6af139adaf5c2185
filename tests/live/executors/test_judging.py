"""Buckets judge the rows of several producers as the definition does, in whatever parts tasks read them."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from windrow.spark.live.executors.as_bytes import from_bytes
from windrow.spark.live.executors.bucket_task import BucketTask, TaskSide, TaskStream
from windrow.spark.live.executors.input.packing import BUCKET, DATA, NOTE, pack
from windrow.spark.live.executors.judging import Admission, begun_mark, mark_of
from windrow.streams import Decision, EntryKind, Ordering, WatermarkState
from windrow.streams.admission.watermark import decide
from windrow.streams.entries import Entries

NAMES = ("at", "ptime", "bound", "p", "k")
entry = st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9), st.sampled_from("abc"))
entries_of = st.lists(entry.filter(lambda one: one[:2] != (None, None)), max_size=12)
orderings = st.sampled_from([Ordering.unordered(), Ordering.lagging(0), Ordering.lagging(2)])


def task_of(ordering, idle, buckets):
    stream = TaskStream("s", 0, ordering, 1, *NAMES[:3], {"k": "k"}, "p", idle)
    side = TaskSide(0, {"k": "k"}, ("k",), is_first=True)
    return BucketTask("q", (stream,), (side,), None, (), None, None, tuple(range(buckets)))


def wanted(ordering, idle, batches):
    """The decisions about all rows, by the number of their entry."""
    state, found = WatermarkState(), {}
    for now, batch in batches:
        items, numbers = [], []
        for number, at, bound, producer in batch:
            items += [(EntryKind.ROW, producer, at, now)] if at is not None else []
            items += [(EntryKind.BOUND, producer, bound, now)] if bound is not None else []
            numbers += [number] * ((at is not None) + (bound is not None))
        decided = decide(state, ordering, Entries.of(items))
        kinds = [kind for kind, *_ in items]
        told = zip(numbers, kinds, decided.decision, decided.violated, decided.before, strict=True)
        found |= {number: tuple(map(int, one)) for number, kind, *one in told if kind == EntryKind.ROW}
        state = decided.state
        if idle is not None:
            silent = [(EntryKind.IDLE, name, 0, now) for name in state.silent(now, idle)]
            state = decide(state, ordering, Entries.of(silent)).state
    return found, state


@given(
    st.lists(entries_of, min_size=1, max_size=4),
    orderings,
    st.sampled_from([None, 15]),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_all_buckets_know_what_the_definition_says(logs, ordering, idle, buckets, parts):
    batches, number = [], 0
    for place, log in enumerate(logs):
        batch = [(number + at, *one) for at, one in enumerate(log)]
        batches.append((10 * (place + 1), batch))
        number += len(log)
    told, state = wanted(ordering, idle, batches)
    task, marks, found = task_of(ordering, idle, buckets), {}, {}
    for now, batch in batches:
        whole = pa.table(
            {
                "at": pa.array([at for _, at, _, _ in batch], pa.int64()),
                "ptime": pa.array([now] * len(batch), pa.int64()),
                "bound": pa.array([bound for _, _, bound, _ in batch], pa.int64()),
                "p": pa.array([producer for *_, producer in batch], pa.string()),
                "k": pa.array([one for one, *_ in batch], pa.int64()),
            }
        )
        edges = np.linspace(0, len(batch), parts + 1).astype(int).tolist()
        packets = [
            packet
            for at, (low, high) in enumerate(pairwise(edges))
            for made in pack(task, whole.slice(low, high - low).to_batches(max_chunksize=2), at)
            for packet in made.to_pylist()
        ]
        for bucket in task.buckets:
            known = {0: mark_of(marks[bucket]) if bucket in marks else begun_mark(task.streams[0])}
            own = [(json.loads(one[NOTE]), one[DATA]) for one in packets if one[BUCKET] == bucket]
            admission = Admission(
                task,
                known,
                [note for note, data in own if data is None],
                [(note, data) for note, data in own if "judge" in note],
                now,
            )
            marks[bucket] = known[0].data
            for note, data in own:
                if "side" not in note:
                    continue
                rows = from_bytes(data)
                decided = admission.of(note, 0, rows)
                keys = rows.column("k").to_pylist()
                each = zip(decided.decision, decided.violated, decided.before, strict=True)
                found |= {key: tuple(map(int, one)) for key, one in zip(keys, each, strict=True)}
    assert found == told
    assert all(mark_of(mark).state == state for mark in marks.values())
    assert {one[0] for one in told.values()} <= {Decision.ADMITTED, Decision.LATE, Decision.REJECTED}
