"""Clauses in subqueries that read variables of WINDOW BY around read columns of a query of its windows."""

from __future__ import annotations

import pytest

from windrow.algebra.rewriting.clauses_over_variables import clauses_over_variables
from windrow.syntax.tokens import tokenize

CLAUSE = "WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i START AS s AT p END AS e WHEN e.v > s.v)"


def around(text: str) -> str | None:
    """The text as it is rewritten, with single spaces."""
    found = clauses_over_variables(tokenize(text))
    return None if found is None else " ".join(found.render().replace(CLAUSE, "…").split())


def test_what_is_read_is_a_column_and_names_of_the_clause_inside_win() -> None:
    assert around(
        "SELECT s.i, AVG(w.v) + (SELECT MAX(COUNT(w)) FROM r WHERE r.v > s.v AND r.k = p WINDOW BY w AS"
        f" (TYPE SLIDING ORDER BY i START AS e WHEN e.v < s.v END)) AS m FROM t {CLAUSE} ORDER BY s.i"
    ) == (
        "SELECT `i` AS `i`, `__inside0` + (SELECT MAX(COUNT(w)) FROM r WHERE r.v > `__around`.`__inside2` AND"
        " r.k = `__around`.`__inside3` WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS e WHEN e.v <"
        " `__around`.`__inside2` END)) AS m FROM (SELECT AVG(w.v) AS `__inside0`, s.i AS `__inside1`,"
        " s.v AS `__inside2`, p AS `__inside3`, s.i AS `i` FROM t … ) AS `__around` ORDER BY `__inside1`"
    )


def test_a_star_leaves_out_what_is_only_read() -> None:
    assert around(
        "SELECT *, (SELECT COUNT(*) FROM r MATCH_RECOGNIZE (ORDER BY i PATTERN (A) DEFINE A AS v > s.v)) AS n"
        f" FROM t {CLAUSE}"
    ) == (
        "SELECT * EXCEPT (`__inside0`), (SELECT COUNT(*) FROM r MATCH_RECOGNIZE (ORDER BY i PATTERN (A)"
        " DEFINE A AS v > `__around`.`__inside0` )) AS n FROM (SELECT *, s.v AS `__inside0` FROM t … )"
        " AS `__around`"
    )


def test_having_with_such_a_subquery_chooses_rows_of_the_query_inside() -> None:
    assert around(
        f"SELECT s.i, COUNT(w) AS n FROM t {CLAUSE} HAVING n > 1 AND COUNT(w) < (SELECT MAX(COUNT(x)) FROM r"
        " WINDOW BY x AS (TYPE SLIDING ORDER BY i START AS a WHEN a.v < s.v END)) ORDER BY n"
    ) == (
        "SELECT `i` AS `i`, `n` AS `n` FROM (SELECT COUNT(w) AS `__inside0`, s.v AS `__inside1`,"
        " s.i AS `i`, COUNT(w) AS `n` FROM t … ) AS `__around` WHERE n > 1 AND `__inside0` <"
        " (SELECT MAX(COUNT(x)) FROM r WINDOW BY x AS (TYPE SLIDING ORDER BY i START AS a WHEN a.v <"
        " `__around`.`__inside1` END)) ORDER BY n"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT (SELECT COUNT(*) FROM r WHERE r.v > s.v) FROM t {CLAUSE}",
        f"SELECT * FROM t {CLAUSE}",
        f"SELECT (SELECT MAX(COUNT(w)) FROM r AS s WHERE s.v > 1 {CLAUSE}) FROM t {CLAUSE}",
        f"SELECT s.i FROM t WHERE EXISTS (SELECT 1 FROM r {CLAUSE}) {CLAUSE}",
    ],
)
def test_other_subqueries_stay(text: str) -> None:
    assert around(text) is None
