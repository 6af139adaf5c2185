"""Makes an environment, and runs the tests in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.matrix.environments import AREAS, Environment

__all__ = ["tried"]

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "matrix"
_UV = Path(sysconfig.get_path("scripts")) / "uv"
_FOR_TESTS = ("duckdb", "hypothesis", "pytest>=8", "pytest-timeout", "syrupy")
_EXTRAS = "cli,plot"
_SHOWN = ("pyspark", "sqlglot", "sqlglotc", "sqlmesh", "pandas", "pyarrow", "numpy", "numba", "protobuf")
_VERSIONS = (
    "import importlib.metadata as m, json, platform\n"
    "found = {d.metadata['Name'].lower(): d.version for d in m.distributions()}\n"
    "print(json.dumps({'python': platform.python_version()} | found))"
)
_FIRST = "import {}, sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
_MINUTES = 25


def tried(environment: Environment) -> dict[str, Any]:
    """What there is to tell of an environment: its versions and the outcome, or why it was skipped."""
    interpreter = _interpreter(environment.python)
    if interpreter is None:
        return {"skipped": f"no Python {environment.python} on the machine that ran this"}
    home = BUILD / environment.name.lower().replace(" ", "-").replace(",", "")
    shutil.rmtree(home, ignore_errors=True)
    python = home / "bin" / "python"
    _run(_UV, "venv", "--quiet", "--no-python-downloads", "--python", interpreter, home)
    install = (_UV, "pip", "install", "--quiet", "--python", python)
    done = _run(
        *install, "--resolution", environment.resolution, *environment.packages, "--editable",
        f"{ROOT}[{_EXTRAS}]", check=False,
    )  # fmt: skip
    if done.returncode:
        return {"skipped": "pip finds no versions that go together", "told": done.stderr.strip()}
    _run(*install, *_FOR_TESTS)
    return {"versions": _versions(python), "areas": _tested(environment, python, home)}


def _interpreter(version: str) -> str | None:
    """A Python of this version on this machine."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")]
    for each in filter(None, found):
        done = _run(each, "-c", "import sys; print(*sys.version_info[:2], sep='.')", check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return str(each)
    return None


def _versions(python: Path) -> dict[str, str]:
    found = json.loads(_run(python, "-c", _VERSIONS).stdout)
    return {name: found[name] for name in ("python", *_SHOWN) if name in found}


def _tested(environment: Environment, python: Path, home: Path) -> dict[str, dict[str, Any]]:
    """The outcome of the tests of each area."""
    report = home / "report.xml"
    first = ("-m", "pytest") if environment.first is None else ("-c", _FIRST.format(environment.first))
    paths = [path for area in environment.areas for path in AREAS[area]]
    options = ("-q", "-p", "no:cacheprovider", "--timeout=300", f"--junitxml={report}")
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (home / "output.txt").open("w") as output:
        subprocess.run(
            [python, *first, *options, *paths],
            cwd=ROOT, env=variables, stdout=output, stderr=subprocess.STDOUT, timeout=_MINUTES * 60,
            check=False,
        )  # fmt: skip
    cases = list(ET.parse(report).iter("testcase"))
    return {area: _outcome(cases, AREAS[area]) for area in environment.areas}


def _outcome(cases: Iterable[ET.Element], paths: Iterable[str]) -> dict[str, Any]:
    """How many tests of some paths passed, and which failed."""
    wanted = [path.replace(".py", "").replace("/", ".").replace("::", ".") for path in paths]
    passed, failed = 0, []
    for case in cases:
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        if not any(re.match(rf"{re.escape(each)}([.\[]|$)", name) for each in wanted):
            continue
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif case.find("skipped") is None:
            passed += 1
    return {"passed": passed, "failed": sorted(failed)}


def _run(*words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    variables = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    return subprocess.run(list(map(str, words)), env=variables, capture_output=True, text=True, check=check)
