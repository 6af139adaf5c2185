"""The steps of a stage with exchanges in memory: packed, cut and sliced, the answer is that of one task."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.kernels.in_stages import run
from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.hashing import hashes
from windrow.kernels.packing.messages import CHUNK
from windrow.kernels.packing.shards import Layout, SlicedPartition
from windrow.kernels.slices import Halo
from windrow.kernels.sorting import SortKey, array_of_codes, cut_codes
from windrow.kernels.tasks.fragment import Fragment, halo_for, only_put_out
from windrow.kernels.tasks.task_phases import PHASES, phases
from windrow.kernels.window_plan import (
    ColumnRef,
    FieldOutput,
    Number,
    Operation,
    PairExpression,
    PositionOutput,
    PositionRef,
    RowOutput,
    Search,
    WindowPlan,
)

RISES = Operation(">", (ColumnRef("x", "end"), ColumnRef("x", "start")))
LATER = Operation(
    ">=", (Operation("-", (ColumnRef("o", "end"), ColumnRef("o", "start")), "int64"), ColumnRef("y", "start"))
)
APART = Operation("-", (PositionRef("end"), PositionRef("start")), "int64")
THIRD = Operation("=", (APART, Number(3)))
ENDS = {
    "position": Search("position", THIRD, base="start", comparison="=", offset=3),
    "scan": Search("scan", RISES),
    "monotone": Search("monotone", LATER),
    "unbounded": Search("unbounded"),
}


def plan(end: Search, *, tumbling: bool) -> WindowPlan:
    aggregates = (
        ("total", AggregateSpec("sum", "x", pa.int64()), (0, 1)),
        ("middle", AggregateSpec("median", "x", pa.float64()), (0, 1)),
    )
    outputs = (
        RowOutput("s", "start", 0, (("name", "name"), ("o", "o"))),
        PositionOutput("p", "start"),
        PositionOutput("e", "end"),
    )
    row = pa.struct({"name": pa.string(), "o": pa.int64()})
    result = pa.schema(
        {"s": row, "p": pa.int64(), "e": pa.int64(), "total": pa.int64(), "middle": pa.float64()}
    )
    return WindowPlan(
        tumbling, False, None, None, end, False, False, False, outputs, aggregates, result
    )  # fmt: skip


rows = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.none() | st.integers(0, 5), st.integers(0, 4)),
    max_size=40,
    unique_by=lambda row: row[:2],
)


@settings(deadline=None, max_examples=60)
@given(
    rows,
    st.sampled_from(sorted(ENDS)),
    st.booleans(),
    st.lists(st.integers(0, 30), max_size=4),
    st.booleans(),
)
def test_sliced_is_unsliced(rows, end, tumbling, cuts, descending):
    table = pa.table(
        {
            "k": pa.array([row[0] for row in rows], pa.string()),
            "o": pa.array([row[1] for row in rows], pa.int64()),
            "x": pa.array([row[2] for row in rows], pa.int64()),
            "y": pa.array([row[3] for row in rows], pa.int64()),
            "name": pa.array([f"{row[0]}{row[1] % 3}" for row in rows], pa.string()),
        }
    )
    key = SortKey("o", descending)
    codes = cut_codes(pa.chunked_array([pa.array(sorted(set(cuts)), pa.int64())]), key)
    made = plan(ENDS[end], tumbling=tumbling)
    columns = ("o", "x", "y", "name")
    coded = only_put_out(made, columns)
    assert coded == ({"name"} if end == "monotone" else {"name", "o", "y"})

    def stage(layout: Layout) -> Fragment:
        return Fragment(made, ("k",), (key,), columns, coded, layout)

    halves = [table.slice(0, len(rows) // 2), table.slice(len(rows) // 2)]
    (a,) = hashes(pa.table({"k": ["a"]}), ["k"]).tolist()
    whole = list(run(stage(Layout(1)), halves))
    sliced = list(run(stage(Layout(2, (SlicedPartition(a, tuple(sorted(codes.tolist()))),))), halves))
    order = lambda row: (row["s"]["name"][0], row["p"])  # noqa: E731
    assert sorted(sliced, key=order) == sorted(whole, key=order)


def near(
    start: int | None, end: int | None, labels: PairExpression | None, *, neighbours: bool
) -> WindowPlan:
    """Sliding windows from `start` rows before their label row to `end` rows after it, or of one row."""
    own = "start" if start is None else "label"

    def at(side: str, offset: int) -> Search:
        apart = Operation("-", (PositionRef(side), PositionRef(own)), "int64")
        return Search("position", Operation("=", (apart, Number(offset))), own, "=", offset)

    shift = int(neighbours)
    outputs = (
        FieldOutput("k", own, "name"),
        FieldOutput("o", own, "o"),
        RowOutput("n", "end", shift, (("name", "name"), ("o", "o"))),
        RowOutput("p", own, -shift, (("o", "o"),)),
    )
    aggregates = (("total", AggregateSpec("sum", "x", pa.int64()), (0, 1)),)
    row = pa.struct({"name": pa.string(), "o": pa.int64()})
    result = pa.schema(
        {"k": pa.string(), "o": pa.int64(), "n": row, "p": pa.struct({"o": pa.int64()}), "total": pa.int64()}
    )
    return WindowPlan(
        False, start is not None, labels, None if start is None else at("start", -start),
        Search("always") if end is None else at("end", end),
        False, False, False, outputs, aggregates, result,
    )  # fmt: skip


tied = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 5)), max_size=40)


@settings(deadline=None, max_examples=150)
@given(
    tied,
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 5),
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(0, 9), max_size=5),
    st.integers(1, 4),
    st.booleans(),
)
def test_slices_with_the_rows_around_them_are_the_whole(
    rows, start, end, neighbours, chosen, cuts, tasks, descending
):
    """Ties too, which are in the order of tasks and of their rows wherever they are sorted."""
    table = pa.table(
        {
            "k": pa.array([row[0] for row in rows], pa.string()),
            "o": pa.array([row[1] for row in rows], pa.int64()),
            "x": pa.array([row[2] for row in rows], pa.int64()),
            "name": pa.array([f"row {at}" for at in range(len(rows))], pa.string()),
        }
    )
    labels = Operation(">", (ColumnRef("x", "start" if start is None else "label"), Number(2)))
    made = near(start, end, labels if chosen else None, neighbours=neighbours)
    key = SortKey("o", descending)
    codes = cut_codes(pa.chunked_array([pa.array(sorted(set(cuts)), pa.int64())]), key)
    (a,) = hashes(pa.table({"k": ["a"]}), ["k"]).tolist()
    layout = Layout(2, (SlicedPartition(a, tuple(sorted(codes.tolist()))),))
    halo = halo_for(made, layout, key, table.schema.field("o"))
    assert halo is not None
    assert answers(made, table, key, layout, halo, tasks) == answers(made, table, key, Layout(1), None, tasks)


def answers(
    made: WindowPlan, table: pa.Table, key: SortKey, layout: Layout, halo: Halo | None, tasks: int
) -> list[str]:
    """The windows by so many tasks, in one pass; those of slices are found in pieces of three rows."""
    columns = ("o", "x", "name")
    sizes = [table.num_rows * number // tasks for number in range(tasks + 1)]
    parts = [table.slice(low, stop - low) for low, stop in pairwise(sizes)]
    stage = Fragment(made, ("k",), (key,), columns, only_put_out(made, columns), layout, None, halo)
    assert phases(stage) == ["pack", "alone" if halo else "whole"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("windrow.kernels.slices.halo.ROWS_AT_ONCE", 3)
        return sorted(map(str, run(stage, parts)))


DAYS = pa.date32()
TIMES = pa.timestamp("us", tz="UTC")


def within(span: int, comparison: str, *, shift: int, start: int | None, neighbours: bool) -> WindowPlan:
    """Sliding windows that end where the key of END's row, or of the one beside it, is so far on."""
    made = near(start, None, None, neighbours=neighbours)
    own = "start" if start is None else "label"
    apart = Operation("-", (ColumnRef("o", "end", shift), ColumnRef("o", own)), "int64")
    return replace(made, end=Search("monotone", Operation(comparison, (apart, Number(span)))))


