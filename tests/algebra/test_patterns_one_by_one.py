"""Several windows with patterns in one SELECT become SELECTs of one each."""

from __future__ import annotations

from windrow.algebra.rewriting.patterns.patterns_one_by_one import patterns_one_by_one
from windrow.syntax.patterns.pattern_windows import find_pattern_windows
from windrow.syntax.tokens import tokenize

FRAME = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING PATTERN (A B+) DEFINE B AS TRUE"


def test_the_calls_of_the_first_window_are_columns_of_a_query_inside() -> None:
    tokens = tokenize(
        "SELECT DISTINCT *, m OVER p, n OVER q + m OVER p, r.k FROM t AS r WHERE x > 1"
        f" WINDOW keys AS (ORDER BY d), p AS (keys MEASURES 1 AS m {FRAME}),"
        f" q AS (keys MEASURES 2 AS n {FRAME})"
        " QUALIFY m OVER p > 1 LIMIT 3"
    )
    (query,) = find_pattern_windows(tokens)
    text = " ".join(patterns_one_by_one(tokens, query).render().replace(FRAME, "…").split())
    assert text == (
        "SELECT DISTINCT * EXCEPT (`__before2_0`, `__before2_1`, `__before2_2`), `__before2_0` AS `m`,"
        " n OVER q + `__before2_1` AS `n OVER q + m OVER p`, r.k"
        " FROM (SELECT *, m OVER p AS `__before2_0`, m OVER p AS `__before2_1`,"
        " m OVER p AS `__before2_2` FROM t AS r WHERE x > 1 WINDOW keys AS (ORDER BY d),"
        " p AS (keys MEASURES 1 AS m …))"
        " AS r WINDOW keys AS (ORDER BY d), q AS (keys MEASURES 2 AS n …) QUALIFY `__before2_2` > 1 LIMIT 3"
    )
