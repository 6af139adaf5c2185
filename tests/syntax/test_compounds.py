"""The trees of SQL scripts."""

from __future__ import annotations

import pytest

from windrow.errors import WindrowError
from windrow.syntax.compounds import (
    Block,
    Branching,
    Declaration,
    ForLoop,
    Handler,
    Jump,
    Loop,
    PlainStatement,
    parse_compound,
    stretches,
)
from windrow.syntax.tokens import tokenize


def parsed(text):
    tokens = tokenize(text)
    found = parse_compound(tokens)
    assert found is not None
    return tokens, found.body


def test_statements_variables_and_queries() -> None:
    tokens, found = parsed(
        "begin DECLARE VARIABLE a, `b``c` INT DEFAULT 1; SET (a, b) = (SELECT 1, 2); SET VAR a = 3;"
        " SET a.b = 1; SET TIME ZONE 'UTC'; CREATE TABLE t AS SELECT CASE WHEN a = 1 THEN 2 END; (SELECT 1);"
        " WITH q AS (SELECT 1) INSERT INTO t SELECT * FROM q; VALUES (1); END;"
    )
    assert isinstance(found[0], Declaration)
    assert found[0].names == ("a", "b`c")
    assert tokens[found[0].after].text == "INT"
    plain = [one for one in found if isinstance(one, PlainStatement)]
    assert len(plain) == len(found) - 1
    assert [one.sets for one in plain] == [True, False, True, False, False, False, False, False]
    assert [tokens[one.range[0]].text for one in plain if one.is_query] == ["(", "VALUES"]


def test_control_flow() -> None:
    tokens, found = parsed(
        "BEGIN IF a THEN SELECT 1; ELSEIF b = CASE WHEN c THEN d END THEN LEAVE l; ELSE ITERATE `L`; END IF;"
        " CASE x WHEN 1 THEN SELECT 2; END CASE; l: WHILE (x DO) DO SELECT 3; END WHILE l;"
        " REPEAT SELECT 4; UNTIL x > 1 END REPEAT; LOOP SELECT 5; END LOOP;"
        " FOR r AS SELECT 6 DO SELECT r.a; END FOR; FOR SELECT 7 DO SELECT a; END FOR;"
        " b: BEGIN NOT ATOMIC SELECT 8; END b; END"
    )
    choice, case, loop, repeat, ever, rows, unnamed, block = found
    assert isinstance(choice, Branching)
    assert [body for _, body in choice.bodies][1:] == [(Jump("l", True),), (Jump("l", False),)]
    assert isinstance(case, Branching)
    assert [tokens.text(*one) for one in case.operands] == ["x", "1"]
    assert isinstance(loop, Loop)
    assert (loop.label, loop.ends, loop.condition and tokens.text(*loop.condition)) == ("l", False, "(x DO)")
    assert isinstance(repeat, Loop)
    assert (repeat.ends, repeat.condition and tokens.text(*repeat.condition)) == (True, "x > 1")
    assert isinstance(ever, Loop)
    assert ever.condition is None
    assert isinstance(rows, ForLoop)
    assert isinstance(unnamed, ForLoop)
    assert [(one.row, tokens.text(*one.query)) for one in (rows, unnamed)] == [
        ("r", "SELECT 6"),
        ("", "SELECT 7"),
    ]
    assert isinstance(block, Block)
    assert block.label == "b"
    texts = [tokens.text(*place) for _, place in sorted(stretches(found), key=lambda one: one[1])]
    assert texts == [
        "a", "SELECT 1", "b = CASE WHEN c THEN d END", "x", "1", "SELECT 2", "(x DO)", "SELECT 3", "SELECT 4",
        "x > 1", "SELECT 5", "SELECT 6", "SELECT r.a", "SELECT 7", "SELECT a", "SELECT 8",
    ]  # fmt: skip


def test_handlers_and_conditions() -> None:
    _, (named, plain, handler, other) = parsed(
        "BEGIN DECLARE c CONDITION FOR SQLSTATE VALUE '22012'; DECLARE d CONDITION;"
        " DECLARE EXIT HANDLER FOR SQLSTATE '11111', NOT FOUND, c, `a`.b BEGIN SELECT 1; END;"
        " DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET x = 1; END"
    )
    assert [one.names for one in (named, plain) if isinstance(one, Declaration)] == [(), ()]
    assert isinstance(handler, Handler)
    assert (handler.goes_on, handler.states, handler.conditions) == (
        False,
        {"11111"},
        {"NOT FOUND", "C", "A.B"},
    )
    assert isinstance(handler.body, Block)
    assert isinstance(other, Handler)
    assert other.goes_on
    assert isinstance(other.body, PlainStatement)
    assert other.body.sets


def test_other_texts_are_no_scripts() -> None:
    assert parse_compound(tokenize("SELECT 1")) is None


@pytest.mark.parametrize(
    ("text", "message", "fragment"),
    [
        ("BEGIN SELECT 1; SELECT 2", "expected ;", ""),
        ("BEGIN SELECT 1;", "expected END", ""),
        ("BEGIN SELECT 1 END", "expected ;", ""),
        ("BEGIN IF x SELECT 1; END IF; END", "expected THEN", ";"),
        ("BEGIN IF THEN SELECT 1; END IF; END", "expected a condition", "THEN"),
        ("BEGIN WHILE x DO SELECT 1; END; END", "expected WHILE", ";"),
        ("BEGIN LEAVE; END", "expected a label", ";"),
        ("BEGIN SELECT 1;; END", "expected a statement", ";"),
        ("BEGIN DECLARE EXIT HANDLER FOR SQLSTATE 22012 SELECT 1; END", "expected a SQLSTATE", "22012"),
        ("BEGIN SELECT 1; END; SELECT 2", "expected the end", "SELECT"),
        ("BEGIN DECLARE c INSENSITIVE CURSOR FOR SELECT 1; END", "a cursor is not supported", "DECLARE"),
    ],
)
def test_what_is_refused(text, message, fragment) -> None:
    with pytest.raises(WindrowError, match=message) as caught:
        parse_compound(tokenize(text))
    (context,) = caught.value.getQueryContext()
    assert context.fragment() == fragment
    assert caught.value.hint
