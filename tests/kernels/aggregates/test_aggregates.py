"""Every aggregate over every type against a plain loop over the window's values."""

from __future__ import annotations

import datetime as dt
import math
import statistics
from collections import Counter
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windrow.kernels.aggregates import FUNCTIONS, AggregateSpec, aggregate, supports

INT_TYPES = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
DECIMALS = [pa.decimal128(5, 2), pa.decimal128(18, 0), pa.decimal128(24, 6), pa.decimal128(38, 38)]
MICROSECOND = dt.timedelta(microseconds=1)


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Few distinct values, so that windows hold ties, and the extremes of the type."""
    if kind in INT_TYPES:
        # For bigint 2**57: the sum of a whole window is then in range.
        top = min(2 ** (INT_TYPES[kind] - 1) - 1, 2**57)
        return st.one_of(st.integers(-3, 3), st.sampled_from([top, -top - 1]))
    if pa.types.is_float32(kind):
        return st.sampled_from([0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, 2.0**100])
    if pa.types.is_float64(kind):
        return st.sampled_from([0.0, -0.0, 1.1, -2.7, math.inf, -math.inf, math.nan, 1e18, 1e-300, 1e300])
    if pa.types.is_decimal(kind):
        # Long decimals leave digits for the sum, and for the average's four more after the point.
        top = 10 ** min(kind.precision, 34) - 1
        unscaled = st.one_of(st.integers(-3, 3), st.integers(-top, top))
        return unscaled.map(lambda value: Decimal(value).scaleb(-kind.scale, _wide()))
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_string(kind):
        return st.sampled_from(["", "a", "Z", "é", "\U0001f600", "z", "\uffff", "ab"])
    if pa.types.is_binary(kind):
        return st.sampled_from([b"", b"\x00", b"\xff", b"\x7f", b"a\x00"])
    if pa.types.is_date(kind):
        return st.sampled_from([dt.date(year, 12, 31) for year in (1, 1969, 1970, 2024, 9999)])
    if pa.types.is_timestamp(kind):
        zone = dt.UTC if kind.tz else None
        return st.sampled_from([dt.datetime(y, 1, 1, 0, 0, 0, 1, zone) for y in (1, 1969, 1970, 2262, 9999)])
    assert pa.types.is_duration(kind)
    return st.one_of(st.integers(-3, 3), st.sampled_from([10**15, -(10**15)])).map(lambda n: n * MICROSECOND)


def _wide() -> Any:
    with localcontext() as context:
        context.prec = 80
        return context.copy()


TYPES = [
    *INT_TYPES, pa.float32(), pa.float64(), *DECIMALS, pa.bool_(), pa.string(), pa.binary(), pa.date32(),
    pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.duration("us"),
]  # fmt: skip


def result_type(function: str, kind: pa.DataType) -> pa.DataType:
    """Spark's result type."""
    if function.startswith("count"):
        return pa.int64()
    if function.startswith("collect"):
        return pa.list_(kind)
    if function.startswith(("var", "stddev")):
        return pa.float64()
    if function in ("median", "percentile"):
        return kind if pa.types.is_duration(kind) else pa.float64()
    if function in ("sum", "avg") and pa.types.is_decimal(kind):
        if function == "sum":
            return pa.decimal128(min(38, kind.precision + 10), kind.scale)
        return pa.decimal128(min(38, kind.precision + 4), min(38, kind.scale + 4))
    if function in ("sum", "avg") and not pa.types.is_duration(kind):
        return pa.int64() if function == "sum" and kind in INT_TYPES else pa.float64()
    return kind


