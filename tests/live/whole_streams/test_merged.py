"""Streams that are merged by rowtime: a row leaves as soon as no other input can send an earlier one."""

from __future__ import annotations

import pytest

from windrow import Session
from windrow.testing import Script

pytestmark = pytest.mark.usefixtures("interpreted")

UNION = "SELECT STREAM at, k FROM orders UNION ALL SELECT STREAM at, k FROM trades"
QUERIES = {
    "in brackets": f"WITH u AS ({UNION.replace('STREAM ', '')}) SELECT STREAM * FROM (SELECT * FROM u) AS b",
    "view": "SELECT STREAM at, k FROM merged",
}


def script_of(spark):
    script = Script(Session(spark))
    for name in ("orders", "trades"):
        script.stream(name, "at BIGINT, k STRING", rowtime="at", unit="minutes")
    script.session.sql(f"CREATE OR REPLACE TEMP VIEW merged AS {UNION}")
    return script


def leaving(played):
    """The names of the rows that leave in each step, in their order."""
    return [[row["k"] for row in step] for step in played.steps]


@pytest.mark.sampled
@pytest.mark.parametrize("query", QUERIES)
def test_a_row_leaves_when_every_other_bound_has_reached_it(spark, query):
    script = script_of(spark)
    script.rows("orders", (601, "ORCL"), (604, "MSFT")).bound("orders", 606)
    script.rows("trades", (602, "YHOO"), (603, "IBM")).bound("trades", 604)
    played = script.play(QUERIES[query], cuts=[5], kills=[0], ends=False)
    # MSFT waits for the bound that reaches it, and for no later one
    assert leaving(played) == [["ORCL", "YHOO", "IBM"], ["MSFT"]]


def test_rows_of_one_instant_leave_as_they_come_and_once(spark):
    script = script_of(spark)
    script.rows("orders", (600, "a"), (601, "b"), (601, "c"), (601, "d"), (605, "e"))
    one = "SELECT STREAM at, k FROM orders"
    assert leaving(script.play(one, cuts=range(5), kills=[2, 4], ends=False)) == [[k] for k in "_abcde"][1:]
    script.rows("trades", (601, "f"), (601, "g"))
    played = script.play(UNION, cuts=[6], kills=[1], ends=False)
    assert leaving(played) == [["a", "b", "c", "d", "f"], ["g"]]


def test_what_needs_an_order_waits_for_a_later_bound(spark):
    script = script_of(spark)
    script.rows("orders", (601, "a")).rows("trades", (601, "b"), (602, "c")).bound("orders", 602)
    windows = "SELECT s.at, s.k FROM merged WINDOW BY w AS (TYPE TUMBLING ORDER BY at, k START AS s END AS e)"
    steps = leaving(script.play(windows, cuts=range(4), ends=False))
    assert steps == [[], [], [], ["a", "b"]]
