"""Reading case files: what a file says, and that every complaint names its line. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from .casefile import CaseError, ExpectedError, ExpectedRows, locate, parse

PATH = Path("theme.case")

FULL = """\
theme All sections

# shared by every case
set spark.sql.ansi.enabled = false

input t
    a string, n int
    x | 1
    y | NULL

case everything
input u
    d date
    2020-01-01
params {"low": 1}
setup
    CREATE TEMP VIEW v AS
    SELECT ';' AS c;

    CREATE TEMP VIEW x AS SELECT 1;
query
    SELECT a
      FROM t
twin other: n is unique
    SELECT a FROM t
twin another: never NULL
    SELECT a FROM u
notimpl(batch): the kernel is not written
never(reference): it has no plan
expect ordered tolerance 1e-9: sums in another order
    a string
    x

    y

case refused
query
    SELECT b FROM t
error UNKNOWN_FIELD
    at: SELECT «b»
    hint: did you mean a?
"""


def test_a_file_with_every_section() -> None:
    file = parse(FULL, PATH)
    everything, refused = file.cases
    assert file.title == "All sections"
    assert [table.name for table in everything.tables] == ["t", "u"]
    assert everything.tables[0].rows == (("x", 1), ("y", None))
    assert everything.settings == (("spark.sql.ansi.enabled", "false"),)
    assert everything.params == {"low": 1}
    assert everything.setup == ("CREATE TEMP VIEW v AS\nSELECT ';' AS c", "CREATE TEMP VIEW x AS SELECT 1")
    assert everything.query == "SELECT a\n  FROM t"
    assert [(twin.name, twin.condition, twin.sql) for twin in everything.twins] == [
        ("other", "n is unique", "SELECT a FROM t"),
        ("another", "never NULL", "SELECT a FROM u"),
    ]
    assert isinstance(everything.expected, ExpectedRows)
    assert everything.expected.rows == (("x",), ("y",))
    assert everything.expected.ordered
    assert everything.expected.tolerance is not None
    assert everything.expected.tolerance.relative == 1e-9
    marker = everything.marker("batch")
    assert marker is not None
    assert (marker.kind, marker.reason) == ("notimpl", "the kernel is not written")
    assert [table.name for table in refused.tables] == ["t"]
    assert isinstance(refused.expected, ExpectedError)
    assert (refused.expected.start, refused.expected.stop) == (7, 8)
    assert refused.expected.hint == "did you mean a?"


def test_the_lines_of_an_expectation_are_those_below_its_header() -> None:
    expected = parse(FULL, PATH).cases[0].expected
    start, stop = expected.lines
    assert FULL.split("\n")[start:stop] == ["    a string", "    x", "", "    y"]


def test_a_log_keeps_entries_in_order_with_times_and_producers() -> None:
    text = """\
theme Logs
log bids rowtime at
    at timestamp, item string
    at 2020-01-01 08:07:00 from p1 row 2020-01-01 08:05:00 | A
    at 2020-01-01 08:08:00 from p1 bound 2020-01-01 08:06:00
    watermark 2020-01-01 08:05:00
    punctuation * | [A, B]
    from p2 idle
    from p2 close
case c
query
    SELECT 1
expect
    x int
