"""Comparing: bags of typed rows, order where it is asked for, errors by condition and place. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.errors import AnalysisError, Span

from .casefile import ExpectedError, ExpectedRows, parse
from .literals import parse_schema
from .runner import Answer, difference, error_difference

QUERY = "SELECT b, b FROM t"


def _rows(header: str, *lines: str) -> ExpectedRows:
    body = "".join(f"    {line}\n" for line in lines)
    text = f"theme T\ncase c\nquery\n    {QUERY}\nexpect {header}\n{body}"
    expected = parse(text, Path("theme.case")).cases[0].expected
    assert isinstance(expected, ExpectedRows)
    return expected


def _error(*lines: str) -> ExpectedError:
    body = "".join(f"    {line}\n" for line in lines)
    text = f"theme T\ncase c\nquery\n    {QUERY}\nerror UNKNOWN\n{body}"
    expected = parse(text, Path("theme.case")).cases[0].expected
    assert isinstance(expected, ExpectedError)
    return expected


def _answer(schema: str, *rows: tuple[object, ...]) -> Answer:
    return Answer(parse_schema(schema), rows)


def _floats(*values: float | None) -> Answer:
    return _answer("x double", *((value,) for value in values))


PAIRS = _rows("", "a int, b string", "2 | y", "1 | x")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (((1, "x"),), ["missing (1):", "2 | y", "extra (0):"]),
        (((1, "x"), (2, "y"), (2, "y")), ["missing (0):", "extra (1):", "2 | y"]),
        (((1, "x"), (2, "z")), ["1 as expected", "missing (1):", "extra (1):", "2 | z"]),
    ],
)
def test_a_difference_of_bags_names_the_rows(found: tuple[tuple[object, ...], ...], words: list[str]) -> None:
    wrong = difference(PAIRS, _answer("a int, b string", *found))
    assert wrong is not None
    assert all(word in wrong for word in words)


def test_columns_that_differ_are_named_with_their_types() -> None:
    wrong = difference(PAIRS, _answer("a bigint"))
    assert wrong == "columns differ\nexpected: a int, b string\nfound:    a bigint"


def test_nan_equals_nan_and_floats_are_compared_exactly() -> None:
    expected = _rows("", "x double", "NaN", "0.3")
    assert difference(expected, _floats(0.3, float("nan"))) is None
    assert difference(expected, _floats(0.1 + 0.2, float("nan"))) is not None


def test_a_tolerance_is_relative_and_needs_no_order() -> None:
    expected = _rows("tolerance 1e-9: a reason", "x double", "NULL", "0.3", "5.0")
    assert difference(expected, _floats(5.0, 0.1 + 0.2, None)) is None
    assert difference(expected, _floats(5.1, 0.3, None)) is not None


def test_ordered_rows_are_compared_in_order() -> None:
    expected = _rows("ordered", "x double", "1.0", "2.0")
    assert difference(expected, _floats(1.0, 2.0)) is None
    assert "from row 1 on" in (difference(expected, _floats(2.0, 1.0)) or "")
    assert "from row 3 on" in (difference(expected, _floats(1.0, 2.0, 3.0)) or "")


def test_an_error_is_compared_in_condition_place_and_hint() -> None:
    expected = _error("at: SELECT «b»", "hint: did you mean")
    right = AnalysisError("x", condition="UNKNOWN", span=Span(7, 8), sql=QUERY, hint="did you mean a?")
    assert error_difference(expected, QUERY, right) is None
    wrong = AnalysisError("x", condition="OTHER", span=Span(10, 11), sql=QUERY)
    text = error_difference(expected, QUERY, wrong)
    assert text is not None
    assert "condition: expected UNKNOWN, found OTHER" in text
    assert "caret: expected 'b' at 7, found 'b' at 10" in text
    assert "hint: expected to contain 'did you mean', found ''" in text
