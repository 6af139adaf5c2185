"""Matches in slices, and row by row as on a stream: what the kernel gives then is what it gives at once.

While a case with patterns runs in batch, each clause's kernel runs three more times in memory, over the rows
that Spark has made for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tests.kernels.in_stages import run
from windrow.errors import ExecutionError
from windrow.kernels.advance import Frontier, Growing, advance
from windrow.kernels.advance import slices as followed
from windrow.kernels.hashing import hashes
from windrow.kernels.packing.shards import Layout, SlicedPartition
from windrow.kernels.patterns.pattern_plan import MatchPlan
from windrow.kernels.patterns.pattern_slices import matches_halo
from windrow.kernels.sorting import cut_codes, sorted_partitions
from windrow.kernels.tasks.fragment import Fragment
from windrow.spark.clauses import matching
from windrow.spark.clauses.join_plan import POSITION

__all__ = ["matches_in_parts"]

_NOTHING_KNOWN = Frontier(pa.table({"__nothing": [0]}))


@contextmanager
def matches_in_parts() -> Iterator[None]:
    """Hold the kernel to itself for every clause with a pattern that is run."""
    run_fragment = matching.run_fragment

    def checked(rows: DataFrame, stage: Fragment, *arguments: Any) -> DataFrame:
        try:
            made = rows.toArrow()
        except PySparkException:  # the run fails too, and its error is the case's
            return run_fragment(rows, stage, *arguments)
        _agree(stage, made)
        return run_fragment(rows, stage, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "run_fragment", checked)
        patch.setattr(followed, "_GUESSED_FROM", 2)
        yield


def _agree(stage: Fragment, rows: pa.Table) -> None:
    plan = stage.plan
    assert isinstance(plan, MatchPlan)
    stage = replace(stage, scan=None, halo=None, layout=Layout(1))
    whole = _outcome(lambda: run(stage, [rows]))
    cut = replace(stage, layout=_cut(stage, rows))
    if followed.is_followed(plan):
        assert _outcome(lambda: run(cut, [rows])) == whole, "slices that follow each other"
    halo = matches_halo(plan)
    if halo is not None:
        assert _outcome(lambda: run(replace(cut, halo=halo), [rows])) == whole, "slices that stand alone"
    if stage.order[0].column != POSITION:  # rows that Spark has numbered beforehand do not come one by one
        assert _outcome(lambda: _streaming(stage, rows)) == whole, "row by row"


def _outcome(run: Callable[[], Iterator[dict[str, object]]]) -> list[str]:
    """The rows in any order, or the error."""
    try:
        return sorted(map(str, run()))
    except ExecutionError as error:
        return [error.condition]


def _cut(stage: Fragment, rows: pa.Table) -> Layout:
    """Every partition in up to three slices."""
    keys, first = hashes(rows, stage.partition), stage.order[0]
    codes = cut_codes(rows.column(first.column), first)
    sequences = []
    for key in np.unique(keys):
        distinct = np.unique(codes[keys == key])
        cuts = distinct[1:][:: max(len(distinct) // 3, 1)][:2]
        if len(cuts):
            sequences.append(SlicedPartition(int(key), tuple(cuts.tolist())))
    return Layout(1, tuple(sequences))


def _streaming(stage: Fragment, rows: pa.Table) -> Iterator[dict[str, object]]:
    """The rows of the result as the clause's come one by one, and then none."""
    assert isinstance(stage.plan, MatchPlan)
    growing = Growing(stage.plan, stage.partition, stage.order, stage.columns)
    order, bounds = sorted_partitions(rows, stage.partition, stage.order)
    ordered = rows if order is None else rows.take(pa.array(order))
    place = np.arange(rows.num_rows) - np.repeat(bounds[:-1], np.diff(bounds))
    kept = None
    for step in range(int(place.max(initial=0)) + 2):
        new_rows = ordered.filter(pa.array(place == step))
        is_last = step > place.max(initial=0)
        given, kept = advance(growing, kept, new_rows, None if is_last else _NOTHING_KNOWN)
        for batch in given:
            yield from batch.to_pylist()
