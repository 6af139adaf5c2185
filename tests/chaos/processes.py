"""The processes of a live query: the driver, its Java machine, and the Python workers of that."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import defaultdict
from pathlib import Path

__all__ = ["born", "children", "command", "kill", "tree"]


def children(of: int) -> list[int]:
    """The processes that a process has started."""
    return _started_by().get(of, [])


def tree(root: int) -> list[int]:
    """A process and all below it, from the lowest on."""
    started = _started_by()
    found, left = [], [root]
    while left:
        pid = left.pop()
        found.append(pid)
        left += started.get(pid, [])
    return found[::-1]


def born(pid: int) -> str:
    """When a process was started: with its number, that tells it from all others; nothing if it has ended."""
    with contextlib.suppress(OSError):
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state == "Z" else rest[18]
    return ""


def command(pid: int) -> str:
    """The words that a process was started with; none if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def kill(*pids: int) -> None:
    """End processes as a power failure would; those that have ended already are no matter."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _started_by() -> dict[int, list[int]]:
    found = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # the name, in brackets, may hold anything; the state and the parent follow it
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(parent)].append(int(path.parent.name))
    return found
