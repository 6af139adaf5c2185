"""Chunks of an exchange, which several tasks pack and one unpacks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.kernels.packing.chunks import pack, unpack
from windrow.kernels.packing.messages import CELL, CHUNK
from windrow.kernels.packing.shards import Layout, shards_of
from windrow.kernels.sorting import SortKey

SCHEMA = pa.schema([pa.field("k", pa.int32(), nullable=False), pa.field("s", pa.string(), nullable=False)])


def packed(keys, texts, buckets):
    """The chunks of one task, by shard."""
    batch = pa.record_batch([pa.array(keys, pa.int32()), pa.array(texts, pa.string())], schema=SCHEMA)
    found = {}
    for messages in pack([batch], Layout(buckets), ("k",), (SortKey("k"),)):
        for one in messages.to_pylist():
            found.setdefault(one[CELL], []).append(one[CHUNK])
    return found


@pytest.mark.parametrize("buckets", [1, 8], ids=["codes are worth it", "codes are taken back"])
def test_texts_that_some_tasks_code_and_others_do_not_are_one_column_without_nulls(buckets):
    repetitive = packed(range(16), ["x"] * 16, buckets)
    various = packed(range(16), [f"y{number}" for number in range(16)], buckets)
    rows = [unpack(map(pa.py_buffer, repetitive[shard] + various[shard])) for shard in repetitive]
    assert all(table.schema.field("s").nullable is False for table in rows)
    assert sorted(text for table in rows for text in table.column("s").to_pylist())[:17] == ["x"] * 16 + [
        "y0"
    ]


@pytest.mark.parametrize("run", [1, 3000], ids=["one by one", "in long runs"])
def test_rows_go_to_the_shard_of_their_key_in_their_order(run):
    keys = [None if key == 5 else f"key {key}" for key in range(9) for _ in range(run)] * 2
    numbers = list(range(len(keys)))
    rows = pa.table({"k": pa.array(keys).dictionary_encode(), "n": numbers})
    found = {}
    for messages in pack(rows.to_batches(1000), Layout(4), ("k",), (SortKey("n"),)):
        for one in messages.to_pylist():
            found.setdefault(one[CELL], []).append(pa.py_buffer(one[CHUNK]))
    whole = {shard: unpack(chunks).to_pydict() for shard, chunks in found.items()}
    assert sorted(number for one in whole.values() for number in one["n"]) == numbers
    assert all(one["n"] == sorted(one["n"]) for one in whole.values())
    assert all(
        keys[number] == key for one in whole.values() for key, number in zip(one["k"], one["n"], strict=True)
    )
    of_keys = [set(one["k"]) for one in whole.values()]
    assert sum(map(len, of_keys)) == 9
    # a task that has plain values sends them to the same shards
    plain = pa.table({"k": keys, "n": numbers})
    assert [int(one) for one in shards_of(Layout(4), plain, ("k",), SortKey("n"))] == [
        int(one) for one in shards_of(Layout(4), rows.combine_chunks(), ("k",), SortKey("n"))
    ]
