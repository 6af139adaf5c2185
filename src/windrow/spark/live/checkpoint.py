"""What a live query keeps between its steps, in a directory of its checkpoint.

A step is a directory with the rows that are kept, which gets its name when all is in it: a step is there as
a whole or not at all. Of the steps the last two are kept, as Spark may repeat the last.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from windrow.errors import InputError, UsageError
from windrow.spark.live.few import few, frame_of_few
from windrow.streams import Position
from windrow.streams.files import flush

__all__ = ["Checkpoint", "Kept", "Step"]

_VERSION = 1
_META = "step.json"


@dataclass(frozen=True)
class Step:
    """What is known after a step.

    Attributes
    ----------
    number
        Of the micro-batch; -1 before the first.
    clocks
        What the entries so far say of the later ones, by the streams' names.
    frontier
        Changes before this instant, in ticks of the query's clock, have been given; None for none.
    origin
        The first instant of the logs, None before there was a row.
    rows
        What was kept: of each name the schema, as JSON.
    counts
        Rows given and held so far, by what they count.
    """

    number: int = -1
    clocks: Mapping[str, Position] = field(default_factory=dict)
    frontier: int | None = None
    origin: int | None = None
    rows: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """Rows to keep, and whether they are known to be few."""

    frame: DataFrame
    are_few: bool


class Checkpoint:
    """The directory of a live query.

    Parameters
    ----------
    spark
        The session that reads and writes rows.
    folder
        Where steps are kept.
    fingerprint
        What the query is: of another one, the checkpoint is refused.

    Raises
    ------
    UsageError
        ``CHECKPOINT_IN_USE``.
    """

    def __init__(self, spark: SparkSession, folder: Path, fingerprint: Mapping[str, Any]) -> None:
        self.spark, self.folder, self.fingerprint = spark, folder, dict(fingerprint)
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(folder)

    def close(self) -> None:
        """Let others have it."""
        self._lock.close()

    def last(self, before: int | None = None) -> Step:
        """The last step, or the last one before a number.

        Raises
        ------
        InputError
            ``CHECKPOINT_OF_ANOTHER_QUERY``, ``CHECKPOINT_VERSION``.
        """
        numbers = [number for number in self._numbers() if before is None or number < before]
        return self._read(max(numbers)) if numbers else Step()

    def has(self, number: int) -> bool:
        """Whether a step is there."""
        return (self._path(number) / _META).exists()

    def rows(self, step: Step, name: str) -> DataFrame | None:
        """Rows that were kept at a step, None if there are none of that name."""
        if name not in step.rows:
            return None
        schema = StructType.fromJson(json.loads(step.rows[name]))
        path = self._path(step.number) / name
        if path.is_dir():
            return self.spark.read.schema(schema).parquet(str(path))
        with pa.ipc.open_file(path) as file:
            return frame_of_few(self.spark, file.read_all(), schema)

    def count(self, step: Step, name: str) -> int:
        """How many rows were kept under a name."""
        path = self._path(step.number) / name
        if path.is_dir():
            return sum(int(pq.read_metadata(file).num_rows) for file in path.glob("*.parquet"))
        with pa.ipc.open_file(path) as file:
            return sum(file.get_batch(number).num_rows for number in range(file.num_record_batches))

    @contextmanager
    def stored(self, rows: DataFrame, number: int) -> Iterator[DataFrame]:
        """The rows of a micro-batch, read once: on the driver, or in files as long as the step takes."""
        table = few(rows)
        if table is not None:
            yield frame_of_few(self.spark, table, rows.schema)
            return
        folder = self.folder / f".{number}.incoming"
        rows.write.mode("overwrite").parquet(str(folder))
        yield self.spark.read.schema(rows.schema).parquet(str(folder))
        shutil.rmtree(folder, ignore_errors=True)

    def commit(self, step: Step, rows: Mapping[str, Kept]) -> Step:
        """Keep a step with its rows; it is there when this returns."""
        pending = self.folder / f".{step.number}.pending"
        shutil.rmtree(pending, ignore_errors=True)
        pending.mkdir()
        schemas = {}
        for name, kept in rows.items():
            schemas[name] = kept.frame.schema.json()
            if not kept.are_few:
                kept.frame.write.parquet(str(pending / name))
                continue
            table = kept.frame.toArrow()
            with pa.ipc.new_file(pending / name, table.schema) as file:
                file.write_table(table)
        whole = Step(step.number, step.clocks, step.frontier, step.origin, schemas, step.counts)
        meta = {
            "version": _VERSION,
            "query": self.fingerprint,
            "number": whole.number,
            "clocks": {name: state.to_json() for name, state in whole.clocks.items()},
            "frontier": whole.frontier,
            "origin": whole.origin,
            "rows": dict(whole.rows),
            "counts": dict(whole.counts),
        }
        with (pending / _META).open("w") as file:
            json.dump(meta, file)
            file.flush()
            os.fsync(file.fileno())
        pending.rename(self._path(step.number))
        flush(self.folder)
        for number in self._numbers():
            if number < step.number - 1:
                shutil.rmtree(self._path(number), ignore_errors=True)
        return whole

    def _read(self, number: int) -> Step:
        meta = json.loads((self._path(number) / _META).read_text())
        if meta["version"] != _VERSION:
            raise InputError(
                f"the checkpoint has version {meta['version']}, this version of Windrow reads {_VERSION}",
                condition="CHECKPOINT_VERSION",
                hint="go on with the version of Windrow that wrote it, or start with another checkpoint",
            )
        differs = [key for key, value in self.fingerprint.items() if meta["query"].get(key) != value]
        if differs:
            was = meta["query"].get(differs[0])
            raise InputError(
                f"the checkpoint is of another query: its {differs[0]} was {was!r},"
                f" and is {self.fingerprint[differs[0]]!r}",
                condition="CHECKPOINT_OF_ANOTHER_QUERY",
                hint="start a changed query with a checkpoint of its own",
            )
        clocks = {name: Position.from_json(text) for name, text in meta["clocks"].items()}
        return Step(number, clocks, meta["frontier"], meta["origin"], meta["rows"], meta["counts"])

    def _numbers(self) -> list[int]:
        found = [path.name for path in self.folder.iterdir() if path.name.isdigit()]
        return sorted(int(name) for name in found if self.has(int(name)))

    def _path(self, number: int) -> Path:
        return self.folder / str(number)


def _locked(folder: Path) -> IO[str]:
    """A lock that goes with the process, however it ends."""
    file = (folder / "lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(
            f"another query runs with the checkpoint {folder.parent}",
            condition="CHECKPOINT_IN_USE",
            hint="stop it first; two queries need two checkpoints",
        ) from None
    return file
