"""Leases: which process is a producer, and which producers have died.

A producer's leases are numbered files, its *generations*, each claimed by a hard link; the highest is the
one that holds. It is renewed by the file's time. A lease whose time has passed may be followed by the next
generation, of the same producer come back or of whoever logs that it is idle. Entries carry the generation
that they were written under, and readers leave out those of a lower one than they have seen: a process that
slept through its lease cannot slip rows in, and it finds out when it looks whether its lease is still the
highest.

A lease says which one it is, and which file of the log was there when it was taken: who takes the next one
notices a log, or a lease, of another time.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from windrow.errors import InputError, UsageError
from windrow.streams.chain import Place
from windrow.streams.durable_files import claim, flush, writing, written

__all__ = ["Lease", "acquire", "expired", "follow_up", "last", "latest", "lost"]

_LONGEST_NAME = 200
_KEPT = 8
_RELEASED, _ABANDONED = 0, 1  # times of files that no renewal gives


@dataclass(frozen=True)
class Lease:
    """A generation of a producer's leases.

    Attributes
    ----------
    folder
        That of the producer's leases.
    producer
        Its name.
    generation
        From 1 on.
    """

    folder: Path
    producer: str
    generation: int

    @property
    def path(self) -> Path:
        """The file of the lease."""
        return _path(self.folder, self.generation)

    def after(self) -> Place | None:
        """The place in the log after which it was taken; None if it is gone, or does not say.

        Raises
        ------
        InputError
            ``FOREIGN_FILE``.
        """
        holder = _holder(self)
        return None if holder is None else holder.after

    def is_held(self) -> bool:
        """Whether no other has taken the next."""
        with suppress(FileNotFoundError):
            return _latest(self.folder) == self.generation
        return False

    def renew(self) -> None:
        """Hold it for its time from now on."""
        os.utime(self.path)

    def release(self) -> None:
        """Let whoever wants have the next at once: the producer has said all that it had to say."""
        os.utime(self.path, (_RELEASED, _RELEASED))

    def abandon(self) -> None:
        """Let it be expired at once: whoever notices logs that the producer is idle."""
        with suppress(OSError):  # then it expires in its time
            os.utime(self.path, (_ABANDONED, _ABANDONED))


def acquire(
    leases: Path,
    pending: Path,
    producer: str,
    seconds: float,
    after: Place,
    *,
    wait: float = 0.0,
    above: int = 0,
) -> Lease:
    """The lease of a producer, once no other process has it.

    Parameters
    ----------
    leases, pending
        The stream's folders of leases, and of files that are being written.
    producer
        The name.
    seconds
        For how long it holds without being renewed.
    after
        A place that is in the log.
    wait
        For how many seconds to try. Whoever only logs that the producer is idle has the lease for a moment,
        which is waited for in any case.
    above
        A generation that the log knows already: the next is higher, also if the files of leases were lost.

    Raises
    ------
    UsageError
        ``PRODUCER_TAKEN``, ``INVALID_NAME``.
    ExecutionError
        ``DISK_FULL``, ``STREAM_NOT_WRITTEN``.
    """
    folder = leases / _quoted(producer)
    with writing(leases, "lease"):
        folder.mkdir(exist_ok=True)
        flush(leases)
    until = time.monotonic() + wait
    while True:
        generation = max(_latest(folder), above)
        last = Lease(folder, producer, generation)
        holder = _holder(last)
        if holder is None or holder.has_expired():
            lease = follow_up(last, pending, seconds, after)
            if lease is not None:
                return lease
        elif not holder.is_logging and time.monotonic() >= until:
            raise UsageError(
                f"producer {producer} is process {holder.process} on {holder.host}",
                condition="PRODUCER_TAKEN",
                sqlstate="55006",
                hint="use another name, or end that process; its lease expires "
                f"{holder.seconds:g} seconds after it has died",
            )
        else:
            time.sleep(0.02)


def follow_up(
    lease: Lease, pending: Path, seconds: float, after: Place, *, is_logging: bool = False
) -> Lease | None:
    """The generation after a lease that has ended; None if another was faster.

    Parameters
    ----------
    lease
        The one before.
    pending
        The stream's folder of files that are being written.
    seconds
        For how long it holds without being renewed.
    after
        A place that is in the log.
    is_logging
        Whether it is only there to log that the producer is idle.
    """
    following = Lease(lease.folder, lease.producer, lease.generation + 1)
    holder = {
        "producer": following.producer,
        "generation": following.generation,
        "after": [after.number, after.checksum],
        "host": socket.gethostname(),
        "process": os.getpid(),
        "seconds": seconds,
        "is_logging": is_logging,
    }
    content = json.dumps(holder)
    with writing(lease.folder, "lease"):
        with written(pending, content.encode()) as path:
            if not claim(path, following.path):
                return None
        try:
            flush(lease.folder)
        except OSError:
            following.release()  # nobody would have it
            raise
    # old ones may be gone, so a name that is free need not be the highest
    if not following.is_held():
        return None
    for generation in range(following.generation - 2 * _KEPT, following.generation - _KEPT):
        _path(lease.folder, generation).unlink(missing_ok=True)
    return following


def expired(leases: Path) -> list[Lease]:
    """The leases whose holders have neither renewed nor released them in time."""
    found = []
    for lease in latest(leases).values():
        holder = _holder(lease)
        if holder is not None and holder.renewed != _RELEASED and holder.has_expired():
            found.append(lease)
    return found


def latest(leases: Path) -> dict[str, Lease]:
    """The last lease of each producer."""
    names = (unquote(folder.name) for folder in sorted(leases.iterdir()))
    return {name: last(leases, name) for name in names}


def last(leases: Path, producer: str) -> Lease:
    """The last lease of a producer, whose generation is 0 if there is none."""
    folder = leases / _quoted(producer)
    return Lease(folder, producer, _latest(folder) if folder.is_dir() else 0)


def lost(leases: Path, producer: str) -> InputError:
    """The error that the last leases of a producer are gone."""
    return InputError(
        f"leases of producer {producer} are missing: {leases / _quoted(producer)}",
        condition="MISSING_FILE",
        hint="attach the producer once: its next lease is above those that the log knows",
    )


@dataclass(frozen=True)
class _Holder:
    host: str
    process: int
    seconds: float
    renewed: float
    is_logging: bool
    after: Place | None

    def has_expired(self) -> bool:
        return self.renewed + self.seconds < time.time()


def _holder(lease: Lease) -> _Holder | None:
    """Who has a lease, if that generation exists."""
    try:
        renewed, text = lease.path.stat().st_mtime, lease.path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        values = json.loads(text)
        if (lease.producer, lease.generation) != (
            values.get("producer", lease.producer),
            values.get("generation", lease.generation),
        ):
            raise _foreign(lease.path, "is another lease")
        after = Place(*values["after"]) if "after" in values else None  # earlier versions did not say
        return _Holder(
            values["host"],
            values["process"],
            values["seconds"],
            renewed,
            values.get("is_logging", False),
            after,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _foreign(lease.path, "is no lease") from None


def _foreign(path: Path, what: str) -> InputError:
    return InputError(f"{path} {what}", condition="FOREIGN_FILE", hint="move it out of the stream's folder")


def _latest(folder: Path) -> int:
    """The highest generation; 0 if there is none."""
    return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=0)


def _path(folder: Path, generation: int) -> Path:
    return folder / f"{generation:020d}"


def _quoted(producer: str) -> str:
    name = quote(producer, safe="").replace(".", "%2E")
    if not name or len(name) > _LONGEST_NAME:
        raise UsageError(
            f"{producer!r} is no name of a producer",
            condition="INVALID_NAME",
            hint=f"use 1 to {_LONGEST_NAME} letters and digits",
        )
    return name
