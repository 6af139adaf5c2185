"""Sums as exact as adding up the window's own rows, overflows told, and work bounded by the rows read."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import ExecutionError
from windrow.kernels.aggregates import AggregateSpec, aggregate
from windrow.kernels.aggregates.fold import FAN, fold
from windrow.kernels.aggregates.wavelet import count_below, kth_smallest

UNIT = 2.0**-53


def call(function: str, column: pa.Array, windows: Any, kind: pa.DataType, **options: Any) -> pa.Array:
    lo, hi = np.array(windows, np.int64).reshape(-1, 2).T
    return aggregate(AggregateSpec(function, "x", kind, **options), pa.table({"x": column}), lo, hi)


def sliding(rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    lo = np.arange(rows)
    return lo, np.minimum(lo + length, rows)


def random_windows(random: np.random.Generator, rows: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Of all lengths, from one row to the whole table, in no order."""
    lo = random.integers(0, rows, count)
    length = np.exp(random.uniform(0, np.log(rows), count)).astype(np.int64)
    return lo, np.minimum(lo + np.maximum(length, 1), rows)


@pytest.mark.parametrize("length", [2, 20, 333, 5000])
def test_float_sums_stay_within_the_bound_of_the_windows_own_magnitudes(length: int) -> None:
    random = np.random.default_rng(length)
    values = random.normal(size=20_000) * 10.0 ** random.integers(-12, 18, 20_000)
    lo, hi = sliding(len(values), length)
    sums = aggregate(AggregateSpec("sum", "x", pa.float64()), pa.table({"x": values}), lo, hi).to_numpy()
    # The bound that windrow.kernels.aggregates.sums states.
    depth = 2 * FAN * math.ceil(math.log(length, FAN))
    for k in range(0, len(values), 97):
        own = values[lo[k] : hi[k]]
        assert abs(sums[k] - math.fsum(own)) <= 1.001 * depth * UNIT * math.fsum(abs(own)), k


@pytest.mark.parametrize("huge", [1e18, 1e300, math.inf, math.nan])
def test_a_huge_neighbour_does_not_disturb_windows_without_it(huge: float) -> None:
    values = np.full(10_000, 0.5)
    values[::1000] = huge
    lo, hi = sliding(len(values), 20)
    rows = pa.table({"x": values})
    clean = np.array([not any(lo[k] <= i < hi[k] for i in range(0, 10_000, 1000)) for k in range(len(lo))])
    for function, expected in (("sum", (hi - lo) / 2), ("avg", 0.5), ("var_pop", 0.0)):
        result = aggregate(AggregateSpec(function, "x", pa.float64()), rows, lo, hi).to_numpy()
        np.testing.assert_array_equal(result[clean], np.broadcast_to(expected, lo.shape)[clean])


def test_the_error_of_variance_grows_with_the_mean_and_not_with_its_square() -> None:
    random = np.random.default_rng(1)
    offsets = random.integers(-50, 50, 5000) / 64
    lo, hi = sliding(5000, 700)
    # 2**20 + k/64 is exact in a double, so the true variances are those of the offsets. Their deviation
    # is 0.45; a difference of sums of squares would be wrong by 1e-4.
    tolerance = 2 * FAN * 3 * UNIT * 2**20 / 0.45
    for function in ("var_samp", "stddev_pop"):
        spec = AggregateSpec(function, "x", pa.float64())
        near = aggregate(spec, pa.table({"x": offsets}), lo[:4000], hi[:4000])
        far = aggregate(spec, pa.table({"x": offsets + 2.0**20}), lo[:4000], hi[:4000])
        np.testing.assert_allclose(far.to_numpy(), near.to_numpy(), rtol=tolerance)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3000), st.booleans())
def test_fold_combines_exactly_the_windows_rows(seed: int, rows: int, ordered: bool) -> None:
    random = np.random.default_rng(seed)
    values = random.integers(-(2**62), 2**62, rows)
    lo, hi = random_windows(random, rows, 200)
    if ordered:
        lo, hi = np.sort(lo), np.sort(hi)
    for combine in (np.minimum, np.bitwise_xor):
        expected = [combine.reduce(values[a:b]) for a, b in zip(lo, hi, strict=True)]
        np.testing.assert_array_equal(fold(values, lo, hi, combine), expected)


def test_fold_cut_into_pieces_equals_fold_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).integers(0, 1000, 30_000)
    lo, hi = sliding(len(values), 77)
    whole = fold(values, lo, hi, np.maximum)
    monkeypatch.setattr("windrow.kernels.aggregates.windows.PIECE", 256)
    np.testing.assert_array_equal(fold(values, lo, hi, np.maximum), whole)


