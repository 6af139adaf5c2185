"""The log of a stream on disk: Parquet files, numbered from 1 on.

A file contains the entries of one call of one producer; it is in the log completely or not at all. Its number
is claimed by a hard link after the previous file was seen, so numbers have no gaps and a file never changes.
Readers flush the folder before they return entries: what was read once survives a power failure.

The Parquet footer records the stream, the file's number, and the checksums of the file and of the previous
one. A reader thereby detects a file that was swapped, copied or replaced, and a log that was rolled back, at
the next file. Any Parquet reader can read the files.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import ExecutionError, InputError, WindrowError
from windrow.streams.admission.mistimed import when
from windrow.streams.chain import BLANK, START, FileDraft, Link, Place, is_whole, link_of
from windrow.streams.definition import Definition
from windrow.streams.durable_files import claim, flush, rewrite, writing, written
from windrow.streams.entries import GENERATION, PRODUCER, PTIME
from windrow.streams.log_retention import base_number

__all__ = ["Log"]

_NAME = re.compile(r"(?!0{20})(\d{20})\.parquet")
_PARQUET = b"PAR1"
_IDENTITY, _VERSION, _SEAL = b"windrow.stream", b"windrow.format", b"windrow.seal"
_UNCHAINED, _CHAINED = b"2", b"3"
"""Versions of the file format: files of the first do not record their place."""
_LENGTH = 8
"""Parquet ends with the length of its footer, in four bytes, and four letters."""


@dataclass(frozen=True)
class Log:
    """The numbered files of a stream."""

    folder: Path
    definition: Definition

    @property
    def files(self) -> Path:
        """The folder of the numbered files."""
        return self.folder / "log"

    @property
    def pending(self) -> Path:
        """The folder of files that are being written."""
        return self.folder / "pending"

    @property
    def base(self) -> int:
        """The last file that was dropped from the beginning of the log; 0 if none was."""
        return base_number(self.folder)

    def path(self, number: int) -> Path:
        """Where a file of the log is."""
        return self.files / f"{number:020d}.parquet"

    def append(self, entries: pa.Table, after: Place = START) -> Place:
        """Add entries of one producer; return the place after them.

        They are in the log when this returns, and durable when :meth:`flush` has returned after it.

        Parameters
        ----------
        entries
            A table with the columns of the definition.
        after
            A place that is known to be in the log.

        Raises
        ------
        ExecutionError
            ``DISK_FULL``, ``STREAM_NOT_WRITTEN``.
        InputError
            As :meth:`end`: nothing is added to a log that is damaged at its end.
        """
        draft = FileDraft(self._encoded(entries))
        end = self.end(after)
        with writing(self.folder, "entries"), written(self.pending, draft.whole(end)) as path:
            while not claim(path, self.path(end.number + 1)):
                end = self.end(end)
                rewrite(path, draft.start, draft.after(end)[0])
        return draft.after(end)[1]

    def end(self, after: Place = START) -> Place:
        """The last place in the log, from one on that is known to be in it.

        Raises
        ------
        InputError
            ``LOG_CHANGED``, ``MISSING_FILE``: the known place is gone, or a file is missing;
            ``TORN_FILE``, ``FOREIGN_FILE``, ``MISPLACED_FILE``, ``UNREADABLE_FILE``: about the last file.
        """
        self.verify(after)
        number = self._end(after.number)
        if self.path(number + 2).exists() and not self.path(number + 1).exists():
            raise self._missing(number + 1)
        return after if number == after.number and after.checksum is not None else self.place(number)

    def place(self, number: int) -> Place:
        """The place after a file; reads its end only.

        Raises
        ------
        InputError
            ``MISSING_FILE``, ``TORN_FILE``, ``FOREIGN_FILE``, ``MISPLACED_FILE``, ``UNREADABLE_FILE``.
        """
        return Place(number, self._link(number).checksum) if number else START

    def verify(self, place: Place) -> None:
        """Check that the log still has a place that was seen before.

        Raises
        ------
        InputError
            ``MISSING_FILE``, ``LOG_CHANGED``, and those of :meth:`place`.
        """
        self.same(place, self.place(place.number))

    def same(self, place: Place, found: Place) -> None:
        """Check that a file is the one that was seen at a place before.

        Raises
        ------
        InputError
            ``LOG_CHANGED``.
        """
        if place.checksum is not None and found != place:
            raise InputError(
                f"file {place.number} of the log has changed: {self.path(place.number)}",
                condition="LOG_CHANGED",
                hint="restore the log from a copy with the original file; a reader that has read up to it"
                " cannot resume with another",
            )

    def flush_files(self) -> None:
        """Flush the log to the disk.

        Raises
        ------
        ExecutionError
            ``STREAM_NOT_FLUSHED``.
        """
        try:
            flush(self.files)
        except OSError as error:
            raise ExecutionError(
                f"the entries are in the log, but {self.files} cannot be flushed: {error.strerror or error}",
                condition="STREAM_NOT_FLUSHED",
                hint="do not insert them again; check the disk, as a power failure may lose them",
            ) from error

    def last(self, after: int = 0) -> int:
        """The number of the last file; the log up to it is durable."""
        number = self._end(after)
        if number > after:
            self.flush_files()
        return number

    def after(self, place: Place, until: int) -> Iterator[tuple[pa.Table, Place]]:
        """The entries of the files after a place up to a number, each file with the place after it.

        Raises
        ------
        InputError
            As :meth:`read`; ``LOG_CHANGED``: a file does not follow the one before it.
        """
        is_chained = None
        for number in range(place.number + 1, until + 1):
            entries, link = self._file(number)
            if link.before is None and is_chained is None:
                is_chained = place.number > 0 and self._link(place.number).before is not None
            self._follow(place, link, number, is_chained=bool(is_chained))
            is_chained = link.before is not None
            place = Place(number, link.checksum)
            yield entries, place

    def read(self, number: int) -> pa.Table:
        """The entries of a file.

        Raises
        ------
        InputError
            ``TORN_FILE``, ``FOREIGN_FILE``, ``MISPLACED_FILE``, ``MISSING_FILE``, ``UNREADABLE_FILE``,
            ``STREAM_VERSION``.
        """
        return self._file(number)[0]

    def _in_time(self, number: int, entries: pa.Table) -> pa.Table:
        """The entries of a file, with their arrival time if their writer's clock was wrong."""
        ptimes = entries.column(PTIME).to_numpy()
        last = int(ptimes.max())
        arrival = when(self.folder, number, last)
        if arrival == last:
            return entries
        place = entries.schema.get_field_index(PTIME)
        return entries.set_column(place, entries.schema.field(place), pa.array(np.minimum(ptimes, arrival)))

    def check(self) -> list[WindrowError]:
        """Read all files; return their problems."""
        problems: list[WindrowError] = []
        numbers = []
        base = self.base
        for path in sorted(self.files.iterdir()):
            found = _NAME.fullmatch(path.name)
            if found is not None:
                numbers.append(int(found[1]))
            elif not path.name.startswith((".", "_")):
                problems.append(_foreign(path, "its name is not a number"))
        place: Place | None = None if base else START
        is_chained = False
        for number in range(max(base, 1), max(numbers, default=0) + 1):
            try:
                link = self._file(number)[1]
                if place is not None:
                    self._follow(place, link, number, is_chained=is_chained)
                place, is_chained = Place(number, link.checksum), link.before is not None
            except InputError as error:
                problems.append(error)
                place = None
        return problems

    def check_numbers(self) -> None:
        """Check that no number is missing.

        Raises
        ------
        InputError
            ``MISSING_FILE``.
        """
        numbers = {int(found[1]) for name in os.listdir(self.files) if (found := _NAME.fullmatch(name))}  # noqa: PTH208 - there may be millions
        base = self.base  # after the files are listed: files before it may be gone since
        first = max(base, 1)
        missing = (number for number in range(first, max(numbers, default=base) + 1) if number not in numbers)
        if (number := next(missing, None)) is not None:
            raise self._missing(number)

    def _end(self, after: int) -> int:
        """The last number from `after` on, found by galloping search."""
        after, stride = after or self.base, 1
        while self.path(after + stride).exists():
            after += stride
            stride *= 2
        while stride > 1:
            stride //= 2
            if self.path(after + stride).exists():
                after += stride
        return after

    def _follow(self, place: Place, link: Link, number: int, *, is_chained: bool) -> None:
        """Check that a file follows a place."""
        if link.before is None:
            if is_chained:
                raise _foreign(
                    self.path(number),
                    "an earlier version of Windrow wrote it, but a later one wrote the files before it",
                )
        elif place.checksum is not None and link.before != place.checksum:
            raise InputError(
                f"file {number} of the log does not follow file {number - 1}:"
                f" {self.path(number)}, {self.path(number - 1)}",
                condition="LOG_CHANGED",
                hint="restore all files of the log from one copy: these two do not belong together",
            )

    def _file(self, number: int) -> tuple[pa.Table, Link]:
        try:
            content = self.path(number).read_bytes()
        except OSError as error:
            raise self._unread(number, error) from error
        entries, link = self._decoded(content, number)
        return self._in_time(number, entries), link

    def _link(self, number: int) -> Link:
        """Read a file's link from its end; the checksum is not compared with the content."""
        path = self.path(number)
        try:
            with path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - _LENGTH, 0))
                length = file.read()
                footer = int.from_bytes(length[:4], "little")
                if not length.endswith(_PARQUET) or footer + _LENGTH > size:
                    raise _torn(path)
                file.seek(size - _LENGTH - footer)
                link = link_of(file.read(footer))
        except OSError as error:
            raise self._unread(number, error) from error
        if link is None:
            raise _foreign(path, "Windrow did not write it")
        return self._placed(link, number)

    def _placed(self, link: Link, number: int) -> Link:
        if link.number not in (None, number):
            raise InputError(
                f"file {number} of the log is a copy of file {link.number}: {self.path(number)}",
                condition="MISPLACED_FILE",
                hint="restore it from a copy of the log",
            )
        return link

    def _missing(self, number: int) -> InputError:
        base = self.base
        if number < base:
            return InputError(
                f"the log was trimmed: it begins after file {base}, but file {number} is needed",
                condition="LOG_TRIMMED",
                hint="start again: a reader at stream.start, a live query with another checkpoint, a session"
                " with session.stream(name, folder)",
            )
        return InputError(
            f"file {number} of the log is missing: {self.path(number)}",
            condition="MISSING_FILE",
            hint="restore it from a copy; Windrow deletes files only from the beginning of a log",
        )

    def _unread(self, number: int, error: OSError) -> InputError:
        if isinstance(error, FileNotFoundError):
            return self._missing(number)
        return InputError(
            f"cannot read {self.path(number)}: {error.strerror or error}",
            condition="UNREADABLE_FILE",
            hint="check the disk and the permissions of the file",
        )

    def _encoded(self, entries: pa.Table) -> bytes:
        sink = io.BytesIO()
        with pq.ParquetWriter(sink, self.definition.stored) as writer:
            writer.write_table(entries, row_group_size=max(entries.num_rows, 1))
            writer.add_key_value_metadata(
                {_IDENTITY: self.definition.identity, _VERSION: _CHAINED, _SEAL: BLANK}
            )
        return sink.getvalue()

    def _decoded(self, content: bytes, number: int) -> tuple[pa.Table, Link]:
        path = self.path(number)
        if not (content.startswith(_PARQUET) and content.endswith(_PARQUET)):
            raise _torn(path)
        link = link_of(content)
        if link is None:
            raise _foreign(path, "Windrow did not write it")
        if not is_whole(content):
            raise _torn(path)
        file = pq.ParquetFile(pa.BufferReader(content))
        metadata = file.metadata.metadata
        if metadata[_IDENTITY].decode() != self.definition.identity:
            raise _foreign(path, "it is of another stream")
        if metadata[_VERSION] != (_UNCHAINED if link.number is None else _CHAINED):
            version = metadata[_VERSION].decode()
            raise InputError(
                f"{path} has format {version}, but this version of Windrow reads format {_CHAINED.decode()}",
                condition="STREAM_VERSION",
                hint="use the version of Windrow that wrote it",
            )
        self._placed(link, number)
        table = file.read()
        if not table.schema.equals(self.definition.stored):
            raise _foreign(path, "its columns are not those of the stream")
        if not table.num_rows or any(len(table.column(name).unique()) > 1 for name in (PRODUCER, GENERATION)):
            raise _foreign(path, "its entries are not those of one producer")
        return table, link


def _torn(path: Path) -> InputError:
    return InputError(
        f"{path} is incomplete or damaged",
        condition="TORN_FILE",
        hint="restore it from a copy; the files before it can be read",
    )


def _foreign(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path} is not a file of this stream: {reason}",
        condition="FOREIGN_FILE",
        hint="move it out of the stream's folder",
    )
