"""Positions in a log: how far it has been read, and the state that judges the entries after that.

Reading is a function of the position and the files after it. It skips what was never acknowledged: rows that
are already in the log (a retry), and entries of producers whose lease another process has acquired.
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
from windrow.streams.admission.batch_watermark import advance
from windrow.streams.admission.watermark import Ordering, WatermarkState
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

__all__ = [
    "Batch",
    "Judged",
    "Position",
    "Punctuations",
    "Watermarks",
    "follow",
    "judge",
    "needs_rows",
    "new_punctuations",
]

_VERSION = 2
_READ = (1, _VERSION)
"""The versions that can be read; the first has no checksums."""

Watermarks = tuple[tuple[int, int], ...]
"""(processing time, watermark) at each instant at which a stream's watermark advanced."""

Punctuations = tuple[tuple[int, str], ...]
"""(processing time, pattern) at each instant at which a stream has a new punctuation."""


@dataclass(frozen=True, slots=True)
class Position:
    """The state after reading up to a file.

    Attributes
    ----------
    identity
        The stream's identity.
    number, checksum
        The file, and its checksum; None if unknown.
    ptime
        The greatest processing time; each file has a later one than the file before.
    watermark
        The state of the watermark.
    writers
        The generation of each producer's lease, and the sequence number of its last row.
    duplicates, fenced
        How many rows were duplicates, and how many entries had an expired lease.
    """

    identity: str
    number: int = 0
    ptime: int = 0
    watermark: WatermarkState = field(default_factory=WatermarkState)
    writers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    duplicates: int = 0
    fenced: int = 0
    checksum: int | None = None

    @property
    def place(self) -> Place:
        """The place in the log."""
        return Place(self.number, self.checksum) if self.number else START

    def to_json(self) -> str:
        """The position as a text, for checkpoints."""
        return json.dumps(
            {
                "version": _VERSION,
                "identity": self.identity,
                "number": self.number,
                "checksum": self.checksum,
                "ptime": self.ptime,
                "clock": json.loads(self.watermark.to_json()),
                "writers": {name: list(known) for name, known in sorted(self.writers.items())},
                "duplicates": self.duplicates,
                "fenced": self.fenced,
            }
        )

    @staticmethod
    def from_json(text: str) -> Position:
        """Read a position from a text.

        Raises
        ------
        InputError
            ``CLOCK_VERSION``: it was written by another version.
        """
        values = json.loads(text)
        if values.pop("version", None) not in _READ:
            raise InputError(
                "another version of Windrow wrote a position in a log",
                condition="CLOCK_VERSION",
                hint="use the version of Windrow that wrote it",
            )
        watermark = WatermarkState.from_json(json.dumps(values.pop("clock")))
        writers = {name: (known[0], known[1]) for name, known in values.pop("writers").items()}
        return Position(watermark=watermark, writers=writers, **values)


@dataclass(frozen=True, eq=False)
class Batch:
    """Entries of a log, in order.

    Attributes
    ----------
    entries
        A table with the columns of the log. The processing times of a file are later than those of the files
        before.
    number
        int64 for each entry: its file.
    decision
        int8 for each entry: a value of :class:`~windrow.streams.entries.Decision`.
    violated
        int64 for each entry: the bound that it is below, if it was refused for that; else `NO_BOUND`.
    before
        int64 for each entry: the stream's watermark before a late row; else `NO_BOUND`.
    watermarks
        The stream's watermarks with the processing times at which they were reached, if requested.
    punctuations
        The stream's new punctuations with their processing times, if requested.
    """

    entries: pa.Table
    number: Ints
    decision: npt.NDArray[np.int8]
    violated: Ints
    before: Ints
    watermarks: Watermarks = ()
    punctuations: Punctuations = ()

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
        """The rows that were admitted: all columns of the log, including those that break ties of rowtime."""
        return self.entries.filter(pa.array(self._rows(Decision.ADMITTED)))

    @property
    def admissible(self) -> pa.Table:
        """The rows that violate no bound and no punctuation, including those below an estimate.

        All columns of the log, and `BEFORE`: the stream's watermark before late rows, else NULL.
        """
        known = pa.array(self.before, mask=self.before == NO_BOUND)
        chosen = pa.array(self._rows(Decision.ADMITTED, Decision.LATE))
        return self.entries.append_column(BEFORE, known).filter(chosen)

    @property
    def late(self) -> pa.Table:
        """The late, rejected and quarantined entries: all columns of the log, ``__violated``, ``__number``
        and ``__reason``. All are rows, except for quarantined bounds.
        """
        return self._refused(Decision.LATE, Decision.REJECTED)

    @property
    def rejected(self) -> pa.Table:
        """The same without rows that are only below an estimate."""
        return self._refused(Decision.REJECTED)

    def _refused(self, *decisions: Decision) -> pa.Table:
        is_row = self.entries.column(KIND).to_numpy() == EntryKind.ROW
        chosen = self._rows(*decisions) | (self.decision == Decision.QUARANTINED)
        all_entries = self.entries.append_column("__violated", pa.array(self.violated))
        all_entries = all_entries.append_column("__number", pa.array(self.number)).filter(pa.array(chosen))
        why = reasons(self.decision[chosen], self.violated[chosen], is_row[chosen])
        return all_entries.append_column("__reason", why)


