"""A step over the partitions that it touches is one over all, whatever keys, cuts and restarts there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.advance.test_ended import bounds_of
from tests.kernels.in_memory import Table, planned
from tests.kernels.in_memory import given as rows_emitted
from tests.kernels.in_steps import (
    DEFINED,
    NOTHING_KNOWN,
    frontiers,
    growing_of,
    limited,
    micro_batches_of,
    timely,
)
from tests.kernels.random_patterns import A, B, patterns, plan_of, table_of
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
from windrow.kernels.advance import Ended, Frontier, Growing, advance, affected, moves_by_time, retained_rows
from windrow.kernels.advance.retained_rows import RetainedRows
from windrow.kernels.incremental import chunking
from windrow.kernels.patterns.pattern_plan import STATE, Duration
from windrow.kernels.patterns.tree import Sequence
from windrow.kernels.sorting import SortKey
from windrow.punctuations import Cover, lines_of
from windrow.punctuations.regions import Region
from windrow.spark.live.operators.ended_partitions import key_hashes

KEYS = ("f", "s")


@dataclass
class Files:
    """What a checkpoint has of kept rows."""

    rows: dict[int, pa.Table] = field(default_factory=dict)
    gone: dict[int, pa.Table] = field(default_factory=dict)
    written: int = 0

    def take(self, kept: RetainedRows, number: int) -> None:
        rows, gone = kept.written(number)
        places = {at for one in kept.gone.values() for at in one.rows.filter(one.alive)["chunk"].to_pylist()}
        assert places <= {at for at, chunk in kept.chunks.items() if chunk.count < len(chunk)}
        self.rows = {at: rows.get(at, self.rows.get(at)) for at in kept.chunks}
        self.gone = {at: gone.get(at, self.gone.get(at)) for at in kept.gone}
        self.written = sum(one.num_rows for one in (*rows.values(), *gone.values()))

    def read(self, key: tuple[str, ...]) -> RetainedRows:
        return RetainedRows.read(key, self.rows, self.gone)


@pytest.fixture(scope="module", autouse=True)
def small_chunks():
    """Chunks are of few rows: some are merged, and of some the places of rows that are gone are kept."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (chunking, retained_rows):
            patch.setattr(module, "SMALLEST", 1)
        patch.setattr(chunking, "_FAN", 3)
        yield


