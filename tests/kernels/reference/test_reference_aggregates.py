"""The reference interpreter's aggregates. ``test_reference_spark.py`` holds the same things against Spark."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import ExecutionError, NotSupportedError, UsageError
from windrow.kernels.reference import aggregate
from windrow.kernels.reference.aggregates import AGGREGATES

DAY = datetime.timedelta(days=1)
COUNTS = {"count", "count_star", "count_if"}
LISTS = {"array_agg", "collect_list", "collect_set"}


def run(function: str, values: list[Any], **options: Any) -> Any:
    if function.startswith("percentile"):
        options.setdefault("parameters", (0.5,))
    return aggregate(function, values, **options)


@pytest.mark.parametrize("function", sorted(AGGREGATES))
@pytest.mark.parametrize("values", [[], [None, None]])
def test_over_no_values(function: str, values: list[Any]) -> None:
    if function == "count_star":
        assert run(function, values) == len(values)
    elif function in COUNTS:
        assert run(function, values) == 0
    elif function in LISTS:
        assert run(function, values) == []
    else:
        assert run(function, values) is None


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("count", 4),
        ("count_star", 5),
        ("sum", 10),
        ("avg", 2.5),
        ("min", 1),
        ("max", 5),
        ("median", 2.0),
        ("mode", 2),
        ("stddev", math.sqrt(3)),
        ("stddev_pop", 1.5),
        ("var_samp", 3.0),
        ("var_pop", 2.25),
        ("first", 1),
        ("last", None),
        ("collect_list", [1, 2, 2, 5]),
        ("collect_set", [1, 2, 5]),
    ],
)
def test_of_integers(function: str, expected: Any) -> None:
    found = run(function, [1, 2, 2, 5, None])
    assert found == expected
    assert type(found) is type(expected)


def test_distinct_leaves_out_repeated_values() -> None:
    assert run("count", [1, 1, None, 2], distinct=True) == 2
    assert run("sum", [1.5, 1.5, 2.0], distinct=True) == 3.5
    assert run("count", [math.nan, math.nan, 0.0, -0.0], distinct=True) == 2


def test_sample_statistics_of_one_value_are_null() -> None:
    assert [run(f, [1.0]) for f in ("stddev", "var_samp", "stddev_pop", "var_pop")] == [None, None, 0.0, 0.0]


def test_float_sums_are_correctly_rounded() -> None:
    assert run("sum", [1e16, 1.0, -1e16]) == 1.0
    assert run("sum", [0.1] * 10) == 1.0


def test_infinities_and_nan() -> None:
    assert run("sum", [1.0, math.inf]) == math.inf
    assert math.isnan(run("sum", [math.inf, -math.inf]))
    assert run("sum", [1e308, 1e308]) == math.inf
    assert math.isnan(run("stddev", [1.0, math.inf]))
    assert (run("min", [1.0, math.nan]), run("median", [1.0, math.inf])) == (1.0, math.inf)
    assert math.isnan(run("max", [1.0, math.nan]))


def test_integer_sums_are_exact_and_64_bits_wide_where_told_so() -> None:
    assert run("sum", [2**63 - 1, 1]) == 2**63
    with pytest.raises(ExecutionError, match="ARITHMETIC_OVERFLOW"):
        run("sum", [2**63 - 1, 1], kind="integer")


def test_decimals() -> None:
    values = [Decimal("1.25"), Decimal("2.50"), Decimal("2.50"), Decimal("5.00")]
    assert run("sum", values) == Decimal("11.25")
    assert str(run("avg", values)) == "2.812500"
    assert str(run("avg", [Decimal(1), Decimal(1), Decimal(0)], kind="decimal(2,1)")) == "0.66667"
    assert str(run("avg", [Decimal(2)] * 3, kind="decimal(38,37)"))[:4] == "2.00"
    assert run("median", values) == 2.5
    assert type(run("stddev", values)) is float


def test_decimal_sums_keep_all_38_digits() -> None:
    big = Decimal("9" * 37)
    assert run("sum", [big, Decimal(1)]) == Decimal(10**37)


def test_intervals() -> None:
    assert run("sum", [DAY, 2 * DAY, 2 * DAY]) == 5 * DAY
    assert run("avg", [DAY, 2 * DAY, 2 * DAY]) == DAY + DAY * 2 / 3
    assert run("median", [DAY, 2 * DAY]) == 1.5 * DAY
    micro = datetime.timedelta(microseconds=1)
    assert run("avg", [DAY, DAY + micro]) == DAY + micro
    assert run("avg", [-DAY, -DAY - micro]) == -DAY - micro


def test_percentile_interpolates() -> None:
    assert run("percentile", [1, 2, 2, 5], parameters=(0.3,)) == 1.9
    assert run("percentile", [1, 2, 2, 5], parameters=([0.1, 0.9],)) == [1.3, 4.1000000000000005]
    assert run("percentile", [-3, 2, 2], parameters=(0.3,)) == 0.0, "not what rounding leaves"
    assert math.isnan(run("percentile", [1.5, math.nan, 3.0], parameters=(1.0,)))


@pytest.mark.parametrize("parameters", [(), (1.5,), (0.1, 0.2)])
def test_percentile_takes_one_share(parameters: tuple[Any, ...]) -> None:
    with pytest.raises(UsageError, match="PERCENTILE_PARAMETER"):
        aggregate("percentile", [1], parameters=parameters)


def test_mode_gives_the_smallest_of_the_most_frequent() -> None:
    assert run("mode", ["b", "a", "b", "a", "c", None, None, None]) == "a"


def test_first_and_last_see_nulls_unless_told_not_to() -> None:
    values = [None, 2, 3, None]
    assert [run(f, values) for f in ("first", "any_value", "last_value")] == [None, None, None]
    assert [run(f, values, ignore_nulls=True) for f in ("first", "any_value", "last_value")] == [2, 2, 3]


def test_booleans() -> None:
    values = [True, None, False]
    assert [run(f, values) for f in ("every", "bool_or", "count_if", "min", "max")] == [
        False,
        True,
        1,
        False,
        True,
    ]


def test_dates_and_strings_have_least_and_greatest() -> None:
    assert run("max", [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]).year == 2021
    assert run("min", ["b", "B"]) == "B"


def test_an_unknown_aggregate_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="REFERENCE_AGGREGATE"):
        aggregate("kurtosis", [1])


FLOATS = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), max_size=12)


@given(FLOATS)
def test_aggregates_agree_with_their_definitions(values: list[float | None]) -> None:
    present = [value for value in values if value is not None]
    assert run("count", values) == len(present)
    assert run("sum", values) == (math.fsum(present) if present else None)
    if present:
        assert run("min", values) <= run("median", values) <= run("max", values)
        assert run("percentile", values, parameters=(0.0,)) == min(present)
        assert run("percentile", values, parameters=(1.0,)) == max(present)
        assert run("var_pop", values) >= 0


@given(FLOATS, st.randoms())
def test_the_order_of_the_values_decides_only_what_depends_on_order(values: list[Any], random: Any) -> None:
    shuffled = random.sample(values, len(values))
    for function in sorted(AGGREGATES - LISTS - {"first", "first_value", "last", "last_value", "any_value"}):
        of_floats = not function.startswith("bit_")
        if of_floats and function not in ("any", "some", "every", "bool_and", "bool_or", "count_if"):
            assert run(function, shuffled) == run(function, values), function
