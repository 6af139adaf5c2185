"""Runs the cases, each system in a process of its own, one after the other in each round."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.live.cases import CASES, EVENTS, NEXMARK, Case
from benchmarks.live.data import Load, written, written_events

__all__ = ["LOADS", "Figure", "run"]

_ROOT = Path(__file__).parents[2]

LOADS = ("rate", "latency", "state", "flink")
"""What is measured: micro-batches of many rows; of a thousand; an hour of 100,000 keys; all of CSV files."""


@dataclass(frozen=True)
class Figure:
    """What a system did with a case.

    Attributes
    ----------
    load
        One of `LOADS`.
    rate
        Input rows a second, of all micro-batches but the first quarter, in which Java compiles. Beside Flink,
        of all rows by the wall clock, from the declaration of the streams to the end; the median of rounds.
    p50, p99
        Seconds of a micro-batch, of the same.
    given
        Rows given; -1 where that is not known.
    state
        The most that Windrow kept in the second half of the run, over the most in the first.
    steady
        Beside Flink, the rate without the start: of the rows that a whole run has beyond one of the
        first file, in the time that it takes beyond that.
    """

    case: str
    load: str
    system: str
    rows: int
    rate: float
    p50: float
    p99: float
    given: int
    state: float = 0.0
    kept: int = 0
    steady: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """As it is written."""
        return asdict(self)


def run(
    folder: Path,
    names: list[str],
    rows: int,
    flink: Path | None,
    tell: Callable[[Figure], None],
    wanted: tuple[str, ...] = LOADS,
    rounds: int = 1,
) -> Iterator[Figure]:
    """The figures of these cases, as they are made.

    Parameters
    ----------
    folder
        Where the files of readings are.
    rows
        Of a large micro-batch.
    flink
        A Python with PyFlink; None to leave Flink out.
    wanted
        Those of `LOADS` that are run.
    rounds
        How often Windrow and Flink take turns.
    """
    for name in names:
        case = CASES[name]
        # of NEXMark two million events where other cases have a million rows in each micro-batch
        many = Load(8, rows // 4, 0) if name.startswith(NEXMARK) else Load(16, rows, 2_000)
        for load, files in (("rate", many), ("latency", Load(files=60, rows=1_000, keys=100))):
            if load not in wanted:
                continue
            folders = _folders(case, files, folder)
            own = ["windrow", "executors"] if case.on_executors else ["windrow"]
            for system in (*own, *(["spark"] if case.native else [])):
                figure = _figure(name, load, system, _asked(system, name, folders, "parquet"))
                tell(figure)
                yield figure
        if flink is not None and case.flink is not None and "flink" in wanted:
            for figure in _against_flink(folder, name, case, rows, flink, rounds):
                tell(figure)
                yield figure
    if "tumbling" in names and "state" in wanted:
        # an hour, in minutes, of 100,000 keys that are seen every 100 seconds
        hour = Load(files=60, rows=60_000, keys=100_000, step=100_000_000)
        answer = _asked("windrow", "five-minutes", [str(written(hour, folder, 0))], "parquet")
        figure = _figure("five-minutes", "state", "windrow", answer)
        tell(figure)
        yield figure


def _folders(case: Case, load: Load, folder: Path) -> list[str]:
    """Those of the streams of a case, made if they are not there."""
    if case.streams.keys() <= EVENTS.keys():
        events = written_events(load, folder)
        return [str(events / name) for name in case.streams]
    return [str(written(load, folder, seed)) for seed in range(len(case.streams))]


def _asked(system: str, case: str, folders: list[str], form: str) -> dict[str, Any]:
    request = {"system": system, "case": case, "folders": folders, "format": form}
    command = [sys.executable, "-m", "benchmarks.live.process", json.dumps(request)]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _figure(case: str, load: str, system: str, answer: dict[str, Any]) -> Figure:
    batches = [(seconds, rows) for _, seconds, rows in answer["batches"]]
    batches = batches[len(batches) // 4 :]
    seconds = sorted(seconds for seconds, _ in batches)
    rows = sum(rows for _, rows in batches)
    sizes = answer["state"]
    half = len(sizes) // 2
    state = max(sizes[half:]) / max(1, *sizes[:half]) if system == "windrow" and half else 0.0
    p99 = quantiles(seconds, n=100)[-1] if len(seconds) > 1 else seconds[0]
    given, kept = answer["rows"], max(sizes)
    return Figure(case, load, system, rows, rows / sum(seconds), median(seconds), p99, given, state, kept)


def _of_flink(stream: tuple[str, str], folder: str, rowtime: str) -> str:
    """A stream of CSV files as Flink SQL declares it."""
    name, columns = stream
    quoted = ", ".join(
        f"`{column}` {kind.replace('TIMESTAMP', 'TIMESTAMP(3)')}"
        for column, kind in (item.strip().split() for item in columns.split(","))
    )
    return (
        f"CREATE TABLE {name} ({quoted}, WATERMARK FOR `{rowtime}` AS `{rowtime}`)"
        f" WITH ('connector' = 'filesystem', 'path' = 'file://{folder}', 'format' = 'csv')"
    )


def _against_flink(
    folder: Path, name: str, case: Case, rows: int, flink: Path, rounds: int
) -> Iterator[Figure]:
    """From CSV files, which are all that Flink reads without further parts: from start to end, in turn.

    Windrow reads files that come one after the other. Each of Flink's two tasks reads a file of its own from
    start to end: these have the same rows in turn, so that neither runs ahead of the other.
    """
    whole, first = (
        {
            "windrow": _folders(case, Load(files, rows, 2_000, format="csv"), folder),
            "flink": _folders(case, Load(2, files * rows // 2, 2_000, format="csv", abreast=True), folder),
        }
        for files in (_FILES, 1)
    )
    emitted, rows_in = -1, 0
    times: dict[str, list[tuple[float, float]]] = {"windrow": [], "flink": []}
    for _ in range(rounds):
        answers = [_asked("windrow", name, read["windrow"], "csv") for read in (first, whole)]
        rows_in, emitted = sum(rows for *_, rows in answers[1]["batches"]), answers[1]["rows"]
        at_first = sum(rows for *_, rows in answers[0]["batches"])
        times["windrow"].append((answers[0]["seconds"], answers[1]["seconds"]))
        begun, ended = (_seconds_of_flink(case, read["flink"], flink) for read in (first, whole))
        times["flink"].append((begun, ended))
    for system, taken in times.items():
        least, most = (median(seconds) for seconds in zip(*taken, strict=True))
        steady = (rows_in - at_first) / max(most - least, _TICK)
        given = emitted if system == "windrow" else -1
        yield Figure(name, "flink", system, rows_in, rows_in / most, 0.0, 0.0, given, steady=steady)


_FILES = 8
_TICK = 1e-3


def _seconds_of_flink(case: Case, folders: list[str], flink: Path) -> float:
    tables = [_of_flink(*item, case.rowtime) for item in zip(case.streams.items(), folders, strict=True)]
    command = [str(flink), str(Path(__file__).with_name("flink.py")), str(case.flink), *tables]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))
