"""Regenerating: only what no longer holds is rewritten, and only what may be. No Spark."""

from __future__ import annotations

from pathlib import Path

from windrow.errors import AnalysisError, Span

from .casefile import Case
from .literals import parse_schema
from .regenerate import regenerated
from .runner import Answer

PATH = Path("theme.case")

ROWS = """\
theme T

# a comment
case first
query
    SELECT a FROM t
expect
    a int,  b string
    2 | y
    1|x

case second
query
    SELECT b FROM t
expect
    a int, b string
    7 | z

# the last words
"""

ERROR = """\
theme T
case first
query
    SELECT b, b FROM t
error UNKNOWN
    at: SELECT «b»
    hint: did you mean
"""

SCHEMA = parse_schema("a int, b string")


def _answers(*rows: tuple[object, ...]) -> Answer:
    return Answer(SCHEMA, rows)


def test_what_holds_stays_byte_for_byte() -> None:
    def ask(case: Case) -> Answer:
        return _answers((1, "x"), (2, "y")) if case.name == "first" else _answers((7, "z"))

    assert regenerated(ROWS, PATH, ask) == (ROWS, [])


def test_only_the_block_that_differs_is_rewritten_sorted_and_aligned() -> None:
    def ask(case: Case) -> Answer:
        return _answers((10, "x"), (None, "NULL"), (2, "y z")) if case.name == "first" else _answers((7, "z"))

    text, complaints = regenerated(ROWS, PATH, ask)
    assert complaints == []
    old = "    a int,  b string\n    2 | y\n    1|x\n"
    new = '    a int, b string\n    NULL | "NULL"\n       2 | y z\n      10 | x\n'
    assert text == ROWS.replace(old, new)


def test_two_blocks_of_other_lengths_are_both_put_in_place() -> None:
    text, _ = regenerated(ROWS, PATH, lambda _: _answers((1, "a"), (2, "b"), (3, "c")))
    assert text.count("    3 | c\n") == 2
    assert text.endswith("\n# the last words\n")
    assert regenerated(text, PATH, lambda _: _answers((1, "a"), (2, "b"), (3, "c"))) == (text, [])


def test_an_answer_that_becomes_an_error_is_left_for_a_person() -> None:
    def ask(case: Case) -> Answer:
        raise AnalysisError("no", condition="NO", span=Span(0, 1), sql=case.query)

    text, complaints = regenerated(ROWS, PATH, ask)
    assert text == ROWS
    assert [complaint.split(": ")[:2] for complaint in complaints] == [
        ["theme.case:4", "first"],
        ["theme.case:12", "second"],
    ]


def test_an_error_that_becomes_an_answer_is_left_for_a_person() -> None:
    text, complaints = regenerated(ERROR, PATH, lambda _: _answers((1, "x")))
    assert text == ERROR
    assert "now answers 1 rows instead of UNKNOWN" in complaints[0]


def test_an_error_section_takes_the_condition_the_place_and_the_hint() -> None:
    def ask(case: Case) -> Answer:
        raise AnalysisError(
            "no b", condition="UNKNOWN_FIELD", span=Span(10, 11), sql=case.query, hint="write a"
        )

    text, complaints = regenerated(ERROR, PATH, ask)
    assert complaints == []
    assert text.endswith("error UNKNOWN_FIELD\n    at: SELECT b, «b» FROM t\n    hint: write a\n")


def test_a_case_that_the_reference_cannot_run_is_left_alone() -> None:
    marked = ROWS.replace("case second\n", "case second\nnotimpl(reference): not yet\n")
    text, _ = regenerated(marked, PATH, lambda _: _answers((1, "x"), (2, "y")))
    assert text == marked
