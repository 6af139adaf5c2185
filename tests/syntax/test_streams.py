"""The clauses of streams: windows in brackets, ISTREAM and its like, CREATE STREAM."""

from __future__ import annotations

from decimal import Decimal

import pytest

from windrow.errors import ParseError, WindrowError
from windrow.syntax.cql_clauses import parse_stream_window, parse_to_stream, refuse_alias_before, window_at
from windrow.syntax.streams.create_stream import parse_create_stream
from windrow.syntax.tokens import tokenize

SECOND = 10**9


def windows(sql: str):
    tokens = tokenize(sql)
    return tokens, [parse_stream_window(tokens, at) for at in range(len(tokens)) if window_at(tokens, at)]


def window(bracket: str):
    tokens, found = windows(f"SELECT * FROM s {bracket}")
    (one,) = found
    return tokens, one


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1", SECOND),
        ("10 minutes", 600 * SECOND),
        ("1 MINUTE", 60 * SECOND),
        ("1.5 seconds", 1.5 * SECOND),
        ("2 days", 2 * 86_400 * SECOND),
        ("3 nanoseconds", 3),
        ("7 Microseconds", 7000),
    ],
)
def test_lengths_of_time(text, nanoseconds):
    _, found = window(f"[RANGE {text}]")
    assert found.range_ is not None
    assert (found.range_.nanoseconds or found.range_.number * SECOND) == Decimal(nanoseconds)


def test_every_form_of_window():
    assert window("[NOW]")[1].is_now
    assert window("[range unbounded]")[1].is_unbounded
    found = window("[RANGE 10 SLIDE 5 MINUTES]")[1]
    assert (found.range_.number, found.slide.nanoseconds) == (10, 300 * SECOND)
    found = window("[ROWS 5 SLIDE 2]")[1]
    assert (found.rows, found.row_slide) == (5, 2)
    tokens, found = window("[PARTITION BY a, lower(b) ROWS 2 RANGE 3 SLIDE 1]")
    assert [tokens.text(*key) for key in found.partition_by] == ["a", "lower(b)"]
    assert (found.rows, found.range_.number, found.slide.number) == (2, 3, 1)
    tokens, found = window("[RANGE INTERVAL '5' DAY ON ts + INTERVAL '1' DAY]")
    assert tokens.text(*found.distance) == "INTERVAL '5' DAY"
    assert tokens.text(*found.on) == "ts + INTERVAL '1' DAY"
    tokens, found = window("[RANGE INTERVAL 2 DAYS SLIDE INTERVAL '1' HOUR]")
    assert [tokens.text(*part.tokens) for part in (found.range_, found.slide)] == [
        "INTERVAL 2 DAYS",
        "INTERVAL '1' HOUR",
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a[now] FROM t",
        "SELECT a[range] FROM t WHERE b[rows] = 1",
        "SELECT a[range.x] FROM t",
        "SELECT x FROM t WHERE f(a)[now] > 1",
        "SELECT x FROM t JOIN u ON t.a[now] = u.b",
        "SELECT array(1)[0] FROM t",
    ],
)
def test_places_in_arrays_are_no_windows(sql):
    assert windows(sql)[1] == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM s[NOW]",
        "SELECT * FROM t, s [ROWS 1] AS x WHERE 1 = 1",
        "SELECT * FROM t JOIN s[RANGE 1] ON t.a = s.a",
        "SELECT * FROM (s[NOW] JOIN t)",
        "SELECT * FROM ISTREAM(SELECT 1) DIFFERENCE USING (a) [NOW]",
        "SELECT (SELECT MAX(a) FROM s[ROWS 2]) FROM t",
        "FROM s[NOW] SELECT *",
    ],
)
def test_windows_stand_where_relations_do(sql):
    assert len(windows(sql)[1]) == 1