def follow(
    position: Position,
    ordering: Ordering,
    schema: pa.Schema,
    files: Sequence[pa.Table],
    checksum: int | None = None,
    *,
    timed: bool = False,
) -> tuple[Batch, Position]:
    """Read the files after a position.

    Parameters
    ----------
    position
        The current position.
    ordering, schema
        Those of the stream's definition.
    files
        The entries of each of the next files.
    checksum
        The checksum of the last of them.
    timed
        Whether to report when the watermark advanced.

    Returns
    -------
    batch, position
        The entries with the decisions about them, and the position after them.
    """
    all_entries = pa.concat_tables(files).combine_chunks() if files else schema.empty_table()
    columns = [name for name in all_entries.column_names if name not in CONTROL.names]
    first = position.number + 1
    numbers = np.repeat(np.arange(first, first + len(files)), [table.num_rows for table in files])
    judged = judge(
        position,
        ordering,
        all_entries.select(CONTROL.names),
        numbers,
        all_entries.select(columns),
        timed=timed,
    )
    place = schema.get_field_index(PTIME)
    all_entries = all_entries.set_column(place, schema.field(place), pa.array(judged.ptime))
    decisions = judged.decision, judged.violated, judged.before
    batch = Batch(all_entries, numbers, *decisions, judged.watermarks, judged.punctuations)
    return batch, replace(judged.position, checksum=checksum) if files else position


@dataclass(frozen=True, eq=False)
class Judged:
    """The decisions about entries, in their order.

    Attributes
    ----------
    decision, violated, before, watermarks, punctuations
        As in :class:`Batch`.
    ptime
        int64: when the entries arrived; the times of a file are later than those of the files before.
    position
        The position after them.
    """

    decision: npt.NDArray[np.int8]
    violated: Ints
    before: Ints
    ptime: Ints
    position: Position
    watermarks: Watermarks
    punctuations: Punctuations = ()


