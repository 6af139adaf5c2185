"""The state of a bucket, and its place in Spark's state store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.incremental import InputState, ProgramFragment
from windrow.kernels.operator_state import CARRIED, TABLES, Carried, StateInChunks
from windrow.spark.live.executors.as_bytes import from_bytes, to_bytes
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.streams.admission.parts import EntrySummary
from windrow.streams.admission.several_producers import SharedWatermark

__all__ = [
    "BucketState",
    "BucketWindow",
    "Moment",
    "Packet",
    "Store",
    "StoredChunks",
    "StoredState",
    "StreamMark",
    "not_computed",
    "not_here",
]


StreamMark: TypeAlias = "EntrySummary | SharedWatermark"
"""The watermark information of a stream."""


Packet: TypeAlias = "tuple[str, bytes | None]"
"""A note and rows, as :mod:`.input.packing` makes them and a bucket emits them."""


class Store(Protocol):
    """The state of a bucket between micro-batches: one text, and bytes by name and number."""

    def text(self) -> str | None:
        """The text; None if there is none yet."""

    def save(self, text: str) -> None:
        """Replace the text."""

    def read(self, name: str, number: int) -> bytes:
        """The bytes of a name and number."""

    def write(self, name: str, number: int, data: bytes) -> None:
        """Store bytes."""

    def drop(self, name: str, number: int) -> None:
        """Delete bytes."""


@dataclass(frozen=True)
class Moment:
    """A micro-batch.

    Attributes
    ----------
    number
        Its number.
    now
        Its time, in microseconds.
    before, marks
        The watermark information of streams before it, and by its end.
    has_entries
        Whether any bucket has an entry, and not only ticks.
    """

    number: int
    now: int
    before: Mapping[int, StreamMark]
    marks: Mapping[int, StreamMark]
    has_entries: bool


class BucketState(Protocol):
    """The state of a bucket, and how it processes the rows of a micro-batch."""

    takes_late: bool
    """Whether it accepts rows that are only below an estimated watermark."""

    @property
    def size(self) -> int:
        """The bytes of its stored state."""

    @property
    def first(self) -> int | None:
        """The first instant at which it has rows; None without any."""

    def take(self, side: int, rows: pa.Table, moment: Moment) -> pa.Table | None:
        """Add entries of a side: admitted rows, with `BEFORE`.

        Rows that turn out to be late are returned, with `VIOLATED` and `REASON`.
        """

    def process(self, moment: Moment, account: BucketAccount) -> Sequence[pa.Table]:
        """The output of the micro-batch, after all rows have been added: one table, or one for each crossing
        leaf; none if nothing can have changed.
        """

    def save(self, store: Store, number: int) -> dict[str, Any]:
        """Store new state, delete old state, and return what is needed to read it again."""

    def report(self, account: BucketAccount) -> None:
        """Report the state."""


@dataclass
class StoredChunks:
    """The chunks of a store that have a name.

    Attributes
    ----------
    name
        The name.
    sizes
        The bytes of each chunk.
    """

    name: str
    sizes: dict[int, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of all chunks."""
        return sum(self.sizes.values())

    def save(self, store: Store, rows: Mapping[int, int], new: Mapping[int, pa.Table]) -> dict[str, int]:
        """Store new chunks, and delete all others than these, each with its number of rows."""
        for chunk, table in new.items():
            self.write(store, chunk, table)
        self.drop_others(store, rows.keys())
        return {str(chunk): count for chunk, count in rows.items()}

    def write(self, store: Store, chunk: int, table: pa.Table) -> None:
        """Store a chunk."""
        data = to_bytes(table)
        store.write(self.name, chunk, data)
        self.sizes[chunk] = len(data)

    def drop_others(self, store: Store, wanted: Set[int]) -> None:
        """Delete all chunks but these."""
        for chunk in self.sizes.keys() - wanted:
            store.drop(self.name, chunk)
            del self.sizes[chunk]

    def read(self, store: Store, chunks: Iterable[str | int]) -> dict[int, pa.Table]:
        """The rows of these chunks."""
        data = {int(chunk): store.read(self.name, int(chunk)) for chunk in chunks}
        self.sizes |= {chunk: len(one) for chunk, one in data.items()}
        return {chunk: from_bytes(one) for chunk, one in data.items()}


@dataclass
class BucketWindow:
    """Retained rows, in chunks of a store.

    Attributes
    ----------
    name
        The name of the chunks.
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
        """The stored bytes."""
        return self._chunks.size

    def save(self, store: Store, number: int) -> dict[str, int]:
        """Store new rows after a micro-batch, and delete old ones; returns the number of rows of each
        chunk.
        """
        self.state, new = self.state.merged(number)
        return self._chunks.save(store, self.state.chunks, new)

    def read(self, store: Store, chunks: Mapping[str, int]) -> dict[int, tuple[int, pa.Table]]:
        """The number of rows of each retained chunk, and its rows."""
        tables = self._chunks.read(store, chunks)
        return {chunk: (chunks[str(chunk)], table) for chunk, table in tables.items()}


class StoredState:
    """The stored state of the operators of a bucket, in place of the rows that it is computed from."""

    def __init__(self) -> None:
        self._last: Carried | None = None
        self._in_chunks = StateInChunks()
        self._chunks = {name: StoredChunks(name) for name in (CARRIED, TABLES)}

    @property
    def at(self) -> int | None:
        """Up to which instant it has rows; None if there is none."""
        return None if self._last is None else self._last.at

    @property
    def size(self) -> int:
        """Its bytes."""
        return sum(one.size for one in self._chunks.values())

    def is_due(self, row_count: int) -> bool:
        """Whether to store it, after so many rows have arrived since the last."""
        return Carried.is_due(self._last, row_count)

    def write(self, store: Store, number: int, at: int, rows: int, state: object) -> None:
        """Store the state after a micro-batch, in place of the last one."""
        self._last = self._in_chunks.write(_InStore(store, self._chunks), number, at, rows, state)
        self._chunks[CARRIED].drop_others(store, {number})
        self._chunks[TABLES].drop_others(store, self._last.tables.keys())

    def read(self, store: Store, known: Mapping[str, Any]) -> Any:
        """The stored state that :meth:`to_json` describes, of this version or an earlier one."""
        tables = {int(chunk): rows for chunk, rows in known.get("tables", {}).items()}
        number = known["chunk"] if "chunk" in known else known["number"]
        self._last = Carried(number, known["at"], known["rows"], tables, known.get("again", known["rows"]))
        return self._in_chunks.read(_InStore(store, self._chunks), self._last)

    def to_json(self) -> dict[str, Any] | None:
        """What :meth:`read` needs; None if there is none."""
        return None if self._last is None else asdict(self._last)


@dataclass(frozen=True)
class _InStore:
    """Chunks with several names in a store, as :class:`windrow.kernels.operator_state.Chunks`."""

    store: Store
    chunks: Mapping[str, StoredChunks]

    def write_chunk(self, name: str, chunk: int, rows: pa.Table) -> None:
        self.chunks[name].write(self.store, chunk, rows)

    def read_chunk(self, name: str, chunk: int) -> pa.Table:
        return self.chunks[name].read(self.store, [chunk])[chunk]


def not_here(fragment: ProgramFragment, read: Mapping[int, pa.Table]) -> pa.Table:  # noqa: ARG001 - of any
    """Refuse a fragment of a program that is not computed on executors.

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
