"""Subqueries of a clause over windows of time: lists of rows are handed on to subqueries that read them."""

from __future__ import annotations

import pytest

from windrow.algebra.bind import bind
from windrow.algebra.window_node import Window
from windrow.errors import NotSupportedError
from windrow.syntax.tokens import tokenize


def condition(subquery: str) -> str:
    """START with EXISTS of this subquery, as it is written for Spark, with short names."""
    text = (
        "SELECT f.ts FROM s [RANGE 3] WINDOW BY w AS (TYPE SLIDING ORDER BY ts"
        f" START AS f WHEN EXISTS ({subquery}) END)"
    )
    tokens = tokenize(text)
    bound = bind(tokens, (0, len(tokens)), varying=())
    assert bound is not None
    (window,) = bound.windows
    assert isinstance(window, Window)
    assert window.start.when is not None
    found = window.start.when.text.render().replace("__of___outer0.", "").replace("__of_f", "f")
    return " ".join(found.replace("`", "").removeprefix("EXISTS (").removesuffix(")").split())


def test_a_list_is_handed_on_in_from_of_each_query_in_between() -> None:
    assert condition(
        "SELECT 1 FROM t AS q WHERE q.k = f.k AND EXISTS (SELECT 1 FROM o [RANGE 1] AS p WHERE p.k = q.k"
        " AND p.x = (SELECT MAX(x) FROM o [RANGE 2] AS z WHERE z.k = p.k))"
    ) == (
        "SELECT 1 FROM (SELECT f.rows0 AS rows0, f.rows1 AS rows1) AS __lists1, t AS q WHERE q.k = f.k AND"
        " EXISTS (SELECT 1 FROM (SELECT __lists1.rows1 AS rows1) AS __lists2, (SELECT inline(__lists1.rows0))"
        " AS p WHERE p.k = q.k AND p.x = (SELECT MAX(x) FROM (SELECT inline(__lists2.rows1)) AS z"
        " WHERE z.k = p.k))"
    )


def test_stars_leave_lists_out() -> None:
    assert condition(
        "SELECT * EXCEPT (k), struct(*), x * 2 FROM o [RANGE 4] WHERE k = f.k AND x NOT IN"
        " (SELECT * FROM u [RANGE 1])"
    ) == (
        "SELECT * EXCEPT (rows1, k), struct(* EXCEPT (rows1)), x * 2"
        " FROM (SELECT f.rows1 AS rows1) AS __lists1, (SELECT inline(f.rows0)) AS o"
        " WHERE k = f.k AND x NOT IN (SELECT * FROM (SELECT inline(__lists1.rows1)) AS u)"
    )


def test_operands_of_a_set_operator_have_lists_of_their_own() -> None:
    assert condition(
        "SELECT q.x FROM o [RANGE 4] AS q WHERE q.k = f.k UNION ALL SELECT q.x FROM t AS q WHERE q.x IN"
        " (SELECT x FROM o [RANGE 1])"
    ) == (
        "SELECT q.x FROM (SELECT inline(f.rows0)) AS q WHERE q.k = f.k UNION ALL SELECT q.x FROM"
        " (SELECT f.rows1 AS rows1) AS __lists1, t AS q WHERE q.x IN"
        " (SELECT x FROM (SELECT inline(__lists1.rows1)) AS o)"
    )


def test_what_reads_no_query_around_is_one_value() -> None:
    assert condition(
        "SELECT 1 FROM o [RANGE 4] AS q WHERE q.k = f.k AND q.x > (SELECT MIN(q.x) FROM o [RANGE 1] AS q)"
    ) == ("SELECT 1 FROM (SELECT inline(f.rows0)) AS q WHERE q.k = f.k AND q.x > f.subquery1")


@pytest.mark.parametrize(
    ("subquery", "hint"),
    [
        (
            "SELECT 1 FROM t AS q WHERE q.x > (SELECT 1 FROM o [NOW] AS p WHERE p.k = f.k)",
            "outer subquery alone",
        ),
        ("SELECT 1 FROM t JOIN u ON t.k IN (SELECT k FROM o [NOW]) WHERE t.k = f.k", "in WHERE, or in FROM"),
        (
            "SELECT 1 FROM t WHERE t.k = f.k GROUP BY t.x HAVING t.x IN (SELECT 1 FROM o [NOW])",
            "in WHERE, or",
        ),
        ("SELECT COUNT(*) IN (SELECT x FROM o [NOW]) FROM t WHERE t.k = f.k", "in WHERE, or in FROM"),
    ],
    ids=["rows of the clause", "ON", "groups", "aggregates"],
)
def test_lists_are_handed_on_where_spark_sees_them(subquery: str, hint: str) -> None:
    with pytest.raises(NotSupportedError) as raised:
        condition(subquery)
    assert raised.value.condition == "UNSUPPORTED_STREAM"
    assert raised.value.hint is not None
    assert hint in raised.value.hint
