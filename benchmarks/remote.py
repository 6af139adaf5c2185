"""Windrow in a process of its own, with a number of cores that only it has, or with fresh workers.

``python -m benchmarks.remote CORES`` reads requests, one a line of JSON, and answers each with a line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

import windrow
from benchmarks.memory import WorkerMemory
from benchmarks.systems import run_to_nowhere
from windrow.spark.runtime.local import local_session

__all__ = ["Remote"]

_ROOT = Path(__file__).parents[1]


class Remote:
    """The other process, as a context manager.

    It and all that it starts, Java and Python, are held to so many cores: with `local[1]` alone, Spark and
    its Python worker would take one each.
    """

    def __init__(self, cores: int) -> None:
        self.cores = cores

    def __enter__(self) -> Remote:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.remote", str(self.cores)],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The end of its input ends the process, and that ends its Java.
        self._process.communicate()

    def run(self, query: str, file: Path) -> tuple[float, float]:
        """The seconds of a query of Windrow's, and the megabytes of the Python worker that took most."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"query": query, "file": str(file)}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process with {self.cores} cores has ended; its error is above")
        seconds, megabytes = json.loads(answer)
        return float(seconds), float(megabytes)


def _serve(cores: int, requests: TextIO, answers: TextIO) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    session = windrow.Session(local_session(master=f"local[{cores}]"))
    for line in requests:
        request = json.loads(line)
        session.register("readings", request["file"])
        with WorkerMemory() as memory:
            begun = time.perf_counter()
            run_to_nowhere(session.sql(request["query"]).df)
            seconds = time.perf_counter() - begun
        answers.write(json.dumps([seconds, memory.megabytes]) + "\n")
        answers.flush()
    session.spark.stop()


if __name__ == "__main__":
    # Whatever Java writes to standard output is not to be taken for an answer.
    own_output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _serve(int(sys.argv[1]), sys.stdin, own_output)