@settings(deadline=None, max_examples=200)
@given(
    tied,
    st.sampled_from([pa.int64(), pa.int32(), DAYS, TIMES]),
    st.integers(-6, 4),
    st.sampled_from([">", ">="]),
    st.sampled_from([-1, 0, 1]),
    st.none() | st.integers(0, 3),
    st.booleans(),
    st.lists(st.integers(0, 9), max_size=4),
    st.integers(1, 4),
)
@example([("a", 0, 0), ("a", 2, 0), ("a", 2, 0), ("a", 2, 0)], pa.int64(), 0, ">", -1, None, True, [1], 1)
@example([("a", 0, 0), ("a", 2, 0), ("a", 4, 0)], pa.int64(), -5, ">", -1, None, False, [2], 1)
def test_slices_with_the_rows_in_reach_of_their_values_are_the_whole(
    rows, kind, span, comparison, shift, start, neighbours, cuts, tasks
):
    table = pa.table(
        {
            "k": pa.array([row[0] for row in rows], pa.string()),
            "o": array_of_codes([row[1] for row in rows], kind),
            "x": pa.array([row[2] for row in rows], pa.int64()),
            "name": pa.array([f"row {at}" for at in range(len(rows))], pa.string()),
        }
    )
    made = within(span, comparison, shift=shift, start=start, neighbours=neighbours)
    row = pa.struct({"name": pa.string(), "o": kind})
    result = pa.schema(
        {"k": pa.string(), "o": kind, "n": row, "p": pa.struct({"o": kind}), "total": pa.int64()}
    )
    made = replace(made, result=result)
    key = SortKey("o")
    (a,) = hashes(pa.table({"k": ["a"]}), ["k"]).tolist()
    layout = Layout(2, (SlicedPartition(a, tuple(sorted(set(cuts)))),))
    halo = halo_for(made, layout, key, pa.field("o", kind, nullable=False))
    apart = [later - earlier for earlier, later in pairwise(sorted(set(cuts)))]
    needed = span + (comparison == ">")
    assert (halo is not None) == all(gap >= needed for gap in apart)
    if halo is not None:
        whole = answers(made, table, key, Layout(1), None, tasks)
        assert answers(made, table, key, layout, halo, tasks) == whole


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"descending": True}, "windows would reach back"),
        ({"nullable": True}, "a window from NULL never ends"),
        ({"kind": pa.float64()}, "its codes are not its values"),
        ({"comparison": "="}, "the row so far on may be missing"),
        ({"column": "x"}, "another column may fall"),
        ({"ansi": False}, "what wraps round does not rise"),
    ],
)
def test_values_bound_no_reach(change, why):
    made = within(2, change.get("comparison", ">"), shift=0, start=None, neighbours=False)
    if "column" in change:
        assert made.end is not None
        apart = Operation("-", (ColumnRef("x", "end"), ColumnRef("x", "start")), "int64")
        made = replace(made, end=replace(made.end, predicate=Operation(">", (apart, Number(2)))))
    made = replace(made, ansi=change.get("ansi", True))
    key = SortKey("o", change.get("descending", False))
    column = pa.field("o", change.get("kind", pa.int64()), nullable=change.get("nullable", False))
    assert halo_for(made, Layout(0, (SlicedPartition(0, (0, 10, 20)),)), key, column) is None, why


