"""How much memory this process, Spark's Java machine and its Python workers take, as Linux reports it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

__all__ = ["WorkerMemory", "below", "resident", "resident_of"]

_INTERVAL = 0.25
_PROC = Path("/proc")
_DAEMONS = ("pyspark.daemon", "windrow.spark.runtime.worker_daemon")


class WorkerMemory:
    """Watches the Python workers below this process while a block runs.

    A worker's peak is kept by the kernel, so only workers that live for less than an interval are missed.
    Start Spark afresh for each figure: a worker's peak is that of its life, and workers are reused.
    """

    def __init__(self) -> None:
        self.peaks: dict[int, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> WorkerMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._look()

    @property
    def megabytes(self) -> float:
        """The peak of the worker that took most."""
        return max(self.peaks.values(), default=0) / 1024

    def _watch(self) -> None:
        while not self._stop.wait(_INTERVAL):
            self._look()

    def _look(self) -> None:
        for pid in _workers():
            kilobytes = _status(pid, "VmHWM")
            self.peaks[pid] = max(self.peaks.get(pid, 0), kilobytes)


def resident() -> tuple[float, float]:
    """The megabytes that are in memory of this process, and of the Java machine below it."""
    parents = {int(entry.name): _parent(entry) for entry in _PROC.iterdir() if entry.name.isdigit()}
    java = [
        pid
        for pid in parents
        if _is_below(pid, os.getpid(), parents) and _read(_PROC / str(pid) / "comm").strip() == "java"
    ]
    return _status(os.getpid(), "VmRSS") / 1024, sum(_status(pid, "VmRSS") for pid in java) / 1024


def below(ancestor: int | None = None) -> dict[int, str]:
    """The commands of the processes that a process, by default this one, has started, and of theirs."""
    parents = {int(entry.name): _parent(entry) for entry in _PROC.iterdir() if entry.name.isdigit()}
    above = os.getpid() if ancestor is None else ancestor
    return {pid: _read(_PROC / str(pid) / "cmdline") for pid in parents if _is_below(pid, above, parents)}


def resident_of(pid: int | None = None) -> float:
    """The megabytes of a process, by default this one, that are in memory."""
    return _status(os.getpid() if pid is None else pid, "VmRSS") / 1024


def _workers() -> list[int]:
    """The processes below this one that are a daemon of Spark's Python workers, or forked from one."""
    parents = {int(entry.name): _parent(entry) for entry in _PROC.iterdir() if entry.name.isdigit()}
    return [pid for pid in parents if _is_below(pid, os.getpid(), parents) and _is_pyspark(pid)]


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def _parent(entry: Path) -> int:
    # The name of the program, in brackets, may hold anything.
    fields = _read(entry / "stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _is_pyspark(pid: int) -> bool:
    line = _read(_PROC / str(pid) / "cmdline")
    return any(daemon in line for daemon in _DAEMONS)


def _status(pid: int, name: str) -> int:
    """A line of what Linux tells of a process, in kilobytes; 0 if it has ended."""
    for line in _read(_PROC / str(pid) / "status").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:  # the process has ended
        return ""
