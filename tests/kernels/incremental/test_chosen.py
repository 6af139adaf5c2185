"""Rows that are chosen or read as a whole are not copied."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windrow.kernels.chosen import chosen
from windrow.kernels.trace import Trace

ROWS = pa.table({"k": pa.array([3, 1, 2, 4], pa.int64())})


def address(rows):
    """Where the first column is in memory."""
    (chunk,) = [chunk for chunk in rows.column(0).chunks if len(chunk)]
    return chunk.buffers()[1].address


@pytest.mark.parametrize("mask", range(16))
def test_rows_that_follow_each_other_are_not_copied(mask):
    which = np.array([mask >> at & 1 for at in range(4)], bool)
    found = chosen(ROWS, which)
    assert found.equals(ROWS.filter(pa.array(which)))
    places = np.flatnonzero(which)
    if len(places) and places[-1] - places[0] == len(places) - 1:
        assert address(found) == address(ROWS)


def test_no_row_of_no_rows_is_chosen():
    assert chosen(ROWS.slice(0, 0), np.zeros(0, bool)).num_rows == 0


def test_all_rows_of_a_trace_are_not_copied_until_one_is_removed():
    trace = Trace(ROWS.schema, ("k",))
    trace.add(ROWS)
    whole = trace.rows(trace.everything())
    assert whole.equals(ROWS)
    assert address(whole) == address(trace.rows(trace.everything()))
    assert trace.rows(trace.everything()[::-1]).column("k").to_pylist() == [4, 2, 1, 3]
    trace.remove(trace.everything()[:1])
    assert trace.rows(trace.everything()).column("k").to_pylist() == [1, 2, 4]
