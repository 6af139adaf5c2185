"""Readings and events in files that come one after the other, in the order of time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from examples.nexmark.generate import events

__all__ = ["Load", "written", "written_events"]

_DAY = 86_400_000_000
_FIRST_FILE = 1_000_000_000


@dataclass(frozen=True)
class Load:
    """How many files of how many rows, of how many keys in turn; `step` microseconds from turn to turn.

    Files come one after the other in the order of time; files `abreast` each have a row in turn.
    """

    files: int
    rows: int
    keys: int
    step: int = _DAY
    format: str = "parquet"
    abreast: bool = False

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.files}x{self.rows}-{self.keys}-{self.step}-{self.form}"

    @property
    def form(self) -> str:
        """The format, and how the files lie."""
        return f"{self.format}-abreast" if self.abreast else self.format

    def places(self, number: int, rows: int) -> np.ndarray:
        """Which of so many rows a file has."""
        if self.abreast:
            return np.arange(number, rows, self.files)
        edges = np.linspace(0, rows, self.files + 1).astype(int)
        return np.arange(edges[number], edges[number + 1])


def written(load: Load, folder: Path, seed: int) -> Path:
    """The folder with the files of a load, made if it is not there."""
    target = folder / f"{load.name}-{seed}"
    if (target / "_DONE").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    names = np.array([f"key-{number:06}" for number in range(load.keys)])
    values = random.integers(0, 100, load.files * load.rows).astype(float)
    for number in range(load.files):
        place = load.places(number, load.files * load.rows)
        table = pa.table(
            {
                "key": pa.array(names[place % load.keys]),
                "ts": pa.array(place // load.keys * load.step, pa.timestamp("us", "UTC")),
                "value": pa.array(values[place]),
            }
        )
        _write(table, target, number, load)
    (target / "_DONE").touch()
    return target


def written_events(load: Load, folder: Path) -> Path:
    """The folder with a folder of files for each stream of NEXMark, made if it is not there.

    A file has so many events that those of all streams together are the `rows` of the load.
    """
    target = folder / f"nexmark-{load.files}x{load.rows}-{load.form}"
    if (target / "_DONE").exists():
        return target
    made = events(load.files * load.rows, rate=10_000.0)
    for name, whole in made.tables().items():
        (target / name).mkdir(parents=True, exist_ok=True)
        table = whole.slice(0, whole.num_rows - 1).drop_columns(["arrived", "upto"])
        for number in range(load.files):
            _write(table.take(load.places(number, table.num_rows)), target / name, number, load)
    (target / "_DONE").touch()
    return target


def _write(table: pa.Table, target: Path, number: int, load: Load) -> None:
    path = target / f"{number:05}.{load.format}"
    if load.format == "csv":
        plain = pa.Table.from_arrays(
            [
                column.cast(pa.timestamp("ms")) if pa.types.is_timestamp(column.type) else column
                for column in table.columns
            ],
            names=table.column_names,
        )
        pyarrow.csv.write_csv(plain, path, pyarrow.csv.WriteOptions(include_header=False))
    else:
        pq.write_table(table, path, row_group_size=max(1, load.rows // 4))
    os.utime(path, (_FIRST_FILE + number, _FIRST_FILE + number))  # the order in which Spark takes files