@pytest.mark.parametrize(
    ("bracket", "condition", "marked"),
    [
        ("[RANGE]", "PARSE_SYNTAX_ERROR", "]"),
        ("[UNBOUNDED]", "PARSE_SYNTAX_ERROR", "UNBOUNDED"),
        ("[NOW 5]", "PARSE_SYNTAX_ERROR", "5"),
        ("[]", "PARSE_SYNTAX_ERROR", "]"),
        ("[RANGE -5]", "PARSE_SYNTAX_ERROR", "-"),
        ("[RANGE 0]", "INVALID_WINDOW_SIZE", "0"),
        ("[RANGE 0 MINUTES]", "INVALID_WINDOW_SIZE", "0"),
        ("[RANGE 5 SLIDE 0]", "INVALID_WINDOW_SIZE", "0"),
        ("[RANGE 5 SLIDE]", "PARSE_SYNTAX_ERROR", "]"),
        ("[RANGE 5 fortnights]", "UNKNOWN_UNIT", "fortnights"),
        ("[RANGE 5 ROWS 2]", "PARSE_SYNTAX_ERROR", "ROWS"),
        ("[RANGE 1 MONTH]", "INVALID_WINDOW_SIZE", "MONTH"),
        ("[RANGE 5 DAYS SLIDE 2 YEARS]", "INVALID_WINDOW_SIZE", "YEARS"),
        ("[PARTITION BY k ROWS 2 RANGE 2 WEAKS]", "UNKNOWN_UNIT", "WEAKS"),
        ("[ROWS 0]", "INVALID_WINDOW_SIZE", "0"),
        ("[ROWS 1.5]", "INVALID_WINDOW_SIZE", "1.5"),
        ("[ROWS 3 SLIDE 0]", "INVALID_WINDOW_SIZE", "0"),
        ("[RANGE x fortnights]", "UNKNOWN_UNIT", "fortnights"),
        ("[PARTITION BY a]", "PARSE_SYNTAX_ERROR", "]"),
        ("[PARTITION BY ROWS 3]", "PARSE_SYNTAX_ERROR", "ROWS"),
        ("[PARTITION BY a, ROWS 3]", "PARSE_SYNTAX_ERROR", "ROWS"),
        ("[RANGE 3 ON]", "PARSE_SYNTAX_ERROR", "]"),
        ("[RANGE ON a]", "PARSE_SYNTAX_ERROR", "ON"),
        ("[RANGE INTERVAL]", "PARSE_SYNTAX_ERROR", None),
    ],
)
def test_mistakes_have_a_place(bracket, condition, marked):
    sql = f"SELECT * FROM s {bracket}"
    with pytest.raises(WindrowError) as caught:
        windows(sql)
    assert caught.value.condition == condition
    if marked is not None:
        assert caught.value.span is not None
        assert sql[caught.value.span.start : caught.value.span.stop] == marked


@pytest.mark.parametrize(
    ("bracket", "hint"),
    [
        ("[RANG 10 SECONDS]", "did you mean RANGE?"),
        ("[RANGE 10 SECONDS SLDE 5]", "did you mean SLIDE?"),
        ("[PARTITION ON k ROWS 3]", "windows are [NOW]"),
        ("[5]", "windows are [NOW]"),
    ],
)
def test_a_misspelt_word_of_a_window_is_named(bracket, hint):
    with pytest.raises(ParseError) as caught:
        windows(f"SELECT * FROM s {bracket}")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize("sql", ["SELECT * FROM s x [NOW]", "SELECT * FROM t, s AS x [ROWS 3]"])
def test_an_alias_stands_after_the_window(sql):
    tokens = tokenize(sql)
    (bracket,) = (index for index in range(len(tokens)) if tokens.is_symbol(index, "["))
    with pytest.raises(ParseError, match="alias x must follow the window"):
        refuse_alias_before(tokens, bracket)


@pytest.mark.parametrize(
    ("sql", "kind", "query", "using"),
    [
        ("ISTREAM(SELECT 1)", "ISTREAM", "SELECT 1", []),
        ("Rstream ( SELECT 1 )", "RSTREAM", "SELECT 1", []),
        ("DSTREAM(SELECT 1) DIFFERENCES USING (a, `b c`)", "DSTREAM", "SELECT 1", ["a", "b c"]),
        ("SELECT ISTREAM(a, b) FROM s[NOW]", "ISTREAM", "a, b", []),
        ("SELECT ISTREAM(a) FROM s[NOW] WHERE a > 1 DIFFERENCE USING (a)", "ISTREAM", "a", ["a"]),
    ],
)
def test_streams_of_relations(sql, kind, query, using):
    tokens = tokenize(sql)
    found = parse_to_stream(tokens, 0, len(tokens))
    assert found is not None
    assert (found.kind, tokens.text(*found.query)) == (kind, query)
    assert [name for name, _ in found.using] == using


