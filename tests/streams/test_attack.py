"""A few of the attacks on producers; ``python -m tests.streams.attack`` tries all of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.streams.attack import KINDS


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, which this system does not do")
@pytest.mark.parametrize("kind", KINDS)
def test_producers_that_are_attacked_lose_nothing_and_damage_nothing(kind):
    done = subprocess.run(
        [sys.executable, "-m", "tests.streams.attack", "--kinds", kind, "--every", "7"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.returncode == 0, done.stderr
    tried = int(done.stdout.split()[0])
    assert tried > 2, "attaching, two inserts and closing take so many operations"
