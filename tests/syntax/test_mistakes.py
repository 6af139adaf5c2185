"""What a refused text was meant to be."""

from __future__ import annotations

import pytest

from windrow.errors import ParseError, Span
from windrow.syntax.mistakes import (
    is_name_of_from,
    meant_clause,
    meant_function,
    meant_keyword,
    meant_modifier,
    meant_neighbour,
    meant_syntax,
    misspelt_word,
    named_like_variable,
    variable_before_clause,
)
from windrow.syntax.patterns.match_relations import find_matches
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
        "SELECT x FROM t WINDOW BY w AS (TYPE SLIDING ORDER BY x START AS s END) WHERE",
        "SELECT x FROM t GROUP BY x ORDER BY x WHERE",
        "CREATE TABLE t (a INT) CLUSTERED BY (a) INTO 2 BUCKET",
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
        ("SELECT SUM(a) OVR (PARTITION BY b)", "(PART", "did you mean OVER?"),
        ("SELECT cover (a)", "(a)", None),
        ("PUNCTUAT s BOUND 3", "PUNCTUAT", "did you mean PUNCTUATE?"),
        ("SELECT a FROM t ORDERBY a", "a", "did you mean ORDER BY?"),
        ("SELECT a FROM t order_by a", "a", "did you mean ORDER BY?"),
        ("START AS s ONLY EMD NEXT AS n", "EMD", "did you mean END?"),
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
        ("MXA", "max"),
        ("asb", "abs"),
        ("SMU", "sum"),
        ("lsat", "last"),
        ("PRVE", None),
    ],
)
def test_functions_that_are_misspelt_are_found(name, hint):
    assert meant_function(f"SELECT {name}(v)", Span(7, 10)) == (hint and f"did you mean {hint}?")


@pytest.mark.parametrize(("name", "hint"), [("PRVE", "PREV"), ("clasifier", "CLASSIFIER"), ("smu", "sum")])
def test_functions_of_patterns_are_found_in_a_pattern(name, hint):
    sql = f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY x PATTERN (A) DEFINE A AS {name}(A.x) > 1)"
    at = sql.index(name)
    assert meant_function(sql, Span(at, at + len(name) + 5)) == f"did you mean {hint}?"


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT a FROM t «WINDW BY» w AS (TYPE SLIDING ORDER BY x START AS s END)", "WINDOW BY"),
        ("SELECT a FROM t «WINDOW BT» w AS (TYPE SLIDING ORDER BY x START AS s END)", "WINDOW BY"),
        ("SELECT a FROM t «GROP BY» a", "GROUP BY"),
        ("SELECT a FROM t «oder by» a", "ORDER BY"),
        ("SELECT SUM(a) OVER («PARTITON BY» b ORDER BY c) FROM t", "PARTITION BY"),
        ("SELECT SUM(a) OVER (PARTITION BY b «ODER BY» c) FROM t", "ORDER BY"),
        ("SELECT listagg(a) WITHIN GROUP («ORDR BY» c) FROM t", "ORDER BY"),
        ("SELECT SUM(a) OVER p FROM t WINDOW p AS («PARTITON BY» b)", "PARTITION BY"),
    ],
)
def test_words_before_by_that_are_misspelt_are_marked(sql, hint):
    plain = sql.replace("«", "").replace("»", "")
    error = meant_clause(plain)
    assert isinstance(error, ParseError)
    assert error.span == Span(sql.index("«"), sql.index("»") - 1)
    assert error.hint == f"did you mean {hint}?"


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT «STREM» item, a FROM t", "did you mean SELECT STREAM?"),
        ("SELECT «DISTINC» item FROM t", "did you mean SELECT DISTINCT?"),
        ("SELECT «strem» AS item FROM t", None),
        ("SELECT «strem» FROM t", None),
        ("SELECT «strem», item FROM t", None),
        ("SELECT a, «strem» item FROM t", None),
        ("SELECT «price» item FROM t", None),
    ],
)
def test_words_after_select_that_are_misspelt_are_found(sql, hint):
    plain, span = sql.replace("«", "").replace("»", ""), Span(sql.index("«"), sql.index("»") - 1)
    assert meant_modifier(plain, span) == hint


