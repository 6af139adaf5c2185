"""Row patterns: programs, the machine against the reference over random patterns and rows, matches so far."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from windrow.errors import ExecutionError
from windrow.kernels.patterns import execution
from windrow.kernels.patterns.execution import find_matches
from windrow.kernels.patterns.match_recognize import match_recognize
from windrow.kernels.patterns.plan import STATE, Condition, MatchNumber, MatchPlan, Navigation, Register
from windrow.kernels.patterns.program import compile_pattern, listing
from windrow.kernels.patterns.tree import Choice, Edge, Label, Repeat, Sequence, Tree
from windrow.kernels.plan import ColumnRef, Number, Operation, PairExpression
from windrow.kernels.reference.match_recognize import Clause, Seen
from windrow.kernels.reference.match_recognize import match_recognize as by_reference

A, B, C = Label(0), Label(1), Label(2)
NAMES = ("A", "B", "C")
REGISTERS = (
    Register(None, False, 0),
    Register(None, False, 1),
    Register(frozenset([0]), False, 0),
    Register(frozenset([1, 2]), True, 0),
    Register(frozenset([1, 2]), True, 1),
)


def value(side: str = "row", shift: int = 0) -> ColumnRef:
    return ColumnRef("x", side, shift)


def compare(operator: str, *operands: PairExpression) -> Operation:
    return Operation(operator, operands)


def x(seen: Seen, at: int | None) -> int | None:
    return seen.rows[at]["x"] if at is not None and 0 <= at < len(seen.rows) else None


def of(seen: Seen, members: set[int], offset: int = 0, *, first: bool = False) -> int | None:
    found = [row for row, label in seen.taken if label in members]
    return None if offset >= len(found) else found[offset] if first else found[-1 - offset]


def below(left: int | None, right: int | None) -> bool | None:
    return None if left is None or right is None else left < right


# conditions twice: as the machine is told, and in Python over what was taken, of which the last row is tried
CONDITIONS = {
    "low": (compare("<", value(), Number(2)), lambda seen: below(x(seen, seen.taken[-1][0]), 2)),
    "not low": (
        compare(">=", value(), Number(1)),
        lambda seen: None if (v := x(seen, seen.taken[-1][0])) is None else v >= 1,
    ),
    "falls": (
        compare("<", value(), value(shift=-1)),
        lambda seen: below(x(seen, seen.taken[-1][0]), x(seen, seen.taken[-1][0] - 1)),
    ),
    "below the next": (
        compare("<", value(), value(shift=1)),
        lambda seen: below(x(seen, seen.taken[-1][0]), x(seen, seen.taken[-1][0] + 1)),
    ),
    "above the row before in the match": (
        compare("<", value("r1"), value()),
        lambda seen: below(x(seen, of(seen, {0, 1, 2}, 1)), x(seen, seen.taken[-1][0])),
    ),
    "above the last A": (
        compare("<", value("r2"), value()),
        lambda seen: below(x(seen, of(seen, {0})), x(seen, seen.taken[-1][0])),
    ),
    "above the row after the first B or C": (
        compare("<", value("r3", 1), value()),
        lambda seen: below(
            None if (at := of(seen, {1, 2}, first=True)) is None else x(seen, at + 1),
            x(seen, seen.taken[-1][0]),
        ),
    ),
    "above the second B or C, and low": (
        compare("AND", compare("<", value("r4"), value()), compare("<", value(), Number(3))),
        lambda seen: (
            below(x(seen, of(seen, {1, 2}, 1, first=True)), x(seen, seen.taken[-1][0]))
            and below(x(seen, seen.taken[-1][0]), 3)
        ),
    ),
}

leaves = st.sampled_from([A, B, C, A, B, C, Sequence(()), Edge(True), Edge(False)])


def larger(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    bounds = st.sampled_from([(0, 1), (0, None), (1, None), (2, 2), (1, 3), (0, 2), (2, None)])
    return st.one_of(
        st.lists(trees, min_size=2, max_size=3).map(lambda parts: Sequence(tuple(parts))),
        st.lists(trees, min_size=2, max_size=3).map(lambda parts: Choice(tuple(parts))),
        st.builds(lambda part, lows, greedy: Repeat(part, *lows, greedy), trees, bounds, st.booleans()),
    )


patterns = st.recursive(leaves, larger, max_leaves=5)
partitions = st.lists(
    st.lists(st.one_of(st.integers(0, 3), st.none()), min_size=1, max_size=6), min_size=1, max_size=2
)
skips = st.sampled_from(
    [("past last", set()), ("next", set()), ("first", {1}), ("last", {1, 2}), ("last", {0})]
)


def plan_of(
    tree: Tree, conditions: dict[int, str], skip: tuple[str, set[int]] = ("past last", set()), **options: bool
) -> MatchPlan:
    names = [f"x{number}" for number in range(3)]
    fields = [
        ("x", pa.int64()),
        *((name, pa.int64()) for name in names),
        ("n", pa.int64()),
        (STATE, pa.int32()),
    ]
    measures = (
        Navigation("x0", frozenset([0]), False, 0, 0, False, "x"),
        Navigation("x1", None, True, 1, -1, True, "x"),
        Navigation("x2", frozenset([1, 2]), False, 1, 1, False, "x"),
        MatchNumber("n"),
    )
    asked = tuple(Condition(label, CONDITIONS[name][0]) for label, name in conditions.items())
    return MatchPlan(
        program=compile_pattern(tree),
        labels=NAMES,
        conditions=asked,
        registers=REGISTERS,
        skip=skip[0],
        targets=frozenset(skip[1]),
        all_rows=options.get("all_rows", False),
        empty_shown=options.get("empty_shown", True),
        unmatched_shown=options.get("unmatched_shown", False),
        outputs=(("x", "x"),),
        measures=measures,
        running=(),
        result=pa.schema(fields),
    )


def table_of(rows: list[list[int | None]]) -> tuple[pa.Table, np.ndarray]:
    values = [value for partition in rows for value in partition]
    bounds = np.cumsum([0, *map(len, rows)])
    return pa.table({"x": pa.array(values, pa.int64())}), bounds


def clause_of(tree: Tree, conditions: dict[int, str], skip: tuple[str, set[int]], **options: bool) -> Clause:
    return Clause(
        (lambda row: row["p"],), (), tree,
        {label: CONDITIONS[name][1] for label, name in conditions.items()}, None, skip[0], frozenset(skip[1]),
        options["all_rows"], options["empty_shown"], options["unmatched_shown"],
    )  # fmt: skip


def answers(found: list) -> list[tuple]:
    """What the measures of `plan_of` are by the reference."""

    def read(row):
        return row["x"]

    rows = []
    for item in found:
        last, whole = item.seen(final=False), item.seen(final=True)
        rows.append(
            (
                item.row["x"],
                last.navigate(frozenset([0]), False, 0, 0, read, NAMES),
                whole.navigate(None, True, 1, -1, read, NAMES),
                last.navigate(frozenset([1, 2]), False, 1, 1, read, NAMES),
                item.number,
                item.state,
            )
        )
    return rows


@settings(max_examples=1500, deadline=None)
@given(
    patterns,
    st.dictionaries(st.integers(0, 2), st.sampled_from(sorted(CONDITIONS)), max_size=3),
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
        "empty_shown": shown != "omit",
        "unmatched_shown": shown == "unmatched",
    }
    table, bounds = table_of(rows)
    plan = plan_of(tree, conditions, skip, **options)
    named = [{"p": number, "x": value} for number, partition in enumerate(rows) for value in partition]
    clause = clause_of(tree, conditions, skip, **options)
    assert outcome(lambda: by_kernel(plan, table, bounds)) == outcome(
        lambda: answers(by_reference(named, clause))
    )


def by_kernel(plan: MatchPlan, table: pa.Table, bounds: np.ndarray) -> list[tuple]:
    return [
        tuple(row.values()) for batch in match_recognize(plan, table, bounds) for row in batch.to_pylist()
    ]


def outcome(run) -> list[str]:
    """The rows in any order, or the error's condition."""
    try:
        return sorted(map(str, run()))
    except ExecutionError as error:
        return [error.condition]


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
    for name in ("partition", "start", "length", "labels", "excluded"):
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
    if "Edge(is_start=True)" in repr(tree):
        return  # the start of the partition is not that of the rows that are left
    cut = data.draw(st.integers(1, len(rows) - 1))
    plan = plan_of(tree, conditions)
    table, bounds = table_of([rows])
    whole = find_matches(plan, table, bounds)
    early = find_matches(plan, table.slice(0, cut), np.array([0, cut]), np.array([False]))
    kept = int(early.kept[0])
    late = find_matches(plan, table.slice(kept), np.array([0, len(rows) - kept]))
    starts = [*early.start, *(late.start + kept)]
    lengths = [*early.length, *late.length]
    assert (starts, lengths) == (list(whole.start), list(whole.length))
    assert [*early.labels, *late.labels] == list(whole.labels)


