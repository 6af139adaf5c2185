"""Rewrite what cases expect: ``python -m tests.conformance.regenerate [FILES]``.

The reference mode is asked. Only the bodies of expect and error sections that no longer hold are rewritten;
every other byte of a file stays. A case whose kind changes (rows where an error was expected, or the reverse)
is reported and left as it is, and the exit status is then 1: that is for a person to decide. Read the diff
before committing it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import windrow
from windrow.errors import WindrowError

from .casefile import MODES, Case, CaseFile, ExpectedError, ExpectedRows, case_files, locate, parse
from .literals import render_rows, render_schema
from .runner import Answer, answer, difference, error_difference

__all__ = ["main", "regenerated"]

Ask = Callable[[Case], Answer]


def main(arguments: Sequence[str]) -> int:
    """Regenerate the files named, or all; 1 where a case needs a person."""
    spark = windrow.Session().spark

    def ask(case: Case) -> Answer:
        return answer(spark, case, MODES[0])

    complaints: list[str] = []
    for path in [Path(argument) for argument in arguments] or case_files():
        before = path.read_text(encoding="utf-8")
        after, refused = regenerated(before, path, ask)
        complaints += refused
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"rewritten: {path}")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


def regenerated(text: str, path: Path, ask: Ask) -> tuple[str, list[str]]:
    """The text with the expectations that `ask` contradicts replaced, and the cases that could not be."""
    file: CaseFile = parse(text, path)
    lines = text.split("\n")
    complaints: list[str] = []
    for case in reversed(file.cases):
        if case.marker(MODES[0]) is not None:
            continue
        try:
            body = _body(case, ask)
        except _ChangedKind as change:
            complaints.append(f"{path}:{case.line}: {case.name}: {change}")
            continue
        if body is not None:
            start, stop = case.expected.lines
            if isinstance(case.expected, ExpectedError):
                start -= 1
            lines[start:stop] = body
    return "\n".join(lines), complaints[::-1]


class _ChangedKind(Exception):
    """Rows where an error was expected, or the reverse."""


def _body(case: Case, ask: Ask) -> list[str] | None:
    """The lines to put in place of what the case expects, or None where it holds."""
    try:
        found = ask(case)
    except WindrowError as error:
        if isinstance(case.expected, ExpectedRows):
            raise _ChangedKind(f"is now refused: {error}") from error
        if error_difference(case.expected, case.query, error) is None:
            return None
        return _error_lines(case.expected, case.query, error)
    if isinstance(case.expected, ExpectedError):
        raise _ChangedKind(f"now answers {len(found.rows)} rows instead of {case.expected.condition}")
    if difference(case.expected, found) is None:
        return None
    rows = found.rows if case.expected.ordered else sorted(found.rows, key=_order)
    return [f"    {line}" for line in (render_schema(found.schema), *render_rows(rows, found.schema))]


def _error_lines(expected: ExpectedError, query: str, error: WindrowError) -> list[str]:
    """An error section, header included, that says what the error says."""
    lines = [f"error {error.getCondition()}"]
    span = error.span
    if span is None:
        raise _ChangedKind(f"is refused without a position: {error}")
    lines.append(f"    at: {_place(query, span.start, span.stop)}")
    if expected.message is not None:
        lines.append(f"    message: {_kept(expected.message, error.message)}")
    if expected.hint is not None and error.hint is not None:
        lines.append(f"    hint: {_kept(expected.hint, error.hint)}")
    return lines


def _kept(part: str, whole: str) -> str:
    """The part that the case names, as long as it still is one."""
    return part if part in whole else whole


def _place(query: str, start: int, stop: int) -> str:
    """The fragment, with as many words around it as make it the only one of its kind."""
    fragment = query[start:stop]
    if query.count(fragment) == 1:
        return fragment
    line_start, line_stop = query.rfind("\n", 0, start) + 1, query.find("\n", stop)
    line_stop = len(query) if line_stop < 0 else line_stop
    place = f"{query[line_start:start]}«{fragment}»{query[stop:line_stop]}".strip()
    try:
        locate(place, query)
    except ValueError as error:
        raise _ChangedKind(f"no place for the caret at {start} is unique: {error}") from error
    return place


def _order(row: tuple[object, ...]) -> tuple[tuple[bool, str, object], ...]:
    """NULLs first, then by value where values of one column are of one type."""
    return tuple((value is not None, type(value).__name__, _sortable(value)) for value in row)


def _sortable(value: object) -> object:
    return repr(value) if isinstance(value, tuple) or value is None else value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
