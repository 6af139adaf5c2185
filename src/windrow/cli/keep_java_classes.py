"""When Spark's Java classes are kept: once, after a command has ended, by a process that gives way.

A person at a terminal is told. That process runs ``windrow demo`` with nobody to see it and keeps the classes
that this needs; the commands after it start sooner. What goes wrong is written to a file beside them, which
``windrow doctor`` shows; it is tried again a day later.
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
    keep,
    no_room,
    recorded,
    tried_file,
    was_tried,
    were_kept,
    why_not,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ANNOUNCED", "keep_after", "main"]

ANNOUNCED = (
    "a process in the background keeps Java's classes for about a minute, once: Spark starts sooner then"
    " (WINDROW_JAVA_CLASSES=off for not)\n"
)
"""What a person at a terminal is told."""

_NICEST = 19
_PYTHON = (sys.executable, "-P", "-m")


def keep_after(session: SparkSession) -> None:
    """When this process ends, have another keep the classes, where `session` has started without."""
    if why_not() is None and not were_kept(session):
        atexit.register(_start)


def main() -> None:
    """Keep the classes, where it is to be done. What goes wrong is written to the file beside them."""
    kept = _wanted()
    if kept is None:
        return
    _give_way()
    kept.parent.mkdir(parents=True, exist_ok=True)
    tried = tried_file(kept)
    tried.write_text(f"{os.getpid()}\n", encoding="utf-8")
    try:
        _keep(kept)
    except (OSError, RuntimeError, UsageError) as error:
        tried.write_text(f"{error}\n", encoding="utf-8")
    else:
        tried.unlink()


def _give_way() -> None:
    """Let all others run first."""
    os.nice(_NICEST)
    # On Linux that counts among the processes of one session only; among sessions theirs does.
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
                # It outlives the directory that the user is in, and is to import nothing of what others put
                # into one: programs that Spark starts look there first.
                cwd=os.sep,
                start_new_session=True,
                env={**os.environ, "WINDROW_CACHE_DIR": str(cache_directory())},
            )
            # Nobody waits for it, and none is to be warned of that.
            process.returncode = 0
            if sys.stderr.isatty():
                sys.stderr.write(ANNOUNCED)
                sys.stderr.flush()


def _wanted() -> Path | None:
    """The file that is to be made, if it is."""
    if why_not() is not None:
        return None
    try:
        kept = file_of(ensure_java())
        return None if kept.is_file() or was_tried(kept) or no_room(kept) is not None else kept
    except (OSError, UsageError):
        return None


def _keep(kept: Path) -> None:
    # Beside the file, from where it goes away if this process is killed.
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=kept.parent) as directory:
        names = Path(directory) / "names"
        option = f"spark.driver.extraJavaOptions={recorded(names)}"
        # Ends when Java has ended, which writes to the same pipe.
        done = subprocess.run(
            [*_PYTHON, "windrow", "demo", "--conf", option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0 or not names.exists():
            said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            raise RuntimeError(said[-1] if said else f"the demonstration ended with {done.returncode}")
        keep(ensure_java(), names)


if __name__ == "__main__":
    main()
