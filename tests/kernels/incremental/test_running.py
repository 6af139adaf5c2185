"""Which aggregates groups update from their state: what the descriptor says is what the operator does."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.kernels.aggregates import FUNCTIONS, AggregateSpec, supports
from windrow.kernels.incremental.running import running

KINDS = [
    *(pa.bool_(), pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.string()),
    *(pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.duration("us"), pa.list_(pa.int64())),
    pa.null(),
]


@pytest.mark.parametrize("appends", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_groups_are_updated_from_their_state_where_the_descriptor_says_so(name, appends):
    for kind in (kind for kind in KINDS if supports(name, kind)):
        found = running(AggregateSpec(name, "v", kind), kind, appends=appends)
        assert (found is not None) == FUNCTIONS[name].is_incremental(kind, appends=appends), kind


@pytest.mark.parametrize(
    ("name", "kind", "appends", "expected"),
    [
        ("bit_or", pa.int64(), True, True),
        ("bit_or", pa.int64(), False, False),
        ("sum", pa.duration("us"), False, True),
        ("sum", pa.float64(), False, False),
        ("sum", pa.float64(), True, True),
        ("max", pa.string(), False, False),
        ("max", pa.int64(), False, True),
        ("count_distinct", pa.string(), False, True),
        ("collect_list", pa.int64(), True, False),
        ("count", pa.null(), True, False),
    ],
)
def test_the_rows_of_some_groups_are_needed(name, kind, appends, expected):
    assert FUNCTIONS[name].is_incremental(kind, appends=appends) is expected
