"""Producers: who inserts rows into a named stream and says what it will insert."""

from __future__ import annotations

import contextlib
import datetime
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import ExecutionError, InputError, UsageError, WindrowError
from windrow.punctuations import Cover, Pattern, lines_of
from windrow.punctuations.schemes import schemes
from windrow.streams.admission.ahead import told_ahead
from windrow.streams.admission.batch_clock import advance
from windrow.streams.admission.clock import ClockState, Decided
from windrow.streams.admission.mistimed import is_ahead
from windrow.streams.definition import Definition
from windrow.streams.entries import (
    AT,
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
)
from windrow.streams.leases import Lease, acquire, last
from windrow.streams.pattern_arguments import pattern_of
from windrow.streams.row_arguments import Rows, to_table
from windrow.streams.stream_folder import StreamFolder
from windrow.tracebacks import briefly

__all__ = ["LEASE_SECONDS", "LateRows", "Producer", "Receipt", "said", "under"]

LateRows = Literal["keep", "error"]
LEASE_SECONDS = 10.0

T = TypeVar("T")
Bytes = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of the rows of an insert.

    Attributes
    ----------
    number
        The file of the log that holds them; 0 if none had to be written.
    sequence
        The number of the first row among the producer's.
    admitted, late, rejected
        How many rows are in, are below an estimate of the producer's, and are below its bound. The last two
        are in the log as late rows.
    duplicates
        How many rows were in already, by their numbers.
    quarantined
        How many are too far ahead of their processing time, of a stream with a ``future``; they are in the
        log as late rows too.
    """

    number: int
    sequence: int
    admitted: int
    late: int = 0
    rejected: int = 0
    duplicates: int = 0
    quarantined: int = 0


@briefly
class Producer:
    """A producer that is attached to a stream. Made by :meth:`NamedStream.producer`.

    As a context, it closes at the end, or is idle if the block ends by an exception: what it has promised
    then stays promised. All methods return when what they say is on the disk. Threads may share it.
    """

    def __init__(
        self,
        stream: StreamFolder,
        name: str,
        *,
        late: LateRows,
        seconds: float,
        wait: float,
        zone: datetime.tzinfo | None = None,
    ) -> None:
        if late not in ("keep", "error"):
            raise _invalid(f"{late!r} says not what becomes of late rows", "use 'keep' or 'error'")
        if seconds <= 0:
            raise _invalid(
                f"a lease of {seconds:g} seconds is none", "give a number of seconds greater than 0"
            )
        self.stream, self.name = stream, name
        self._late, self._seconds, self._zone = late, seconds, zone
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._position = stream.position()
        self._place = self._position.place  # that is known to be in the log
        self._last = 0  # the number of the last row that is in
        self._own = ClockState(
            started=True
        )  # of this producer alone: while it is open, it depends on no other
        self._is_attached = True
        self._is_certain = False  # whether all that was tried is known to be in or not
        self._said = time.monotonic()  # when it has last said something
        self._wrote = 0  # when that was by this machine's clock
        self._has_told = False  # that it is ahead of its processing time
        self._lease = self._acquired(wait)
        with contextlib.suppress(ExecutionError):  # it only spares others reading
            stream.keep(self._position)
        self._heart = _Heart(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(EntryKind.CLOSE if kind is None else EntryKind.IDLE)

    @property
    def next_sequence(self) -> int:
        """The number that the next row gets: one more than the last that is in."""
        return self._last + 1

    @property
    def bound_ticks(self) -> int | None:
        """Its bound, in ticks of the rowtime; None if it has none."""
        known = self._own.producers.get(self.name)
        return None if known is None or known.bound == NO_BOUND else known.bound

    def insert(
        self,
        rows: Rows,
        *,
        sequence: int | None = None,
        bound: object = None,
        strict: bool = False,
    ) -> Receipt:
        """Insert rows, all of them or none.

        Parameters
        ----------
        rows
            Mappings of columns to values (or one), a DataFrame of pandas, or an Arrow table. A column that
            is not given is NULL.
        sequence
            The number of the first row, among those of this producer, by default :attr:`next_sequence`.
            Rows with numbers that are in already are left out: with numbers of its own, such as those of
            the lines of a file, a producer may insert again what it does not know to be in.
        bound, strict
            Promise, after these rows, what :meth:`bound` would.

        Raises
        ------
        InputError
            ``UNKNOWN_COLUMN``, ``INVALID_VALUE``, ``NULL_ROWTIME``, ``ROWTIME_OVERFLOW``; ``LATE_ROWS``
            where late rows are an error. Nothing is inserted.
        ExecutionError
            ``DISK_FULL``, ``STREAM_NOT_WRITTEN``: nothing is inserted. ``STREAM_NOT_FLUSHED``: all is
            inserted.
        UsageError
            ``PRODUCER_TAKEN``, ``PRODUCER_CLOSED``, ``INVALID_ARGUMENT``, ``INVALID_INSTANT``. Nothing is
            inserted.
        """
        definition = self.stream.definition
        table = to_table(rows, definition.columns)
        ticks = definition.rowtime.ticks(table.column(definition.rowtime.column))
        says = (
            []
            if bound is None
            else [said(definition, EntryKind.BOUND, self.name, self._tick(bound, strict=strict))]
        )
        if sequence is not None and sequence < 1:
            raise _invalid(f"{sequence} is no number of a row", "rows are numbered from 1 on")

        def attempt() -> Receipt:
            first = self.next_sequence if sequence is None else sequence
            known = min(max(self.next_sequence - first, 0), table.num_rows)
            numbers = np.arange(first, first + table.num_rows)[known:]
            rows = _rows(self.name, ticks[known:], numbers, table.slice(known))
            entries = self._timed(pa.concat_tables([rows, *says]))
            if not entries.num_rows:
                return Receipt(0, first, 0, duplicates=known)
            if self._late == "error":
                self._refuse_late(ticks[known:], entries)
            number, decision = self._logged(self._with_promises(entries))
            counts = np.bincount(decision[: len(numbers)], minlength=len(Decision)).tolist()
            refused = counts[Decision.LATE], counts[Decision.REJECTED]
            ahead = counts[Decision.QUARANTINED]
            return Receipt(number, first, counts[Decision.ADMITTED], *refused, known, ahead)

        return self._attached(attempt)

    def _with_promises(self, entries: pa.Table) -> pa.Table:
        """The entries, and after them what the stream's schemes make of the rows that are in."""
        definition = self.stream.definition
        if not definition.schemes:
            return entries
        is_in = self._decided(entries).decision == Decision.ADMITTED
        is_in &= entries.column(KIND).to_numpy() == EntryKind.ROW
        rows = entries.filter(pa.array(is_in)).select(definition.columns.names)
        cover = Cover(lines_of(rows.schema), schemes(definition.schemes, rows))
        told = [Pattern.of_box(box, cover.lines).to_json() for box in cover]
        says = [said(definition, EntryKind.PATTERN, self.name, pattern=pattern) for pattern in told]
        return pa.concat_tables([entries, *says])

    def bound(self, instant: object, *, strict: bool = False) -> int:
        """Promise to insert no row with a rowtime before an instant; nor, if strict, at it.

        Parameters
        ----------
        instant
            An int of the rowtime's unit (of times microseconds since the epoch, of dates days), a date, a
            datetime, or a text of one in the form of ISO 8601. A datetime has a zone where the rowtimes
            have one; of a producer that a session has attached, one without is of the session's zone.
        strict
            Whether the instant itself is meant too.

        Returns
        -------
        int
            The number of the file of the log.
        """
        return self._say(EntryKind.BOUND, self._tick(instant, strict=strict))

    def watermark(self, instant: object, *, strict: bool = False) -> int:
        """Estimate what :meth:`bound` promises: a row below it is late, and not rejected."""
        return self._say(EntryKind.WATERMARK, self._tick(instant, strict=strict))

    def punctuate(self, patterns: Mapping[str, object] | None = None, **columns: object) -> int:
        """Promise to insert no row that matches a pattern.

        Parameters
        ----------
        patterns, columns
            What the pattern has in columns of the stream; in the others it has anything. A value; None for
            NULL; a list, tuple or set of values; or a mapping of ``<``, ``<=``, ``>``, ``>=`` to values.

        Returns
        -------
        int
            The number of the file of the log.

        Raises
        ------
        InputError
            ``UNKNOWN_COLUMN``, ``DUPLICATE_COLUMN``, ``INVALID_VALUE``.
        NotSupportedError
            ``UNSUPPORTED_TYPE``: a column has no order.
        UsageError
            ``INVALID_ARGUMENT``: no column, or no such comparison.
        """
        given = [*(patterns or {}).items(), *columns.items()]
        return self.promise(pattern_of(given, self.stream.definition.columns))

    def promise(self, pattern: Pattern) -> int:
        """Promise to insert no row that matches a pattern, as :meth:`punctuate`.

        One that has all rowtimes up to an instant, and anything else, is the bound at that instant.
        """
        instant = self.stream.definition.bound_of(pattern)
        if instant is not None:
            return self._say(EntryKind.BOUND, instant)
        entry = said(self.stream.definition, EntryKind.PATTERN, self.name, pattern=pattern.to_json())
        return self._attached(lambda: self._logged(self._timed(entry))[0])

    def finish(self) -> int:
        """Promise to insert no row at all: as far as this producer goes, the stream is complete."""
        return self._say(EntryKind.BOUND, FOREVER)

    def idle(self) -> int:
        """Hold the stream back no longer, until the next insert or bound; 0 if it does not do so anyhow."""
        if self._is_attached and self._is_certain and not self._is_open():
            return 0
        return self._say(EntryKind.IDLE, 0)

    def close(self) -> None:
        """Leave the stream; doing so twice does nothing."""
        self._leave(EntryKind.CLOSE)

    def leave(self) -> None:
        """Leave the stream as one who may come back: idle, with what it has promised."""
        self._leave(EntryKind.IDLE)

    def _say(self, kind: EntryKind, tick: int) -> int:
        entry = said(self.stream.definition, kind, self.name, tick)
        return self._attached(lambda: self._logged(self._timed(entry))[0])

    def _timed(self, entries: pa.Table) -> pa.Table:
        """The entries, of a machine whose clock is behind with the time that the log had reached."""
        place, ptime = CONTROL.get_field_index(PTIME), entries.column(PTIME).to_numpy()
        self._wrote = int(ptime.max(initial=self._wrote))
        told = pa.array(np.maximum(ptime, self._position.ptime))
        return entries.set_column(place, CONTROL.field(place), told)

    def _tick(self, instant: object, *, strict: bool) -> int:
        return min(self.stream.definition.rowtime.tick(instant, self._zone) + strict, FOREVER)

    def _refuse_late(self, ticks: Ints, entries: pa.Table) -> None:
        decided, shown = self._decided(entries), self.stream.definition.rowtime.shown
        ahead = np.flatnonzero(decided.decision[: len(ticks)] == Decision.QUARANTINED)
        if len(ahead):
            row = int(ahead[0])
            raise InputError(
                f"{len(ahead)} of {len(ticks)} rows are too far ahead of their processing time: the first, "
                f"row {row}, has rowtime {shown(int(ticks[row]))}, and may not be after "
                f"{shown(int(decided.violated[row]))}",
                condition="LATE_ROWS",
                hint="nothing was inserted; leave them out, or keep them in the log with late='keep'",
            )
        late = np.flatnonzero(np.isin(decided.decision[: len(ticks)], (Decision.LATE, Decision.REJECTED)))
        if len(late):
            row = int(late[0])
            raise InputError(
                f"{len(late)} of {len(ticks)} rows are below the bound of producer {self.name}: the first, "
                f"row {row}, has rowtime {shown(int(ticks[row]))}, the bound is "
                f"{shown(int(decided.violated[row]))}",
                condition="LATE_ROWS",
                hint="nothing was inserted; leave them out, or keep them in the log with late='keep'",
            )

    # -- the log and the lease -----------------------------------------------------------------------

    def _attached(self, attempt: Callable[[], T]) -> T:
        """Do something as the holder of the lease; again, if the lease was lost before it was in the log."""
        if os.getpid() != self._process:
            raise UsageError(
                f"producer {self.name} is process {self._process}, of which this one is a copy",
                condition="PRODUCER_TAKEN",
                sqlstate="55006",
                hint="attach a producer of another name in this process",
            )
        with self._lock:
            if is_ahead(self._wrote):  # this machine's clock has been set back: read again what holds
                self._position, self._wrote, self._is_certain = self.stream.position(), 0, False
            while True:
                if not self._is_attached:
                    raise UsageError(
                        f"producer {self.name} has left the stream",
                        condition="PRODUCER_CLOSED",
                        hint="attach it anew with stream.producer",
                    )
                if not self._lease.is_held():
                    self._lease = self._acquired()
                elif not (self._is_certain and self._is_open()):
                    self._open(self._lease)
                with contextlib.suppress(_FencedError):
                    return attempt()

    def _acquired(self, wait: float = 0.0) -> Lease:
        """A lease under which the producer is open."""
        stream = self.stream
        while True:
            above = self._position.writers.get(self.name, (0, 0))[0]
            self._place = stream.log.end(self._place)
            stream.verify(last(stream.leases, self.name))
            lease = acquire(
                stream.leases,
                stream.log.pending,
                self.name,
                self._seconds,
                self._place,
                wait=wait,
                above=above,
            )
            try:
                if self._open(lease):
                    return lease
            except BaseException:
                lease.abandon()
                raise

    def _open(self, lease: Lease) -> bool:
        """Log that it is open, and read up to there; whether it is, and no other has taken the lease.

        From there on nobody else's entries change what becomes of its own.
        """
        self._is_certain = False
        entry = self._timed(said(self.stream.definition, EntryKind.OPEN, self.name))
        self._place = self.stream.log.append(under(entry, lease), self._place)
        self.stream.log.settle()
        self._read(self._place.number)
        self._is_certain = self._position.writers[self.name][0] == lease.generation
        return self._is_certain

    def _is_open(self) -> bool:
        known = self._own.producers.get(self.name)
        return known is not None and known.is_open

    def _read(self, number: int) -> Bytes | None:
        """Read up to a file, and take over what the log says; what became of the last file's entries."""
        decision = None
        while self._position.number < number:
            batch, self._position = self.stream.advanced(self._position, self._position.number + 1)
            decision = batch.decision
        self._last = self._position.writers.get(self.name, (0, 0))[1]
        known = self._position.clock.producers.get(self.name)
        patterns = self._position.clock.patterns.get(self.name)
        self._own = ClockState(
            started=True,
            producers={} if known is None else {self.name: known},
            patterns={} if patterns is None else {self.name: patterns},
        )
        return decision

    def _decided(self, entries: pa.Table) -> Decided:
        rows = entries.select(self.stream.definition.columns.names)
        return advance(self._own, self.stream.definition.ordering, Entries.of_table(entries, rows))

    def _fall_idle(self) -> bool:
        """Be idle, if the stream's time for that is over; whether it is idle for that."""
        after = self.stream.definition.idle
        # whoever has the lock says something, or leaves and waits for the heart, which must not wait for it
        if after is None or not self._lock.acquire(blocking=False):
            return False
        try:
            return time.monotonic() - self._said >= after and self._is_attached and self.idle() > 0
        finally:
            self._lock.release()

    def _logged(self, entries: pa.Table) -> tuple[int, Bytes]:
        """Add entries to the log: their number, and what became of them."""
        self._said = time.monotonic()
        decided = self._decided(entries)
        self._is_certain = False
        self._place = self.stream.log.append(under(entries, self._lease), self._place)
        number, decision = self._place.number, decided.decision
        if self._lease.is_held():
            self._own = decided.state
            self._tell_ahead()
            self._last = max(self._last, pc.max(entries.column(SEQUENCE)).as_py() or 0)
            self._is_certain = True
        else:
            # another has taken the lease, before or after: the log knows
            found = self._read(number)
            assert found is not None
            if (found == Decision.FENCED).any():
                raise _FencedError
            decision = found
        self.stream.log.settle()
        return number, decision

    def _tell_ahead(self) -> None:
        """Warn, once, where what it has inserted makes its later rows late."""
        if self._has_told or self.stream.definition.ordering.future is not None:
            return
        name, rowtime = str(self.stream.folder), self.stream.definition.rowtime
        reached = max(self._wrote, self._position.ptime)
        told = told_ahead(name, self._own, reached, rowtime.nanoseconds, rowtime.shown)
        if told is not None:
            self._has_told = True
            warnings.warn(told, RuntimeWarning, stacklevel=2)

    def _leave(self, kind: EntryKind) -> None:
        if os.getpid() != self._process:
            return
        with self._lock:
            if not self._is_attached:
                return
            self._is_attached = False
            self._heart.stop()
            if self._lease.is_held():
                try:
                    entry = under(said(self.stream.definition, kind, self.name), self._lease)
                    self.stream.log.append(entry, self._place)
                    self.stream.log.settle()
                except BaseException:
                    self._lease.abandon()
                    raise
                self._lease.release()