def order(value: Any) -> Any:
    """A sort key: NaN last, -0.0 before 0.0, strings by bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return value.encode() if isinstance(value, str) else value


def merged(value: Any) -> Any:
    """A grouping key: all NaN are one, both zeros are one."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def half_up(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def interpolated(values: list[Any], fraction: float) -> Any:
    ranked = sorted(values, key=order)
    place = (len(ranked) - 1) * fraction
    lower, upper = ranked[math.floor(place)], ranked[math.ceil(place)]
    if isinstance(lower, dt.timedelta):
        lower, upper = lower // MICROSECOND, upper // MICROSECOND
        if lower != upper and place != math.floor(place):
            lower = math.trunc(lower + (upper - lower) * (place - math.floor(place)))
        return lower * MICROSECOND
    lower, upper = float(lower), float(upper)
    if lower == upper or place == math.floor(place):
        return lower
    return lower + (upper - lower) * (place - math.floor(place))


def squares(values: list[Any]) -> float:
    floats = [float(value) for value in values]
    if not all(map(math.isfinite, floats)):
        return math.nan
    with localcontext() as context:
        context.prec = 1000
        exact = [Decimal(value) for value in floats]
        mean = sum(exact) / len(exact)
        total = sum((value - mean) ** 2 for value in exact)
        return float(total)


def add(values: list[Any]) -> Any:
    if isinstance(values[0], float):
        if any(map(math.isnan, values)) or {math.inf, -math.inf} <= set(values):
            return math.nan
        return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)
    if isinstance(values[0], Decimal):
        with localcontext() as context:
            context.prec = 80
            return sum(values, Decimal(0))
    return sum(values[1:], values[0])


