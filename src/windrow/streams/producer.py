"""Producers: they insert rows into a named stream, with bounds and punctuations for later rows."""

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
from typing import Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import ExecutionError, InputError, UsageError, WindrowError
from windrow.punctuations import Cover, Pattern, lines_of
from windrow.punctuations.schemes import schemes
from windrow.streams.admission.ahead import ahead_warning
from windrow.streams.admission.batch_watermark import advance
from windrow.streams.admission.mistimed import is_ahead
from windrow.streams.admission.watermark import Decided, WatermarkState
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

__all__ = ["LEASE_SECONDS", "LateRows", "Producer", "Receipt", "control_entry", "with_generation"]

LateRows = Literal["keep", "error"]
LEASE_SECONDS = 10.0
_BETWEEN_TRIMS = 60.0  # seconds

T = TypeVar("T")
Bytes = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The decisions about the rows of an insert.

    Attributes
    ----------
    number
        The file of the log with the rows; 0 if no file was written.
    sequence
        The sequence number of the first row.
    admitted, late, rejected
        How many rows are admitted, are below an estimate of the producer, and are below its bound. The last
        two are in the log as late rows.
    duplicates
        How many rows were already in the log, by their sequence numbers.
    quarantined
        How many rows are too far ahead of their processing time, in a stream with a ``future``; they are in
        the log as late rows too.
    """

    number: int
    sequence: int
    admitted: int
    late: int = 0
    rejected: int = 0
    duplicates: int = 0
    quarantined: int = 0


class Written(NamedTuple):
    """The file of the log with a bound or a punctuation, and whether it is too far ahead of its time."""

    number: int
    is_quarantined: bool


@briefly
class Producer:
    """A producer that is attached to a stream. Made by :meth:`NamedStream.producer`.

    As a context manager, it closes at the end, or is idle after an exception: its bound and punctuations then
    stay in force. A method returns when its entries are on the disk. Threads may share a producer.
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
            raise _invalid(f"late={late!r} is not supported", "use 'keep' or 'error'")
        if seconds <= 0:
            raise _invalid(
                f"lease={seconds:g} is not greater than 0", "set a number of seconds greater than 0"
            )
        self.stream, self.name = stream, name
        self._late, self._seconds, self._zone = late, seconds, zone
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._position = stream.position()
        self._place = self._position.place  # known to be in the log
        self._last = 0  # the sequence number of the last row in the log
        # of this producer alone: while it is open, it depends on no other
        self._own = WatermarkState(started=True)
        self._is_attached = True
        self._is_certain = False  # whether the outcome of all attempts is known
        self._wrote_at = time.monotonic()  # when it last wrote an entry
        self._wrote = 0  # the same by this machine's wall clock
        self._has_warned = False  # whether it has warned of rows ahead of their processing time
        self._lease = self._acquired(wait)
        with contextlib.suppress(ExecutionError):  # a saved position is an optimization only
            stream.save(self._position)
        self._heart = _Heart(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(EntryKind.CLOSE if kind is None else EntryKind.IDLE)

    @property
    def next_sequence(self) -> int:
        """The sequence number of the next row: one more than the last in the log."""
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
            Mappings of columns to values (or one), a pandas DataFrame, or an Arrow table. A missing column
            is NULL.
        sequence
            The sequence number of the first row, by default :attr:`next_sequence`. Rows whose numbers are
            already in the log are skipped. A producer that numbers its rows itself, for example by the lines
            of a file, may therefore retry an insert whose outcome it does not know.
        bound, strict
            Set the producer's bound after these rows, as :meth:`bound` does.

        Raises
        ------
        InputError
            ``UNKNOWN_COLUMN``, ``INVALID_VALUE``, ``NULL_ROWTIME``, ``ROWTIME_OVERFLOW``; ``LATE_ROWS``
            if late rows are an error. Nothing is inserted.
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
        statements = (
            []
            if bound is None
            else [control_entry(definition, EntryKind.BOUND, self.name, self._tick(bound, strict=strict))]
        )
        if sequence is not None and sequence < 1:
            raise _invalid(f"sequence={sequence} is not greater than 0", "number rows from 1")

        def attempt() -> Receipt:
            first = self.next_sequence if sequence is None else sequence
            known = min(max(self.next_sequence - first, 0), table.num_rows)
            numbers = np.arange(first, first + table.num_rows)[known:]
            rows = _rows(self.name, ticks[known:], numbers, table.slice(known))
            entries = self._timed(pa.concat_tables([rows, *statements]))
            if not entries.num_rows:
                return Receipt(0, first, 0, duplicates=known)
            if self._late == "error":
                self._refuse_late(ticks[known:], entries)
            number, decision = self._logged(self._with_punctuations(entries))
            counts = np.bincount(decision[: len(numbers)], minlength=len(Decision)).tolist()
            refused = counts[Decision.LATE], counts[Decision.REJECTED]
            ahead = counts[Decision.QUARANTINED]
            return Receipt(number, first, counts[Decision.ADMITTED], *refused, known, ahead)

        return self._attached(attempt)

    def _with_punctuations(self, entries: pa.Table) -> pa.Table:
        """The entries, and after them the punctuations that schemes derive from admitted rows."""
        definition = self.stream.definition
        if not definition.schemes:
            return entries
        is_in = self._decided(entries).decision == Decision.ADMITTED
        is_in &= entries.column(KIND).to_numpy() == EntryKind.ROW
        rows = entries.filter(pa.array(is_in)).select(definition.columns.names)
        cover = Cover(lines_of(rows.schema), schemes(definition.schemes, rows))
        patterns = [Pattern.of_region(region, cover.lines).to_json() for region in cover]
        statements = [
            control_entry(definition, EntryKind.PATTERN, self.name, pattern=pattern) for pattern in patterns
        ]
        return pa.concat_tables([entries, *statements])

    def bound(self, instant: object, *, strict: bool = False) -> int:
        """Set the producer's bound: it inserts no row before an instant; nor, if strict, at it.

        Parameters
        ----------
        instant
            An int of the rowtime's unit (microseconds since the epoch for times, days for dates), a date, a
            datetime, or an ISO 8601 text of one. A datetime must have a zone if rowtimes have one; if a
            session has attached the producer, the session's zone is the default.
        strict
            Whether the bound includes the instant itself.

        Returns
        -------
        int
            The number of the file of the log.
        """
        return self.promise_bound(instant, strict=strict).number

    def promise_bound(self, instant: object, *, strict: bool = False) -> Written:
        """Set the bound as :meth:`bound` does; return also whether it is quarantined."""
        return self._say(EntryKind.BOUND, self._tick(instant, strict=strict))

    def watermark(self, instant: object, *, strict: bool = False) -> int:
        """Set an estimated bound: a row below it is late instead of rejected."""
        return self._say(EntryKind.WATERMARK, self._tick(instant, strict=strict)).number

    def punctuate(self, patterns: Mapping[str, object] | None = None, **columns: object) -> int:
        """Write a punctuation: the producer will insert no row that matches a pattern.

        Parameters
        ----------
        patterns, columns
            What the pattern matches in some columns; it matches anything in the others. A value; None for
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
        conditions = [*(patterns or {}).items(), *columns.items()]
        return self.promise(pattern_of(conditions, self.stream.definition.columns)).number

    def promise(self, pattern: Pattern) -> Written:
        """Write a punctuation as :meth:`punctuate` does; return also whether it is quarantined.

        A pattern of all rowtimes before an instant is the bound at that instant.
        """
        instant = self.stream.definition.bound_of(pattern)
        if instant is not None:
            return self._say(EntryKind.BOUND, instant)
        return self._written(
            control_entry(self.stream.definition, EntryKind.PATTERN, self.name, pattern=pattern.to_json())
        )

    def finish(self) -> int:
        """End the producer's input: it will insert no row at all."""
        return self._say(EntryKind.BOUND, FOREVER).number

    def idle(self) -> int:
        """Become idle: the watermark ignores the producer until its next entry; 0 if it is idle already."""
        if self._is_attached and self._is_certain and not self._is_open():
            return 0
        return self._say(EntryKind.IDLE, 0).number

    def close(self) -> None:
        """Leave the stream; a second call does nothing."""
        self._leave(EntryKind.CLOSE)

    def leave(self) -> None:
        """Leave the stream, to restart later: the producer is idle, its punctuations stay in force."""
        self._leave(EntryKind.IDLE)

    def _say(self, kind: EntryKind, tick: int) -> Written:
        return self._written(control_entry(self.stream.definition, kind, self.name, tick))

    def _written(self, entry: pa.Table) -> Written:
        number, decision = self._attached(lambda: self._logged(self._timed(entry)))
        return Written(number, bool(decision[0] == Decision.QUARANTINED))

    def _timed(self, entries: pa.Table) -> pa.Table:
        """The entries, with processing times that are not before those in the log."""
        place, ptime = CONTROL.get_field_index(PTIME), entries.column(PTIME).to_numpy()
        self._wrote = int(ptime.max(initial=self._wrote))
        times = pa.array(np.maximum(ptime, self._position.ptime))
        return entries.set_column(place, CONTROL.field(place), times)

    def _tick(self, instant: object, *, strict: bool) -> int:
        return min(self.stream.definition.rowtime.tick(instant, self._zone) + strict, FOREVER)

    def _refuse_late(self, ticks: Ints, entries: pa.Table) -> None:
        decided, formatted = self._decided(entries), self.stream.definition.rowtime.formatted
        ahead = np.flatnonzero(decided.decision[: len(ticks)] == Decision.QUARANTINED)
        if len(ahead):
            row = int(ahead[0])
            raise InputError(
                f"{len(ahead)} of {len(ticks)} rows are too far ahead of processing time: the first, "
                f"row {row}, has rowtime {formatted(int(ticks[row]))}, but the limit is "
                f"{formatted(int(decided.violated[row]))}",
                condition="LATE_ROWS",
                hint="leave them out, or write them to the log with late='keep'; nothing was inserted",
            )
        late = np.flatnonzero(np.isin(decided.decision[: len(ticks)], (Decision.LATE, Decision.REJECTED)))
        if len(late):
            row = int(late[0])
            raise InputError(
                f"{len(late)} of {len(ticks)} rows are below the bound of producer {self.name}: the first, "
                f"row {row}, has rowtime {formatted(int(ticks[row]))}, but the bound is "
                f"{formatted(int(decided.violated[row]))}",
                condition="LATE_ROWS",
                hint="leave them out, or write them to the log with late='keep'; nothing was inserted",
            )

    # -- the log and the lease -----------------------------------------------------------------------

    def _attached(self, attempt: Callable[[], T]) -> T:
        """Run an attempt under the lease; again, if the lease was lost before its entries were in the log."""
        if os.getpid() != self._process:
            raise UsageError(
                f"producer {self.name} belongs to process {self._process}, of which this process is a fork",
                condition="PRODUCER_TAKEN",
                sqlstate="55006",
                hint="attach a producer with another name in this process",
            )
        with self._lock:
            if is_ahead(self._wrote):  # this machine's clock was set back: read the state again
                self._position, self._wrote, self._is_certain = self.stream.position(), 0, False
            self._skip_deleted()
            while True:
                if not self._is_attached:
                    raise UsageError(
                        f"producer {self.name} is closed",
                        condition="PRODUCER_CLOSED",
                        hint="attach it again with stream.producer",
                    )
                if not self._lease.is_held():
                    self._lease = self._acquired()
                elif not (self._is_certain and self._is_open()):
                    self._open(self._lease)
                with contextlib.suppress(_FencedError):
                    return attempt()

    def _skip_deleted(self) -> None:
        """Continue after the deleted part of the log, if it was trimmed since this producer last wrote or
        read.
        """
        base = self.stream.log.base
        if base > min(self._place.number, self._position.number):
            start = self.stream.start
            self._place = max(self._place, start.place, key=lambda place: place.number)
            self._position = max(self._position, start, key=lambda position: position.number)

    def _acquired(self, wait: float = 0.0) -> Lease:
        """Acquire a lease and open the producer under it."""
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
        """Log that the producer opens, and read up to that entry; return False if the lease was lost.

        From there on, no other producer's entries affect how its own are judged.
        """
        self._is_certain = False
        entry = self._timed(control_entry(self.stream.definition, EntryKind.OPEN, self.name))
        self._place = self.stream.log.append(with_generation(entry, lease), self._place)
        self.stream.log.flush_files()
        self._read(self._place.number)
        self._is_certain = self._position.writers[self.name][0] == lease.generation
        return self._is_certain

    def _is_open(self) -> bool:
        known = self._own.producers.get(self.name)
        return known is not None and known.is_open

    def _read(self, number: int) -> Bytes | None:
        """Read up to a file and update the state; return the decisions about the last file's entries."""
        decision = None
        while self._position.number < number:
            batch, self._position = self.stream.advanced(self._position, self._position.number + 1)
            decision = batch.decision
        self._last = self._position.writers.get(self.name, (0, 0))[1]
        known = self._position.watermark.producers.get(self.name)
        patterns = self._position.watermark.patterns.get(self.name)
        self._own = WatermarkState(
            started=True,
            producers={} if known is None else {self.name: known},
            patterns={} if patterns is None else {self.name: patterns},
        )
        return decision

    def _decided(self, entries: pa.Table) -> Decided:
        rows = entries.select(self.stream.definition.columns.names)
        return advance(self._own, self.stream.definition.ordering, Entries.of_table(entries, rows))

    def _fall_idle(self) -> bool:
        """Become idle if the stream's idle time has passed; return whether it did."""
        after = self.stream.definition.idle
        # the holder of the lock is writing, or leaving and waiting for the heart, so the heart must not wait
        if after is None or not self._lock.acquire(blocking=False):
            return False
        try:
            return time.monotonic() - self._wrote_at >= after and self._is_attached and self.idle() > 0
        finally:
            self._lock.release()

    def _logged(self, entries: pa.Table) -> tuple[int, Bytes]:
        """Add entries to the log; return the number of their file, and the decisions about them."""
        self._wrote_at = time.monotonic()
        decided = self._decided(entries)
        self._is_certain = False
        self._place = self.stream.log.append(with_generation(entries, self._lease), self._place)
        number, decision = self._place.number, decided.decision
        if self._lease.is_held():
            self._own = decided.state
            self._warn_if_ahead()
            self._last = max(self._last, pc.max(entries.column(SEQUENCE)).as_py() or 0)
            self._is_certain = True
        else:
            # another process has acquired the lease, before or after the append: the log decides
            found = self._read(number)
            assert found is not None
            if (found == Decision.FENCED).any():
                raise _FencedError
            decision = found
        self.stream.log.flush_files()
        return number, decision

    def _warn_if_ahead(self) -> None:
        """Warn, once, if an inserted row is so far ahead that later rows are late."""
        if self._has_warned or self.stream.definition.ordering.future is not None:
            return
        name, rowtime = str(self.stream.folder), self.stream.definition.rowtime
        reached = max(self._wrote, self._position.ptime)
        warning = ahead_warning(name, self._own, reached, rowtime.nanoseconds, rowtime.formatted)
        if warning is not None:
            self._has_warned = True
            warnings.warn(warning, RuntimeWarning, stacklevel=2)

    def _leave(self, kind: EntryKind) -> None:
        if os.getpid() != self._process:
            return
        with self._lock:
            if not self._is_attached:
                return
            self._is_attached = False
            self._heart.stop()
            self._skip_deleted()
            if self._lease.is_held():
                try:
                    entry = with_generation(
                        control_entry(self.stream.definition, kind, self.name), self._lease
                    )
                    self.stream.log.append(entry, self._place)
                    self.stream.log.flush_files()
                except BaseException:
                    self._lease.abandon()
                    raise
                self._lease.release()


class _FencedError(Exception):
    """The lease was lost before the entries were in the log."""


class _Heart:
    """A thread that renews a producer's lease, logs producers with expired leases as idle, and deletes old
    entries.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lease of {producer.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join()

    def _beat(self) -> None:
        idle = self._producer.stream.definition.idle
        between = min(each for each in (self._producer._seconds, idle) if each is not None) / 3
        looked = 0.0
        while not self._stopped.wait(between):
            # a problem with the folder makes the next insert fail too, which reports it
            with contextlib.suppress(OSError, WindrowError):
                lease = self._producer._lease
                if lease.is_held():
                    lease.renew()
                self._producer._fall_idle()
                self._producer.stream.expire()
                if time.monotonic() - looked >= _BETWEEN_TRIMS and not self._producer.stream.retain():
                    looked = time.monotonic()


def control_entry(
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


def with_generation(entries: pa.Table, lease: Lease) -> pa.Table:
    """Entries with the generation of a lease."""
    place = CONTROL.get_field_index(GENERATION)
    generation = pa.array(np.full(entries.num_rows, lease.generation))
    return entries.set_column(place, CONTROL.field(place), generation)


def _invalid(message: str, hint: str) -> UsageError:
    return UsageError(message, condition="INVALID_ARGUMENT", hint=hint)
