"""The entries of a log: what arrives at a stream, in order.

An entry is a row, or something that a producer says about its rows to come. Rowtimes and bounds are int64
ticks of the stream's clock, processing times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = [
    "AT",
    "BEFORE",
    "CONTROL",
    "FOREVER",
    "GENERATION",
    "KIND",
    "NO_BOUND",
    "PATTERN",
    "PREFIX",
    "PRODUCER",
    "PTIME",
    "REASONS",
    "SEQUENCE",
    "Decision",
    "Entries",
    "EntryKind",
    "reasons",
]

Ints = npt.NDArray[np.int64]

NO_BOUND = -(2**63)
"""The bound that promises nothing."""

FOREVER = 2**63 - 1
"""The bound that promises that no row follows."""

PREFIX = "__"
"""What the names of the control columns begin with, and no column of a stream."""

KIND, PRODUCER, GENERATION, SEQUENCE, PTIME, AT, PATTERN = (
    PREFIX + name for name in ("kind", "producer", "generation", "sequence", "ptime", "at", "pattern")
)

BEFORE = f"{PREFIX}before"
"""The stream's clock before a row that is below it, where that is told of rows."""

CONTROL = pa.schema(
    [
        pa.field(KIND, pa.int8(), nullable=False),
        pa.field(PRODUCER, pa.string(), nullable=False),
        pa.field(GENERATION, pa.int64(), nullable=False),
        pa.field(SEQUENCE, pa.int64()),
        pa.field(PTIME, pa.int64(), nullable=False),
        pa.field(AT, pa.int64()),
        pa.field(PATTERN, pa.string()),
    ]
)
"""The columns of an entry beside those of its row: the kind, who says it (as the holder of which lease), the
number of a row among its producer's, when, the rowtime or bound, and the pattern, as JSON."""


class EntryKind(IntEnum):
    """What an entry is."""

    ROW = 0
    BOUND = 1
    """A promise: no row of the producer's below `at` follows."""
    WATERMARK = 2
    """An estimate of the same."""
    OPEN = 3
    """The producer attaches, and holds the stream back until it says more."""
    IDLE = 4
    """The producer holds nothing back until its next entry; its promises stay."""
    CLOSE = 5
    """The producer leaves and is forgotten."""
    PATTERN = 6
    """A promise: no row of the producer's that the pattern matches follows."""
    TICK = 7
    """Time has passed: it is of no producer, and says that later entries have later processing times."""


class Decision(IntEnum):
    """What becomes of an entry."""

    ADMITTED = 0
    LATE = 1
    """A row below an estimate, and not below a promise."""
    REJECTED = 2
    """A row below a promise."""
    ECLIPSED = 3
    """A bound below the one that held already."""
    DUPLICATE = 4
    """A row that was in already: a retry."""
    FENCED = 5
    """An entry of a producer whose lease had expired: it was never acknowledged."""
    QUARANTINED = 6
    """A row, bound or pattern of a time that is too far ahead of its processing time."""


REASONS = ("watermark", "bound", "punctuation", "future", "future bound")
"""Why rows are among the late rows: they are below an estimate, or below a promise; they match a promised
pattern; they are too far ahead of their processing time. The last is of what is no row: a bound, or a pattern
that is one, that is too far ahead."""


