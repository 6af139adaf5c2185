"""The cache of Spark's Java classes: a background process of low priority creates it once, after a command.

A message announces it at a terminal. The process runs ``windrow demo`` without output and stores the loaded
classes, so that later commands start sooner. Its errors go to a file beside the cache, which
``windrow doctor`` prints; it tries again a day later.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.caches import cache_directory
from windrow.errors import UsageError
from windrow.spark.runtime.java import ensure_java
from windrow.spark.runtime.java_classes import (
    file_of,
    no_room,
    recorded,
    save,
    tried_file,
    was_tried,
    were_cached,
    why_not,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ANNOUNCED", "keep_after", "main"]

ANNOUNCED = (
    "a process in the background stores Java's classes, once, for about a minute: then Spark starts sooner"
    " (WINDROW_JAVA_CLASSES=off prevents it)\n"
)
"""The message at a terminal."""

_NICEST = 19
_PYTHON = (sys.executable, "-P", "-m")


def keep_after(session: SparkSession) -> None:
    """When this process ends, let another store the classes, unless `session` has started with them."""
    if why_not() is None and not were_cached(session):
        atexit.register(_start)


def main() -> None:
    """Store the classes, if they are needed. Errors go to a file beside them."""
    cache = _wanted()
    if cache is None:
        return
    _lower_priority()
    cache.parent.mkdir(parents=True, exist_ok=True)
    tried = tried_file(cache)
    tried.write_text(f"{os.getpid()}\n", encoding="utf-8")
    try:
        _store(cache)
    except (OSError, RuntimeError, UsageError) as error:
        tried.write_text(f"{error}\n", encoding="utf-8")
    else:
        tried.unlink()


def _lower_priority() -> None:
    """Set this process to the lowest priority."""
    os.nice(_NICEST)
    # on Linux this compares processes of one session only; the priority of the session compares sessions
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(_NICEST), encoding="utf-8")


def _start() -> None:
    with contextlib.suppress(OSError):
        if _wanted() is not None:
            process = subprocess.Popen(
                [*_PYTHON, __name__],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # the root directory: the user's directory may be deleted, and programs that Spark starts
                # would import modules from it
                cwd=os.sep,
                start_new_session=True,
                env={**os.environ, "WINDROW_CACHE_DIR": str(cache_directory())},
            )
            # nobody waits for the process, and Python must not warn about that
            process.returncode = 0
            if sys.stderr.isatty():
                sys.stderr.write(ANNOUNCED)
                sys.stderr.flush()


def _wanted() -> Path | None:
    """The file of the cache, if it must be created; else None."""
    if why_not() is not None:
        return None
    try:
        cache = file_of(ensure_java())
        return None if cache.is_file() or was_tried(cache) or no_room(cache) is not None else cache
    except (OSError, UsageError):
        return None


def _store(cache: Path) -> None:
    # beside the file, where a later process removes it if this one is killed
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=cache.parent) as directory:
        names = Path(directory) / "names"
        option = f"spark.driver.extraJavaOptions={recorded(names)}"
        # this waits for Java too, which writes to the same pipe
        done = subprocess.run(
            [*_PYTHON, "windrow", "demo", "--conf", option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0 or not names.exists():
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            raise RuntimeError(lines[-1] if lines else f"the demonstration ended with {done.returncode}")
        save(ensure_java(), names)


if __name__ == "__main__":
    main()
