"""Rows as producers are given them: what is converted, and what would lose something and is refused."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from windrow.errors import InputError
from windrow.streams.row_arguments import to_table

DAY = datetime.date(2026, 1, 1)
NOON = datetime.datetime(2026, 1, 1, 12)
EAST = datetime.timezone(datetime.timedelta(hours=2))
PAIR = pa.struct([("a", pa.int64()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("value", "kind", "kept"),
    [
        (1.0, pa.int64(), 1),
        (np.int32(7), pa.int64(), 7),
        (1.1, pa.float32(), np.float32(1.1)),
        (3, pa.float64(), 3.0),
        (float("inf"), pa.float64(), float("inf")),
        (decimal.Decimal("1.5"), pa.decimal128(5, 2), decimal.Decimal("1.50")),
        (DAY, pa.date32(), DAY),
        (NOON, pa.timestamp("us"), NOON),
        (pd.Timestamp(NOON), pa.timestamp("us"), NOON),
        (NOON.replace(tzinfo=EAST), pa.timestamp("us", "UTC"), NOON.replace(hour=10, tzinfo=datetime.UTC)),
        ({"b": "x"}, PAIR, {"a": None, "b": "x"}),
        ([1, None], pa.list_(pa.int64()), [1, None]),
        ((1,), pa.list_(pa.int64()), [1]),
        ("", pa.string(), ""),
        (b"\0", pa.binary(), b"\0"),
    ],
)
def test_values_that_are_of_the_type_are_kept(value, kind, kept):
    schema = pa.schema([("x", kind)])
    assert to_table([{"x": value}, {"x": None}, {}], schema).to_pydict() == {"x": [kept, None, None]}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (decimal.Decimal("1.5"), pa.int64()),
        (1e300, pa.float32()),
        (NOON, pa.date32()),
        (5, pa.date32()),
        (5, pa.timestamp("us")),
        (DAY, pa.timestamp("us")),
        ("2026-01-01", pa.timestamp("us")),
        (NOON, pa.timestamp("us", "UTC")),
        (NOON.replace(tzinfo=EAST), pa.timestamp("us")),
        (pd.Timestamp("2026-01-01 00:00:00.000000001"), pa.timestamp("us")),
        (5, pa.string()),
        (b"x", pa.string()),
        ("x", pa.binary()),
        ({"c": 1}, PAIR),
        ({"a": 1.5}, PAIR),
        ([1.5], pa.list_(pa.int64())),
    ],
)
def test_values_of_other_types_are_refused_and_named(value, kind):
    with pytest.raises(InputError) as caught:
        to_table([{"x": None}, {"x": value}], pa.schema([("x", kind)]))
    assert caught.value.condition == "INVALID_VALUE"
    assert f"row 1 has {value!r}" in caught.value.message


@pytest.mark.parametrize(
    ("given", "wanted", "is_kept"),
    [
        (pa.array([1, 2], pa.int32()), pa.int64(), True),
        (pa.array([1, 2], pa.int64()), pa.int32(), True),
        (pa.array([2**40]), pa.int32(), False),
        (pa.array([1.0, 2.5]), pa.int64(), False),
        (pa.array(["1"]), pa.int64(), False),
        (pa.array([1]), pa.string(), False),
        (pa.array(["a"]).dictionary_encode(), pa.string(), True),
        (pa.array(["a"], pa.large_string()), pa.string(), True),
        (pa.array([NOON], pa.timestamp("ns")), pa.timestamp("us"), True),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us"), False),
        (pa.array([NOON], pa.timestamp("us")), pa.timestamp("us", "UTC"), False),
        (pa.array([NOON], pa.timestamp("us", "Europe/Paris")), pa.timestamp("us", "UTC"), True),
        (pa.array([True]), pa.int64(), False),
        (pa.nulls(2), pa.int64(), True),
    ],
)
def test_columns_of_tables_are_converted_where_nothing_is_lost(given, wanted, is_kept):
    schema = pa.schema([("x", wanted)])
    if is_kept:
        found = to_table(pa.table({"x": given}), schema)
        assert found.schema == schema
        assert found.column("x").null_count == given.null_count
    else:
        with pytest.raises(InputError, match="INVALID_VALUE"):
            to_table(pa.table({"x": given}), schema)


def test_missing_values_of_pandas_are_null():
    frame = pd.DataFrame({"x": [1.0, None], "t": [pd.Timestamp(NOON), pd.NaT], "s": ["a", None]})
    schema = pa.schema([("x", pa.float64()), ("t", pa.timestamp("us")), ("s", pa.string())])
    assert to_table(frame, schema).to_pylist() == [
        {"x": 1.0, "t": NOON, "s": "a"},
        {"x": None, "t": None, "s": None},
    ]


def test_a_column_that_the_stream_lacks_is_named_with_what_may_be_meant():
    with pytest.raises(InputError, match="did you mean ticker"):
        to_table({"tickr": "ORCL"}, pa.schema([("ticker", pa.string())]))
