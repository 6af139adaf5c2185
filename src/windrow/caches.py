"""The cache directory: compiled files that later processes of the same user read again."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_directory"]


def cache_directory() -> Path:
    """``$WINDROW_CACHE_DIR``, else ``windrow`` among the user's caches. It need not be there.

    Raises
    ------
    OSError
        Neither is named, and this user has no home directory.
    """
    if chosen := os.environ.get("WINDROW_CACHE_DIR"):
        return Path(chosen).absolute()
    caches = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(caches) if caches else Path.home() / ".cache").absolute() / "windrow"
    except RuntimeError as error:
        raise OSError("this user has no home directory") from error
