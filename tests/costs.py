"""What each test costs: a report of every run, the dearest first."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

__all__ = ["Costs"]


class Costs:
    """Adds up the seconds of tests, with those of their fixtures, and writes them down after the last.

    Parameters
    ----------
    path
        The report: files with their seconds, then every test that took a tenth of a second or more.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self._seconds) < 2:
            return
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text(report(self._seconds), encoding="utf-8")
        total = sum(self._seconds.values())
        terminalreporter.write_line(f"what each test costs, {total:.0f} s in all: {self._path}")


def report(seconds: dict[str, float]) -> str:
    """The report of tests by their names.

    >>> print(report({"a.py::one": 2.0, "a.py::two": 1.5, "b.py::three": 0.04}), end="")
    seconds  tests  file
        3.5      2  a.py
        0.0      1  b.py
    <BLANKLINE>
    seconds  test
        2.0  a.py::one
        1.5  a.py::two
    """
    files: defaultdict[str, list[float]] = defaultdict(list)
    for name, cost in seconds.items():
        files[name.partition("::")[0]].append(cost)
    by_cost = sorted(files.items(), key=lambda file: -sum(file[1]))
    lines = ["seconds  tests  file"]
    lines += [f"{sum(costs):7.1f}  {len(costs):5}  {name}" for name, costs in by_cost]
    lines += ["", "seconds  test"]
    dearest = sorted(seconds.items(), key=lambda test: -test[1])
    lines += [f"{cost:7.1f}  {name}" for name, cost in dearest if cost >= 0.1]
    return "\n".join(lines) + "\n"
