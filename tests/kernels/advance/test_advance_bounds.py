"""What growing sequences promise: later steps give nothing before the least rowtime that was told."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.advance.test_advance import MATCHES
from tests.kernels.in_memory import Table, bounds_of, planned
from tests.kernels.in_steps import NOTHING_KNOWN, frontiers, growing_of, limited, micro_batches_of, timely
from tests.kernels.random_patterns import outcome, plan_of, table_of
from tests.kernels.windows.test_window_by_property import AGGREGATES, RESULTS, SETTINGS, clauses, tables
from windrow.kernels.advance import Frontier, Growing, advance, least_open
from windrow.kernels.patterns.pattern_plan import STATE, Navigation
from windrow.kernels.slices.predicate_analysis import own_side
from windrow.kernels.sorting import SortKey
from windrow.kernels.window_plan import FieldOutput, WindowPlan

_TIME = "__time"
_STEP = 1000
"""How far the rowtimes of a step's rows lie behind those of the step before."""

Told = list[tuple[int, list[int]]]
"""Of each step the instant that was told before it, and the rowtimes of what it gave."""


def told(growing: Growing, steps: list[tuple[pa.Table, Frontier | None, int]]) -> Told:
    """The steps: rows that come, what is known of later ones, and the least rowtime that those may have."""
    kept, promised, found = None, 0, []
    for new_rows, frontier, until in steps:
        batches, kept = advance(growing, kept, new_rows, frontier)
        found.append((promised, [value for batch in batches for value in batch.column(_TIME).to_pylist()]))
        least = least_open(kept, _TIME)
        now = until if least is None else min(until, least.as_py())
        assert now >= promised
        promised = now
    return found


def assert_kept(found: Told) -> None:
    for promised, given_times in found:
        assert all(value is None or value >= promised for value in given_times), found


def labelled(plan: WindowPlan) -> WindowPlan:
    """The clause that also gives the rowtime of each label row."""
    shown = FieldOutput(_TIME, own_side(plan), _TIME)
    at = len(plan.outputs)
    fields = [*plan.result]
    fields.insert(at, pa.field(_TIME, pa.int64()))
    return replace(plan, outputs=(*plan.outputs, shown), result=pa.schema(fields))


@settings(SETTINGS, max_examples=40)
@given(clause=clauses() | timely(), table=tables(), data=st.data())
def test_no_window_is_before_what_was_told(clause: str, table: Table, data: st.DataObject) -> None:
    clause = re.sub(r"ORDER BY o( DESC)?( NULLS (FIRST|LAST))?", "ORDER BY m, o", clause)
    sql = f"SELECT *, {AGGREGATES} FROM t WINDOW BY w AS {clause}"
    types = {f"__aggregate{number}": kind for number, kind in enumerate(RESULTS)}
    plan, rows = planned(sql, table, types)
    step_of = data.draw(micro_batches_of(rows))
    bounds = bounds_of(rows)
    place = np.arange(rows.num_rows) - np.repeat(bounds[:-1], np.diff(bounds))
    growing, placed = growing_of(plan, rows)
    placed = placed.append_column(_TIME, pa.array(step_of * _STEP + place, pa.int64()))
    growing = replace(growing, plan=labelled(plan), columns=(*growing.columns, _TIME))
    known = frontiers(sql, table, rows, step_of, 0)
    last = int(step_of.max(initial=0))

    def run(*, is_early: bool) -> Told:
        steps = []
        for step in range(last + 2):
            new_rows = placed.filter(pa.array(step_of == step))
            of_later = NOTHING_KNOWN if is_early else known(step)
            steps.append((new_rows, of_later if step <= last else None, (step + 1) * _STEP))
        return told(growing, steps)

    found, fewer = run(is_early=False), run(is_early=True)
    assert_kept(found)
    assert_kept(fewer)
    # what is known of later rows is never to the detriment of what is told, nor of when windows come
    assert all(more[0] >= less[0] for more, less in zip(found, fewer, strict=True))
    counts, counts_of_fewer = (np.cumsum([len(times) for _, times in one]) for one in (found, fewer))
    assert (counts >= counts_of_fewer).all()
    assert counts[-1] == counts_of_fewer[-1]


