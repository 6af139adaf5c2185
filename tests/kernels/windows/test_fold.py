"""Minima and maxima of frames of rows, cut short at the edges of partitions, are those of their rows."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.kernels.aggregates.fold import fold


def frames(kind, length, starts, stops):
    """The windows of every row."""
    row = np.arange(len(starts))
    match kind:
        case "following":
            return row, np.minimum(row + length, stops)
        case "preceding":
            return np.maximum(row + 1 - length, starts), row + 1
        case "around":
            return np.maximum(row - length // 2, starts), np.minimum(row + length // 2 + 1, stops)
        case "of any length":
            rng = np.random.default_rng(length)
            return row, np.minimum(row + rng.integers(1, length + 1, len(row)), stops)
    raise AssertionError(kind)


@pytest.mark.parametrize("kind", ["following", "preceding", "around", "of any length"])
@pytest.mark.parametrize("seed", range(40))
def test_extremes_of_frames(kind, seed):
    rng = np.random.default_rng(seed)
    rows, length = int(rng.integers(1, 400)), int(rng.integers(1, 120))
    edges = np.unique([0, rows, *rng.integers(0, rows, int(rng.integers(0, 4)))])
    starts, stops = (np.repeat(ends, np.diff(edges)) for ends in (edges[:-1], edges[1:]))
    low, stop = frames(kind, length, starts, stops)
    if seed % 3 == 0:  # some windows are left out, and the others are in any order
        chosen = rng.permutation(rows)[: max(1, rows // 2)]
        low, stop = low[chosen], stop[chosen]
    values = rng.integers(-50, 50, rows).astype([np.int8, np.int32, np.int64][seed % 3])
    for combine, extreme in ((np.minimum, min), (np.maximum, max)):
        wanted = [extreme(values[one:other].tolist()) for one, other in zip(low, stop, strict=True)]
        assert fold(values, low, stop, combine).tolist() == wanted
