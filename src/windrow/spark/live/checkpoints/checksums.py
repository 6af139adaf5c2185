"""Checksums of the files in a directory, which detect a truncated, changed or missing file."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

from windrow.errors import InputError

__all__ = ["FileChecksum", "FileChecksums", "check", "checksum_of", "checksums_of", "missing", "torn"]

FileChecksum = tuple[int, int | None]
"""The size of a file, and the checksum of a small one; Spark has checksums of its own files too."""

FileChecksums = Mapping[str, FileChecksum]
"""The checksums of files, by their paths."""

_RESTORE = "restore the whole checkpoint from a single copy; nothing was emitted or stored"
_SMALL = 4_000_000  # bytes


def checksums_of(folder: Path) -> FileChecksums:
    """The checksums of all files below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): checksum_of(path) for path in files}


def check(folder: Path, checksums: FileChecksums) -> None:
    """Check that every file has its checksum.

    Raises
    ------
    InputError
        ``TORN_FILE``, ``MISSING_FILE``.
    """
    for name, known in checksums.items():
        path = folder / name
        if not path.is_file():
            raise missing(path)
        if checksum_of(path) != tuple(known):
            raise torn(path)


def missing(path: Path) -> InputError:
    """The error for a missing file of a checkpoint."""
    return InputError(f"{path} is missing", condition="MISSING_FILE", hint=_RESTORE)


def torn(path: Path) -> InputError:
    """The error for a file of a checkpoint that differs from what was written."""
    return InputError(f"{path} is damaged", condition="TORN_FILE", hint=_RESTORE)


def checksum_of(path: Path) -> FileChecksum:
    """The checksum of a file."""
    size = path.stat().st_size
    return size, zlib.crc32(path.read_bytes()) if size <= _SMALL else None
