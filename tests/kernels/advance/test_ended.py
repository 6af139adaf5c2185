"""Partitions that end before others: what is given is the same, never later, and nothing is kept of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.in_memory import Table, planned, unsliced
from tests.kernels.in_memory import given as rows_emitted
from tests.kernels.in_steps import (
    DEFINED,
    FAILURES,
    NOTHING_KNOWN,
    frontiers,
    growing_of,
    limited,
    micro_batches_of,
    timely,
)
from tests.kernels.random_patterns import outcome, partitions, patterns, plan_of, skips, table_of
from tests.kernels.windows.test_window_by_property import (
    AGGREGATES,
    RESULTS,
    SETTINGS,
    _key,
    clauses,
    tables,
)
from windrow.kernels.advance import Ended, Frontier, Growing, advance
from windrow.kernels.patterns.match_recognize import match_recognize
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.punctuations import Cover, lines_of
from windrow.punctuations.regions import Region


def bounds_of(growing: Growing, rows: pa.Table) -> np.ndarray:
    """Where the partitions of rows in order begin, and the number of rows."""
    _, bounds = sorted_partitions(rows, growing.partition, ())
    return bounds if rows.num_rows else np.zeros(1, np.int64)


def keys_of(growing: Growing, rows: pa.Table) -> list[Region]:
    """The key of each partition, as a box."""
    lines = lines_of(rows.schema)
    found = []
    for first in bounds_of(growing, rows)[:-1].tolist():
        box = {}
        for name in growing.partition:
            column = rows.column(name).slice(first, 1)
            box[name] = (
                None if column.null_count else lines[name].point(lines[name].places(column).tolist()[0])
            )
        found.append(box)
    return found


@dataclass(frozen=True)
class Played:
    """What steps give, all up to each, and how many rows they keep after each, of each partition."""

    given: list[Counter[str]]
    kept: list[list[int]]


def played(
    growing: Growing,
    rows: pa.Table,
    step_of: np.ndarray,
    frontier_of: Callable[[int], Frontier],
    ends: list[int] | None,
) -> Played:
    """Partitions are closed in these steps, by one of two sources a step before; they have ended when their
    last row has come too.
    """
    keys, lines = keys_of(growing, rows), lines_of(rows.schema)
    names = {name: name for name in growing.partition}
    steps, total = int(step_of.max(initial=0)) + 1, Counter[str]()
    closed = Cover({name: lines[name] for name in names})
    before = Cover(closed.lines)
    each = [Cover(closed.lines) for _ in keys]
    for cover, key in zip(each, keys, strict=True):
        cover.add_region(key)
    bounds, kept, found = bounds_of(growing, rows), None, Played([], [])
    for step in range(steps + 1):
        new_rows = rows.filter(pa.array(step_of == step))
        waiting = Cover(closed.lines)
        for at, end in enumerate(ends or []):
            if end <= step + 1:
                before.add_region(keys[at])
            if end <= step:
                closed.add_region(keys[at])
                if (step_of[bounds[at] : bounds[at + 1]] > step).any():
                    waiting.add_region(keys[at])
        ended = None if ends is None else Ended(names, before, None, (Ended(names, closed, waiting),))
        batches, kept = advance(growing, kept, new_rows, frontier_of(step) if step < steps else None, ended)
        total += Counter(str(_key(row)) for batch in batches for row in rows_emitted(batch))
        found.given.append(Counter(total))
        found.kept.append([int(one.matches(kept).sum()) for one in each])
    return found


def ends_change_nothing(
    growing: Growing,
    rows: pa.Table,
    data: st.DataObject,
    frontier_of: Callable[[int], Frontier],
    step_of,
) -> Counter[str]:
    """Holds what partitions that end give to what they give otherwise; gives that."""
    count = len(bounds_of(growing, rows)) - 1
    ends = data.draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))
    with_ends = played(growing, rows, step_of, frontier_of, ends)
    without = played(growing, rows, step_of, frontier_of, None)
    assert with_ends.given[-1] == without.given[-1]
    for early, late in zip(with_ends.given, without.given, strict=True):
        assert late <= early, "nothing is given later"
    bounds = bounds_of(growing, rows)
    for step, (few, many) in enumerate(zip(with_ends.kept, without.kept, strict=True)):
        for at, end in enumerate(ends):
            is_over = end <= step and not (step_of[bounds[at] : bounds[at + 1]] > step).any()
            assert few[at] == (0 if is_over else many[at])
    return with_ends.given[-1]


@settings(SETTINGS, max_examples=60)
@given(clause=clauses() | timely(), table=tables(), data=st.data())
def test_windows_of_partitions_that_end(clause: str, table: Table, data: st.DataObject) -> None:
    clause = re.sub(r"ORDER BY o( DESC)?( NULLS (FIRST|LAST))?", "ORDER BY m, o", clause)
    if "PARTITION BY" not in clause:
        return
    sql = f"SELECT *, {AGGREGATES} FROM t WINDOW BY w AS {clause}"
    plan, rows = planned(sql, table, {f"__aggregate{number}": kind for number, kind in enumerate(RESULTS)})
    growing, placed = growing_of(plan, rows)
    step_of = data.draw(micro_batches_of(rows))
    known = frontiers(sql, table, rows, step_of, data.draw(st.integers(0, 1)))
    found = ends_change_nothing(growing, placed, data, known, step_of)
    assert found == Counter(str(_key(row)) for row in unsliced(plan, rows))


@settings(SETTINGS, max_examples=60)
@given(
    patterns, DEFINED, partitions, skips, st.sampled_from(["one", "all", "unmatched"]),
    st.none() | st.integers(0, 4), st.data(),
)  # fmt: skip
def test_matches_of_partitions_that_end(tree, conditions, rows, skip, shown, within, data):
    plan = plan_of(tree, conditions, skip, all_rows=shown != "one", with_unmatched=shown == "unmatched")
    plan = limited(plan, within)
    table, bounds = table_of(rows)
    counts = np.diff(bounds)
    table = table.select(["x", "one", "none"])
    table = table.append_column("__p0", pa.array(np.repeat(np.arange(len(rows)), counts)))
    table = table.append_column("t", pa.array(np.arange(table.num_rows)))

    def whole() -> list[str]:
        batches = match_recognize(plan, table, bounds)
        return [str(_key(row)) for batch in batches for row in batch.to_pylist()]

    expected = outcome(whole)
    if expected in FAILURES:
        return
    growing = Growing(plan, ("__p0",), (SortKey("t"),), ("x", "t", "one", "none"))
    found = ends_change_nothing(
        growing, table, data, lambda _: NOTHING_KNOWN, data.draw(micro_batches_of(table))
    )
    assert found == Counter(expected)
