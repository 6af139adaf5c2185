"""The results as the table of ``docs/compatibility.md``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.matrix.environments import AREAS, ENVIRONMENTS, Environment

__all__ = ["PAGE", "RESULTS", "load", "save", "unexpected", "with_table"]

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
_PLACE = re.compile(r"(<!-- made by make test-matrix -->\n).*?(<!-- until here -->)", re.DOTALL)


def load() -> dict[str, Any]:
    """What is known of each environment."""
    return dict(json.loads(RESULTS.read_text(encoding="utf-8"))) if RESULTS.exists() else {}


def save(results: Mapping[str, Any]) -> None:
    """Keep the results, and write the page's tables."""
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


def with_table(page: str, results: Mapping[str, Any]) -> str:
    """The page with the tables of some results."""
    made, count = _PLACE.subn(lambda found: f"{found[1]}{_tables(results)}{found[2]}", page)
    assert count == 1, "the page has one place for the tables"
    return made


def _tables(results: Mapping[str, Any]) -> str:
    named = [(each.name, results[each.name]) for each in ENVIRONMENTS if each.name in results]
    outcome = [["environment", *AREAS], ["---"] * (len(AREAS) + 1)]
    versions = [["environment", "Python", "PySpark", "sqlglot", "pandas", "PyArrow", "NumPy", "numba"]]
    versions.append(["---"] * len(versions[0]))
    skipped: list[str] = []
    for name, told in named:
        if "skipped" in told:
            skipped.append(f"- {name} was not tried: {told['skipped']}.\n")
            outcome.append([name, *["–"] * len(AREAS)])
            continue
        outcome.append([name, *(_cell(told["areas"].get(area)) for area in AREAS)])
        found = told["versions"]
        kinds = ("python", "pyspark", "sqlglot", "pandas", "pyarrow", "numpy", "numba")
        versions.append([name, *(found.get(kind, "") for kind in kinds)])
    lacking = [
        f"- With {each.name} there are no {what}.\n"
        for each in ENVIRONMENTS
        for part, what in each.lacks
        if any(part in failed for failed in _failed(results.get(each.name, {})))
    ]
    return f"\n{_table(outcome)}\n{''.join(skipped + lacking)}\n{_table(versions)}\n"


def unexpected(environment: Environment, told: Mapping[str, Any]) -> list[str]:
    """The tests that failed and should not."""
    return [name for name in _failed(told) if not any(part in name for part, _ in environment.lacks)]


def _failed(told: Mapping[str, Any]) -> list[str]:
    return [name for area in told.get("areas", {}).values() for name in area["failed"]]


def _cell(outcome: Mapping[str, Any] | None) -> str:
    if outcome is None:
        return ""
    passed, failed = outcome["passed"], len(outcome["failed"])
    if not passed:
        return "no"
    return f"{passed} of {passed + failed}" if failed else f"yes ({passed})"


def _table(rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
