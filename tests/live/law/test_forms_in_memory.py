"""Every form of CQL that runs in memory, over one log that is cut and a process that is killed."""

from __future__ import annotations

import pytest

from tests.live.law import test_law as law
from tests.live.random_logs import ended

S = [
    ("a", 0, 1, 2, 0),
    ("a", 1, 2, 3, 1),
    ("a", 1, 1, 2, 1),
    ("b", 3, 1, 7, 3),
    ("a", 4, 2, 1, 4),
    ("a", 6, 1, 3, 6),
    ("b", 7, 0, 1, 7),
    ("a", 9, 1, 3, 9),
    ("a", 12, 3, 3, 12),
]
T = [
    ("a", 0, 1, 1, 0),
    ("a", 2, 2, 2, 2),
    ("b", 2, 1, 3, 2),
    ("a", 5, 1, 2, 5),
    ("a", 8, None, 1, 8),
    ("a", 13, 1, 3, 13),
]
WINDOWS = ["[RANGE 4 SLIDE 2]", "[ROWS 3 SLIDE 2]", "[RANGE 3]", "[RANGE 2 ON ts]"]
OF_MADE = ["[RANGE 3]", "[ROWS 2]", "[RANGE 4 SLIDE 2]", "[ROWS 3 SLIDE 2]"]


def given(query, windows, views, recorded):
    """A query over windows, what it reads, and which logs are live and recorded."""
    made = [view.format(window) for view, window in zip(views, windows[2:], strict=False)]
    beside = [*made, law.NAMES, law.MOVED]
    return query.format(*windows), beside, recorded


CASES = {
    **{query: given(query, OF_MADE, law.MADE_VIEWS, False) for query in law.OVER_MADE},
    **{query: given(query, WINDOWS, (), True) for query in law.BESIDE_RECORDED},
    **{
        query: given(query, WINDOWS, (), False)
        for query in (*law.AS_THEY_COME, *law.BESIDE_TABLES, *law.STREAMS)
    },
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("interpreted")
def test_cuts_and_kills_change_nothing(spark, tmp_path, name):
    query, before, recorded = CASES[name]
    live = {"s": ended(S)} if recorded else {"s": ended(S), "t": ended(T)}
    beside = {"t": T} if recorded else None
    law.in_memory(spark, tmp_path, live, None, [0.3, 0.55, 0.8], {1}, query, before, beside)