@pytest.mark.parametrize(
    "sql", ["SELECT istream(a), b FROM s[NOW]", "SELECT 1", "ISTREAM(SELECT 1) UNION SELECT 2"]
)
def test_what_is_no_stream_of_a_whole_query(sql):
    tokens = tokenize(sql)
    assert parse_to_stream(tokens, 0, len(tokens)) is None


def test_difference_using_names_columns():
    tokens = tokenize("ISTREAM(SELECT 1) DIFFERENCE USING (a + 1)")
    with pytest.raises(ParseError, match="only column names"):
        parse_to_stream(tokens, 0, len(tokens))


def test_create_stream():
    sql = "CREATE OR REPLACE STREAM s (a INT, ROWTIME ts BIGINT UNIT SECONDS, m MAP<INT, STRING>) FROM db.t"
    tokens = tokenize(sql)
    found = parse_create_stream(tokens, 0, len(tokens))
    assert found is not None
    assert (found.name, found.replace) == ("s", True)
    assert tokens.text(*found.source) == "db.t"
    assert [column.name for column in found.columns] == ["a", "ts", "m"]
    assert [column.unit for column in found.columns] == [None, "SECOND", None]
    assert [tokens.text(*column.kind) for column in found.columns] == ["INT", "BIGINT", "MAP<INT, STRING>"]


@pytest.mark.parametrize(
    ("rest", "marked"),
    [
        ("", "s"),
        ("(a INT) FROM t", "("),
        ("(ROWTIME a INT, ROWTIME b INT) FROM t", "ROWTIME"),
        ("(a, ROWTIME b) FROM t", "a"),
        ("(ROWTIME a INT, B INT, b INT) FROM t", "b"),
        ("(ROWTIME a INT UNIT weeks) FROM t", "UNIT"),
        ("(ROWTIME a INT) t", "t"),
        ("(ROWTIME a INT) FROM", "FROM"),
        ("(ROWTIME a INT) LOCATION", "LOCATION"),
        ("(ROWTIME a INT) LOCATION folder", "folder"),
        ("(ROWTIME a INT) LOCATION 'folder' FROM t", "FROM"),
        ("(ROWTIME a INT) LAG 10", "10"),
        ("(ROWTIME a INT) LAG", "LAG"),
        ("(ROWTIME a INT) IDLE 'soon'", "'soon'"),
        ("(ROWTIME a INT) IDLE 1 DAY IDLE 2 DAYS", "IDLE"),
        ("(ROWTIME a INT) UNORDERED LAG 1 DAY", "LAG"),
        ("(ROWTIME a INT) CHECK a > 0", "a"),
        ("(ROWTIME a INT) UNIQUE", "UNIQUE"),
        ("(ROWTIME a INT) GROWING (a, b)", "GROWING"),
        ("(ROWTIME a INT) ON LATE", "LATE"),
        ("(ROWTIME a INT) FROM t ON early FAIL", "early"),
        ("(ROWTIME a INT) FROM t ON LATE drop", "drop"),
        ("(ROWTIME a INT) ON LATE FAIL ON LATE KEEP", "ON"),
        ("(ROWTIME a INT) WHEN a = 1", "WHEN"),
        ("(ROWTIME a INT) WHEN a = 1 PUNCTUATES a", "a"),
    ],
)
def test_mistakes_in_create_stream_have_a_place(rest, marked):
    sql = f"CREATE STREAM s {rest}"
    tokens = tokenize(sql)
    with pytest.raises(ParseError) as caught:
        parse_create_stream(tokens, 0, len(tokens))
    assert caught.value.span is not None
    assert sql[caught.value.span.start : caught.value.span.stop] == marked


