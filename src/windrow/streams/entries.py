"""The entries of a log: what arrives at a stream, in order.

An entry is a row, or a producer's statement about its later rows. Rowtimes and bounds are int64 ticks of the
rowtime; processing times are microseconds since the epoch.
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
"""The bound before all rowtimes, which says nothing."""

FOREVER = 2**63 - 1
"""The bound after all rowtimes: no row follows."""

PREFIX = "__"
"""The prefix of the names of control columns, reserved for them."""

KIND, PRODUCER, GENERATION, SEQUENCE, PTIME, AT, PATTERN = (
    PREFIX + name for name in ("kind", "producer", "generation", "sequence", "ptime", "at", "pattern")
)

BEFORE = f"{PREFIX}before"
"""The column with the stream's watermark before a late row."""

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
"""The control columns of an entry: its kind, its producer and the generation of the producer's lease, the
row's sequence number, the processing time, the rowtime or bound, and the pattern as JSON."""


class EntryKind(IntEnum):
    """The kind of an entry."""

    ROW = 0
    BOUND = 1
    """A bound: no row of the producer below `at` follows."""
    WATERMARK = 2
    """An estimate of a bound."""
    OPEN = 3
    """The producer attaches. The stream's watermark waits for its bound."""
    IDLE = 4
    """The watermark ignores the producer until its next entry. Its punctuations stay in force."""
    CLOSE = 5
    """The producer leaves; its state is dropped."""
    PATTERN = 6
    """A punctuation: no row of the producer that matches the pattern follows."""
    TICK = 7
    """Processing time has advanced. A tick has no producer; later entries have later processing times."""


class Decision(IntEnum):
    """The decision about an entry."""

    ADMITTED = 0
    LATE = 1
    """A row below an estimate, but not below a bound."""
    REJECTED = 2
    """A row below a bound, or one that matches a punctuation."""
    ECLIPSED = 3
    """A bound below the current one."""
    DUPLICATE = 4
    """A row that is already in the log: a retry."""
    FENCED = 5
    """An entry of a producer whose lease had expired: it was never acknowledged."""
    QUARANTINED = 6
    """A row, bound or pattern whose time is too far ahead of its processing time."""


REASONS = ("watermark", "bound", "punctuation", "future", "future bound")
"""Why an entry is among the late rows: the row is below an estimate, is below a bound, matches a punctuation,
or is too far ahead of its processing time. The last is for a bound, or a pattern equivalent to one, that is
too far ahead."""


def reasons(
    decision: npt.NDArray[np.int8], violated: Ints, is_row: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """The reason, one of `REASONS`, of each refused entry. Without `is_row` all entries are rows."""
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
        int64: rowtimes and bounds; for a pattern equivalent to a bound, that bound, for other patterns 0; any
        value for other kinds.
    ptime
        int64.
    names
        The producers.
    patterns
        The patterns, as text; None if there are none.
    rows
        The columns of each entry's row, any values where the entry is no row; None if no pattern reads them.
    sent
        The processing times that the producers wrote; None if they are `ptime`.
    """

    kind: npt.NDArray[np.int8]
    code: npt.NDArray[np.int32]
    at: Ints
    ptime: Ints
    names: tuple[str, ...]
    patterns: pa.Array | None = None
    rows: pa.Table | None = None
    sent: Ints | None = None

    def __len__(self) -> int:
        return len(self.kind)

    @staticmethod
    def of_table(table: pa.Table, rows: pa.Table | None = None) -> Entries:
        """The entries of a table with the columns of `CONTROL`, and of a table with the rows' columns."""
        producers = table.column(PRODUCER).combine_chunks().dictionary_encode()
        at = table.column(AT).fill_null(0)
        patterns = table.column(PATTERN)
        return Entries(
            table.column(KIND).to_numpy(),
            producers.indices.to_numpy(zero_copy_only=False).astype(np.int32),
            at.to_numpy(),
            table.column(PTIME).to_numpy(),
            tuple(producers.dictionary.to_pylist()),
            patterns.combine_chunks() if patterns.null_count < len(patterns) else None,
            rows,
        )

    @staticmethod
    def of_rows(
        at: Ints, ptime: Ints, producer: pa.Array | None = None, bound: pa.Array | None = None
    ) -> Entries:
        """Rows of a source, each followed by its bound if it carries one.

        The result has the rows in their order, so decisions about entries of the kind ``ROW`` apply to the
        rows in turn.

        Parameters
        ----------
        at, ptime
            int64 for each row.
        producer
            The producer of each row; NULL is the empty name. Without it all rows have one producer.
        bound
            int64 for each row: its producer's bound after it; NULL for none.
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
        """The entries of tuples (kind, producer, at, ptime)."""
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
        """The entries of a range."""
        at = slice(start, stop)
        length = max(stop - start, 0)
        patterns = None if self.patterns is None else self.patterns.slice(start, length)
        rows = None if self.rows is None else self.rows.slice(start, length)
        sent = None if self.sent is None else self.sent[at]
        ours = self.kind[at], self.code[at], self.at[at], self.ptime[at]
        return Entries(*ours, self.names, patterns, rows, sent)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Entries:
        """The entries for which a mask is true."""
        which = pa.array(chosen)
        patterns = None if self.patterns is None else self.patterns.filter(which)
        rows = None if self.rows is None else self.rows.filter(which)
        sent = None if self.sent is None else self.sent[chosen]
        ours = self.kind[chosen], self.code[chosen], self.at[chosen], self.ptime[chosen]
        return Entries(*ours, self.names, patterns, rows, sent)
