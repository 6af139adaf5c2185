"""Sinks of live queries. Each writes the rows of a micro-batch once, even if the micro-batch is repeated."""

from __future__ import annotations

import csv
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from windrow.errors import ExecutionError, UsageError, refuse_unknown
from windrow.streams.durable_files import flush

__all__ = [
    "Around",
    "Files",
    "InFolder",
    "Memory",
    "Receiver",
    "Sink",
    "TableSink",
    "called",
    "console",
    "takes_tables",
    "uri",
    "write_file",
    "write_one",
    "written_to",
]

FileFormat = Literal["parquet", "json", "csv"]
_OPTIONS: dict[str, dict[str, str]] = {
    "parquet": {},
    "json": {"ignoreNullFields": "false"},
    "csv": {"header": "true", "escape": '"'},
    "orc": {},
}
_OWNER = ".checkpoint"


class Receiver(Protocol):
    """Receives the output of a query, in any form.

    Attributes
    ----------
    mode
        The form in which it receives a relation, if not its changelog.
    """

    mode: str | None = None

    @property
    def target(self) -> str:
        """The name of the target in errors. A checkpoint belongs to one target."""
        return type(self).__name__

    def had(self, identity: str) -> bool:  # noqa: ARG002 - of other sinks
        """Whether the target has rows of the query with this identity, even under another name."""
        return False

    def may_repeat(self, number: int) -> bool:  # noqa: ARG002 - of other sinks
        """Whether a micro-batch that failed may be written again by the same process."""
        return False

    def begin(self, spark: SparkSession, identity: str) -> None:  # noqa: ARG002 - of other sinks
        """Prepare for the rows of a query, which has the same identity after a restart."""
        return

    def end(self) -> None:
        """Release the target until the next :meth:`begin`."""
        return


@runtime_checkable
class Sink(Receiver, Protocol):
    """Receives rows as DataFrames."""

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Write the rows of a micro-batch; their number, if it is known."""


@runtime_checkable
class TableSink(Protocol):
    """A sink that also receives rows in memory."""

    def write_table(self, rows: pa.Table, number: int) -> int:
        """Write the rows of a micro-batch; their number."""


class Around(Sink):
    """A sink that transforms rows and writes them to another sink."""

    def __init__(self, inner: Sink) -> None:
        self.inner = inner

    @property
    def target(self) -> str:
        """The target of the inner sink."""
        return self.inner.target

    def had(self, identity: str) -> bool:
        """Whether the target has rows of a query."""
        return self.inner.had(identity)

    def may_repeat(self, number: int) -> bool:
        """Whether the inner sink accepts a micro-batch again."""
        return self.inner.may_repeat(number)

    def begin(self, spark: SparkSession, identity: str) -> None:
        """Prepare the inner sink."""
        self.inner.begin(spark, identity)

    def end(self) -> None:
        """Release the inner sink."""
        self.inner.end()


class InFolder(Sink):
    """A folder for one query alone.

    Parameters
    ----------
    folder
        The folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def target(self) -> str:
        """The folder."""
        return f"folder {self.folder}"

    def had(self, identity: str) -> bool:
        """Whether the folder belongs to a query."""
        owner = self.folder / _OWNER
        return owner.exists() and owner.read_text() == identity

    def may_repeat(self, number: int) -> bool:  # noqa: ARG002 - of other sinks
        """Always: what a micro-batch has written is replaced."""
        return True

    def begin(self, spark: SparkSession, identity: str) -> None:  # noqa: ARG002 - of other sinks
        """Claim the folder for the query of a checkpoint.

        Raises
        ------
        UsageError
            ``SINK_IN_USE``: it has rows of another query, which those of this one would replace.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.had(identity):
            return
        owner = self.folder / _OWNER
        if owner.exists() or any(self.folder.glob("part-*")):
            raise UsageError(
                f"folder {self.folder} contains rows of a query with another checkpoint",
                condition="SINK_IN_USE",
                hint="use that checkpoint, or name an empty folder",
            )
        pending = self.folder / f".{uuid.uuid4().hex}.pending"
        pending.write_text(identity)
        flush(pending)
        pending.replace(owner)


class Files(InFolder):
    """A folder of files, one for each micro-batch with output.

    Files appear atomically, so that readers see complete micro-batches only. A repeated micro-batch writes
    the same file again.

    Parameters
    ----------
    folder
        The folder, for one query alone.
    format
        ``"parquet"``, ``"json"`` (an object per line), or ``"csv"`` (with a header line).

    Raises
    ------
    UsageError
        ``UNKNOWN_FORMAT``; ``INVALID_ARGUMENT`` for a path that is not a folder.
    """

    def __init__(self, folder: str | Path, format: FileFormat = "parquet") -> None:  # noqa: A002 - as Spark's
        refuse_unknown(f"format {format!r} of files", format, ("parquet", "json", "csv"), "UNKNOWN_FORMAT")
        if folder == "" or Path(folder).is_file():
            raise UsageError(
                f"{str(folder)!r} is not a folder",
                condition="INVALID_ARGUMENT",
                hint="name a folder for this query alone",
            )
        super().__init__(Path(folder).resolve())
        self.format = format
        self.folder.mkdir(parents=True, exist_ok=True)

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Write the file of a micro-batch."""
        return write_one(rows, self.folder, f"part-{number:09}", self.format)

    def write_table(self, rows: pa.Table, number: int) -> int:
        """Write the file of a micro-batch, in Parquet."""

        def write(pending: Path) -> Path | None:
            if not rows.num_rows:
                return None
            pending.mkdir()
            pq.write_table(rows, pending / "rows.parquet")
            return pending / "rows.parquet"

        return write_file(write, self.folder, number)


