"""Which columns a block reads with their relations."""

from __future__ import annotations

import pytest

from windrow.algebra.qualified import find_qualified
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.tokens import tokenize

CLAUSE = "WINDOW BY w AS (TYPE SLIDING ORDER BY x START AS s END AT p)"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a", "a"),
        ("db.a", "a"),
        ("a AS x", "x"),
        ("a x, b", "x b"),
        ("STREAM a JOIN STREAM b USING (c)", "a b"),
        ("(SELECT c.z FROM c) AS x", "x"),
        ("(a JOIN b ON a.i = c.i) LEFT JOIN d ON c(c.x, 1)", "a b d"),
        ("(a JOIN b USING (c)) AS x", "a b x"),
        ("a LATERAL VIEW OUTER explode(c) d AS x", "a d"),
        ("a, LATERAL explode(c) AS x(b)", "a x"),
        ("VALUES (1), (2) AS x(c) JOIN b", "x b"),
        ("range(3) x", "x"),
        ("a WHERE a.i IN (SELECT c FROM c AS b)", "a"),
        ("`a` AS `X`", "x"),
    ],
)
def test_relations_of_from_have_the_names_that_spark_gives_them(source, names):
    select = ", ".join(f"s.{name}.k" for name in "abcdx")
    tokens = tokenize(f"SELECT {select} FROM {source} {CLAUSE}")
    found = find_qualified(tokens, find_window_queries(tokens)[0])
    assert list(found.columns) == [f"__of_{name}.k" for name in sorted(names.split())]


def test_only_rows_have_columns_and_only_whole_paths_are_read():
    tokens = tokenize(f"SELECT s.a.k, W.`A`.k.f, p.a.k, t.s.a.k, s.a, s.b.k, s.a['k'] FROM a {CLAUSE}")
    found = find_qualified(tokens, find_window_queries(tokens)[0])
    assert [(name.parts, tokens.text(*name.range)) for name in found.atoms.values()] == [
        (("s", "__of_a.k"), "s.a.k"),
        (("w", "__of_a.k"), "W.`A`.k"),
        (("p", "__of_a.k"), "p.a.k"),
    ]