def average(values: list[Any], kind: pa.DataType) -> Any:
    total = add(values)
    if isinstance(total, Decimal):
        with localcontext() as context:
            context.prec = 120
            return half_up(total / len(values), kind.scale)
    if isinstance(total, dt.timedelta):
        with localcontext() as context:
            context.prec = 80
            return int(half_up(Decimal(total // MICROSECOND) / len(values), 0)) * MICROSECOND
    return total / len(values)


def most_frequent(values: list[Any]) -> Any:
    counts = Counter(map(merged, values))
    most = max(counts.values())
    ties = [value for value in values if counts[merged(value)] == most]
    return min(ties, key=order) + 0.0 if isinstance(ties[0], float) else min(ties, key=order)


def spread(function: str) -> Callable[[list[Any], pa.DataType], Any]:
    def compute(values: list[Any], kind: pa.DataType) -> Any:
        sample = function.endswith("samp")
        if len(values) <= sample:
            return None
        variance = squares(values) / (len(values) - sample)
        return math.sqrt(variance) if function.startswith("stddev") else variance

    return compute


def bitwise(values: list[int], holds: Callable[[list[int]], bool]) -> int | None:
    """A number made of its 64 bits, of which each depends on those of the values at its place."""
    places = [[value >> place & 1 for value in values] for place in range(64)]
    number = sum(1 << place for place, own in enumerate(places) if holds(own))
    return (number - (1 << 64) if number >> 63 else number) if values else None


NAIVE: dict[str, Callable[[list[Any], pa.DataType], Any]] = {
    "count": lambda values, _: len(values),
    "count_if": lambda values, _: sum(values),
    "sum": lambda values, _: add(values) if values else None,
    "avg": lambda values, kind: average(values, kind) if values else None,
    "min": lambda values, _: min(values, key=order, default=None),
    "max": lambda values, _: max(values, key=order, default=None),
    **{name: spread(name) for name in ("stddev_samp", "stddev_pop", "var_samp", "var_pop")},
    "bool_and": lambda values, _: all(values) if values else None,
    "bool_or": lambda values, _: any(values) if values else None,
    "bit_and": lambda values, _: bitwise(values, all),
    "bit_or": lambda values, _: bitwise(values, any),
    "bit_xor": lambda values, _: bitwise(values, lambda bits: sum(bits) % 2 == 1),
    "count_distinct": lambda values, _: len(set(map(merged, values))),
    "median": lambda values, _: interpolated(values, 0.5) if values else None,
    "percentile": lambda values, _: interpolated(values, 0.3) if values else None,
    "mode": lambda values, _: most_frequent(values) if values else None,
    "collect_list": lambda values, _: values,
    "collect_set": lambda values, _: sorted(
        {merged(v): v + 0.0 if isinstance(v, float) else v for v in values}.values(), key=order
    ),
}

#: These may be rounded otherwise than the loop's. A sum of n values is within 2n * 2**-53 of the largest
#: magnitude times n, and there are at most 40.
ROUNDED = {"sum", "avg", "stddev_samp", "stddev_pop", "var_samp", "var_pop"}


def same(actual: Any, expected: Any, function: str, values: list[Any]) -> bool:
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(
            same(a, e, "", values) for a, e in zip(actual, expected, strict=True)
        )
    if not isinstance(expected, float) or actual is None:
        return bool(actual == expected) and type(actual) is type(expected)
    if math.isnan(expected):
        return math.isnan(actual)
    if function not in ROUNDED or math.isinf(expected):
        return bool(actual == expected) and math.copysign(1, actual) == math.copysign(1, expected)
    scale = max(abs(float(value)) for value in values)
    if function.startswith("stddev"):
        actual, expected = actual**2, expected**2
    if function.startswith(("var", "stddev")):
        # Squares of deviations beyond 1e150 leave the doubles.
        overflown = scale >= 1e150 and expected > 0
        return math.isinf(actual) if overflown else math.isclose(actual, expected, rel_tol=1e-12)
    return abs(actual - expected) <= 1e-14 * scale * len(values)


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.DataType, list[Any], list[tuple[int, int]], int]:
    kind = draw(st.sampled_from(TYPES))
    column = draw(st.lists(st.one_of(st.none(), values_of(kind)), min_size=1, max_size=40))
    bounds = st.integers(0, len(column) - 1).flatmap(
        lambda lo: st.tuples(st.just(lo), st.integers(lo + 1, len(column)))
    )
    return kind, column, draw(st.lists(bounds, min_size=1, max_size=12)), draw(st.integers(1, len(column)))


def table(kind: pa.DataType, column: list[Any], chunk: int) -> pa.Table:
    chunks = [pa.array(column[i : i + chunk], kind) for i in range(0, len(column), chunk)]
    return pa.table({"x": pa.chunked_array(chunks, kind)})


def evaluate(
    function: str, kind: pa.DataType, rows: pa.Table, windows: list[tuple[int, int]], **options: Any
) -> list[Any]:
    spec = AggregateSpec(function, "x", options.pop("type", result_type(function, kind)), **options)
    lo, hi = np.array(windows, np.int64).reshape(-1, 2).T
    result = aggregate(spec, rows, lo, hi)
    assert result.type == spec.result_type
    assert len(result) == len(windows)
    result.validate(full=True)
    return result.to_pylist()  # type: ignore[no-any-return]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_each_function_equals_a_loop_over_the_windows_values(case: Any) -> None:
    kind, column, windows, chunk = case
    rows = table(kind, column, chunk)
    column = rows.column("x").to_pylist()
    for function, naive in NAIVE.items():
        if not supports(function, kind):
            continue
        actual = evaluate(function, kind, rows, windows, parameters=(0.3,))
        for (lo, hi), value in zip(windows, actual, strict=True):
            values = [item for item in column[lo:hi] if item is not None]
            expected = naive(values, result_type(function, kind))
            assert same(value, expected, function, values), (function, column[lo:hi], value, expected)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_positions_are_those_of_the_rows_in_the_window(case: Any) -> None:
    kind, column, windows, chunk = case
    rows = table(kind, column, chunk)
    column = rows.column("x").to_pylist()
    for skip in (False, True):
        kept = [[item for item in column[lo:hi] if item is not None or not skip] for lo, hi in windows]
        firsts = [values[0] if values else None for values in kept]
        lasts = [values[-1] if values else None for values in kept]
        assert repr(evaluate("first", kind, rows, windows, ignore_nulls=skip)) == repr(firsts)
        assert repr(evaluate("any_value", kind, rows, windows, ignore_nulls=skip)) == repr(firsts)
        assert repr(evaluate("last", kind, rows, windows, ignore_nulls=skip)) == repr(lasts)
    assert evaluate("count_star", kind, rows, windows) == [hi - lo for lo, hi in windows]


PAIRS = [(function, kind) for function in sorted(FUNCTIONS) for kind in TYPES if supports(function, kind)]


@pytest.mark.parametrize(("function", "kind"), PAIRS, ids=str)
def test_no_windows_no_rows_and_no_values(function: str, kind: pa.DataType) -> None:
    nothing = pa.table({"x": pa.chunked_array([], kind)})
    assert evaluate(function, kind, nothing, [], parameters=(0.3,)) == []
    nulls = table(kind, [None, None, None], 2)
    none: Any = [] if function.startswith("collect") else 0 if function.startswith("count") else None
    expected = [2, 1] if function == "count_star" else [none, none]
    assert evaluate(function, kind, nulls, [(0, 2), (2, 3)], parameters=(0.3,)) == expected


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        *[(f, pa.float64()) for f in ("sum", "avg", "var_pop", "stddev_samp", "median", "percentile")],
        *[(f, pa.bool_()) for f in ("bool_and", "bool_or")],
        *[(f, pa.null()) for f in ("min", "max", "mode", "first", "last", "any_value")],
    ],
)
def test_an_untyped_null_column_gives_null(function: str, kind: pa.DataType) -> None:
    nulls = table(pa.null(), [None, None], 1)
    assert evaluate(function, pa.null(), nulls, [(0, 2)], type=kind, parameters=(0.3,)) == [None]