@pytest.mark.parametrize(
    ("rest", "source", "is_live", "options", "lengths"),
    [
        ("", None, False, [], (None, None)),
        ("UNORDERED", None, False, ["UNORDERED"], (None, None)),
        ("LAG 10 SECONDS LOCATION 'f' IDLE 1.5 MINUTES", None, False, ["IDLE", "LAG"], (10, 90)),
        ("FROM STREAM db.t LAG 1 HOUR", "db.t", True, ["LAG"], (3600, None)),
        ("FROM db.t ON LATE FAIL", "db.t", False, ["ON LATE"], (None, None)),
        ("FROM stream", "stream", False, [], (None, None)),
        ("FROM stream IDLE 1 SECOND", "stream", False, ["IDLE"], (None, 1)),
    ],
)
def test_what_create_stream_says_of_its_producers(rest, source, is_live, options, lengths):
    tokens = tokenize(f"CREATE STREAM s (ROWTIME a INT) {rest}")
    found = parse_create_stream(tokens, 0, len(tokens))
    assert (found.source and tokens.text(*found.source), found.is_live) == (source, is_live)
    assert sorted(found.options.keys() - {"FROM", "LOCATION"}) == options
    seconds = tuple(length and length.nanoseconds / 10**9 for length in (found.lag, found.idle))
    assert seconds == lengths


def test_create_stream_with_an_interval():
    tokens = tokenize("CREATE STREAM s (ROWTIME a INT) LAG INTERVAL '0 1' DAY TO HOUR LOCATION 'f'")
    found = parse_create_stream(tokens, 0, len(tokens))
    assert (found.lag.nanoseconds, tokens.text(*found.lag.tokens)) == (None, "INTERVAL '0 1' DAY TO HOUR")
    assert tokens[found.location].text == "'f'"


def test_create_stream_with_promises():
    sql = "CREATE STREAM s (ROWTIME a INT) UNIQUE (a, b) WHEN c = 'x' AND d IN (1) PUNCTUATES (b)"
    tokens = tokenize(f"{sql} GROWING (n) CHECK (a >= 0) UNORDERED")
    found = parse_create_stream(tokens, 0, len(tokens))
    assert (tokens.text(*found.check), tokens.text(*found.when)) == ("a >= 0", "c = 'x' AND d IN (1)")
    names = [[name for name, _ in listed] for listed in (found.unique, found.growing, found.ends)]
    assert names == [["a", "b"], ["n"], ["b"]]
    assert "UNORDERED" in found.options


def test_create_stream_in_a_folder():
    tokens = tokenize("CREATE STREAM IF NOT EXISTS s (ROWTIME ts INT) LOCATION '/tmp/s'")
    found = parse_create_stream(tokens, 0, len(tokens))
    assert found is not None
    assert (found.name, found.if_not_exists, found.replace, found.source) == ("s", True, False, None)
    assert tokens[found.location].text == "'/tmp/s'"


def test_a_column_called_stream_is_no_stream():
    tokens = tokenize("CREATE TABLE stream (a INT)")
    assert parse_create_stream(tokens, 0, len(tokens)) is None


def test_parts_of_a_log_in_create_stream():
    sql = (
        "CREATE STREAM s (ROWTIME ts INT, PTIME p TIMESTAMP, PRODUCER who STRING, BOUND b INT, "
        "producer STRING, bound DECIMAL(3, 1), ptime INTERVAL DAY TO SECOND) FROM t"
    )
    tokens = tokenize(sql)
    found = parse_create_stream(tokens, 0, len(tokens))
    assert found is not None
    assert [(column.part, column.name) for column in found.columns] == [
        ("ROWTIME", "ts"),
        ("PTIME", "p"),
        ("PRODUCER", "who"),
        ("BOUND", "b"),
        ("", "producer"),
        ("", "bound"),
        ("", "ptime"),
    ]


def test_weeks_are_seven_days() -> None:
    for weeks, days in (("[RANGE 2 WEEKS]", "[RANGE 14 DAYS]"), ("[RANGE 1 WEEK]", "[RANGE 7 DAYS]")):
        read = [parse_stream_window(tokenize(text), 0).range_ for text in (weeks, days)]
        assert read[0] is not None
        assert read[1] is not None
        assert read[0].nanoseconds == read[1].nanoseconds
