"""Which relations an expression sees around it."""

from __future__ import annotations

import pytest

from windrow.algebra.scopes import scopes
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.tokens import tokenize

CLAUSE = "WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY i START AS s WHEN s.x > 0)"


@pytest.mark.parametrize(
    ("query", "seen"),
    [
        ("SELECT here FROM a, b", ["a b"]),
        ("SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE here)", ["b", "a"]),
        ("SELECT (SELECT (f(here)) FROM b) FROM a AS x", ["b", "x"]),
        ("SELECT 1 FROM a, (SELECT 1 FROM b WHERE here) AS c", ["b"]),
        ("SELECT 1 FROM a, LATERAL (SELECT 1 FROM b WHERE here) AS c, d", ["b", "a"]),
        ("SELECT 1 FROM a LEFT JOIN LATERAL (SELECT 1 FROM b WHERE here) AS c", ["b", "a"]),
        ("SELECT 1 FROM (a JOIN LATERAL (SELECT 1 FROM b WHERE here) AS c) WHERE x", ["b", "a"]),
        ("SELECT 1 FROM a JOIN b ON here JOIN c ON d", ["a b"]),
        ("SELECT 1 FROM a WHERE x IN (SELECT 1 FROM b UNION SELECT 1 FROM c WHERE here)", ["c", "a"]),
        ("SELECT 1 FROM a WHERE x IN (WITH b AS (SELECT here FROM c) SELECT 1 FROM b)", ["c", "a"]),
        ("SELECT 1 FROM a WHERE x IS DISTINCT FROM here", ["a"]),
        ("SELECT EXTRACT(day FROM here) FROM a ORDER BY b", ["a"]),
        (f"SELECT 1 FROM a WHERE here {CLAUSE}", ["a"]),
        (f"SELECT 1 FROM a {CLAUSE.replace('k', 'f(here)')}", ["a"]),
        (f"SELECT here FROM a {CLAUSE}", ["a s w"]),
        (f"SELECT 1 FROM a {CLAUSE.replace('0', '(SELECT 1 FROM b WHERE here)')}", ["b", "a s w"]),
        ("SELECT (SELECT 1 FROM b MATCH_RECOGNIZE (PATTERN (X Y) DEFINE X AS here)) FROM a", ["b x y", "a"]),
        (
            "SELECT 1 FROM a JOIN c ON a.k = c.k JOIN b MATCH_RECOGNIZE (PATTERN (X) DEFINE X AS here)",
            ["b x"],
        ),
        ("SELECT 1 FROM b MATCH_RECOGNIZE (ORDER BY here PATTERN (X) SUBSET S = (X) DEFINE X AS x)", ["b"]),
        ("SELECT 1 FROM b MATCH_RECOGNIZE (PATTERN (X) SUBSET S = (X) DEFINE X AS here)", ["b s x"]),
        (
            "SELECT 1 FROM a, LATERAL (SELECT 1 FROM (SELECT 1 FROM b WHERE here)"
            " MATCH_RECOGNIZE (PATTERN (X) DEFINE X AS x)) AS c",
            ["b", "a"],
        ),
        (
            "SELECT 1 FROM b MATCH_RECOGNIZE (PATTERN (X) DEFINE X AS x = (SELECT 1 FROM c WHERE here))",
            ["c", "b x"],
        ),
    ],
)
def test_relations_are_seen_from_the_inside_outwards(query, seen):
    tokens = tokenize(query)
    here = next(at for at in range(len(tokens)) if tokens.word(at) == "HERE")
    found = scopes(tokens, here, [*find_window_queries(tokens), *find_matches(tokens)])
    assert [" ".join(sorted(scope.names)) for scope in found] == seen
