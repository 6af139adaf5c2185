"""A small share of the mutated statements, and those that were once wrong."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType

import pytest

from tests.syntax.mutations import mutants, seeds, tried
from windrow.algebra.bind import bind
from windrow.syntax.tokens import tokenize

DEEP = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY i PATTERN ({}) DEFINE A AS TRUE)"
CLAUSE = "WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS s{} END AS e)"
ONCE_WRONG = {
    "nothing after AS": ("SELECT k FROM s [RANGE 1] AS", "PARSE_SYNTAX_ERROR"),
    "a column called window": (
        "SELECT a FROM t WHERE s.WINDOW v AS (ORDER BY i MEASURES 1 AS m PATTERN (x) DEFINE x AS TRUE)",
        None,
    ),
    "no argument": (f"SELECT MIN( AS w.val) FROM t {CLAUSE.format('')}", None),
    "ISTREAM within a statement": ("x SELECT ISTREAM(*) FROM s", None),
    "a definition of nothing": (
        "SELECT n OVER w FROM o WINDOW w AS FROM o WINDOW w AS (ORDER BY d MEASURES 1 AS n PATTERN (A))",
        "PARSE_SYNTAX_ERROR",
    ),
    "TABLE without brackets": ("SELECT TABLE v, x FROM s", None),
    "USING without columns": ("SELECT * FROM s JOIN t USING", None),
    "LATERAL before nothing": ("SELECT * FROM t, LATERAL", None),
    "SELECT before nothing": ("SELECT -- x", None),
    "SELECT after FROM, before nothing": ("FROM s AS r SELECT", None),
    "TABLE in brackets": ("SELECT * FROM TABLE (v)", "PARSE_SYNTAX_ERROR"),
    "TABLE in brackets, in an expression": ("SELECT (1 + TABLE (v)) FROM s", "PARSE_SYNTAX_ERROR"),
    "NOT": (f"SELECT 1 FROM t {CLAUSE.format(' WHEN ' + 'NOT ' * 3_000 + 'TRUE')}", None),
    "minus": (f"SELECT 1 FROM t {CLAUSE.format(' WHEN ' + '- ' * 3_000 + '1 > 0')}", None),
    "brackets": (f"SELECT 1 FROM t {CLAUSE.format(' WHEN ' + '(' * 60 + 's.x' + ')' * 60 + ' > 0')}", None),
    "signs before nothing": ("SELECT " + "- " * 3_000 + ", 1 FROM s", None),
    "too many brackets": ("SELECT " + "(" * 1_000 + "1" + ")" * 1_000, "FAILED_TO_PARSE_TOO_COMPLEX"),
    "groups": (DEEP.format("(" * 300 + "A" + ")" * 300), None),
    "groups that repeat": (DEEP.format("(" * 300 + "A" + ")+" * 300), "PATTERN_TOO_LONG"),
    "STREAM before nothing": (
        f"SELECT (SELECT COUNT(w) FROM (SELECT * FROM r WHERE r.v > t.x) {CLAUSE.format('')}) FROM STREAM",
        None,
    ),
    "exclusions in exclusions": (DEEP.format("{-" * 3000), "PATTERN_TOO_LONG"),
    "many groups": (DEEP.format("(" * 1_000 + "A" + ")+" * 1_000), "FAILED_TO_PARSE_TOO_COMPLEX"),
    "subqueries": ("SELECT * FROM " + "(SELECT * FROM " * 226 + "s [RANGE 5]" + ")" * 226, None),
    "named queries": (
        "WITH a0 AS (SELECT * FROM s), "
        + ", ".join(f"a{n} AS (SELECT * FROM a{n - 1} x JOIN a{n - 1} y)" for n in range(1, 40))
        + " SELECT * FROM a39 EMIT STREAM",
        "FAILED_TO_PARSE_TOO_COMPLEX",
    ),
}


@pytest.mark.parametrize("name", ONCE_WRONG)
def test_what_was_once_wrong_is_understood_or_refused(name):
    sql, condition = ONCE_WRONG[name]
    found = tried(iter([sql]))
    assert found.wrong == []
    assert set(found.conditions) >= ({condition} if condition else set())


def test_mutated_statements_are_understood_or_refused_with_a_place():
    found = tried(mutants(400, 7))
    assert found.wrong == []
    assert found.count == 400
    assert 100 < found.refused < 400


def test_the_seeds_are_read():
    found = tried(iter(seeds()[:200]))
    assert found.wrong == []


def test_the_steps_of_binding_grow_with_the_number_of_aggregates():
    """Calls are counted, not the seconds."""

    def calls(count: int) -> int:
        items = ", ".join(f"AVG(w.v + {number})" for number in range(count))
        tokens = tokenize(f"SELECT {items} FROM t {CLAUSE.format('')}")
        seen = Counter[str]()

        def count_calls(_: FrameType, event: str, __: object) -> None:
            seen[event] += 1

        sys.setprofile(count_calls)
        try:
            bind(tokens, (0, len(tokens)))
        finally:
            sys.setprofile(None)
        return seen.total()

    assert calls(3_000) < 11 * calls(300)
