"""Matches of a partition that is cut into slices are those of the whole."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.kernels.in_stages import exchanged, run
from tests.kernels.in_steps import limited
from tests.kernels.random_patterns import (
    CONDITIONS,
    A,
    B,
    C,
    outcome,
    patterns,
    plan_of,
    skips,
    table_of,
    without_numbers,
)
from windrow.kernels.advance import slices
from windrow.kernels.advance.slices import is_followed
from windrow.kernels.hashing import hashes
from windrow.kernels.packing.messages import MessageKind
from windrow.kernels.packing.shards import Layout, SlicedPartition
from windrow.kernels.patterns.match_recognize import match_recognize
from windrow.kernels.patterns.pattern_plan import STATE, Duration, PatternFrame, Register
from windrow.kernels.patterns.pattern_slices import matches_alone, matches_halo
from windrow.kernels.patterns.tree import Choice, Edge, Label, Repeat, Sequence, longest
from windrow.kernels.sorting import SortKey
from windrow.kernels.tasks.fragment import Fragment


def plan_without_numbers(tree, conditions, skip, options, *, every):
    return replace(without_numbers(plan_of(tree, conditions, skip, **options)), tree=tree, every=every)


def in_slices(plan, table, cuts):
    """What the slices give, each of its rows and as many around them as it is dealt."""
    halo = matches_halo(plan)
    assert halo is not None
    edges = [0, *sorted(cuts), table.num_rows]
    rows = []
    for begin, end in pairwise(edges):
        first, last = max(begin - halo.before, 0), min(end + halo.after, table.num_rows)
        around = table.slice(first, last - first)
        for batch in matches_alone(plan, around, begin - first, end - begin):
            rows += batch.to_pylist()
    return rows


@settings(max_examples=600)
@given(
    patterns,
    st.dictionaries(st.integers(0, 2), st.sampled_from(sorted(CONDITIONS)), max_size=3),
    st.lists(st.one_of(st.integers(0, 3), st.none()), min_size=1, max_size=14),
    st.sets(st.integers(1, 13), max_size=3),
    st.sampled_from(["one", "all", "unmatched"]),
    st.booleans(),
)
def test_slices_give_the_matches_of_the_whole(tree, conditions, values, cuts, shown, every):
    assume(longest(tree) is not None)
    assume(not (shown == "unmatched" and every))
    options = {"all_rows": shown != "one", "with_unmatched": shown == "unmatched"}
    plan = plan_without_numbers(tree, conditions, ("next", set()), options, every=every)
    table, bounds = table_of([values])
    whole = [row for batch in match_recognize(plan, table, bounds) for row in batch.to_pylist()]
    found = in_slices(plan, table, {cut for cut in cuts if cut < len(values)})
    assert sorted(map(repr, found)) == sorted(map(repr, whole))


@pytest.mark.parametrize(
    ("tree", "length"),
    [
        (Sequence((A, Repeat(Choice((B, Sequence((B, C)))), 1, 3))), 7),
        (Repeat(A, 1, None), None),
        (Repeat(Edge(True), 0, None), 0),
        (Sequence(()), 0),
    ],
)
def test_how_many_rows_a_match_has_at_most(tree, length):
    assert longest(tree) == length


def test_what_depends_on_the_match_before_is_not_cut():
    options = {"all_rows": False}
    short = Sequence((A, Label(1)))
    assert matches_halo(plan_without_numbers(short, {}, ("next", set()), options, every=False)) is not None
    assert matches_halo(plan_without_numbers(short, {}, ("past last", set()), options, every=False)) is None
    assert matches_halo(replace(plan_of(short, {}, ("next", set())), tree=short)) is None
    numbered = plan_without_numbers(short, {}, ("next", set()), options, every=False)
    assert matches_halo(replace(numbered, registers=(Register(None, kind="number"),))) is None


# -- slices of which each goes on where the one before has come to -----------------------------------


def by_steps(fragment, table):
    """What the steps of a stage give, with exchanges in memory."""
    half = table.num_rows // 2
    return map(str, run(fragment, [table.slice(0, half), table.slice(half)]))


def fragment_of(plan, cuts):
    """Partition 0 in slices; the others whole."""
    (long,) = hashes(pa.table({"p": pa.array([0])}), ["p"]).tolist()
    layout = Layout(2, (SlicedPartition(long, tuple(sorted(cuts))),)) if cuts else Layout(1)
    return Fragment(plan, ("p",), (SortKey("at"),), ("x", "t", "due", "one", "none"), frozenset(), layout)


def placed(rows):
    """Rows of partitions, with their places."""
    table, _ = table_of(rows)
    numbers = [(number, at) for number, values in enumerate(rows) for at in range(len(values))]
    for name, values in zip(("p", "at"), zip(*numbers, strict=True), strict=True):
        table = table.append_column(name, pa.array(values, pa.int64()))
    return table


def slices_agree(plan, rows, cuts, guessed, shuffled):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "_GUESSED_FROM", guessed)
        table = placed(rows)
        table = table.take(pa.array(shuffled.draw(st.permutations(range(table.num_rows)))))
        whole = outcome(lambda: by_steps(fragment_of(plan, ()), table))
        sliced = outcome(lambda: by_steps(fragment_of(plan, cuts), table))
    if len(rows) > 1 and all(found and not found[0].startswith("{") for found in (whole, sliced)):
        return  # each partition has an error, and its task tells it
    assert sliced == whole


kinds = st.sampled_from(["one", "all", "omit", "unmatched", "every", "in time", "every in time", "frames"])
FOLLOWED = given(
    patterns,
    st.dictionaries(st.integers(0, 2), st.sampled_from(sorted(CONDITIONS)), max_size=3),
    st.lists(
        st.lists(st.one_of(st.integers(0, 3), st.none()), min_size=1, max_size=14), min_size=1, max_size=2
    ),
    skips,
    kinds,
    st.builds(PatternFrame, st.sampled_from([0, 1, 3, None]), st.booleans()),
    st.sets(st.integers(1, 13), min_size=1, max_size=4),
    st.integers(1, 6),
    st.data(),
)


def followed_slices_agree(tree, conditions, rows, skip, kind, frame, cuts, guessed, data):
    if kind == "frames":
        assume("Edge" not in repr(tree))
        plan = replace(without_numbers(plan_of(tree, conditions, skip)), frame=frame)
    else:
        plan = plan_of(
            tree, conditions, ("past last", set()) if "every" in kind else skip,
            all_rows=kind in ("all", "omit", "unmatched"), shows_empty=kind != "omit",
            with_unmatched=kind == "unmatched",
        )  # fmt: skip
        plan = replace(
            plan, every="every" in kind, duration=Duration("t", "due") if "in time" in kind else None
        )
    slices_agree(plan, rows, cuts, guessed, data)


@settings(max_examples=300)
@FOLLOWED
def test_slices_that_follow_each_other_give_the_matches_of_the_whole(
    tree, conditions, rows, skip, kind, frame, cuts, guessed, data
):
    followed_slices_agree(tree, conditions, rows, skip, kind, frame, cuts, guessed, data)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@FOLLOWED
def test_slices_that_follow_each_other_at_length(
    tree, conditions, rows, skip, kind, frame, cuts, guessed, data
):
    followed_slices_agree(tree, conditions, rows, skip, kind, frame, cuts, guessed, data)


def reached_by(plan, values, cuts, guessed):
    """How many slices are final before rows are gathered, and how many rows the guesses have."""
    fragment = fragment_of(plan, cuts)
    tasks = [placed([values]).to_batches()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "_GUESSED_FROM", guessed)
        tasks = exchanged(fragment, tasks, "pack")
        tasks = exchanged(fragment, tasks, "guess")
        open_rows = [
            pa.ipc.open_stream(batch.column("__chunk")[0].as_buffer()).read_all().num_rows
            for cell, batches in enumerate(tasks)
            for batch in batches
            if batch.column("__kind")[0].as_py() == MessageKind.OPEN
            and batch.column("__number")[0].as_py() == cell
        ]
        tasks = exchanged(fragment, tasks, "follow")
    told = {
        batch.column("__number")[0].as_py(): pickle.loads(batch.column("__chunk")[0].as_py())
        for batch in tasks[2]
        if batch.column("__kind")[0].as_py() == MessageKind.SUMMARY
    }
    return slices.final_slices(told, fragment.layout.slices_of(0)), open_rows


def numbers_of(plan):
    """The clause with the number of the match for its only measure."""
    fields = [plan.result.field(name) for name in ("x", "n", STATE)]
    return replace(plan, measures=plan.measures[-1:], result=pa.schema(fields))


def test_what_is_open_is_bounded_by_within():
    """Two rows are within one of each other, and one more is kept for the number of the match."""
    tree = Sequence((A, Repeat(B, 0, None, False), C))
    plan = numbers_of(plan_of(tree, {2: "falls"}))
    assert reached_by(limited(plan, 1), [1] * 16, {4, 8, 12}, 3) == (4, [3, 3, 3])
    assert reached_by(plan, [1] * 16, {4, 8, 12}, 4) == (2, [4, 4, 4])


def test_runs_that_end_within_a_slice_need_no_other_task():
    """A slice is final by its last rows, of which it passes on the run that is open."""
    plan = numbers_of(plan_of(Sequence((Repeat(A, 1, None), B)), {0: "low", 1: "not low"}))
    # one row more is kept, for the number of the match
    values = [0, 0, 0, 3, 3, 0, 0, 3, 0, 3, 0, 0, 0, 3, 0, 3]
    assert reached_by(plan, values, {4, 8, 12}, 3) == (4, [1, 1, 3])
    # what is open began before the rows by which it is guessed
    assert reached_by(plan, [0] * 16, {4, 8, 12}, 3) == (1, [4, 4, 4])


def test_conditions_over_the_number_of_the_match_are_not_cut():
    plan = plan_of(Sequence((A, B)), {})
    assert is_followed(plan)
    assert not is_followed(replace(plan, registers=(Register(None, kind="number"),)))