def judge(
    position: Position,
    ordering: Ordering,
    entries: pa.Table,
    number: Ints,
    rows: pa.Table | None = None,
    *,
    timed: bool = False,
) -> Judged:
    """Judge the entries after a position.

    Parameters
    ----------
    position
        The current position.
    ordering
        That of the stream's definition.
    entries
        The columns of :data:`~windrow.streams.entries.CONTROL` of all entries of the next files.
    number
        int64 for each entry: its file.
    rows
        The columns of each entry's row, if `needs_rows`.
    timed
        Whether to report when the watermark advanced: it then judges each processing time by itself.

    Raises
    ------
    InputError
        ``MISSING_FILE``: the entries are not those of the next files.
    """
    starts = np.flatnonzero(np.diff(number, prepend=0))
    files = number[starts]
    if not np.array_equal(files, np.arange(position.number + 1, position.number + 1 + len(files))):
        raise InputError(
            f"entries are missing after file {position.number} of the log, the last one read",
            condition="MISSING_FILE",
            hint="restore the log and the checkpoint from copies of the same time",
        )
    writers = dict(position.writers)
    decisions = [
        _standing(writers, entries.slice(start, stop - start))
        for start, stop in pairwise([*starts.tolist(), len(number)])
    ]
    decision = np.concatenate([*decisions, np.zeros(0, np.int8)])
    violated, before = (np.full(len(decision), NO_BOUND) for _ in range(2))
    # the entries of a file arrive together, and those of other files at other times
    nth = number - position.number
    ptime = np.maximum.accumulate(np.maximum(entries.column(PTIME).to_numpy() - nth, position.ptime)) + nth
    punctuations = np.flatnonzero(decision == Decision.ADMITTED)
    placed = entries.set_column(CONTROL.get_field_index(PTIME), CONTROL.field(PTIME), pa.array(ptime))
    chosen = pa.array(punctuations)
    own = rows.take(chosen) if rows is not None and needs_rows(position, entries) else None
    to_judge = Entries.of_table(placed.take(chosen), own)
    if ordering.future is not None:  # by the producers' own times, so that producers and readers agree
        to_judge = replace(to_judge, sent=entries.column(PTIME).to_numpy()[punctuations])
    state, watermarks = position.watermark, []
    patterns: list[tuple[int, str]] = []
    for start, stop in _instants(to_judge.ptime) if timed else [(0, len(to_judge))]:
        decided = advance(state, ordering, to_judge.part(start, stop))
        decision[punctuations[start:stop]], violated[punctuations[start:stop]] = (
            decided.decision,
            decided.violated,
        )
        before[punctuations[start:stop]] = decided.before
        if timed and decided.state.at != state.at:
            watermarks.append((int(to_judge.ptime[start]), decided.state.at))
        if timed:
            patterns += new_punctuations(int(to_judge.ptime[start]), state, decided.state)
        state = decided.state
    after = replace(
        position,
        number=position.number + len(files),
        checksum=None if len(files) else position.checksum,
        ptime=int(ptime.max(initial=position.ptime)),
        watermark=state,
        writers=writers,
        duplicates=position.duplicates + int((decision == Decision.DUPLICATE).sum()),
        fenced=position.fenced + int((decision == Decision.FENCED).sum()),
    )
    return Judged(decision, violated, before, ptime, after, tuple(watermarks), tuple(patterns))


def new_punctuations(ptime: int, before: WatermarkState, after: WatermarkState) -> Punctuations:
    """The new punctuations of a stream at a processing time; everything, if no row follows."""
    if after.shared is before.shared and after.at == before.at:
        return ()
    known = frozenset(before.shared)
    found = [(ptime, text) for text in after.shared if text not in known]
    if after.at == FOREVER and before.at != FOREVER:
        found.append((ptime, EVERYTHING.to_json()))
    return tuple(found)


def _instants(ptime: Ints) -> Iterator[tuple[int, int]]:
    """The range of entries of each processing time."""
    starts = np.flatnonzero(np.diff(ptime, prepend=-1))
    return pairwise([*starts.tolist(), len(ptime)])


def needs_rows(position: Position, entries: pa.Table) -> bool:
    """Whether judging the entries needs their rows: if there is a punctuation."""
    punctuations = entries.column(PATTERN)
    in_force = position.watermark.patterns or position.watermark.shared
    return bool(in_force) or punctuations.null_count < len(punctuations)


def _standing(writers: dict[str, tuple[int, int]], table: pa.Table) -> npt.NDArray[np.int8]:
    """The fenced and duplicate entries of a file; records the producer's generation and last row."""
    name, generation = table.column(PRODUCER)[0].as_py(), table.column(GENERATION)[0].as_py()
    current, last = writers.get(name, (0, 0))
    decision = np.zeros(table.num_rows, np.int8)
    if table.column(KIND)[0].as_py() == EntryKind.TICK:
        return decision
    if generation < current:
        decision[:] = Decision.FENCED
        return decision
    is_row = table.column(KIND).to_numpy() == EntryKind.ROW
    sequence = table.column(SEQUENCE).fill_null(0).to_numpy()
    decision[is_row & (sequence <= last)] = Decision.DUPLICATE
    writers[name] = generation, max(last, int(sequence.max(initial=0)))
    return decision
