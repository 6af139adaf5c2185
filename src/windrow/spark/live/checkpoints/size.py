"""The size of folders in bytes."""

from __future__ import annotations

from pathlib import Path

__all__ = ["size_of"]


def size_of(folder: Path) -> int:
    """The bytes in the files of a folder and its subfolders."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
