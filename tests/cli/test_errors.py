"""How the command line tells errors: place, caret, one hint, exit code, and no traceback unless asked."""

from __future__ import annotations

import pytest


def test_an_error_has_its_line_in_the_script_a_caret_and_a_hint(invoke, readings):
    script = "SELECT 1 AS one;\nSELECT station, vall\nFROM readings"
    done = invoke("run", "-c", script, "-t", f"readings={readings}", "-f", "csv")
    assert done.exit_code == 1
    assert done.stdout == "one\n1\n"
    assert done.stderr.startswith("error [UNRESOLVED_COLUMN.WITH_SUGGESTION] ")
    assert "\nline 2, column 17\n  SELECT station, vall\n                  ^" in done.stderr
    assert done.stderr.endswith("hint: did you mean val?\n")


def test_a_statement_after_another_on_its_line_is_shown_with_it(invoke):
    done = invoke("run", "-f", "csv", "-c", "SELECT 1 AS a; SELEC 2")
    assert "\nline 1, column 16\n  SELECT 1 AS a; SELEC 2\n                 ^" in done.stderr


def test_an_error_in_a_window_points_to_the_variable(invoke, readings):
    sql = """SELECT AVG(w.val) FROM readings
WINDOW BY w AS (TYPE SLIDING ORDER BY day START AS s WHEN ss.val < 2 END AS e WHEN e = s)"""
    done = invoke("run", "-c", sql, "-t", f"readings={readings}")
    assert done.exit_code == 1
    assert "line 2, column 59" in done.stderr
    assert "hint: did you mean s?" in done.stderr


def test_an_error_while_rows_are_computed_is_located_and_has_no_java_in_it(invoke):
    for form in ("table", "csv", "json"):
        done = invoke("run", "-c", "SELECT id, 1 / (id - 5) AS x FROM range(10)", "-f", form)
        assert done.exit_code == 1
        assert "error [DIVIDE_BY_ZERO] " in done.stderr, form
        assert "line 1, column 12" in done.stderr, form
        assert "\tat " not in done.stderr
        assert "Traceback" not in done.stderr


def test_an_error_without_a_place_still_has_its_condition_and_message(invoke):
    for form in ("table", "csv", "json"):
        done = invoke("run", "-c", "SELECT raise_error('no such day') AS x", "-f", form)
        assert (done.exit_code, done.stdout.strip()) == (1, "x" if form == "csv" else "")
        assert done.stderr == "error [USER_RAISED_EXCEPTION] no such day\n", form


def test_a_missing_table_is_told_with_the_tables_that_are_attached(invoke, readings):
    near = invoke("run", "-c", "SELECT * FROM reading", "-t", f"readings={readings}")
    far = invoke("run", "-c", "SELECT * FROM zz", "-t", f"readings={readings}", "-t", f"other={readings}")
    none = invoke("run", "-c", "SELECT * FROM zz")
    assert near.exit_code == far.exit_code == none.exit_code == 1
    assert "hint: did you mean readings?" in near.stderr
    assert "hint: tables attached are readings, other" in far.stderr
    assert "hint: attach its files with --table zz=PATH" in none.stderr


def test_a_table_that_cannot_be_read_is_told_before_anything_runs(invoke, tmp_path, readings):
    done = invoke("run", "-c", "SELECT 1", "-t", f"r={tmp_path / 'reading.csv'}", "-f", "csv")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "[PATH_NOT_FOUND]" in done.stderr
    assert "hint: did you mean readings.csv?" in done.stderr


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_malformed_record_is_told_with_its_file_and_table(invoke, readings, tmp_path, form):
    torn = tmp_path / "torn.csv"
    torn.write_text("station,val\nA,1\nB\n", encoding="utf-8")
    tables = ("-t", f"readings={readings}", "-t", f"torn={torn}")
    done = invoke("run", "-c", "SELECT * FROM torn JOIN readings USING (station)", *tables, "-f", form)
    assert done.exit_code == 1
    said = f"table torn: file {torn} has a record that is malformed or cut short: B"
    assert done.stderr.startswith(f"error [MALFORMED_RECORD] {said}\nhint: correct the record")


def test_a_wrong_table_name_or_format_is_a_usage_error(invoke, readings):
    assert invoke("run", "-c", "SELECT 1", "-t", f"my-table={readings}").exit_code == 2
    done = invoke("run", "-c", "SELECT 1", "-t", f"r={readings}", "--table-format", "cvs")
    assert done.exit_code == 2
    assert "hint: did you mean csv?" in done.stderr


def test_debug_shows_where_an_error_comes_from(invoke):
    done = invoke("run", "-c", "SELECT 1 / 0 AS x", "--debug", "-f", "csv")
    assert done.exit_code == 1
    assert "Traceback (most recent call last)" in done.stderr
    assert "error [DIVIDE_BY_ZERO] " in done.stderr
