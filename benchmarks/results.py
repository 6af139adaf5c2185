"""What a run leaves: rows of ratios, and what is needed to read them. Kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.comparisons import Comparison, Entry
from benchmarks.timing import Timings

__all__ = ["Failure", "Row", "Run", "read", "rows_of", "write"]

Unit = Literal["s", "MB"]


@dataclass(frozen=True)
class Row:
    """One ratio: Windrow's figure over a peer's, or over another of its own, of the same rounds."""

    comparison: str
    query: str
    data: str
    rows: int
    subject: str
    value: float
    """Windrow's: the shortest time of all rounds."""
    peer: str
    peer_value: float
    target: float | None
    unit: Unit = "s"
    checksum: str | None = None
    """What all have answered on a sample: the number of windows, and the sum of their values."""
    values: tuple[float, ...] = ()
    peer_values: tuple[float, ...] = ()

    @property
    def ratio(self) -> float:
        """Less than 1 where Windrow takes less."""
        return self.value / self.peer_value

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        return None if self.target is None else self.ratio <= self.target


@dataclass(frozen=True)
class Failure:
    """A comparison that gave no ratios, and why."""

    comparison: str
    error: str


@dataclass(frozen=True)
class Run:
    """All rows of one run, and what it ran on."""

    machine: dict[str, str]
    versions: dict[str, str]
    settings: dict[str, str]
    rows: list[Row]
    failures: list[Failure]


def rows_of(
    comparison: Comparison,
    measured: Sequence[Timings],
    row_counts: dict[tuple[str, int], int],
    checksum: str | None,
) -> list[Row]:
    """A row for every ratio that is asked for, at the largest size at which both were compared.

    `row_counts` has the rows that an entry read at a size.
    """
    rows = []
    for ask in comparison.asks:
        timings = _last_of(comparison, ask.peer, measured)
        if timings is None:
            continue
        subject = _best(comparison, ask.subject, timings)
        peer = _best(comparison, ask.peer, timings)
        rows.append(
            Row(
                comparison=comparison.name,
                query=subject.query.title,
                data=subject.data.title,
                rows=row_counts[subject.name, timings.size],
                subject=subject.title,
                value=timings.best(subject.name),
                peer=peer.name,
                peer_value=timings.best(peer.name),
                target=ask.target,
                checksum=checksum,
                values=tuple(timings.seconds[subject.name]),
                peer_values=tuple(timings.seconds[peer.name]),
            )
        )
    return rows


def _last_of(comparison: Comparison, group: str, measured: Sequence[Timings]) -> Timings | None:
    names = {entry.name for entry in comparison.entries if entry.group == group}
    return next((t for t in reversed(measured) if names & set(t.compared)), None)


def _best(comparison: Comparison, group: str, timings: Timings) -> Entry:
    candidates = [e for e in comparison.entries if e.group == group and e.name in timings.seconds]
    return min(candidates, key=lambda entry: timings.best(entry.name))


def write(run: Run, file: Path) -> None:
    """Keep a run."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(run), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(file: Path) -> Run:
    """A run that was kept."""
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return Run(
        kept["machine"],
        kept["versions"],
        kept["settings"],
        [Row(**row) for row in kept["rows"]],
        [Failure(**failure) for failure in kept["failures"]],
    )
