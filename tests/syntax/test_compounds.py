"""The statements of SQL scripts that run one after the other."""

from __future__ import annotations

import pytest

from windrow.syntax.compounds import parse_compound
from windrow.syntax.tokens import tokenize


def test_statements_variables_and_queries() -> None:
    text = (
        "begin DECLARE VARIABLE a, b INT DEFAULT 1; SET (a, b) = (SELECT 1, 2); SET VAR a = 3;"
        " CREATE TABLE t AS SELECT CASE WHEN a = 1 THEN 2 END; (SELECT 1); END;"
    )
    tokens = tokenize(text)
    found = parse_compound(tokens)
    assert found is not None
    assert [tokens[one.range[0]].text for one in found] == ["DECLARE", "SET", "SET", "CREATE", "("]
    assert [one.declares for one in found] == [("a", "b"), (), (), (), ()]
    assert [one.sets for one in found] == [False, True, True, False, False]
    assert [one.is_query for one in found] == [False, False, False, False, True]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "BEGIN SELECT 1; SELECT 2",
        "BEGIN SELECT 1 END",
        "BEGIN IF true THEN SELECT 1; END IF; END",
        "BEGIN BEGIN SELECT 1; END; END",
        "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT 1; SELECT 2; END",
        "BEGIN DECLARE c CONDITION FOR SQLSTATE '22012'; SELECT 2; END",
        "BEGIN SET spark.sql.ansi.enabled = false; SELECT 1; END",
        "BEGIN DECLARE a INT; FOR x AS SELECT 1 DO SELECT 2; END FOR; END",
        "BEGIN END",
    ],
)
def test_other_texts_and_scripts_are_left_to_spark(text: str) -> None:
    assert parse_compound(tokenize(text)) is None
