"""Makes position reports of cars on expressways, the same ones each time.

Cars enter an expressway at some segment, drive in one direction, report their position every thirty seconds,
and leave. Traffic is dense and slow in a stretch in the middle of each expressway. From time to time two cars
stop at one place for a few minutes: an accident.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEGMENT = 5280
"""Feet: a mile."""
SEGMENTS = 100
EVERY = 30
"""Seconds between the reports of a car."""


def reports(expressways: int, minutes: int, cars: int, seed: int = 1) -> pa.Table:
    """Position reports in order of their time.

    Parameters
    ----------
    expressways, minutes
        How many expressways there are, for how long.
    cars
        How many cars an expressway has at a time, in each direction, about.

    Returns
    -------
    pyarrow.Table
        ts (seconds), car, speed (miles an hour), exp_way, dir (0 or 1), seg, x_pos (feet).
    """
    chosen = np.random.default_rng(seed)
    columns: dict[str, list[np.ndarray]] = {
        name: [] for name in ("ts", "car", "speed", "exp_way", "dir", "seg", "x_pos")
    }
    seconds = 60 * minutes
    number = 0
    for expressway in range(expressways):
        for direction in (0, 1):
            for _ in range(cars):
                number += 1
                first = int(chosen.integers(-seconds // 2, seconds))
                times = np.arange(max(first, int(chosen.integers(0, EVERY))), seconds, EVERY)
                if not len(times):
                    continue
                slow = chosen.random() < 0.6
                start = chosen.integers(45, 50) if slow else chosen.integers(0, SEGMENTS - 20)
                speed = chosen.integers(10, 45) if slow else chosen.integers(45, 80)
                speeds = np.clip(speed + chosen.integers(-5, 6, len(times)), 1, 100)
                moved = np.cumsum(speeds * SEGMENT * EVERY // 3600)
                place = start * SEGMENT + (moved if direction == 0 else SEGMENTS * SEGMENT // 2 - moved)
                _append(columns, times, number, speeds, expressway, direction, place)
            _accident(columns, chosen, seconds, number, expressway, direction)
            number += 2
    table = pa.table({name: pa.array(np.concatenate(parts), pa.int64()) for name, parts in columns.items()})
    inside = (np.asarray(table["seg"]) >= 0) & (np.asarray(table["seg"]) < SEGMENTS)
    return table.filter(pa.array(inside)).sort_by([("ts", "ascending"), ("car", "ascending")])


def _accident(columns, chosen, seconds: int, number: int, expressway: int, direction: int) -> None:
    """Two cars that drive up to one place, and stop there."""
    begin = int(chosen.integers(0, max(1, seconds // 3)))
    place = int(chosen.integers(46, 50)) * SEGMENT + 100
    for car in (number + 1, number + 2):
        times = np.arange(begin + int(chosen.integers(0, EVERY)), seconds, EVERY)
        steps = np.arange(len(times))
        stopped = (steps >= 2) & (steps < 9)
        places = place + np.where(steps < 2, steps - 2, np.where(stopped, 0, steps - 8)) * 1000
        speeds = np.where(stopped, 0, 30)
        _append(columns, times, car, speeds, expressway, direction, places)


def _append(columns, times, car, speeds, expressway, direction, places) -> None:
    count = len(times)
    values = {
        "ts": times,
        "car": np.full(count, car),
        "speed": speeds,
        "exp_way": np.full(count, expressway),
        "dir": np.full(count, direction),
        "seg": places // SEGMENT,
        "x_pos": places,
    }
    for name, value in values.items():
        columns[name].append(np.asarray(value, np.int64))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write position reports to a Parquet file.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--expressways", type=int, default=1)
    parser.add_argument("--minutes", type=int, default=20)
    parser.add_argument("--cars", type=int, default=200)
    given = parser.parse_args()
    pq.write_table(reports(given.expressways, given.minutes, given.cars), given.file)
