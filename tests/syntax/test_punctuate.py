"""PUNCTUATE, and what is wrong in it."""

from __future__ import annotations

import pytest

from windrow.errors import ParseError
from windrow.syntax.punctuate import parse_punctuate
from windrow.syntax.tokens import tokenize


def parse(sql: str):
    tokens = tokenize(sql)
    return tokens, parse_punctuate(tokens, 0, len(tokens))


@pytest.mark.parametrize(
    ("sql", "name", "bound", "is_strict"),
    [
        ("PUNCTUATE orders BOUND TIMESTAMP '2026-01-01'", "orders", "TIMESTAMP '2026-01-01'", False),
        ("punctuate `my orders` bound 5 strict", "my orders", "5", True),
        (
            "PUNCTUATE s BOUND current_date() - INTERVAL '1' DAY STRICT",
            "s",
            "current_date() - INTERVAL '1' DAY",
            True,
        ),
        ("PUNCTUATE bound BOUND :t", "bound", ":t", False),
    ],
)
def test_what_is_promised_of_which_stream(sql, name, bound, is_strict):
    tokens, found = parse(sql)
    assert found is not None
    assert (found.name, tokens.text(*found.bound), found.is_strict) == (name, bound, is_strict)
    assert tokens[found.target[0]].name == name


@pytest.mark.parametrize("sql", ["SELECT punctuate FROM t", "INSERT INTO punctuate VALUES (1)"])
def test_other_statements_are_left_alone(sql):
    assert parse(sql)[1] is None


@pytest.mark.parametrize(
    ("sql", "message", "marked"),
    [
        ("PUNCTUATE", "expected the name of a stream, found the end", "PUNCTUATE"),
        ("PUNCTUATE 5 BOUND 5", "expected the name of a stream, found 5", "5"),
        ("PUNCTUATE s", "expected BOUND, found the end", "s"),
        ("PUNCTUATE s AT 5", "expected BOUND, found AT", "AT"),
        ("PUNCTUATE s BOUND", "expected an instant, found the end", "BOUND"),
        ("PUNCTUATE s BOUND STRICT", "expected an instant, found STRICT", "STRICT"),
    ],
)
def test_mistakes_have_a_place(sql, message, marked):
    with pytest.raises(ParseError) as caught:
        parse(sql)
    assert caught.value.message == message
    assert caught.value.span is not None
    assert sql[caught.value.span.start : caught.value.span.stop] == marked