def takes_tables(sink: object) -> bool:
    """Whether a sink also receives rows in memory."""
    return sink.format == "parquet" if isinstance(sink, Files) else isinstance(sink, TableSink)


def write_file(write: Callable[[Path], Path | None], folder: Path, number: int) -> int:
    """Write the Parquet file of a micro-batch into a folder, atomically; the number of its rows.

    Parameters
    ----------
    write
        Writes a file into a folder that it makes, and returns its path; None without rows.
    """
    name = f"part-{number:09}"
    pending = _pending(folder, name)
    written = write(pending)
    if written is None:
        return 0
    if not written.exists():
        raise _not_shared(pending)
    count = _count(written, "parquet")
    _named(written, folder / f"{name}.parquet")
    shutil.rmtree(pending, ignore_errors=True)
    return count


def write_one(rows: DataFrame, folder: Path, name: str, format: str) -> int:  # noqa: A002 - as Spark's
    """Write rows as one file of a folder, atomically; no file without rows."""
    pending = _pending(folder, name)
    rows.coalesce(1).write.format(format).options(**_OPTIONS[format]).save(uri(pending))
    written = written_to(pending, f"part-*.{format}")
    count = sum(_count(path, format) for path in written)
    if count:
        (path,) = written
        _named(path, folder / f"{name}.{format}")
    shutil.rmtree(pending, ignore_errors=True)
    return count


def _pending(folder: Path, name: str) -> Path:
    for left in folder.glob(f".{name}.*.pending"):  # temporary files of a process that has ended
        shutil.rmtree(left, ignore_errors=True)
    # a unique name: tasks of a killed process may write for a while
    return folder / f".{name}.{uuid.uuid4().hex}.pending"


def _named(written: Path, path: Path) -> None:
    flush(written)
    written.replace(path)
    flush(path.parent)


def _count(path: Path, format: str) -> int:  # noqa: A002 - as Spark's
    """How many rows are in a file."""
    if format == "parquet":
        return int(pq.read_metadata(path).num_rows)
    if format == "orc":
        from pyarrow import orc

        return int(orc.ORCFile(path).nrows)
    with path.open(encoding="utf-8", newline="") as file:
        return max(sum(1 for _ in csv.reader(file)) - 1, 0) if format == "csv" else sum(1 for _ in file)


class Memory(Sink):
    """Stores the rows of every micro-batch on the driver, in the memory of the process."""

    def __init__(self) -> None:
        self.batches: dict[int, pa.Table] = {}

    def may_repeat(self, number: int) -> bool:  # noqa: ARG002 - of other sinks
        """Always: the table of a micro-batch is replaced."""
        return True

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Store the rows of a micro-batch."""
        return self.write_table(rows.toArrow(), number)

    def write_table(self, rows: pa.Table, number: int) -> int:
        """Store the rows of a micro-batch."""
        self.batches[number] = rows
        return int(rows.num_rows)


class _Console(Sink):
    target = "console"

    def write(self, rows: DataFrame, number: int) -> int | None:
        table = rows.toArrow()
        if table.num_rows:
            print(f"-- micro-batch {number}")  # noqa: T201 - what a console is for
            rows.sparkSession.createDataFrame(table).show(table.num_rows, truncate=False)
        return int(table.num_rows)


class _Call(Sink):
    target = "a function"

    def __init__(self, function: Callable[[DataFrame, int], object]) -> None:
        self.function, self._called_for = function, -1

    def may_repeat(self, number: int) -> bool:
        """Whether this process has not called the function with the number yet."""
        return number != self._called_for

    def write(self, rows: DataFrame, number: int) -> int | None:
        self._called_for = number
        self.function(rows, number)
        return None


def uri(path: Path) -> str:
    """A local path as a URI for Spark, whatever its default file system is."""
    return f"file://{path}"


def written_to(folder: Path, pattern: str = "part-*.parquet") -> list[Path]:
    """The files that tasks have written into a folder.

    Raises
    ------
    ExecutionError
        ``NOT_SHARED``.
    """
    found = list(folder.glob(pattern))
    if not found:
        raise _not_shared(folder)
    return found


def _not_shared(folder: Path) -> ExecutionError:
    return ExecutionError(
        f"the driver cannot see the files that workers wrote in {folder.parent}",
        condition="NOT_SHARED",
        hint="use folders on a file system that the driver and all workers share, at the same path",
    )


def console() -> Sink:
    """A sink that prints the rows."""
    return _Console()


def called(function: Callable[[DataFrame, int], object]) -> Sink:
    """A sink that calls a function with the rows of every micro-batch and its number."""
    return _Call(function)
