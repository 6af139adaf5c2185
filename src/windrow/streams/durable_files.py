"""Durable files: each is complete or absent, and survives a power failure.

A file is written under a temporary name, flushed to the disk, and then linked to its final name. The hard
link fails if the name exists. A reader that sees a name therefore sees the complete file, and only one of
several processes can claim a name.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from windrow.errors import ExecutionError

__all__ = ["claim", "flush", "rewrite", "tidy", "writing", "written"]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV, errno.EMLINK)


@contextmanager
def writing(folder: Path, what: str) -> Iterator[None]:
    """Report failures to write into a stream's folder.

    Raises
    ------
    ExecutionError
        ``DISK_FULL``, ``STREAM_NOT_WRITTEN``.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _FULL:
            raise ExecutionError(
                f"cannot write {what}: no space is left for {folder}",
                condition="DISK_FULL",
                sqlstate="53100",
                hint="free some space and try again; the stream is unchanged",
            ) from error
        raise ExecutionError(
            f"cannot write {what}: {reason} ({error.filename or folder})",
            condition="STREAM_NOT_WRITTEN",
            hint="put the stream's folder on a writable file system that has hard links"
            if error.errno in _NO_LINKS
            else "check the folder and try again; the stream is unchanged",
        ) from error


@contextmanager
def written(pending: Path, content: bytes) -> Iterator[Path]:
    """Write a file under a temporary name in `pending`, flushed to the disk; it is deleted at the end."""
    path = pending / f"{uuid.uuid4().hex}.tmp"
    try:
        with path.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield path
    finally:
        with suppress(OSError):  # `tidy` deletes leftovers
            path.unlink()


def rewrite(path: Path, start: int, content: bytes) -> None:
    """Overwrite bytes of a file that nobody reads yet, and flush them to the disk."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def claim(path: Path, name: Path) -> bool:
    """Link a file to a further name; return whether the name was free."""
    try:
        os.link(path, name)
    except FileExistsError:
        # a network file system may report failure for a link that it made
        return _is_same(path, name)
    return True


def flush(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def tidy(pending: Path, *, before: float) -> None:
    """Delete files in `pending` that were last written before a time: leftovers of dead processes."""
    for path in pending.glob("*.tmp"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()


def _is_same(path: Path, name: Path) -> bool:
    with suppress(FileNotFoundError):
        return path.samefile(name)
    return False
