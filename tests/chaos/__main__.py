"""``python -m tests.chaos``: kills live queries, and exits with 1 if one gave another answer than batch."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos.harness import run
from tests.chaos.life import CONF
from tests.chaos.processes import kill, tree
from tests.chaos.scenarios import SCENARIOS
from windrow.spark.runtime.local import local_session


def main() -> int:
    """Run."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--of-a-round", type=int, default=6, help="kills before a query is run to its end")
    parser.add_argument("--at-once", type=int, default=1, help="queries that run beside each other")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="the queries; all by default")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _ended)
    folder = Path(tempfile.mkdtemp(prefix="windrow-chaos-"))
    spark = local_session(master="local[1]", app_name="chaos", conf=CONF)
    summary = run(
        spark,
        folder,
        given.kills,
        given.seed,
        of_a_round=given.of_a_round,
        at_once=given.at_once,
        is_long=given.kills >= 20,
        scenarios=given.only or tuple(SCENARIOS),
        tell=lambda text: print(text, flush=True),
    )
    print(summary)
    if not summary.is_right:
        print(f"streams, checkpoints and files are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def _ended(*_: object) -> None:
    """Leave no process behind."""
    kill(*(pid for pid in tree(os.getpid()) if pid != os.getpid()))
    os._exit(143)


if __name__ == "__main__":
    sys.exit(main())
