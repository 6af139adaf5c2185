"""Which block stands for a clause in a pipe."""

from __future__ import annotations

import pytest

from windrow.algebra.rewriting.pipes import as_nested_queries
from windrow.syntax.tokens import tokenize

W = "WINDOW BY w AS (TYPE SLIDING ORDER BY x START AS s END)"
M = "MATCH_RECOGNIZE (ORDER BY x PATTERN (a b) DEFINE b AS b.x > 1)"
P = (
    "(ORDER BY x MEASURES a.x AS m ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING PATTERN (a)"
    " DEFINE a AS a.x > 1)"
)


def whole(text):
    """The text when no clause stands in a pipe any more, with one space between tokens."""
    found = as_nested_queries(tokenize(text))
    return " ".join(token.text for token in tokenize(text).tokens) if found is None else whole(found.render())


@pytest.mark.parametrize(
    ("text", "block"),
    [
        (f"FROM t |> {W}", f"SELECT * FROM t {W}"),
        (f"FROM t a |> WHERE x > 1 |> {W} |> SELECT s.x", f"SELECT s.x FROM t a WHERE x > 1 {W}"),
        (f"FROM t |> {W} |> WHERE s.x > 1 |> LIMIT 3", f"(SELECT * FROM t {W} WHERE s.x > 1) |> LIMIT 3"),
        (f"FROM t |> LIMIT 3 |> {W} |> SELECT s.x", f"SELECT s.x FROM (FROM t |> LIMIT 3) {W}"),
        (f"TABLE t |> {W} |> SELECT s.x", f"SELECT s.x FROM (TABLE t) {W}"),
        (f"SELECT 1 AS x UNION SELECT 2 |> {W}", f"SELECT * FROM (SELECT 1 AS x UNION SELECT 2) {W}"),
        (f"(SELECT 1 AS x) |> {W}", f"SELECT * FROM ((SELECT 1 AS x)) {W}"),
        (f"FROM t |> SELECT s.x {W} HAVING 1 |> LIMIT 1", f"(SELECT s.x FROM t {W} HAVING 1) |> LIMIT 1"),
        (f"SELECT s.x FROM t {W} |> LIMIT 1", f"(SELECT s.x FROM t {W}) |> LIMIT 1"),
        (f"FROM t SELECT s.x AS window GROUP BY x {W}", f"SELECT s.x AS window FROM t GROUP BY x {W}"),
        (f"FROM t SELECT s.x WHERE x > 1 {W}", f"SELECT s.x FROM t WHERE x > 1 {W}"),
        (f"FROM t JOIN u SELECT s.x {W} |> LIMIT 1", f"(SELECT s.x FROM t JOIN u {W}) |> LIMIT 1"),
        (f"SELECT 1 UNION ALL FROM t SELECT s.x {W}", f"SELECT 1 UNION ALL SELECT s.x FROM t {W}"),
        (f"WITH q AS (FROM t |> {W}) FROM q |> DROP x", f"WITH q AS (SELECT * FROM t {W}) FROM q |> DROP x"),
        (f"WITH q AS (SELECT 1) FROM q |> {W}", f"WITH q AS (SELECT 1) SELECT * FROM q {W}"),
        (f"CREATE TEMPORARY VIEW v AS FROM t |> {W}", f"CREATE TEMPORARY VIEW v AS SELECT * FROM t {W}"),
        (f"INSERT INTO TABLE z FROM t |> {W}", f"INSERT INTO TABLE z SELECT * FROM t {W}"),
        (f"EXPLAIN FROM t |> {W}", f"EXPLAIN SELECT * FROM t {W}"),
        (f"FROM t |> {W} |> SELECT 1 |> {W} |> SELECT 2", f"SELECT 2 FROM ((SELECT 1 FROM t {W})) {W}"),
        (f"FROM t |> {M} AS m |> LIMIT 1", f"(SELECT * FROM t {M} AS m) |> LIMIT 1"),
        (f"FROM t AS a |> {M}", f"SELECT * FROM t AS a {M}"),
        (f"FROM t, u |> {M}", f"SELECT * FROM (FROM t, u) {M}"),
        (f"FROM t |> WHERE x > 1 |> {M}", f"SELECT * FROM (FROM t |> WHERE x > 1) {M}"),
        (f"FROM t {M} |> LIMIT 1", f"FROM t {M} |> LIMIT 1"),
        (f"SELECT s.x FROM t {W}; FROM t |> LIMIT 1", f"SELECT s.x FROM t {W}; FROM t |> LIMIT 1"),
        (f"FROM t |> SELECT x, m OVER w WINDOW w AS {P}", f"SELECT x, m OVER w FROM t WINDOW w AS {P}"),
        (f"FROM t |> EXTEND m OVER {P} y |> LIMIT 1", f"(SELECT *, m OVER {P} y FROM t) |> LIMIT 1"),
        (f"FROM t |> WHERE x > 1 |> SELECT m OVER {P}", f"SELECT m OVER {P} FROM (FROM t |> WHERE x > 1)"),
        (f"SELECT m OVER {P} FROM t |> LIMIT 1", f"(SELECT m OVER {P} FROM t) |> LIMIT 1"),
        (f"FROM t SELECT m OVER w WINDOW w AS {P}", f"SELECT m OVER w FROM t WINDOW w AS {P}"),
    ],
)  # fmt: skip
def test_a_clause_in_a_pipe_is_a_block(text, block):
    assert whole(text) == " ".join(token.text for token in tokenize(block).tokens)
