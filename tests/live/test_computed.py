"""What plans of Spark's are read for, and what of them is left to Spark."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from windrow.spark.live.computed import computed

LEAF = pa.schema(
    [
        ("x", pa.int64()),
        ("i", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("s", pa.string()),
        ("f", pa.float64()),
    ]
)
BELOW = ["MapInArrow rows_of_leaf_0_(id#0L)#1, [x#2L, i#3, at#4, s#5, f#6], false", "Range (0, 2, step=1)"]
ROWS = pa.table(
    [[1, 2, None], [7, None, 9], [-1, 86_400_000_000, None], ["a", "b", None], [0.5, None, 1.5]],
    schema=LEAF.set(2, pa.field("at", pa.int64())),
).cast(LEAF)


def made(kind, expression, condition=None, rows=ROWS, zone="UTC"):
    above = [f"Project [{expression} AS c#9]", *([f"Filter {condition}"] if condition else [])]
    found = computed([*above, *BELOW], LEAF, pa.schema([("c", kind)]), zone, ["2", "3", "4", "5", "6"])
    if found is None:
        return None
    told = found.of(rows)
    return None if told is None else told.column("c").to_pylist()


READ = {
    "x#2L": (pa.int64(), [1, 2, None]),
    "s#5": (pa.string(), ["a", "b", None]),
    "1": (pa.int32(), [1, 1, 1]),
    "((x#2L * 3) - 1)": (pa.int64(), [2, 5, None]),
    "(unix_micros(at#4) + 1)": (pa.int64(), [0, 86_400_000_001, None]),
    "pmod(unix_micros(at#4), 10)": (pa.int64(), [9, 0, None]),
    "(unix_micros(at#4) % 10)": (pa.int64(), [-1, 0, None]),
    "((x#2L % 2) = 1)": (pa.bool_(), [True, False, None]),
    "CASE WHEN (i#3 >= 8) THEN x#2L END": (pa.int64(), [None, None, None]),
    "CASE WHEN (i#3 < 8) THEN 1 END": (pa.int32(), [1, None, None]),
    "CASE WHEN ((x#2L > 1) OR isnull(s#5)) THEN s#5 END": (pa.string(), [None, "b", None]),
    "((x#2L = 2) AND (i#3 = 8))": (pa.bool_(), [False, None, False]),
    "NOT coalesce((x#2L <= 1), false)": (pa.bool_(), [False, True, True]),
    "cast(at#4 as date)": (pa.date32(), [datetime.date(1969, 12, 31), datetime.date(1970, 1, 2), None]),
    "(cast(at#4 as date) < cast(timestamp_micros(x#2L) as date))": (pa.bool_(), [True, False, None]),
    "cast(i#3 as bigint)": (pa.int64(), [7, None, 9]),
}


@pytest.mark.parametrize("expression", READ)
def test_expressions_are_computed_as_spark_would(expression):
    kind, values = READ[expression]
    assert made(kind, expression) == values


@pytest.mark.parametrize(
    ("kind", "expression"),
    [
        (pa.int64(), "hash(x#2L)"),
        (pa.int64(), "-x#2L"),
        (pa.float64(), "(f#6 + f#6)"),
        (pa.int32(), "(i#3 + 1)"),  # overflows elsewhere
        (pa.bool_(), "((2147483647 + 1) > 0)"),
        (pa.int64(), "cast((2147483647 + CASE WHEN (i#3 < 8) THEN 1 END) as bigint)"),
        (pa.bool_(), "((coalesce(CASE WHEN (i#3 < 8) THEN 2147483647 END, 1) + 1) > 0)"),
        (pa.bool_(), "((pmod(CASE WHEN (i#3 < 8) THEN 2147483646 END, 2147483647) * 2) > 0)"),
        (pa.bool_(), "(s#5 = 1)"),
        (pa.int64(), "x#7L"),
        (pa.string(), "1"),
    ],
)
def test_what_is_not_known_exactly_is_left_to_spark(kind, expression):
    assert made(kind, expression) is None


def test_rows_stay_where_a_condition_holds():
    assert made(pa.int64(), "x#2L", "(isnotnull(i#3) AND (i#3 < 9))") == [1]
    assert made(pa.int64(), "x#2L", "(x#2L < 2)") == [1]
    assert made(pa.int64(), "x#2L", "x#2L") is None


def test_what_overflows_is_for_spark_to_refuse_and_days_of_zones_to_tell():
    assert made(pa.int64(), "(x#2L * 9223372036854775807)") is None
    assert made(pa.date32(), "cast(at#4 as date)", zone="Europe/Berlin") is None
