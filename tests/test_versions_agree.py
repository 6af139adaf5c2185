"""The version is the same wherever it is written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import windrow

ROOT = Path(__file__).parent.parent


def test_the_version_is_one():
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None
    assert {windrow.__version__, package, cited[1]} == {package}
