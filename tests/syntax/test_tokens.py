"""Tokens: what counts as one, and where it stands."""

from __future__ import annotations

import pytest

from windrow.errors import ParseError
from windrow.syntax.tokens import TokenKind, tokenize


def texts(sql: str) -> list[str]:
    return [token.text for token in tokenize(sql).tokens]


def kinds(sql: str) -> list[TokenKind]:
    return [token.kind for token in tokenize(sql).tokens]


def fragment(error: ParseError) -> str:
    assert error.sql is not None
    assert error.span is not None
    return error.sql[error.span.start : error.span.stop]


@pytest.mark.parametrize(
    "string",
    [
        "''",
        "'it\\'s'",
        '"in double quotes"',
        "\"with 'single' ones inside\"",
        "'WINDOW BY w AS ('",
        "'-- no comment'",
        "'/* nor this'",
        "r'raw\\'",
        "X'1F'",
        "'über'",
        "'two\nlines'",
    ],
)
def test_a_string_is_one_token_whatever_it_holds(string):
    assert texts(f"a = {string} AND b") == ["a", "=", string, "AND", "b"]
    assert kinds(string) == [TokenKind.STRING]


def test_a_doubled_quote_is_two_strings_side_by_side_as_in_spark():
    assert texts("'it''s'") == ["'it'", "'s'"]


@pytest.mark.parametrize(
    ("written", "name"),
    [("`a b`", "a b"), ("`a``b`", "a`b"), ("`SELECT`", "SELECT"), ("`a.b`", "a.b"), ("`--`", "--")],
)
def test_a_quoted_identifier_is_one_token_and_its_name_is_without_quotes(written, name):
    (token,) = tokenize(written).tokens
    assert (token.kind, token.name, token.word) == (TokenKind.QUOTED, name, "")


@pytest.mark.parametrize("name", ["a", "_a", "a1", "straße", "名前", "2020_rain", "1a"])
def test_an_unquoted_name_may_hold_letters_of_any_script_and_begin_with_a_digit(name):
    (token,) = tokenize(name).tokens
    assert (token.kind, token.name) == (TokenKind.WORD, name)


@pytest.mark.parametrize(
    "number",
    [
        "0",
        "12",
        "1.5",
        "1.",
        ".5",
        "1e3",
        "1E-3",
        "1.e5",
        "2L",
        "10S",
        "5Y",
        "1.5D",
        "4.0F",
        "3BD",
        "1e5d",
        ".5d",
    ],
)
def test_a_number_is_one_token_with_its_suffix(number):
    assert texts(f"a + {number} - b") == ["a", "+", number, "-", "b"]
    assert kinds(number) == [TokenKind.NUMBER]


@pytest.mark.parametrize(
    "operator",
    ["<=>", "<>", "!=", "==", "<=", ">=", "||", "->", "::", "<<", ">>", ">>>", "!", "~", "^", "&", "|", "%"],
)
def test_an_operator_is_one_token(operator):
    assert texts(f"a{operator}b") == ["a", operator, "b"]


def test_angle_brackets_apart_from_each_other_are_not_a_shift():
    assert texts("a > > b") == ["a", ">", ">", "b"]


@pytest.mark.parametrize(
    "comment",
    [
        "-- to the end of the line\n",
        "/* anywhere */",
        "/* one /* inside */ another */",
        "/*+ BROADCAST(t) */",
    ],
)
def test_comments_are_no_tokens(comment):
    assert texts(f"a {comment} b") == ["a", "b"]


def test_words_that_belong_together_are_tokens_of_their_own_with_their_own_places():
    tokens = tokenize("ORDER \n BY x GROUP /* and */ BY y")
    assert texts("ORDER \n BY x GROUP /* and */ BY y") == ["ORDER", "BY", "x", "GROUP", "BY", "y"]
    assert [(token.start, token.stop) for token in tokens.tokens[:3]] == [(0, 5), (8, 10), (11, 12)]


