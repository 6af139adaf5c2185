"""Scripts of streams, and what is said when a query gives something else."""

from __future__ import annotations

import pytest

from windrow import Session
from windrow.errors import UsageError, WindrowError
from windrow.testing import Script, assert_same_rows

BEST = "SELECT item, MAX(price) AS best FROM bids [RANGE 4] GROUP BY item"


@pytest.fixture(scope="module")
def script(spark):
    script = Script(Session(spark))
    script.stream("bids", "second BIGINT, item STRING, price INT", rowtime="second", unit="seconds", lag=2)
    script.rows("bids", (1, "A", 10), {"item": "B", "second": 2, "price": 14}, (4, "A", 12), (3, "B", 19))
    return script.rows("bids", (9, "A", 1), (6, "A", 2)).bound("bids", 12)


CHANGES = [
    ("+I", 1, "A", 10),
    ("-D", 4, "A", 10),
    ("+I", 4, "A", 12),
    ("-D", 8, "A", 12),
    ("+I", 2, "B", 14),
    ("-D", 3, "B", 14),
    ("+I", 3, "B", 19),
    ("-D", 7, "B", 19),
    ("+I", 9, "A", 1),
    ("-D", 13, "A", 1),
]


@pytest.mark.usefixtures("interpreted")
def test_a_query_gives_what_is_expected_wherever_it_is_cut(script):
    columns = ["_op", "_at", "item", "best"]
    played = script.expect(
        BEST, [dict(zip(columns, row, strict=True)) for row in CHANGES], late=1, envelope="op"
    )
    assert [len(step) for step in played.steps] == [0, 0, 1, 0, 5, 0, 3, 1]
    assert played.late[0]["row"] == '{"second":6,"item":"A","price":2}'
    assert played.progress["rows_in"] == 6


@pytest.mark.usefixtures("interpreted")
def test_other_rows_are_shown_with_how_it_was_cut(script):
    with pytest.raises(AssertionError) as caught:
        script.expect(BEST, CHANGES[1:], late=1, envelope="op", tries=0)
    assert str(caught.value).splitlines() == [
        "different rows emitted in one micro-batch:",
        "+ _op='+I', _at=1, item='A', best=10",
    ]
    with pytest.raises(
        AssertionError, match=r"1 rows are late, expected 0, in one micro-batch:\s+bids .*6.* below 7"
    ):
        script.expect(BEST, CHANGES, envelope="op", tries=0)


def test_what_is_missing_and_too_many_is_listed():
    with pytest.raises(AssertionError) as caught:
        assert_same_rows([(1, "a"), (1, "a"), (2, None)], [{"x": 1, "y": "a"}, (3, [1])], "of a test")
    assert str(caught.value).splitlines() == [
        "different rows of a test:", "- 1, 'a'", "- 2, None", "+ 3, [1]"
    ]  # fmt: skip
    assert_same_rows([(1, {"a": [1.5]})], [(1, {"a": [1.5]})])
    with pytest.raises(UsageError, match="is not a row"):
        assert_same_rows(["ab"], [])


@pytest.mark.usefixtures("interpreted")
def test_a_stream_without_a_row_ends_too(spark):
    script = Script(Session(spark.newSession()))
    for name in ("s", "t"):
        script.stream(name, "ts BIGINT, k STRING", rowtime="ts", unit="seconds")
    script.rows("s", (1, "a"), (4, "b"))
    played = script.play("SELECT a.k FROM s [RANGE 2] AS a JOIN t [RANGE 2] AS b ON a.k = b.k", cuts=[1])
    assert played.rows == []
    assert (played.progress["rows_used"], played.progress["rows_buffered"]) == (2, 0)


@pytest.mark.usefixtures("interpreted")
def test_what_a_stream_says_of_late_rows_holds_for_its_queries(spark):
    script = Script(Session(spark.newSession()))
    script.stream("s", "ts BIGINT", rowtime="TS", on_late="fail").rows("s", (4,), (1,)).bound("s", 5)
    for query in ("SELECT ts FROM s [RANGE 2]", "SELECT ISTREAM(COUNT(*) AS n) FROM s [RANGE 2]"):
        with pytest.raises(WindrowError, match=r"\[LATE_ROW\]"):
            script.play(query)


def test_what_is_no_entry_is_told(script):
    other = Script(script.session).stream("other", "ts BIGINT, v DOUBLE", rowtime="ts").rows("other", (1, 2))
    stale = Script(script.session).stream("again", "ts BIGINT", rowtime="ts").rows("again", (1,))
    Script(script.session).stream("again", "ts BIGINT", rowtime="ts")
    for wrong, hint in [
        (lambda: script.bound("bids", None), "closes all producers"),
        (lambda: script.stream("b", "ts BIGINT, b BIGINT", rowtime="ts", bound="b"), "script.bound"),
        (lambda: script.stream("b", "ts BIGINT", rowtime="ts", idle="1 minute"), "unit, lag, producer"),
        (lambda: script.stream("Bids", "ts BIGINT", rowtime="ts"), "another script"),
        (lambda: script.stream("b", "ts BIGNT, k INT", rowtime="ts"), "line 1, column 4"),
        (lambda: script.stream("b", "ts BIGNT, k INT", rowtime="ts"), "'ts TIMESTAMP, item STRING'"),
        (lambda: script.stream("b", "bigint", rowtime="ts"), "'bigint' is not a schema"),
        (lambda: script.stream("b", "ts BIGINT, who INT", rowtime="ts", producer="hwo"), "[UNKNOWN_COLUMN]"),
        (lambda: script.stream("b", "ts BIGINT, __Rowtime INT", rowtime="ts"), "rename the column"),
        (lambda: script.play("SELECT item FROM bids"), "SELECT STREAM"),
        (lambda: other.play("SELECT STREAM v FROM other"), "1.0 for a DOUBLE"),
        (lambda: stale.play("SELECT STREAM ts FROM again"), "before another script"),
        (lambda: script.rows("bid", (1, "A", 1)), "did you mean bids"),
        (lambda: script.rows("bids", (1, "A")), "second, item, price"),
        (lambda: script.rows("bids", {"itm": "A"}), "did you mean item"),
        (lambda: script.play("SELECT 1"), "bids"),
    ]:
        with pytest.raises(WindrowError) as caught:
            wrong()
        assert hint in str(caught.value)
