"""The log of a stream on disk: Parquet files, numbered from 1 on.

A file contains the entries of one call of one producer; it is in the log completely or not at all. Its number
is claimed by a hard link after the previous file was seen, so numbers have no gaps and a file never changes.
A merged file may replace successive ones, under all of their numbers. Readers flush the folder before they
return entries: what was read once survives a power failure.

The Parquet footer records the stream, the file's number, and the checksums of the file and of the previous
one. A reader thereby detects a file that was swapped, copied or replaced, and a log that was rolled back, at
the next file. Any Parquet reader can read the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError, InputError, WindrowError
from windrow.streams.admission.mistimed import is_ahead, mistimed, when
from windrow.streams.chain import START, FileDraft, Link, Place
from windrow.streams.definition import Definition
from windrow.streams.durable_files import claim, flush, rewrite, writing, written
from windrow.streams.entries import PTIME
from windrow.streams.log_file import decoded, encoded, foreign, links_at_end
from windrow.streams.log_retention import base_number
from windrow.streams.log_spans import Span, listed, present, span_of, spans_with

__all__ = ["Log"]

_Parts = list[tuple[pa.Table, Link]]
_last_merged: dict[Path, tuple[tuple[int, int, int], _Parts]] = {}
"""The merged file that was read last, with its identity: a reader may stop in the middle of it."""


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
        draft = FileDraft(encoded(self.definition, entries))
        end = self.end(after)
        with writing(self.folder, "entries"), written(self.pending, draft.whole(end)) as path:
            while not self._claimed(path, draft.after(end)[1]):
                base = self.base
                end = self.end(end if end.number >= base else Place(base, None))
                rewrite(path, draft.start, draft.after(end)[0])
        return draft.after(end)[1]

    def _claimed(self, path: Path, place: Place) -> bool:
        """Link a file to its number; False if another file has it, or had it and is merged or deleted."""
        name = self.path(place.number)
        if not claim(path, name):
            return False
        merged = spans_with(place.number)[-2::-1]
        if place.number >= self.base and (self._first(merged) is None or self.place(place.number) == place):
            return True
        name.unlink(missing_ok=True)  # no reader reads it
        return False

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
        if self._has(number + 2) and not self._has(number + 1):
            raise self._missing(number + 1)
        return after if number == after.number and after.checksum is not None else self.place(number)

    def place(self, number: int) -> Place:
        """The place after a file; reads its end only.

        Raises
        ------
        InputError
            ``MISSING_FILE``, ``TORN_FILE``, ``FOREIGN_FILE``, ``MISPLACED_FILE``, ``UNREADABLE_FILE``.
        """
        return Place(number, self.link(number).checksum) if number else START

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
        for number, (entries, link) in enumerate(self._files(place.number + 1, until), place.number + 1):
            if link.before is None and is_chained is None:
                is_chained = place.number > 0 and self.link(place.number).before is not None
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
        ((entries, _),) = self._files(number, number)
        return entries

    def check(self) -> list[WindrowError]:
        """Read all files; return their problems."""
        problems: list[WindrowError] = []
        last = base = self.base
        for path in sorted(self.files.iterdir()):
            found = span_of(path.name)
            if found is not None:
                last = max(last, found.last)
            elif not path.name.startswith((".", "_")):
                problems.append(foreign(path, "its name is not a number"))
        place: Place | None = None if base else START
        is_chained = False
        for number in range(max(base, 1), last + 1):
            try:
                ((_, link),) = self._files(number, number)
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
        spans = present(listed(self.files))
        base = self.base  # after the files are listed: files before it may be gone since
        reached = max(base, 1) - 1
        for span in spans:
            if span.last > reached:
                self._check_between(reached, span.first)
                reached = span.last
        self._check_between(reached, base + 1)

    def _check_between(self, before: int, after: int) -> None:
        """Check that the log has what a list of its files does not: files may be merged meanwhile."""
        missing = (number for number in range(before + 1, after) if not self._has(number))
        if (number := next(missing, None)) is not None:
            raise self._missing(number)

    def _end(self, after: int) -> int:
        """The last number from `after` on, found by galloping search."""
        after, stride = after or self.base, 1
        while self._has(after + stride):
            after += stride
            stride *= 2
        while stride > 1:
            stride //= 2
            if self._has(after + stride):
                after += stride
        return after

    def _follow(self, place: Place, link: Link, number: int, *, is_chained: bool) -> None:
        """Check that a file follows a place."""
        if link.before is None:
            if is_chained:
                raise foreign(
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

    def _has(self, number: int) -> bool:
        """Whether the log has a file; a merged one is there before those that it replaces are deleted."""
        return self._first(spans_with(number)[::-1]) is not None

    def _first(self, spans: Sequence[Span]) -> Span | None:
        """The first of some files that is there."""
        folder = str(self.files)
        return next((span for span in spans if os.path.exists(f"{folder}/{span.name}")), None)  # noqa: PTH110 - for each file of a log

    def _open(self, number: int) -> tuple[Span, BinaryIO]:
        """The file with a number's entries: the longest merged one."""
        *merged, own = spans_with(number)
        for span in (self._first(merged) or own, own, *reversed(merged)):  # it may be merged meanwhile
            with suppress(FileNotFoundError):
                return span, (self.files / span.name).open("rb")
        raise self._missing(number)

    def _files(self, first: int, last: int) -> Iterator[tuple[pa.Table, Link]]:
        """The entries and links of the files from one number to another."""
        while first <= last:
            span, parts = self._decoded(first)
            yield from self._in_time(first, parts[first - span.first : last - span.first + 1])
            first = span.last + 1

    def _decoded(self, number: int) -> tuple[Span, _Parts]:
        """The file with a number's entries, and its content."""
        try:
            span, file = self._open(number)
            path = self.files / span.name
            with file:
                status = os.fstat(file.fileno())
                identity = status.st_ino, status.st_size, status.st_mtime_ns
                known, parts = _last_merged.get(path, (None, []))
                if known == identity:
                    return span, parts
                content = file.read()
        except OSError as error:
            raise self._unread(number, error) from error
        parts = decoded(self.definition, content, path, span)
        if span.is_merged:
            _last_merged.clear()
            _last_merged[path] = identity, parts
        return span, parts

    def _in_time(self, first: int, parts: _Parts) -> _Parts:
        """Successive files with their arrival times, if their writers' clocks were wrong."""
        lasts = [int(entries.column(PTIME).to_numpy().max()) for entries, _ in parts]
        if len(parts) > 1 and not is_ahead(max(lasts)) and not mistimed(self.folder, first - 1):
            return parts
        found = []
        for number, last, (entries, link) in zip(count(first), lasts, parts):
            arrival = when(self.folder, number, last)
            if arrival != last:
                place = entries.schema.get_field_index(PTIME)
                ptimes = pa.array(np.minimum(entries.column(PTIME).to_numpy(), arrival))
                entries = entries.set_column(place, entries.schema.field(place), ptimes)
            found.append((entries, link))
        return found

    def link(self, number: int) -> Link:
        """Read a file's link from its end; the checksum is not compared with the content.

        Raises
        ------
        InputError
            As :meth:`place`.
        """
        try:
            span, file = self._open(number)
            with file:
                return links_at_end(file, self.files / span.name, span)[number - span.first]
        except OSError as error:
            raise self._unread(number, error) from error

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
            hint="restore it from a copy of the log: Windrow has not deleted it",
        )

    def _unread(self, number: int, error: OSError) -> InputError:
        return InputError(
            f"cannot read {error.filename or self.path(number)}: {error.strerror or error}",
            condition="UNREADABLE_FILE",
            hint="check the disk and the permissions of the file",
        )
