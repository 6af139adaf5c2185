"""What a run ran on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from benchmarks.systems import cores
from windrow.spark.runtime.java import ensure_java

__all__ = ["commit", "machine", "versions"]

_ROOT = Path(__file__).parents[1]
_PACKAGES = ("windrow", "pyspark", "duckdb", "polars", "numpy", "numba", "pyarrow", "pandas")


def machine() -> dict[str, str]:
    """The machine, and how busy it was before."""
    gibibytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "cores": str(cores()),
        "processor": _processor(),
        "memory": f"{gibibytes:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def versions() -> dict[str, str]:
    """Of everything that takes part."""
    return {
        "Python": platform.python_version(),
        "Java": str(ensure_java().version),
        **{package: version(package) for package in _PACKAGES},
    }


def commit() -> str:
    """The commit of the working tree, and whether it has been changed."""
    if not (name := _git("rev-parse", "--short=12", "HEAD")):
        return "unknown"
    return f"{name}, with changes" if _git("status", "--porcelain", "--untracked-files=no") else name


def _git(*arguments: str) -> str:
    try:
        found = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return found.stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