def test_time_is_linear_in_the_rows_for_nested_quantifiers(monkeypatch):
    """Each row is tried a bounded number of times: the machine's steps are counted, not the seconds."""
    steps = []
    original = execution._asked

    def counted(parts, rows, patience=None):
        condition = original(parts, rows, patience)

        def count(*arguments):
            steps.append(1)
            return condition(*arguments)

        return count

    monkeypatch.setattr(execution, "_asked", counted)
    tree = Sequence((Repeat(Repeat(A, 1, None), 1, None), B))
    # a condition over a register, so that it is asked; it holds for no row of B
    plan = plan_of(tree, {0: "low", 1: "above the row before in the match"})
    for count in (200, 400):
        steps.clear()
        table, bounds = table_of([[1] * count])
        assert len(find_matches(plan, table, bounds).start) == 0
        assert len(steps) <= 2 * count


@pytest.mark.parametrize(
    ("tree", "skip", "condition"),
    [
        (Choice((Sequence((A, B)), C)), ("first", {1}), "SKIP_TARGET_MISSING"),
        (Repeat(B, 0, None), ("last", {1}), "SKIP_TARGET_MISSING"),
        (Sequence((A, B)), ("first", {0}), "SKIP_TO_FIRST_ROW"),
    ],
)
def test_a_skip_that_leads_nowhere_is_an_error_at_the_variable(tree, skip, condition):
    plan = replace(plan_of(tree, {0: "low", 1: "falls"}, skip), sql="SKIP TO B", skip_place=(8, 9))
    with pytest.raises(ExecutionError) as raised:
        find_matches(plan, *table_of([[1, 0, 2, 3]]))
    error = raised.value
    assert (error.condition, error.getQueryContext()[0].fragment()) == (condition, "B")


