"""Random patterns, conditions and rows, as plans of the kernel and as clauses of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from windrow.errors import ExecutionError
from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.patterns.match_recognize import match_recognize
from windrow.kernels.patterns.pattern_plan import (
    ANSWER,
    LABELS,
    NUMBERS,
    REQUESTED,
    STATE,
    Answers,
    MatchNumber,
    MatchPlan,
    Navigation,
    PatternCondition,
    Register,
    requested_column,
)
from windrow.kernels.patterns.program import compile_pattern
from windrow.kernels.patterns.tree import Choice, Edge, Label, Repeat, Sequence, Tree
from windrow.kernels.reference.match_recognize import Clause, MatchView
from windrow.kernels.window_plan import ColumnRef, ConstantRef, Number, Operation, PairExpression

A, B, C = Label(0), Label(1), Label(2)
NAMES = ("A", "B", "C")
REGISTERS = (
    Register(None, False, 0),
    Register(None, False, 1),
    Register(frozenset([0]), False, 0),
    Register(frozenset([1, 2]), True, 0),
    Register(frozenset([1, 2]), True, 1),
)
FIRST_ROW = Register(None, True, 0)
"""A plan has it where a condition reads it: each first row is searched from by itself then."""
WITH_NAMES = Register(None, kind="labelled rows")
"""A plan has it where a condition has an aggregate of rows and their variables; it is the seventh then."""
RUNNING = (
    ("bs", AggregateSpec("count", "one of B", pa.int64())),
    ("of a", AggregateSpec("sum", "x of A", pa.int64())),
)
BY_LABEL = (("one of B", ("none", "one", "none")), ("x of A", ("x", "none", "none")))


def value(side: str = "row", shift: int = 0) -> ColumnRef:
    return ColumnRef("x", side, shift)


def compare(operator: str, *operands: PairExpression) -> Operation:
    return Operation(operator, operands)


def x(view: MatchView, at: int | None) -> int | None:
    low, high = view.area or (0, len(view.rows))
    return view.rows[at]["x"] if at is not None and low <= at < high else None


def of(view: MatchView, members: set[int], offset: int = 0, *, first: bool = False) -> int | None:
    found = [row for row, label in view.mapped if label in members]
    return None if offset >= len(found) else found[offset] if first else found[-1 - offset]


def below(left: int | None, right: int | None) -> bool | None:
    return None if left is None or right is None else left < right


def even(*values: int | None) -> bool | None:
    return None if None in values else sum(values) % 2 == 0


def named_by_count(name: str | None, count: int) -> bool | None:
    return None if name is None else "ABC".index(name) < count


THREE = (value("r2"), value("r3"), value("row", -1))
NAME_AND_COUNT = (ColumnRef(LABELS, "r8"), ColumnRef(NUMBERS, "r10", 0, "none"))
BY_SPARK = {0: below, 1: even, 2: named_by_count}
"""What Spark would make of the values that these conditions read."""
SOME_VALUES = [None, *range(4)]
READ = {0: [SOME_VALUES] * 2, 1: [SOME_VALUES] * 3, 2: [[None, "A", "B", "C"], list(range(20))]}
"""All values that they can read."""


def answers_of(number: int, rows: list[tuple]) -> pa.Table:
    """What Spark would answer where a condition is asked for these values."""
    kinds = [pa.string() if value == [None, "A", "B", "C"] else pa.int64() for value in READ[number]]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    answers = pa.array([BY_SPARK[number](*row) for row in rows], pa.bool_())
    names = [requested_column(number, place) for place in range(len(kinds))]
    return pa.table([*columns, answers], [*names, ANSWER])


def answered(
    plan: MatchPlan, search: Callable[[MatchPlan], Iterable[pa.RecordBatch]], most: int = 1000
) -> MatchPlan:
    """The plan with the answers to all that a search asks for, in rounds, as Spark is asked.

    `most` is asked for in a round, and nothing twice.
    """
    fields = [
        (requested_column(number, place), answers.schema.field(place).type)
        for number, answers in ALL_ANSWERS
        for place in range(answers.num_columns - 1)
    ]
    schema = pa.schema([(REQUESTED, pa.int32()), *fields])
    known: dict[int, list[tuple]] = {number: [] for number in READ}
    tables: tuple[tuple[int, pa.Table], ...] = ()
    is_numbered = any(register.kind == "number" for register in plan.registers)
    for of_all in (True, False) if is_numbered else (True,):
        while True:
            asking = replace(plan, result=schema, answers=Answers(tables, most, of_all=of_all))
            new = [row for batch in search(asking) for row in batch.to_pylist()]
            if not new:
                break
            for row in new:
                number = row[REQUESTED]
                values = tuple(row[requested_column(number, place)] for place in range(len(READ[number])))
                assert values not in known[number], "asked for twice"
                known[number].append(values)
            tables = tuple((number, answers_of(number, found)) for number, found in known.items() if found)
    return replace(plan, answers=Answers(tables))


ALL_ANSWERS = tuple((number, answers_of(number, list(product(*read)))) for number, read in READ.items())

# conditions twice: as the machine is told, and in Python over what was taken, of which the last row is tried
CONDITIONS = {
    "low": (compare("<", value(), Number(2)), lambda view: below(x(view, view.mapped[-1][0]), 2)),
    "not low": (
        compare(">=", value(), Number(1)),
        lambda view: None if (v := x(view, view.mapped[-1][0])) is None else v >= 1,
    ),
    "falls": (
        compare("<", value(), value(shift=-1)),
        lambda view: below(x(view, view.mapped[-1][0]), x(view, view.mapped[-1][0] - 1)),
    ),
    "below the next": (
        compare("<", value(), value(shift=1)),
        lambda view: below(x(view, view.mapped[-1][0]), x(view, view.mapped[-1][0] + 1)),
    ),
    "above the row before in the match": (
        compare("<", value("r1"), value()),
        lambda view: below(x(view, of(view, {0, 1, 2}, 1)), x(view, view.mapped[-1][0])),
    ),
    "above the last A": (
        compare("<", value("r2"), value()),
        lambda view: below(x(view, of(view, {0})), x(view, view.mapped[-1][0])),
    ),
    "above the row after the first B or C": (
        compare("<", value("r3", 1), value()),
        lambda view: below(
            None if (at := of(view, {1, 2}, first=True)) is None else x(view, at + 1),
            x(view, view.mapped[-1][0]),
        ),
    ),
    "above the second B or C, and low": (
        compare("AND", compare("<", value("r4"), value()), compare("<", value(), Number(3))),
        lambda view: (
            below(x(view, of(view, {1, 2}, 1, first=True)), x(view, view.mapped[-1][0]))
            and below(x(view, view.mapped[-1][0]), 3)
        ),
    ),
    "not below the first row": (
        compare(">=", value(), value("r5")),
        lambda view: (
            None
            if (less := below(x(view, view.mapped[-1][0]), x(view, view.mapped[0][0]))) is None
            else not less
        ),
    ),
}

NAMED = {
    "the first B": (
        compare("<=", ColumnRef("bs", "r6"), Number(1)),
        lambda view: sum(label == 1 for _, label in view.mapped) <= 1,
    ),
    "As of little": (
        compare("<", ColumnRef("of a", "r6"), Number(3)),
        lambda view: (
            sum(values) < 3
            if (values := [v for row, label in view.mapped if label == 0 and (v := x(view, row)) is not None])
            else None
        ),
    ),
}
CONDITIONS |= NAMED

MORE = (
    Register(None, False, 0, "label"),
    Register(frozenset([0]), False, 0, "label", -1),
    Register(frozenset([0]), False, 1, "label", -1),
    Register(frozenset([0]), kind="count"),
)
"""Registers from the eighth on, where a condition reads one of them; the match's number is the twelfth."""