@pytest.mark.parametrize("name", ["TUMBLE", "tumble_start", "HOP", "SESSION_END", "CUMULATE"])
def test_windows_of_time_in_group_by_are_shown_in_from(name):
    window = name.upper().partition("_")[0]
    hint = meant_function(f"{name}(ts)", Span(0, 6))
    assert hint.startswith(f"write FROM {window}(TABLE t, DESCRIPTOR(ts), ")


@pytest.mark.parametrize("wrong", ["PATERN", "PATTEN", "AFTR"])
def test_a_part_after_a_measure_that_is_misspelt_is_told_instead_of_the_measure(wrong):
    after = f"{wrong} (A)" if wrong.startswith("P") else f"{wrong} MATCH SKIP PAST LAST ROW PATTERN (A)"
    sql = f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY x MEASURES A.x AS y {after} DEFINE A AS TRUE)"
    with pytest.raises(ParseError) as error:
        find_matches(tokenize(sql))
    assert [context.fragment() for context in error.value.getQueryContext()] == [wrong]


@pytest.mark.parametrize("rows", ["ONE ROW PER MACTH", "ALL ROWS PER MATHC SHOW EMPTY MATCHES"])
def test_rows_per_match_that_is_misspelt_is_marked_at_its_last_word(rows):
    sql = f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY x {rows} PATTERN (A) DEFINE A AS TRUE)"
    with pytest.raises(ParseError) as error:
        find_matches(tokenize(sql))
    assert [context.fragment() for context in error.value.getQueryContext()] == [rows.split()[3]]
    assert error.value.hint == "did you mean MATCH?"


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


@pytest.mark.parametrize(
    ("sql", "near", "hint"),
    [
        ("SELECT a b c FROM t", "c FROM", "is a comma missing? write a comma before c"),
        ("SELECT t.a t.b FROM t", ".b", "is a comma missing? write a comma before t.b"),
        ("SELECT a AS x s.b AS y FROM t", "s.b", "is a comma missing? write a comma before s.b"),
        ("SELECT count(*) n max(x) FROM t", "max", "is a comma missing? write a comma before max"),
        ("SELECT f(a b) FROM t", "b)", "is a comma missing? write a comma before b"),
        ("(DEFINE A AS TRUE B AS A.x > 1)", "AS A", "is a comma missing? write a comma before B"),
        ("SELECT k FROM s [ROWS n n]", "n]", None),
        ("SELECT a FROM t x y z", "y", None),
        ("SELECT CASE WHEN a THEN b c END FROM t", "c END", None),
        ("SELECT k, FROM s AS x AS y", "AS y", "leave out the comma before FROM"),
        ("SELECT INTERVAL 10 MINTES", "MINTES", "did you mean MINUTES?"),
        ("SELECT INTERVAL '10' MINTES", "INTERVAL", "did you mean MINUTES?"),
        ("SELECT * FROM f(INTERVAL 10 HUORS)", "HUORS", "did you mean HOURS?"),
        (
            "SELECT DISTINCT ON (a, b) t.c FROM t",
            ".c",
            "leave DISTINCT ON (a, b) out, and write QUALIFY ROW_NUMBER() OVER (PARTITION BY a, b ORDER BY …)"
            " = 1 at the end",
        ),
        (
            "CREATE TABLE x (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)",
            "ts AS",
            "write FROM STREAM t WATERMARK ts DELAY OF INTERVAL 5 SECONDS in the query",
        ),
    ],
)
def test_what_other_dialects_have_and_commas_are_found_at_a_syntax_error(sql, near, hint):
    start = sql.rindex(near)
    assert meant_syntax(sql, Span(start, start + 1)) == hint


