"""Leases: which process is a producer, and which producers have died.

A producer's leases are numbered files, its *generations*. Each is claimed by a hard link, and the highest is
in force. Its holder renews it by the file's modification time. After a lease has expired, the next generation
may follow it: the producer restarts, or another process logs that it is idle. Entries carry the generation of
their writer, and readers drop entries of a generation below the highest that they have seen. A process that
slept through its lease therefore cannot insert rows; it finds out when it checks for a higher generation.

A lease records its own number, and the last file of the log when it was acquired. The next holder thereby
detects a log, or a lease, that was restored from another time.
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
_RETAINED = 8
_RELEASED, _ABANDONED = 0, 1  # modification times that no renewal sets


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
        """The end of the log when the lease was acquired; None if the lease is gone or does not record it.

        Raises
        ------
        InputError
            ``FOREIGN_FILE``.
        """
        holder = _holder(self)
        return None if holder is None else holder.after

    def is_held(self) -> bool:
        """Whether it is still the highest generation."""
        with suppress(FileNotFoundError):
            return _latest(self.folder) == self.generation
        return False

    def renew(self) -> None:
        """Extend the lease by its duration from now on."""
        os.utime(self.path)

    def release(self) -> None:
        """Free the name at once: the producer has logged that it leaves."""
        os.utime(self.path, (_RELEASED, _RELEASED))

    def abandon(self) -> None:
        """Expire the lease at once, so that another process logs the producer as idle."""
        with suppress(OSError):  # then it expires by itself
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
    """Acquire the lease of a producer, once no other process has it.

    Parameters
    ----------
    leases, pending
        The stream's folders of leases, and of files that are being written.
    producer
        The name.
    seconds
        How long it lasts without renewal.
    after
        A place that is in the log.
    wait
        For how many seconds to try. A lease that only serves to log the producer as idle lasts a moment, and
        this function always waits for its end.
    above
        The highest generation in the log: the next one is higher, even if the lease files were lost.

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
                f"producer {producer} is in use by process {holder.process} on {holder.host}",
                condition="PRODUCER_TAKEN",
                sqlstate="55006",
                hint="use another name, or end that process; its lease expires "
                f"{holder.seconds:g} seconds after the process ends",
            )
        else:
            time.sleep(0.02)


def follow_up(
    lease: Lease, pending: Path, seconds: float, after: Place, *, is_logging: bool = False
) -> Lease | None:
    """Acquire the generation after an expired lease; None if another process was faster.

    Parameters
    ----------
    lease
        The expired lease.
    pending
        The stream's folder of files that are being written.
    seconds
        How long it lasts without renewal.
    after
        A place that is in the log.
    is_logging
        Whether its only purpose is to log that the producer is idle.
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
            following.release()  # or the name would have no holder
            raise
    # old generations may be deleted, so a free name need not be the highest
    if not following.is_held():
        return None
    for generation in range(following.generation - 2 * _RETAINED, following.generation - _RETAINED):
        _path(lease.folder, generation).unlink(missing_ok=True)
    return following


def expired(leases: Path) -> list[Lease]:
    """The expired leases: their holders neither renewed nor released them."""
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
    """The error for a producer whose latest lease files are missing."""
    return InputError(
        f"leases of producer {producer} are missing: {leases / _quoted(producer)}",
        condition="MISSING_FILE",
        hint="attach the producer once: its next lease is above those in the log",
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
    """The holder of a lease, if that generation exists."""
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
            raise _foreign(lease.path, "is the lease of another producer")
        after = Place(*values["after"]) if "after" in values else None  # absent in earlier versions
        return _Holder(
            values["host"],
            values["process"],
            values["seconds"],
            renewed,
            values.get("is_logging", False),
            after,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _foreign(lease.path, "is not a lease") from None


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
            f"{producer!r} is not a name for a producer",
            condition="INVALID_NAME",
            hint=f"use 1 to {_LONGEST_NAME} letters and digits",
        )
    return name
