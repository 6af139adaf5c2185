"""A named stream: a folder with a log that many processes write and read at once.

::

    stream.json     what the stream is
    log/            the entries, in numbered Parquet files
    leases/         which process is which producer
    positions/      what reading up to a file told, so that not all is read again
    pending/        files that are being written
    clocks/         which files were written by a wrong clock, and when they came: there if one was
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
from windrow.streams.admission.clock import ClockState, Ordering
from windrow.streams.admission.mistimed import FOLDER, Mistimed, is_ahead, mistimed
from windrow.streams.chain import Place
from windrow.streams.definition import Definition
from windrow.streams.durable_files import claim, flush, tidy, writing, written
from windrow.streams.entries import EntryKind
from windrow.streams.leases import Lease, expired, follow_up, latest, lost
from windrow.streams.log import Log
from windrow.streams.log_position import Batch, Position, follow
from windrow.streams.producer import LEASE_SECONDS, LateRows, Producer, said, under
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
    ) -> NamedStream:
        """Make a stream in a folder that is not there yet, or empty.

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
            What a row says about the later ones of its producer: ordered by default.
        idle
            After so many seconds without saying anything, an attached producer is idle: it holds the others
            back no longer. Never by default.
        domain
            What no row matches from the first on: of a column that is never negative, the negative numbers,
            and NULL. Rows that do are rejected.
        schemes
            What a producer promises by the rows that it inserts, of those that it inserts after them.
        future
            Rows and bounds that are more than so many seconds ahead of the time at which they are inserted
            are quarantined: they are late rows, and move no clock. None are by default.

        Raises
        ------
        WindrowError
            ``STREAM_ALREADY_EXISTS``, ``FOLDER_NOT_EMPTY``, ``STREAM_NOT_WRITTEN``, ``DISK_FULL``,
            ``INVALID_ARGUMENT`` for a time of no length, and
            those of :meth:`Definition.of <windrow.streams.definition.Definition.of>`.
        """
        folder = Path(folder)
        if idle is not None and idle <= 0:
            raise UsageError(
                f"{idle:g} seconds is no time after which a producer is idle",
                condition="INVALID_ARGUMENT",
                hint="give a number of seconds greater than 0, or None for never",
            )
        definition = Definition.of(
            columns, rowtime, unit, ordering or Ordering.ordered(), idle, domain, schemes, future
        )
        with writing(folder, "stream"):
            folder.mkdir(parents=True, exist_ok=True)
            foreign = sorted(
                path.name for path in folder.iterdir() if path.name not in (*_PARTS, FOLDER, _DEFINITION)
            )
            if foreign:
                raise UsageError(
                    f"folder {folder} holds {foreign[0]}, which is no part of a stream",
                    condition="FOLDER_NOT_EMPTY",
                    hint="name an empty folder, or one that is to be made",
                )
            for part in _PARTS:
                (folder / part).mkdir(exist_ok=True)
            with written(folder / "pending", definition.to_json().encode()) as path:
                if not claim(path, folder / _DEFINITION):
                    raise UsageError(
                        f"there is a stream in {folder}",
                        condition="STREAM_ALREADY_EXISTS",
                        sqlstate="42710",
                        hint="open it, or name another folder",
                    )
            flush(folder)
            flush(folder.absolute().parent)
        return NamedStream(folder, definition)

    @staticmethod
    def open(folder: str | Path) -> NamedStream:
        """The stream in a folder.

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
                f"there is no stream in {folder}",
                condition="STREAM_NOT_FOUND",
                sqlstate="42704",
                hint="make one with CREATE STREAM, or NamedStream.create",
            ) from None
        except UnicodeDecodeError:
            text = ""
        stream = NamedStream(folder, Definition.from_json(text, path))
        for part in _PARTS:
            if not (folder / part).is_dir():
                raise InputError(
                    f"folder {folder / part} is missing",
                    condition="MISSING_FILE",
                    hint="make an empty folder of this name: nothing in it is needed"
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
        """Attach a producer: what it does not promise holds the stream back, until it is idle or closes.

        Parameters
        ----------
        name
            Its name: one process at a time has it. One that comes back under its name goes on where it was.
        late
            What becomes of rows below the producer's bound: ``"keep"`` them in the log, where readers find
            them as late rows, or refuse the insert with an ``"error"``.
        lease
            After how many seconds without a sign of life others may log that it is idle.
        wait
            For how many seconds to wait for the name, if another process has it.
        zone
            Of bounds and watermarks that are given without one, where rowtimes have a zone; without it they
            are refused.

        Raises
        ------
        WindrowError
            ``PRODUCER_TAKEN``, ``INVALID_NAME``, ``DISK_FULL``, ``STREAM_NOT_WRITTEN``.
        """
        tidy(self.log.pending, before=time.time() - _ABANDONED)
        return Producer(self, name, late=late, seconds=lease, wait=wait, zone=zone)

    @property
    def start(self) -> Position:
        """Before the first entry."""
        return Position(self.definition.identity, clock=ClockState(shared=self.definition.domain))

    def read(
        self, position: Position, files: int = _FILES_AT_ONCE, *, timed: bool = False
    ) -> tuple[Batch, Position]:
        """The entries after a position, and the position after them.

        Parameters
        ----------
        position
            Where the last call has stopped; :attr:`start` for the first.
        files
            How many files to read at most.
        timed
            Whether to find out at which processing times the stream's clock has moved.

        Raises
        ------
        InputError
            ``TORN_FILE``, ``FOREIGN_FILE``, ``MISPLACED_FILE``, ``MISSING_FILE``, ``UNREADABLE_FILE``,
            ``STREAM_VERSION``; ``LOG_CHANGED``: the log is not the one that was read up to the position.
        UsageError
            ``FOREIGN_POSITION``: it is a place in another stream's log.
        """
        last = self.log.last(self._checked(position).number)
        return self.advanced(position, min(last, position.number + files), timed=timed)

    def advanced(self, position: Position, until: int, *, timed: bool = False) -> tuple[Batch, Position]:
        """The same up to a file that is known to be in the log."""
        read = [*self.log.after(position.place, until)]
        files, checksum = [entries for entries, _ in read], read[-1][1].checksum if read else None
        definition = self.definition
        return follow(position, definition.ordering, definition.stored, files, checksum, timed=timed)

    def position(self, number: int | None = None) -> Position:
        """The position after a file, by default the last: what reading up to it would tell."""
        end = self.log.last() if number is None else number
        position = self._kept(end)
        while position.number < end:
            _, position = self.advanced(position, min(end, position.number + _FILES_AT_ONCE))
        return position

    def expire(self) -> list[str]:
        """Log producers as idle that have died; their names.

        Producers do so from time to time while they are attached; a reader that waits for rows may do it too.
        """
        found = []
        for lease in expired(self.leases):
            self.verify(lease)
            # entries under a generation that the log is past would be left out
            known = max(lease.generation, self.position().writers.get(lease.producer, (0, 0))[0])
            if not lease.is_held():  # the log knows a later one because another has logged it
                continue
            end = self.log.end()
            following = follow_up(
                replace(lease, generation=known), self.log.pending, LEASE_SECONDS, end, is_logging=True
            )
            if following is None:
                continue
            self.log.append(under(said(self.definition, EntryKind.IDLE, lease.producer), following), end)
            self.log.settle()
            following.release()
            found.append(lease.producer)
        return found

    def tick(self) -> int:
        """Log that time has passed; the number of the file.

        Entries after it have later processing times, so that what is due before can be given, also where no
        producer says anything.
        """
        place = self.log.append(said(self.definition, EntryKind.TICK, ""))
        self.log.settle()
        return place.number

    def verify(self, lease: Lease) -> None:
        """See that the log still has what it had when a lease was taken.

        Raises
        ------
        InputError
            As :meth:`Log.verify <windrow.streams.log.Log.verify>`; ``FOREIGN_FILE``: it is no lease.
        """
        place = lease.after()
        if place is not None:
            self.log.verify(place)

    def check(self) -> list[WindrowError]:
        """Read all of the log; what is wrong with its files, or with what else is known of them."""
        problems = self.log.check()
        if problems:
            return problems
        found: list[WindrowError] = []
        for number in self._positions():
            position = self._position_kept(number)
            with _collected(found):
                self.log.verify(Place(number, None) if position is None else position.place)
        # before the leases: producers that attach meanwhile have theirs before they write
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
        """The files whose writers' clocks were more than a day ahead, as their first readers found."""
        return mistimed(self.folder)

    def keep(self, position: Position) -> None:
        """Keep a position, so that those who come later need not read all of the log."""
        if position.number - self._kept(position.number).number < _BETWEEN_POSITIONS:
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
                f"file {position.number} is in the log of another stream",
                condition="FOREIGN_POSITION",
                hint="positions are for the stream that gave them; if it was made anew, begin at its start",
            )
        self.log.verify(position.place)
        return position

    def _positions(self) -> list[int]:
        names = (path.stem for path in (self.folder / "positions").glob("*.json"))
        return sorted((int(name) for name in names if name.isdigit()), reverse=True)

    def _position_path(self, number: int) -> Path:
        return self.folder / "positions" / f"{number:020d}.json"

    def _kept(self, until: int) -> Position:
        """The last position that was kept and is not after a file."""
        for number in self._positions():
            position = self._position_kept(number) if number <= until else None
            # one of a process whose clock was ahead tells times that nobody believes
            if position is not None and not is_ahead(position.ptime):
                self.log.verify(position.place)
                return position
            if number > until:
                self.log.verify(Place(number, None))
        return self.start

    def _position_kept(self, number: int) -> Position | None:
        """A position that was kept; None if it is none of this stream's: it only spares reading."""
        try:
            text, _, checksum = self._position_path(number).read_text(encoding="utf-8").partition("\n")
            if checksum and zlib.crc32(text.encode()) != int(checksum):  # those of before have none
                return None
            position = Position.from_json(text)
        except (OSError, ValueError, InputError):
            return None
        return position if position.identity == self.definition.identity else None


@contextmanager
def _collected(found: list[WindrowError]) -> Iterator[None]:
    """Go on where something is wrong, and remember it once."""
    try:
        yield
    except InputError as error:
        if str(error) not in map(str, found):
            found.append(error)