@pytest.mark.parametrize("side", ["row", "r2"])
def test_an_error_in_a_condition_is_located_there(side):
    quotient = Operation("/", (Number(1), value(side)), "float64")
    failing = Condition(1, compare("<", Number(0), quotient), (2, 7))
    plan = replace(plan_of(Sequence((A, B)), {}), conditions=(failing,), sql="B AS 1 / x")
    with pytest.raises(ExecutionError) as raised:
        find_matches(plan, *table_of([[0, 0]]))
    error = raised.value
    assert (error.condition, error.getQueryContext()[0].fragment()) == ("DIVIDE_BY_ZERO", "AS 1 ")


def test_a_condition_guards_the_next_one_on_the_same_row():
    quotient = compare("<", Number(0), Operation("/", (Number(1), value()), "float64"))
    guarded = Condition(1, compare("AND", compare("<>", value(), Number(0)), quotient))
    plan = replace(plan_of(Sequence((A, B)), {}), conditions=(guarded,))
    assert list(find_matches(plan, *table_of([[0, 0, 1]])).start) == [1]


LISTINGS = {
    "a sequence": (Sequence((A, B)), ["0 match A", "1 match B", "2 done"]),
    "one or more": (Repeat(A, 1, None), ["0 match A", "1 split 0, 2", "2 done"]),
    "reluctant one or more": (Repeat(A, 1, None, False), ["0 match A", "1 split 2, 0", "2 done"]),
    "any number": (Repeat(A, 0, None), ["0 split 1, 3", "1 match A", "2 jump 0", "3 done"]),
    "two to three": (
        Repeat(A, 2, 3),
        ["0 match A", "1 match A", "2 split 3, 4", "3 match A", "4 done"],
    ),
    "an alternation": (
        Choice((A, B, C)),
        [
            "0 split 1, 3",
            "1 match A",
            "2 jump 7",
            "3 split 4, 6",
            "4 match B",
            "5 jump 7",
            "6 match C",
            "7 done",
        ],
    ),
    "a loop over what may be empty": (
        Repeat(Repeat(A, 0, 1), 0, None),
        [
            "0 split 1, 6",
            "1 mark 0",
            "2 split 3, 4",
            "3 match A",
            "4 check 0",
            "5 jump 0",
            "6 done",
        ],
    ),
    "anchors and exclusions": (
        Sequence((Edge(True), Label(0, excluded=True), Edge(False))),
        ["0 start", "1 match A excluded", "2 end", "3 done"],
    ),
}


@pytest.mark.parametrize("name", LISTINGS)
def test_a_pattern_is_compiled_to_this_program(name):
    tree, expected = LISTINGS[name]
    assert listing(compile_pattern(tree), NAMES) == expected
