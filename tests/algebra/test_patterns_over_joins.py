"""Windows with patterns over joins become SELECTs over queries that return the joins' rows."""

from __future__ import annotations

from windrow.algebra.rewriting.patterns.patterns_over_joins import patterns_over_join
from windrow.syntax.tokens import tokenize

FRAME = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING PATTERN (A B+)"


def around(text: str) -> str:
    """The text as it is rewritten, with single spaces, without what is the same in all windows."""
    found = patterns_over_join(tokenize(text))
    assert found is not None
    return " ".join(found.render().replace(FRAME, "…").split())


def test_columns_with_their_relation_are_columns_of_the_query_inside() -> None:
    assert around(
        f"SELECT o.k, p.k + 1, sum(o.v) OVER w, q FROM o JOIN p ON o.k = p.k WHERE o.v > 1"
        f" WINDOW w AS (PARTITION BY o.k ORDER BY p.d MEASURES LAST(q) AS q {FRAME} DEFINE B AS o.v > B.v)"
        " ORDER BY p.d"
    ) == (
        "SELECT `__of_o.k` AS `k`, `__of_p.k` + 1 AS `p.k + 1`,"
        " sum( `__of_o.v` ) OVER w AS `sum(o.v) OVER w`, q"
        " FROM (SELECT *, o.k AS `__of_o.k`, p.k AS `__of_p.k`, o.v AS `__of_o.v`, p.d AS `__of_p.d`"
        " FROM o JOIN p ON o.k = p.k WHERE o.v > 1) WINDOW w AS (PARTITION BY `__of_o.k` ORDER BY `__of_p.d`"
        " MEASURES LAST(q) AS q … DEFINE B AS `__of_o.v` > B.v) ORDER BY `__of_p.d`"
    )


def test_stars_are_rows_of_relations() -> None:
    text = around(
        "SELECT p.*, *, count(o.*) OVER w FROM o JOIN p ON o.k = p.k"
        f" WINDOW w AS (ORDER BY d {FRAME} DEFINE B AS TRUE)"
    )
    assert text.startswith(
        "SELECT `__of_p.*`.* , `__of_o.*`.*, `__of_p.*`.*, count( * ) OVER w AS `count(o.*) OVER w`"
        " FROM (SELECT *, struct(`p`.*) AS `__of_p.*`, struct(`o`.*) AS `__of_o.*` FROM"
    )
    assert around(
        f"SELECT *, o.k FROM o JOIN p USING (k) WINDOW w AS (ORDER BY d {FRAME} DEFINE B AS TRUE)"
    ).startswith("SELECT * EXCEPT (`__of_o.k`), `__of_o.k` AS `k` FROM (SELECT *, o.k AS `__of_o.k` FROM")


def test_names_of_variables_and_of_subqueries_are_others() -> None:
    text = (
        f"SELECT m OVER w FROM a JOIN o ON TRUE WINDOW w AS (ORDER BY d MEASURES LAST(a.d) AS m {FRAME}"
        " DEFINE B AS EXISTS (SELECT 1 FROM p AS o WHERE o.k > B.k))"
    )
    assert patterns_over_join(tokenize(text)) is None


def test_different_rows_are_sorted_by_what_is_selected() -> None:
    assert around(
        "SELECT DISTINCT o.k FROM o JOIN p ON TRUE"
        f" WINDOW w AS (ORDER BY d {FRAME} DEFINE B AS TRUE) ORDER BY O.k"
    ).endswith("ORDER BY `k`")
