"""PUNCTUATE, and what is wrong in it."""

from __future__ import annotations

import pytest

from windrow.errors import NotSupportedError, ParseError
from windrow.syntax.streams.punctuate import parse_punctuate
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
        ("PUNCTUATE s", "expected BOUND or WHERE, found the end", "s"),
        ("PUNCTUATE s AT 5", "expected BOUND or WHERE, found AT", "AT"),
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


@pytest.mark.parametrize(
    ("conditions", "wanted"),
    [
        ("auction = 42", [("auction", "=", ["42"])]),
        (
            "`a b` IN ('x', lower('Y,Z')) AND b IS NULL",
            [("a b", "in", ["'x'", "lower('Y,Z')"]), ("b", "is null", [])],
        ),
        (
            "hour BETWEEN 1 + 1 AND (2 AND 3) and price >= :p AND ts < now() - INTERVAL '1' DAY",
            [
                ("hour", "between", ["1 + 1", "(2 AND 3)"]),
                ("price", ">=", [":p"]),
                ("ts", "<", ["now() - INTERVAL '1' DAY"]),
            ],
        ),
        ("a > -1 AND a <= 2", [("a", ">", ["-1"]), ("a", "<=", ["2"])]),
    ],
)
def test_patterns_are_conjunctions_of_comparisons(conditions, wanted):
    tokens, found = parse(f"PUNCTUATE s WHERE {conditions}")
    assert found is not None
    assert found.bound is None
    assert [
        (each.column, each.operator, [tokens.text(*operand) for operand in each.operands])
        for each in found.conditions
    ] == wanted
    assert [tokens[each.target[0]].name for each in found.conditions] == [name for name, *_ in wanted]


@pytest.mark.parametrize(
    ("conditions", "message", "marked"),
    [
        ("a = 1 OR b = 2", "a pattern is a conjunction", "OR"),
        ("a = 1 AND NOT b = 2", "a pattern begins with the name of a column", "NOT"),
        ("a <> 1 AND b = 2", "it does not compare a column with values", "a <> 1"),
        ("a LIKE 'x%'", "it does not compare a column with values", "a LIKE 'x%'"),
        ("a NOT IN (1)", "it does not compare a column with values", "a NOT IN (1)"),
        ("a IS NOT NULL", "it does not compare a column with values", "a IS NOT NULL"),
        ("upper(a) = 'X'", "it does not compare a column with values", "upper(a) = 'X'"),
        ("1 = a", "a pattern begins with the name of a column", "1"),
        ("(a, b) = (1, 2)", "a pattern begins with the name of a column", "("),
        ("a < b < 3", "a value can be compared with only one column", "<"),
        ("a IN (1) OR b = 1", "a pattern is a conjunction", "OR"),
    ],
)
def test_other_conditions_are_refused_with_the_reason(conditions, message, marked):
    sql = f"PUNCTUATE s WHERE {conditions}"
    with pytest.raises(NotSupportedError) as caught:
        parse(sql)
    assert caught.value.condition == "UNSUPPORTED_PATTERN"
    assert message in caught.value.message
    assert sql[caught.value.span.start : caught.value.span.stop] == marked


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ("", "expected a column, found the end"),
        ("a", "expected a comparison, found the end"),
        ("a =", "expected a value, found the end"),
        ("a = AND b = 1", "expected a value, found AND"),
        ("a = 1 AND", "expected a column, found the end"),
        ("a BETWEEN 1", "expected AND and the greatest value, found the end"),
        ("a IN ()", "expected a value, found )"),
        ("a IN (1) 2", "expected AND or the end, found 2"),
    ],
)
def test_conditions_that_end_too_early_have_a_place(conditions, message):
    with pytest.raises(ParseError) as caught:
        parse(f"PUNCTUATE s WHERE {conditions}")
    assert caught.value.message == message
