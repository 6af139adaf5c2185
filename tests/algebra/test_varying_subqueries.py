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
        " WHERE k = f.k AND x NOT IN (SELECT inline(__lists1.rows1))"
    )


def test_operands_of_a_set_operator_have_lists_of_their_own() -> None:
    assert condition(
        "SELECT q.x FROM o [RANGE 4] AS q WHERE q.k = f.k UNION ALL SELECT q.x FROM t AS q WHERE q.x IN"
        " (SELECT x FROM o [RANGE 1])"
    ) == (
        "SELECT q.x FROM (SELECT inline(f.rows0)) AS q WHERE q.k = f.k UNION ALL SELECT q.x FROM"
        " (SELECT f.rows1 AS rows1) AS __lists1, t AS q WHERE q.x IN (SELECT inline(__lists1.rows1))"
    )


def test_what_reads_no_query_around_is_one_value() -> None:
    assert condition(
        "SELECT 1 FROM o [RANGE 4] AS q WHERE q.k = f.k AND q.x > (SELECT MIN(q.x) FROM o [RANGE 1] AS q)"
    ) == ("SELECT 1 FROM (SELECT inline(f.rows0)) AS q WHERE q.k = f.k AND q.x > f.subquery1")


def test_beside_groups_lists_are_keys() -> None:
    assert condition(
        "SELECT 1 FROM t WHERE t.k = f.k GROUP BY t.x HAVING MAX(t.y) > (SELECT MIN(x) FROM o [NOW] AS p"
        " WHERE p.k = t.x)"
    ) == (
        "SELECT 1 FROM (SELECT f.rows0 AS rows0) AS __lists1, t WHERE t.k = f.k GROUP BY t.x, __lists1.rows0"
        " HAVING MAX(t.y) > (SELECT MIN(x) FROM (SELECT inline(__lists1.rows0)) AS p WHERE p.k = t.x)"
    )


def test_group_by_all_lists_the_items_without_aggregates() -> None:
    assert condition(
        "SELECT COUNT(*), t.x FROM t WHERE t.k = f.k GROUP BY ALL HAVING t.x IN (SELECT x FROM o [NOW])"
    ) == (
        "SELECT COUNT(*), t.x FROM (SELECT f.rows0 AS rows0) AS __lists1, t WHERE t.k = f.k"
        " GROUP BY 2, __lists1.rows0 HAVING t.x IN (SELECT inline(__lists1.rows0))"
    )


def test_aggregates_of_all_rows_are_a_query_in_from() -> None:
    assert condition(
        "SELECT MAX(t.x) IN (SELECT x FROM o [NOW]) AS b FROM t WHERE t.k = f.k HAVING EXISTS"
        " (SELECT 1 FROM u [NOW] AS p WHERE p.x > MIN(t.x))"
    ) == (
        "SELECT __groups1.c0 IN (SELECT inline(__lists1.rows0)) AS b"
        " FROM (SELECT f.rows0 AS rows0, f.rows1 AS rows1) AS __lists1,"
        " (SELECT MAX(t.x) AS c0, MIN(t.x) AS c1 FROM t WHERE t.k = f.k) AS __groups1"
        " GROUP BY __groups1.c0, __groups1.c1, __lists1.rows0, __lists1.rows1 HAVING EXISTS"
        " (SELECT 1 FROM (SELECT inline(__lists1.rows1)) AS p WHERE p.x > __groups1.c1)"
    )


def test_arguments_of_aggregates_are_computed_row_by_row() -> None:
    assert condition(
        "SELECT COUNT(*) FILTER (WHERE t.x IN (SELECT x FROM o [NOW])) FROM t WHERE t.k = f.k"
    ) == (
        "SELECT COUNT(*) FILTER (WHERE __computed1.c0) FROM (SELECT f.rows0 AS rows0) AS __lists1, t,"
        " LATERAL (SELECT t.x IN (SELECT inline(__lists1.rows0)) AS c0"
        " FROM (SELECT __lists1.*) AS __lists1, (SELECT t.*) AS t) AS __computed1 WHERE t.k = f.k"
    )


def test_lists_stand_beside_the_relation_that_a_join_reads_with_them() -> None:
    assert condition(
        "SELECT 1 FROM t JOIN u ON t.k = u.k AND u.x IN (SELECT x FROM o [NOW]) WHERE t.k = f.k"
    ) == (
        "SELECT 1 FROM t JOIN (u CROSS JOIN (SELECT f.rows0 AS rows0) AS __lists1_32)"
        " ON t.k = u.k AND u.x IN (SELECT inline(__lists1_32.rows0)) WHERE t.k = f.k"
    )


def test_parameters_that_are_moved_have_the_names_of_their_places() -> None:
    moved = condition("SELECT SUM(t.x + ?) IN (SELECT x FROM o [NOW]) FROM t WHERE t.k = f.k AND t.x < ?")
    assert "?" not in moved
    assert "SUM(t.x + :__windrow_0)" in moved
    assert "t.x < :__windrow_1" in moved


@pytest.mark.parametrize(
    ("subquery", "hint"),
    [
        (
            "SELECT 1 FROM t AS q WHERE q.x > (SELECT 1 FROM o [NOW] AS p WHERE p.k = f.k)",
            "outer subquery alone",
        ),
        ("SELECT 1 FROM t LEFT JOIN u ON t.k IN (SELECT k FROM o [NOW]) WHERE t.k = f.k", "in WHERE, or in"),
        ("FROM t SELECT COUNT(*) IN (SELECT x FROM o [NOW]) WHERE t.k = f.k", "around it with SELECT"),
        ("FROM t |> WHERE t.k = f.k AND t.x IN (SELECT x FROM o [NOW])", "in WHERE, or in FROM"),
    ],
    ids=["rows of the clause", "outer joins", "FROM first", "pipes"],
)
def test_lists_are_handed_on_where_spark_sees_them(subquery: str, hint: str) -> None:
    with pytest.raises(NotSupportedError) as raised:
        condition(subquery)
    assert raised.value.condition == "UNSUPPORTED_STREAM"
    assert raised.value.hint is not None
    assert hint in raised.value.hint
