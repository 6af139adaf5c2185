"""`windrow explain`, `windrow check` and `windrow demo`."""

from __future__ import annotations

import pytest

from windrow.cli.demo import EXAMPLES

WINDOW = """SELECT s.day, COUNT(w.val) AS n FROM readings
WINDOW BY w AS (TYPE SLIDING ORDER BY day START AS s WHEN true END AS e WHEN e.val > 2)"""


@pytest.fixture
def attached(readings):
    return ["-t", f"readings={readings}"]


def test_explain_shows_the_windows_and_spark_s_plan_on_request(invoke, attached):
    ours = invoke("explain", "-c", WINDOW, *attached)
    both = invoke("explain", "-c", WINDOW, *attached, "--spark")
    assert ours.exit_code == both.exit_code == 0
    assert ours.stdout.startswith("1 WINDOW BY w\n")
    assert "Physical Plan" not in ours.stdout
    assert both.stdout.startswith(ours.stdout.rstrip("\n"))
    assert "Physical Plan" in both.stdout


def test_explain_of_a_script_knows_its_views_and_carries_nothing_out(invoke, attached, tmp_path):
    target = tmp_path / "written"
    script = f"""CREATE TEMPORARY VIEW warm AS {WINDOW};
INSERT OVERWRITE DIRECTORY '{target}' USING csv SELECT n FROM warm;
SELECT * FROM warm"""
    done = invoke("explain", "-c", script, *attached)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if line.startswith("--")] == [
        "-- statement of line 1",
        "-- statement of line 3",
        "-- statement of line 4",
    ]
    assert not target.exists()


def test_explain_locates_errors_in_the_script(invoke, attached):
    script = f"SELECT 1;\nCREATE TEMPORARY VIEW v AS {WINDOW.replace('e.val', 'f.val')}"
    done = invoke("explain", "-c", script, *attached)
    assert done.exit_code == 1
    assert "line 3, column 78" in done.stderr
    assert "END AS e WHEN f.val > 2)\n" in done.stderr


@pytest.mark.parametrize(
    "script",
    [
        "SELECT 1",
        WINDOW,
        f"CREATE TEMPORARY VIEW v AS {WINDOW}; SELECT n FROM v WHERE n > 1; DROP VIEW v",
        "SET spark.sql.ansi.enabled = true; CREATE TABLE made AS SELECT * FROM readings",
    ],
)
def test_check_says_ok_and_runs_nothing(invoke, attached, script):
    done = invoke("check", "-c", script, *attached)
    assert (done.exit_code, done.stderr) == (0, "")
    statements = script.count(";") + 1
    assert done.stdout == f"OK: {statements} statement{'s' if statements > 1 else ''}\n"
    assert "made" not in invoke("run", "-c", "SHOW TABLES", "-f", "csv").stdout


@pytest.mark.parametrize(
    ("script", "condition", "place"),
    [
        ("SELEC 1", "PARSE_SYNTAX_ERROR", "line 1, column 1"),
        ("SELECT 1;\nSELECT * FROM nope", "TABLE_OR_VIEW_NOT_FOUND", "line 2, column 15"),
        ("CREATE TABLE made AS\nSELECT nope FROM readings", "UNRESOLVED_COLUMN", "line 2, column 8"),
        (WINDOW.replace("e.val", "f.val"), "UNKNOWN_VARIABLE", "line 2, column 78"),
        (WINDOW.replace("ORDER BY day ", ""), "", "line 2"),
    ],
)
def test_check_reports_the_first_error_and_exits_with_1(invoke, attached, script, condition, place):
    done = invoke("check", "-c", script, *attached)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"[{condition}" in done.stderr
    assert place in done.stderr


def test_the_demonstration_shows_three_queries_with_rows_a_plan_and_what_to_try_next(invoke):
    done = invoke("demo")
    assert (done.exit_code, done.stderr) == (0, "")
    for _, sql in EXAMPLES:
        assert sql in done.stdout
    assert len(EXAMPLES) == 3
    assert done.stdout.count("1 WINDOW BY w") == 1
    assert "| XWM00000001 | 2024-01-01 | 2024-01-07 |    7 |   -3.4 |" in done.stdout
    assert "Try next" in done.stdout
    assert invoke("demo").stdout == done.stdout
