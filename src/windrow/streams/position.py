"""How far a log has been read, and what that says about the entries that follow.

Reading is a function of the position and the files after it. It keeps from the clock what was never
acknowledged: rows that were in already (a retry), and entries of producers whose lease another has taken.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InputError
from windrow.streams.advance import advance
from windrow.streams.clock import Ordering, State
from windrow.streams.entries import (
    CONTROL,
    GENERATION,
    KIND,
    NO_BOUND,
    PRODUCER,
    PTIME,
    SEQUENCE,
    Decision,
    Entries,
    Ints,
    Kind,
)

__all__ = ["Batch", "Judged", "Position", "follow", "judge"]

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Position:
    """What reading up to a file has told.

    Attributes
    ----------
    identity
        The stream's.
    number
        The file.
    ptime
        The greatest processing time; those of a log never go back.
    clock
        The clock's state.
    writers
        Of each producer: the generation of its lease, and the sequence number of its last row.
    duplicates, fenced
        How many rows were in already, and how many entries were of leases that had ended.
    """

    identity: str
    number: int = 0
    ptime: int = 0
    clock: State = field(default_factory=State)
    writers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    duplicates: int = 0
    fenced: int = 0

    def to_json(self) -> str:
        """The position as a text, such as a checkpoint may hold."""
        return json.dumps(
            {
                "version": _VERSION,
                "identity": self.identity,
                "number": self.number,
                "ptime": self.ptime,
                "clock": json.loads(self.clock.to_json()),
                "writers": {name: list(known) for name, known in sorted(self.writers.items())},
                "duplicates": self.duplicates,
                "fenced": self.fenced,
            }
        )

    @staticmethod
    def from_json(text: str) -> Position:
        """The position of a text.

        Raises
        ------
        InputError
            ``CLOCK_VERSION``: it was written by another version.
        """
        values = json.loads(text)
        if values.pop("version", None) != _VERSION:
            raise InputError(
                "a position in a log was written by another version of Windrow",
                condition="CLOCK_VERSION",
                hint="go on with the version of Windrow that wrote it",
            )
        clock = State.from_json(json.dumps(values.pop("clock")))
        writers = {name: (known[0], known[1]) for name, known in values.pop("writers").items()}
        return Position(clock=clock, writers=writers, **values)


@dataclass(frozen=True, eq=False)
class Batch:
    """Entries of a log, in order.

    Attributes
    ----------
    entries
        A table with the columns of the log. Its ptimes are those of the log: none is before an earlier one.
    number
        int64 of each entry: its file.
    decision
        int8 of each entry: what became of it, values of :class:`~windrow.streams.entries.Decision`.
    violated
        int64 of each entry: the bound that it is below, if it was refused for one; else `NO_BOUND`.
    """

    entries: pa.Table
    number: Ints
    decision: npt.NDArray[np.int8]
    violated: Ints

    def _rows(self, *decisions: Decision) -> npt.NDArray[np.bool_]:
        is_row = self.entries.column(KIND).to_numpy() == Kind.ROW
        chosen: npt.NDArray[np.bool_] = is_row & np.isin(self.decision, decisions)
        return chosen

    @property
    def rows(self) -> pa.Table:
        """The rows that were admitted: their columns."""
        names = [name for name in self.entries.column_names if name not in CONTROL.names]
        return self.admitted.select(names)

    @property
    def admitted(self) -> pa.Table:
        """The rows that were admitted: all columns of the log, those too that order rows of one rowtime."""
        return self.entries.filter(pa.array(self._rows(Decision.ADMITTED)))

    @property
    def late(self) -> pa.Table:
        """The rows that were late or rejected: all columns of the log, ``__violated`` and ``__number``."""
        chosen = pa.array(self._rows(Decision.LATE, Decision.REJECTED))
        whole = self.entries.append_column("__violated", pa.array(self.violated))
        return whole.append_column("__number", pa.array(self.number)).filter(chosen)


def follow(
    position: Position, ordering: Ordering, schema: pa.Schema, files: Sequence[pa.Table]
) -> tuple[Batch, Position]:
    """Read the files that come after a position.

    Parameters
    ----------
    position
        Where reading stands.
    ordering, schema
        Those of the stream's definition.
    files
        The entries of the next files, one by one.

    Returns
    -------
    batch, position
        The entries with what became of them, and where reading stands after them.
    """
    whole = pa.concat_tables(files).combine_chunks() if files else schema.empty_table()
    first = position.number + 1
    numbers = np.repeat(np.arange(first, first + len(files)), [table.num_rows for table in files])
    judged = judge(position, ordering, whole.select(CONTROL.names), numbers)
    place = schema.get_field_index(PTIME)
    whole = whole.set_column(place, schema.field(place), pa.array(judged.ptime))
    return Batch(whole, numbers, judged.decision, judged.violated), judged.position


@dataclass(frozen=True, eq=False)
class Judged:
    """What became of entries, in their order.

    Attributes
    ----------
    decision, violated
        As of :class:`Batch`.
    ptime
        int64: when they came; none before an earlier one.
    position
        Where reading stands after them.
    """

    decision: npt.NDArray[np.int8]
    violated: Ints
    ptime: Ints
    position: Position


def judge(position: Position, ordering: Ordering, entries: pa.Table, number: Ints) -> Judged:
    """Judge the entries that come after a position.

    Parameters
    ----------
    position
        Where reading stands.
    ordering
        That of the stream's definition.
    entries
        The columns of :data:`~windrow.streams.entries.CONTROL` of all entries of the next files.
    number
        int64 of each entry: its file.

    Raises
    ------
    InputError
        ``MISSING_FILE``: they are not those of the next files.
    """
    starts = np.flatnonzero(np.diff(number, prepend=0))
    files = number[starts]
    if not np.array_equal(files, np.arange(position.number + 1, position.number + 1 + len(files))):
        raise InputError(
            f"reading stands at file {position.number} of the log, and entries of others follow",
            condition="MISSING_FILE",
            hint="restore the log, or the checkpoint, from a copy: they are not of one time",
        )
    writers = dict(position.writers)
    decisions = [
        _standing(writers, entries.slice(start, stop - start))
        for start, stop in pairwise([*starts.tolist(), len(number)])
    ]
    decision = np.concatenate([*decisions, np.zeros(0, np.int8)])
    violated = np.full(len(decision), NO_BOUND)
    ptime = np.maximum.accumulate(np.maximum(entries.column(PTIME).to_numpy(), position.ptime))
    told = np.flatnonzero(decision == Decision.ADMITTED)
    placed = entries.set_column(CONTROL.get_field_index(PTIME), CONTROL.field(PTIME), pa.array(ptime))
    decided = advance(position.clock, ordering, Entries.of_table(placed.take(pa.array(told))))
    decision[told], violated[told] = decided.decision, decided.violated
    after = replace(
        position,
        number=position.number + len(files),
        ptime=int(ptime.max(initial=position.ptime)),
        clock=decided.state,
        writers=writers,
        duplicates=position.duplicates + int((decision == Decision.DUPLICATE).sum()),
        fenced=position.fenced + int((decision == Decision.FENCED).sum()),
    )
    return Judged(decision, violated, ptime, after)


def _standing(writers: dict[str, tuple[int, int]], table: pa.Table) -> npt.NDArray[np.int8]:
    """Which entries of a file are not for the clock; notes the producer's generation and last row."""
    name, generation = table.column(PRODUCER)[0].as_py(), table.column(GENERATION)[0].as_py()
    held, last = writers.get(name, (0, 0))
    decision = np.zeros(table.num_rows, np.int8)
    if generation < held:
        decision[:] = Decision.FENCED
        return decision
    is_row = table.column(KIND).to_numpy() == Kind.ROW
    sequence = table.column(SEQUENCE).fill_null(0).to_numpy()
    decision[is_row & (sequence <= last)] = Decision.DUPLICATE
    writers[name] = generation, max(last, int(sequence.max(initial=0)))
    return decision