def composed(data: st.DataObject, rows: pa.Table, partition: tuple[str, ...]) -> pa.Table:
    """The rows with keys of two columns: zeros of both signs, NaN and NULL."""
    number = np.repeat(
        np.arange(len(bounds_of_keys(rows, partition)) - 1), np.diff(bounds_of_keys(rows, partition))
    )
    floats = [(0.0, -0.0), (float("nan"),), (None,), (1.5,)]
    first = [data.draw(st.sampled_from(floats[at % 4])) for at in number.tolist()]
    second = [[None, "", "a", "b", "c", "d"][at // 4] for at in number.tolist()]
    return rows.append_column("f", pa.array(first, pa.float64())).append_column(
        "s", pa.array(second, pa.string())
    )


def bounds_of_keys(rows: pa.Table, partition: tuple[str, ...]) -> np.ndarray:
    return bounds_of(Growing(None, partition, (), ()), rows)


def held_to_all(
    growing: Growing,
    rows: pa.Table,
    step_of: np.ndarray,
    frontier_of: Callable[[int], Frontier],
    data: st.DataObject,
) -> list[str]:
    """Steps over what they touch, each held to one over all; a closed key brings what is left of its rows."""
    lines = lines_of(rows.select(KEYS).schema)
    closed, bounds = Cover(lines), bounds_of(replace(growing, partition=KEYS), rows)
    count = len(bounds) - 1
    ends = data.draw(st.lists(st.sampled_from([1, 2, 4, *[9] * 5]), min_size=count, max_size=count))
    step_of = np.minimum(step_of, np.repeat(ends, np.diff(bounds)))
    restarts = data.draw(st.sets(st.integers(0, 5)))
    last = int(step_of.max(initial=0)) + 2
    files, kept, whole, before, is_final, told = Files(), RetainedRows(KEYS), None, None, False, []
    for step in range(last + 1):
        new_rows = rows.filter(pa.array(step_of == step))
        frontier = frontier_of(step) if step < last else None
        new = [box_of(rows, lines, int(bounds[at])) for at, end in enumerate(ends) if end == step]
        for box in new:
            closed.add_region(box)
        ended = Ended({name: name for name in KEYS}, closed) if next(iter(closed), None) else None
        given_, whole = advance(growing, whole, new_rows, frontier, ended)
        is_moved = (None if before is None else before.values) != (
            None if frontier is None else frontier.values
        )
        over = key_hashes(new, lines, KEYS) if is_final else None
        moves = is_moved and moves_by_time(growing.plan, frontier)
        own, kept = affected.step_of(growing, kept, new_rows, frontier, ended, over, step, moves=moves)
        assert counted(own.to_batches()) == counted(given_)
        told += counted(given_).elements()
        assert contents(kept) == Counter(map(str, whole.to_pylist()))
        kept, before, is_final = kept.merged(step), frontier, step not in restarts
        files.take(kept, step)
        if not is_final:
            kept = files.read(KEYS)
            assert contents(kept) == Counter(map(str, whole.to_pylist()))
    assert not len(kept)
    return sorted(told)


def box_of(rows: pa.Table, lines, at: int) -> Region:
    one = {name: rows.column(name).slice(at, 1) for name in KEYS}
    return {
        name: None if column.null_count else lines[name].point(lines[name].places(column).tolist()[0])
        for name, column in one.items()
    }


def counted(batches: list[pa.RecordBatch]) -> Counter[str]:
    return Counter(str(_key(row)) for batch in batches for row in rows_emitted(batch))


def contents(kept: RetainedRows) -> Counter[str]:
    table = kept.rows(kept.all())
    return Counter() if table is None else Counter(map(str, table.to_pylist()))


@settings(SETTINGS, max_examples=60)
@given(clause=st.one_of(clauses(), timely(), timely()), table=tables(), data=st.data())
def test_windows_over_the_partitions_touched(clause: str, table: Table, data: st.DataObject) -> None:
    clause = re.sub(r"ORDER BY o( DESC)?( NULLS (FIRST|LAST))?", "ORDER BY m, o", clause)
    if "PARTITION BY" not in clause:
        clause = clause.replace("ORDER BY", "PARTITION BY k ORDER BY", 1)
    shown = data.draw(st.sampled_from(["*, ", ""]))
    sql = f"SELECT {shown}{AGGREGATES} FROM t WINDOW BY w AS {clause}"
    plan, rows = planned(sql, table, {f"__aggregate{number}": kind for number, kind in enumerate(RESULTS)})
    growing, placed = growing_of(plan, rows)
    step_of = data.draw(micro_batches_of(rows))
    known = frontiers(sql, table, rows, step_of, data.draw(st.integers(0, 1)))
    placed = composed(data, placed, growing.partition)
    held_to_all(replace(growing, partition=KEYS), placed, step_of, known, data)


many = st.lists(st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=4), min_size=3, max_size=6)
limits = st.sampled_from(["within", "duration", "all matches", "none"])


@settings(SETTINGS, max_examples=100)
@given(patterns, DEFINED, many, st.sampled_from(["one", "all", "unmatched"]), limits, st.data())
def test_matches_over_the_partitions_touched(tree, conditions, rows, shown, limit, data):
    within = data.draw(st.integers(0, 2))
    plan = plan_of(tree, conditions, all_rows=shown != "one", with_unmatched=shown == "unmatched")
    plan = limited(plan, within if limit == "within" else None)
    if limit == "duration":
        plan = replace(plan, duration=Duration("t", "due"))
    if limit == "all matches":
        plan = replace(plan, every=True)
    if data.draw(st.booleans()):  # which do not wait for the row after them
        result = pa.schema([plan.result.field(name) for name in ("x", STATE)])
        plan = replace(plan, measures=(), result=result)
    table, bounds = table_of(rows)
    table = table.select(["x", "one", "none"])
    table = table.append_column("p", pa.array(np.repeat(np.arange(len(rows)), np.diff(bounds))))
    begins = data.draw(st.lists(st.integers(0, 4), min_size=len(rows), max_size=len(rows)))
    time = np.arange(table.num_rows) - np.repeat(bounds[:-1] - begins, np.diff(bounds))
    table = table.append_column("t", pa.array(time))
    table = table.append_column("due", pa.array(time + 1 + within))
    frontiers_ = sorted(data.draw(st.lists(st.integers(0, 12), min_size=5, max_size=5)))
    step_of = np.searchsorted(frontiers_, time, side="right")
    table = composed(data, table, ("p",))
    growing = Growing(plan, KEYS, (SortKey("t"),), ("x", "t", "due", "one", "none"))

    def known(step: int) -> Frontier:
        return Frontier(pa.table({"t": [frontiers_[min(step, 4)]]}))

    held_to_all(growing, table, step_of, known, data)


def test_which_partitions_time_alone_changes():
    def by_time(clause: str) -> bool:
        table = Table(TYPES, [NULLS | {"o": number, "m": number} for number in range(3)])
        sql = f"SELECT COUNT(*) AS n FROM t WINDOW BY w AS (TYPE {clause})"
        plan, rows = planned(sql, table, {"__aggregate0": pa.int64()})
        known = frontiers(sql, table, rows, np.arange(3), 0)
        return moves_by_time(plan, known(1))

    assert by_time("SLIDING ORDER BY m START AS s END AS e NEXT AS f WHEN f.m - e.m > 1 OR f IS NULL")
    assert by_time("SLIDING ORDER BY m LABEL AS l START AS s WHEN l.m - s.m <= 2 END AS e WHEN e = l")
    assert not by_time("SLIDING ORDER BY m START AS s END AS e WHEN e.m - s.m >= 2")
    assert not by_time("SLIDING ORDER BY m START AS s END AS e WHEN e.a < 0")
    assert not by_time("TUMBLING ORDER BY m START AS s WHEN s.a > 0")

    plan, frontier = plan_of(Sequence((A, B)), {}), Frontier(pa.table({"t": [1]}))
    assert not moves_by_time(plan, frontier)
    assert moves_by_time(plan, None), "no row comes any more"
    for timed in (limited(plan, 2), replace(plan, duration=Duration("t", "due"))):
        assert moves_by_time(timed, frontier)
        assert not moves_by_time(timed, NOTHING_KNOWN)


@pytest.mark.parametrize("count", [1_000, 100_000])
def test_what_one_closed_key_costs_does_not_grow_with_the_keys_kept(count, monkeypatch):
    monkeypatch.setattr(retained_rows, "SMALLEST", 512)
    monkeypatch.setattr(chunking, "SMALLEST", 512)
    (plan, rows) = planned(
        "SELECT COUNT(w.o) AS n FROM t WINDOW BY w AS (TYPE SLIDING ORDER BY o START AS s END UNBOUNDED)",
        Table(TYPES, [NULLS | {"o": 1}]),
        {"__aggregate0": pa.int64()},
    )
    growing, placed = growing_of(plan, rows)
    growing = replace(growing, partition=("k",))
    new_rows = placed.take(pa.array(np.zeros(count, np.int64))).append_column("k", pa.array(np.arange(count)))
    gone_through: list[int] = []

    def changed(growing, kept, *rest):
        gone_through.append(0 if kept is None else kept.num_rows)
        return CHANGED(growing, kept, *rest)

    monkeypatch.setattr(affected, "changed", changed)
    files, closed = Files(), Cover(lines_of(new_rows.select(["k"]).schema))
    frontier = Frontier(pa.table({"nothing": [0]}))
    step = partial(affected.step_of, growing)
    told, kept = step(RetainedRows(("k",)), new_rows, frontier, None, None, 0, moves=False)
    kept = kept.merged(0)
    files.take(kept, 0)
    assert (told.num_rows, len(kept), files.written) == (0, count, count)
    written = []
    for number, key in enumerate([3, count - 1, 7, count // 2], 1):
        box = {"k": closed.lines["k"].point(key)}
        closed.add_region(box)
        over = key_hashes([box], closed.lines, ("k",))
        told, kept = step(kept, new_rows[:0], frontier, Ended({"k": "k"}, closed), over, number, moves=False)
        kept = kept.merged(number)
        files.take(kept, number)
        written.append(files.written)
        assert (told.num_rows, len(kept), len(files.read(("k",)))) == (1, count - number, count - number)
    assert max(gone_through) <= 5, "of 100,000 keys, few share a part of their hashes"
    assert max(written) <= 8


CHANGED = affected.changed