"""
    (log,) = parse(text, PATH).cases[0].logs
    assert log.rowtime == "at"
    assert [(entry.kind, entry.producer) for entry in log.entries] == [
        ("row", "p1"),
        ("bound", "p1"),
        ("watermark", None),
        ("punctuation", None),
        ("idle", "p2"),
        ("close", "p2"),
    ]
    assert log.entries[0].ptime == datetime(2020, 1, 1, 8, 7, tzinfo=UTC)
    assert log.entries[1].bound == datetime(2020, 1, 1, 8, 6, tzinfo=UTC)
    assert log.entries[3].pattern == ("*", "[A, B]")
    assert log.table().rows == ((datetime(2020, 1, 1, 8, 5, tzinfo=UTC), "A"),)


def test_a_case_replaces_an_input_of_the_prologue() -> None:
    text = (
        "theme T\ninput t\n    a int\n    1\n"
        "case c\ninput t\n    a int\n    2\nquery\n    q\nexpect\n    a int\n"
    )
    (table,) = parse(text, PATH).cases[0].tables
    assert table.rows == ((2,),)


def test_a_log_replaces_a_table_of_the_same_name() -> None:
    text = (
        "theme T\ninput t\n    a int\n    1\ncase c\nlog t rowtime a\n    a int\n    row 2\n"
        "query\n    q\nexpect\n    a int\n"
    )
    case = parse(text, PATH).cases[0]
    assert case.tables == ()
    assert [log.name for log in case.logs] == ["t"]


def test_inputs_are_included_from_a_file_beside(tmp_path: Path) -> None:
    (tmp_path / "shared.inputs").write_text("input t\n    a int\n    1\n", encoding="utf-8")
    text = "theme T\ninclude shared.inputs\ncase c\nquery\n    q\nexpect\n    a int\n"
    assert [table.name for table in parse(text, tmp_path / "x.case").cases[0].tables] == ["t"]


GOOD = "theme T\ninput t\n    a int\n    1\ncase c\nquery\n    SELECT a, a FROM t\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("    stray\n", 1, "indented text that belongs to no section"),
        ("theme T\nquerry\n    SELECT\n", 2, "unknown section 'querry'"),
        ("query\n    SELECT\n", 1, "query before the first case"),
        ("input t\n", 1, "input needs a schema"),
        ("input t\n    a integer\n", 2, "unknown type integer"),
        ("input t\n    a int\n    1\n    x\n", 4, "'x' is not a int"),
        ("input two words\n    a int\n", 1, "expected input NAME"),
        ("set ansi\n", 1, "expected set KEY = VALUE"),
        ("log t rowtime b\n    a int\n", 1, "the rowtime b is not a column"),
        ("log t\n    a int\n", 1, "expected log NAME rowtime COLUMN"),
        ("log t rowtime a\n    a int\n    rows 1\n", 3, "expected [at PTIME]"),
        ("log t rowtime a\n    a int\n    bound x\n", 3, "'x' is not a int"),
        ("log t rowtime a\n    a int, b int\n    punctuation *\n", 3, "one pattern per column"),
        ("theme T\ncase\n", 2, "a case needs a name"),
        ("theme T\ncase c\nexpect\n    a int\n", 2, "has no query"),
        (GOOD, 5, "needs either expect or error"),
        (GOOD + "expect\n    a int\nerror X\n    at: t\n", 5, "needs either expect or error"),
        (GOOD + "expect\n    a int\nexpect\n    a int\n", 10, "a second expect in one case"),
        (
            GOOD + "expect\n    a int\ncase c\nquery\n    q\nexpect\n    a int\n",
            10,
            "a second case named 'c'",
        ),
        (GOOD + "expect\n    a int\n    1 | 2\n", 10, "more cells than the 1 columns"),
        (GOOD + "expect sorted\n    a int\n", 8, "expected expect [ordered]"),
        (GOOD + "expect tolerance 1e-9:\n    a int\n", 8, "a tolerance needs its reason"),
        (GOOD + "error lower\n    at: FROM\n", 8, "expected error CONDITION"),
        (GOOD + "error X\n    message: m\n", 8, "an error needs at:"),
        (GOOD + "error X\n    where: m\n", 9, "expected at:, message: or hint:"),
        (GOOD + "error X\n    at: a\n", 8, "'a' occurs 2 times"),
        (GOOD + "error X\n    at: zzz\n", 8, "'zzz' occurs 0 times"),
        (GOOD + "error X\n    at: FROM\ntwin t: unique\n    SELECT 1\n", 5, "a twin of a query"),
        (GOOD + "expect\n    a int\ntwin over:\n    SELECT 1\n", 10, "the condition under which it agrees"),
        (GOOD + "expect\n    a int\ntwin over: unique\n", 10, "an empty twin"),
        (GOOD + "expect\n    a int\nnotimpl(batch):\n", 10, "the reason not empty"),
        (GOOD + "expect\n    a int\nnever(warp): why not\n", 10, "unknown mode warp"),
        (GOOD + "expect\n    a int\nnever(batch): why\n    and more\n", 11, "never is one line"),
        (GOOD + "expect\n    a int\nparams {x}\n", 10, "params is not JSON"),
        (GOOD + "expect\n    a int\nparams 1\n", 10, "params is a JSON object"),
        (GOOD + "expect\n    a int\ntheme U\n", 10, "theme after the first case"),
    ],
)
def test_a_mistake_is_reported_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(CaseError) as caught:
        parse(text, PATH)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"theme.case:{line}: ")


@pytest.mark.parametrize(
    ("place", "query", "fragment"),
    [
        ("b", "a b", (2, 3)),
        ("a «b» c", "b a b c", (4, 5)),
        ("«b» c", "b c", (0, 1)),
    ],
)
def test_a_place_is_found_by_its_context(place: str, query: str, fragment: tuple[int, int]) -> None:
    assert locate(place, query) == fragment


def test_an_unpaired_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="unpaired"):
        locate("a «b", "a b")
