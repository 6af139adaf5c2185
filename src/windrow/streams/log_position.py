"""How far a log has been read, and what that says about the entries that follow.

Reading is a function of the position and the files after it. It keeps from the clock what was never
acknowledged: rows that were in already (a retry), and entries of producers whose lease another has taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InputError
from windrow.punctuations import EVERYTHING
from windrow.streams.admission.batch_clock import advance
from windrow.streams.admission.clock import ClockState, Ordering
from windrow.streams.chain import START, Place
from windrow.streams.entries import (
    BEFORE,
    CONTROL,
    FOREVER,
    GENERATION,
    KIND,
    NO_BOUND,
    PATTERN,
    PRODUCER,
    PTIME,
    SEQUENCE,
    Decision,
    Entries,
    EntryKind,
    Ints,
    reasons,
)

__all__ = ["Batch", "Clocks", "Judged", "Position", "Told", "follow", "judge", "needs_rows", "newly_told"]

_VERSION = 2
_READ = (1, _VERSION)
"""Those of before have no checksums."""

Clocks = tuple[tuple[int, int], ...]
"""(processing time, clock) at each instant at which a stream's clock has moved."""

Told = tuple[tuple[int, str], ...]
"""(processing time, pattern) at each instant at which a stream has promised what it had not before."""


@dataclass(frozen=True, slots=True)
class Position:
    """What reading up to a file has told.

    Attributes
    ----------
    identity
        The stream's.
    number, checksum
        The file, and its checksum; None where that is not known.
    ptime
        The greatest processing time; that of a file is later than that of the one before.
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
    clock: ClockState = field(default_factory=ClockState)
    writers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    duplicates: int = 0
    fenced: int = 0
    checksum: int | None = None

    @property
    def place(self) -> Place:
        """The place in the log."""
        return Place(self.number, self.checksum) if self.number else START

    def to_json(self) -> str:
        """The position as a text, such as a checkpoint may hold."""
        return json.dumps(
            {
                "version": _VERSION,
                "identity": self.identity,
                "number": self.number,
                "checksum": self.checksum,
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
        if values.pop("version", None) not in _READ:
            raise InputError(
                "a position in a log was written by another version of Windrow",
                condition="CLOCK_VERSION",
                hint="go on with the version of Windrow that wrote it",
            )
        clock = ClockState.from_json(json.dumps(values.pop("clock")))
        writers = {name: (known[0], known[1]) for name, known in values.pop("writers").items()}
        return Position(clock=clock, writers=writers, **values)


@dataclass(frozen=True, eq=False)
class Batch:
    """Entries of a log, in order.

    Attributes
    ----------
    entries
        A table with the columns of the log. Its ptimes are those of the log: each file's are later than those
        of the files before.
    number
        int64 of each entry: its file.
    decision
        int8 of each entry: what became of it, values of :class:`~windrow.streams.entries.Decision`.
    violated
        int64 of each entry: the bound that it is below, if it was refused for one; else `NO_BOUND`.
    before
        int64 of each entry: the stream's clock before it, of late rows; else `NO_BOUND`.
    clocks
        Where the stream's clock has moved to, and at which processing times, if that was asked for.
    told
        What the stream has promised by patterns, and at which processing times, in the same way.
    """

    entries: pa.Table
    number: Ints
    decision: npt.NDArray[np.int8]
    violated: Ints
    before: Ints
    clocks: Clocks = ()
    told: Told = ()

    def _rows(self, *decisions: Decision) -> npt.NDArray[np.bool_]:
        is_row = self.entries.column(KIND).to_numpy() == EntryKind.ROW
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
    def promised(self) -> pa.Table:
        """The rows that no promise rules out, those below an estimate among them.

        All columns of the log, and `BEFORE`: of late rows the stream's clock before them, else NULL.
        """
        known = pa.array(self.before, mask=self.before == NO_BOUND)
        chosen = pa.array(self._rows(Decision.ADMITTED, Decision.LATE))
        return self.entries.append_column(BEFORE, known).filter(chosen)

    @property
    def late(self) -> pa.Table:
        """What was late, rejected or quarantined: all columns of the log, ``__violated``, ``__number`` and
        ``__reason``. All are rows, but for bounds that are quarantined.
        """
        return self._refused(Decision.LATE, Decision.REJECTED)

    @property
    def rejected(self) -> pa.Table:
        """The same without the rows that are only below an estimate."""
        return self._refused(Decision.REJECTED)

    def _refused(self, *decisions: Decision) -> pa.Table:
        is_row = self.entries.column(KIND).to_numpy() == EntryKind.ROW
        chosen = self._rows(*decisions) | (self.decision == Decision.QUARANTINED)
        whole = self.entries.append_column("__violated", pa.array(self.violated))
        whole = whole.append_column("__number", pa.array(self.number)).filter(pa.array(chosen))
        why = reasons(self.decision[chosen], self.violated[chosen], is_row[chosen])
        return whole.append_column("__reason", why)


def follow(
    position: Position,
    ordering: Ordering,
    schema: pa.Schema,
    files: Sequence[pa.Table],
    checksum: int | None = None,
    *,
    timed: bool = False,
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
    checksum
        That of the last of them.
    timed
        Whether to find out when the clock has moved.

    Returns
    -------
    batch, position
        The entries with what became of them, and where reading stands after them.
    """
    whole = pa.concat_tables(files).combine_chunks() if files else schema.empty_table()
    columns = [name for name in whole.column_names if name not in CONTROL.names]
    first = position.number + 1
    numbers = np.repeat(np.arange(first, first + len(files)), [table.num_rows for table in files])
    judged = judge(
        position, ordering, whole.select(CONTROL.names), numbers, whole.select(columns), timed=timed
    )
    place = schema.get_field_index(PTIME)
    whole = whole.set_column(place, schema.field(place), pa.array(judged.ptime))
    said = judged.decision, judged.violated, judged.before
    batch = Batch(whole, numbers, *said, judged.clocks, judged.told)
    return batch, replace(judged.position, checksum=checksum) if files else position


