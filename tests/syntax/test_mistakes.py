"""What a refused text was meant to be."""

from __future__ import annotations

import pytest

from windrow.errors import ParseError, Span
from windrow.syntax.match_recognize import find_matches
from windrow.syntax.mistakes import (
    is_name_of_from,
    meant_clause,
    meant_function,
    meant_keyword,
    variable_before_clause,
)
from windrow.syntax.tokens import tokenize

INSIDE = "w AS (TYPE SLIDING ORDER BY x START AS s AT sp END)"
SQL = f"SELECT t.x FROM weather AS t JOIN other USING (x) WHERE s.x > t.y AND sp > 1 WINDOW BY {INSIDE}"


@pytest.mark.parametrize("word", ["WINDOW", "WINDOWBY", "windowby"])
def test_window_by_without_its_second_word_is_found(word):
    sql = f"SELECT s.x FROM t {word} {INSIDE}"
    error = meant_clause(sql)
    assert isinstance(error, ParseError)
    assert error.span == Span(sql.index(word), sql.index(word) + len(word))
    assert (error.condition, error.hint) == ("PARSE_SYNTAX_ERROR", "write WINDOW BY w AS (TYPE …)")


def test_match_recognize_without_its_parts_is_told_them():
    sql = "SELECT * FROM t MATCH_RECOGNIZE (MEASURES A.x AS x)"
    error = meant_clause(sql)
    assert isinstance(error, ParseError)
    assert error.condition == "PARSE_SYNTAX_ERROR"
    assert [context.fragment() for context in error.getQueryContext()] == ["MATCH_RECOGNIZE"]


@pytest.mark.parametrize(
    ("word", "sql", "hint"),
    [
        (
            "MATCH_RECOGNISE",
            "FROM t MATCH_RECOGNISE (ORDER BY x PATTERN (A) DEFINE A AS TRUE)",
            "MATCH_RECOGNIZE",
        ),
        (
            "MEASURE",
            "FROM t MATCH_RECOGNIZE (ORDER BY x MEASURE A.x AS y PATTERN (A) DEFINE A AS TRUE)",
            "MEASURES",
        ),
    ],
)
def test_words_of_match_recognize_that_are_misspelt_are_found(word, sql, hint):
    error = meant_clause(f"SELECT * {sql}")
    assert isinstance(error, ParseError)
    assert [context.fragment() for context in error.getQueryContext()] == [word]
    assert error.hint == f"did you mean {hint}?"


@pytest.mark.parametrize(
    "sql",
    [
        "SELEC 1",
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY x + PATTERN (A) DEFINE A AS TRUE)",
        "SELECT 'unfinished",
        "SELECT 'WINDOW w AS (TYPE' FROM",
        "SELECT x FROM t WINDOW w AS (PARTITION BY y) WHERE",
        "SELECT match_recognize FROM t WHERE",
    ],
)
def test_nothing_is_said_of_other_mistakes(sql):
    assert meant_clause(sql) is None


@pytest.mark.parametrize(
    ("sql", "near", "hint"),
    [
        ("SELEC * FROM t", "SELEC", "did you mean SELECT?"),
        ("SELECT a FROM t WHER a > 1", "a >", "did you mean WHERE?"),
        ("SELECT a, count(*) FROM t GROP BY a", "BY", "did you mean GROUP?"),
        ("SELECT a FROM t ORDERBY a", "a", "did you mean ORDER BY?"),
        ("SELECT a FROM t order_by a", "a", "did you mean ORDER BY?"),
        ("SELECT * FORM t", "t", "did you mean FROM?"),
        ("SELECT a FROM t WINDOW BY", "BY", "write WINDOW BY w AS (TYPE …)"),
        ("SELECT a FROM t x y z", "y", None),
        ("SELECT a FROM t GROUP BY a EMT STREAM", "STREAM", "did you mean EMIT?"),
        ("CREATE STREM x (a INT)", "STREM", "did you mean STREAM?"),
        ("SELECT * FROM TUMBEL(TABLE t)", "TABLE t", "did you mean TUMBLE?"),
        ("SELECT f(TABLE t)", "TABLE t", None),
        ("SELECT a FROM t WHERE a >", "", None),
    ],
)
def test_words_that_are_nearly_keywords_are_found_where_spark_refuses_a_text(sql, near, hint):
    start = sql.rindex(near)
    assert meant_keyword(sql, Span(start, start + len(near))) == hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cunt", "count"),
        ("ISTREM", "istream"),
        ("Cuont", "count"),
        ("averg", "avg"),
        ("frobnicate", None),
        ("datetrunc", "date_trunc"),
    ],
)
def test_functions_that_are_misspelt_are_found(name, hint):
    assert meant_function(name) == (hint and f"did you mean {hint}?")


@pytest.mark.parametrize("wrong", ["PATERN", "PATTEN", "AFTR"])
def test_a_part_after_a_measure_that_is_misspelt_is_told_instead_of_the_measure(wrong):
    after = f"{wrong} (A)" if wrong.startswith("P") else f"{wrong} MATCH SKIP PAST LAST ROW PATTERN (A)"
    sql = f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY x MEASURES A.x AS y {after} DEFINE A AS TRUE)"
    with pytest.raises(ParseError) as error:
        find_matches(tokenize(sql))
    assert [context.fragment() for context in error.value.getQueryContext()] == [wrong]


@pytest.mark.parametrize(
    ("name", "is_known"), [("s.x", True), ("sp", True), ("t.y", False), ("weather", False)]
)
def test_a_variable_is_not_known_before_the_clause(name, is_known):
    start = SQL.index(f" {name} ") + 1
    assert (variable_before_clause(SQL, Span(start, start + len(name))) is not None) == is_known


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("t", True), ("T", True), ("weather", True), ("other", True), ("x", False), ("s", False)],
)
def test_a_name_of_from_is_found(name, is_one):
    clause = Span(SQL.index("WINDOW BY"), len(SQL))
    assert is_name_of_from(SQL, clause, name) == is_one
    assert not is_name_of_from(SQL, Span(0, 1), name)