class _FencedError(Exception):
    """The lease was lost before the entries were in the log."""


class _Heart:
    """Renews a producer's lease, and looks after those of others."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lease of {producer.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Beat no more."""
        self._stopped.set()
        self._thread.join()

    def _beat(self) -> None:
        idle = self._producer.stream.definition.idle
        between = min(each for each in (self._producer._seconds, idle) if each is not None) / 3
        while not self._stopped.wait(between):
            # whatever is wrong with the folder, the next insert meets it too and says so
            with contextlib.suppress(OSError, WindrowError):
                lease = self._producer._lease
                if lease.is_held():
                    lease.renew()
                self._producer._fall_idle()
                self._producer.stream.expire()


def said(
    definition: Definition, kind: EntryKind, producer: str, at: int = 0, pattern: str | None = None
) -> pa.Table:
    """An entry without a row."""
    columns = definition.columns.empty_table()
    nothing = pa.table([pa.nulls(1, field.type) for field in columns.schema], schema=columns.schema)
    entry = _entries(kind, producer, np.array([at]), pa.nulls(1, pa.int64()), nothing)
    place = CONTROL.get_field_index(PATTERN)
    return entry.set_column(place, CONTROL.field(place), pa.array([pattern], pa.string()))


def _rows(producer: str, ticks: Ints, numbers: Ints, rows: pa.Table) -> pa.Table:
    return _entries(EntryKind.ROW, producer, ticks, pa.array(numbers, pa.int64()), rows)


