"""A named stream: a folder with a log that many processes write and read at the same time.

::

    stream.json     the definition
    log/            the entries, in numbered Parquet files
    leases/         which process is which producer
    positions/      saved positions, so that readers need not start at the first file
    pending/        files that are being written
    clocks/         files written under a wrong clock, and when they arrived; absent if there are none
    bases/          the position at which a trimmed log begins; absent in others
    readers/        up to which file live queries need nothing any more; absent before the first
"""

from __future__ import annotations

import datetime
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from windrow.errors import InputError, UsageError, WindrowError
from windrow.punctuations import Pattern
from windrow.punctuations.schemes import Scheme
from windrow.streams.admission.mistimed import FOLDER, Mistimed, is_ahead, mistimed
from windrow.streams.admission.watermark import Ordering, WatermarkState
from windrow.streams.chain import Place
from windrow.streams.definition import Definition
from windrow.streams.durable_files import claim, flush, tidy, writing, written
from windrow.streams.entries import PTIME, EntryKind
from windrow.streams.leases import Lease, expired, follow_up, latest, lost
from windrow.streams.log import Log
from windrow.streams.log_compaction import GRACE, Compaction, compact, drop_files
from windrow.streams.log_position import Batch, Position, follow
from windrow.streams.log_retention import (
    PARTS,
    ReadingQuery,
    drop_bases,
    forget,
    note,
    note_base,
    reader_of,
    readers,
    stored_base,
)
from windrow.streams.producer import LEASE_SECONDS, LateRows, Producer, control_entry, with_generation
from windrow.tracebacks import briefly

__all__ = ["NamedStream"]

_DEFINITION = "stream.json"
_PARTS = ("log", "leases", "positions", "pending")
_FILES_AT_ONCE = 1000
_BETWEEN_POSITIONS = 256  # files
_ABANDONED = 86_400.0  # seconds


