"""Files that are whole or not there, and that stay.

A file is written under a name that nobody reads, flushed to the disk, and then given its name by a hard
link, which fails if the name is taken. So whoever sees a name sees all of the file, and of several
processes that want one name just one gets it.
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
    """Tell failures to write into a stream's folder.

    Raises
    ------
    ExecutionError
        ``DISK_FULL``, ``STREAM_NOT_WRITTEN``.
    """
    try:
        yield
    except OSError as error:
        told = error.strerror or str(error)
        if error.errno in _FULL:
            raise ExecutionError(
                f"{what} not written: no space is left for {folder}",
                condition="DISK_FULL",
                sqlstate="53100",
                hint="make room and try again; the stream is as it was before",
            ) from error
        raise ExecutionError(
            f"{what} not written: {told} ({error.filename or folder})",
            condition="STREAM_NOT_WRITTEN",
            hint="the stream's folder must be writable, on a file system that has hard links"
            if error.errno in _NO_LINKS
            else "see to the folder and try again; the stream is as it was before",
        ) from error


@contextmanager
def written(pending: Path, content: bytes) -> Iterator[Path]:
    """A file with this content, on the disk, under a name of its own in `pending` until the block ends."""
    path = pending / f"{uuid.uuid4().hex}.tmp"
    try:
        with path.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield path
    finally:
        with suppress(OSError):  # what stays is deleted by `tidy`
            path.unlink()


def rewrite(path: Path, start: int, content: bytes) -> None:
    """Put other bytes into a file that nobody reads yet; they are on the disk when this returns."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def claim(path: Path, name: Path) -> bool:
    """Give a file a further name; whether it was free."""
    try:
        os.link(path, name)
    except FileExistsError:
        # a network file system may report a link as failed that it has made
        return _is_same(path, name)
    return True


def flush(folder: Path) -> None:
    """Return when the names in a folder are on the disk."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def tidy(pending: Path, *, before: float) -> None:
    """Delete what processes that ended left in `pending` before a time."""
    for path in pending.glob("*.tmp"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()


def _is_same(path: Path, name: Path) -> bool:
    with suppress(FileNotFoundError):
        return path.samefile(name)
    return False
