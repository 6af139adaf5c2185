"""Row patterns: the machine against the reference over random patterns and rows, matches so far."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.kernels.random_patterns import (
    ASKED_CONDITIONS,
    CONDITIONS,
    NUMBERED,
    A,
    B,
    C,
    answered,
    answers,
    by_kernel,
    clause_of,
    compare,
    outcome,
    partitions,
    patterns,
    plan_of,
    skips,
    table_of,
    times,
    value,
    without_numbers,
)
from windrow.errors import ExecutionError
from windrow.kernels.patterns import execution
from windrow.kernels.patterns.at_once import is_simple
from windrow.kernels.patterns.execution import SoFar, find_matches
from windrow.kernels.patterns.match_recognize import match_recognize
from windrow.kernels.patterns.pattern_plan import (
    Answers,
    Duration,
    PatternCondition,
    PatternFrame,
)
from windrow.kernels.patterns.tree import Choice, Repeat, Sequence
from windrow.kernels.reference.match_recognize import Frame as ReferenceFrame
from windrow.kernels.reference.match_recognize import match_recognize as by_reference
from windrow.kernels.window_plan import Number, Operation


@settings(max_examples=400, deadline=None)
@given(
    patterns,
    st.dictionaries(
        st.integers(0, 2), st.sampled_from(sorted(CONDITIONS | ASKED_CONDITIONS | NUMBERED)), max_size=3
    ),
    partitions,
    skips,
    st.sampled_from(["one", "all", "omit", "unmatched"]),
)
@example(Repeat(Choice((Sequence(()), A)), 0, 1), {}, [[1, 2]], ("past last", set()), "all")
@example(
    Sequence((Repeat(Repeat(A, 1, None), 1, None), B)), {1: "falls"}, [[1, 1, 2, 0]], ("next", set()), "all"
)
def test_the_machine_gives_the_rows_of_the_reference(tree, conditions, rows, skip, shown):
    options = {
        "all_rows": shown != "one",
        "shows_empty": shown != "omit",
        "with_unmatched": shown == "unmatched",
    }
    table, bounds = table_of(rows)
    plan = plan_of(tree, conditions, skip, **options)
    named = [{"p": number, "x": value} for number, partition in enumerate(rows) for value in partition]
    clause = clause_of(tree, conditions, skip, **options)
    expected = outcome(lambda: answers(by_reference(named, clause)))
    assert outcome(lambda: by_kernel(plan, table, bounds)) == expected
    assert outcome(lambda: by_kernel(replace(plan, tree=tree), table, bounds)) == expected


@settings(max_examples=200, deadline=None)
@given(
    patterns,
    st.dictionaries(
        st.integers(0, 2),
        st.sampled_from(sorted([*ASKED_CONDITIONS, *ASKED_CONDITIONS, *CONDITIONS])),
        min_size=1,
    ),
    partitions,
    skips,
    st.sampled_from([0, 3, 1000]),
    st.booleans(),
)
@example(
    Sequence((A, Repeat(B, 1, None))),
    {1: "no variable of a number, by Spark"},
    [[1, 2, 3, 0]],
    ("next", set()),
    1,
    True,
)
def test_all_that_the_machine_asks_of_spark_is_asked_for_before(tree, conditions, rows, skip, most, every):
    assume(not ASKED_CONDITIONS.keys().isdisjoint(conditions.values()))
    table, bounds = table_of(rows)
    plan = plan_of(tree, conditions, skip)
    if every:
        plan = replace(without_numbers(plan), every=True)
    expected = outcome(lambda: by_kernel(plan, table, bounds))
    told = answered(plan, lambda asking: match_recognize(asking, table, bounds), most)
    assert outcome(lambda: by_kernel(told, table, bounds)) == expected


def test_an_answer_that_is_not_known_says_that_rows_have_changed():
    table, bounds = table_of([[1, 2]])
    plan = replace(plan_of(Sequence((A, B)), {1: "above the last A, by Spark"}), answers=Answers(()))
    assert outcome(lambda: by_kernel(plan, table, bounds)) == ["ROWS_CHANGED"]


areas = st.one_of(
    st.sampled_from(["every", "in time", "every in time"]),
    st.builds(PatternFrame, st.sampled_from([0, 1, 2, None]), st.booleans()),
)


@settings(max_examples=400, deadline=None)
@given(
    patterns,
    st.dictionaries(st.integers(0, 2), st.sampled_from(sorted(CONDITIONS | ASKED_CONDITIONS)), max_size=3),
    partitions,
    skips,
    st.sampled_from(["one", "all", "omit", "unmatched"]),
    areas,
)
@example(Repeat(Choice((A, B)), 1, None), {}, [[1, 2]], ("past last", set()), "one", "every")
@example(
    Sequence((Repeat(A, 0, None), Repeat(A, 0, None))), {}, [[1, 2]], ("past last", set()), "all", "every"
)
@example(
    Repeat(A, 1, None), {0: "falls"}, [[2, 1, 0]], ("past last", set()), "one", PatternFrame(None, seek=True)
)
def test_all_matches_durations_and_frames_give_the_rows_of_the_reference(
    tree, conditions, rows, skip, shown, area
):
    """Frames have no match numbers, which are left out."""
    framed = isinstance(area, PatternFrame)
    options = {
        "all_rows": shown != "one" and not framed,
        "shows_empty": shown != "omit",
        "with_unmatched": shown == "unmatched",
    }
    table, bounds = table_of(rows)
    plan = replace(
        plan_of(tree, conditions, skip, **options),
        every="every" in area if not framed else False,
        duration=None if framed or "in time" not in area else Duration("t", "due"),
        frame=area if framed else None,
    )
    clause = replace(
        clause_of(tree, conditions, skip, **options),
        every=plan.every,
        in_time=plan.duration and (lambda first, row: row["t"] < first["t"] + 3),
        frame=ReferenceFrame(area.following, area.seek) if framed else None,
    )
    named = [
        {"p": number, "x": value, "t": time}
        for number, partition in enumerate(rows)
        for value, time in zip(partition, times(partition), strict=True)
    ]

    def numbered(found: list[tuple]) -> list[tuple]:
        return [(*row[:4], *row[5:]) for row in found] if framed else found

    assert outcome(lambda: numbered(by_kernel(plan, table, bounds))) == outcome(
        lambda: numbered(answers(by_reference(named, clause)))
    )


@settings(max_examples=400, deadline=None)
@given(
    patterns,
    st.dictionaries(
        st.integers(0, 2), st.sampled_from(["low", "not low", "falls", "below the next"]), max_size=3
    ),
    partitions,
    st.sampled_from(["past last", "next"]),
)
@example(Repeat(Repeat(A, 0, None), 1, None), {0: "falls"}, [[1, 0], [0, 0]], "past last")
@example(Sequence((Repeat(Sequence((A, B)), 0, 2), C)), {}, [[1, 0, 0, 1, 2, 2]], "next")
def test_simple_patterns_are_found_at_all_rows_at_once_as_by_the_machine(tree, conditions, rows, skip):
    table, bounds = table_of(rows)
    plan = plan_of(tree, conditions, (skip, set()))
    machine = find_matches(plan, table, bounds)
    at_once = find_matches(replace(plan, tree=tree), table, bounds)
    for name in ("partition", "start", "length", "labels", "excluded", "low", "high"):
        np.testing.assert_array_equal(getattr(machine, name), getattr(at_once, name))


@settings(max_examples=400, deadline=None)
@given(
    patterns,
    st.dictionaries(st.integers(0, 2), st.sampled_from(["low", "not low", "falls"]), max_size=3),
    partitions,
    st.sampled_from(["past last", "next"]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=2),
    st.booleans(),
)
@example(Sequence((Repeat(A, 1, None, False), B)), {}, [[1, 2, 0]], "past last", [(0, 0), (0, 0)], False)
@example(Choice((Sequence((A, B, C)), A)), {}, [[1, 2, 0]], "next", [(0, 0), (0, 0)], False)
def test_so_far_they_are_found_at_all_rows_at_once_too(tree, conditions, rows, skip, edges, complete):
    assume(is_simple(tree))
    table, bounds = table_of(rows)
    edges = [(min(begin, len(part)), after) for (begin, after), part in zip(edges, rows, strict=False)]
    begin = np.array([first + edge[0] for first, edge in zip(bounds, edges, strict=False)])
    limit = np.array(
        [max(end - edge[1], low) for end, edge, low in zip(bounds[1:], edges, begin, strict=True)]
    )
    so_far = replace(
        SoFar.whole(bounds), begin=begin, limit=bounds[1:] if complete else limit,
        complete=np.full(len(rows), complete),
    )  # fmt: skip
    plan = plan_of(tree, conditions, (skip, set()))
    machine = find_matches(plan, table, bounds, so_far)
    at_once = find_matches(replace(plan, tree=tree), table, bounds, so_far)
    for name in ("partition", "start", "length", "labels", "excluded", "undecided_from"):
        np.testing.assert_array_equal(getattr(machine, name), getattr(at_once, name))


@pytest.mark.parametrize(
    ("tree", "simple"),
    [
        (Sequence((A, Repeat(B, 1, None), Repeat(C, 1, None))), True),
        (Sequence((Choice((Repeat(A, 1, None), Repeat(B, 0, None))), C)), True),
        (Sequence((Repeat(Repeat(A, 1, None), 1, None), B)), True),
        (Repeat(Sequence((A, B)), 2, 4), True),
        (Repeat(Sequence((A, B)), 1, None), False),
        (Repeat(Choice((A, B)), 0, None), False),
        (Repeat(Repeat(A, 0, 1), 0, 3), False),
    ],
)
def test_patterns_in_which_groups_repeat_without_bound_are_not_simple(tree, simple):
    assert is_simple(tree) is simple


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    patterns, st.dictionaries(st.integers(0, 2), st.sampled_from(sorted(CONDITIONS)), max_size=3), partitions
)
def test_the_compiled_machine_is_the_one_in_python(tree, conditions, rows):
    table, bounds = table_of(rows * 50)
    bounds = table_of(rows * 50)[1]
    plan = plan_of(tree, conditions)
    slow = find_matches(plan, table, bounds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "_PATIENCE", 10)
        impatient = find_matches(plan, table, bounds)
        patch.setattr(execution, "_WORTH_COMPILING", 0)
        fast = find_matches(plan, table, bounds)
    for name in ("partition", "start", "length", "origin", "labels", "excluded"):
        np.testing.assert_array_equal(getattr(slow, name), getattr(fast, name))
        np.testing.assert_array_equal(getattr(slow, name), getattr(impatient, name))


@settings(max_examples=300, deadline=None)
@given(
    patterns,
    st.dictionaries(st.integers(0, 2), st.sampled_from(["low", "not low", "above the last A"]), max_size=3),
    st.lists(st.integers(0, 3), min_size=2, max_size=7),
    st.data(),
)
def test_matches_that_are_final_stay_as_more_rows_come(tree, conditions, rows, data):
    """Rows before `kept` may be forgotten: from there on the search finds what it would have found."""
    cut = data.draw(st.integers(1, len(rows) - 1))
    plan = plan_of(tree, conditions)
    table, bounds = table_of([rows])
    whole = find_matches(plan, table, bounds)
    so_far = SoFar.whole(np.array([0, cut]))
    early = find_matches(
        plan, table.slice(0, cut), np.array([0, cut]), replace(so_far, complete=np.array([False]))
    )
    late = find_matches(plan, table, bounds, replace(SoFar.whole(bounds), begin=early.undecided_from))
    starts, lengths = [*early.start, *late.start], [*early.length, *late.length]
    assert (starts, lengths) == (list(whole.start), list(whole.length))
    assert [*early.labels, *late.labels] == list(whole.labels)


@settings(max_examples=300, deadline=None)
@given(
    patterns,
    st.dictionaries(st.integers(0, 2), st.sampled_from(["low", "not low", "above the last A"]), max_size=3),
    st.lists(st.integers(0, 3), min_size=2, max_size=7),
    st.data(),
)
def test_all_matches_leave_as_they_are_complete_and_durations_as_the_bound_passes_them(
    tree, conditions, rows, data
):
    if "Edge" in repr(tree):
        return  # the edges of the partition are not those of the rows at hand
    cut = data.draw(st.integers(1, len(rows) - 1))
    table, bounds = table_of([rows])
    some, more = np.array([0, cut]), np.array([False])

    def words(found, shift=0):
        ends = np.cumsum(found.length)
        return [
            (int(start) + shift, *found.labels[end - length : end])
            for start, length, end in zip(found.start, found.length, ends, strict=True)
        ]

    plan = replace(plan_of(tree, conditions), every=True)
    whole = words(find_matches(plan, table, bounds))
    early = find_matches(plan, table.slice(0, cut), some, replace(SoFar.whole(some), complete=more))
    kept = int(early.undecided_from[0])
    assert sorted(words(early)) == sorted(
        word for word in whole if word[0] + len(word) - 1 <= cut and word[0] < cut
    )
    rest = np.array([0, len(rows) - kept])
    so_far = replace(SoFar.whole(rest), since=np.array([cut - kept]))
    late = find_matches(plan, table.slice(kept), rest, so_far)
    assert words(early) + words(late, kept) == whole

    plan = replace(plan_of(tree, conditions), duration=Duration("t", "due"))
    bound = data.draw(st.sampled_from([None, *range(times(rows)[cut - 1], times(rows)[cut] + 1)]))
    so_far = replace(SoFar.whole(some), complete=more, bound=bound)
    early = find_matches(plan, table.slice(0, cut), some, so_far)
    kept = int(early.undecided_from[0])
    late = find_matches(plan, table.slice(kept), np.array([0, len(rows) - kept]))
    assert words(early) + words(late, kept) == words(find_matches(plan, table, bounds))
    if bound is not None:  # a first row whose time is over holds nothing
        assert kept == cut or times(rows)[kept] + 3 > bound


@pytest.fixture
def steps(monkeypatch):
    """An entry for each time that a condition is asked."""
    steps = []
    original = execution._requested

    def counted(parts, rows, patience=None):
        condition = original(parts, rows, patience)

        def count(*arguments):
            steps.append(1)
            return condition(*arguments)

        return count

    monkeypatch.setattr(execution, "_requested", counted)
    return steps


def test_time_is_linear_in_the_rows_for_nested_quantifiers(steps):
    """Each row is tried a bounded number of times: the machine's steps are counted, not the seconds."""
    tree = Sequence((Repeat(Repeat(A, 1, None), 1, None), B))
    # a condition over a register, so that it is asked; it holds for no row of B
    plan = plan_of(tree, {0: "low", 1: "above the row before in the match"})
    for count in (200, 400):
        steps.clear()
        table, bounds = table_of([[1] * count])
        assert len(find_matches(plan, table, bounds).start) == 0
        assert len(steps) <= 2 * count


