"""Bisection and the compiled search that replaces it for many windows find the same rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels import compiled, monotone
from windrow.kernels.monotone import bisect
from windrow.kernels.pairs import Rows
from windrow.kernels.plan import ColumnRef, Number, Operation, PairExpression

APART = Operation("-", (ColumnRef("o", "end"), ColumnRef("o", "start")), "int64")
NEXT_APART = Operation("-", (ColumnRef("o", "end", 1), ColumnRef("o", "start")), "int64")
PREDICATES: dict[str, PairExpression] = {
    "ends rise": Operation(">", (APART, Number(3))),
    "the next row": Operation(">", (NEXT_APART, Number(3))),
    "ends fall": Operation(
        ">", (Operation("+", (ColumnRef("o", "end"), ColumnRef("o", "start")), "int64"), Number(20))
    ),
    "equal": Operation("=", (APART, Number(4))),
    "not along the rows": Operation(">", (ColumnRef("o", "end"), ColumnRef("x", "start"))),
}
partitions = st.lists(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12), max_size=4
)


@pytest.mark.parametrize("name", PREDICATES)
@settings(deadline=None, max_examples=40)
@given(partitions=partitions, data=st.data())
def test_the_compiled_search_finds_what_bisection_finds(name, partitions, data):
    if not partitions:
        return
    sizes = [len(part) for part in partitions]
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    values = [sorted(part) for part in partitions]
    table = pa.table(
        {
            "o": pa.array([row[0] for part in values for row in part], pa.int64()),
            "x": pa.array([row[1] for part in values for row in part], pa.int64()),
        }
    )
    predicate = PREDICATES[name]
    rows = Rows(table, bounds, pa.table({}), (predicate,))
    start = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=sum(sizes), max_size=sum(sizes))))
    low = np.minimum(start + data.draw(st.integers(0, 2)), rows.stop[start]) if len(start) else start
    sides = {"start": start}
    expected = bisect(predicate, rows, sides, "end", low, rows.stop[start])
    with pytest.MonkeyPatch.context() as patched:
        for setting, value in {"_MANY": 1, "_MANY_WHEN_READY": 1, "_APART": 3, "_STEPS": 10**9}.items():
            patched.setattr(monotone, setting, value)
        found = bisect(predicate, rows, sides, "end", low, rows.stop[start])
    assert expected is not None
    assert found.tolist() == expected.tolist()


def test_many_windows_are_searched_by_compiled_code_and_long_ones_bisected(monkeypatch):
    calls = []
    search = compiled.search
    monkeypatch.setattr(compiled, "search", lambda *given: calls.append(given) or search(*given))
    monkeypatch.setattr(monotone, "_MANY", 100)
    monkeypatch.setattr(monotone, "_MANY_WHEN_READY", 100)
    count = 5_000
    rows = Rows(
        pa.table({"o": np.arange(count), "x": np.zeros(count, np.int64)}),
        np.array([0, count]),
        pa.table({}),
        (),
    )
    start = np.arange(count)
    stop = np.full(count, count)
    near = bisect(PREDICATES["ends rise"], rows, {"start": start}, "end", start, stop)
    assert near.tolist() == [*range(4, count), -1, -1, -1, -1]
    assert len(calls) == 1
    # each end is far from the one before it
    far = bisect(PREDICATES["ends fall"], rows, {"start": start}, "end", np.zeros(count, np.int64), stop)
    assert far[:3].tolist() == [21, 20, 19]