def test_an_untyped_null_column_counts_nothing() -> None:
    nulls = table(pa.null(), [None, None], 1)
    for function in ("count", "count_if", "count_distinct"):
        assert evaluate(function, pa.null(), nulls, [(0, 2)]) == [0]
    assert evaluate("collect_list", pa.null(), nulls, [(0, 2)]) == [[]]


def test_several_fractions_give_a_list_and_null_where_there_is_no_value() -> None:
    rows = table(pa.int32(), [4, None, 1, 2], 3)
    fractions = (0.0, 0.5, 1.0)
    kind = pa.list_(pa.float64())
    windows = [(0, 4), (1, 2), (2, 4)]
    actual = evaluate("percentile", pa.int32(), rows, windows, parameters=fractions, type=kind)
    assert actual == [[1.0, 2.0, 4.0], None, [1.0, 1.5, 2.0]]
    single = evaluate("percentile", pa.int32(), rows, [(0, 4)], parameters=(0.5,), type=kind)
    assert single == [[2.0]]


def test_structs_and_arrays_are_carried_but_not_ordered() -> None:
    kind = pa.struct([("a", pa.int32())])
    rows = table(kind, [{"a": 1}, None, {"a": None}], 2)
    windows = [(0, 3), (1, 2), (1, 3)]
    assert evaluate("first", kind, rows, windows, ignore_nulls=True) == [{"a": 1}, None, {"a": None}]
    assert evaluate("collect_list", kind, rows, windows) == [[{"a": 1}, {"a": None}], [], [{"a": None}]]
    assert not supports("min", kind)
    assert not supports("sum", pa.string())
    assert not supports("frobnicate", pa.int32())


def test_statistics_agree_with_the_standard_library() -> None:
    values = [2.5, -1.0, 7.25, 3.0]
    rows = table(pa.float64(), values, 4)
    for function, twin in (("stddev_samp", statistics.stdev), ("var_pop", statistics.pvariance)):
        assert evaluate(function, pa.float64(), rows, [(0, 4)]) == [pytest.approx(twin(values), rel=1e-15)]