def test_a_column_of_select_with_the_name_of_a_row_variable_is_told_after_the_clause():
    clause = "WINDOW BY w AS (TYPE SLIDING ORDER BY x START AS s END AS e NEXT AS n WHEN n.x > 1)"

    def hint(select: str, having: str) -> str | None:
        sql = f"SELECT {select} FROM t {clause} HAVING {having}"
        at = sql.index(clause)
        having_at = Span(sql.rindex(having), len(sql))
        return named_like_variable(sql, having_at, Span(at, at + len(clause)), ["s", "e", "n"])

    assert "not the column of SELECT" in (hint("COUNT(w) AS n", "n >= 10") or "")
    assert hint("COUNT(w) AS c", "n >= 10") == "compare a column, such as n.x: n is a row"
    assert hint("COUNT(w) AS n", "n.x >= 10") is None


@pytest.mark.parametrize(
    ("clause", "fragment", "hint"),
    [
        ("ORDER BY x WITHIN 3 MEASURES A.x AS y PATTERN (A)", "WITHIN", "move it after PATTERN (…)"),
        (
            "ORDER BY x MEASURES A.x AS y WITHIN INTERVAL 3 DAYS PATTERN (A)",
            "WITHIN",
            "move it after PATTERN (…)",
        ),
        ("ORDER BY x DURATION 3 MEASURES A.x AS y PATTERN (A)", "DURATION", "move it after PATTERN (…)"),
        ("ORDER BY x PATTERN (A WITHIN 3)", "WITHIN 3", "write PATTERN (…) WITHIN 3"),
        (
            "ORDER BY x PATTERN (A+ (B WITHIN INCLUSIVE INTERVAL '10' DAYS))",
            "WITHIN INCLUSIVE INTERVAL '10' DAYS",
            "write PATTERN (…) WITHIN INCLUSIVE INTERVAL '10' DAYS",
        ),
        ("ORDER BY x PATTERN (A WITHIN :most)", "WITHIN :most", "write PATTERN (…) WITHIN :most"),
        (
            "ORDER BY x MEASURES A.x AS y A.z AS zz PATTERN (A)",
            "A",
            "is a comma missing? write a comma before A",
        ),
    ],
)
def test_parts_of_match_recognize_that_are_elsewhere_are_named(clause, fragment, hint):
    with pytest.raises(ParseError) as error:
        find_matches(tokenize(f"SELECT * FROM t MATCH_RECOGNIZE ({clause} DEFINE A AS TRUE)"))
    assert [context.fragment() for context in error.value.getQueryContext()] == [fragment]
    assert (error.value.hint or "").startswith(hint)


def test_a_column_called_within_orders_rows():
    (match,) = find_matches(
        tokenize("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY within, x PATTERN (A) WITHIN 3 DEFINE A AS TRUE)")
    )
    assert len(match.clause.order_by) == 2


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("lag(price)", "write PREV(price) for the row before"),
        ("lead(B.price)", "write NEXT(B.price) for the row after"),
        ("lag(2 * price)", "write PREV(x) for the row before"),
        ("first_value(price)", None),
    ],
)
def test_functions_of_over_in_a_pattern_have_the_hint_of_their_own(call, hint):
    sql = f"SELECT * FROM prices MATCH_RECOGNIZE (ORDER BY day PATTERN (A B) DEFINE B AS price > {call})"
    for marked in (call, f"price > {call}"):
        at = sql.index(marked)
        assert meant_neighbour(sql, Span(at, at + len(marked))) == hint


@pytest.mark.parametrize(
    ("sql", "near", "word"),
    [
        ("SELEC * FROM t", "SELEC", "SELEC"),
        ("SELECT a FROM t WHER a > 1", "a >", "WHER"),
        ("SELECT SUM(a) OVR (PARTITION BY b)", "(PART", "OVR"),
        ("SELECT * FORM t", "t", "FORM"),
        ("SELECT * FROM TUMBEL(TABLE t)", "TABLE t", "TUMBEL"),
        ("SELECT INTERVAL '10' MINTES", "INTERVAL", "MINTES"),
        ("SELECT t.a t.b FROM t", ".b", "."),
    ],
)
def test_the_caret_of_a_hint_is_at_the_misspelt_word(sql, near, word):
    start = sql.rindex(near)
    span = Span(start, start + 1 if near == ".b" else start + len(near))
    found = misspelt_word(sql, span, meant_syntax(sql, span) or "")
    assert sql[found.start : found.stop] == word
