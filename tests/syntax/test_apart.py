"""Which queries in brackets stand before a window of a stream, and so are streams themselves."""

from __future__ import annotations

import pytest

from windrow.syntax.streams.apart import clauses_apart
from windrow.syntax.tokens import tokenize


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT * FROM (SELECT a FROM s) [NOW]", ["SELECT a FROM s"]),
        ("SELECT * FROM s [NOW] AS x JOIN ((SELECT a FROM s)) [ROWS 2] AS y ON TRUE", ["SELECT a FROM s"]),
        (
            "SELECT * FROM (WITH q AS (SELECT 1) SELECT a FROM q) [RANGE 3], (SELECT b FROM t) [NOW]",
            ["WITH q AS (SELECT 1) SELECT a FROM q", "SELECT b FROM t"],
        ),
        # what has windows inside is a relation
        ("SELECT * FROM (SELECT a FROM (SELECT b FROM s) [NOW]) [NOW]", ["SELECT b FROM s"]),
        ("SELECT * FROM ISTREAM(SELECT a FROM (SELECT b FROM s) [NOW]) [NOW]", ["SELECT b FROM s"]),
        # streams by themselves, tables, a place in an array
        ("SELECT * FROM (ISTREAM(SELECT a FROM s [NOW])) [ROWS 2]", []),
        ("SELECT * FROM ISTREAM(SELECT a FROM s [NOW]) [ROWS 2]", []),
        ("SELECT * FROM (SELECT a FROM s) AS x", []),
        ("SELECT (SELECT collect_list(a) FROM t)[0] FROM u", []),
    ],
)  # fmt: skip
def test_queries_before_a_window_are_found(text, found):
    tokens = tokenize(text)
    ranges = [inside for _, inside in clauses_apart(tokens, (0, len(tokens)))]
    assert [tokens.text(*inside) for inside in ranges] == found
