"""What is computed of rows is the same of codes and of plain values, of fewer columns, in other processes."""

from __future__ import annotations

import pickle
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.computed import computed_functions, texts
from windrow.kernels.computed.computed_operations import Computed, ComputedColumns, RowFilter, of_codes, only
from windrow.kernels.computed.computed_values import (
    Applied,
    ComputedColumn,
    ComputedRows,
    Constant,
    OfCodes,
    Once,
)

NAMES = {1: "s", 2: "t", 3: "x"}


def equal(number, text):
    return Applied(pc.equal, (ComputedColumn(number), Constant(pa.scalar(text))))


UPPER = Once(Applied(texts.concatenated, (ComputedColumn(1), Constant(pa.scalar("!")))), "upper")
MADE = Computed(
    NAMES,
    [
        RowFilter(
            Applied(
                pc.or_kleene,
                (equal(1, "a"), Applied(computed_functions.same, (ComputedColumn(1), ComputedColumn(2)))),
            )
        ),
        ComputedColumns(
            {
                4: UPPER,
                5: ComputedColumn(1),
                6: ComputedColumn(3),
                7: Applied(pc.is_null, (ComputedColumn(1),)),
            }
        ),
        RowFilter(Applied(pc.invert, (Applied(pc.equal, (ComputedColumn(4), Constant(pa.scalar("c!")))),))),
        ComputedColumns(
            {
                8: Applied(texts.length, (ComputedColumn(5),)),
                9: ComputedColumn(4),
                10: ComputedColumn(6),
                11: ComputedColumn(7),
                12: ComputedColumn(5),
            }
        ),
    ],
    [8, 9, 10, 11, 12],
    pa.schema(
        [("n", pa.int32()), ("u", pa.string()), ("x", pa.int64()), ("null", pa.bool_()), ("s", pa.string())]
    ),
)
LETTERS = st.sampled_from(["a", "b", "c", "äö", "", None])


def by_hand(rows):
    for x, (s, t) in enumerate(rows):
        if (s == "a" or s == t) and s is not None and s != "c":
            yield {"n": len(s), "u": f"{s}!", "x": x, "null": False, "s": s}


@given(st.lists(st.tuples(LETTERS, LETTERS), max_size=12))
def test_codes_and_plain_values_give_what_is_computed_by_hand(rows):
    table = pa.table(
        {
            "s": pa.array([s for s, _ in rows], pa.string()),
            "t": pa.array([t for _, t in rows], pa.string()),
            "x": pa.array(range(len(rows)), pa.int64()),
        }
    )
    expected = list(by_hand(rows))
    assert MADE.of(table).to_pylist() == expected
    coded = {name: table[name].combine_chunks().dictionary_encode() for name in ("s", "t")}
    given = {**coded, "x": table["x"].combine_chunks()}
    made = pickle.loads(pickle.dumps(of_codes(MADE, frozenset(["s"]))))
    found = made.rows(given, len(rows))
    columns = {
        name: found.columns[number] for name, number in zip(MADE.schema.names, made.result, strict=True)
    }
    assert pa.table(columns).cast(MADE.schema).to_pylist() == expected
    fewer = only(made, ["s", "x"])
    some = fewer.rows(given, len(rows))
    assert [some.columns[number].to_pylist() for number in fewer.result] == [
        [row[name] for row in expected] for name in ("s", "x")
    ]
    assert isinstance(found.columns[12], pa.DictionaryArray)


def test_a_function_of_one_coded_column_is_asked_once_for_each_code():
    asked = []

    def noted(text):
        asked.append(len(text))
        return pc.equal(text, "a")

    value = OfCodes(Applied(noted, (ComputedColumn(1),)), 1)
    column = pa.array(["a", "b", None] * 100).dictionary_encode()
    assert value(ComputedRows({1: column}, 300)).to_pylist() == [True, False, None] * 100
    assert asked == [3]


def test_columns_are_known_by_where_they_come_from_and_are_read_only_where_they_are_needed():
    assert {name: MADE.origin(name) for name in MADE.schema.names} == {
        "n": None, "u": None, "x": "x", "null": None, "s": "s",
    }  # fmt: skip
    assert only(Computed(NAMES, [], [1, 2, 3], pa.schema([])), []).columns == {}
    assert set(only(MADE, ["x"]).columns.values()) == {"s", "t", "x"}
    assert set(
        Computed(NAMES, MADE.operations[1:2], [6], pa.schema([("x", pa.int64())])).operations[0].values
    ) == {
        4,
        5,
        6,
        7,
    }
    assert set(
        only(Computed(NAMES, MADE.operations[1:2], [6], pa.schema([("x", pa.int64())])), ["x"]).columns
    ) == {3}


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("function", "cases"),
    [
        (
            computed_functions.float_less,
            [
                (1, NAN, True),
                (NAN, 1, False),
                (INF, NAN, True),
                (NAN, NAN, False),
                (None, 1, None),
                (-0.0, 0, False),
            ],
        ),
        (
            computed_functions.float_less_equal,
            [(NAN, NAN, True), (NAN, INF, False), (INF, NAN, True), (None, NAN, None), (0, -0.0, True)],
        ),
        (
            computed_functions.float_equal,
            [(NAN, NAN, True), (NAN, 1, False), (-0.0, 0, True), (None, NAN, None)],
        ),
        (
            computed_functions.same_floats,
            [(NAN, NAN, True), (None, None, True), (None, NAN, False), (1, 1, True)],
        ),
    ],
)
def test_nan_is_the_greatest_and_equal_to_itself(function, cases):
    left, right, found = zip(*cases, strict=True)
    assert function(pa.array(left, pa.float64()), pa.array(right, pa.float64())).to_pylist() == [*found]


def test_quotients_go_towards_zero():
    third = partial(computed_functions.by_literal, computed_functions.quotient, 3, pa.int64())
    value = pa.array([7, -7, None, -(2**63)], pa.int64())
    assert third(value).to_pylist() == [2, -2, None, -3074457345618258602]
    assert third(value[0]).as_py() == 2


def test_parts_of_the_first_and_the_last_days():
    days = pa.array([computed_functions.YEARS[0], 31, None, computed_functions.YEARS[1]], pa.int32()).cast(
        pa.date32()
    )
    assert computed_functions.of_calendar(pc.year, days).to_pylist() == [1, 1970, None, 9999]
    assert computed_functions.of_calendar(pc.month, days).to_pylist() == [1, 2, None, 12]
    assert computed_functions.of_calendar(pc.year, days[1]).as_py() == 1970


def test_what_may_differ_raises():
    days = pa.array([computed_functions.YEARS[1] + 1], pa.int32()).cast(pa.date32())
    with pytest.raises(pa.ArrowInvalid, match="years that calendars count"):
        computed_functions.of_calendar(pc.year, days)
    with pytest.raises(pa.ArrowInvalid, match="UTF8"):
        texts.length(pa.array([b"\xff"]).view(pa.string()))
    with pytest.raises(pa.ArrowInvalid, match="UTF8"):
        texts.substring(1, 1)(pa.array([b"\xff"]).view(pa.string()))
