"""Windows with patterns over groups and windows become blocks around queries that give these."""

from __future__ import annotations

from windrow.algebra.rewriting.patterns.patterns_over_results import patterns_around
from windrow.syntax.tokens import tokenize

FRAME = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING PATTERN (A B+)"
CLAUSE = "WINDOW BY r AS (TYPE SLIDING ORDER BY d START AS s END AS e WHEN TRUE)"


def around(text: str) -> str:
    """The text as it is rewritten, with single spaces, and without the part of windows that is the same."""
    found = patterns_around(tokenize(text))
    assert found is not None
    return " ".join(found.render().replace(FRAME, "…").split())


def test_keys_aggregates_and_items_of_select_are_columns_of_the_query_inside() -> None:
    assert around(
        f"SELECT t.k, SUM(v) AS n, m OVER w FROM t GROUP BY t.k, a + b"
        f" WINDOW w AS (PARTITION BY t.k ORDER BY a + b, MAX(v)"
        f" MEASURES SUM(n) AS m {FRAME} DEFINE B AS n > 1)"
    ) == (
        "SELECT `k` AS `k`, `n` AS `n`, m OVER w FROM (SELECT t.k AS `k`, a + b AS `__inside1`,"
        " MAX(v) AS `__inside2`, SUM(v) AS `n` FROM t GROUP BY t.k, a + b )"
        " WINDOW w AS (PARTITION BY `k` ORDER BY `__inside1` , `__inside2` MEASURES SUM(n) AS m …"
        " DEFINE B AS n > 1)"
    )


def test_a_key_that_is_part_of_another_operation_is_not_the_key() -> None:
    found = around(
        f"SELECT m OVER w FROM t GROUP BY a + b"
        f" WINDOW w AS (ORDER BY c * a + b, f(a + b) MEASURES 1 AS m {FRAME} DEFINE B AS TRUE)"
    )
    assert "ORDER BY c * a + b, f( `__inside0` )" in found


def test_variables_of_the_pattern_hide_relations() -> None:
    found = around(
        f"SELECT b.k, m OVER w FROM b GROUP BY b.k"
        f" WINDOW w AS (ORDER BY b.k MEASURES LAST(b.k) AS m {FRAME} DEFINE B AS b.k > A.k)"
    )
    assert "ORDER BY `k` MEASURES LAST(b.k) AS m … DEFINE B AS b.k > A.k" in found


def test_a_name_of_select_that_is_no_key_leaves_its_name_to_the_key() -> None:
    found = around(
        f"SELECT upper(k) AS k, m OVER w FROM t GROUP BY k"
        f" WINDOW w AS (ORDER BY k MEASURES 1 AS m {FRAME} DEFINE B AS TRUE)"
    )
    assert found.startswith(
        "SELECT `__inside1` AS `k`, m OVER w FROM (SELECT k AS `k`, upper(k) AS `__inside1`"
    )


def test_variables_and_aggregates_of_window_by_are_columns() -> None:
    assert around(
        f"SELECT s.k, m OVER w + AVG(r.v) FROM t {CLAUSE} HAVING s.v > 1"
        f" WINDOW w AS (ORDER BY s.d MEASURES 1 AS m {FRAME} DEFINE B AS e.v > s.v) QUALIFY s.d > 1"
    ) == (
        "SELECT `k` AS `k`, m OVER w + `__inside0` AS `m OVER w + AVG(r.v)` FROM (SELECT AVG(r.v) AS"
        " `__inside0`, s.d AS `__inside1`, e.v AS `__inside2`, s.v AS `__inside3`, s.k AS `k`"
        f" FROM t {CLAUSE} HAVING s.v > 1 ) WINDOW w AS (ORDER BY `__inside1` MEASURES 1 AS m …"
        " DEFINE B AS `__inside2` > `__inside3` ) QUALIFY `__inside1` > 1"
    )


def test_comparisons_of_rows_are_columns() -> None:
    assert around(
        f"SELECT (s) <> e OR m OVER w, m OVER w FROM t {CLAUSE} WINDOW w AS (MEASURES 1 AS m {FRAME}"
        " DEFINE B AS NOT equal_null(s, e) AND CASE s WHEN e THEN TRUE END AND s NOT IN (e))"
    ) == (
        "SELECT `__inside0` OR m OVER w AS `(s) <> e OR m OVER w`, m OVER w FROM (SELECT (s) <> e AS"
        " `__inside0`, equal_null(s, e) AS `__inside1`, CASE s WHEN e THEN TRUE END AS `__inside2`,"
        f" s NOT IN (e) AS `__inside3` FROM t {CLAUSE} ) WINDOW w AS (MEASURES 1 AS m …"
        " DEFINE B AS NOT `__inside1` AND `__inside2` AND `__inside3` )"
    )


def test_case_of_rows_around_a_function_has_conditions() -> None:
    assert around(
        "SELECT CASE (s) WHEN e THEN m OVER w WHEN NULL THEN 0 ELSE CASE WHEN e = s THEN m OVER w END END"
        f" AS c FROM t {CLAUSE} WINDOW w AS (MEASURES 1 AS m {FRAME} DEFINE B AS TRUE)"
    ) == (
        "SELECT CASE WHEN `__inside0` THEN m OVER w WHEN FALSE THEN 0"
        " ELSE CASE WHEN `__inside1` THEN m OVER w END END AS c"
        f" FROM (SELECT (s) = e AS `__inside0`, e = s AS `__inside1` FROM t {CLAUSE} )"
        " WINDOW w AS (MEASURES 1 AS m … DEFINE B AS TRUE)"
    )


def test_blocks_over_rows_stay() -> None:
    text = f"SELECT m OVER w FROM t WINDOW w AS (ORDER BY d MEASURES 1 AS m {FRAME} DEFINE B AS TRUE)"
    assert patterns_around(tokenize(text)) is None
