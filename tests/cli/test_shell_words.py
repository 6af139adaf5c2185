"""What the shell makes of what is typed, without Spark."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("prompt_toolkit")

from windrow.cli.shell.completion import Names, candidates
from windrow.cli.shell.dot_commands import ARGUMENTS, COMMANDS
from windrow.cli.shell.loop import pieces
from windrow.cli.shell.text import is_complete

NAMES = Names({"weather": ("station", "date", "val"), "bids": ("item", "price")})
HEAVY = ("pyspark", "pandas", "numpy", "pyarrow", "sqlglot", "numba", "altair", "IPython")


def offered(text, kind=None):
    """What is offered at the `|` of a text."""
    before, _, after = text.partition("|")
    found = candidates(before, before + after, NAMES, ARGUMENTS)
    return [one.text for one in found if kind is None or one.kind == kind]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SELECT * FROM we|", ["weather"]),
        ("SELECT * FROM |", ["weather", "bids"]),
        ("SELECT w.st| FROM weather w", ["station"]),
        ("SELECT weather.| FROM weather", ["station", "date", "val"]),
        ("SELECT st| FROM weather", ["station", "start", "stddev"]),
        ("SELECT ST| FROM weather", ["station", "START", "STDDEV"]),
        # a window's variables are rows of the tables in FROM
        ("FROM weather WINDOW BY w AS (TYPE SLIDING ORDER BY date START AS s WHEN s.v|", ["val"]),
        ("SELECT s.| FROM weather WINDOW BY w AS (TYPE SLIDING START AS s)", ["station", "date", "val"]),
        ("FROM bids MATCH_RECOGNIZE (PATTERN (A B+) DEFINE B AS B.p|", ["price"]),
        ("SELECT 1 FROM weather window b|", ["window by"]),
        ("AFTER MATCH SK|", ["AFTER MATCH SKIP PAST LAST ROW", "AFTER MATCH SKIP TO NEXT ROW"]),
        ("SELECT 'fro|", []),
        ("SELECT 1 -- fro|", []),
        ("SELECT nothing.|", []),
        (".mo|", [".mode"]),
        (".mode ch|", ["changelog"]),
        (".schema b|", ["bids"]),
    ],
)
def test_what_is_offered(text, first):
    found = offered(text)
    assert [one for one in found if one in first] == first
    assert (not first) == (not found)


def test_keywords_come_in_the_case_that_is_typed():
    assert "window by" in offered("select 1 from weather win|")
    assert "WINDOW BY" in offered("SELECT 1 FROM weather WIN|")
    assert "match_recognize" in offered("from weather mat|")


def test_variables_of_the_window_are_offered_with_what_they_are():
    text = "FROM weather WINDOW BY wide AS (TYPE SLIDING ORDER BY date START AS wet AT where_s WHEN w|"
    assert offered(text, "row of the window") == ["wide", "wet"]
    assert offered(text, "position") == ["where_s"]


def test_enter_goes_on_until_a_semicolon_that_ends_the_statement():
    assert not is_complete("SELECT ';' AS a")
    assert not is_complete("SELECT 1; /* not yet")
    assert not is_complete("SELECT 1; SELECT 2")
    assert is_complete("SELECT `a;b` FROM t;\n")
    assert is_complete("  .tables")


def test_a_text_is_taken_apart_where_statements_are_complete():
    text = "-- a script\n.mode csv\nSELECT 1;\nSELECT\n';' AS a;\n\n.quit\n"
    assert list(pieces(text)) == ["-- a script\n.mode csv\nSELECT 1;", "SELECT\n';' AS a;", "", ".quit"]


def test_each_command_says_what_it_does_and_the_issue_s_are_there():
    assert all(command.does for command in COMMANDS.values())
    wanted = [
        "help",
        "tables",
        "schema",
        "mode",
        "timer",
        "read",
        "watch",
        "stop",
        "late",
        "state",
        "explain",
        "plot",
        "open",
    ]
    assert {f".{name}" for name in wanted} <= set(COMMANDS)


def test_the_prompt_needs_nothing_heavy():
    code = f"import sys, windrow.cli.shell.prompt; print([m for m in {HEAVY} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.slow
def test_importing_windrow_imports_no_extra():
    extras = ("altair", "IPython", "prompt_toolkit", "pygments")
    code = f"import sys, windrow, windrow.session; print([m for m in {extras} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
