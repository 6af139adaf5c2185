"""A short run of what ``make chaos`` does a hundred times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.harness import FORCED, OPERATION, run


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found as Linux tells them")
def test_killed_queries_come_to_the_batch_answer(spark, tmp_path):
    summary = run(spark, tmp_path, 3, seed=1, of_a_round=3, scenarios=["window"], random_kills=["driver"])
    assert summary.is_right, str(summary)
    assert [dict(one.kills) for one in summary.rounds] == [{FORCED: 1, "driver": 1, OPERATION: 1}]
    assert summary.rounds[0].lives == 4
