"""The paper's queries by MATCH_RECOGNIZE expect what they expect by WINDOW BY. No Spark."""

from __future__ import annotations

from .casefile import CASES, ExpectedRows, load


def _expected(*themes: str) -> dict[str, ExpectedRows]:
    cases = [case for theme in themes for case in load(CASES / f"{theme}.case").cases]
    return {case.name: case.expected for case in cases if isinstance(case.expected, ExpectedRows)}


def test_every_window_of_the_paper_has_a_pattern_with_the_same_rows():
    windows = _expected("paper_sliding", "paper_tumbling", "paper_label", "paper_sessions")
    patterns = _expected("paper_patterns")
    assert patterns.keys() == windows.keys()
    for name, expected in windows.items():
        assert patterns[name].schema == expected.schema, name
        assert patterns[name].rows == expected.rows, name