@pytest.mark.parametrize("length", [2, 20, 1000, 10_000, 150_000])
def test_a_row_is_combined_a_few_times_whatever_the_windows_length(length: int) -> None:
    elements = 0

    def counted(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        nonlocal elements
        result = np.add(left, right)
        elements += result.size
        return result

    values = np.ones(200_000, np.int64)
    fold(values, *sliding(len(values), length), counted)
    # Two rounds, each a scan of the runs, of their totals, and the sharing out; pieces overlap.
    assert elements <= 8 * len(values)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 500), st.integers(1, 600))
def test_order_statistics_of_random_windows(seed: int, rows: int, top: int) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(0, top, rows)
    lo, hi = random_windows(random, rows, 50)
    k = random.integers(0, hi - lo)
    bound = random.integers(0, top + 3, 50)
    windows = [codes[a:b] for a, b in zip(lo, hi, strict=True)]
    expected = [np.sort(window)[i] for window, i in zip(windows, k, strict=True)]
    np.testing.assert_array_equal(kth_smallest(codes, lo, hi, k), expected)
    expected = [int((window < limit).sum()) for window, limit in zip(windows, bound, strict=True)]
    np.testing.assert_array_equal(count_below(codes, lo, hi, bound), expected)


def test_holistic_functions_cut_into_pieces_equal_those_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    rows = pa.table({"x": random.integers(0, 40, 2000)})
    lo, hi = random_windows(random, 2000, 300)
    kinds = {"mode": pa.int64(), "collect_list": pa.list_(pa.int64()), "collect_set": pa.list_(pa.int64())}
    kinds |= {"median": pa.float64(), "count_distinct": pa.int64()}
    whole = {name: aggregate(AggregateSpec(name, "x", kind), rows, lo, hi) for name, kind in kinds.items()}
    monkeypatch.setattr("windrow.kernels.aggregates.windows.PIECE", 16)
    monkeypatch.setattr("windrow.kernels.aggregates.windows.EXPANDED", 64)
    for name, kind in kinds.items():
        assert (
            aggregate(AggregateSpec(name, "x", kind), rows, lo, hi).to_pylist() == whole[name].to_pylist()
        ), name


TOP = 2**63 - 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(2**63), TOP), min_size=1, max_size=20))
def test_bigint_totals_are_exact_or_told_to_overflow(values: list[int]) -> None:
    column, windows = pa.array(values, pa.int64()), [(0, len(values))]
    total = sum(values)
    if abs(total) <= TOP:
        assert call("sum", column, windows, pa.int64()).to_pylist() == [total]
    elif total != -TOP - 1:
        with pytest.raises(ExecutionError) as raised:
            call("sum", column, windows, pa.int64())
        assert (raised.value.condition, raised.value.sqlstate) == ("ARITHMETIC_OVERFLOW", "22003")
    wrapped = call("sum", column, windows, pa.int64(), ansi=False)
    assert wrapped.to_pylist() == [(total + 2**63) % 2**64 - 2**63]
    # The total is rounded up to four times on the way to a double, the quotient once.
    mean = call("avg", column, windows, pa.float64()).to_pylist()[0]
    assert mean == pytest.approx(total / len(values), rel=5 * 2**-53)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1), min_size=1, max_size=20))
def test_decimal_totals_are_exact_or_told_to_overflow(values: list[int]) -> None:
    kind = pa.decimal128(38, 0)
    column, windows = pa.array([Decimal(value) for value in values], kind), [(0, len(values))]
    fits = abs(sum(values)) < 10**38
    expected = [Decimal(sum(values))] if fits else [None]
    assert call("sum", column, windows, kind, ansi=False).to_pylist() == expected
    if not fits:
        with pytest.raises(ExecutionError, match="ARITHMETIC_OVERFLOW"):
            call("sum", column, windows, kind)


def test_a_partial_sum_out_of_range_is_no_overflow() -> None:
    assert call("sum", pa.array([TOP, 1, -5]), [(0, 3)], pa.int64()).to_pylist() == [TOP - 4]


def test_a_decimal_average_that_does_not_fit_its_type() -> None:
    column = pa.array([Decimal(10**37 - 1), Decimal(1)], pa.decimal128(38, 0))
    with pytest.raises(ExecutionError, match="NUMERIC_VALUE_OUT_OF_RANGE"):
        call("avg", column, [(0, 2)], pa.decimal128(38, 4))
    assert call("avg", column, [(0, 2), (1, 2)], pa.decimal128(38, 4), ansi=False).to_pylist() == [None, 1]
    longest = pa.array([Decimal(10**38 - 1), Decimal(1)], pa.decimal128(38, 0))
    with pytest.raises(ExecutionError, match="ARITHMETIC_OVERFLOW"):
        call("avg", longest, [(0, 2)], pa.decimal128(38, 4))


def test_an_interval_sum_overflows_with_and_without_ansi() -> None:
    column = pa.array([TOP, 1], pa.duration("us"))
    for function in ("sum", "avg"):
        for ansi in (True, False):
            with pytest.raises(ExecutionError) as raised:
                call(function, column, [(0, 2)], pa.duration("us"), ansi=ansi)
            assert raised.value.sqlstate == "22015"
