"""Chunks of an exchange, which several tasks pack and one unpacks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.kernels.packing.chunks import pack, unpack
from windrow.kernels.packing.messages import CELL, CHUNK
from windrow.kernels.packing.shards import Layout
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