def test_later_first_rows_are_not_tried_while_an_earlier_one_may_have_a_match(steps):
    tree = Sequence((A, Repeat(B, 0, None, False), C))
    conditions = dict.fromkeys(range(2), "not below the first row") | {2: "above the last A"}
    for count in (200, 400):
        steps.clear()
        table, bounds = table_of([([1] * count + [2]) * 3])
        assert list(find_matches(plan_of(tree, conditions), table, bounds).length) == [count + 1] * 3
        assert len(steps) <= 2 * table.num_rows


@pytest.mark.parametrize(
    ("tree", "skip", "condition", "state"),
    [
        (Choice((Sequence((A, B)), C)), ("first", {1}), "SKIP_TARGET_MISSING", "2202K"),
        (Repeat(B, 0, None), ("last", {1}), "SKIP_TARGET_MISSING", "2202K"),
        (Sequence((A, B)), ("first", {0}), "SKIP_TO_FIRST_ROW", "2202L"),
    ],
)
def test_a_skip_that_leads_nowhere_is_an_error_at_the_variable(tree, skip, condition, state):
    plan = replace(plan_of(tree, {0: "low", 1: "falls"}, skip), sql="SKIP TO B", skip_place=(8, 9))
    with pytest.raises(ExecutionError) as raised:
        find_matches(plan, *table_of([[1, 0, 2, 3]]))
    error = raised.value
    assert (error.condition, error.sqlstate) == (condition, state)
    assert error.getQueryContext()[0].fragment() == "B"


