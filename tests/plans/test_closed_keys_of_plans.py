"""By the values of which columns the streams of a query may promise that groups and rows are over."""

from __future__ import annotations

import pytest

from tests.plans.emitted import recorded
from tests.plans.emitted import timed as timed_in
from windrow.errors import AnalysisError
from windrow.plan.event_time import Closed


@pytest.fixture(scope="module")
def timed(spark):
    session = recorded(
        spark, s="k bigint, t bigint, v bigint, at bigint", r="l bigint, u bigint, w bigint, at bigint"
    )

    def known(text: str, promising: str, *, watermark: bool):
        return timed_in(session, text, watermark=watermark, promising=promising.split())

    return known


def told(query):
    """Of each stream of the query the columns that tell that its rows are complete."""
    names = {each.place: each.stream for each in query.occurrences}
    found = {name: set() for name in names.values()} if query.lineage else {}
    for _, own in query.lineage:
        for place, column in own:
            found[names[place]].add(column)
    return {name: "".join(sorted(columns)) for name, columns in found.items()}


def over(query):
    """Of each stream, in each grouping by promises, what has to be promised of which: columns, of its own."""
    names = {each.place: each.stream for each in query.occurrences}
    return [
        f"{names[each.origin]}: "
        + ", ".join(f"{names[place]} {' '.join(f'{a}={b}' for a, b in pairs)}" for place, pairs in each.by)
        for grouping in query.closes
        for each in grouping
        if isinstance(each, Closed)
    ]


@pytest.mark.parametrize(
    ("text", "complete", "closes"),
    [
        ("SELECT COUNT(*) FROM s GROUP BY k, v", {"s": "kv"}, ["s: s k=k v=v"]),
        ("SELECT k AS l, v FROM (SELECT * FROM s) GROUP BY k, v", {"s": "kv"}, ["s: s k=k v=v"]),
        ("SELECT COUNT(*) FROM s GROUP BY k + 1, v", {"s": "v"}, ["s: s v=v"]),
        ("SELECT MAX(v) FROM TUMBLE(TABLE s, DESCRIPTOR(t), 10) GROUP BY wend, k", {"s": "k"}, ["s: s k=k"]),
        ("SELECT DISTINCT v, k + 1 AS k FROM s", {"s": "v"}, ["s: s v=v"]),
        ("SELECT k, v + 1 AS v FROM s", {"s": "kt"}, []),
        ("SELECT s.k FROM s JOIN r ON s.k = r.l", {"s": "kt", "r": "lu"}, [
            "s: r l=k", "r: s k=l", "s: s k=k t=t, r l=k", "r: s k=l, r l=l u=u"]),
        ("SELECT s.v, r.w FROM s JOIN r ON s.k = r.l", {"s": "tv", "r": "uw"}, ["s: r l=k", "r: s k=l"]),
        ("SELECT s.k, r.w FROM s LEFT JOIN r ON s.k = r.l", {"s": "kt", "r": "l"}, [
            "s: s k=k, r l=k", "r: s k=l, r l=l", "s: s k=k t=t, r l=k", "r: s k=l, r l=l"]),
        ("SELECT s.k FROM s LEFT JOIN r ON s.k <= r.l", {}, []),
        ("SELECT s.k FROM s LEFT ANTI JOIN r ON s.k = r.l", {"s": "kt", "r": "l"}, [
            "s: s k=k, r l=k", "r: s k=l, r l=l", "s: s k=k t=t, r l=k", "r: s k=l, r l=l"]),
        ("SELECT s.k FROM s FULL JOIN r ON s.k = r.l", {}, []),
        ("SELECT COUNT(*) FROM s JOIN r ON s.k = r.l GROUP BY r.l, s.t", {"s": "kt", "r": "l"}, None),
        ("SELECT n FROM s JOIN (SELECT l, COUNT(*) AS n FROM r GROUP BY l) AS b ON s.k = b.l",
         {"s": "k", "r": "l"}, None),
        ("SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS n FROM s", {}, []),
        ("SELECT k FROM s WHERE v IN (SELECT w FROM r)", {}, ["r: s v=w, r w=w", "s: s v=v, r w=v"]),
        ("SELECT k, wend FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(t), 3) GROUP BY k, wend, v",
         {"s": "k"}, None),
        ("SELECT k, t FROM s UNION ALL SELECT l, u FROM r", {}, []),
    ],
)  # fmt: skip
def test_what_promises_may_tell(timed, text, complete, closes):
    query = timed(text, "s r", watermark=True)
    assert told(query) == complete
    if closes is not None:
        assert sorted(over(query)) == sorted(closes)


def test_what_is_shown_at_once_is_needed_until_the_other_side_is_over(timed):
    found = over(timed("SELECT s.v, r.w FROM s JOIN r ON s.k = r.l", "s r", watermark=False))
    assert sorted(found) == ["r: s k=l", "s: r l=k"]
    outer = timed("SELECT s.v, r.w FROM s LEFT JOIN r ON s.k = r.l", "s r", watermark=False)
    assert sorted(over(outer)) == ["r: s k=l, r l=l", "s: s k=k, r l=k"]
    assert outer.unbounded is None


def test_what_waits_and_does_not_show_its_key_is_kept(timed):
    assert timed("SELECT s.v FROM s JOIN r ON s.k = r.l", "s r", watermark=True).unbounded == "of a join"


def test_streams_without_patterns_promise_nothing(timed):
    with pytest.raises(AnalysisError) as error:
        timed("SELECT COUNT(*) FROM s GROUP BY k", "r", watermark=True)
    assert error.value.condition == "GROUP_WITHOUT_EVENT_TIME"
    query = timed("SELECT s.k FROM s JOIN r ON s.k = r.l", "s", watermark=True)
    assert (told(query), over(query), query.unbounded) == ({}, [], "of a join")


def test_time_does_not_tell_of_what_is_made_of_groups_that_it_does_not_end(timed):
    windows = "(SELECT wend, k FROM TUMBLE(TABLE s, DESCRIPTOR(t), 10) GROUP BY wend, k) AS a"
    beside = f"FROM {windows} JOIN (SELECT l, COUNT(*) AS n FROM r GROUP BY l) AS b ON a.k = b.l"
    query = timed(f"SELECT wend, n {beside}", "s r", watermark=True)
    assert (told(query), query.complete) == ({"s": "k", "r": "l"}, ())
    for text in (
        f"SELECT wend, MAX(n) {beside} GROUP BY wend",
        "SELECT k, COUNT(*) AS n FROM s GROUP BY k ORDER BY n LIMIT 1",
        "SELECT k, RANK() OVER (ORDER BY n) FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k)",
    ):
        with pytest.raises(AnalysisError, match="no GROUP BY key determines") as error:
            timed(text, "s r", watermark=True)
        assert error.value.condition == "GROUP_WITHOUT_EVENT_TIME"
