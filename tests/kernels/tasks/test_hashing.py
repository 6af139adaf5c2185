"""Keys as 64 bits: equal keys have equal hashes wherever they stand, unlike keys have unlike ones."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.hashing import hashes

DAY = dt.date(2024, 1, 1)
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
WIDE = Decimal("1" + "0" * 30)
COLUMNS = {
    "bool": pa.array([True, False, None]),
    "int8": pa.array([-1, 0, None], pa.int8()),
    "int64": pa.array([2**63 - 1, -(2**63), None, 0], pa.int64()),
    "float32": pa.array([1.5, 0.1, None], pa.float32()),
    "float64": pa.array([1.5, math.inf, -math.inf, math.nan, 0.0, None]),
    "date": pa.array([DAY, DAY.replace(day=2), None]),
    "timestamp": pa.array([NOON, NOON.replace(hour=1), None], pa.timestamp("us", "UTC")),
    "duration": pa.array([dt.timedelta(1), dt.timedelta(2), None], pa.duration("us")),
    "decimal": pa.array([Decimal("1.25"), Decimal("-1.25"), None], pa.decimal128(10, 2)),
    "long decimal": pa.array([WIDE, Decimal("1" * 31), None], pa.decimal128(38, 2)),
    "string": pa.array(["", "a", "ab", "a\0", "12345678", "123456789", "12345678\0", "ä" * 40, None]),
    "binary": pa.array([b"", b"\0", b"\0\0", None]),
    "large string": pa.array(["x", "y", None], pa.large_string()),
    "struct": pa.array([{"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": "x"}, None]),
    "array": pa.array([[1.0], [1.0, 2.0], [], [None], None]),
    "void": pa.nulls(1),
}


def table(*columns: pa.Array) -> pa.Table:
    return pa.table({f"k{number}": column for number, column in enumerate(columns)})


def of(rows: pa.Table) -> list[int]:
    found: list[int] = hashes(rows, rows.column_names).tolist()
    return found


@pytest.mark.parametrize("kind", COLUMNS)
def test_unlike_keys_are_told_apart_and_like_ones_are_not(kind):
    column = COLUMNS[kind]
    found = of(table(column))
    assert len(set(found)) == len(column)
    twice = pa.chunked_array([column, column[1:], column[:0], column])
    assert of(pa.table({"k0": twice})) == found + found[1:] + found
    assert [of(table(column[at : at + 1])) for at in range(len(column))] == [[one] for one in found]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.list_(pa.float64())])
def test_zeros_are_one_key(kind):
    values = [-0.0, 0.0] if not pa.types.is_list(kind) else [[-0.0], [0.0]]
    first, second = of(table(pa.array(values, kind)))
    assert first == second


@given(st.lists(st.none() | st.text(max_size=20)), st.lists(st.none() | st.integers(-3, 3)))
def test_codes_and_values_have_the_same_hashes(names, numbers):
    count = min(len(names), len(numbers))
    plain = table(pa.array(names[:count], pa.string()), pa.array(numbers[:count], pa.int64()))
    coded = plain.set_column(0, "k0", plain["k0"].dictionary_encode())
    assert of(coded) == of(plain)
    assert len(set(of(plain))) == len(set(zip(names[:count], numbers[:count], strict=True)))


def test_no_keys_are_one_key():
    assert hashes(table(pa.array([1, 2])), ()).tolist() == [0, 0]


def test_the_order_of_keys_counts():
    one, two = pa.array([1]), pa.array([2])
    assert of(table(one, two)) != of(table(two, one))
