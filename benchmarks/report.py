"""A run as a table for the terminal, and as a section of `figures.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.table import Table

from benchmarks.results import Row, Run

__all__ = ["PAGE", "into_page", "markdown", "table"]

PAGE = Path(__file__).parent / "figures.md"
_COLUMNS = ("query", "data", "rows", "of", "figure", "against", "its figure", "ratio", "target", "met")
_NUMBERS = {"rows", "figure", "its figure", "ratio", "target"}


def table(run: Run) -> Table:
    """All rows of a run."""
    made = Table(caption=_summary(run), caption_justify="left")
    for column in _COLUMNS:
        made.add_column(column, justify="right" if column in _NUMBERS else "left", overflow="fold")
    for row in run.rows:
        style = {True: "green", False: "red", None: None}[row.met]
        made.add_row(*_cells(row), style=style)
    return made


def markdown(run: Run) -> str:
    """The section of results."""
    return "\n".join(_lines(run))


def into_page(runs: Sequence[str], page: Path = PAGE, section: str = "results") -> None:
    """Put runs, as Markdown, in place of those that a section of the page has."""
    begin, end = f"<!-- {section}: begin -->", f"<!-- {section}: end -->"
    head, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, ended, tail = rest.partition(end)
    if not (found and ended):
        raise ValueError(f"{page} has no {begin} … {end}")
    body = "\n\n".join(runs)
    page.write_text(f"{head}{begin}\n\n{body}\n\n{end}{tail}", encoding="utf-8")


def _lines(run: Run) -> Iterator[str]:
    yield _summary(run)
    yield ""
    for title, facts in (
        ("Machine", run.machine),
        ("Versions", run.versions),
        ("Run", run.settings),
    ):
        yield f"- {title}: {_listed(facts)}"
    yield ""
    yield _line(_COLUMNS)
    yield _line("--:" if column in _NUMBERS else "---" for column in _COLUMNS)
    yield from (_line(_cells(row)) for row in run.rows)
    if missed := [row for row in run.rows if row.met is False]:
        yield ""
        yield "Targets missed:"
        yield ""
        yield from (f"- {_missed(row)}" for row in missed)
    if run.failures:
        yield ""
        yield "Comparisons that failed:"
        yield ""
        yield from (f"- {failure.comparison}: {failure.error}" for failure in run.failures)


def _summary(run: Run) -> str:
    targets = [row for row in run.rows if row.met is not None]
    met = sum(row.met is True for row in targets)
    checked = len({row.comparison for row in run.rows if row.checksum})
    failed = f" Comparisons that failed: {len(run.failures)}." if run.failures else ""
    return (
        f"{met} of {len(targets)} targets are met. "
        f"Comparisons in which all systems gave the same answers: {checked}.{failed}"
    )


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.query,
        row.data,
        f"{row.rows:,}",
        row.subject,
        _figure(row, row.value),
        row.peer,
        _figure(row, row.peer_value),
        _ratio(row.ratio),
        "" if row.target is None else f"≤ {row.target:g}",
        {True: "yes", False: "no", None: ""}[row.met],
    )


def _missed(row: Row) -> str:
    assert row.target is not None
    return (
        f"{row.comparison}: {row.subject} against {row.peer}, {_ratio(row.ratio)} instead of {row.target:g} "
        f"({row.ratio / row.target:.2g} × the target)"
    )


def _figure(row: Row, value: float) -> str:
    return f"{value:,.0f} {row.unit}" if row.unit == "MB" else f"{value:.2f} {row.unit}"


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def _listed(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def _line(cells: Iterator[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"
