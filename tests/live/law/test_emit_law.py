"""EMIT over live streams gives what the recorded log gives, wherever it is cut and the query killed."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live.emit_queries import (
    BOTH,
    CONTINUOUS,
    HOW,
    IN_TIME,
    OVER,
    SOME_LATE,
    WATERMARK,
    counted,
    cut,
    declared,
    live,
    live_log,
    queries,
    recorded,
    recorded_log,
    until,
)
from tests.live.queries.test_named import ORDERINGS, calls
from tests.live.queries.test_named import recorded as written
from tests.live.random_logs import LAGS, log
from tests.live.stepping import law
from windrow.spark.live.plans.emit_flow import why_by_tasks
from windrow.streams import Ordering


@law(1)
@given(
    log,
    log,
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), min_size=1, max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
    queries(),
)
@example(
    [("a", 0, 1, 1, None), ("a", 3, 1, 2, 2), ("b", 1, 1, 3, None), ("a", 2, 1, 2, None), ("a", 9, 1, 1, 9)],
    [],
    None,
    [0.5],
    {1},
    f"{OVER['tumbling windows']} {BOTH[0]}",
)
@example(
    [("a", 0, 1, 1, None), ("b", 4, 0, 2, 2), ("a", 7, 1, 3, 5), ("b", 1, 1, 3, None), ("b", 3, 1, 2, 8)],
    [],
    2,
    [0.6],
    set(),
    f"{OVER['hopping windows']} {HOW[1]} ALLOWED LATENESS 2",
)
@example(
    [
        ("a", 0, 1, 2, None),
        ("a", 1, 1, 2, 4),
        ("a", 8, 2, 1, None),
        ("a", 7, 1, 1, 7),
        ("a", None, None, None, 12),
    ],
    [("b", 1, 1, 3, 3), ("b", 4, 2, 0, 5), ("b", 3, 2, 0, None), ("b", 11, 2, 0, 12)],
    None,
    [0.4, 0.7],
    {1},
    f"{OVER['groups without a partner']} {WATERMARK[1]}",
)
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['groups of either']} {HOW[0]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['groups of either']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['groups by a merged key']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['groups of one of three']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['groups of one of three']} {WATERMARK[0]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['windows of groups of either']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['windows of groups of either']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['groups that have no equal']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['ranks of windows']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['the best of windows']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['sums above a join of groups by time']} {HOW[0]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['sums in order of time']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['no partner within an interval']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['no partner within an interval']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['none within an interval']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['none within an interval']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['not one within an interval']} {WATERMARK[0]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['not one within an interval']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['either within an interval']} {WATERMARK[1]}")
@example(*IN_TIME, None, [0.3, 0.6], {1}, f"{OVER['rows of sessions']} {WATERMARK[1]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['groups that may lack a partner']} {HOW[0]}")
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['groups of an anti join']} {HOW[0]}")
@example(
    [("a", 0, None, 2, None), ("a", 8, 2, 1, None)],
    [("b", 8, 2, 0, None)],
    0,
    [0.5],
    {1},
    f"{CONTINUOUS['an outer join']} {HOW[0]}",
)
@pytest.mark.usefixtures("interpreted")
def test_cuts_and_kills_change_nothing(spark, tmp_path_factory, s, t, lag, cuts, kills, query):
    folder = tmp_path_factory.mktemp("live")
    logs = {"s": cut(s, cuts)}
    if " t " in query:
        logs["t"] = cut(t, cuts)
    entries = [entry for batches in logs.values() for entry in recorded_log(batches, lag)]
    if not entries or ("AFTER WATERMARK" in query and all(entry[-1] is None for entry in entries)):
        return  # of what is recorded without a watermark nothing is complete, and that is said
    found, _ = live(spark, folder, logs, lag, kills, query)
    assert counted(found) == counted([recorded(spark, logs, lag, query)])


@law(1)
@given(
    log,
    log,
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), min_size=1, max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
    queries().filter(lambda query: " t " in query),
    st.sampled_from("st"),
)
@example(*SOME_LATE, None, [0.3, 0.6], {1}, f"{OVER['groups of a join by time']} {HOW[0]}", "s")
@pytest.mark.usefixtures("interpreted")
def test_one_of_the_streams_may_be_recorded(spark, tmp_path_factory, s, t, lag, cuts, kills, query, name):
    logs = {"s": cut(s, cuts), "t": cut(t, cuts)}
    logged = {one: [row for batch in logs[one] for row in batch] for one in logs}
    if not all(any(entry[4] is not None for entry in entries) for entries in logged.values()):
        return  # without a watermark nothing is complete, and that is said; without an entry nothing begins
    others = {one: batches for one, batches in logs.items() if one != name}
    found, _ = live(spark, tmp_path_factory.mktemp("live"), others, lag, kills, query, {name: logs[name]})
    assert counted(found) == counted([recorded(spark, logs, lag, query)])


DELAYABLE = {
    **{name: f"{query} {BOTH[0]}" for name, query in OVER.items()},
    **{name: f"{query} {HOW[1]}" for name, query in CONTINUOUS.items()},
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", DELAYABLE)
def test_the_operators_of_all_these_queries_are_in_memory(spark, tmp_path, name):
    assert why_by_tasks(declared(spark, tmp_path, "st", None).sql(DELAYABLE[name])._live) is None


# -- named streams -------------------------------------------------------------------------------------

SOON = ["EMIT STREAM", "EMIT STREAM AFTER DELAY INTERVAL '0.01' SECOND"]


@law(1)
@given(
    calls,
    calls,
    st.sampled_from(ORDERINGS),
    st.lists(st.floats(0, 1), max_size=2),
    st.sets(st.integers(0, 2), max_size=1),
    st.sampled_from([f"{query} {how}" for query in OVER.values() for how in (*SOON, *WATERMARK)]),
)
@example(
    [("insert", "a", [(1, 1, 1), (3, 1, 2)]), ("again", "b", [(4, 1, 1)]), ("watermark", "a", 3),
     ("insert", "a", [(2, 1, 3), (5, 2, 0)]), ("close", "b", None), ("insert", "b", [(9, 1, 1)])],
    [("insert", "a", [(3, 1, 1)]), ("insert", "a", [(9, 0, 1)])],
    Ordering.lagging(2),
    [0.6],
    {1},
    f"{OVER['a join of streams']} {SOON[1]}",
)  # fmt: skip
@pytest.mark.usefixtures("interpreted")
def test_live_is_batch_over_the_folder(spark, tmp_path_factory, s, t, ordering, cuts, kills, query):
    folder = tmp_path_factory.mktemp("named")
    streams = {"s": written(folder / "s", ordering, s)}
    if " t " in query:
        streams["t"] = written(folder / "t", ordering, t)
    for stream in streams.values():
        stream.tick()
    given, wanted, told = live_log(spark, folder, streams, cuts, kills, query)
    end = min(stream.position().ptime for stream in streams.values())
    assert told["frontier"] == end
    assert told["rows_in"] == told["rows_used"] + told["rows_buffered"] + told["rows_late"]
    end = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=end)
    assert until(given, end) == until([wanted], end)
