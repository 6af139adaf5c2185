"""What windows of closed keys need not hold: without it a query changes as it should."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.incremental.test_stages import (
    LAST,
    SCHEMA,
    as_left,
    as_right,
    folded,
    frontiers,
    groups_of_windows,
    instants,
    meant,
    pairs_of_windows,
    rows,
    told,
    windows,
)
from windrow.kernels.advance import Ended
from windrow.kernels.incremental import BracketWindow, TimedRows, Times, changes
from windrow.kernels.incremental.bracket_windows.closed_rows import closed_alone, closed_pairs
from windrow.kernels.zset import ENTER, LEAVE
from windrow.punctuations import Cover, lines_of

LINES = lines_of(SCHEMA)
closes = st.lists(st.booleans(), min_size=40, max_size=40)


def ended(key: str, rows: list[tuple], until: int, promised: list[bool]) -> Ended:
    """The values of a key that no row from an instant on has, as far as that is promised by then."""
    place = SCHEMA.names.index(key)
    open_ = {row[place] for row in rows if row[2] >= until}
    cover = Cover({key: LINES[key]})
    for at, value in enumerate(["a", "b", None] if key == "k" else [0, 1, 2]):
        if value not in open_ and promised[(until + 13 * at) % len(promised)]:
            span = None if value is None else LINES[key].point(LINES[key].place(value))
            cover.add_region({key: span})
    return Ended({key: key}, cover)


class Side:
    """A window that is held from step to step."""

    def __init__(self, window: BracketWindow, rows: list[tuple], promised: list[bool]) -> None:
        self.window, self.all, self.promised = window, rows, promised
        self.marked = (window.partition,) if window.partition else ()
        self.retained = TimedRows.of(
            SCHEMA.empty_table(), *(np.zeros(0, np.int64) for _ in range(3)), self.marked
        )

    def take(self, times: Times) -> TimedRows:
        since = -LAST if times.since is None else times.since
        now = [row for row in self.all if since <= row[2] < times.until]
        table = pa.table([list(part) for part in zip(*now, strict=True)] or [[], [], []], schema=SCHEMA)
        self.retained = self.window.with_new(self.retained, table, np.zeros(len(now), np.int64), self.marked)
        return self.retained

    def leave(self, times: Times) -> None:
        self.retained = self.window.left(self.retained, times)

    def drop(self, gone: np.ndarray, times: Times) -> pa.Table:
        """Drop rows; they, with their times."""
        rows = self.retained.entered(gone, times, SCHEMA.names)
        self.retained = self.retained.where(~gone)
        return rows

    def over(self, times: Times, key: str = "k") -> Ended:
        return ended(key, self.all, times.until, self.promised)

    def partitions(self, times: Times) -> Ended | None:
        return self.over(times, self.window.partition[0]) if self.window.partition else None


def steps(cuts: list[int]) -> list[Times]:
    return [Times(since, until) for since, until in zip([None, *cuts], cuts, strict=False)]


@settings(deadline=None)
@given(windows, rows, frontiers, closes)
def test_rows_that_never_leave_are_not_held(window, rows, cuts, promised):
    side, found = Side(window, rows, promised), {}
    for times in steps(cuts):
        found |= told(changes(side.take(times).moving(times, ["k", "v"]), times))
        side.leave(times)
        gone = closed_alone(side.retained, window, side.partitions(times), None, None)
        side.retained = side.retained.where(~gone)
    there = meant(window, rows)

    def relation(at):
        return [row[:2] for row, (enter, leave) in zip(rows, there, strict=True) if enter <= at < leave]

    assert found == folded(relation, instants(there))


@settings(deadline=None)
@given(windows, rows, frontiers, closes)
def test_groups_that_are_over_are_not_held(window, rows, cuts, promised):
    side, operator, found = Side(window, rows, promised), groups_of_windows(), {}
    for times in steps(cuts):
        moving = side.take(times).moving(times, SCHEMA.names)
        found |= told(changes(operator.advance([moving], times), times))
        side.leave(times)
        gone = closed_alone(side.retained, window, side.partitions(times), ("k",), side.over(times))
        operator.drop(0, side.drop(gone, times))
    there = meant(window, rows)

    def relation(at):
        groups = {}
        for row, (enter, leave) in zip(rows, there, strict=True):
            if enter <= at < leave:
                groups.setdefault(row[0], []).append(row[1])
        return [(key, sum(values), len(values)) for key, values in groups.items()]

    assert found == folded(relation, instants(there))


@settings(deadline=None, max_examples=200)
@given(windows, windows, rows, rows, frontiers, closes, closes)
def test_rows_whose_pairs_are_over_are_not_held(one, other, left, right, cuts, promised, too):
    sides, operator, found = (Side(one, left, promised), Side(other, right, too)), pairs_of_windows(), {}
    forms = as_left, as_right
    for times in steps(cuts):
        moving = [
            form(side.take(times).moving(times, ["k", "v"])) for side, form in zip(sides, forms, strict=True)
        ]
        found |= told(changes(operator.advance(moving, times), times))
        for side in sides:
            side.leave(times)
        gone = closed_pairs(
            (sides[0].retained, sides[1].retained), (one, other),
            (sides[0].partitions(times), sides[1].partitions(times)),
            (("k",), ("k",)), (sides[1].over(times), sides[0].over(times)),
        )  # fmt: skip
        for at, (side, form, rows_) in enumerate(zip(sides, forms, gone, strict=True)):
            operator.drop(at, form(side.drop(rows_, times).select(["k", "v", ENTER, LEAVE])))
    validity = [meant(side.window, side.all) for side in sides]

    def relation(at):
        alive = [
            [row for row, (enter, leave) in zip(side.all, there, strict=True) if enter <= at < leave]
            for side, there in zip(sides, validity, strict=True)
        ]
        return [(a[0], a[1], b[1]) for a in alive[0] for b in alive[1] if a[0] is not None and a[0] == b[0]]

    assert found == folded(relation, instants(*validity))


def test_nothing_is_held_of_keys_that_are_over():
    promised = [True] * 40
    arrived = [("a", 1, 1), ("b", 2, 2), ("a", 3, 3), (None, 4, 4), ("b", 5, 12)]
    by_key, ever, brief = (
        BracketWindow("t", rows=1, partition=("k",)),
        BracketWindow("t"),
        BracketWindow("t", 20),
    )
    times = Times(None, 10)

    def retained(window):
        side = Side(window, arrived, promised)
        side.take(times)
        side.leave(times)
        return side

    def left(side, gone):
        return [row["k"] for row in side.retained.where(~gone).rows.to_pylist()]

    side = retained(by_key)
    over = side.over(times)
    assert left(side, closed_alone(side.retained, by_key, over, None, None)) == ["b"], "b may be pushed out"
    assert left(side, closed_alone(side.retained, by_key, over, ("k",), over)) == ["b"]
    side = retained(ever)
    assert left(side, closed_alone(side.retained, ever, None, ("k",), over)) == ["b"]
    side = retained(brief)
    assert len(left(side, closed_alone(side.retained, brief, None, ("k",), over))) == 4, (
        "they leave in their time"
    )
    # of two windows, rows without a partner go where none can come, and others if both stay for ever
    nothing = Side(ever, [], promised)
    nothing.leave(times)
    gone = closed_pairs(
        (side.retained, nothing.retained),
        (brief, ever),
        (None, None),
        (("k",), ("k",)),
        (nothing.over(times), over),
    )
    assert left(side, gone[0]) == []
    both = retained(ever), retained(ever)
    gone = closed_pairs(
        (both[0].retained, both[1].retained), (ever, ever), (None, None), (("k",), ("k",)), (over, over)
    )
    assert [left(one, rows_) for one, rows_ in zip(both, gone, strict=True)] == [["b"], ["b"]]
