"""SELECT STREAM and FROM STREAM … WATERMARK are read away, and where they stood is remembered."""

from __future__ import annotations

import pytest

from windrow.errors import ParseError
from windrow.syntax.streams.other_dialects import spelled
from windrow.syntax.tokens import tokenize


def read(text):
    tokens = tokenize(text)
    return spelled(tokens, 0, len(tokens))


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("SELECT STREAM a FROM s", "SELECT        a FROM s"),
        ("SELECT STREAM * FROM s", "SELECT        * FROM s"),
        ("SELECT STREAM (a + 1) AS b FROM s", "SELECT        (a + 1) AS b FROM s"),
        ("SELECT STREAM DISTINCT a FROM s", "SELECT        DISTINCT a FROM s"),
        ("select stream a from s union all select stream b from t",
         "select        a from s union all select        b from t"),
    ],
)  # fmt: skip
def test_select_stream(text, without):
    found = read(text)
    assert found.tokens.sql == without
    assert found.selects == {at for at in range(len(text)) if text[at:].lower().startswith("select ")}


@pytest.mark.parametrize("kind", ["ISTREAM", "dstream", "RSTREAM"])
def test_select_stream_of_a_stream_is_refused(kind):
    with pytest.raises(ParseError) as caught:
        read(f"SELECT STREAM {kind}(a) FROM s [NOW]")
    assert [context.fragment() for context in caught.value.getQueryContext()] == ["STREAM"]
    assert kind.upper() in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT stream FROM s",
        "SELECT stream, b FROM s",
        "SELECT stream AS b FROM s",
        "SELECT stream.a FROM s",
        "SELECT stream * 2 FROM s",
        "SELECT stream(a) FROM s",
        "SELECT stream - 1 FROM s",
        "SELECT a FROM stream",
        "SELECT a FROM stream AS s",
        "SELECT a FROM stream WHERE a > 1",
        "SELECT a FROM (SELECT STREAM b FROM s)",
    ],
)
def test_what_is_named_stream_stays(text):
    found = read(text)
    assert (found.tokens.sql, found.selects, found.sources) == (text, frozenset(), {})


@pytest.mark.parametrize(
    ("clause", "delay", "rest"),
    [
        ("WATERMARK ts DELAY OF INTERVAL 10 SECONDS", "INTERVAL 10 SECONDS", " [RANGE 1]"),
        ("WATERMARK `ts` DELAY OF INTERVAL '1' HOUR", "INTERVAL '1' HOUR", " AS x"),
        (
            "WATERMARK ts DELAY OF INTERVAL '0 1' DAY TO HOUR",
            "INTERVAL '0 1' DAY TO HOUR",
            " WHERE a > 1",
        ),
    ],
)
def test_from_stream_with_a_watermark(clause, delay, rest):
    head, name = "SELECT a FROM STREAM ", "sales.bids"
    text = head + name + " " + clause + rest
    found = read(text)
    assert found.tokens.sql == text.replace("STREAM", " " * 6).replace(clause, " " * len(clause))
    ((at, source),) = found.sources.items()
    assert at == len(head)
    assert found.written.text(*source.name) == name
    assert found.written[source.column].name == "ts"
    assert found.written.text(*source.delay.tokens) == delay


def test_from_stream_with_a_watermark_over_an_expression():
    clause = "WATERMARK to_timestamp(delay, 'x') + f(a) AS ts DELAY OF INTERVAL 10 SECONDS FUTURE 1 DAY"
    found = read(f"SELECT a FROM STREAM t {clause} [NOW] AS x")
    assert found.tokens.sql.split() == ["SELECT", "a", "FROM", "t", "[NOW]", "AS", "x"]
    (source,) = found.sources.values()
    assert found.written[source.column].name == "ts"
    assert found.written.text(*source.expression) == "to_timestamp(delay, 'x') + f(a)"


def test_from_stream_without_a_watermark():
    found = read("SELECT a FROM s, STREAM t [NOW]")
    assert found.tokens.sql == "SELECT a FROM s,        t [NOW]"
    assert [source.column for source in found.sources.values()] == [None]


@pytest.mark.parametrize(
    "clause",
    [
        "WATERMARK ts",
        "WATERMARK ts DELAY OF",
        "WATERMARK f(ts) DELAY OF",
        "WATERMARK f(ts) DELAY OF INTERVAL 1 SECOND",
        "WATERMARK AS ts DELAY OF INTERVAL 1 SECOND",
        "WATERMARK f(ts) AS DELAY OF INTERVAL 1 SECOND",
    ],
)
def test_a_watermark_of_another_form_is_refused(clause):
    with pytest.raises(ParseError, match="WATERMARK of a stream") as caught:
        read(f"SELECT a FROM STREAM t {clause}")
    assert caught.value.getQueryContext()[0].fragment().startswith("WATERMARK")


def test_order_by_within_an_interval():
    text = "SELECT STREAM within FROM s WHERE within > 1 ORDER BY ts, within WITHIN INTERVAL '2' MINUTE"
    found = read(text)
    assert found.tokens.sql == text.replace("STREAM", " " * 6).replace("WITHIN INTERVAL '2' MINUTE", " " * 26)
    assert found.written.text(*found.within.tokens) == "INTERVAL '2' MINUTE"
    assert read("SELECT STREAM a FROM s ORDER BY within").within is None
    assert read("SELECT a FROM s ORDER BY a WITHIN INTERVAL 1 DAY").within is None


@pytest.mark.parametrize(
    ("clause", "nanoseconds"),
    [
        ("FUTURE 1 DAY", 86_400 * 10**9),
        ("future 1.5 SECONDS", 1_500_000_000),
        ("FUTURE INTERVAL 2 HOURS", None),
        ("FUTURE INTERVAL '1' DAY", None),
        ("FUTURE INTERVAL '1 2' DAY TO HOUR", None),
    ],
)
@pytest.mark.parametrize("after", ["", " AS s WHERE a > 1", " [RANGE 5] AS s"])
def test_how_far_ahead_rows_may_be_is_read_away(clause, nanoseconds, after):
    text = f"SELECT a FROM STREAM t WATERMARK ts DELAY OF INTERVAL 5 SECONDS {clause}{after}"
    found = read(text)
    (source,) = found.sources.values()
    assert found.tokens.sql.split() == f"SELECT a FROM t{after}".split()
    assert source.future is not None
    assert source.future.nanoseconds == nanoseconds
    assert found.written.text(*source.future.tokens) == clause.split(maxsplit=1)[1]


def test_a_table_may_be_called_future():
    found = read("SELECT future.a FROM STREAM t WATERMARK ts DELAY OF INTERVAL 5 SECONDS future")
    (source,) = found.sources.values()
    assert source.future is None
    assert found.tokens.sql.split()[-1] == "future"


def test_a_future_without_a_unit_is_refused():
    with pytest.raises(ParseError, match="expected a length of time after FUTURE") as caught:
        read("SELECT a FROM STREAM t WATERMARK ts DELAY OF INTERVAL 5 SECONDS FUTURE 1")
    assert [context.fragment() for context in caught.value.getQueryContext()] == ["1"]
