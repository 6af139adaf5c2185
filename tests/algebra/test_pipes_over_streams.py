"""Which SELECTs stand for a pipe over streams."""

from __future__ import annotations

import pytest

from windrow.algebra.rewriting.pipes_over_streams import pipe_as_selects
from windrow.syntax.tokens import tokenize


def whole(text):
    """The text when no pipe is left that has such a form, with one space between tokens."""
    found = pipe_as_selects(tokenize(text))
    return " ".join(token.text for token in tokenize(text).tokens) if found is None else whole(found.render())


@pytest.mark.parametrize(
    ("text", "selects"),
    [
        ("FROM s [NOW] |> WHERE k = 1", "SELECT * FROM s [NOW] WHERE (k = 1)"),
        ("TABLE s |> SELECT k", "SELECT k FROM s"),
        ("SELECT k FROM s [NOW] |> LIMIT 2", "SELECT * FROM (SELECT k FROM s [NOW]) LIMIT 2"),
        (
            "FROM a.s [NOW] |> WHERE x |> AGGREGATE COUNT(*) AS n GROUP BY k % 2 AS o |> WHERE n > 1",
            "SELECT * FROM (SELECT k % 2 AS o, COUNT(*) AS n FROM a.s [NOW] WHERE (x) GROUP BY k % 2) AS `s`"
            " WHERE (n > 1)",
        ),
        (
            "FROM s a |> WHERE x |> JOIN t b",
            "SELECT * FROM (SELECT * FROM s a WHERE (x)) AS `a` JOIN t b",
        ),
        (
            "FROM s |> ORDER BY v |> LIMIT 2 OFFSET 1 |> DROP v |> AS q",
            "SELECT * FROM (SELECT * EXCEPT (v) FROM (SELECT * FROM s ORDER BY v LIMIT 2 OFFSET 1) AS `s`)"
            " AS `q`",
        ),
        (
            "FROM s |> SET k = 1 |> WHERE x |> SET k = 2 |> LIMIT 1",
            "SELECT * FROM (FROM (SELECT * FROM (FROM s |> SET k = 1) AS `s` WHERE (x)) AS `s` |> SET k = 2)"
            " AS `s` LIMIT 1",
        ),
        ("FROM s |> UNION ALL SELECT 1 |> SELECT k", "SELECT k FROM (SELECT * FROM s UNION ALL SELECT 1)"),
        (
            "FROM s |> LIMIT 2 |> UNION ALL TABLE t |> OFFSET 3 |> LIMIT 1",
            "SELECT * FROM ((SELECT * FROM s LIMIT 2) UNION ALL TABLE t) LIMIT 1 OFFSET 3",
        ),
        (
            "FROM s |> ORDER BY v |> ORDER BY k |> OFFSET 1 |> AGGREGATE COUNT(*) |> LIMIT 1",
            "SELECT * FROM (SELECT COUNT(*) FROM (SELECT * FROM (SELECT * FROM s ORDER BY v) AS `s`"
            " ORDER BY k OFFSET 1) AS `s`) AS `s` LIMIT 1",
        ),
        (
            "FROM s |> ORDER BY k |> OFFSET 1 |> LIMIT 2 |> WHERE x",
            "SELECT * FROM (SELECT * FROM s ORDER BY k LIMIT 2 OFFSET 1) AS `s` WHERE (x)",
        ),
        (
            "FROM s |> LIMIT 3 |> OFFSET 1",
            "SELECT * FROM (SELECT * FROM s LIMIT 3) AS `s` OFFSET 1",
        ),
        (
            "FROM s |> ORDER BY v |> LIMIT 3 |> OFFSET 1",
            "SELECT * EXCEPT (`__order0`) FROM (SELECT * FROM (SELECT *, (v) AS `__order0` FROM s) AS `s`"
            " ORDER BY `__order0` ASC NULLS FIRST LIMIT 3) AS `s`"
            " ORDER BY `__order0` ASC NULLS FIRST OFFSET 1",
        ),
        (
            "FROM s |> ORDER BY v DESC |> SELECT k |> LIMIT 3",
            "SELECT * EXCEPT (`__order0`) FROM (SELECT k, `__order0` FROM (SELECT * FROM"
            " (SELECT *, (v) AS `__order0` FROM s) AS `s` ORDER BY `__order0` DESC NULLS LAST) AS `s`) AS `s`"
            " ORDER BY `__order0` DESC NULLS LAST LIMIT 3",
        ),
        (
            "FROM s |> ORDER BY v |> WHERE k IN (SELECT * FROM t) |> LIMIT 3"
            " |> AGGREGATE COUNT(*) GROUP BY ROLLUP (k)",
            "SELECT * FROM (FROM (SELECT * EXCEPT (`__order0`) FROM (SELECT * FROM"
            " (SELECT *, (v) AS `__order0` FROM s) AS `s` ORDER BY `__order0` ASC NULLS FIRST) AS `s`"
            " WHERE (k IN (SELECT * FROM t)) ORDER BY `__order0` ASC NULLS FIRST LIMIT 3) AS `s`"
            " |> AGGREGATE COUNT(*) GROUP BY ROLLUP (k)) AS `s`",
        ),
        (
            "FROM s |> WHERE v > 0 ORDER BY v LIMIT 2 OFFSET 1",
            "SELECT * FROM s WHERE (v > 0) ORDER BY v LIMIT 2 OFFSET 1",
        ),
        (
            "FROM s |> WHERE x |> AGGREGATE COUNT(*) AS n GROUP BY k LIMIT 1",
            "SELECT * FROM (SELECT k, COUNT(*) AS n FROM s WHERE (x) GROUP BY k) AS `s` LIMIT 1",
        ),
        (
            "FROM s, t b |> WHERE s.v > 1 |> WHERE w > 2 |> LEFT JOIN u ON u.k = b.k",
            "SELECT * FROM s CROSS JOIN t b LEFT SEMI JOIN (SELECT 1 AS `__one`) AS `__one`"
            " ON (s.v > 1) AND (w > 2) LEFT JOIN u ON u.k = b.k",
        ),
        (
            "FROM s JOIN t b |> WHERE s.v > 1 |> SELECT s.k |> JOIN u",
            "SELECT * FROM (SELECT s.k FROM s JOIN t b WHERE (s.v > 1)) JOIN u",
        ),
        (
            "FROM s JOIN t b |> ORDER BY b.v DESC |> WHERE s.v > 1 |> SELECT s.k |> LIMIT 1",
            "SELECT * EXCEPT (`__order0`) FROM (SELECT s.k, `__order0` FROM s JOIN t b"
            " JOIN LATERAL (SELECT (b.v) AS `__order0`) AS `__keys` WHERE (s.v > 1))"
            " ORDER BY `__order0` DESC NULLS LAST LIMIT 1",
        ),
        ("FROM s |> PIVOT (f FOR k IN (1))", "SELECT * FROM (SELECT * FROM s) PIVOT (f FOR k IN (1))"),
        (
            "FROM s |> AGGREGATE COUNT(*) AS n GROUP BY k EMIT STREAM AFTER WATERMARK",
            "SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT STREAM AFTER WATERMARK",
        ),
        (
            "WITH q AS (FROM s |> SELECT k) FROM q |> WHERE k IN (FROM t |> SELECT k)",
            "WITH q AS (SELECT k FROM s) SELECT * FROM q WHERE (k IN (SELECT k FROM t))",
        ),
    ],
)
def test_operators_in_selects(text, selects):
    assert whole(text) == " ".join(token.text for token in tokenize(selects).tokens)