@pytest.mark.parametrize("side", ["row", "r2"])
def test_an_error_in_a_condition_is_located_there(side):
    quotient = Operation("/", (Number(1), value(side)), "float64")
    failing = PatternCondition(1, compare("<", Number(0), quotient), (2, 7))
    plan = replace(plan_of(Sequence((A, B)), {}), conditions=(failing,), sql="B AS 1 / x")
    with pytest.raises(ExecutionError) as raised:
        find_matches(plan, *table_of([[0, 0]]))
    error = raised.value
    assert (error.condition, error.getQueryContext()[0].fragment()) == ("DIVIDE_BY_ZERO", "AS 1 ")


def test_a_condition_guards_the_next_one_on_the_same_row():
    quotient = compare("<", Number(0), Operation("/", (Number(1), value()), "float64"))
    guarded = PatternCondition(1, compare("AND", compare("<>", value(), Number(0)), quotient))
    plan = replace(plan_of(Sequence((A, B)), {}), conditions=(guarded,))
    assert list(find_matches(plan, *table_of([[0, 0, 1]])).start) == [1]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("low", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_what_seek_finds_or_not_from_a_row_is_not_searched_again_from_the_next(low):
    table = pa.table({"x": [3] * 20_000 + [low, 1]})
    plan = replace(
        plan_of(Sequence((A, B)), {0: "low", 1: "above the last A"}, ("next", set())),
        frame=PatternFrame(None, seek=True),
    )
    found = find_matches(plan, table, np.array([0, table.num_rows]))
    assert len(found.start) == (0 if low == 3 else 20_001)
    assert set(found.start.tolist()) <= {20_000}
    assert found.origin.tolist() == list(range(len(found.start)))
    assert found.labels.tolist() == [0, 1] * len(found.start)
