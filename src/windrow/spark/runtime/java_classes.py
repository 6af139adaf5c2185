"""A class archive of Spark's Java classes, verified and linked: a session starts sooner.

Java reads some fifteen thousand classes each time that Spark starts, which takes most of the time. Java can
store them in a file (class data sharing) and map it into memory the next time. It uses the file only if the
Java and all jar files are unchanged, and otherwise reads the classes as usual. :func:`save` makes the file,
:mod:`windrow.cli.keep_java_classes` decides when.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.find_spark_home import _find_spark_home

from windrow.caches import cache_directory
from windrow.spark.runtime.java import JavaRuntime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "file_of",
    "forget_damaged",
    "no_room",
    "options",
    "recorded",
    "save",
    "state",
    "tried_file",
    "was_tried",
    "were_cached",
    "why_not",
]

_CHOICE = "WINDROW_JAVA_CLASSES"
"""The environment variable that disables the archive with ``off``."""

_CLASS_PATH = (
    "HADOOP_CONF_DIR",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_PREPEND_CLASSES",
    "YARN_CONF_DIR",
)
"""Where Spark reads classes from beside its own archives. Java cannot archive those of directories."""

_USED = "-XX:SharedArchiveFile="
_QUIET = "-Xlog:cds*=off"
"""Java prints nothing if it does not use the file, or not all of it."""

_ROOM = 500 * 2**20
"""The most bytes of a file, including what is needed to make it."""

_AGAIN = 24 * 3600.0
"""The number of seconds after which a failed attempt to make the archive is repeated."""
_AT_MOST = 3600.0
"""The most seconds that it may take, on a busy machine."""

_UNUSED = 30 * 24 * 3600.0
"""Seconds after which an unused file is deleted."""


def why_not() -> str | None:
    """Why there can be no archive here, or None if there can."""
    if os.name == "nt":
        return "not on Windows"
    if os.environ.get(_CHOICE, "").lower() in ("off", "0", "false", "no"):
        return f"{_CHOICE} is {os.environ[_CHOICE]}"
    if variables := [name for name in _CLASS_PATH if os.environ.get(name)]:
        return f"{variables[0]} adds to Spark's classes"
    if (Path(_find_spark_home()) / "conf").exists():
        return "Spark has a directory of settings, which adds to its classes"
    try:
        directory = cache_directory()
    except OSError as error:
        return str(error)
    if set(str(directory)) & {" ", os.pathsep}:
        return f"Java's options take no path with a space or {os.pathsep} ({directory})"
    return None


def file_of(java: JavaRuntime) -> Path:
    """The archive of the classes of the Spark that PySpark starts, for `java`.

    Another Java, another build of it, or other jar files of Spark have another file.

    Raises
    ------
    OSError
        There is no cache directory, or Spark's archives cannot be read.
    """
    parts = [str(java.home), java.version]
    for file in (java.home / "lib" / "modules", *sorted(_archives().iterdir())):
        with contextlib.suppress(FileNotFoundError):
            seen = file.stat()
            parts.append(f"{file.name} {seen.st_size} {seen.st_mtime_ns}")
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return cache_directory() / f"classes-{name}.jsa"


def options(java: JavaRuntime) -> str:
    """Java's options for a session, to be joined to others by a space; empty if there is no archive."""
    if why_not() is not None:
        return ""
    with contextlib.suppress(OSError):
        archive = file_of(java)
        if archive.is_file():
            with contextlib.suppress(OSError):
                # Used, as far as this user may say so.
                os.utime(archive)
            _forget_unused(archive.parent)
            return f"{_USED}{archive} {_QUIET}"
    return ""


def forget_damaged(java: JavaRuntime) -> bool:
    """Remove the file if it is damaged, which Java does not check at its start; return whether it was."""
    with contextlib.suppress(OSError):
        archive = file_of(java)
        try:
            _verify(java, archive)
        except RuntimeError:
            archive.unlink()
            return True
    return False


def were_cached(session: SparkSession) -> bool:
    """Whether `session` was started with the archive."""
    return _USED in (session.sparkContext.getConf().get("spark.driver.extraJavaOptions") or "")


