"""Producers that are killed, stopped, overtaken and without room, at every one of their file operations.

``python -m tests.streams.attack`` tries all of it and prints what it came to. A process attaches as a
producer, inserts twice, closes, and merges the files of the log. Before its first, second, … operation on a
file

kill
    it is killed, and its successor goes on.
race
    it is stopped, another producer inserts and closes, and it goes on: who loses the race for a number of the
    log must take the next, after the other's file.
takeover
    it is stopped until its lease has ended, another process takes its name, inserts and closes, and it
    goes on.
full
    from there on the disk is full, until the producer has been told; it tries again and goes on.

After each, no file of the log is damaged, each row is in once and in order, none that was acknowledged is
missing, and a reader that has read along has seen what those see who read all.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from tests.streams.test_processes import COLUMNS, numbers_of, rows_of
from windrow.errors import ExecutionError
from windrow.streams import NamedStream, Ordering

T = TypeVar("T")

KINDS = ("kill", "race", "takeover", "full")
CALLS = ("link", "fsync", "utime", "unlink", "mkdir")
WRITING = ("xb", "r+b")
LEASE = 0.05
TOLD = 3
"""The exit code of a process that was told of a full disk."""


class Attack:
    """A stream, and what its producers and a reader know of it."""

    def __init__(self, folder: Path) -> None:
        self.stream = NamedStream.create(folder / "s", COLUMNS, "at", ordering=Ordering.unordered())
        self.acknowledged = folder / "acknowledged"
        self.acknowledged.touch()
        self.position = self.stream.start
        self.seen: list[tuple[str, int]] = []
        self.counts: Counter[str] = Counter()

    def tried(self, kind: str, operation: int) -> bool:
        """Attack a process before an operation; whether it came to that."""
        number = signal.SIGKILL if kind == "kill" else signal.SIGSTOP
        child = forked(
            (lambda: self._without_room("p", operation))
            if kind == "full"
            else (lambda: self._produce("p", operation, number))
        )
        _, status = os.waitpid(child, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            other = "p" if kind == "takeover" else "q"
            if kind == "takeover":
                time.sleep(2 * LEASE)
            assert os.waitpid(forked(lambda: self._produce(other)), 0)[1] == 0, "the other goes on"
            os.kill(child, signal.SIGCONT)
            _, after = os.waitpid(child, 0)
            assert after == 0, "who was stopped goes on"
        elif kind == "full":
            assert os.waitstatus_to_exitcode(status) in (0, TOLD), status
        else:
            assert status in (0, signal.SIGKILL), status
        self._hold()
        if status != 0:
            self.counts[kind] += 1
        return status != 0

    def _hold(self) -> None:
        """See that nothing is lost, doubled or damaged."""
        assert self.stream.check() == []
        batch, self.position = self.stream.read(self.position)
        self.seen += rows_of(batch)
        whole, end = self.stream.read(self.stream.start)
        assert (self.seen, self.position) == (rows_of(whole), end), "a reader sees what later ones see"
        rows = numbers_of(self.stream)
        for name, numbers in rows.items():
            assert numbers == list(range(1, len(numbers) + 1)), (name, numbers)
        for line in self.acknowledged.read_text(encoding="utf-8").splitlines():
            name, _, number = line.partition(" ")
            assert int(number) <= len(rows[name]), f"{line} was acknowledged"
        self.counts["rows"] = sum(map(len, rows.values()))
        self.counts["files"] = self.position.number

    def _produce(self, name: str, operation: int = 0, number: signal.Signals | None = None) -> None:
        """Attach, insert twice and close; send oneself a signal before an operation on a file."""
        if number is not None:
            watch(lambda count: count == operation and os.kill(os.getpid(), number))
        stream = NamedStream.open(self.stream.folder)
        stream.expire()
        log = os.open(self.acknowledged, os.O_WRONLY | os.O_APPEND)
        with stream.producer(name, lease=LEASE, wait=60) as p:
            for _ in range(2):
                first = p.next_sequence
                rows = [{"at": n, "producer": name, "number": n} for n in (first, first + 1)]
                p.insert(rows, sequence=first, bound=first)
                os.write(log, f"{name} {first + 1}\n".encode())
        stream.compact(grace=0)

    def _without_room(self, name: str, operation: int) -> None:
        """The same where there is no room from an operation on until somebody has been told."""
        told: list[str] = []

        def full(count: int) -> None:
            if count >= operation and not told:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def again(call: Callable[[], T]) -> T:
            try:
                return call()
            except ExecutionError as error:
                told.append(error.condition)
                if error.condition not in ("DISK_FULL", "STREAM_NOT_FLUSHED"):
                    raise
                return call()

        watch(full, ("link", "fsync", "mkdir"))
        stream = NamedStream.open(self.stream.folder)
        p = again(lambda: stream.producer(name, lease=60))
        log = os.open(self.acknowledged, os.O_WRONLY | os.O_APPEND)
        for _ in range(2):
            first = p.next_sequence
            rows = [{"at": n, "producer": name, "number": n} for n in (first, first + 1)]
            again(lambda first=first, rows=rows: p.insert(rows, sequence=first, bound=first))  # type: ignore[misc]
            os.write(log, f"{name} {first + 1}\n".encode())
        again(p.close)
        again(lambda: stream.compact(grace=0))
        os._exit(TOLD if told else 0)


def watch(act: Callable[[int], object], calls: Iterable[str] = CALLS) -> None:
    """Do something before each operation on a file of this process's first thread, by how many there were."""
    count = 0

    def counted(call: Callable[..., Any], is_one: Callable[..., bool]) -> Callable[..., Any]:
        def counting(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            if threading.current_thread() is threading.main_thread() and is_one(*arguments, **named):
                count += 1
                act(count)
            return call(*arguments, **named)

        return counting

    for name in calls:
        setattr(os, name, counted(getattr(os, name), lambda *_, **__: True))
    opened = counted(Path.open, lambda _, mode="r", *__, **___: mode in WRITING)
    Path.open = opened  # type: ignore[method-assign]


def forked(run: Callable[[], None]) -> int:
    """A process that does something; its number."""
    child = os.fork()
    if child == 0:
        try:
            run()
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    return child


def attacked(folder: Path, kinds: Iterable[str] = KINDS, every: int = 1) -> Counter[str]:
    """Try all attacks, or only before every so many operations; how many there were."""
    attack = Attack(folder)
    for kind in kinds:
        operation = 1
        while attack.tried(kind, operation):
            operation += every
    return attack.counts


def main() -> None:
    """Print what the attacks came to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--every", type=int, default=1, help="try every so many operations only")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole = attacked(Path(folder), arguments.kinds, arguments.every)
    tried = ", ".join(f"{whole[kind]} {kind}" for kind in arguments.kinds)
    print(f"{sum(whole[kind] for kind in KINDS)} attacks: {tried}")
    print(
        f"{whole['rows']} rows in {whole['files']} files: each row in once and in order, none lost that was"
    )
    print("acknowledged, no file damaged")


if __name__ == "__main__":
    main()
