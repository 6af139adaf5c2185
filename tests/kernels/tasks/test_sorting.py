"""Packed sort keys against the reference's comparison of values."""

from __future__ import annotations

import datetime
from decimal import Decimal
from functools import cmp_to_key
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.reference.comparison import compare
from windrow.kernels.sorting import SortKey, cut_codes, sorted_partitions

VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=True) | st.sampled_from([0.0, -0.0]),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=9) | st.sampled_from(["a", "aaaaaaaa", "aaaaaaab", "é", "\0", "z\0"]),
    pa.binary(): st.binary(max_size=9),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.duration("us"): st.timedeltas(datetime.timedelta(-9999), datetime.timedelta(9999)),
    pa.decimal128(10, 2): st.decimals(-(10**7), 10**7, places=2),
    pa.decimal128(38, 2): st.decimals(-(10**35), 10**35, places=2),
    pa.list_(pa.int64()): st.lists(st.none() | st.integers(0, 2), max_size=3),
}


def rows_in_order(values: list[object], key: SortKey) -> list[int]:
    def order(one: int, other: int) -> int:
        left, right = values[one], values[other]
        if left is None or right is None:
            return ((left is not None) - (right is not None)) * (1 if key.nulls_first else -1)
        return compare(left, right) * (-1 if key.descending else 1)

    return sorted(range(len(values)), key=cmp_to_key(order))


columns = st.sampled_from(list(VALUES)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(st.none() | VALUES[kind], max_size=12))
)
keys = st.builds(SortKey, st.just("x"), st.booleans(), st.booleans())


@settings(deadline=None, max_examples=300)
@given(columns, keys)
def test_rows_are_ordered_as_the_reference_compares_them(column, key):
    kind, values = column
    if pa.types.is_decimal(kind):
        values = [value if value is None else Decimal(value) for value in values]
    table = pa.table({"x": pa.array(values, kind)})
    order, bounds = sorted_partitions(table, (), (key,))
    expected = rows_in_order(table.column("x").to_pylist(), key)
    assert (list(range(len(values))) if order is None else order.tolist()) == expected
    assert bounds.tolist() == ([0, len(values)] if values else [0, 0])


@settings(deadline=None, max_examples=200)
@given(columns, keys)
def test_cut_codes_never_fall_where_the_key_rises(column, key):
    kind, values = column
    if pa.types.is_nested(kind):
        with pytest.raises(TypeError):
            cut_codes(pa.chunked_array([pa.array(values, kind)]), key)
        return
    array = pa.array(values, kind)
    codes = cut_codes(pa.chunked_array([array]), key)[rows_in_order(array.to_pylist(), key)]
    assert (codes[1:] >= codes[:-1]).all()


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(st.none() | st.sampled_from(["a", "b", "c"]), st.floats(), st.integers(0, 3)), max_size=15
    )
)
def test_partitions_are_found_by_equal_keys(rows):
    table = pa.table(
        {
            "k": pa.array([row[0] for row in rows], pa.string()).dictionary_encode(),
            "f": pa.array([row[1] for row in rows], pa.float64()),
            "o": pa.array([row[2] for row in rows], pa.int32()),
        }
    )
    order, bounds = sorted_partitions(table, ("k", "f"), (SortKey("o"),))
    placed = [rows[index] for index in (range(len(rows)) if order is None else order)]
    parts = [placed[low:stop] for low, stop in pairwise(bounds) if low < stop]
    keys = [{(row[0], "nan" if row[1] != row[1] else row[1] + 0.0) for row in part} for part in parts]
    assert all(len(key) == 1 for key in keys)
    assert len({next(iter(key)) for key in keys}) == len(keys)
    assert all([row[2] for row in part] == sorted(row[2] for row in part) for part in parts)


def test_rows_in_order_are_left_as_they_are():
    order, bounds = sorted_partitions(
        pa.table({"k": ["a", "a", "b"], "o": [1, 2, 0]}), ("k",), (SortKey("o"),)
    )
    assert order is None
    assert bounds.tolist() == [0, 2, 3]


def test_keys_too_wide_for_one_word():
    rng = np.random.default_rng(0)
    table = pa.table(
        {name: rng.integers(-(2**63), 2**63 - 1, 50) for name in "abc"} | {"d": rng.integers(0, 2, 50)}
    )
    order, _ = sorted_partitions(table, ("d",), tuple(SortKey(name, name == "b") for name in "abc"))
    rows = table.to_pylist()
    expected = sorted(range(50), key=lambda i: (rows[i]["d"], rows[i]["a"], -rows[i]["b"], rows[i]["c"]))
    assert order.tolist() == expected
