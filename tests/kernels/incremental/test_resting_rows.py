"""Rows of a window that rest: what enters and leaves is the same, and so is what is stored."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.incremental.test_stages import SCHEMA, folded, frontiers, instants, meant, rows, told
from windrow.kernels.incremental import (
    PER_MICRO_BATCH,
    BracketWindow,
    InputState,
    Times,
    WindowInput,
    changes,
)
from windrow.kernels.incremental.bracket_windows import resting_rows

lengths = st.just("t"), st.none() | st.integers(1, 9), st.none() | st.integers(1, 4)
by_time = st.builds(BracketWindow, *lengths)
by_rows = st.builds(BracketWindow, *lengths, st.integers(1, 3), st.sampled_from([("k",), ("k", "v")]))


def at(number, found):
    """The rows of a micro-batch."""
    columns = [list(part) for part in zip(*found, strict=True)] or [[], [], []]
    return pa.table(columns, schema=SCHEMA), number * PER_MICRO_BATCH


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(resting_rows, "BLOCK", 2)
    monkeypatch.setattr(resting_rows, "_LARGEST", 4)
    monkeypatch.setattr(resting_rows, "_MANY", 0)


@pytest.mark.usefixtures("small_blocks")
@settings(deadline=None, max_examples=200)
@given(by_time | by_rows, rows, frontiers, st.sets(st.integers(0, 5)))
def test_rows_that_rest_enter_and_leave_as_others(window, rows, cuts, restarts):
    side, chunks, found, since, rested = WindowInput("w", window, SCHEMA), {}, {}, None, 0
    state = InputState.nothing(side)
    for number, until in enumerate(cuts):
        times = Times(since, until)
        now = [row for row in rows if row[2] < until and (since is None or row[2] >= since)]
        state = state.with_arrivals(*at(number, now)).advanced(side, times)
        found |= told(changes(side.moving(state.retained, times, ["k", "v"]), times))
        state, new = state.after(side, times).merged(number)
        rested += len(state.resting)
        chunks |= new
        whole = state.awake()
        assert state.count == int(whole.retained.alive.sum())
        assert state.oldest("t") == min(
            (row["t"] for row in whole.retained.rows.filter(pa.array(whole.retained.alive)).to_pylist()),
            default=None,
        )
        again = InputState.read(side, state.chunks, (chunks[one] for one in state.chunks), until)
        assert contents(again) == contents(state)
        state = again if number in restarts else state
        since = until
    there = meant(window, rows)

    def relation(instant):
        return [row[:2] for row, (enter, leave) in zip(rows, there, strict=True) if enter <= instant < leave]

    assert found == folded(relation, instants(there))


def contents(state):
    """The rows that are retained, with their times."""
    retained = state.awake().retained
    places = np.flatnonzero(retained.alive)
    times = zip(retained.enter[places].tolist(), retained.leave[places].tolist(), strict=True)
    values = retained.rows.take(pa.array(places)).to_pylist()
    return sorted(repr((*row.values(), *time)) for row, time in zip(values, times, strict=True))


def test_a_micro_batch_looks_at_what_moves(monkeypatch):
    monkeypatch.setattr(resting_rows, "BLOCK", 100)
    side = WindowInput("w", BracketWindow("t", 100_000), SCHEMA)
    state, looked, since = InputState.nothing(side), [], None
    for number in range(400):
        until = (number + 1) * 1000
        arrived = [(None, number, number * 1000 + 100 * one) for one in range(10)]
        times = Times(since, until)
        state = state.with_arrivals(*at(number, arrived)).advanced(side, times)
        looked.append(len(state.retained))
        state, _ = state.after(side, times).merged(number)
        since = until
    assert state.count == 1000, "those of a hundred micro-batches"
    assert max(looked[200:]) <= 2 * 100 + 100 + 2 * 10


@pytest.mark.parametrize("length", [None, 1_000_000])
def test_a_micro_batch_looks_at_the_rows_of_its_partitions(monkeypatch, length):
    monkeypatch.setattr(resting_rows, "BLOCK", 50)
    monkeypatch.setattr(resting_rows, "_LARGEST", 2000)
    side = WindowInput("w", BracketWindow("t", length, rows=10, partition=("v",)), SCHEMA)
    state, looked, blocks, since = InputState.nothing(side), [], [], None
    for number in range(1200):
        until = (number + 1) * 1000
        arrived = [(None, number % 800 if number % 2 else 0, number * 1000 + 100 * one) for one in range(10)]
        times = Times(since, until)
        state = state.with_arrivals(*at(number, arrived)).advanced(side, times)
        looked.append(len(state.retained))
        state, _ = state.after(side, times).merged(number)
        blocks.append(len(state.resting))
        assert all(sum(block.there) == len(block) for block in state.resting)
        since = until
    assert state.count == 10 + 10 * 400
    assert max(looked[100:]) <= 2 * (2 * 50 + 10 + 10 + 10)
    assert max(blocks) <= 12