@dataclass(frozen=True, eq=False)
class Judged:
    """What became of entries, in their order.

    Attributes
    ----------
    decision, violated, before
        As of :class:`Batch`.
    ptime
        int64: when they came; those of a file are later than those of the files before.
    position
        Where reading stands after them.
    clocks
        Where the stream's clock has moved to, and at which processing times, if that was asked for.
    told
        What the stream has promised by patterns, and at which processing times, in the same way.
    """

    decision: npt.NDArray[np.int8]
    violated: Ints
    before: Ints
    ptime: Ints
    position: Position
    clocks: Clocks
    told: Told = ()


def judge(
    position: Position,
    ordering: Ordering,
    entries: pa.Table,
    number: Ints,
    rows: pa.Table | None = None,
    *,
    timed: bool = False,
) -> Judged:
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
    rows
        The columns of each entry's row, where `needs_rows`.
    timed
        Whether to find out when the clock has moved: entries of one processing time are judged together then.

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
    violated, before = (np.full(len(decision), NO_BOUND) for _ in range(2))
    # what one call of a producer brings comes at once, and nothing else comes then
    nth = number - position.number
    ptime = np.maximum.accumulate(np.maximum(entries.column(PTIME).to_numpy() - nth, position.ptime)) + nth
    told = np.flatnonzero(decision == Decision.ADMITTED)
    placed = entries.set_column(CONTROL.get_field_index(PTIME), CONTROL.field(PTIME), pa.array(ptime))
    chosen = pa.array(told)
    own = rows.take(chosen) if rows is not None and needs_rows(position, entries) else None
    of_clock = Entries.of_table(placed.take(chosen), own)
    if ordering.future is not None:  # by the times that producers know: so they decide as readers do
        of_clock = replace(of_clock, sent=entries.column(PTIME).to_numpy()[told])
    state, clocks = position.clock, []
    patterns: list[tuple[int, str]] = []
    for start, stop in _instants(of_clock.ptime) if timed else [(0, len(of_clock))]:
        decided = advance(state, ordering, of_clock.part(start, stop))
        decision[told[start:stop]], violated[told[start:stop]] = decided.decision, decided.violated
        before[told[start:stop]] = decided.before
        if timed and decided.state.at != state.at:
            clocks.append((int(of_clock.ptime[start]), decided.state.at))
        if timed:
            patterns += newly_told(int(of_clock.ptime[start]), state, decided.state)
        state = decided.state
    after = replace(
        position,
        number=position.number + len(files),
        checksum=None if len(files) else position.checksum,
        ptime=int(ptime.max(initial=position.ptime)),
        clock=state,
        writers=writers,
        duplicates=position.duplicates + int((decision == Decision.DUPLICATE).sum()),
        fenced=position.fenced + int((decision == Decision.FENCED).sum()),
    )
    return Judged(decision, violated, before, ptime, after, tuple(clocks), tuple(patterns))


def newly_told(ptime: int, before: ClockState, after: ClockState) -> Told:
    """What a stream has promised by patterns at a processing time; all, where no row follows."""
    if after.shared is before.shared and after.at == before.at:
        return ()
    known = frozenset(before.shared)
    found = [(ptime, text) for text in after.shared if text not in known]
    if after.at == FOREVER and before.at != FOREVER:
        found.append((ptime, EVERYTHING.to_json()))
    return tuple(found)


def _instants(ptime: Ints) -> Iterator[tuple[int, int]]:
    """The entries of each processing time, as a stretch."""
    starts = np.flatnonzero(np.diff(ptime, prepend=-1))
    return pairwise([*starts.tolist(), len(ptime)])


def needs_rows(position: Position, entries: pa.Table) -> bool:
    """Whether entries cannot be judged without their rows: where a pattern has been promised."""
    told = entries.column(PATTERN)
    promised = position.clock.patterns or position.clock.shared
    return bool(promised) or told.null_count < len(told)


def _standing(writers: dict[str, tuple[int, int]], table: pa.Table) -> npt.NDArray[np.int8]:
    """Which entries of a file are not for the clock; notes the producer's generation and last row."""
    name, generation = table.column(PRODUCER)[0].as_py(), table.column(GENERATION)[0].as_py()
    held, last = writers.get(name, (0, 0))
    decision = np.zeros(table.num_rows, np.int8)
    if table.column(KIND)[0].as_py() == EntryKind.TICK:
        return decision
    if generation < held:
        decision[:] = Decision.FENCED
        return decision
    is_row = table.column(KIND).to_numpy() == EntryKind.ROW
    sequence = table.column(SEQUENCE).fill_null(0).to_numpy()
    decision[is_row & (sequence <= last)] = Decision.DUPLICATE
    writers[name] = generation, max(last, int(sequence.max(initial=0)))
    return decision
