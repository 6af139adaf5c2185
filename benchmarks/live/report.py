"""Figures of live queries, as a file and as a section of `figures.md`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.live.cases import CASES
from benchmarks.live.running import Figure
from benchmarks.machine import commit, machine, versions

__all__ = ["markdown", "write"]

_OURS = ("windrow", "executors")
"""The driver, and Spark's executors."""

_LOADS = {
    "rate": "micro-batches of many rows",
    "latency": "micro-batches of 1,000 rows",
    "state": "an hour of 100,000 keys",
    "flink": "from CSV, start to end",
}


def write(figures: Sequence[Figure], out: Path) -> None:
    """Keep figures with what is needed to read them."""
    out.parent.mkdir(parents=True, exist_ok=True)
    told = {"machine": machine(), "versions": versions(), "commit": commit()}
    out.write_text(json.dumps({**told, "figures": [figure.to_json() for figure in figures]}, indent=1))


def markdown(file: Path) -> str:
    """A run that was kept, as a section of the page."""
    return "\n".join(_lines(json.loads(file.read_text())))


def _lines(run: dict[str, Any]) -> Iterator[str]:
    for title in ("machine", "versions"):
        yield f"- {title.capitalize()}: {', '.join(f'{name} {value}' for name, value in run[title].items())}"
    yield f"- Commit: {run['commit']}"
    yield ""
    yield "| query | load | system | rows | rows/s | × | steady | × | p50 | p99 | rows emitted |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    figures = [Figure(**figure) for figure in run["figures"]]
    for figure in figures:
        peer = next(
            (
                other
                for other in figures
                if (other.case, other.load) == (figure.case, figure.load) and other.system not in _OURS
            ),
            None,
        )
        beside = peer if figure.system in _OURS else None
        ratio = f"{figure.rate / beside.rate:.2f}" if beside else ""
        steady = f"{figure.steady:,.0f}" if figure.steady else ""
        of_steady = f"{figure.steady / beside.steady:.2f}" if beside and beside.steady else ""
        times = [f"{seconds:.2f} s" if seconds else "" for seconds in (figure.p50, figure.p99)]
        given = f"{figure.given:,}" if figure.given >= 0 else ""
        yield (
            f"| {CASES[figure.case].title} | {_LOADS[figure.load]} | {figure.system} | {figure.rows:,} |"
            f" {figure.rate:,.0f} | {ratio} | {steady} | {of_steady} |"
            f" {times[0]} | {times[1]} | {given} |"
        )
    for figure in figures:
        if figure.load == "state":
            yield ""
            yield (
                f"State over an hour of 100,000 keys: at most {figure.kept / 2**20:.0f} MiB;"
                f" the most in the second half is {figure.state:.2f} × the most in the first."
            )