def _entries(kind: EntryKind, producer: str, at: Ints, sequence: pa.Array, rows: pa.Table) -> pa.Table:
    count = len(at)
    has_time = kind in (EntryKind.ROW, EntryKind.BOUND, EntryKind.WATERMARK)
    control = {
        KIND: pa.array(np.full(count, kind, np.int8)),
        PRODUCER: pa.repeat(producer, count),
        GENERATION: pa.array(np.zeros(count, np.int64)),
        SEQUENCE: sequence,
        PTIME: pa.array(np.full(count, time.time_ns() // 1000)),
        AT: pa.array(at, pa.int64()) if has_time else pa.nulls(count, pa.int64()),
        PATTERN: pa.nulls(count, pa.string()),
    }
    schema = pa.schema([*CONTROL, *rows.schema])
    return pa.table([*control.values(), *rows.columns], schema=schema)


def under(entries: pa.Table, lease: Lease) -> pa.Table:
    """Entries as they are written under a lease."""
    place = CONTROL.get_field_index(GENERATION)
    generation = pa.array(np.full(entries.num_rows, lease.generation))
    return entries.set_column(place, CONTROL.field(place), generation)


def _invalid(message: str, hint: str) -> UsageError:
    return UsageError(message, condition="INVALID_ARGUMENT", hint=hint)