@pytest.mark.parametrize(
    "operator",
    [
        "SET k = 1",
        "TABLESAMPLE (1 ROWS)",
        "SELECT v OVER w WINDOW w AS (ORDER BY v)",
        "AGGREGATE COUNT(*) GROUP BY ROLLUP (k)",
        "AGGREGATE COUNT(*) GROUP BY 1",
    ],
)
def test_operators_that_have_no_select(operator):
    assert pipe_as_selects(tokenize(f"FROM s [NOW] |> {operator}")) is None


@pytest.mark.parametrize(
    "operators",
    [
        # clauses without a pipe, of the whole, which Spark does not have before another pipe
        "WHERE v > 0 LIMIT 1 |> SELECT k",
        "ORDER BY v LIMIT 1",
        "SELECT k UNION ALL SELECT k FROM t",
        "WHERE v > 0 SORT BY v",
        "WHERE limit > 0 LIMIT 1",
        # relations would lose their names
        "JOIN t b |> ORDER BY b.v |> JOIN u ON u.k = b.k |> ORDER BY u.v |> WHERE k > 0 |> LIMIT 1",
        # keys by the places of columns, where LIMIT needs them as columns
        "ORDER BY 3 DESC |> WHERE k > 0 |> LIMIT 2",
        "ORDER BY v, (2) |> SELECT k |> LIMIT 2",
        "ORDER BY ALL DESC |> SELECT k |> LIMIT 2",
        # these keys would be in the star, or left out
        "ORDER BY v |> EXTEND struct(*) AS z |> LIMIT 2",
        "ORDER BY v |> SELECT to_json(struct(s.*)) AS z |> LIMIT 2",
        "ORDER BY v |> SELECT SUM(v) OVER w AS n WINDOW w AS (PARTITION BY k) |> LIMIT 2",
    ],
)
def test_pipes_that_stay(operators):
    assert pipe_as_selects(tokenize(f"FROM s [NOW] |> {operators}")) is None
