"""Windows and matches a micro-batch at a time, and as a whole, for the tests of ``kernels/advance``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from tests.kernels.in_memory import PARTITION, Table, bounds_of, draft_of
from tests.kernels.random_patterns import (
    CONDITIONS,
)
from windrow.algebra.physical import field_of, is_field
from windrow.kernels.advance import CARRIED, Frontier, Growing, advance
from windrow.kernels.advance.suffix import CountedRows, suffix_of
from windrow.kernels.patterns.pattern_plan import (
    MatchPlan,
    PatternCondition,
    Register,
    register_side,
)
from windrow.kernels.slices.predicate_analysis import leaves, reads_positions
from windrow.kernels.sorting import SortKey
from windrow.kernels.window_by import label_rows, windows_at
from windrow.kernels.window_plan import (
    ColumnRef,
    Elsewhere,
    Number,
    Operation,
    PairExpression,
    SameRow,
    Search,
    WindowPlan,
)

PLACE = "__place"
LABELS, ANSWERS = "__labels", {"start": "__starts", "end": "__ends"}
NOTHING_KNOWN = Frontier(pa.table({"__nothing": [0]}))


def growing_of(plan: WindowPlan, rows: pa.Table) -> tuple[Growing, pa.Table]:
    """The clause over rows in order, and the rows with their places in their partitions."""
    bounds = bounds_of(rows)
    place = np.arange(rows.num_rows) - np.repeat(bounds[:-1], np.diff(bounds))
    keys = tuple(name for name in rows.column_names if name.startswith(PARTITION))
    columns = tuple(name for name in rows.column_names if name not in keys) or keys
    return Growing(plan, keys, (SortKey(PLACE),), columns), rows.append_column(PLACE, pa.array(place))


def in_micro_batches(
    growing: Growing,
    rows: pa.Table,
    step_of: np.ndarray,
    shuffled: np.ndarray,
    frontier_of: Callable[[int], Frontier],
    whole: WindowPlan | None = None,
) -> list[pa.RecordBatch]:
    """What all steps give, where each row comes in a step; the last one is that of the end.

    With the plan as a `whole`, what it is asked elsewhere is found before each step.
    """
    kept, found = None, []
    rows, step_of = rows.take(pa.array(shuffled)), step_of[shuffled]
    steps = int(step_of.max(initial=0)) + 1
    for step in range(steps + 1):
        new_rows = rows.filter(pa.array(step_of == step))
        if whole is not None:
            kept, new_rows = answered(growing, whole, kept, new_rows)
        batches, kept = advance(growing, kept, new_rows, frontier_of(step) if step < steps else None)
        found += batches
    assert kept is not None
    assert not kept.num_rows
    return found


def asked_elsewhere(plan: WindowPlan, sides: set[str]) -> WindowPlan:
    """The plan that is only told where these predicates hold first."""
    read: list[PairExpression] = []
    own = "label" if plan.has_label else "start"
    if "window" in sides and plan.labels is not None:
        read.append(plan.labels)
        plan = replace(plan, labels=ColumnRef(LABELS, own))
    for side in ("start", "end"):
        search = getattr(plan, side)
        if side in sides and search is not None and search.predicate is not None:
            read.append(search.predicate)
            plan = replace(plan, **{side: Search("given", column=ANSWERS[side])})
    found = [leaf for expression in read for leaf in leaves(expression)]
    shifts = {(leaf.side, leaf.shift) for leaf in found if isinstance(leaf, ColumnRef)}
    for leaf in found:
        shifts |= {leaf.left, leaf.right} if isinstance(leaf, SameRow) else set()
    return replace(plan, elsewhere=Elsewhere(frozenset(shifts), any(map(reads_positions, read))))


def answered(
    growing: Growing, plan: WindowPlan, kept: pa.Table | None, new_rows: pa.Table
) -> tuple[pa.Table | None, pa.Table]:
    """Both with where the predicates of a plan hold first among the rows of a step, of which no others are
    known: as if nothing followed them.
    """
    suffix = suffix_of(kept, new_rows, growing.partition, growing.order, (*growing.carried, PLACE))
    rows = CountedRows(plan, suffix.table, suffix.bounds, suffix.at)
    label = label_rows(plan, rows, np.flatnonzero(~suffix.is_done))
    windows = windows_at(plan, rows, label)
    table = suffix.table.append_column(LABELS, pa.array(np.isin(np.arange(len(suffix.at)), label)))
    for side, name in ANSWERS.items():
        at = np.full(table.num_rows, -1)
        found = getattr(windows, side)
        at[label] = np.where(found >= 0, rows.position(np.maximum(found, 0)), -1)
        table = table.append_column(name, pa.array(at, mask=at < 0))
    if kept is None:
        return None, table
    is_new = table.column(PLACE).is_valid()
    given_ = np.repeat(suffix.emitted, np.diff(suffix.bounds))
    for field, values in zip(CARRIED, (suffix.at, suffix.state, given_), strict=True):
        table = table.append_column(field, pa.array(values, field.type))
    return table.filter(pc.invert(is_new)), table.filter(is_new).drop_columns(CARRIED.names)


def frontiers(
    sql: str, table: Table, rows: pa.Table, step_of: np.ndarray, early: int
) -> Callable[[int], Frontier]:
    """What is known after each step, of the column m where it rises: it may be less than could be known."""
    draft, _ = draft_of(sql, table)
    names = [item.name for item in draft.hoisted if is_field(item) and field_of(item) == "m"]
    fixed = [item.name for item in draft.hoisted if item.text.render() == f"({item.variable} IS NULL)"]
    fixed = [name for name in fixed if not rows.column(name).to_numpy(zero_copy_only=False).any()]
    values = [] if not names else rows.column(names[0]).to_pylist()
    firsts = bounds_of(rows)
    rises = all(
        None not in part and part == sorted(part)
        for low, stop in pairwise(firsts.tolist())
        if (part := values[low:stop])
    )

    def known(step: int) -> Frontier:
        if not names or not rises:
            return NOTHING_KNOWN
        later = [value for value, at in zip(values, step_of, strict=True) if at > step]
        value = min(later, default=max(values, default=0) + 5) - early
        columns = {name: pa.array([value], rows.schema.field(name).type) for name in names}
        columns |= {name: pa.array([False]) for name in fixed}
        return Frontier(pa.table(columns), frozenset(fixed))

    return known


@st.composite
def micro_batches_of(draw: st.DrawFn, rows: pa.Table) -> np.ndarray:
    """A step for each row, which never falls along a partition."""
    steps = [
        sorted(draw(st.lists(st.integers(0, 4), min_size=stop - low, max_size=stop - low)))
        for low, stop in pairwise(bounds_of(rows).tolist())
    ]
    return np.array([step for of_one in steps for step in of_one], np.int64)


@st.composite
def timely(draw: st.DrawFn) -> str:
    """A clause whose windows begin or end by the value of the column that rises, or by positions."""
    number = draw(st.integers(0, 3))
    only = st.sampled_from(["", "ONLY "])
    partition = draw(st.sampled_from(["", "PARTITION BY k "]))
    ends = [
        f"END AS e NEXT AS en WHEN en IS NULL OR en.m - e.m > {number}",
        f"END AS e NEXT AS en WHEN en.m - s.m >= {number} OR en IS NULL",
        f"END AS e WHEN e.m - s.m >= {number}",
        f"END AS e AT ea WHEN ea = sa + {number}",
    ]
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["SLIDING", "TUMBLING"]))
        start = draw(
            st.sampled_from(["", " WHEN s.a > 0", f" PREV AS sp WHEN sp IS NULL OR s.m - sp.m > {number}"])
        )
        tail = f"START AS s AT sa{start} {draw(only)}{draw(st.sampled_from(ends))}"
    else:
        kind = draw(st.sampled_from(["SLIDING", "TUMBLING"]))
        when = draw(st.sampled_from(["", " WHEN l.a > 0", " NEXT AS ln WHEN ln.a > l.a"]))
        condition = draw(
            st.sampled_from(
                [
                    f"l.m - s.m <= {number}", f"s.m >= l.m - {number}", f"l.m - s.m < {number} AND s.a > 0",
                    f"la - sa <= {number}", f"sa = la - {number}", "s.m > l.m", "l.m < 2 * s.m",
                ]
            )
        )  # fmt: skip
        end = draw(st.sampled_from([*ends, "END AS e WHEN e = l", "END UNBOUNDED"]))
        tail = f"LABEL AS l AT la{when} {draw(only)}START AS s AT sa WHEN {condition} {draw(only)}{end}"
    return f"(TYPE {kind} {partition}ORDER BY o {tail})"


# -- matches -----------------------------------------------------------------------------------------


def limited(plan: MatchPlan, within: int | str | None) -> MatchPlan:
    """The clause with WITHIN, a number or a column, as a condition of every variable over the first row."""
    if within is None:
        return plan
    side = register_side(len(plan.registers))
    length = Operation("-", (ColumnRef("t", "row"), ColumnRef("t", side)), "int64")
    limit = Number(within) if isinstance(within, int) else ColumnRef(within, side)
    conditions = [PatternCondition(label, Operation("<=", (length, limit))) for label in range(3)]
    return replace(
        plan,
        registers=(*plan.registers, Register(None, True, 0)),
        conditions=(*plan.conditions, *conditions),
    )


#: What a match that cannot be skipped from fails with.
FAILURES = (["SKIP_TARGET_MISSING"], ["SKIP_TO_FIRST_ROW"])
DEFINED = st.dictionaries(st.integers(0, 2), st.sampled_from(sorted(CONDITIONS)), max_size=3)
