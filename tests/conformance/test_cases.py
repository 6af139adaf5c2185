"""Every case in every mode, and every twin on plain Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from windrow.spark.clauses.native import NATIVE_SETTING

from .casefile import MODES, Case, ExpectedRows, Mode, Twin, case_files, load
from .runner import difference, outcome, twin_answer

FILES = [load(path) for path in case_files()]
CASES = [case for file in FILES for case in file.cases]
TWINS = [(case, twin) for case in CASES for twin in case.twins]


@pytest.mark.sampled
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_case(spark: SparkSession, case: Case, mode: Mode) -> None:
    marker = case.marker(mode)
    if marker is not None and marker.kind == "never":
        pytest.skip(f"never in {mode}: {marker.reason}")
    if marker is None:
        wrong = outcome(spark, case, mode)
        assert wrong is None, f"{case.path.name}:{case.line}: {wrong}"
        return
    try:
        wrong = outcome(spark, case, mode)
    except Exception as error:
        wrong = repr(error)
    assert wrong is not None, f"{case.path.name}:{case.line}: passes in {mode}; take notimpl({mode}) away"
    pytest.xfail(f"not implemented in {mode}: {marker.reason}")


def _slides(case: Case) -> bool:
    return "SLIDING" in case.query


@pytest.mark.sampled
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id) for case in CASES if "SLIDING" in case.query]
)
def test_case_with_the_frames_of_spark(
    spark: SparkSession, case: Case, conf: Callable[[str, str], None]
) -> None:
    if case.marker("batch") is not None:
        pytest.skip("as by the kernel")
    conf(NATIVE_SETTING, "always")
    wrong = outcome(spark, case, "batch")
    assert wrong is None, f"{case.path.name}:{case.line}: {wrong}"


@pytest.mark.sampled  # which holds the cases, not Windrow
@pytest.mark.parametrize(
    ("case", "twin"), [pytest.param(case, twin, id=f"{case.id} = {twin.name}") for case, twin in TWINS]
)
def test_twin_in_plain_spark_gives_the_rows_of_the_case(spark: SparkSession, case: Case, twin: Twin) -> None:
    assert isinstance(case.expected, ExpectedRows)
    wrong = difference(case.expected, twin_answer(spark, case, twin))
    assert wrong is None, f"{case.path.name}:{case.line}: twin {twin.name}: {wrong}"


def test_every_theme_has_a_title_and_cases() -> None:
    assert [file.path.name for file in FILES if not file.title or not file.cases] == []
