"""Takes a log in steps, as a live query does, cut anywhere and killed after some of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from pyspark.sql import DataFrame

from windrow.spark.live import LivePlan
from windrow.spark.live.micro_batches.host import MicroBatches
from windrow.testing import playing

__all__ = ["in_micro_batches", "law", "rows_of", "total"]


def in_micro_batches(
    plan: LivePlan,
    folder: Path,
    cuts: Sequence[float],
    kills: set[int],
    frames: Callable[[MicroBatches, float, float], Mapping[str, DataFrame]],
    envelope: str = "diff",
) -> tuple[list[pa.Table], Mapping[str, Any]]:
    """What a query gives, step by step, and its progress after the last.

    Parameters
    ----------
    cuts
        Where the logs are cut, from 0 to 1.
    kills
        The steps after whose output the process ends.
    frames
        The entries of each stream between two cuts.
    envelope
        The form of the changes.
    """

    def between(low: float, high: float) -> playing.Frames:
        return lambda steps: frames(steps, low, high)

    steps = [between(low, high) for low, high in pairwise([0, *sorted(cuts), 1])]
    played = playing.in_micro_batches(plan, folder / "checkpoint", steps, kills, envelope)
    return list(played.tables.values()), played.progress


def law(examples: int) -> settings:
    """So many examples, the same in every run; or as many other ones as `WINDROW_EXAMPLES` says."""
    asked = os.environ.get("WINDROW_EXAMPLES")
    return settings(
        deadline=None,
        max_examples=int(asked or examples),
        derandomize=asked is None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def total(tables: Sequence[pa.Table]) -> Counter:
    """The changes of each row at each instant, added up."""
    found: Counter = Counter()
    for one in tables:
        for *values, diff, at in zip(*(column.to_pylist() for column in one.columns), strict=True):
            found[at, tuple(values)] += diff
    return found


def rows_of(tables: Sequence[pa.Table]) -> Counter:
    """How often each row is there."""
    return Counter(str(row) for one in tables for row in one.to_pylist())