def recorded(classes: Path) -> str:
    """Java's option to write the names of a session's classes to a file."""
    return f"-XX:DumpLoadedClassList={classes}"


def save(java: JavaRuntime, classes: Path) -> Path:
    """Make the archive of the classes named in a file of :func:`recorded`, atomically.

    Raises
    ------
    OSError
        There is no space, or no writable cache directory.
    RuntimeError
        Java did not make the file, or cannot use it; with its message.
    """
    target = file_of(java)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as directory:
        draft = Path(directory) / target.name
        made_of = "-Xlog:disable", f"-XX:SharedClassListFile={classes}"
        _done([*_with(java, draft), "-Xshare:dump", *made_of])
        _verify(java, draft)
        with draft.open("rb") as made:
            # All of it, before its name: Java looks at little more than its beginning.
            os.fsync(made.fileno())
        draft.replace(target)
    return target


def state(java: JavaRuntime) -> str:
    """The line of ``windrow doctor`` about the archive."""
    if (reason := why_not()) is not None:
        return f"not cached: {reason}"
    try:
        archive = file_of(java)
        if archive.is_file():
            return f"cached in {archive} ({archive.stat().st_size / 2**20:.0f} MiB)"
        if was_tried(archive):
            message = tried_file(archive).read_text(encoding="utf-8").strip()
            return "not cached yet: being made" if message.isdecimal() else f"not cached: {message}"
        if (reason := no_room(archive)) is not None:
            return f"not cached: {reason}"
    except OSError as error:
        return f"not cached: {error}"
    return "not cached yet: after the next command that starts Spark, a process in the background does it"


def no_room(archive: Path) -> str | None:
    """Why the file cannot be made in its directory, or None."""
    there = next(parent for parent in archive.parents if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        return f"{there} cannot be written"
    if shutil.disk_usage(there).free < _ROOM:
        return f"{there} has less than {_ROOM // 2**20} MiB of room"
    return None


def tried_file(archive: Path) -> Path:
    """The file with the result of the last attempt: the process id while it runs, else the error."""
    return archive.with_suffix(".tried")


def was_tried(archive: Path) -> bool:
    """Whether the last attempt is running, or so recent that another would fail too."""
    try:
        message = tried_file(archive).read_text(encoding="utf-8").strip()
        age = time.time() - tried_file(archive).stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return False
    return age < _AT_MOST and _is_running(int(message)) if message.isdecimal() else age < _AGAIN


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        # Another user's.
        return True
    return True


def _archives() -> Path:
    return Path(_find_spark_home()) / "jars"


def _with(java: JavaRuntime, file: Path) -> list[str]:
    """Run Java with a file, as PySpark starts it."""
    return [str(java.home / "bin" / "java"), f"{_USED}{file}", "-cp", _class_path(java)]


def _verify(java: JavaRuntime, file: Path) -> None:
    """Have Java use a file and verify it; Java exits with an error if it cannot."""
    _done([*_with(java, file), "-Xshare:on", "-XX:+VerifySharedSpaces", "-version"])


def _class_path(java: JavaRuntime) -> str:
    """Java's class path when PySpark starts it, according to Spark's launcher."""
    program = "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"
    command = _done([str(java.home / "bin" / "java"), "-cp", f"{_archives()}{os.sep}*", *program])
    arguments = command.split("\0")
    return arguments[arguments.index("-cp") + 1]


def _done(command: list[str]) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        # The shell script that starts Spark sets this; the version does not matter here.
        env={"SPARK_SCALA_VERSION": "2.13", **os.environ, "SPARK_HOME": _find_spark_home()},
    )
    if done.returncode != 0:
        message = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise RuntimeError(message[0] if message else f"Java ended with {done.returncode}")
    return done.stdout


def _forget_unused(directory: Path) -> None:
    for archive in directory.glob("classes-*"):
        if _age(archive) > _UNUSED:
            with contextlib.suppress(OSError):
                archive.unlink()
    # Of processes that were killed.
    for draft in directory.glob(".classes-*"):
        if _age(draft) > _AT_MOST:
            shutil.rmtree(draft, ignore_errors=True)


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        # Another process has taken it away.
        return 0.0
