"""EMIT and what stands beside it, as they are read; and named queries in the place of their names."""

from __future__ import annotations

import pytest

from windrow.algebra.rewriting.expand import Expander
from windrow.errors import ParseError
from windrow.statements.composed import queries_inside
from windrow.syntax.streams.emit_clause import clauses_in, parse_emission
from windrow.syntax.tokens import tokenize


def read(text: str):
    tokens = tokenize(text)
    return tokens, parse_emission(tokens, 0, len(tokens))


@pytest.mark.parametrize(
    ("clause", "stream", "watermark", "delay", "envelope"),
    [
        ("EMIT STREAM", True, False, None, "one-sql"),
        ("EMIT AFTER WATERMARK", False, True, None, "one-sql"),
        ("EMIT STREAM AFTER WATERMARK", True, True, None, "one-sql"),
        ("EMIT AFTER DELAY INTERVAL 6 MINUTES", False, False, "INTERVAL 6 MINUTES", "one-sql"),
        ("emit stream after delay 6", True, False, "6", "one-sql"),
        ("EMIT STREAM AFTER DELAY 6 AND AFTER WATERMARK", True, True, "6", "one-sql"),
        ("EMIT AFTER WATERMARK AND AFTER DELAY (5 + 1)", False, True, "(5 + 1)", "one-sql"),
        ("EMIT STREAM AS op AFTER WATERMARK", True, True, None, "op"),
        ("EMIT STREAM AS one-sql", True, False, None, "one-sql"),
        ("EMIT STREAM AS delta", True, False, None, "delta"),
    ],
)
def test_forms(clause, stream, watermark, delay, envelope):
    tokens, emission = read(f"SELECT a FROM s {clause}")
    assert tokens.text(*emission.query) == "SELECT a FROM s"
    assert emission.stream == stream
    assert (emission.watermark is not None) == watermark
    assert (None if emission.delay is None else tokens.text(*emission.delay.tokens)) == delay
    assert emission.envelope == envelope


def test_other_clauses_stand_before_and_after():
    text = (
        "SELECT a FROM s AS OF SYSTEM TIME '2020-01-01' EMIT AFTER WATERMARK ALLOWED LATENESS INTERVAL 1 HOUR"
    )
    tokens, emission = read(text)
    assert tokens.text(*emission.as_of) == "'2020-01-01'"
    assert tokens.text(*emission.lateness.tokens) == "INTERVAL 1 HOUR"
    assert tokens.text(*emission.query) == "SELECT a FROM s"


@pytest.mark.parametrize("query", ["SELECT a FROM s GROUP BY ALL", "SELECT a FROM s ORDER BY a LIMIT ALL"])
def test_all_ends_a_query(query):
    tokens, emission = read(f"{query} EMIT STREAM")
    assert emission.stream
    assert tokens.text(*emission.query) == query


@pytest.mark.parametrize(
    "text",
    [
        "SELECT emit FROM s",
        "SELECT ALL emit FROM s",
        "SELECT s.emit, emit AS x FROM s WHERE emit",
        "SELECT a AS emit FROM s ORDER BY emit",
        "SELECT emit, a FROM emit",
        "SELECT allowed FROM s AS lateness",
    ],
)
def test_names_are_no_clauses(text):
    tokens, emission = read(text)
    assert not emission.says_how
    assert emission.query == (0, len(tokens))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT a FROM s «EMIT»", "write EMIT STREAM"),
        ("SELECT a FROM s EMIT STREAM AFTER «NOON»", "WATERMARK"),
        ("SELECT a FROM s EMIT «STREM»", "did you mean STREAM?"),
        ("SELECT a FROM s EMIT «AFTR» WATERMARK", "did you mean AFTER?"),
        ("SELECT a FROM s EMIT STREAM «AFTR» WATERMARK", "did you mean AFTER?"),
        ("SELECT a FROM s EMIT AFTER «WATERMRK»", "did you mean WATERMARK?"),
        ("SELECT a FROM s EMIT AFTER «DELY» INTERVAL 1 MINUTE", "did you mean DELAY?"),
        ("SELECT a FROM s EMIT STREAM «ALOWED» LATENESS 5", "did you mean ALLOWED?"),
        ("SELECT a FROM s EMIT STREAM «BEFORE» WATERMARK", "AFTER"),
        ("SELECT a FROM s EMIT AFTER WATERMARK «OR» AFTER DELAY 5", "AND"),
        ("SELECT a FROM s EMIT AFTER WATERMARK «AND»", "AND"),
        ("SELECT a FROM s EMIT AFTER «DELAY»", ""),
        ("SELECT a FROM s EMIT AFTER DELAY 5 AND AFTER «DELAY» 6", "write EMIT"),
        ("SELECT a FROM s EMIT STREAM AS «deltas»", "did you mean delta"),
        ("SELECT a FROM s EMIT STREAM «EMIT» AFTER WATERMARK", "once"),
        ("SELECT a FROM s AS OF SYSTEM «TIME»", ""),
        ("SELECT a FROM s AS OF SYSTEM TIME 5 «ORDER» BY a", "move AS OF SYSTEM TIME to the end"),
        ("SELECT a FROM s ALLOWED LATENESS 5 «GROUP» BY a EMIT STREAM", "move ALLOWED LATENESS to the end"),
        ("«EMIT» STREAM", "SELECT"),
    ],
)
def test_mistakes_are_told_where_they_are(text, hint):
    plain = text.replace("«", "").replace("»", "")
    with pytest.raises(ParseError) as error:
        read(plain)
    start, stop = text.index("«"), text.index("»") - 1
    assert (error.value.span.start, error.value.span.stop) == (start, stop)
    assert hint in (error.value.hint or "")


