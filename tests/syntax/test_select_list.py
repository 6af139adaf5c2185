"""The aliases of a SELECT list."""

from __future__ import annotations

import pytest

from windrow.syntax.select_list import alias_of, without_alias
from windrow.syntax.tokens import tokenize


@pytest.mark.parametrize(
    ("item", "alias", "expression"),
    [
        ("a + 1 AS B", "b", "a + 1"),
        ("a + 1 b", "b", "a + 1"),
        ("f(a) `b c`", "b c", "f(a)"),
        ("a[0] b", "b", "a[0]"),
        ("'x' b", "b", "'x'"),
        ("a END", None, "a END"),
        ("a AS end", "end", "a"),
    ],
)
def test_an_alias_is_the_name_behind_an_expression(item, alias, expression):
    tokens = tokenize(item)
    at = (0, len(tokens))
    assert alias_of(tokens, at) == alias
    assert tokens.text(*without_alias(tokens, at)) == expression


@pytest.mark.parametrize(
    "item",
    [
        "s.a",
        "a IS DISTINCT FROM b",
        "a NOT LIKE b",
        "a ILIKE b",
        "CASE WHEN a THEN b END",
        "CASE WHEN a THEN b ELSE c END",
        "SUM(a) OVER w",
        "a COLLATE UTF8_LCASE",
    ],
)
def test_the_last_name_of_an_expression_is_no_alias(item):
    tokens = tokenize(item)
    at = (0, len(tokens))
    assert alias_of(tokens, at) is None
    assert without_alias(tokens, at) == at
