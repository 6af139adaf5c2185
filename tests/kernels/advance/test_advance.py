"""Sequences that grow: rows taken step by step give what the whole sequence gives, each row once."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.in_memory import Table, planned, unsliced
from tests.kernels.in_memory import given as rows_emitted
from tests.kernels.in_steps import (
    ANSWERS,
    DEFINED,
    FAILURES,
    LABELS,
    NOTHING_KNOWN,
    PLACE,
    asked_elsewhere,
    frontiers,
    growing_of,
    in_micro_batches,
    limited,
    micro_batches_of,
    timely,
)
from tests.kernels.random_patterns import (
    ASKED_CONDITIONS,
    CONDITIONS,
    NUMBERED,
    A,
    B,
    C,
    outcome,
    partitions,
    patterns,
    plan_of,
    skips,
    table_of,
    without_numbers,
)
from tests.kernels.random_patterns import answered as answered_by_spark
from tests.kernels.windows.test_window_by_property import (
    AGGREGATES,
    NULLS,
    RESULTS,
    SETTINGS,
    TYPES,
    _key,
    clauses,
    tables,
)
from windrow.kernels.advance import Frontier, Growing, advance, retention
from windrow.kernels.advance.advancing import requested_of
from windrow.kernels.patterns.match_recognize import match_recognize
from windrow.kernels.patterns.pattern_plan import (
    STATE,
    Duration,
    MatchNumber,
    MatchPlan,
    PatternFrame,
    asks_spark,
)
from windrow.kernels.patterns.tree import Edge, Repeat, Sequence, Tree
from windrow.kernels.sorting import SortKey


def windows_agree_in_steps(
    clause: str, table: Table, data: st.DataObject, elsewhere: set[str] | None = None
) -> None:
    clause = re.sub(r"ORDER BY o( DESC)?( NULLS (FIRST|LAST))?", "ORDER BY m, o", clause)
    # what the result reads is known without what the conditions read
    variables = "*, " if elsewhere is None else ""
    sql = f"SELECT {variables}{AGGREGATES} FROM t WINDOW BY w AS {clause}"
    types = {f"__aggregate{number}": kind for number, kind in enumerate(RESULTS)}
    plan, rows = planned(sql, table, types)
    growing, placed = growing_of(plan if elsewhere is None else asked_elsewhere(plan, elsewhere), rows)
    growing = growing if elsewhere is None else replace(growing, passing=(LABELS, *ANSWERS.values()))
    step_of = data.draw(micro_batches_of(rows))
    shuffled = np.array(data.draw(st.permutations(range(rows.num_rows))), np.int64)
    known = frontiers(sql, table, rows, step_of, data.draw(st.integers(0, 1)))
    found = in_micro_batches(growing, placed, step_of, shuffled, known, None if elsewhere is None else plan)
    assert sorted(_key(row) for batch in found for row in rows_emitted(batch)) == sorted(
        map(_key, unsliced(plan, rows))
    ), sql


@settings(SETTINGS, max_examples=40)
@given(clause=clauses(), table=tables(), data=st.data())
def test_windows_in_steps_are_those_of_the_whole(clause: str, table: Table, data: st.DataObject) -> None:
    windows_agree_in_steps(clause, table, data)


@settings(SETTINGS, max_examples=60)
@given(clause=timely(), table=tables(), data=st.data())
def test_windows_by_time_in_steps_are_those_of_the_whole(
    clause: str, table: Table, data: st.DataObject
) -> None:
    windows_agree_in_steps(clause, table, data)


SIDES = st.sets(st.sampled_from(["window", "start", "end"]), min_size=1)


@settings(SETTINGS, max_examples=60)
@given(clause=clauses() | timely(), table=tables(), data=st.data(), sides=SIDES)
def test_windows_of_which_some_conditions_are_evaluated_elsewhere(
    clause: str, table: Table, data: st.DataObject, sides: set[str]
) -> None:
    windows_agree_in_steps(clause, table, data, sides)


@pytest.mark.slow
@settings(SETTINGS, max_examples=250)
@given(clause=clauses() | timely(), table=tables(), data=st.data(), sides=SIDES)
def test_windows_of_which_some_conditions_are_evaluated_elsewhere_at_length(
    clause: str, table: Table, data: st.DataObject, sides: set[str]
) -> None:
    windows_agree_in_steps(clause, table, data, sides)


@pytest.mark.slow
@settings(SETTINGS, max_examples=250)
@given(clause=clauses() | timely(), table=tables(), data=st.data())
def test_windows_in_steps_are_those_of_the_whole_at_length(
    clause: str, table: Table, data: st.DataObject
) -> None:
    windows_agree_in_steps(clause, table, data)


def matches_agree_in_steps(
    tree: Tree,
    conditions: dict[int, str],
    rows: list[list[int | None]],
    skip: tuple[str, set[int]],
    shown: str,
    within: int | str | None,
    data: st.DataObject,
    duration: int | str | None = None,
    *,
    every: bool = False,
    frame: PatternFrame | None = None,
) -> None:
    plan = limited(
        plan_of(
            tree, conditions, skip,
            all_rows=shown != "one", shows_empty=shown != "omit", with_unmatched=shown == "unmatched",
        ),
        within,
    )  # fmt: skip
    if duration is not None:
        plan = replace(plan, duration=Duration("t", "due"))
    if every:
        plan = replace(plan, every=True, skip="past last", targets=frozenset())
    if frame is not None:
        plan = replace(without_numbers(plan), frame=frame)
    table, bounds = table_of(rows)
    table = table.select(["x", "one", "none"])
    counts = np.diff(bounds)
    table = table.append_column("p", pa.array(np.repeat(np.arange(len(rows)), counts)))
    # times rise from row to row and from step to step, and leave gaps in between
    gaps = st.lists(st.integers(0, 3), min_size=table.num_rows, max_size=table.num_rows)
    time = np.cumsum(data.draw(gaps))
    time = time - np.repeat(time[bounds[:-1]], counts)
    lasts = table.column("x") if duration == "x" else duration or 0
    table = table.append_column("t", pa.array(time)).append_column("due", pc.add(pa.array(time), lasts))
    frontiers = sorted(data.draw(st.lists(st.integers(0, 20), max_size=4)))

    def by_whole(first: int = 0, last: int = len(rows)) -> list[str]:
        low, high = bounds[first], bounds[last]
        batches = match_recognize(plan, table.slice(low, high - low), bounds[first : last + 1] - low)
        return sorted(str(row) for batch in batches for row in batch.to_pylist())

    def by_steps() -> list[str]:
        growing, kept, found = (
            Growing(plan, ("p",), (SortKey("t"), SortKey(PLACE)), ("x", "t", "due", "one", "none")),
            None,
            [],
        )
        place = np.arange(table.num_rows)
        placed = table.append_column(PLACE, pa.array(place))
        shuffled = placed.take(pa.array(data.draw(st.permutations(range(table.num_rows)))))
        edges = [-1, *frontiers, None]
        for low, until in pairwise(edges):
            times = shuffled.column("t").to_numpy()
            is_new = (times >= low) & (times < (until if until is not None else np.inf))
            frontier = None if until is None else Frontier(pa.table({"t": [until]}))
            rows_of_step, step = shuffled.filter(pa.array(is_new)), growing
            if asks_spark(plan):
                asking = partial(requested_in_step, growing, kept, rows_of_step, frontier)
                step = replace(growing, plan=answered_by_spark(plan, asking))
            batches, kept = advance(step, kept, rows_of_step, frontier)
            found += [str(row) for batch in batches for row in batch.to_pylist()]
        return sorted(found)

    whole = outcome(by_whole)
    allowed = [whole]
    if whole in FAILURES:  # of several partitions that fail, any may be the first
        parts = [outcome(partial(by_whole, part, part + 1)) for part in range(len(rows))]
        allowed += [part for part in parts if part in FAILURES]
    assert outcome(by_steps) in allowed


def requested_in_step(
    growing: Growing, kept: pa.Table | None, new_rows: pa.Table, frontier: Frontier | None, asking: MatchPlan
) -> list[pa.RecordBatch]:
    """What a step asks Spark for."""
    return requested_of(replace(growing, plan=asking), kept, new_rows, frontier)


limits = st.none() | st.integers(0, 4) | st.just("x")
MATCHES = given(
    patterns,
    DEFINED,
    partitions,
    skips,
    st.sampled_from(["one", "all", "omit", "unmatched"]),
    limits,
    st.data(),
)


@settings(SETTINGS, max_examples=150)
@MATCHES
def test_matches_in_steps_are_those_of_the_whole(tree, conditions, rows, skip, shown, within, data):
    matches_agree_in_steps(tree, conditions, rows, skip, shown, within, data)


@pytest.mark.slow
@settings(SETTINGS, max_examples=500)
@MATCHES
def test_matches_in_steps_are_those_of_the_whole_at_length(tree, conditions, rows, skip, shown, within, data):
    matches_agree_in_steps(tree, conditions, rows, skip, shown, within, data)


@settings(SETTINGS, max_examples=150)
@MATCHES
def test_durations_in_steps_are_those_of_the_whole(tree, conditions, rows, skip, shown, within, data):
    duration = within if isinstance(within, str) else 1 + (within or 0)
    matches_agree_in_steps(tree, conditions, rows, skip, shown, None, data, duration=duration)


ASKED = st.dictionaries(
    st.integers(0, 2),
    st.sampled_from(sorted([*ASKED_CONDITIONS, *ASKED_CONDITIONS, *CONDITIONS, *NUMBERED])),
    min_size=1,
)


def asked_in_steps(
    tree: Tree,
    conditions: dict[int, str],
    rows: list[list[int | None]],
    skip: tuple[str, set[int]],
    shown: str,
    within: int | str | None,
    area: str | PatternFrame,
    data: st.DataObject,
) -> None:
    if ASKED_CONDITIONS.keys().isdisjoint(conditions.values()):
        return
    if area != "one" and not NUMBERED.keys().isdisjoint(conditions.values()):
        return  # neither all matches nor windows have numbers in their conditions
    if isinstance(area, PatternFrame):
        rows_of_frames_agree_in_steps(tree, conditions, rows, skip, area, within, data)
    else:
        matches_agree_in_steps(tree, conditions, rows, skip, shown, within, data, every=area == "every")


def lasting(tree: Tree) -> MatchPlan:
    """Matches of a time until what is due, of which only `x` is given."""
    plan = replace(plan_of(tree, {0: "low"}), duration=Duration("t", "due"))
    return replace(plan, measures=(), result=pa.schema([plan.result.field(name) for name in ("x", STATE)]))


@settings(SETTINGS, max_examples=150)
@MATCHES
def test_all_matches_in_steps_are_those_of_the_whole(tree, conditions, rows, skip, shown, within, data):
    matches_agree_in_steps(tree, conditions, rows, skip, shown, within, data, every=True)


frames = st.builds(PatternFrame, st.sampled_from([0, 1, 2, None]), st.booleans())


def rows_of_frames_agree_in_steps(tree, conditions, rows, skip, frame, within, data):
    if "Edge" in repr(tree):
        return  # windows with patterns have none
    matches_agree_in_steps(tree, conditions, rows, skip, "one", within, data, frame=frame)


@settings(SETTINGS, max_examples=200)
@given(patterns, DEFINED, partitions, skips, frames, limits, st.data())
def test_rows_of_frames_in_steps_are_those_of_the_whole(tree, conditions, rows, skip, frame, within, data):
    rows_of_frames_agree_in_steps(tree, conditions, rows, skip, frame, within, data)


@pytest.mark.slow
@settings(SETTINGS, max_examples=1000)
@given(patterns, DEFINED, partitions, skips, frames, limits, st.data())
def test_rows_of_frames_in_steps_at_length(tree, conditions, rows, skip, frame, within, data):
    rows_of_frames_agree_in_steps(tree, conditions, rows, skip, frame, within, data)


IN_STEPS = given(
    patterns,
    ASKED,
    partitions,
    skips,
    st.sampled_from(["one", "all", "omit", "unmatched"]),
    limits,
    st.sampled_from(["one", "one", "every"]) | frames,
    st.data(),
)


@settings(SETTINGS, max_examples=200)
@IN_STEPS
def test_what_spark_is_asked_for_in_steps_is_all_that_they_ask(
    tree, conditions, rows, skip, shown, within, area, data
):
    asked_in_steps(tree, conditions, rows, skip, shown, within, area, data)


@pytest.mark.slow
@settings(SETTINGS, max_examples=1000)
@IN_STEPS
def test_what_spark_is_asked_for_in_steps_is_all_that_they_ask_at_length(
    tree, conditions, rows, skip, shown, within, area, data
):
    asked_in_steps(tree, conditions, rows, skip, shown, within, area, data)


def durations_in_steps(tree: Tree) -> list[list[int]]:
    """The first rows of matches of five from their first one on that each step gives."""
    growing, kept, found = Growing(lasting(tree), (), (SortKey("t"),), ("x", "t", "due")), None, []
    for arrived, until in [([(0, 1), (2, 3)], 4), ([], 6), ([(3, 6), (1, 9)], 10), ([], 14), ([], None)]:
        rows = pa.table([pa.array([row[at] for row in arrived], pa.int64()) for at in (0, 1)], ["x", "t"])
        rows = rows.append_column("due", pc.add(rows.column("t"), 5))
        frontier = None if until is None else Frontier(pa.table({"t": [until]}))
        batches, kept = advance(growing, kept, rows, frontier)
        found.append([row["x"] for batch in batches for row in batch.to_pylist()])
    return found


def test_a_duration_is_over_as_the_frontier_passes_it():
    tree = Sequence((A, Repeat(B, 0, None)))
    # five from 1 are over at 6, five from 9 at 14: no row says so
    assert durations_in_steps(tree) == [[], [0], [], [1], []]
    # that no row follows is known when the stream is closed
    assert durations_in_steps(Sequence((tree, Edge(is_start=False)))) == [[], [], [], [], [1]]
    told = retention(lasting(tree), Frontier(pa.table({"t": [0]})))
    assert told == ("when its time is over by the bound", "rows from the first one on whose time is not over")


def frames_in_steps(frame: PatternFrame) -> list[tuple[list[tuple[int, int]], int]]:
    """The rows and states that each of three rows makes known, and how many rows are kept."""
    plan = replace(plan_of(A, {0: "low"}), frame=frame, measures=())
    plan = replace(plan, result=pa.schema([plan.result.field(name) for name in ("x", STATE)]))
    growing, kept, found = Growing(plan, (), (SortKey("t"),), ("x", "t")), None, []
    for time, value in enumerate([3, 3, 0]):
        rows = pa.table({"x": [value], "t": [time]})
        batches, kept = advance(growing, kept, rows, Frontier(pa.table({"t": [time + 1]})))
        given = [(row["x"], row[STATE]) for batch in batches for row in batch.to_pylist()]
        found.append((given, kept.num_rows))
    return found


def test_a_row_of_a_window_is_given_when_its_match_is_known():
    match, none = 0, 2
    # without SEEK the row itself tells; the third one alone matches
    assert frames_in_steps(PatternFrame(None, seek=False)) == [
        ([(3, none)], 0),
        ([(3, none)], 0),
        ([(0, match)], 0),
    ]
    # what the first one finds skips the others
    sought = [(3, match), (3, none), (0, none)]
    assert frames_in_steps(PatternFrame(None, seek=True)) == [([], 1), ([], 2), (sought, 0)]
    # the frame of the first one ends before
    ended = [([], 1), ([(3, none)], 1), ([(3, match), (0, none)], 0)]
    assert frames_in_steps(PatternFrame(1, seek=True)) == ended


# -- when it is given, and what is kept --------------------------------------------------------------


def by_steps(clause: str, steps: list[tuple[list[int], int | None]]) -> list[tuple[list[Any], int]]:
    """Of each step the values of m in each window that it gives, and how many rows it keeps.

    A step has the values of m that come, and the frontier.
    """
    every = [value for arrived, _ in steps for value in arrived]
    rows = [NULLS | {"o": number, "m": value, "a": value % 3} for number, value in enumerate(every)]
    table = Table(TYPES, rows)
    sql = f"SELECT COLLECT_LIST(w.m) AS ms FROM t WINDOW BY w AS (TYPE {clause})"
    plan, whole = planned(sql, table, {"__aggregate0": pa.list_(pa.int32())})
    growing, placed = growing_of(plan, whole)
    kept, found, at = None, [], 0
    for arrived, until in steps:
        known = frontiers(sql, table, whole, np.zeros(len(every)), 0)(0)
        if until is None or known is NOTHING_KNOWN:
            frontier = None if until is None else known
        else:
            values = known.values.to_pydict()
            values |= {name: [until] for name in values if name not in known.fixed}
            frontier = Frontier(pa.table(values, known.values.schema), known.fixed)
        batches, kept = advance(growing, kept, placed.slice(at, len(arrived)), frontier)
        at += len(arrived)
        found.append(([row["__aggregate0"] for batch in batches for row in batch.to_pylist()], kept.num_rows))
    return found


@pytest.mark.parametrize(
    ("clause", "steps", "expected"),
    [
        # a session: its gap has passed when the frontier says so, and not before
        (
            "TUMBLING ORDER BY o START AS s END AS e NEXT AS en WHEN en IS NULL OR en.m - e.m > 2",
            [([1, 3], 4), ([], 5), ([], 6), ([], 9), ([9], 10), ([], None)],
            [([], 2), ([], 2), ([[1, 3]], 0), ([], 0), ([], 1), ([[9]], 0)],
        ),
        # the same without an end where no row follows: only a row, or the end, can tell
        (
            "TUMBLING ORDER BY o START AS s ONLY END AS e NEXT AS en WHEN en.m - e.m > 2",
            [([1, 3], 4), ([], 9), ([9], 10), ([], None)],
            [([], 2), ([], 2), ([[1, 3]], 1), ([], 0)],
        ),
        # a fixed number of rows
        (
            "SLIDING ORDER BY o START AS s AT sa ONLY END AS e AT ea WHEN ea = sa + 1",
            [([1], 2), ([2, 3], 4), ([4], 5), ([], None)],
            [([], 1), ([[1, 2], [2, 3]], 2), ([[3, 4]], 2), ([], 0)],
        ),
        # one window does not wait for another
        (
            "SLIDING ORDER BY o START AS s WHEN s.a < 2 ONLY END AS e WHEN e.a > s.a",
            [([4, 3], 4), ([4], 5), ([5], 6), ([], None)],
            [([], 2), ([[3, 4]], 3), ([[4, 3, 4, 5], [4, 5]], 0), ([], 0)],
        ),
        # the last two days before each row: older rows are let go
        (
            "SLIDING ORDER BY o LABEL AS l START AS s WHEN l.m - s.m <= 2 END AS e WHEN e = l",
            [([1, 2, 3], 4), ([4], 5), ([], 9), ([9], 10), ([], None)],
            [([[1], [1, 2], [1, 2, 3]], 2), ([[2, 3, 4]], 2), ([], 0), ([[9]], 1), ([], 0)],
        ),
        # of these, those that do not overlap: the first is known at once, as rows to come begin later
        (
            "TUMBLING ORDER BY o LABEL AS l START AS s WHEN l.m - s.m <= 2 END AS e WHEN e = l",
            [([1, 2, 3], 4), ([4], 5), ([5], 6), ([], 9), ([9], 10), ([], None)],
            [([[1]], 2), ([[2, 3, 4]], 2), ([], 2), ([], 0), ([[9]], 1), ([], 0)],
        ),
        # of so many rows, those before
        (
            "SLIDING ORDER BY o LABEL AS l AT la START AS s AT sa WHEN sa >= la - 1 END AS e WHEN e = l",
            [([1, 2, 3], 4), ([9], 10), ([], None)],
            [([[1], [1, 2], [2, 3]], 2), ([[3, 9]], 2), ([], 0)],
        ),
        # nothing is final before the end
        (
            "SLIDING ORDER BY o START AS s WHEN s.a = 1 END UNBOUNDED",
            [([1, 2], 3), ([3], 4), ([], None)],
            [([], 2), ([], 3), ([[1, 2, 3]], 0)],
        ),
        # one window from the first row on; what has had its window keeps a row, to know that it has begun
        (
            "SLIDING ORDER BY o START UNBOUNDED END AS e WHEN e.a = 2",
            [([1], 2), ([2], 3), ([3, 5], 6), ([], None)],
            [([], 1), ([[1, 2]], 1), ([], 1), ([], 0)],
        ),
    ],
)  # fmt: skip
def test_a_window_is_given_when_it_is_final(clause, steps, expected):
    assert by_steps(clause, steps) == expected


def test_a_match_is_given_when_it_is_final():
    def run(tree: Tree, conditions: dict[int, str], within: int | str | None, steps: list[Any]) -> list[Any]:
        plan = limited(plan_of(tree, conditions), within)
        number = plan.measures[-1]
        assert isinstance(number, MatchNumber)
        fields = [plan.result.field(name) for name in ("x", number.name, STATE)]
        plan = replace(plan, measures=(number,), result=pa.schema(fields))
        growing, kept, found = Growing(plan, (), (SortKey("t"),), ("x", "t")), None, []
        for arrived, until in steps:
            rows = pa.table([pa.array([row[at] for row in arrived], pa.int64()) for at in (0, 1)], ["x", "t"])
            frontier = None if until is None else Frontier(pa.table({"t": [until]}))
            batches, kept = advance(growing, kept, rows, frontier)
            found.append(([row["x"] for batch in batches for row in batch.to_pylist()], kept.num_rows))
        return found

    runs = Sequence((Repeat(A, 1, None), B))
    # the row that B took may be one of a longer run of A; one row is kept for the number of the match
    steps = [([(0, 1), (1, 2)], 3), ([], 4), ([], 5), ([(5, 9)], 10), ([], None)]
    assert run(runs, {0: "low"}, None, steps) == [([], 2), ([], 2), ([], 2), ([0], 1), ([], 0)]
    # all within 3 of the first: from 5 on no row can be
    assert run(runs, {0: "low"}, 3, steps) == [([], 2), ([], 2), ([0], 1), ([], 1), ([], 0)]
    # within as much of a row as its value: what begins at 0 is known at 4, what begins at 3 at 7
    steps = [([(3, 0), (1, 2)], 3), ([(3, 3), (1, 4)], 4), ([], 6), ([], 7), ([(2, 9)], 12), ([], None)]
    found = run(Sequence((A, B, Repeat(C, 0, 1))), {2: "falls"}, "x", steps)
    assert found == [([], 2), ([3], 3), ([], 3), ([3], 1), ([], 1), ([], 0)]