@briefly
@dataclass(frozen=True)
class NamedStream:
    """A stream in a folder.

    Attributes
    ----------
    folder
        The folder.
    definition
        Its columns and order.
    """

    folder: Path
    definition: Definition

    @staticmethod
    def create(
        folder: str | Path,
        columns: pa.Schema,
        rowtime: str,
        *,
        unit: str | None = None,
        ordering: Ordering | None = None,
        idle: float | None = None,
        domain: Sequence[Pattern] = (),
        schemes: Sequence[Scheme] = (),
        future: float | None = None,
        retain: float | None = None,
    ) -> NamedStream:
        """Make a stream in a folder that is empty or does not exist.

        Parameters
        ----------
        folder
            On a local file system, or a shared one with hard links.
        columns
            The columns of a row.
        rowtime
            One of them: timestamp[us], with UTC or without a zone, date32, int64 or int32.
        unit
            Of integer rowtimes, from days to nanoseconds; milliseconds by default.
        ordering
            What a row implies for later rows of its producer: they are in order, by default.
        idle
            The number of seconds without an entry after which an attached producer is idle: the watermark
            ignores it. Never by default.
        domain
            Patterns that no row ever matches: for a column that is never negative, the negative numbers and
            NULL. Rows that match are rejected.
        schemes
            The punctuations that follow from the rows that a producer inserts.
        future
            Rows and bounds more than so many seconds ahead of the time at which they are inserted are
            quarantined: they are late rows, and do not advance the watermark. None are by default.
        retain
            For how many seconds entries stay in the log at least. Producers delete older ones as :meth:`trim`
            does. Entries stay for ever by default.

        Raises
        ------
        WindrowError
            ``STREAM_ALREADY_EXISTS``, ``FOLDER_NOT_EMPTY``, ``STREAM_NOT_WRITTEN``, ``DISK_FULL``,
            ``INVALID_ARGUMENT`` for a time of no length, and
            those of :meth:`Definition.of <windrow.streams.definition.Definition.of>`.
        """
        folder = Path(folder)
        for word, seconds in (("idle", idle), ("retain", retain)):
            if seconds is not None and seconds <= 0:
                raise UsageError(
                    f"{word}={seconds:g} is not greater than 0",
                    condition="INVALID_ARGUMENT",
                    hint="set a number of seconds greater than 0, or None for never",
                )
        definition = Definition.of(
            columns, rowtime, unit, ordering or Ordering.ordered(), idle, domain, schemes, future, retain
        )
        with writing(folder, "stream"):
            folder.mkdir(parents=True, exist_ok=True)
            known = {*_PARTS, *PARTS, FOLDER, _DEFINITION}
            foreign = sorted(path.name for path in folder.iterdir() if path.name not in known)
            if foreign:
                raise UsageError(
                    f"folder {folder} contains {foreign[0]}, which does not belong to a stream",
                    condition="FOLDER_NOT_EMPTY",
                    hint="name an empty folder, or one that does not exist",
                )
            for part in _PARTS:
                (folder / part).mkdir(exist_ok=True)
            with written(folder / "pending", definition.to_json().encode()) as path:
                if not claim(path, folder / _DEFINITION):
                    raise UsageError(
                        f"folder {folder} already contains a stream",
                        condition="STREAM_ALREADY_EXISTS",
                        sqlstate="42710",
                        hint="open it with CREATE STREAM IF NOT EXISTS or NamedStream.open,"
                        " or name another folder",
                    )
            flush(folder)
            flush(folder.absolute().parent)
        return NamedStream(folder, definition)

    @staticmethod
    def open(folder: str | Path) -> NamedStream:
        """Open the stream in a folder.

        Raises
        ------
        InputError
            ``STREAM_NOT_FOUND``, ``STREAM_VERSION``, ``TORN_FILE``, ``FOREIGN_FILE``, ``MISSING_FILE``.
        """
        folder = Path(folder)
        path = folder / _DEFINITION
        try:
            text = path.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(
                f"folder {folder} contains no stream",
                condition="STREAM_NOT_FOUND",
                sqlstate="42704",
                hint="make a stream with CREATE STREAM or NamedStream.create",
            ) from None
        except UnicodeDecodeError:
            text = ""
        stream = NamedStream(folder, Definition.from_json(text, path))
        for part in _PARTS:
            if not (folder / part).is_dir():
                raise InputError(
                    f"folder {folder / part} is missing",
                    condition="MISSING_FILE",
                    hint="make an empty folder with this name: its content is not needed"
                    if part in ("positions", "pending")
                    else "restore it from a copy",
                )
        stream.log.check_numbers()
        return stream

    @property
    def log(self) -> Log:
        """The files of its entries."""
        return Log(self.folder, self.definition)

    @property
    def leases(self) -> Path:
        """The folder of the producers' leases."""
        return self.folder / "leases"

    def producer(
        self,
        name: str,
        *,
        late: LateRows = "keep",
        lease: float = LEASE_SECONDS,
        wait: float = 0.0,
        zone: datetime.tzinfo | None = None,
    ) -> Producer:
        """Attach a producer. The stream's watermark waits for its bound, until it is idle or closes.

        Parameters
        ----------
        name
            Its name, which one process at a time may use. A producer that restarts under its name goes on
            where it stopped.
        late
            What happens to rows below the producer's bound: ``"keep"`` writes them to the log, where readers
            find them as late rows; ``"error"`` refuses the insert.
        lease
            The number of seconds without a sign of life after which other processes may log it as idle.
        wait
            How many seconds to wait for the name, if another process uses it.
        zone
            The time zone of bounds and watermarks without a zone, if rowtimes have one; without it they are
            refused.

        Raises
        ------
        WindrowError
            ``PRODUCER_TAKEN``, ``INVALID_NAME``, ``DISK_FULL``, ``STREAM_NOT_WRITTEN``.
        """
        tidy(self.log.pending, before=time.time() - _ABANDONED)
        return Producer(self, name, late=late, seconds=lease, wait=wait, zone=zone)

    @property
    def start(self) -> Position:
        """The position before the first entry; in a trimmed log, before the first one that is left.

        Raises
        ------
        InputError
            ``TORN_FILE``, ``FOREIGN_FILE``: what says so is damaged.
        """
        base = stored_base(self.folder, self.definition.identity)
        shared = WatermarkState(shared=self.definition.domain)
        return Position(self.definition.identity, watermark=shared) if base is None else base

    def read(
        self, position: Position, files: int = _FILES_AT_ONCE, *, timed: bool = False
    ) -> tuple[Batch, Position]:
        """Read the entries after a position; return them and the position after them.

        Parameters
        ----------
        position
            Where the last call stopped; :attr:`start` for the first call.
        files
            How many files to read at most.
        timed
            Whether to report the processing times at which the stream's watermark advanced.

        Raises
        ------
        InputError
            ``TORN_FILE``, ``FOREIGN_FILE``, ``MISPLACED_FILE``, ``MISSING_FILE``, ``UNREADABLE_FILE``,
            ``STREAM_VERSION``; ``LOG_CHANGED``: the log has changed before the position.
        UsageError
            ``FOREIGN_POSITION``: the position belongs to another stream.
        """
        last = self.log.last(self._checked(position).number)
        return self.advanced(position, min(last, position.number + files), timed=timed)

    def advanced(self, position: Position, until: int, *, timed: bool = False) -> tuple[Batch, Position]:
        """Read up to a file that is known to be in the log."""
        read = [*self.log.after(position.place, until)]
        files, checksum = [entries for entries, _ in read], read[-1][1].checksum if read else None
        definition = self.definition
        return follow(position, definition.ordering, definition.stored, files, checksum, timed=timed)

    def position(self, number: int | None = None) -> Position:
        """The position after a file, by default the last one."""
        end = self.log.last() if number is None else number
        position = self._saved(end)
        if position.number > end:
            self.log.place(end)  # it says that the log was trimmed
        while position.number < end:
            _, position = self.advanced(position, min(end, position.number + _FILES_AT_ONCE))
        return position

    def expire(self) -> list[str]:
        """Log producers with an expired lease as idle; return their names.

        Attached producers do so from time to time; a reader that waits for rows may do it too.
        """
        found = []
        for lease in expired(self.leases):
            self.verify(lease)
            # readers would drop entries of a generation below the highest in the log
            known = max(lease.generation, self.position().writers.get(lease.producer, (0, 0))[0])
            if not lease.is_held():  # another process has logged it meanwhile
                continue
            end = self.log.end()
            following = follow_up(
                replace(lease, generation=known), self.log.pending, LEASE_SECONDS, end, is_logging=True
            )
            if following is None:
                continue
            self.log.append(
                with_generation(control_entry(self.definition, EntryKind.IDLE, lease.producer), following),
                end,
            )
            self.log.flush_files()
            following.release()
            found.append(lease.producer)
        return found

    def tick(self) -> int:
        """Log that processing time has advanced; return the number of the file.

        Later entries have later processing times, so results that are due before can be emitted although no
        producer writes.
        """
        place = self.log.append(control_entry(self.definition, EntryKind.TICK, ""))
        self.log.flush_files()
        return place.number

    def verify(self, lease: Lease) -> None:
        """Check that the log still has what it had when a lease was acquired.

        Raises
        ------
        InputError
            As :meth:`Log.verify <windrow.streams.log.Log.verify>`; ``FOREIGN_FILE``: not a lease.
        """
        place = lease.after()
        if place is not None and place.number >= self.log.base:
            self.log.verify(place)

    # -- retention -------------------------------------------------------------------------------------

    def trim(self, older_than: float | None = None) -> int:
        """Delete the oldest entries of the log; return the number of files that are deleted.

        An entry is deleted if it arrived more than some seconds ago, and all live queries that have read the
        stream no longer need it: see :meth:`readers`. Later readers begin after it, with the watermark and
        the punctuations that were in force then. Decisions about the remaining rows do not change.

        Parameters
        ----------
        older_than
            The number of seconds, by default the stream's `retain`.

        Raises
        ------
        UsageError
            ``INVALID_ARGUMENT``: there is no number of seconds, and the stream has none.
        WindrowError
            As :meth:`read`; ``TORN_FILE``: a file in ``readers`` is damaged; ``DISK_FULL``,
            ``STREAM_NOT_WRITTEN``.
        """
        age = self.definition.retain if older_than is None else older_than
        if age is None or age < 0:
            why = "the stream has no RETAIN" if age is None else f"older_than={age:g} is less than 0"
            raise UsageError(
                why,
                condition="INVALID_ARGUMENT",
                hint="pass the age in seconds from which entries are deleted: trim(older_than=7 * 86400)",
            )
        total = 0
        while found := self._trim_some(time.time_ns() // 1000 - round(age * 1e6)):
            total += found
        return total

    def retain(self) -> int:
        """Delete some of the entries older than the stream's `retain`; returns the number of files.

        Attached producers do so from time to time.
        """
        age = self.definition.retain
        return 0 if age is None else self._trim_some(time.time_ns() // 1000 - round(age * 1e6))

    def _trim_some(self, before: int) -> int:
        """Delete entries that arrived before a time, at most as many files as are read at once."""
        start = self.start
        needed = [reader.number for reader in self.readers() if not reader.is_gone]
        until = min(self.log.last(start.number), start.number + _FILES_AT_ONCE, *needed)
        if until <= start.number or self.advanced(start, start.number + 1)[1].ptime >= before:
            return 0
        batch, position = self.advanced(start, until)
        if position.ptime >= before:
            arrived = batch.entries.column(PTIME).to_numpy()
            until = int(batch.number[arrived < before].max())
            _, position = self.advanced(start, until)
        note_base(self.folder, self.log.pending, position)
        for reader in self.readers():
            if reader.is_gone:
                forget(self.folder, reader.name)
        self._drop_files()
        return until - start.number

    def compact(self, *, grace: float = GRACE) -> Compaction:
        """Merge small files of the log into larger ones: ten, a hundred or a thousand into one.

        Numbers of files, positions, entries and their order stay as they are, for readers and producers that
        run meanwhile, too. A merged file replaces at most 32 MiB, and at most a tenth of the stream's
        `retain`. The replaced files stay for a while; the next call, or a :meth:`trim` that deletes entries,
        deletes them.

        Parameters
        ----------
        grace
            For how many seconds replaced files stay, for other programs that have listed them.

        Returns
        -------
        Compaction
            The numbers of files that a reader of the whole log reads, `before` and `after`.

        Raises
        ------
        WindrowError
            As :meth:`read`; ``DISK_FULL``, ``STREAM_NOT_WRITTEN``, ``STREAM_NOT_FLUSHED``.
        """
        tidy(self.log.pending, before=time.time() - _ABANDONED)
        found = compact(self.log)
        self._drop_files(grace)
        return found

    def _drop_files(self, grace: float = GRACE) -> None:
        """Delete the files before the base, and replaced ones: the file of the base itself stays."""
        base = self.log.base
        drop_files(self.log, grace)
        for number in self._numbers_of_positions():
            if number < base:
                self._position_path(number).unlink(missing_ok=True)
        drop_bases(self.folder)

    def readers(self) -> list[ReadingQuery]:
        """The live queries that have read the stream: no entry that one of them needs is deleted.

        Raises
        ------
        InputError
            ``TORN_FILE``.
        """
        return readers(self.folder)

    def reader(self, name: str) -> ReadingQuery | None:
        """A live query by its name; None if it has recorded nothing, or its record is damaged."""
        return reader_of(self.folder, name)

    def forget(self, reader: str) -> bool:
        """Stop waiting for a live query, by its name in :meth:`readers`; returns whether it was known.

        If it needs entries that are then deleted, it ends with ``LOG_TRIMMED``.
        """
        return forget(self.folder, reader)

    def note_reader(self, name: str, number: int, checkpoint: Path, *, is_temporary: bool = False) -> None:
        """Record up to which file a live query needs nothing any more.

        Parameters
        ----------
        name
            The identity of its checkpoint.
        number
            The file.
        checkpoint, is_temporary
            The folder of its checkpoint, and whether that is deleted at its end: then it cannot go on.

        Raises
        ------
        ExecutionError
            ``DISK_FULL``, ``STREAM_NOT_WRITTEN``.
        """
        note(self.folder, self.log.pending, name, number, checkpoint, is_temporary=is_temporary)

    # -- problems --------------------------------------------------------------------------------------

    def check(self) -> list[WindrowError]:
        """Read the whole log; return the problems of its files, of saved positions and of leases."""
        problems = self.log.check()
        if problems:
            return problems
        found: list[WindrowError] = []
        for number in self._positions():
            position = self._saved_position(number)
            with _collected(found):
                self.log.verify(Place(number, None) if position is None else position.place)
        # before the leases are read: a producer that attaches meanwhile acquires its lease before it writes
        writers = {} if found else self.position().writers
        leases = latest(self.leases)
        for lease in leases.values():
            with _collected(found):
                self.verify(lease)
        for name, (known, _) in writers.items():
            if known > (leases[name].generation if name in leases else 0):
                found.append(lost(self.leases, name))
        return found

    def mistimed(self) -> list[Mistimed]:
        """The files whose writers' system clocks were more than a day ahead, as their first readers
        recorded.
        """
        return mistimed(self.folder)

    def save(self, position: Position) -> None:
        """Save a position, so that later readers need not start at the first file."""
        if position.number - self._saved(position.number).number < _BETWEEN_POSITIONS:
            return
        with writing(self.folder, "position"):
            text = position.to_json()
            content = f"{text}\n{zlib.crc32(text.encode())}\n"
            with written(self.log.pending, content.encode()) as path:
                claim(path, self._position_path(position.number))
            for old in self._positions()[2:]:
                self._position_path(old).unlink(missing_ok=True)

    def _checked(self, position: Position) -> Position:
        if position.identity != self.definition.identity:
            raise UsageError(
                f"the position at file {position.number} is in the log of another stream",
                condition="FOREIGN_POSITION",
                hint="use a position of this stream; if the stream was created again, begin at its start",
            )
        self.log.verify(position.place)
        return position

    def _positions(self) -> list[int]:
        base = self.log.base
        return [number for number in self._numbers_of_positions() if number >= base]

    def _numbers_of_positions(self) -> list[int]:
        names = (path.stem for path in (self.folder / "positions").glob("*.json"))
        return sorted((int(name) for name in names if name.isdigit()), reverse=True)

    def _position_path(self, number: int) -> Path:
        return self.folder / "positions" / f"{number:020d}.json"

    def _saved(self, until: int) -> Position:
        """The last saved position that is not after a file."""
        for number in self._positions():
            position = self._saved_position(number) if number <= until else None
            # a process whose clock was ahead saves wrong processing times
            if position is not None and not is_ahead(position.ptime):
                self.log.verify(position.place)
                return position
            if number > until:
                self.log.verify(Place(number, None))
        return self.start

    def _saved_position(self, number: int) -> Position | None:
        """A saved position; None if it is not of this stream: readers can do without it."""
        try:
            text, _, checksum = self._position_path(number).read_text(encoding="utf-8").partition("\n")
            if checksum and zlib.crc32(text.encode()) != int(checksum):  # earlier versions wrote none
                return None
            position = Position.from_json(text)
        except (OSError, ValueError, InputError):
            return None
        return position if position.identity == self.definition.identity else None


@contextmanager
def _collected(found: list[WindrowError]) -> Iterator[None]:
    """Collect an error once, and go on."""
    try:
        yield
    except InputError as error:
        if str(error) not in map(str, found):
            found.append(error)
