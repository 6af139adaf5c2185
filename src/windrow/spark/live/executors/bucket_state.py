"""The state of a bucket, and its place in Spark's state store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.incremental import InputState, ProgramFragment
from windrow.kernels.stored import ROWS_BEFORE_STATE, from_stored, stored
from windrow.spark.live.executors.as_bytes import from_bytes, to_bytes
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.streams.admission.parts import Said

__all__ = [
    "BucketState",
    "BucketWindow",
    "Carry",
    "Moment",
    "Store",
    "StoredChunks",
    "not_computed",
    "not_here",
]

_CARRY = "carry"


class Store(Protocol):
    """Where a bucket is retained between micro-batches: one text, and bytes by name and number."""

    def text(self) -> str | None:
        """The text; None before there is one."""

    def save(self, text: str) -> None:
        """Replace the text."""

    def read(self, name: str, number: int) -> bytes:
        """The bytes of a name and number."""

    def write(self, name: str, number: int, data: bytes) -> None:
        """Keep bytes."""

    def drop(self, name: str, number: int) -> None:
        """Keep bytes no longer."""


@dataclass(frozen=True)
class Moment:
    """A micro-batch: its number, its time in microseconds, and what streams have said by its end."""

    number: int
    now: int
    said: Mapping[int, Said]


class BucketState(Protocol):
    """The state of a bucket, and what it does with the rows of a micro-batch."""

    takes_late: bool
    """Whether rows are in that are only below an estimate."""

    @property
    def size(self) -> int:
        """The bytes of it that are stored."""

    def take(self, side: int, rows: pa.Table, moment: Moment) -> pa.Table | None:
        """Take in entries of a side: rows that are admitted, with `BEFORE`.

        Those that turn out to be late are returned, with `VIOLATED` and `REASON`.
        """

    def process(self, moment: Moment, account: BucketAccount) -> pa.Table | None:
        """The output of the micro-batch, once all rows have been taken in."""

    def save(self, store: Store, number: int) -> dict[str, Any]:
        """Store what is new, drop what has gone, and return what is needed to read it again."""

    def report(self, account: BucketAccount) -> None:
        """Report the state."""


@dataclass
class StoredChunks:
    """The chunks of a store that have a name.

    Attributes
    ----------
    name
        That.
    sizes
        The bytes of each chunk.
    """

    name: str
    sizes: dict[int, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of all."""
        return sum(self.sizes.values())

    def save(self, store: Store, rows: Mapping[int, int], new: Mapping[int, pa.Table]) -> dict[str, int]:
        """Store new chunks, and drop those that have gone: all others than these, of so many rows each."""
        for chunk, table in new.items():
            data = to_bytes(table)
            store.write(self.name, chunk, data)
            self.sizes[chunk] = len(data)
        for chunk in self.sizes.keys() - rows.keys():
            store.drop(self.name, chunk)
            del self.sizes[chunk]
        return {str(chunk): count for chunk, count in rows.items()}

    def read(self, store: Store, chunks: Mapping[str, int]) -> dict[int, pa.Table]:
        """What is in the chunks that were retained."""
        data = {int(chunk): store.read(self.name, int(chunk)) for chunk in chunks}
        self.sizes = {chunk: len(one) for chunk, one in data.items()}
        return {chunk: from_bytes(one) for chunk, one in data.items()}


@dataclass
class BucketWindow:
    """Retained rows, in chunks of a store.

    Attributes
    ----------
    name
        Of the chunks.
    state
        The rows.
    """

    name: str
    state: InputState
    _chunks: StoredChunks = field(init=False)

    def __post_init__(self) -> None:
        self._chunks = StoredChunks(self.name)

    @property
    def size(self) -> int:
        """The bytes that are stored."""
        return self._chunks.size

    def save(self, store: Store, number: int) -> dict[str, int]:
        """Store what is new after a micro-batch, and drop what has gone; how many rows each chunk has."""
        self.state, new = self.state.merged(number)
        return self._chunks.save(store, self.state.chunks, new)

    def read(self, store: Store, chunks: Mapping[str, int]) -> dict[int, tuple[int, pa.Table]]:
        """Of each chunk that was retained how many rows it had, and what is in it."""
        tables = self._chunks.read(store, chunks)
        return {chunk: (chunks[str(chunk)], table) for chunk, table in tables.items()}


@dataclass(frozen=True)
class Carry:
    """The state of operators, as it is stored in place of the rows that it is made of.

    Attributes
    ----------
    number
        Of the micro-batch after which it was stored.
    at
        Up to which instant it has rows.
    rows
        How many rows and groups it is.
    size
        Its bytes.
    """

    number: int
    at: int
    rows: int
    size: int

    @staticmethod
    def is_due(last: Carry | None, came: int) -> bool:
        """Whether to store it, where so many rows came since the last."""
        return came > max(ROWS_BEFORE_STATE, 0 if last is None else last.rows)

    @staticmethod
    def written(store: Store, last: Carry | None, number: int, at: int, rows: int, state: object) -> Carry:
        """The state of operators, stored in place of the last."""
        data = to_bytes(stored(state))
        store.write(_CARRY, number, data)
        if last is not None:
            store.drop(_CARRY, last.number)
        return Carry(number, at, rows, len(data))

    def read(self, store: Store) -> Any:
        """What was stored."""
        return from_stored(from_bytes(store.read(_CARRY, self.number)))


def not_here(fragment: ProgramFragment, read: Mapping[int, pa.Table]) -> pa.Table:  # noqa: ARG001 - of any
    """Say that a fragment of a program is not computed on executors.

    Raises
    ------
    ExecutionError
        ``VALUE_ON_EXECUTORS``.
    """
    raise not_computed()


def not_computed() -> ExecutionError:
    """The error for values that are not computed on executors."""
    return ExecutionError(
        "a value of the query does not fit into its type, or only Spark can compute it",
        condition="VALUE_ON_EXECUTORS",
        hint="SET spark.windrow.live.host = driver, and start the query with another checkpoint: there, Spark"
        " computes the value, or reports what is wrong with it",
    )
