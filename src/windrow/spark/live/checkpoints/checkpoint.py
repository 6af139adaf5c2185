"""What a live query keeps between its steps, in a directory of its checkpoint.

A step is a directory with the rows that are kept, which gets its name when all is in it and on the disk: a
step is there as a whole or not at all. It says what its files should be, so that one that was changed or lost
later is noticed. Of the steps the last two are kept, as Spark may repeat the last.
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
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from windrow.errors import InputError, UsageError
from windrow.spark.collected import few, frame_of_few
from windrow.spark.live.checkpoints.checksums import Seal, check, missing, seal, sealed, torn
from windrow.spark.live.checkpoints.side_outputs import Listing, SideOutput
from windrow.spark.live.checkpoints.size import size_of
from windrow.spark.live.sinks.sink import uri, written_to
from windrow.spark.logs.micro_batch import RetainedRows
from windrow.streams import Position
from windrow.streams.durable_files import flush

__all__ = ["BUCKETS", "Checkpoint", "CommittedBatch", "form_in"]

BUCKETS = "buckets"
"""The form of the state of a query on executors: Spark keeps it."""

_VERSION = 6
_READ = (3, 4, 5, _VERSION)
"""Steps of version 3 had no chunks of the rows of clauses; up to 4 they did not list the files of late rows,
and did not say where a query's rows go. All are gone on with."""
_SINCE_5 = ("envelope", "target", "parameters")
_META = "step.json"
_CHUNKS = "chunks"
_IDENTITY = "identity"


