"""The state of operators in numbered chunks, in place of the rows that it is computed from.

It is written now and then: when more rows have arrived since than would be written again, so that a
micro-batch writes about as much as it reads. Its long tables that never change, such as runs of traces, are
chunks of their own, which are written once. A restart reads the state, and processes again the rows that have
arrived since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa

from windrow.errors import InputError
from windrow.kernels.stored import Fixed, from_stored, stored

__all__ = [
    "CARRIED",
    "ROWS_BEFORE_STATE",
    "TABLES",
    "Carried",
    "Chunks",
    "StateInChunks",
    "of_other_operators",
]

ROWS_BEFORE_STATE = 10_000
"""Up to so many rows are stored as they are, and processed again after a restart: state replaces more."""
CARRIED = "carry"
"""The name of the chunk with the state."""
TABLES = "carry-table"
"""The name of the chunks with tables that never change."""
_ROW_BYTES = 32
"""The bytes of state that count as a row."""


class Chunks(Protocol):
    """Tables by name and number."""

    def write_chunk(self, name: str, chunk: int, rows: pa.Table) -> None:
        """Write a table."""

    def read_chunk(self, name: str, chunk: int) -> pa.Table:
        """Read a table."""


@dataclass(frozen=True)
class Carried:
    """The stored state of operators.

    Attributes
    ----------
    chunk, at, rows
        The number of its chunk, the instant or micro-batch that it goes up to, and its number of rows.
    tables
        The chunks of its tables that never change, with their numbers of rows.
    again
        How many rows are as long as what the next state has to write again.
    """

    chunk: int
    at: int
    rows: int
    tables: Mapping[int, int]
    again: int

    @staticmethod
    def is_due(last: Carried | None, arrived: int) -> bool:
        """Whether to write the state, after so many rows have arrived since the last."""
        return arrived > max(ROWS_BEFORE_STATE, 0 if last is None else last.again)


class StateInChunks:
    """Writes and reads the state of the operators of one query, or of one bucket of it."""

    def __init__(self) -> None:
        self._numbers: WeakKeyDictionary[Fixed, int] = WeakKeyDictionary()
        self._last = 0

    def write(self, chunks: Chunks, number: int, at: int, rows: int, state: object) -> Carried:
        """Write the state after a micro-batch, of so many rows, up to an instant."""
        tables = _Tables(self, chunks)
        parts = stored(state, tables)
        chunks.write_chunk(CARRIED, number, parts)
        return Carried(number, at, rows, tables.named, min(rows, parts.nbytes // _ROW_BYTES))

    def read(self, chunks: Chunks, carried: Carried) -> Any:
        """Read the state."""
        return from_stored(chunks.read_chunk(CARRIED, carried.chunk), _Tables(self, chunks))

    def number_of(self, fixed: Fixed) -> int | None:
        """The number of a table; None if it is new."""
        return self._numbers.get(fixed)

    def next_number(self) -> int:
        """The number of the next new table: greater than those of all tables that were written or read."""
        return self._last + 1

    def has(self, fixed: Fixed, number: int) -> None:
        """Note that a table has this number."""
        self._numbers[fixed], self._last = number, max(self._last, number)


@dataclass
class _Tables:
    """The tables that never change, as :class:`windrow.kernels.stored.FixedTables`; `named` has the rows of
    those that a state written now consists of.
    """

    state: StateInChunks
    chunks: Chunks
    named: dict[int, int] = field(default_factory=dict)

    def number_of(self, fixed: Fixed) -> int:
        number = self.state.number_of(fixed)
        if number is None:
            number = self.state.next_number()
            self.chunks.write_chunk(TABLES, number, fixed.table)
            self.state.has(fixed, number)
        self.named[number] = fixed.table.num_rows
        return number

    def fixed(self, number: int) -> Fixed:
        found = Fixed(self.chunks.read_chunk(TABLES, number))
        self.state.has(found, number)
        return found


def of_other_operators() -> InputError:
    """The error for stored state of other operators than the query has now."""
    return InputError(
        "the checkpoint has the state of other operators than this version runs for the query",
        condition="CHECKPOINT_VERSION",
        hint="go on with the version that wrote it, or start with another checkpoint and target",
    )
