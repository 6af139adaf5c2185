"""The standard's rules of row patterns: every one has a case."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .casefile import Case, ExpectedRows, case_files, load

HERE = Path(__file__).parent
CASES = {
    (path.stem.removeprefix("match_"), case.name): case
    for path in case_files()
    if path.stem.startswith("match_")
    for case in load(path).cases
}


@dataclass(frozen=True)
class Shown:
    """A rule, and a case that shows it; `how` is nothing, ``refused`` or ``beyond``."""

    rule: str
    how: str
    file: str
    name: str

    @property
    def case(self) -> Case | None:
        return CASES.get((self.file, self.name))


def rules() -> tuple[list[str], list[Shown]]:
    """All rules by their sections, and the cases of each."""
    known, shown = [], []
    section = ""
    for line in (HERE / "standard_row_patterns.txt").read_text(encoding="utf-8").splitlines():
        depth, text = len(line) - len(line.lstrip()), line.strip()
        if not text or text.startswith("#"):
            continue
        if depth == 0:
            section = text
        elif depth == 4:
            known.append(f"{section}: {text}")
        else:
            file, _, name = text.partition(": ")
            how, _, file = file.rpartition(" ")
            shown.append(Shown(known[-1], how, file, name))
    return known, shown


RULES, SHOWN = rules()


def test_every_rule_has_a_case() -> None:
    assert sorted(set(RULES) - {shown.rule for shown in SHOWN}) == []
    assert len(RULES) > 100


def test_every_case_is_there() -> None:
    assert [f"{shown.file}: {shown.name}" for shown in SHOWN if shown.case is None] == []


def test_what_the_standard_refuses_is_refused_and_nothing_else() -> None:
    assert {shown.how for shown in SHOWN} == {"", "refused", "beyond"}
    wrong = [
        shown
        for shown in SHOWN
        if shown.case is not None
        and isinstance(shown.case.expected, ExpectedRows) == (shown.how == "refused")
    ]
    assert wrong == []


def test_cases_of_the_standard_alone_are_those_of_a_rule() -> None:
    named = {shown.name for shown in SHOWN if shown.file == "standard"}
    assert sorted(name for file, name in CASES if file == "standard" and name not in named) == []
