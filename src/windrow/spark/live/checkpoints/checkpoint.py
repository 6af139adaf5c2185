"""The state of a live query after its last micro-batches, in a directory of its checkpoint.

A committed micro-batch is a directory with a manifest, which names the chunks of retained rows: files of
Arrow. The directory gets its name when everything is on the disk, so a commit is atomic. The manifest has
checksums of the files, which detect a file that was changed or lost later. The last two commits are stored,
because Spark may repeat the last.

A process may be killed anywhere. Micro-batch N writes in this order, and a restart finds the following:

| written | after a kill behind it |
|---|---|
| ``spark/offsets/N``, by Spark | Spark repeats N, with the same entries |
| a file of each side output | :meth:`Checkpoint.before` deletes it; N writes it again |
| the sink's rows of N | N hands them over again, under the same number |
| ``windrow/tables/NAME/``, at the first start | the next start reads it, and not the table |
| ``windrow/chunks/NAME-CHUNK.arrow`` | no manifest names them: N writes them again |
| ``windrow/.ID.N.pending/step.json`` | the start deletes it |
| its name ``windrow/N/``: this is the commit | Spark repeats N, and :meth:`Checkpoint.before` skips it |
| deletion of older directories, chunks and files | the next commit does it |
| ``spark/commits/N``, by Spark | Spark goes on with N + 1 |

For a query on executors, chunks are in Spark's state store instead, whose version is that of the micro-batch.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windrow.errors import InputError, UsageError
from windrow.spark.collected import collected, frame_of_collected
from windrow.spark.live.checkpoints.checksums import (
    FileChecksum,
    check,
    checksum_of,
    missing,
    torn,
)
from windrow.spark.live.checkpoints.row_files import read_rows, write_many
from windrow.spark.live.checkpoints.side_outputs import Listing, SideOutput
from windrow.spark.live.checkpoints.size import size_of
from windrow.streams import Position
from windrow.streams.durable_files import flush
from windrow.syntax.canonical_text import canonical_text

__all__ = ["BUCKETS", "EARLIER_NAMES", "Checkpoint", "CommittedBatch", "form_in"]

BUCKETS = "buckets"
"""The form of the state of a query on executors: it is in Spark's state store."""
EARLIER_NAMES: Mapping[str, str] = {
    "came": "batch_rows_in",
    "given": "batch_rows_emitted",
    "rows_given": "rows_emitted",
    "rows_held": "rows_buffered",
}
"""Deprecated names of counts, which older checkpoints have too, and the names of today."""

_VERSION = 9
_READ = (7, 8, _VERSION)
"""Version 7 had some rows beside the manifest, and not in chunks; where it had any, it is refused. Version 8
had all state of operators in one file.
"""
_EARLIER_KEYS = {"clocks": "positions", "told": "punctuations", "seals": "checksums"}
"""Keys of manifests that earlier versions wrote, and the keys of today."""
_EARLIER_MARKS = {"told": "emitted"}
"""The same for the names of marks."""
_OF_TARGET = ("envelope", "target", "parameters", "canonical_views")
_META = "step.json"
_CHUNKS = "chunks"
_IDENTITY = "identity"


@dataclass(frozen=True)
class CommittedBatch:
    """The manifest of a committed micro-batch.

    Attributes
    ----------
    number
        The number of the micro-batch; -1 before the first.
    positions
        The positions of the streams, with their watermarks, by name.
    frontier
        Changes before this instant, in ticks of the query's time scale, have been emitted; None for none.
    origin
        The first instant of the logs; None before the first row.
    counts
        The numbers of emitted rows, buffered rows and so on, by name.
    chunks
        For a query that runs in memory: the files of the rows in each window, with their numbers of rows.
    marks
        The instants that parts of the query have reached, by name.
    moves
        For a query with EMIT: the changes of each stream's watermark, with their processing times.
    punctuations
        For a query with EMIT that needs them: the punctuations of each stream, with their processing times.
    sides
        The files of each side output.
    """

    number: int = -1
    positions: Mapping[str, Position] = field(default_factory=dict)
    frontier: int | None = None
    origin: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    chunks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)
    moves: Mapping[str, list[tuple[int, int]]] = field(default_factory=dict)
    punctuations: Mapping[str, list[tuple[int, str]]] = field(default_factory=dict)
    sides: Mapping[str, Listing] = field(default_factory=dict)


