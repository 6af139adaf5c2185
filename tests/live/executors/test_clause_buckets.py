"""Buckets of WINDOW BY and MATCH_RECOGNIZE give what the whole log gives, however it is cut and restarted.

Without Spark: what Spark adds is in `test_executors_clauses.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.sql.types import IntegerType, LongType

from tests.kernels.in_memory import Table, planned, unsliced
from tests.kernels.in_memory import given as rows_emitted
from tests.kernels.in_steps import DEFINED, frontiers, growing_of, limited, micro_batches_of, timely
from tests.kernels.random_patterns import patterns, plan_of, table_of
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
from tests.live.buckets import Stored
from tests.live.clauses.test_touched import KEYS, composed, many, small_chunks
from windrow.algebra.time_scale import TimeScale
from windrow.kernels.advance import Growing
from windrow.kernels.incremental import Program, ProgramFragment
from windrow.kernels.patterns.match_recognize import match_recognize
from windrow.kernels.patterns.pattern_plan import Duration
from windrow.kernels.sorting import SortKey
from windrow.spark.live.executors import bucket as buckets_of
from windrow.spark.live.executors.as_bytes import from_bytes
from windrow.spark.live.executors.bucket import advanced
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.spark.live.executors.bucket_task import BucketTask, TaskSide, TaskStream
from windrow.spark.live.executors.buckets.clause import BucketClause
from windrow.spark.live.executors.input.packing import BUCKET, DATA, NOTE, pack
from windrow.spark.live.executors.unpacking import is_of_rows
from windrow.spark.live.operators.clause_operator import ClauseKernel
from windrow.spark.logs.session_streams import ROWTIME
from windrow.streams import FOREVER, Ordering

__all__ = ["small_chunks"]

_AT, _ARRIVED, _BOUND = "at", "came", "bound"
SECONDS = TimeScale("bigint", "SECONDS")


def task_of(kernel, rows, lag, count):
    """What tasks are told of a clause over rows that have its columns."""
    columns = {name: name for name in rows.column_names}
    fragment = ProgramFragment(0, (0,), rows.schema, {0: frozenset(columns)}, chosen=tuple(columns))
    waiting = rows.schema.append(pa.field(ROWTIME, pa.int64()))
    rising = tuple(kernel.rising)
    work = BucketClause(kernel, Program((), (fragment,)), waiting, (ROWTIME, *rising), "w", {})
    stream = TaskStream("s", 0, Ordering.lagging(lag), 1, _AT, _ARRIVED, _BOUND, columns)
    side = TaskSide(0, columns, kernel.growing.partition, True)
    task = BucketTask("query", (stream,), (side,), work, (), None, None, tuple(range(count)))
    return cloudpickle.loads(cloudpickle.dumps(task))  # as it travels


def entries_of(rows, rowtimes, lag, data):
    """The rows as they come, none of them late, and a promise that nothing follows."""
    late_by = data.draw(st.lists(st.integers(0, lag), min_size=rows.num_rows, max_size=rows.num_rows))
    order = np.argsort(rowtimes + np.array(late_by, np.int64), kind="stable")
    whole = rows.append_column(_AT, pa.array(rowtimes, pa.int64()))
    whole = whole.append_column(_BOUND, pa.nulls(rows.num_rows, pa.int64())).take(pa.array(order))
    end = pa.table({_AT: pa.nulls(1, pa.int64()), _BOUND: pa.array([FOREVER])})
    whole = pa.concat_tables([whole, end], promote_options="default")
    return whole.append_column(_ARRIVED, pa.array(np.arange(whole.num_rows)))


def emitted(kernel, rows, rowtimes, data):
    """What the buckets emit in all, row by row."""
    lag, count = data.draw(st.integers(0, 2)), data.draw(st.integers(1, 4))
    entries, task = entries_of(rows, rowtimes, lag, data), task_of(kernel, rows, lag, count)
    cuts = data.draw(st.lists(st.integers(0, entries.num_rows), max_size=3).map(sorted))
    forget = data.draw(st.sets(st.integers(0, 3), max_size=2))
    stores, accounts, found = {}, {}, []
    used = 0
    for number, (low, high) in enumerate(pairwise([0, *cuts, entries.num_rows])):
        parts = [entries.slice(low, high - low)] if high > low else []
        packed = [
            packet
            for at, part in enumerate(parts)
            for batch in pack(task, part.to_batches(), at)
            for packet in batch.to_pylist()
        ]
        if number in forget:
            buckets_of.RECENT.clear()
        for own in sorted({packet[BUCKET] for packet in packed}):
            packets = [(packet[NOTE], packet[DATA]) for packet in packed if packet[BUCKET] == own]
            for note, part in advanced(task, stores.setdefault(own, Stored()), packets):
                account = BucketAccount.read(note)
                if account is not None:
                    accounts[own] = account
                    used += account.used
                elif is_of_rows(note):
                    found += from_bytes(part).to_batches()
    assert used == rows.num_rows
    assert all(one.retained == {0: 0} and one.waiting == {0: 0} for one in accounts.values())
    return found


def counted(batches):
    return Counter(str(_key(row)) for batch in batches for row in rows_emitted(batch))


@settings(SETTINGS, max_examples=60)
@given(clause=st.one_of(clauses(), timely(), timely()), table=tables(), data=st.data())
def test_windows_of_buckets_are_those_of_the_whole_log(clause, table, data):
    clause = re.sub(r"ORDER BY o( DESC)?( NULLS (FIRST|LAST))?", "ORDER BY m, o", clause)
    sql = f"SELECT {data.draw(st.sampled_from(['*, ', '']))}{AGGREGATES} FROM t WINDOW BY w AS {clause}"
    plan, rows = planned(sql, table, {f"__aggregate{number}": kind for number, kind in enumerate(RESULTS)})
    wanted = Counter(str(_key(row)) for row in unsliced(plan, rows))
    growing, placed = growing_of(plan, rows)
    rowtimes = data.draw(micro_batches_of(rows))
    # what is known of a rowtime that rises is told of it; without one, rows come in steps
    known = frontiers(sql, table, rows, rowtimes, 0)(0)
    rising = [
        name for name in known.values.column_names if name in rows.column_names and name not in known.fixed
    ]
    if rising:
        rowtimes = rows.column(rising[0]).to_numpy().astype(np.int64)
    kinds = {
        name: IntegerType() if rows.schema.field(name).type == pa.int32() else LongType() for name in rising
    }
    kernel = ClauseKernel(
        replace(growing, partition=KEYS), kinds, known.fixed if rising else frozenset(), SECONDS
    )
    keyed = composed(data, placed, growing.partition)
    assert counted(emitted(kernel, keyed, rowtimes, data)) == wanted


@settings(SETTINGS, max_examples=60)
@given(
    patterns,
    DEFINED,
    many,
    st.sampled_from(["one", "all", "unmatched"]),
    st.sampled_from(["within", "duration", "all matches", "none"]),
    st.data(),
)
def test_matches_of_buckets_are_those_of_the_whole_log(tree, conditions, rows, shown, limit, data):
    within = data.draw(st.integers(0, 2))
    plan = plan_of(tree, conditions, all_rows=shown != "one", with_unmatched=shown == "unmatched")
    plan = limited(plan, within if limit == "within" else None)
    if limit == "duration":
        plan = replace(plan, duration=Duration("t", "due"))
    if limit == "all matches":
        plan = replace(plan, every=True)
    table, bounds = table_of(rows)
    table = table.select(["x", "one", "none"])
    table = table.append_column("p", pa.array(np.repeat(np.arange(len(rows)), np.diff(bounds))))
    begins = data.draw(st.lists(st.integers(0, 4), min_size=len(rows), max_size=len(rows)))
    time = np.arange(table.num_rows) - np.repeat(bounds[:-1] - begins, np.diff(bounds))
    table = table.append_column("t", pa.array(time)).append_column("due", pa.array(time + 1 + within))
    wanted = counted(match_recognize(plan, table, bounds))
    growing = Growing(plan, KEYS, (SortKey("t"),), ("x", "t", "due", "one", "none"))
    kernel = ClauseKernel(growing, {"t": LongType()}, frozenset(), SECONDS)
    assert counted(emitted(kernel, composed(data, table, ("p",)), time, data)) == wanted


class Counting(Stored):
    """A part of the state store that counts the rows that are read and written."""

    def __init__(self):
        super().__init__()
        self.read_rows = self.written_rows = 0

    def read(self, name, number):
        data = super().read(name, number)
        self.read_rows += from_bytes(data).num_rows
        return data

    def write(self, name, number, data):
        self.written_rows += from_bytes(data).num_rows
        super().write(name, number, data)


@pytest.mark.parametrize("count", [2_000, 100_000])
def test_a_micro_batch_moves_few_rows_of_the_store_however_many_are_retained(count, monkeypatch):
    for module in ("kernels.incremental.chunking", "kernels.advance.retained_rows"):
        monkeypatch.setattr(f"windrow.{module}.SMALLEST", 512)
    plan = planned(
        "SELECT COUNT(w.o) AS n FROM t WINDOW BY w AS (TYPE SLIDING ORDER BY o START AS s ONLY END AS e"
        " WHEN e.a > s.a)",
        Table(TYPES, [NULLS | {"o": 1, "a": 1}]),
        {"__aggregate0": pa.int64()},
    )
    growing, one = growing_of(*plan)
    kernel = ClauseKernel(replace(growing, partition=("k",)), {}, frozenset(), SECONDS)
    rows = one.take(pa.array(np.zeros(count, np.int64))).append_column("k", pa.array(np.arange(count)))
    task, store = task_of(kernel, rows, 0, 1), Counting()

    def step(rows, at):
        whole = rows.append_column(_AT, pa.array(np.full(rows.num_rows, at)))
        bounds = pa.array([None] * (rows.num_rows - 1) + [at + 1], pa.int64())
        whole = whole.append_column(_BOUND, bounds)
        whole = whole.append_column(_ARRIVED, pa.array(np.full(rows.num_rows, at)))
        packed = [each for batch in pack(task, whole.to_batches(), 0) for each in batch.to_pylist()]
        store.read_rows = store.written_rows = 0
        notes = [note for note, _ in advanced(task, store, [(each[NOTE], each[DATA]) for each in packed])]
        return next(one for one in map(BucketAccount.read, notes) if one is not None)

    assert step(rows, 1).retained == {0: count}
    assert store.written_rows == count
    for at, key in enumerate([3, count - 1, count // 2], 2):
        assert step(rows.slice(key, 1), at).retained == {0: count + at - 1}
        assert store.read_rows == 0
        assert store.written_rows <= 16
