"""Windows with patterns that choose the rows of WINDOW BY stand in a query of these rows."""

from __future__ import annotations

import pytest

from windrow.algebra.rewriting.patterns.patterns_before_windows import patterns_below
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


def test_a_join_has_columns_for_what_is_read_with_its_relations() -> None:
    chosen = f"QUALIFY m OVER (ORDER BY u.d {PATTERN}) > 2"
    keys = CLAUSE.replace("ORDER BY d", "ORDER BY u.d")
    assert below(f"SELECT s.t.k, s.u.*, MAX(r.t.v) + 1, s.e FROM t, u {chosen} {keys}") == (
        "SELECT s.`__of_t.k` AS `k`, s.`__of_u.*` , MAX(r.`__of_t.v` ) + 1 AS `MAX(r.t.v) + 1`, s.e"
        " FROM (SELECT *, t.k AS `__of_t.k`, struct(u.*) AS `__of_u.*`, t.v AS `__of_t.v`, u.d AS `__of_u.d`"
        f" FROM t, u {chosen}) {keys.replace(' u.d', '`__of_u.d`')}"
    )


def test_groups_are_a_query_with_their_keys_and_names() -> None:
    chosen = f"QUALIFY m OVER (ORDER BY n {PATTERN}) > 2"
    grouped = "GROUP BY d, k AS l LET n = COUNT(*) HAVING n > 1"
    assert below(f"SELECT s.t.d, s.n FROM t {grouped} {chosen} {CLAUSE}") == (
        "SELECT s.`__of_t.d` AS `d`, s.n FROM (SELECT d, k AS l, COUNT(*) AS n, t.d AS `__of_t.d`"
        f" FROM t GROUP BY d, k HAVING n > 1 {chosen}) {CLAUSE}"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT m OVER p FROM t {CLAUSE} WINDOW p AS (ORDER BY s.d {PATTERN})",
        f"SELECT s.d FROM (SELECT m OVER (ORDER BY d {PATTERN}) AS d FROM t) {CLAUSE}",
    ],
    ids=["after the clause", "in a subquery"],
)
def test_other_windows_with_patterns_stay(text: str) -> None:
    assert below(text) is None
