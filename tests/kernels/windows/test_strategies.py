"""Whatever strategy a predicate is solved by, it finds the rows that trying them one by one finds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import ExecutionError
from windrow.kernels import strategies
from windrow.kernels.compiling import compiled
from windrow.kernels.pairs import PairRows
from windrow.kernels.strategies import monotone
from windrow.kernels.window_plan import (
    ColumnRef,
    Number,
    Operation,
    PairExpression,
    PositionRef,
    SameRow,
    Search,
)


def op(operator: str, *operands: PairExpression, dtype: str = "bool") -> Operation:
    return Operation(operator, operands, dtype)


START, END = ColumnRef("o", "start"), ColumnRef("o", "end")
APART = op("-", END, START, dtype="int64")
NEXT_APART = op("-", ColumnRef("o", "end", 1), START, dtype="int64")
HIGH = op(">", ColumnRef("x", "end"), Number(12))
AFTER_LOW = op("<", ColumnRef("x", "end", -1), Number(5))
ROWS_APART = op("-", PositionRef("end"), PositionRef("start"), dtype="int64")
DIFFERENCE = op("-", ColumnRef("x", "end"), ColumnRef("x", "start"), dtype="int64")
ALIKE = op("=", op("%", DIFFERENCE, Number(3), dtype="int64"), Number(0))
PREDICATES: dict[str, tuple[str, PairExpression]] = {
    "one row": ("first true", HIGH),
    "neighbours of one row": ("first true", op("OR", HIGH, AFTER_LOW)),
    "rows apart": ("position", op(">=", ROWS_APART, Number(2))),
    "the same row": ("position", SameRow(("end", 0), ("start", 0))),
    "ends rise": ("monotone", op(">", APART, Number(3))),
    "the next row": ("monotone", op(">", NEXT_APART, Number(3))),
    "ends fall": ("monotone", op(">", op("+", END, START, dtype="int64"), Number(20))),
    "equal": ("monotone", op("=", APART, Number(4))),
    "not along the rows": ("monotone", op(">", END, ColumnRef("x", "start"))),
    "far and high": ("monotone", op("AND", HIGH, op(">", APART, Number(3)))),
    "near and high": ("monotone", op("AND", op("<=", APART, Number(6)), HIGH, AFTER_LOW)),
    "rows apart and high": ("monotone", op("AND", op(">", ROWS_APART, Number(1)), HIGH)),
    "between": ("monotone", op("AND", op(">", NEXT_APART, Number(2)), op("<", APART, Number(9)), HIGH)),
    "high or far": ("first of", op("OR", HIGH, op(">", NEXT_APART, Number(6)))),
    "rows or far": ("first of", op("OR", op("=", ROWS_APART, Number(3)), op(">", APART, Number(2)))),
    "one of three": (
        "first of", op("OR", AFTER_LOW, op("=", APART, Number(5)), op("=", ROWS_APART, Number(4)))
    ),
    "alike or far": ("scan", op("OR", ALIKE, op(">", APART, Number(3)))),
    "alike and far": ("scan", op("AND", ALIKE, op(">", APART, Number(3)))),
}  # fmt: skip
partitions = st.lists(
    st.lists(st.tuples(st.integers(0, 20), st.none() | st.integers(0, 20)), min_size=1, max_size=12),
    max_size=4,
)


@pytest.mark.parametrize("name", PREDICATES)
def test_the_first_strategy_that_applies_is_taken(name):
    strategy, predicate = PREDICATES[name]
    assert strategies.solve(predicate, "end").strategy == strategy


@pytest.mark.parametrize("name", PREDICATES)
@settings(deadline=None, max_examples=40)
@given(partitions=partitions, rises=st.booleans(), data=st.data())
def test_every_strategy_finds_what_a_scan_finds(name, partitions, rises, data):
    if not partitions:
        return
    sizes = [len(part) for part in partitions]
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    values = [sorted(part, key=lambda row: row[0]) if rises else part for part in partitions]
    table = pa.table(
        {
            "o": pa.array([row[0] for part in values for row in part], pa.int64()),
            "x": pa.array([row[1] for part in values for row in part], pa.int64()),
        }
    )
    _, predicate = PREDICATES[name]
    rows = PairRows(table, bounds, pa.table({}), (predicate,))
    start = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=sum(sizes), max_size=sum(sizes))))
    low = np.minimum(start + data.draw(st.integers(0, 2)), rows.stop[start]) if len(start) else start
    searched = ({"start": start}, "end", low, rows.stop[start])
    expected = strategies.find(Search("scan", predicate), rows, *searched).tolist()
    found = strategies.find(strategies.solve(predicate, "end"), rows, *searched)
    assert found.tolist() == expected
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compiled, "_ITERATIONS_BEFORE_COMPILING", 0)
        patched.setattr(monotone, "_APART", 3)
        patched.setattr(monotone, "_ITERATIONS", 10**9)
        compiled_too = strategies.find(strategies.solve(predicate, "end"), rows, *searched)
    assert compiled_too.tolist() == expected


def test_many_windows_are_searched_by_compiled_code_and_long_ones_bisected(monkeypatch):
    calls = []
    search = compiled.search
    monkeypatch.setattr(compiled, "search", lambda *given, **how: calls.append(how) or search(*given, **how))
    monkeypatch.setattr(compiled, "_ready", set())
    monkeypatch.setattr(compiled, "_ITERATIONS_BEFORE_COMPILING", 100)
    monkeypatch.setattr(compiled, "_ITERATIONS_BEFORE_CALLING", 100)
    count = 5_000
    rows = PairRows(
        pa.table({"o": np.arange(count), "x": np.arange(count)[::-1] - 1}),
        np.array([0, count]),
        pa.table({}),
        (),
    )
    start = np.arange(count)
    stop = np.full(count, count)

    def find(name, low):
        found = strategies.find(
            strategies.solve(PREDICATES[name][1], "end"), rows, {"start": start}, "end", low, stop
        )
        return found.tolist()

    assert find("ends rise", start) == [*range(4, count), -1, -1, -1, -1]
    assert calls == [{"rising": True}]
    # each end is far from the one before it
    assert find("not along the rows", np.zeros(count, np.int64))[:3] == [4999, 4998, 4997]
    assert len(calls) == 1


HIGHEST = 2**63 - 1
SUM = op("+", ColumnRef("x", "end"), ColumnRef("x", "start"), dtype="int64")
FLAG = op("=", ColumnRef("y", "end"), Number(1))
QUOTIENT = op(">", op("/", ColumnRef("o", "end"), ColumnRef("x", "end"), dtype="float64"), Number(100))


@pytest.mark.parametrize(
    ("parts", "x", "found"),
    [
        ((op(">", SUM, Number(100)), FLAG), [1, 2, HIGHEST], 1),
        ((FLAG, QUOTIENT), [1, 0, 0], 1),
        ((op(">", APART, Number(0)), QUOTIENT), [1, 2, 0], 1),
        ((QUOTIENT, op(">=", APART, Number(0))), [1, 2, 0], 0),
        ((op(">", APART, Number(50)), FLAG, QUOTIENT), [1, 0, 3], 1),
    ],
)
def test_an_alternative_fails_only_where_or_reaches_it(parts, x, found):
    table = pa.table({"o": [0, 1, 2], "x": pa.array(x, pa.int64()), "y": [0, 1, 0]})
    predicate = op("OR", *parts)
    search = Search("first of", predicate, parts=tuple(strategies.solve(part, "end") for part in parts))
    rows = PairRows(table, np.array([0, 3]), pa.table({}), (predicate,))
    start, stop = np.arange(1), np.full(1, 3)

    def outcome(search, low):
        try:
            return strategies.find(search, rows, {"start": start}, "end", np.full(1, low), stop).tolist()
        except ExecutionError as error:
            return error.condition

    assert outcome(search, 0) == [found]
    for low in (1, 2):
        assert outcome(search, low) == outcome(Search("scan", predicate), low)


def test_sums_that_may_be_infinite_are_tried_row_by_row():
    total = op("+", op("+", ColumnRef("x", "end"), ColumnRef("x", "start"), dtype="float64"),
               ColumnRef("y", "start"), dtype="float64")  # fmt: skip
    predicate = op(">", total, ColumnRef("y", "start"))
    table = pa.table({"x": [-1.7e308, 0.0, 1.0, 2.0], "y": [float("inf")] * 4})
    rows = PairRows(table, np.array([0, 4]), pa.table({}), (predicate,))
    start, stop = np.arange(1), np.full(1, 4)
    search = strategies.solve(predicate, "end")
    assert search.strategy == "monotone"
    # −∞ + ∞ is NaN, which is greater than any number
    assert strategies.find(search, rows, {"start": start}, "end", start, stop).tolist() == [0]