def label_before(view: MatchView, offset: int) -> str | None:
    at = of(view, {0}, offset)
    return None if at is None else view.label(at - 1, NAMES)


CONDITIONS_OF_LABELS = {
    "a B before the last A": (
        ColumnRef("is B", "r8"),
        lambda view: None if (name := label_before(view, 0)) is None else name == "B",
    ),
    "no B before the last A but one": (
        compare("NOT", compare("COALESCE", ColumnRef("is B", "r9"), ConstantRef("no"))),
        lambda view: label_before(view, 1) != "B",
    ),
    "two As at most": (
        compare("<", ColumnRef(NUMBERS, "r10", 0, "none"), Number(3)),
        lambda view: sum(label == 0 for _, label in view.mapped) < 3,
    ),
}
CONDITIONS |= CONDITIONS_OF_LABELS
ASKED_CONDITIONS = {
    "above the last A, by Spark": (
        compare(REQUESTED, Number(0), value("r2"), value()),
        lambda view: below(x(view, of(view, {0})), x(view, view.mapped[-1][0])),
    ),
    "three rows even, by Spark": (
        compare("AND", compare("<", value(), Number(3)), compare(REQUESTED, Number(1), *THREE)),
        lambda view: (
            (
                v is not None
                and v < 3
                and even(
                    x(view, of(view, {0})),
                    x(view, of(view, {1, 2}, first=True)),
                    x(view, view.mapped[-1][0] - 1),
                )
            )
            if (v := x(view, view.mapped[-1][0])) is not None
            else None
        ),
    ),
    "no variable of a number, by Spark": (
        compare(
            "NOT", compare("COALESCE", compare(REQUESTED, Number(2), *NAME_AND_COUNT), ConstantRef("no"))
        ),
        lambda view: (
            named_by_count(label_before(view, 0), sum(label == 0 for _, label in view.mapped)) is not True
        ),
    ),
}
"""Conditions that only Spark can evaluate, with their numbers in `BY_SPARK`: of whole partitions alone."""
NUMBERED = {
    "one of two matches": (
        compare("<", ColumnRef(NUMBERS, "r11"), Number(3)),
        lambda view: view.number < 3,
    )
}
"""Not of all matches, which are numbered when they are complete."""
OF_NAMES = (("is B", ("no", "yes", "no")),)
CONSTANTS = pa.table({"no": [False], "yes": [True], "none": [0]})