@dataclass(frozen=True)
class CommittedBatch:
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
    chunks
        Of a staged query: of what each window holds, the files and how many rows are in each.
    marks
        Instants that parts of the query have got to, by name.
    moves
        Of a query that is told by processing time: when each stream's clock has moved, and where to.
    told
        Of the same, where that is asked for: what each stream has promised by patterns, and when.
    sides
        The files of each side output.
    """

    number: int = -1
    clocks: Mapping[str, Position] = field(default_factory=dict)
    frontier: int | None = None
    origin: int | None = None
    rows: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    chunks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)
    moves: Mapping[str, list[tuple[int, int]]] = field(default_factory=dict)
    told: Mapping[str, list[tuple[int, str]]] = field(default_factory=dict)
    sides: Mapping[str, Listing] = field(default_factory=dict)


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
    sides
        Where rows are set aside, by name; they are committed with each step.
    had
        Whether the query's target has had rows of a checkpoint's query, by its identity: a target of another
        name is then the same, moved.

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
        self._seals: dict[str, Seal] = {}
        for left in folder.glob(".*"):  # by a process that ended
            shutil.rmtree(left, ignore_errors=True)

    def close(self) -> None:
        """Let others have it."""
        self._lock.close()

    @property
    def identity(self) -> str:
        """What tells it from all others."""
        path = self.folder / _IDENTITY
        if not path.exists():
            pending = self._own(_IDENTITY)
            pending.write_text(uuid.uuid4().hex)
            flush(pending)
            pending.rename(path)
        return path.read_text()

    def last(self) -> CommittedBatch:
        """The last step.

        Raises
        ------
        InputError
            ``CHECKPOINT_OF_ANOTHER_QUERY``, ``CHECKPOINT_VERSION``, ``TORN_FILE``, ``MISSING_FILE``.
        """
        numbers = self._numbers()
        return self._read(max(numbers)) if numbers else CommittedBatch()

    def before(self, number: int, count: Callable[[], int]) -> CommittedBatch | None:
        """The step before a micro-batch; None if the micro-batch has been taken, and Spark does not know.

        Parameters
        ----------
        number
            Of the micro-batch.
        count
            How many entries it has.

        Raises
        ------
        InputError
            ``CHECKPOINT_INCOMPLETE``: Spark's part of the checkpoint and ours are not of one time;
            ``TORN_FILE``, ``MISSING_FILE``.
        """
        last = self.last()
        if last.number == number - 1:
            for side in self.sides.values():
                side.undo(number)
            return last
        if last.number == number and count() == last.counts.get("entries"):
            return None
        raise InputError(
            f"Spark goes on with micro-batch {number}, and the last step that was kept is {last.number}"
            if last.number != number
            else f"micro-batch {number} has other entries than when it was taken",
            condition="CHECKPOINT_INCOMPLETE",
            hint="restore all of the checkpoint from one copy, or begin anew with another, and another sink",
        )

    def rows(self, step: CommittedBatch, name: str) -> DataFrame | None:
        """Rows that were kept at a step, None if there are none of that name."""
        if name not in step.rows:
            return None
        schema = StructType.fromJson(json.loads(step.rows[name]))
        path = self.path(step.number) / name
        if path.is_dir():
            return self.spark.read.schema(schema).parquet(uri(path))
        with pa.ipc.open_file(path) as file:
            return frame_of_few(self.spark, file.read_all(), schema)

    def table(self, step: CommittedBatch, name: str) -> pa.Table | None:
        """The same in memory."""
        path = self.path(step.number) / name
        if name in step.rows and not path.is_dir():
            with pa.ipc.open_file(path) as file:
                return file.read_all()
        frame = self.rows(step, name)
        return None if frame is None else frame.toArrow()

    def count(self, step: CommittedBatch, name: str) -> int:
        """How many rows were kept under a name."""
        path = self.path(step.number) / name
        if path.is_dir():
            return sum(int(pq.read_metadata(file).num_rows) for file in path.glob("*.parquet"))
        with pa.ipc.open_file(path) as file:
            return sum(file.get_batch(number).num_rows for number in range(file.num_record_batches))

    @contextmanager
    def stored(self, rows: DataFrame, number: int, name: str = "incoming") -> Iterator[DataFrame]:
        """The rows of a micro-batch, read once: on the driver, or in files as long as the step takes, which
        have a name.
        """
        table = few(rows)
        if table is not None:
            yield frame_of_few(self.spark, table, rows.schema)
            return
        folder = self._own(f"{number}.{name}")
        rows.write.parquet(uri(folder))
        written_to(folder)
        yield self.spark.read.schema(rows.schema).parquet(uri(folder))
        shutil.rmtree(folder, ignore_errors=True)

    def commit(self, step: CommittedBatch, rows: Mapping[str, RetainedRows]) -> CommittedBatch:
        """Keep a step with its rows; it is there when this returns."""
        pending = self._own(f"{step.number}.pending")
        pending.mkdir()
        schemas = {}
        for name, kept in rows.items():
            schemas[name] = kept.schema.json()
            if not kept.are_few:
                kept.frame.write.parquet(uri(pending / name))
                written_to(pending / name)
                continue
            table = kept.collected()
            with pa.ipc.new_file(pending / name, table.schema) as file:
                file.write_table(table)
        for path in pending.rglob("*"):
            flush(path)
        seals = sealed(pending)
        listed = self.last().sides
        sides = {
            name: side.after(listed.get(name, Listing()), step.number) for name, side in self.sides.items()
        }
        whole = replace(step, rows=schemas, sides=sides)
        meta = {
            "version": _VERSION,
            "query": self.fingerprint,
            "number": whole.number,
            "clocks": {name: state.to_json() for name, state in whole.clocks.items()},
            "frontier": whole.frontier,
            "origin": whole.origin,
            "rows": dict(whole.rows),
            "counts": dict(whole.counts),
            "chunks": {name: dict(chunks) for name, chunks in whole.chunks.items()},
            "marks": dict(whole.marks),
            "moves": dict(whole.moves),
            "told": dict(whole.told),
            "sides": {name: listing.to_json() for name, listing in sides.items()},
            "seals": {name: self._seals[name] for name in _chunk_files(whole)},
            "files": seals,
        }
        with (pending / _META).open("w") as file:
            json.dump(meta, file)
            file.flush()
            os.fsync(file.fileno())
        flush(pending)
        pending.rename(self.path(step.number))
        flush(self.folder)
        for number in self._numbers():
            if number < step.number - 1:
                shutil.rmtree(self.path(number), ignore_errors=True)
        self._known = {number: known for number, known in self._known.items() if number == step.number - 1}
        self._known[whole.number] = whole
        self._sweep()
        for name, side in self.sides.items():
            side.tidy(sides[name])
        return whole

    def write_chunk(self, name: str, chunk: int, rows: pa.Table) -> None:
        """Keep rows in a file of their own, which a step may name."""
        path = self.folder / _CHUNKS / _chunk_file(name, chunk)
        path.parent.mkdir(exist_ok=True)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as file:
            file.write_table(rows)
        flush(path)
        self._seals[path.name] = seal(path)

    def read_chunk(self, name: str, chunk: int) -> pa.Table:
        """The rows of such a file.

        Raises
        ------
        InputError
            ``TORN_FILE``, ``MISSING_FILE``.
        """
        path = self.folder / _CHUNKS / _chunk_file(name, chunk)
        check(path.parent, {path.name: self._seals[path.name]})
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as file:
            return file.read_all()

    def chunk_bytes(self, step: CommittedBatch, name: str) -> int:
        """The bytes of what a window of a staged query holds."""
        files = (_chunk_file(name, int(chunk)) for chunk in step.chunks.get(name, {}))
        return sum((self.folder / _CHUNKS / file).stat().st_size for file in files)

    def size(self, step: CommittedBatch) -> int:
        """The bytes of all that was kept at a step."""
        return size_of(self.path(step.number)) + sum(self.chunk_bytes(step, name) for name in step.chunks)

    def _sweep(self) -> None:
        """Delete the chunks that neither of the two last steps names."""
        named = {file for step in self._known.values() for file in _chunk_files(step)}
        self._seals = {file: known for file, known in self._seals.items() if file in named}
        for path in (self.folder / _CHUNKS).glob("*.arrow"):
            if path.name not in named:
                path.unlink(missing_ok=True)

    def _read(self, number: int) -> CommittedBatch:
        if number in self._known:
            return self._known[number]
        folder = self.path(number)
        meta = _meta(folder)
        if meta["version"] not in _READ:
            raise InputError(
                f"the checkpoint has version {meta['version']}, this version of Windrow reads {_VERSION}",
                condition="CHECKPOINT_VERSION",
                hint="go on with the version of Windrow that wrote it, or start with another checkpoint",
            )
        self._refuse_another(meta["query"])
        check(folder, meta["files"])
        if "sides" in meta:
            sides = {name: Listing.from_json(one) for name, one in meta["sides"].items()}
        else:
            sides = {name: side.adopted(number) for name, side in self.sides.items()}
        for name, listing in sides.items():
            self.sides[name].check(listing)
        clocks = {name: Position.from_json(text) for name, text in meta["clocks"].items()}
        told = {name: meta[name] for name in ("frontier", "origin", "rows", "counts", "chunks", "marks")}
        moves = {name: [(at, mark) for at, mark in steps] for name, steps in meta["moves"].items()}
        self._seals |= {file: tuple(known) for file, known in meta["seals"].items()}
        promised = {name: [(at, text) for at, text in one] for name, one in meta.get("told", {}).items()}
        self._known[number] = CommittedBatch(number, clocks, **told, moves=moves, told=promised, sides=sides)
        return self._known[number]

    def _refuse_another(self, was: Mapping[str, Any]) -> None:
        """Refuse to go on with another query than the one that the steps are of."""
        for key, value in self.fingerprint.items():
            if was.get(key) == value or (key in _SINCE_5 and key not in was):
                continue
            if key == "target" and self._had(self.identity):
                continue
            if key == "state" and BUCKETS in (value, was.get(key)):
                here, there = ("executors", "driver") if value == BUCKETS else ("driver", "executors")
                raise InputError(
                    f"the checkpoint is of a query on the {there}, and this one runs on the {here}",
                    condition="CHECKPOINT_OF_ANOTHER_HOST",
                    hint=f"SET spark.windrow.live.host = {there}; or start with another checkpoint",
                )
            if key == "state":
                raise InputError(
                    "an earlier version of Windrow wrote the checkpoint, with the state in another form",
                    condition="CHECKPOINT_VERSION",
                    hint="go on with the version of Windrow that wrote it, or start with another checkpoint",
                )
            raise InputError(
                f"the checkpoint is of another query: its {key} was {was.get(key)!r}, and is {value!r}",
                condition="CHECKPOINT_OF_ANOTHER_QUERY",
                hint="start a changed query with a checkpoint of its own"
                if key not in _SINCE_5
                else f"go on with that {key}; or start with a checkpoint and a target of their own",
            )

    def _numbers(self) -> list[int]:
        return _numbers(self.folder)

    def path(self, number: int) -> Path:
        """The directory of a step."""
        return self.folder / str(number)

    def _own(self, name: str) -> Path:
        """A name that no other process writes: the tasks of one that was killed may go on for a while."""
        return self.folder / f".{uuid.uuid4().hex}.{name}"


def form_in(folder: Path) -> str | None:
    """The form of the state that the last step in a folder has; None where there is no step.

    Raises
    ------
    InputError
        ``TORN_FILE``, ``MISSING_FILE``.
    """
    numbers = _numbers(folder) if folder.exists() else []
    form: str | None = _meta(folder / str(numbers[-1]))["query"].get("state") if numbers else None
    return form


def _numbers(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())


def _meta(step: Path) -> dict[str, Any]:
    """What a step says of itself."""
    try:
        meta: dict[str, Any] = json.loads((step / _META).read_text())
    except FileNotFoundError:
        raise missing(step / _META) from None
    except ValueError:
        raise torn(step / _META) from None
    return meta


def _chunk_file(name: str, chunk: int) -> str:
    return f"{name}-{chunk}.arrow"


def _chunk_files(step: CommittedBatch) -> list[str]:
    return [_chunk_file(name, int(chunk)) for name, chunks in step.chunks.items() for chunk in chunks]


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
