"""Two checkouts in turns: whether what is compiled is as fast as in another version of Windrow.

    this checkout ─▶ a process with its own Spark ─┐
    the other     ─▶ a process with its own Spark ─┴▶ a query here, then there, and so on ─▶ ratios

Both processes run the queries of this file, which are in SQL, over the same Parquet file; only the package
that they import differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import IO

from benchmarks.data import EVEN, ROOT
from benchmarks.pattern_queries import ALTERNATION, FUNNEL, HARD, NESTED, SHAPES
from benchmarks.queries import LABEL, SESSION, TUMBLING, TUMBLING_WEEK, UNBOUNDED, Query

__all__ = ["COMPILED", "Against", "as_fast", "compared", "in_turns"]

COMPILED: dict[str, Query] = {
    "unbounded": UNBOUNDED,
    "tumbling": TUMBLING,
    "week": TUMBLING_WEEK,
    "session": SESSION,
    "label": LABEL,
    "shapes": SHAPES,
    "funnel": FUNNEL,
    "kinds": ALTERNATION,
    "nested": NESTED,
    "hard": HARD,
}
"""Windows and patterns whose search is compiled, by their names."""

Seconds = Callable[[str], float]
"""How long a query takes, by its name."""


@dataclass(frozen=True)
class Against:
    """A query's best times in two checkouts."""

    name: str
    here: float
    there: float

    @property
    def speed(self) -> float:
        """The speed of this checkout in that of the other: below 1 it is slower."""
        return self.there / self.here


def in_turns(names: Sequence[str], here: Seconds, there: Seconds, rounds: int) -> list[Against]:
    """The best times of so many rounds, which each begin with the other one; a first run is not counted."""
    found = []
    for name in names:
        times: dict[bool, list[float]] = {True: [], False: []}
        for number in range(rounds + 1):
            for is_here in (True, False) if number % 2 else (False, True):
                seconds = (here if is_here else there)(name)
                if number:
                    times[is_here].append(seconds)
        found.append(Against(name, min(times[True]), min(times[False])))
    return found


def as_fast(names: Sequence[str], here: Seconds, there: Seconds, rounds: int, least: float) -> list[Against]:
    """As :func:`in_turns`; what is slower than `least` is timed three times as often before that counts.

    Another process on the machine makes one of two equal queries slower as long as it runs.
    """
    found = {one.name: one for one in in_turns(names, here, there, rounds)}
    slower = [one.name for one in found.values() if one.speed < least]
    for again in in_turns(slower, here, there, 3 * rounds):
        first = found[again.name]
        found[again.name] = Against(again.name, min(first.here, again.here), min(first.there, again.there))
    return list(found.values())


def compared(other: Path, names: Sequence[str], places: int, rounds: int, least: float) -> list[Against]:
    """These queries in this checkout and another one."""
    file = EVEN.file(places)
    with ExitStack() as stack:
        here, there = (stack.enter_context(_Checkout(root, file)) for root in (ROOT, other))
        return as_fast(names, here.seconds, there.seconds, rounds, least)


class _Checkout:
    """A process that runs queries with the package of a checkout."""

    def __init__(self, root: Path, file: Path) -> None:
        self.source = (root / "src").resolve()
        path = os.pathsep.join([str(self.source), str(ROOT)])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.against", str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def __enter__(self) -> _Checkout:
        found = Path(self._told()["package"])
        if not found.is_relative_to(self.source):
            raise RuntimeError(f"{self.source} is not what was imported, but {found}")
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe(self.process.stdin).close()
        self.process.wait()

    def seconds(self, name: str) -> float:
        """How long a query takes."""
        into = self._pipe(self.process.stdin)
        into.write(f"{name}\n")
        into.flush()
        return float(self._told()["seconds"])

    def _told(self) -> Mapping[str, str]:
        line = self._pipe(self.process.stdout).readline()
        if not line:
            raise RuntimeError(f"the process of {self.source} has ended")
        told: Mapping[str, str] = json.loads(line)
        return told

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


def _serve(file: str) -> None:
    """Run the queries whose names come, and say how long each took."""
    import windrow  # the checkout's, which PYTHONPATH names

    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what else is printed is no answer
    session = windrow.Session()
    session.register("readings", file)
    print(json.dumps({"package": windrow.__file__}), file=told, flush=True)
    for line in sys.stdin:
        begin = perf_counter()
        frame = session.sql(COMPILED[line.strip()].windrow).df
        frame.write.format("noop").mode("overwrite").save()
        print(json.dumps({"seconds": perf_counter() - begin}), file=told, flush=True)
    session.spark.stop()


if __name__ == "__main__":
    _serve(sys.argv[1])
