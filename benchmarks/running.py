"""A run: for each comparison the answers on a sample, then the rounds, then the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from benchmarks.check import agreed
from benchmarks.comparisons import Comparison, Entry
from benchmarks.data import ONE, row_count, stations_of
from benchmarks.machine import commit, machine, versions
from benchmarks.queries import next_rows
from benchmarks.remote import Remote
from benchmarks.results import Failure, Row, Run, rows_of
from benchmarks.systems import Systems
from benchmarks.timing import Budget, Contestant, measure

__all__ = ["MEMORY", "Settings", "check", "compare", "run"]

MEMORY = "memory"
"""The comparison of peaks of memory, the one that is not of times."""


@dataclass(frozen=True)
class Settings:
    """How much is run."""

    places: int
    """The full size, as `benchmarks.data` counts it."""
    rounds: int
    minutes: float
    largest: int = 1
    """The most data that memory is measured on, in full sizes."""


def run(
    comparisons: Sequence[Comparison],
    settings: Settings,
    *,
    with_memory: bool,
    tell: Callable[[str, Sequence[Row] | Failure], None],
) -> Run:
    """Run comparisons one after the other, and tell of each; one that fails does not stop the others.

    Those with processes of their own come first: later, this one's Java would take memory beside them.
    """
    kept = {"began": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "commit": commit()}
    kept |= {name: str(value) for name, value in asdict(settings).items()}
    on = machine()
    systems = Systems()
    work: dict[str, tuple[float, Callable[[float], list[Row]]]] = {}
    if with_memory:
        work[MEMORY] = (4, lambda _: _memory(settings))
    for comparison in sorted(comparisons, key=lambda c: c.entries[0].cores is None):
        work[comparison.name] = (comparison.weight, _comparing(comparison, systems, settings))

    budget = Budget(60 * settings.minutes, sum(weight for weight, _ in work.values()))
    rows: dict[str, list[Row]] = {}
    failures: list[Failure] = []
    for name, (weight, job) in work.items():
        try:
            rows[name] = job(budget.share(weight))
            tell(name, rows[name])
        except Exception as error:
            failures.append(Failure(name, f"{type(error).__name__}: {error}".splitlines()[0]))
            tell(name, failures[-1])
    systems.close()
    names = [comparison.name for comparison in comparisons] + [MEMORY]
    return Run(on, versions(), kept, [row for name in names for row in rows.get(name, [])], failures)


def _comparing(comparison: Comparison, systems: Systems, settings: Settings) -> Callable[[float], list[Row]]:
    return lambda allowance: compare(comparison, systems, settings, allowance)


def compare(comparison: Comparison, systems: Systems, settings: Settings, allowance: float) -> list[Row]:
    """The rows of one comparison, after all have given the same answers."""
    checksum = check(comparison, systems)
    sizes = [max(1, round(settings.places * share)) for share in comparison.sizes]
    row_counts: dict[tuple[str, int], int] = {}
    with ExitStack() as stack:
        counts = {entry.cores for entry in comparison.entries if entry.cores is not None}
        remotes = {cores: stack.enter_context(Remote(cores)) for cores in counts}

        def contestant(entry: Entry) -> Contestant:
            def seconds(size: int) -> float:
                file = entry.data.file(max(1, round(size * entry.scale)))
                row_counts[entry.name, size] = row_count(file)
                if entry.cores is not None:
                    return remotes[entry.cores].run(entry.query.windrow, file)[0]
                system = systems[entry.system]
                system.open(file, stations_of(file) if entry.query.joins else None)
                started = time.perf_counter()
                system.run(entry.query)
                return time.perf_counter() - started

            return Contestant(entry.name, entry.group, seconds, entry.growth, entry.stays)

        contestants = [contestant(entry) for entry in comparison.entries]
        measured = measure(contestants, sizes, comparison.rounds or settings.rounds, allowance)
    return rows_of(comparison, measured, row_counts, checksum)


def check(comparison: Comparison, systems: Systems) -> str | None:
    """What all peers answer on the sample; None where there are none.

    Raises
    ------
    DifferentAnswersError
        Where they do not answer the same.
    """
    first = comparison.entries[0]
    asked = (first.query, first.data, first.scale)
    peers = [entry for entry in comparison.entries if (entry.query, entry.data, entry.scale) == asked]
    if len(peers) == 1 or first.cores is not None:
        return None
    answers = {}
    for entry in peers:
        system = systems[entry.system]
        sample = entry.data.sample()
        system.open(sample, stations_of(sample) if entry.query.joins else None)
        answers[entry.name] = system.fetch(entry.query)
    return str(agreed(answers))


def _memory(settings: Settings) -> list[Row]:
    """The peak of a Python worker over one long sequence, against that over a quarter of it."""
    query = next_rows(20)
    peaks: dict[int, float] = {}
    for quarters in (1, 4, 16):
        if quarters > 4 * settings.largest:
            break
        file = ONE.file(max(1, settings.places * quarters // 4))
        with Remote(2) as fresh:
            peaks[row_count(file)] = fresh.run(query.windrow, file)[1]
    smallest, *larger = peaks
    return [
        Row(
            comparison=MEMORY,
            query=query.title,
            data=ONE.title,
            rows=rows,
            subject="peak of a Python worker",
            value=peaks[rows],
            peer=f"with {smallest:,} rows",
            peer_value=peaks[smallest],
            target=None,
            unit="MB",
        )
        for rows in larger
    ]