def test_clauses_within_a_query_are_of_that():
    text = "SELECT * FROM (SELECT a FROM s EMIT STREAM) WHERE undo AS OF SYSTEM TIME 3"
    tokens = tokenize(text)
    assert [tokens[at].text for at in clauses_in(tokens, 0, len(tokens))] == ["EMIT", "AS"]
    assert parse_emission(tokens, 0, len(tokens)).emit is None
    (place,) = queries_inside(tokens, (0, len(tokens)))
    assert tokens.text(*place) == "SELECT a FROM s EMIT STREAM"


def expanded(text: str, **views: str) -> str:
    tokens = tokenize(text)
    return " ".join(Expander(tokens, {"s"}, views).text(0, len(tokens)).render().split())


def test_named_queries_over_streams_stand_where_they_are_used():
    text = "WITH x AS (SELECT a FROM s), y AS (SELECT 1 AS b) SELECT * FROM x JOIN x AS z ON x.a = z.a JOIN y"
    assert expanded(text) == (
        "WITH y AS (SELECT 1 AS b) SELECT * FROM (SELECT a FROM s ) AS `x` "
        "JOIN (SELECT a FROM s ) AS z ON x.a = z.a JOIN y"
    )


def test_views_and_named_columns_are_expanded_in_table_functions_too():
    assert expanded("SELECT v.a FROM TUMBLE(TABLE v, DESCRIPTOR(a), 5) WHERE a > 1", v="SELECT a FROM s") == (
        "SELECT v.a FROM TUMBLE(TABLE (SELECT * FROM (SELECT a FROM s) AS `v`) "
        ", DESCRIPTOR(a), 5) AS `v` WHERE a > 1"
    )
    assert expanded("WITH x(b) AS (SELECT a FROM s) SELECT b FROM x") == (
        "SELECT b FROM (SELECT * FROM (SELECT a FROM s ) AS `x`(b)) AS `x`"
    )


def test_lists_of_with_inside_of_a_query_are_expanded():
    text = "SELECT * FROM (WITH x AS (SELECT a FROM s) SELECT * FROM x) AS y"
    assert expanded(text) == "SELECT * FROM ( SELECT * FROM (SELECT a FROM s ) AS `x` ) AS y"


def test_what_is_not_made_of_streams_stays():
    text = "WITH x AS (SELECT s FROM t) SELECT s.a, x.s FROM s JOIN x ON TRUE"
    assert expanded(text) == text


def test_a_lifetime_stands_before_or_after_the_others():
    for text in (
        "SELECT k, COUNT(*) FROM s GROUP BY k STATE LIFETIME INTERVAL 1 HOUR EMIT STREAM",
        "SELECT k, COUNT(*) FROM s GROUP BY k EMIT STREAM ALLOWED LATENESS 5 STATE LIFETIME INTERVAL 1 HOUR",
        "SELECT k, COUNT(*) FROM s GROUP BY k STATE LIFETIME INTERVAL 1 HOUR",
    ):
        tokens, emission = read(text)
        assert emission.says_how
        assert tokens.text(*emission.state_ttl.tokens) == "INTERVAL 1 HOUR"
        assert tokens.text(*emission.query) == "SELECT k, COUNT(*) FROM s GROUP BY k"
        assert emission.stream is ("EMIT" in text)
    with pytest.raises(ParseError, match="expected a length of time after STATE LIFETIME"):
        read("SELECT k, COUNT(*) FROM s GROUP BY k STATE LIFETIME")
    with pytest.raises(ParseError, match="twice"):
        read("SELECT 1 FROM s STATE LIFETIME 1 STATE LIFETIME 2")
    assert read("SELECT lifetime FROM s AS state")[1].lateness is None
