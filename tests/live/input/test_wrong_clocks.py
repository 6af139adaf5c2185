"""Live queries say when a wrong clock has hit what they read; without Spark's tasks."""

from __future__ import annotations

import time
import warnings
from types import SimpleNamespace

import pytest

from windrow.algebra.time_scale import TimeScale
from windrow.spark.catalog import Catalog
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.reports.wrong_clocks import WrongClocks
from windrow.spark.logs.live_source import LiveSource
from windrow.spark.logs.session_streams import Stream
from windrow.streams import Ordering, Position
from windrow.streams.admission.future import DAY


def test_a_query_that_ran_under_a_wrong_clock_says_once_that_its_time_stands_still():
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda _: "UTC"))
    scales = WrongClocks(session, Catalog())
    live = LiveSource(None, (), Ordering.ordered())
    stream = Stream(None, ("at",), TimeScale("bigint", "MILLISECOND"), live=live)
    now = time.time_ns() // 1000

    def look(at: int) -> None:
        scales.look([(0, "s", stream)], CommittedBatch(1, {"s": Position("")}, counts={"now": at}))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        look(now)
    with pytest.warns(RuntimeWarning, match="its processing time does not advance"):
        look(now + 9 * DAY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        look(now + 9 * DAY)