class Checkpoint:
    """The checkpoint directory of a live query.

    Parameters
    ----------
    spark
        The session that reads and writes rows.
    folder
        The directory.
    fingerprint
        The properties of the query; a checkpoint with others is refused.
    sides
        The side outputs, by name; each micro-batch commits them.
    had
        Whether the query's target has rows of a checkpoint's query, by its identity: then a target of another
        name is the same one, moved.

    Raises
    ------
    UsageError
        ``CHECKPOINT_IN_USE``.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        fingerprint: Mapping[str, Any],
        sides: Mapping[str, SideOutput],
        had: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.spark, self.folder, self.fingerprint, self.sides = spark, folder, dict(fingerprint), sides
        self._had = had
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(folder)
        self._known: dict[int, CommittedBatch] = {}
        self._checksums: dict[str, FileChecksum] = {}
        for left in folder.glob(".*"):  # temporary files of a process that has ended
            shutil.rmtree(left, ignore_errors=True)

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    @property
    def identity(self) -> str:
        """The unique id of this checkpoint."""
        path = self.folder / _IDENTITY
        if not path.exists():
            pending = self._own(_IDENTITY)
            pending.write_text(uuid.uuid4().hex)
            flush(pending)
            pending.rename(path)
        return path.read_text()

    def last(self) -> CommittedBatch:
        """The last committed micro-batch.

        Raises
        ------
        InputError
            ``CHECKPOINT_OF_ANOTHER_QUERY``, ``CHECKPOINT_VERSION``, ``TORN_FILE``, ``MISSING_FILE``.
        """
        numbers = self._numbers()
        return self._read(max(numbers)) if numbers else CommittedBatch()

    def before(self, number: int, count: Callable[[], int]) -> CommittedBatch | None:
        """The commit before a micro-batch; None if this micro-batch is committed, but not in Spark's log.

        Parameters
        ----------
        number
            The number of the micro-batch.
        count
            Counts its entries.

        Raises
        ------
        InputError
            ``CHECKPOINT_INCOMPLETE``: Spark's part of the checkpoint and Windrow's part are of different
            times; ``TORN_FILE``, ``MISSING_FILE``.
        """
        last = self.last()
        if last.number == number - 1:
            for side in self.sides.values():
                side.undo(number)
            return last
        if last.number == number and count() == last.counts.get("entries"):
            return None
        raise InputError(
            f"Spark resumes with micro-batch {number}, but the last committed one is {last.number}"
            if last.number != number
            else f"micro-batch {number} has different entries than when it was committed",
            condition="CHECKPOINT_INCOMPLETE",
            hint="restore the whole checkpoint from one copy, or start with another checkpoint and sink",
        )

    @contextmanager
    def stored(self, rows: DataFrame, number: int) -> Iterator[DataFrame]:
        """The rows of a micro-batch, read once: on the driver, or, if there are many, in temporary files."""
        table = collected(rows)
        if table is not None:
            yield frame_of_collected(self.spark, table, rows.schema)
            return
        folder = self._own(f"{number}.incoming")
        write_many(folder, rows)
        yield read_rows(self.spark, folder, rows.schema)
        shutil.rmtree(folder, ignore_errors=True)

    def commit(self, batch: CommittedBatch) -> CommittedBatch:
        """Commit a micro-batch, durably."""
        pending = self._own(f"{batch.number}.pending")
        pending.mkdir()
        listed = self.last().sides
        sides = {
            name: side.after(listed.get(name, Listing()), batch.number) for name, side in self.sides.items()
        }
        whole = replace(batch, sides=sides)
        meta = {
            "version": _VERSION,
            "query": self.fingerprint,
            "number": whole.number,
            "positions": {name: state.to_json() for name, state in whole.positions.items()},
            "frontier": whole.frontier,
            "origin": whole.origin,
            "counts": dict(whole.counts),
            "chunks": {name: dict(chunks) for name, chunks in whole.chunks.items()},
            "marks": dict(whole.marks),
            "moves": dict(whole.moves),
            "punctuations": dict(whole.punctuations),
            "sides": {name: listing.to_json() for name, listing in sides.items()},
            "checksums": {name: self._checksums[name] for name in _chunk_files(whole)},
        }
        with (pending / _META).open("w") as file:
            json.dump(meta, file)
            file.flush()
            os.fsync(file.fileno())
        flush(pending)
        pending.rename(self.path(batch.number))
        flush(self.folder)
        for number in self._numbers():
            if number < batch.number - 1:
                shutil.rmtree(self.path(number), ignore_errors=True)
        self._known = {number: known for number, known in self._known.items() if number == batch.number - 1}
        self._known[whole.number] = whole
        self._sweep()
        for name, side in self.sides.items():
            side.tidy(sides[name])
        return whole

    def write_chunk(self, name: str, chunk: int, rows: pa.Table) -> None:
        """Write rows to a separate file, which later commits may refer to."""
        path = self.folder / _CHUNKS / _chunk_file(name, chunk)
        path.parent.mkdir(exist_ok=True)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as file:
            file.write_table(rows)
        flush(path)
        self._checksums[path.name] = checksum_of(path)

    def write_chunks(
        self, name: str, counts: Mapping[int, int], new: Mapping[int, pa.Table]
    ) -> dict[str, int]:
        """Write the new chunks among these; returns all, with their numbers of rows, as in a manifest."""
        for chunk, rows in new.items():
            self.write_chunk(name, chunk, rows)
        return {str(chunk): count for chunk, count in counts.items()}

    def read_chunk(self, name: str, chunk: int) -> pa.Table:
        """Read the rows of such a file.

        Raises
        ------
        InputError
            ``TORN_FILE``, ``MISSING_FILE``.
        """
        path = self.folder / _CHUNKS / _chunk_file(name, chunk)
        check(path.parent, {path.name: self._checksums[path.name]})
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as file:
            return file.read_all()

    def chunk_bytes(self, batch: CommittedBatch, name: str) -> int:
        """The bytes of the files with the rows of a window."""
        files = (_chunk_file(name, int(chunk)) for chunk in batch.chunks.get(name, {}))
        return sum((self.folder / _CHUNKS / file).stat().st_size for file in files)

    def size(self, batch: CommittedBatch) -> int:
        """The bytes of the state after a micro-batch."""
        return size_of(self.path(batch.number)) + sum(self.chunk_bytes(batch, name) for name in batch.chunks)

    def _sweep(self) -> None:
        """Delete the chunks that the last two commits do not refer to."""
        named = {file for batch in self._known.values() for file in _chunk_files(batch)}
        self._checksums = {file: known for file, known in self._checksums.items() if file in named}
        for path in (self.folder / _CHUNKS).glob("*.arrow"):
            if path.name not in named:
                path.unlink(missing_ok=True)

    def _read(self, number: int) -> CommittedBatch:
        if number in self._known:
            return self._known[number]
        folder = self.path(number)
        meta = _meta(folder)
        if meta["version"] not in _READ:
            raise _of_other_version(
                f"the checkpoint has version {meta['version']}, but this version of Windrow reads version"
                f" {_VERSION}"
            )
        if meta.get("rows"):
            raise _of_other_version("an earlier version of Windrow wrote the checkpoint in another layout")
        self._refuse_another(meta["query"])
        sides = {name: Listing.from_json(one) for name, one in meta["sides"].items()}
        for name, listing in sides.items():
            self.sides[name].check(listing)
        positions = {name: Position.from_json(text) for name, text in meta["positions"].items()}
        stored = {name: meta[name] for name in ("frontier", "origin", "chunks")}
        stored["marks"] = {_EARLIER_MARKS.get(name, name): at for name, at in meta["marks"].items()}
        stored["counts"] = {EARLIER_NAMES.get(name, name): count for name, count in meta["counts"].items()}
        moves = {name: [(at, mark) for at, mark in history] for name, history in meta["moves"].items()}
        self._checksums |= {file: tuple(known) for file, known in meta["checksums"].items()}
        punctuations = {
            name: [(at, text) for at, text in one] for name, one in meta.get("punctuations", {}).items()
        }
        self._known[number] = CommittedBatch(
            number, positions, **stored, moves=moves, punctuations=punctuations, sides=sides
        )
        return self._known[number]

    def _refuse_another(self, was: Mapping[str, Any]) -> None:
        """Refuse a checkpoint of another query."""
        for key, value in self.fingerprint.items():
            if was.get(key) == value:
                continue
            if key == "text" and canonical_text(was[key]) == canonical_text(value):
                continue
            if key == "columns" and [*map(canonical_text, was[key])] == [*map(canonical_text, value)]:
                continue
            if key == "views" and was.get("canonical_views") == self.fingerprint["canonical_views"]:
                continue
            if key == "target" and self._had(self.identity):
                continue
            if key == "state" and BUCKETS in (value, was.get(key)):
                here, there = ("executors", "driver") if value == BUCKETS else ("driver", "executors")
                raise InputError(
                    f"the checkpoint is of a query on the {there}, but this one runs on the {here}",
                    condition="CHECKPOINT_OF_ANOTHER_HOST",
                    hint=f"SET spark.windrow.live.host = {there}; or start with another checkpoint",
                )
            if key in ("state", "form"):
                raise _of_other_version(
                    "an earlier version of Windrow wrote the checkpoint, with its state in another format"
                )
            raise InputError(
                f"the checkpoint is of another query: its {key} was {was.get(key)!r}, but is now {value!r}",
                condition="CHECKPOINT_OF_ANOTHER_QUERY",
                hint="start a changed query with another checkpoint"
                if key not in _OF_TARGET
                else f"restore that {key}, or start with another checkpoint and another target",
            )

    def _numbers(self) -> list[int]:
        return _numbers(self.folder)

    def path(self, number: int) -> Path:
        """The directory of a committed micro-batch."""
        return self.folder / str(number)

    def _own(self, name: str) -> Path:
        """A unique name for temporary files: tasks of a killed process may write for a while."""
        return self.folder / f".{uuid.uuid4().hex}.{name}"


def form_in(folder: Path) -> str | None:
    """The form of the state of the last commit in a folder; None without a commit.

    Raises
    ------
    InputError
        ``TORN_FILE``, ``MISSING_FILE``.
    """
    numbers = _numbers(folder) if folder.exists() else []
    form: str | None = _meta(folder / str(numbers[-1]))["query"].get("state") if numbers else None
    return form


def _of_other_version(message: str) -> InputError:
    return InputError(
        message,
        condition="CHECKPOINT_VERSION",
        hint="use the version of Windrow that wrote it, or start with another checkpoint",
    )


def _numbers(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())


def _meta(batch: Path) -> dict[str, Any]:
    """The manifest of a commit, as JSON."""
    try:
        meta: dict[str, Any] = json.loads((batch / _META).read_text())
    except FileNotFoundError:
        raise missing(batch / _META) from None
    except ValueError:
        raise torn(batch / _META) from None
    return {_EARLIER_KEYS.get(key, key): value for key, value in meta.items()}


def _chunk_file(name: str, chunk: int) -> str:
    return f"{name}-{chunk}.arrow"


def _chunk_files(batch: CommittedBatch) -> list[str]:
    return [_chunk_file(name, int(chunk)) for name, chunks in batch.chunks.items() for chunk in chunks]


def _locked(folder: Path) -> IO[str]:
    """A lock that the operating system releases when the process ends."""
    file = (folder / "lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(
            f"another query is running with the checkpoint {folder.parent}",
            condition="CHECKPOINT_IN_USE",
            hint="stop it first, or use another checkpoint",
        ) from None
    return file