def reasons(
    decision: npt.NDArray[np.int8], violated: Ints, is_row: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Of entries that are refused, why: each one of `REASONS`; all are rows without `is_row`."""
    which = np.where(decision == Decision.LATE, 0, np.where(violated == NO_BOUND, 2, 1))
    which[decision == Decision.QUARANTINED] = 3
    if is_row is not None:
        which[(decision == Decision.QUARANTINED) & ~is_row] = 4
    return pa.array(REASONS, pa.string()).take(pa.array(which))


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries in the order of the log, as arrays.

    Attributes
    ----------
    kind
        int8: values of :class:`EntryKind`.
    code
        int32: the producer, as a place in `names`.
    at
        int64: rowtimes and bounds; of a pattern that has all rowtimes before an instant and nothing else,
        that instant, of other patterns 0; any value where the kind has neither.
    ptime
        int64.
    names
        The producers.
    told
        The patterns, as text; None if there are none.
    rows
        The columns of each entry's row, anything where it is none; None if no pattern tells of them.
    sent
        The processing times as the producers wrote them, where `ptime` is later; None for `ptime`.
    """

    kind: npt.NDArray[np.int8]
    code: npt.NDArray[np.int32]
    at: Ints
    ptime: Ints
    names: tuple[str, ...]
    told: pa.Array | None = None
    rows: pa.Table | None = None
    sent: Ints | None = None

    def __len__(self) -> int:
        return len(self.kind)

    @staticmethod
    def of_table(table: pa.Table, rows: pa.Table | None = None) -> Entries:
        """The entries of a table with the columns of `CONTROL`, and of one with those of their rows."""
        producers = table.column(PRODUCER).combine_chunks().dictionary_encode()
        at = table.column(AT).fill_null(0)
        told = table.column(PATTERN)
        return Entries(
            table.column(KIND).to_numpy(),
            producers.indices.to_numpy(zero_copy_only=False).astype(np.int32),
            at.to_numpy(),
            table.column(PTIME).to_numpy(),
            tuple(producers.dictionary.to_pylist()),
            told.combine_chunks() if told.null_count < len(told) else None,
            rows,
        )

    @staticmethod
    def of_rows(
        at: Ints, ptime: Ints, producer: pa.Array | None = None, bound: pa.Array | None = None
    ) -> Entries:
        """Rows of a source, each followed by the bound that it carries, if it carries one.

        The rows of the result are in their order, so that its decisions about entries of the kind ``ROW`` are
        those about the rows.

        Parameters
        ----------
        at, ptime
            int64 of each row.
        producer
            Text of each row, NULL being the empty one; all are of one producer without it.
        bound
            int64 of each row: what its producer promises after it; NULL for nothing.
        """
        count = len(at)
        names = pa.repeat("", count) if producer is None else producer.cast(pa.string()).fill_null("")
        coded = names.dictionary_encode()
        kind, code = np.full(count, EntryKind.ROW, np.int8), coded.indices.to_numpy(zero_copy_only=False)
        code = code.astype(np.int32)
        if bound is not None:
            carriers = np.flatnonzero(bound.is_valid().to_numpy(zero_copy_only=False))
            kind = np.insert(kind, carriers + 1, EntryKind.BOUND)
            at = np.insert(at, carriers + 1, bound.fill_null(0).to_numpy(zero_copy_only=False)[carriers])
            code, ptime = (np.insert(of, carriers + 1, of[carriers]) for of in (code, ptime))
        return Entries(kind, code, at, ptime, tuple(coded.dictionary.to_pylist()))

    @staticmethod
    def of(items: Sequence[tuple[int, str, int, int]]) -> Entries:
        """Those given as (kind, producer, at, ptime)."""
        names = tuple(dict.fromkeys(name for _, name, _, _ in items))
        codes = {name: code for code, name in enumerate(names)}
        return Entries(
            np.array([kind for kind, _, _, _ in items], np.int8),
            np.array([codes[name] for _, name, _, _ in items], np.int32),
            np.array([at for _, _, at, _ in items], np.int64),
            np.array([ptime for _, _, _, ptime in items], np.int64),
            names,
        )

    def part(self, start: int, stop: int) -> Entries:
        """Those of a range."""
        at = slice(start, stop)
        length = max(stop - start, 0)
        told = None if self.told is None else self.told.slice(start, length)
        rows = None if self.rows is None else self.rows.slice(start, length)
        sent = None if self.sent is None else self.sent[at]
        ours = self.kind[at], self.code[at], self.at[at], self.ptime[at]
        return Entries(*ours, self.names, told, rows, sent)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Entries:
        """Those that are chosen."""
        which = pa.array(chosen)
        told = None if self.told is None else self.told.filter(which)
        rows = None if self.rows is None else self.rows.filter(which)
        sent = None if self.sent is None else self.sent[chosen]
        ours = self.kind[chosen], self.code[chosen], self.at[chosen], self.ptime[chosen]
        return Entries(*ours, self.names, told, rows, sent)
