"""Tables and errors in terminals that are narrow, with text of any script."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from windrow.cli.output.text_tables import print_table
from windrow.errors import AnalysisError, Span, render


@pytest.mark.parametrize("width", [24, 60, 80, 100])
def test_a_wide_table_shows_the_columns_that_can_be_read_and_says_so(width):
    file = io.StringIO()
    names = ["id", *(f"column_{at}" for at in range(40))]
    rows = [["1", *["x" * 30] * 40], ["2", *[None] * 40]]
    print_table(Console(file=file, width=width), names, rows, [True] + [False] * 40, more=None, plain=True)
    lines = file.getvalue().splitlines()
    shown = lines[1].count("|") - 2
    assert "id" in lines[1]
    assert "..." in lines[1]
    assert f"{shown} of 41 columns fit" in " ".join(file.getvalue().split())
    assert all(cell_len(line) <= width for line in lines)
    assert shown == 1 or lines[3].count("x") >= 12 * (shown - 1)


def test_a_table_that_fits_shows_all_of_it_however_long_its_values_are():
    file = io.StringIO()
    print_table(
        Console(file=file, width=40),
        ["id", "text"],
        [["1", "日本語" * 40]],
        [True, False],
        more=None,
        plain=True,
    )
    assert "".join(line for line in file.getvalue() if line in "日本語") == "日本語" * 40
    assert file.getvalue().endswith("1 row\n")


@pytest.mark.parametrize("width", [30, 50, 80, None])
def test_the_caret_stands_below_what_is_wrong_however_long_the_line_is(width):
    before = "SELECT '日本語' AS ключ, " + ", ".join(f"column_{at}" for at in range(20)) + ", "
    for wrong, after in (("nope", " FROM tt"), ("nope", ", x" * 50), ("nope" * 30, "")):
        sql = before + wrong + after
        error = AnalysisError(
            "no column", condition="X", sql=sql, span=Span(len(before), len(before + wrong))
        )
        _, place, line, carets = render(error, width).splitlines()
        assert place == f"line 1, column {len(before) + 1}"
        assert width is None or max(cell_len(line), cell_len(carets)) <= width
        at = cell_len(carets) - carets.count("^")
        under = next(line[start:] for start in range(len(line)) if cell_len(line[:start]) == at)
        assert under.startswith(wrong[: carets.count("^")])
        assert carets.count("^") >= 4