EXCLUDED = Label(1, excluded=True)
leaves = st.sampled_from([A, B, C, A, B, C, EXCLUDED, Sequence(()), Edge(True), Edge(False)])


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
    known = CONDITIONS | ASKED_CONDITIONS | NUMBERED
    asked = tuple(PatternCondition(label, known[name][0]) for label, name in conditions.items())
    registers = REGISTERS
    if "not below the first row" in conditions.values():
        registers = (*registers, FIRST_ROW)
    reads_names = not NAMED.keys().isdisjoint(conditions.values())
    if reads_names:
        registers = (*padded(registers, 6), WITH_NAMES)
    labelled = CONDITIONS_OF_LABELS | ASKED_CONDITIONS | NUMBERED
    if not labelled.keys().isdisjoint(conditions.values()):
        registers = (*padded(registers, 7), *MORE)
    if not NUMBERED.keys().isdisjoint(conditions.values()):
        registers = (*registers, Register(None, kind="number"))
    return MatchPlan(
        program=compile_pattern(tree),
        labels=NAMES,
        conditions=asked,
        registers=registers,
        skip=skip[0],
        targets=frozenset(skip[1]),
        all_rows=options.get("all_rows", False),
        shows_empty=options.get("shows_empty", True),
        with_unmatched=options.get("with_unmatched", False),
        outputs=(("x", "x"),),
        measures=measures,
        running=RUNNING if reads_names else (),
        result=pa.schema(fields),
        by_label=BY_LABEL if reads_names else (),
        of_names=OF_NAMES,
        constants=CONSTANTS,
        answers=Answers(ALL_ANSWERS) if not ASKED_CONDITIONS.keys().isdisjoint(conditions.values()) else None,
    )


def padded(registers: tuple[Register, ...], count: int) -> tuple[Register, ...]:
    """So many registers."""
    return (*registers, *[Register(None, kind="count")] * (count - len(registers)))


def without_numbers(plan: MatchPlan) -> MatchPlan:
    """The clause without the number of the match."""
    measures = tuple(item for item in plan.measures if not isinstance(item, MatchNumber))
    return replace(plan, measures=measures, result=plan.result.remove(plan.result.get_field_index("n")))


def times(partition: list[int | None]) -> list[int]:
    """A time for each row, with ties and gaps."""
    return [sum((value or 0) % 3 for value in partition[: at + 1]) for at in range(len(partition))]


def table_of(rows: list[list[int | None]]) -> tuple[pa.Table, np.ndarray]:
    values = [value for partition in rows for value in partition]
    at = np.array([time for partition in rows for time in times(partition)], np.int64)
    bounds = np.cumsum([0, *map(len, rows)])
    ones, nothing = np.ones(len(values), np.int64), pa.nulls(len(values), pa.int64())
    columns = {"x": pa.array(values, pa.int64()), "t": at, "due": at + 3, "one": ones, "none": nothing}
    return pa.table(columns), bounds


def clause_of(tree: Tree, conditions: dict[int, str], skip: tuple[str, set[int]], **options: bool) -> Clause:
    return Clause(
        (lambda row: row["p"],), (), tree,
        {label: (CONDITIONS | ASKED_CONDITIONS | NUMBERED)[name][1] for label, name in conditions.items()},
        None, skip[0], frozenset(skip[1]),
        options["all_rows"], options["shows_empty"], options["with_unmatched"],
    )  # fmt: skip


def answers(found: list) -> list[tuple]:
    """What the measures of `plan_of` are by the reference."""

    def read(row):
        return row["x"]

    rows = []
    for item in found:
        last, whole = item.view(final=False), item.view(final=True)
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
