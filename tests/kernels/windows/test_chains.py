"""Walks along indices: as a loop would go."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.kernels.compiling.chains import last_reached, walk


def loop(following: list[int], entry: int) -> list[int]:
    kept = []
    while entry < len(following):
        kept.append(entry)
        entry = following[entry]
    return kept


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 100, 1000])
@pytest.mark.parametrize("furthest", [1, 3, 40, 2000])
def test_a_walk_is_that_of_a_loop(count: int, furthest: int) -> None:
    random = np.random.default_rng(count + furthest)
    following = np.arange(count) + random.integers(1, furthest + 1, count)
    for entry in {0, count // 3, count}:
        assert walk(following, entry).tolist() == loop(following.tolist(), entry)
    if count:
        expected = [loop(following.tolist(), entry)[-1] for entry in range(count)]
        assert last_reached(following).tolist() == expected
