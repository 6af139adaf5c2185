"""Changes that wait for a delay are emitted, however a log is cut, as the kernel over whole logs has them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.incremental.test_operated import END, SIDE, counted, cuts, in_step, keyed, rows, table
from windrow.kernels.incremental import Delaying, Times, changes
from windrow.kernels.stored import from_stored, stored
from windrow.kernels.zset.relation import AT, COMPLETE, DIFF, NEVER
from windrow.punctuations.lines import line_of

LINES = {"k": line_of(pa.int64())}
LATER = 3 * END
CHANGES = pa.schema([*SIDE, (AT, pa.int64()), (DIFF, pa.int64())])


def known_by(when, until):
    """When groups are complete, as far as is known before an instant."""

    def since_when(groups):
        found = [when.get(k, NEVER) for k in groups.column("k").to_pylist()]
        return np.array([at if at < until else NEVER for at in found], np.int64)

    return since_when


def passed(when, times):
    """The keys that become complete in a micro-batch."""
    first = -NEVER if times.since is None else times.since
    return [{"k": (k, k + 1)} for k, at in when.items() if k is not None and first <= at < times.until]


@pytest.mark.parametrize("by", [("k",), ("k", "v"), ()])
@given(
    given=rows,
    cuts=cuts,
    delay=st.integers(0, 9),
    complete=st.lists(st.one_of(st.just(NEVER), st.integers(0, LATER - 1)), min_size=3, max_size=3),
    watermark=st.booleans(),
    is_near=st.booleans(),
)
def test_changes_are_emitted_as_over_the_whole_log(by, given, cuts, delay, complete, watermark, is_near):
    when = dict(enumerate(complete)) if watermark and by else {}
    whole = table(SIDE, given)
    done = [when.get(row[0], NEVER) for row in given]
    emitted = keyed("delay", by, origin=delay).rows(whole.append_column(COMPLETE, pa.array(done, pa.int64())))
    delaying, found = Delaying(SIDE, by, delay, LINES if by else {}), []
    for since, until in pairwise([None, *cuts, END, END + 4, LATER]):
        times = Times(since, until)
        come = changes(table(SIDE, in_step(given, times)), times)
        near = passed(when, times) if is_near else None
        found.append(delaying.advance(come, known_by(when, until) if when else None, times, near))
        assert all(at < until for at in found[-1].column(AT).to_pylist())
        assert delaying.due is None or delaying.due >= until
        delaying = from_stored(stored(delaying))
    empty = table(SIDE, [])
    parts = [
        pa.Table.from_batches([batch]).select(empty.column_names).cast(empty.schema) for batch in emitted
    ]
    wanted = changes(pa.concat_tables([empty, *parts]), Times(None, LATER))
    assert counted(pa.concat_tables(found)) == counted(wanted.filter(pc.less(wanted.column(AT), LATER)))


def test_what_is_looked_at_does_not_grow_with_what_waits():
    looked_at = []
    for count in (100, 10_000):
        delaying = Delaying(SIDE, ("k",), 50, LINES)

        def come(first, last, at):
            columns = [*zip(*((k, "a", at, 1) for k in range(first, last)), strict=True)] or [[]] * 4
            return pa.table(
                [pa.array(one, field.type) for one, field in zip(columns, CHANGES, strict=True)], CHANGES
            )

        delaying.advance(come(0, 5, 0), None, Times(None, 1), [])
        delaying.advance(come(5, count, 20), None, Times(1, 21), [])
        assert delaying.due == 50
        before = delaying.looked_at
        told = delaying.advance(come(0, 0, 0), None, Times(21, 51), [])
        assert sorted(told.column("k").to_pylist()) == [0, 1, 2, 3, 4]
        assert set(told.column(AT).to_pylist()) == {50}
        assert delaying.due == 70
        looked_at.append(delaying.looked_at - before)
    assert looked_at == [10, 10]
