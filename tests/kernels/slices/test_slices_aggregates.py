"""Aggregates over windows of which rows are left out, known by what they amount to alone."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kernels.aggregates.test_aggregates import NAIVE, TYPES, result_type, same, table, values_of
from windrow.errors import ExecutionError
from windrow.kernels.aggregates import FUNCTIONS, AggregateSpec, Gaps, aggregate, combined, state, supports
from windrow.kernels.aggregates.fold import FAN

PARTIAL = sorted(name for name, function in FUNCTIONS.items() if function.partial is not None)


def left_out(
    spec: AggregateSpec, rows: pa.Table, stretches: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> pa.Array:
    """The aggregate with the rows of these stretches known by their state only, row by row merged."""
    partial = FUNCTIONS[spec.function].partial
    assert partial is not None
    each = np.arange(rows.num_rows)
    zero = np.zeros(1, np.int64)
    states, nothing = state(spec, rows, each, each + 1), state(spec, rows, zero, zero)
    assert states is not None
    low, stop = np.array(stretches, np.int64).reshape(-1, 2).T
    made = combined(partial, spec, states, nothing, low, stop)
    # the first and the last row of a stretch stand for it
    inner = np.zeros(rows.num_rows, bool)
    for start, end in stretches:
        inner[start + 1 : end - 1] = True
    kept = np.flatnonzero(~inner)
    place = np.searchsorted(kept, np.arange(rows.num_rows + 1))
    lo, hi = np.array(windows, np.int64).reshape(-1, 2).T
    gaps = Gaps(place[low], place[stop], made)
    return aggregate(spec, rows.take(pa.array(kept)), place[lo], place[hi], gaps)


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.DataType, list[Any], list[tuple[int, int]], list[tuple[int, int]]]:
    kind = draw(st.sampled_from(TYPES))
    column = draw(st.lists(st.none() | values_of(kind), min_size=1, max_size=24))
    edges = sorted(draw(st.sets(st.integers(0, len(column)), min_size=2, max_size=6)))
    stretches = list(zip(edges[::2], edges[1::2], strict=False))
    outside = [at for at in range(len(column) + 1) if not any(low < at < stop for low, stop in stretches)]
    starts = st.sampled_from(outside[:-1])
    bounds = starts.flatmap(
        lambda low: st.tuples(st.just(low), st.sampled_from([at for at in outside if at > low]))
    )
    return kind, column, stretches, draw(st.lists(bounds, min_size=1, max_size=10))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_each_function_equals_a_loop_over_all_rows(case: Any) -> None:
    kind, column, stretches, windows = case
    rows = table(kind, column, len(column))
    column = rows.column("x").to_pylist()
    for function in PARTIAL:
        if not supports(function, kind):
            continue
        for skip in (False, True) if function in ("first", "last", "any_value") else (False,):
            spec = AggregateSpec(function, "x", result_type(function, kind), ignore_nulls=skip)
            found = left_out(spec, rows, stretches, windows)
            assert found.type == spec.result_type
            for (lo, hi), value in zip(windows, found.to_pylist(), strict=True):
                values = [item for item in column[lo:hi] if item is not None]
                if function in ("first", "last", "any_value"):
                    kept = values if skip else column[lo:hi]
                    expected = (kept[-1] if function == "last" else kept[0]) if kept else None
                    assert repr(value) == repr(expected)
                elif function == "count_star":
                    assert value == hi - lo
                else:
                    expected = NAIVE[function](values, spec.result_type)
                    assert same(value, expected, function, values), (function, column[lo:hi], value, expected)


@pytest.mark.parametrize("function", PARTIAL)
def test_an_untyped_null_column(function: str) -> None:
    rows = table(pa.null(), [None] * 6, 6)
    kind = (
        pa.int64()
        if function.startswith("count")
        else pa.bool_()
        if function.startswith("bool")
        else pa.float64()
    )
    kind = pa.null() if function in ("min", "max", "first", "last", "any_value") else kind
    found = left_out(AggregateSpec(function, "x", kind), rows, [(1, 5)], [(0, 6)]).to_pylist()
    assert found == [6 if function == "count_star" else 0 if function.startswith("count") else None]


def test_a_stretch_may_go_beyond_the_type_where_the_window_does_not() -> None:
    big = 2**62
    integers = table(pa.int64(), [big, big, big, -big, -big, 1], 6)
    spec = AggregateSpec("sum", "x", pa.int64())
    assert left_out(spec, integers, [(0, 3)], [(0, 6)]).to_pylist() == [big + 1]
    with pytest.raises(ExecutionError, match="does not fit into BIGINT"):
        left_out(spec, integers, [(0, 3)], [(0, 4)])
    wide = Decimal(9 * 10**37)
    decimals = table(pa.decimal128(38, 0), [wide, wide, wide, -wide, -wide], 5)
    spec = AggregateSpec("sum", "x", pa.decimal128(38, 0))
    assert left_out(spec, decimals, [(0, 3)], [(0, 5)]).to_pylist() == [wide]
    with pytest.raises(ExecutionError, match="more than 38 digits"):
        left_out(spec, decimals, [(0, 3)], [(0, 4)])


def test_float_sums_across_gaps_stay_within_the_bound_of_the_windows_own_magnitudes() -> None:
    random = np.random.default_rng(5)
    values = random.normal(size=4000) * 10.0 ** random.integers(-12, 18, 4000)
    rows = pa.table({"x": values})
    stretches = [(500, 900), (900, 1300), (2000, 3500)]
    windows = [(low, stop) for low in range(0, 500, 50) for stop in (1300, 1700, 4000)] + [(1400, 4000)]
    sums = left_out(AggregateSpec("sum", "x", pa.float64()), rows, stretches, windows).to_pylist()
    for (low, stop), found in zip(windows, sums, strict=True):
        own = values[low:stop]
        depth = 2 * FAN * math.ceil(math.log(len(own), FAN)) + 12  # rows one by one in stretches: pairwise
        assert abs(found - math.fsum(own)) <= depth * 2.0**-53 * math.fsum(abs(own))


@pytest.mark.parametrize("huge", [1e18, math.inf, math.nan])
def test_a_huge_neighbour_does_not_disturb_windows_without_it(huge: float) -> None:
    values = [huge, 1.0, -huge, *[0.5] * 20]
    spec = AggregateSpec("sum", "x", pa.float64())
    found = left_out(spec, table(pa.float64(), values, 23), [(0, 3), (6, 20)], [(3, 23), (3, 20), (20, 23)])
    assert found.to_pylist() == [10.0, 8.5, 1.5]
