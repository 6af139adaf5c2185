"""Where a live query's rows go: those of a micro-batch once, however often it is repeated."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from windrow.errors import UsageError
from windrow.streams.files import flush

__all__ = ["Files", "Memory", "Sink", "sink_of"]


class Sink(Protocol):
    """Takes rows."""

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Take the rows of a micro-batch; how many they were, if that is known."""


class Files:
    """A folder of Parquet files, one for each micro-batch that gave rows.

    A file gets its name when all of it is there, so that any reader sees whole micro-batches. A micro-batch
    that is repeated gives the same file again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Write the file of a micro-batch."""
        pending = self.folder / f".{number}.pending"
        shutil.rmtree(pending, ignore_errors=True)
        rows.coalesce(1).write.parquet(str(pending))
        (written,) = pending.glob("part-*.parquet")
        count = int(pq.read_metadata(written).num_rows)
        if count:
            flush(written)
            written.replace(self.folder / f"part-{number:09}.parquet")
            flush(self.folder)
        shutil.rmtree(pending, ignore_errors=True)
        return count


class Memory:
    """Keeps the rows of every micro-batch on the driver, as long as the process lasts."""

    def __init__(self) -> None:
        self.batches: dict[int, pa.Table] = {}

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Keep the rows of a micro-batch."""
        table = rows.toArrow()
        self.batches[number] = table
        return int(table.num_rows)


class _Console:
    def write(self, rows: DataFrame, number: int) -> int | None:
        table = rows.toArrow()
        if table.num_rows:
            print(f"-- micro-batch {number}")  # noqa: T201 - what a console is for
            rows.sparkSession.createDataFrame(table).show(table.num_rows, truncate=False)
        return int(table.num_rows)


class _Call:
    def __init__(self, function: Callable[[DataFrame, int], object]) -> None:
        self.function = function

    def write(self, rows: DataFrame, number: int) -> int | None:
        self.function(rows, number)
        return None


def sink_of(sink: str | Path | Memory | Callable[[DataFrame, int], object]) -> Sink:
    """The sink that a user names.

    Raises
    ------
    UsageError
        ``UNKNOWN_SINK``.
    """
    if sink == "console":
        return _Console()
    if isinstance(sink, Memory | Files):
        return sink
    if isinstance(sink, str | Path):
        return Files(Path(sink).resolve())
    if callable(sink):
        return _Call(sink)
    raise UsageError(
        f"{type(sink).__name__} is no sink",
        condition="UNKNOWN_SINK",
        hint="give a folder, 'console', windrow.Memory(), or a function of a DataFrame and a number",
    )