@settings(SETTINGS, max_examples=120)
@MATCHES
def test_no_row_of_a_match_is_before_what_was_told(tree, conditions, rows, skip, shown, within, data):
    plan = limited(
        plan_of(
            tree, conditions, skip,
            all_rows=shown != "one", shows_empty=shown != "omit", with_unmatched=shown == "unmatched",
        ),
        within,
    )  # fmt: skip
    measures = (
        Navigation(_TIME, None, data.draw(st.booleans()), 0, 0, True, _TIME),
        *(measure for measure in plan.measures if isinstance(measure, Navigation)),
    )
    fields = [pa.field("x", pa.int64()), *(pa.field(measure.name, pa.int64()) for measure in measures)]
    plan = replace(plan, measures=measures, result=pa.schema([*fields, (STATE, pa.int32())]))
    table, bounds = table_of(rows)
    counts = np.diff(bounds)
    gaps = st.lists(st.integers(0, 3), min_size=table.num_rows, max_size=table.num_rows)
    time = np.cumsum(data.draw(gaps))
    time = time - np.repeat(time[bounds[:-1]], counts)
    table = table.select(["x", "one", "none"])
    table = table.append_column("p", pa.array(np.repeat(np.arange(len(rows)), counts)))
    for name in ("t", _TIME):
        table = table.append_column(name, pa.array(time))
    table = table.append_column("__place", pa.array(np.arange(table.num_rows)))
    growing = Growing(plan, ("p",), (SortKey("t"), SortKey("__place")), ("x", "one", "none", "t", _TIME))
    until = sorted(data.draw(st.lists(st.integers(0, 20), max_size=4)))
    steps = []
    for low, stop in pairwise([-1, *until, None]):
        is_new = (time >= low) & (time < (np.inf if stop is None else stop))
        frontier = None if stop is None else Frontier(pa.table({"t": [stop]}))
        steps.append((table.filter(pa.array(is_new)), frontier, 10_000 if stop is None else stop))
    outcome(lambda: assert_kept(told(growing, steps)) or [])


def test_an_open_window_holds_back_what_is_told_and_no_other_does():
    """Of sessions, the first that is open holds back what is told."""
    sql = (
        "SELECT s.m FROM t WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY m"
        " START AS s END AS e NEXT AS n WHEN n IS NULL OR n.m - e.m > 2)"
    )
    nulls = dict.fromkeys(("o", "k", "a", "m"))
    kinds = {"o": "int", "k": "int", "a": "int", "m": "int"}
    every = [(1, 1), (2, 2), (1, 3), (1, 9)]  # k, m
    plan, rows = planned(sql, Table(kinds, [nulls | {"k": k, "m": m} for k, m in every]), {})
    growing, _ = growing_of(plan, rows)
    times = next(name for name in rows.column_names if rows.column(name).to_pylist() == [1, 3, 9, 2])
    growing = replace(growing, order=(SortKey(times),))
    names = [name for name in rows.column_names if name not in growing.partition]
    kept, found = None, []
    for low, until in pairwise([0, 2, 5, 6, 7, 12]):
        at = rows.column(times).to_numpy()
        new_rows = rows.filter(pa.array((at >= low) & (at < until)))
        known = {name: [until] for name in names if pa.types.is_integer(rows.column(name).type)}
        known |= {name: [False] for name in names if pa.types.is_boolean(rows.column(name).type)}
        fixed = frozenset(name for name in names if pa.types.is_boolean(rows.column(name).type))
        batches, kept = advance(growing, kept, new_rows, Frontier(pa.table(known), fixed))
        least = least_open(kept, times)
        found.append((sum(batch.num_rows for batch in batches), None if least is None else least.as_py()))
    # at 5 the session of 2 is over, at 6 that from 1 to 3, at 12 that of 9
    assert found == [(0, 1), (1, 1), (1, None), (0, None), (1, None)]
