"""The program from outside, without Spark: start-up, help, usage errors, colours, and datasets."""

from __future__ import annotations

import functools
import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from windrow import __version__
from windrow.datasets import weather

HEAVY = ("pyspark", "pandas", "numpy", "pyarrow", "sqlglot", "numba")


@pytest.fixture
def on_a_terminal(executable):
    """Exit code and output of the program where stdin, stdout and stderr are a terminal."""
    return functools.partial(run_on_a_terminal, executable)


def run_on_a_terminal(executable: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    inherited = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [executable, *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=inherited | {"TERM": "xterm-256color", "COLUMNS": "100"} | environment,
    )
    os.close(follower)
    output = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not piece:
            break
        output += piece
    os.close(leader)
    return child.wait(), output.decode().replace("\r\n", "\n")


def test_declaring_the_commands_imports_nothing_heavy():
    code = f"import sys, windrow.cli.main; print([m for m in {HEAVY} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_version_is_told(program):
    done = program("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"windrow {__version__}\n", "")


@pytest.mark.parametrize("master", ["local[0]", "local[x]", "locals"])
def test_a_master_that_is_none_is_told_of_before_spark_starts(program, master):
    done = program("run", "-c", "SELECT 1", "--master", master)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error [MALFORMED_OPTION] --master {master} is not a local Spark\n")


def test_a_closed_stdout_is_as_one_that_nobody_reads(executable):
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{executable} datasets {closed}"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_python_runs_it_where_no_programs_are_on_the_path():
    told = subprocess.check_output([sys.executable, "-m", "windrow", "--version"], text=True)
    assert told == f"windrow {__version__}\n"


@pytest.mark.parametrize("command", ["", "run", "explain", "check", "demo", "doctor", "datasets"])
def test_every_help_has_an_example_of_the_command(before_spark, command):
    done = before_spark(*command.split(), "--help")
    assert done.exit_code == 0
    assert f"windrow {command}".strip() in done.stdout.partition("Examples")[2]


@pytest.mark.parametrize(
    ("arguments", "condition", "hint"),
    [
        (["run", "-c", " ; -- nothing"], "NO_QUERY", "write a statement"),
        (["run", "-c", "SELECT 1", "query.sql"], "TWO_QUERIES", "put the query into one"),
        (["run", "missing.sql"], "QUERY_FILE_NOT_FOUND", "check the path"),
        (["run", "-c", "SELECT 1", "-t", "readings.csv"], "MALFORMED_OPTION", "write --table readings=data"),
        (["run", "-c", "SELECT 1", "-t", "=readings.csv"], "MALFORMED_OPTION", "write --table readings=data"),
        (["run", "-c", "SELECT 1", "--conf", "spark.x"], "MALFORMED_OPTION", "write --conf spark.sql"),
        (["run", "-c", "SELECT :low", "--param", "low"], "MALFORMED_OPTION", "write --param low=25"),
        (["explain", "-c", "SELECT :low", "--param", ":low=1"], "MALFORMED_OPTION", "write --param low=25"),
        (["check", "-c", "SELECT :low", "--param", "=1"], "MALFORMED_OPTION", "write --param low=25"),
        (
            ["run", "-c", "SELECT 1", "-t", "readings=r", "--table-format", "reading=csv"],
            "UNKNOWN_TABLE",
            "did you mean readings?",
        ),
        (["run", "-c", "SELECT 1", "--format", "parquet"], "NO_OUTPUT", "add --output"),
        (["run", "-c", "SELECT 1", "-o", "result.xlsx"], "UNKNOWN_FORMAT", "add --format"),
        (["run", "-c", "SELECT 1", "-f", "xml"], "UNKNOWN_FORMAT", "table, csv, json, markdown, parquet"),
        (["run", "-c", "SELECT 1", "-f", "jsn"], "UNKNOWN_FORMAT", "did you mean json?"),
        (["run", "-c", "SELECT 1", "--live", "--on-malformed", "x"], "MALFORMED_OPTION", "fail to fail"),
        (["run", "-c", "SELECT 1", "--plot", "windows.gif"], "UNKNOWN_FORMAT", ".svg, .png"),
        (["run", "-c", "SELECT 1", "--plot-key", "a"], "UNKNOWN_OPTION", "add --plot"),
        (["run", "-c", "SELECT 1", "--plot-rows", "9"], "UNKNOWN_OPTION", "add --plot"),
        (["run", "-c", "SET x = 1", "-o", "result.csv"], "NO_QUERY", "end it with a SELECT"),
        (["datasets", "wether", "-o", "w.parquet"], "UNKNOWN_DATASET", "did you mean weather?"),
        (["datasets", "weather"], "NO_OUTPUT", "add --output weather.parquet"),
        (["datasets", "weather", "-o", "w.xlsx"], "UNKNOWN_FORMAT", ".parquet or .csv"),
        (["datasets", "logins", "-o", "l.csv", "--days", "3"], "UNKNOWN_OPTION", "leave it out"),
    ],
)
def test_a_wrong_command_line_is_told_with_a_hint_and_exits_with_2(before_spark, arguments, condition, hint):
    done = before_spark(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error [{condition}] ")
    assert "hint: " in done.stderr
    assert hint in done.stderr


def test_the_program_exits_with_2_where_the_command_line_is_wrong(program):
    done = program("run", "-c", " ; -- nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error [NO_QUERY] ")


def test_an_unknown_option_exits_with_2(before_spark):
    assert before_spark("run", "--frmat", "csv").exit_code == 2


def test_a_query_that_is_no_text_is_told(before_spark, tmp_path):
    path = tmp_path / "query.sql"
    path.write_bytes(b"SELECT \xff")
    done = before_spark("run", path)
    assert (done.exit_code, "UNREADABLE_QUERY" in done.stderr) == (1, True)


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_told_at_once(program):
    # Port 1 is reserved, and nothing listens on it.
    done = program("run", "-c", "SELECT 1", "--master", "sc://127.0.0.1:1")
    assert done.returncode == 1
    assert "[SERVER_NOT_REACHED] no Spark Connect server answers at 127.0.0.1:1" in done.stderr


@pytest.mark.parametrize("command", ["run", "explain", "check"])
def test_a_file_that_is_not_there_or_empty_is_told_before_spark_is_started(before_spark, tmp_path, command):
    (tmp_path / "empty.csv").touch()
    missing, empty = tmp_path / "readings.parquet", tmp_path / "empty.csv"
    for path, condition, message in (
        (missing, "PATH_NOT_FOUND", f"path {missing} does not exist"),
        (empty, "EMPTY_FILE", f"file {empty} is empty"),
    ):
        done = before_spark(command, "-c", "SELECT 1", "-t", f"r={path}")
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error [{condition}] table r: {message}\n"), done.stderr


def test_without_a_query_on_a_terminal_the_program_does_not_wait_for_input(on_a_terminal):
    code, output = on_a_terminal("run")
    assert code == 2
    assert "there is no query to run" in output


@pytest.mark.slow
def test_errors_are_coloured_on_a_terminal_unless_no_color_is_set(on_a_terminal):
    _, coloured = on_a_terminal("run")
    _, plain = on_a_terminal("run", NO_COLOR="1")
    assert "\x1b[" in coloured
    assert "\x1b[3" not in plain


@pytest.mark.slow
def test_tables_have_ascii_frames_except_on_a_terminal(program, on_a_terminal):
    _, drawn = on_a_terminal("datasets")
    _, plain = on_a_terminal("datasets", NO_COLOR="1")
    assert "╭" in drawn
    assert plain.isascii()
    piped = program("datasets").stdout
    assert piped.isascii()
    assert "\x1b" not in piped
    assert "| weather | daily TMIN" in piped


def test_a_dataset_is_written_with_the_options_that_were_given(before_spark, tmp_path):
    for name in ("w.parquet", "w.csv"):
        done = before_spark("datasets", "weather", "-o", tmp_path / name, "--stations", 2, "--days", 5)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    expected = weather(stations=2, days=5)
    assert pq.read_table(tmp_path / "w.parquet").equals(expected)
    assert len((tmp_path / "w.csv").read_text(encoding="utf-8").splitlines()) == expected.num_rows + 1
    assert {path.name for path in tmp_path.iterdir()} == {"w.parquet", "w.csv"}


def test_the_doctor_says_what_to_do_and_exits_with_1_where_something_is_missing(python_without_packages):
    # The command line itself needs typer and rich, and nothing else.
    code = "import windrow.cli.main as m, sys; sys.argv = ['windrow', 'doctor']; m.run()"
    import rich
    import typer

    directories = {os.path.dirname(os.path.dirname(module.__file__)) for module in (rich, typer)}  # noqa: PTH120
    blocked = "import sys; sys.modules.update(dict.fromkeys(('pyspark',)));"
    done = subprocess.run(
        [python_without_packages, "-c", blocked + code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(directories)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "pyspark" in done.stdout
    assert "fail" in done.stdout
    assert "Traceback" not in done.stderr
