"""The page of what Windrow runs with says what was found, of the versions that are declared."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.matrix.environments import AREAS, ENVIRONMENTS
from tests.matrix.page import PAGE, load, unexpected, with_table
from windrow.errors import UsageError
from windrow.spark.runtime.version import check_version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_page_has_the_tables_of_what_was_found():
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page, load()), "run make test-matrix"


def test_the_declared_versions_are_those_that_were_tried_and_pass():
    results = load()
    assert set(results) == {each.name for each in ENVIRONMENTS}
    passed = {
        each.name: results[each.name]["versions"]
        for each in ENVIRONMENTS
        if "versions" in results[each.name] and not unexpected(each, results[each.name])
    }
    declared = next(each for each in PROJECT["dependencies"] if each.startswith("pyspark"))
    lowest, beyond = re.findall(r"4\.(\d)", declared)
    tried = {int(found["pyspark"].split(".")[1]) for found in passed.values()}
    assert tried == set(range(int(lowest), int(beyond)))
    pythons = {found["python"].rpartition(".")[0] for found in passed.values()}
    prefix = "Programming Language :: Python :: 3."
    assert pythons == {
        f"3.{each.removeprefix(prefix)}" for each in PROJECT["classifiers"] if each.startswith(prefix)
    }
    assert {"the lowest sqlglot", "compiled sqlglot", "sqlmesh, imported first"} <= set(passed)


def test_every_area_is_tried_with_every_pyspark():
    for each in ENVIRONMENTS:
        assert set(each.areas) <= set(AREAS)
        if each.name.startswith("PySpark"):
            assert set(each.areas) == set(AREAS)


@pytest.mark.parametrize("version", ["3.5.9", "2.4.8"])
def test_a_pyspark_that_is_too_old_is_refused(version):
    with pytest.raises(UsageError, match="PYSPARK_TOO_OLD"):
        check_version(version)
    check_version("4.0.0.dev1")
