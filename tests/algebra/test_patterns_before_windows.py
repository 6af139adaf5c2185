"""Windows with patterns that choose the rows of WINDOW BY stand in a query of these rows."""

from __future__ import annotations

import pytest

from windrow.algebra.rewriting.patterns_before_windows import patterns_below
from windrow.syntax.tokens import tokenize

PATTERN = (
    "MEASURES COUNT(*) AS m ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING PATTERN (A B+) DEFINE B AS v > 1"
)
CLAUSE = "WINDOW BY r AS (TYPE SLIDING ORDER BY d START AS s END)"


def below(text: str) -> str | None:
    """The text as it is rewritten, with single spaces."""
    found = patterns_below(tokenize(text))
    return None if found is None else " ".join(found.render().split())


@pytest.mark.parametrize(
    ("relation", "name"),
    [
        ("t", "AS `t` "),
        ("x.t AS u", "AS `u` "),
        ("(SELECT * FROM t)", ""),
        ("VALUES (1), (2) AS v(d)", "AS `v` "),
    ],
)
@pytest.mark.parametrize(
    "chosen",
    [
        f"WHERE d > 1 WINDOW p AS (ORDER BY d {PATTERN}), o AS (ORDER BY d) QUALIFY m OVER p > 2",
        f"QUALIFY m OVER (ORDER BY d {PATTERN}) > 2",
    ],
)
def test_rows_that_a_pattern_chooses_are_a_query_in_from(relation: str, name: str, chosen: str) -> None:
    assert below(f"SELECT s.d FROM {relation} {chosen} {CLAUSE} ORDER BY s.d") == (
        f"SELECT s.d FROM (SELECT * FROM {relation} {chosen}) {name}{CLAUSE} ORDER BY s.d"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT m OVER p FROM t {CLAUSE} WINDOW p AS (ORDER BY s.d {PATTERN})",
        f"SELECT s.d FROM (SELECT m OVER (ORDER BY d {PATTERN}) AS d FROM t) {CLAUSE}",
        f"SELECT s.d FROM t, u QUALIFY m OVER (ORDER BY d {PATTERN}) > 2 {CLAUSE}",
        f"SELECT s.d FROM t GROUP BY d QUALIFY m OVER (ORDER BY d {PATTERN}) > 2 {CLAUSE}",
    ],
    ids=["after the clause", "in a subquery", "a join", "groups"],
)
def test_other_windows_with_patterns_stay(text: str) -> None:
    assert below(text) is None