def test_what_cannot_be_computed_is_in_reach():
    """Rows so far away that the distance is no number: no window asks for it, and none fails."""
    made = within(2, ">", shift=0, start=None, neighbours=False)
    made = replace(made, labels=Operation("=", (ColumnRef("x", "start"), Number(1))))
    far = 2**62 + 2**61
    table = pa.table(
        {
            "k": ["a"] * 4,
            "o": pa.array([-far, -far + 5, -far + 9, far], pa.int64()),
            "x": pa.array([1, 1, 0, 0], pa.int64()),
            "name": ["p", "q", "r", "s"],
        }
    )
    key = SortKey("o")
    (a,) = hashes(pa.table({"k": ["a"]}), ["k"]).tolist()
    layout = Layout(1, (SlicedPartition(a, (-far + 3,)),))
    halo = halo_for(made, layout, key, pa.field("o", pa.int64(), nullable=False))
    whole = answers(made, table, key, Layout(1), None, 2)
    assert len(whole) == 2
    assert answers(made, table, key, layout, halo, 2) == whole


def test_steps_are_only_those_that_are_needed():
    def named(layout: Layout, *, tumbling: bool) -> list[str]:
        return phases(Fragment(plan(ENDS["scan"], tumbling=tumbling), (), (), (), frozenset(), layout))

    cut = Layout(0, (SlicedPartition(0, (5,)),))
    assert named(Layout(3), tumbling=True) == ["pack", "whole"]
    assert named(cut, tumbling=False) == ["pack", "summarise", "share", "finish"]
    assert named(cut, tumbling=True) == ["pack", "summarise", "share", "chain", "compose", "finish"]


def test_repetitive_strings_travel_as_codes():
    stage = Fragment(plan(ENDS["position"], tumbling=False), (), (SortKey("o"),), (), frozenset(), Layout(1))
    count = 10_000
    table = pa.table(
        {
            "o": np.arange(count),
            "repeated": ["a long name of a station"] * count,
            "unique": [f"{number:08}" for number in range(count)],
        }
    )
    (batch,) = PHASES["pack"](stage, table.to_batches())
    schema = pa.ipc.open_stream(batch.column(CHUNK)[0].as_buffer()).schema
    assert pa.types.is_dictionary(schema.field("repeated").type)
    assert schema.field("unique").type == pa.string()


def test_two_partitions_in_one_slice_are_refused(monkeypatch):
    monkeypatch.setattr(
        "windrow.kernels.packing.shards.hashes", lambda rows, _: np.zeros(rows.num_rows, np.uint64)
    )
    stage = Fragment(
        plan(ENDS["position"], tumbling=False), ("k",), (SortKey("o"),), ("o", "x"), frozenset(),
        Layout(0, (SlicedPartition(0, (0,)),)),
    )  # fmt: skip
    table = pa.table({"k": ["a", "b"], "o": [1, 1], "x": [1, 1], "y": [1, 1], "name": ["", ""]})
    with pytest.raises(Exception, match="64-bit hash"):
        list(run(stage, [table]))
