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


INNER = "(SELECT 1 FROM r WINDOW BY x AS (TYPE SLIDING ORDER BY i START AS a WHEN a.v < s.v END))"
READ = INNER.replace("s.v", "`__around`.`{}`")


def test_groups_of_windows_that_having_chooses_are_groups_around() -> None:
    assert around(
        f"SELECT s.k, COUNT(*) AS n, MAX(COUNT(w)) FROM t {CLAUSE} HAVING EXISTS {INNER}"
        " AND EXISTS (SELECT 1 FROM r WHERE r.k = s.k) GROUP BY s.k HAVING COUNT(*) > 1 ORDER BY s.k"
    ) == (
        "SELECT `__inside1` AS `k`, COUNT(*) AS n, MAX( `__inside0` ) AS `MAX(COUNT(w))` FROM (SELECT"
        " COUNT(w) AS `__inside0`, s.k AS `__inside1`, s.v AS `__inside2` FROM t … ) AS `__around`"
        " WHERE EXISTS "
        + READ.format("__inside2")
        + " AND EXISTS (SELECT 1 FROM r WHERE r.k = `__around`.`__inside1` ) GROUP BY `__inside1`"
        " HAVING COUNT(*) > 1 ORDER BY `__inside1`"
    )


def test_names_of_select_in_having_before_groups_are_what_they_stand_for() -> None:
    assert around(
        f"SELECT s.k + p AS key, COUNT(*) AS n FROM t {CLAUSE} HAVING key > 2 AND EXISTS {INNER} GROUP BY key"
    ) == (
        "SELECT `__inside0` + `__inside1` AS key, COUNT(*) AS n FROM (SELECT s.k AS `__inside0`, p AS"
        " `__inside1`, s.v AS `__inside2` FROM t … ) AS `__around` WHERE ( `__inside0` + `__inside1` ) > 2"
        " AND EXISTS " + READ.format("__inside2") + " GROUP BY key"
    )


def test_aggregates_over_windows_that_having_chooses_are_around() -> None:
    assert around(f"SELECT COUNT(*), MAX(s.v) + 1 FROM t {CLAUSE} HAVING EXISTS {INNER}") == (
        "SELECT COUNT(*), MAX( `__inside0` ) + 1 AS `MAX(s.v) + 1` FROM (SELECT s.v AS `__inside0` FROM t … )"
        " AS `__around` WHERE EXISTS " + READ.format("__inside0")
    )


def test_aggregates_of_such_subqueries_are_around_where_having_chooses_windows() -> None:
    value = INNER.replace("1 FROM", "MAX(a.v) FROM")
    assert around(f"SELECT s.k, MAX({value}) AS m FROM t {CLAUSE} HAVING EXISTS {INNER} GROUP BY s.k") == (
        "SELECT `__inside0` AS `k`, MAX("
        + READ.format("__inside1").replace("1 FROM", "MAX(a.v) FROM")
        + ") AS m FROM (SELECT s.k AS `__inside0`, s.v AS `__inside1` FROM t … ) AS `__around` WHERE EXISTS "
        + READ.format("__inside1")
        + " GROUP BY `__inside0`"
    )


def test_having_of_groups_with_such_a_subquery_chooses_rows_of_the_query_inside() -> None:
    assert around(
        f"SELECT s.v, COUNT(*) AS n FROM t {CLAUSE} GROUP BY s.v HAVING n > 1 AND EXISTS {INNER}"
    ) == (
        "SELECT `v` AS `v`, `n` AS `n` FROM (SELECT s.v AS `v`, s.v AS `__inside1`, COUNT(*) AS `n` FROM t …"
        " GROUP BY s.v ) AS `__around` WHERE n > 1 AND EXISTS " + READ.format("__inside1")
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