@pytest.mark.parametrize(
    "command", ["EXPLAIN", "EXPLAIN EXTENDED", "SHOW", "EXECUTE", "FETCH", "CACHE", "CALL"]
)
@pytest.mark.parametrize("end", ["", " ", "\n", ";", " ; ", " -- the end", " /* the end */"])
def test_what_follows_a_command_is_read_like_any_text(command, end):
    rest = "SELECT 'a;b', (`c d`) FROM t"
    wanted = [*command.split(), "SELECT", "'a;b'", ",", "(", "`c d`", ")", "FROM", "t"]
    assert texts(f"{command} {rest}{end}") == wanted + [";"] * (";" in end)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.b, `c``d` /* c */ FROM t WHERE x >= 1.5D -- end",
        "EXPLAIN SELECT 'x' ;\nSELECT {fn}",
        "\t\n x\u00a0y ",
    ],
)
def test_a_token_is_the_stretch_of_text_that_it_says(sql):
    for token in tokenize(sql).tokens:
        assert sql[token.span.start : token.span.stop] == token.text


def test_text_that_no_dialect_knows_is_symbols_and_not_an_error():
    assert texts("a ? {b} # $c @ 'd'") == ["a", "?", "{", "b", "}", "#", "$", "c", "@", "'d'"]


@pytest.mark.parametrize("sql", ["", "  ", "-- nothing", "/* nothing */"])
def test_a_text_without_tokens_is_an_empty_list(sql):
    assert texts(sql) == []


@pytest.mark.parametrize(
    ("sql", "opened_at"),
    [
        ("'abc", 0),
        ("SELECT 'a', 'b", 12),
        ('SELECT "x', 7),
        ("SELECT `x FROM t", 7),
        ("SELECT 1 /* never closed", 9),
        ("SELECT '--' -- 'not this\n, 'this", 27),
        ("SELECT 'ends in a backslash\\'", 7),
        ("EXPLAIN SELECT 'x", 15),
    ],
)
def test_a_quote_or_comment_that_does_not_end_is_marked_where_it_opens(sql, opened_at):
    with pytest.raises(ParseError) as caught:
        tokenize(sql)
    error = caught.value
    assert error.condition == "PARSE_SYNTAX_ERROR"
    assert error.span is not None
    assert error.span.start == opened_at
    assert error.hint == "close the quote"


@pytest.mark.parametrize(
    ("sql", "marked_at", "message", "hint"),
    [
        ("(a", 0, "bracket ( is never closed", "add the missing )"),
        ("f(a, (b)", 1, "bracket ( is never closed", "add the missing )"),
        ("a[1", 1, "bracket [ is never closed", "add the missing ]"),
        ("a)", 1, "bracket ) has no matching opening bracket", "remove it, or add the opening bracket"),
        ("(a])", 2, "bracket ] has no matching opening bracket", "remove it, or add the opening bracket"),
        ("(')')) ", 5, "bracket ) has no matching opening bracket", "remove it, or add the opening bracket"),
    ],
)
def test_a_bracket_without_a_partner_is_marked(sql, marked_at, message, hint):
    with pytest.raises(ParseError) as caught:
        tokenize(sql)
    error = caught.value
    assert (error.message, error.hint) == (message, hint)
    assert error.span is not None
    assert error.span.start == marked_at
    assert len(fragment(error)) == 1


def test_brackets_know_their_partner_and_tokens_the_bracket_around_them():
    tokens = tokenize("f(a, [b])")
    assert tokens.partner == {1: 7, 7: 1, 4: 6, 6: 4}
    assert tokens.parent == (-1, -1, 1, 1, 1, 4, 1, -1)


def test_a_list_is_split_at_its_own_commas_only():
    tokens = tokenize("a, f(b, c), [d, e], g")
    parts = [tokens.text(start, stop) for start, stop in tokens.split(0, len(tokens))]
    assert parts == ["a", "f(b, c)", "[d, e]", "g"]
    assert tokens.split(3, 3) == []


def test_an_empty_range_at_the_end_is_a_place_and_has_no_text():
    tokens = tokenize("a b")
    assert tokens.text(2, 2) == ""
    assert (tokens.span(2, 2).start, tokens.span(2, 2).stop) == (3, 3)


def test_looking_past_either_end_finds_nothing():
    tokens = tokenize("a")
    assert (tokens.word(-1), tokens.word(1), tokens.is_symbol(1, "(")) == ("", "", False)
