"""The version, and what is public, are the same wherever they are written."""

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


def test_what_is_public_changes_on_purpose():
    """A name that goes, or comes, is in the changelog, and this list is changed with it."""
    assert windrow.__all__ == [
        "UNBOUNDED",
        "AnalysisError",
        "Boundary",
        "ExecutionError",
        "Files",
        "InputError",
        "Kafka",
        "LiveQuery",
        "Memory",
        "NotSupportedError",
        "ParseError",
        "Pipeline",
        "Relation",
        "Session",
        "Table",
        "UsageError",
        "WindrowError",
        "__version__",
        "boundary",
        "match_recognize",
        "window_by",
    ]
