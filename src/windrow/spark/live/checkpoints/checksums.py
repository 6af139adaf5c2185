"""What a directory should hold, so that a file that was cut short, changed or lost is noticed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

from windrow.errors import InputError

__all__ = ["Seal", "Seals", "check", "missing", "seal", "sealed", "torn"]

Seal = tuple[int, int | None]
"""Of a file its size, and a checksum where it is small; of its own files Spark has checksums too."""

Seals = Mapping[str, Seal]
"""The seals of files, by their paths."""

_RESTORE = "restore the whole checkpoint from a copy of one time; nothing was given or kept"
_SMALL = 4_000_000  # bytes


def sealed(folder: Path) -> Seals:
    """The seals of all files below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): seal(path) for path in files}


def check(folder: Path, seals: Seals) -> None:
    """See that every file is as it was sealed.

    Raises
    ------
    InputError
        ``TORN_FILE``, ``MISSING_FILE``.
    """
    for name, known in seals.items():
        path = folder / name
        if not path.is_file():
            raise missing(path)
        if seal(path) != tuple(known):
            raise torn(path)


def missing(path: Path) -> InputError:
    """The error for a file of a checkpoint that is gone."""
    return InputError(f"{path} is missing", condition="MISSING_FILE", hint=_RESTORE)


def torn(path: Path) -> InputError:
    """The error for a file of a checkpoint that is not as it was written."""
    return InputError(f"{path} is not whole", condition="TORN_FILE", hint=_RESTORE)


def seal(path: Path) -> Seal:
    """The seal of a file."""
    size = path.stat().st_size
    return size, zlib.crc32(path.read_bytes()) if size <= _SMALL else None
