"""The log of a stream on disk: Parquet files that are numbered from 1 on.

A file holds the entries of one call of one producer; it is in the log wholly or not at all. Its number is
claimed by a hard link after the file before it was seen, so that the numbers have no gaps and a number's
content never changes. Readers flush the folder before they hand out what they found: what was read once is
there after a power failure too.

Parquet's own footer says which stream a file is of, and has a checksum of the whole file. Any reader of
Parquet can read it.
"""

from __future__ import annotations

import io
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import ExecutionError, InputError, WindrowError
from windrow.streams.definition import FORMAT, Definition
from windrow.streams.entries import GENERATION, PRODUCER
from windrow.streams.files import claim, flush, writing, written

__all__ = ["Log"]

_NAME = re.compile(r"(?!0{20})(\d{20})\.parquet")
_PARQUET = b"PAR1"
_IDENTITY, _VERSION, _SEAL = b"windrow.stream", b"windrow.format", b"windrow.seal"
_MARK, _BLANK = b"windrow.crc32=", b"0" * 10


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

    def path(self, number: int) -> Path:
        """Where a file of the log is."""
        return self.files / f"{number:020d}.parquet"

    def append(self, entries: pa.Table, after: int = 0) -> int:
        """Add entries of one producer; their number.

        They are in the log when this returns, and stay when :meth:`settle` has returned after it.

        Parameters
        ----------
        entries
            A table with the columns of the definition.
        after
            A number that is known to be in the log.

        Raises
        ------
        ExecutionError
            ``DISK_FULL``, ``STREAM_NOT_WRITTEN``.
        """
        with writing(self.folder, "entries"), written(self.pending, self._encoded(entries)) as path:
            number = self._end(after) + 1
            while not claim(path, self.path(number)):
                number += 1
        return number

    def settle(self) -> None:
        """Return when all that is in the log is on the disk.

        Raises
        ------
        ExecutionError
            ``STREAM_NOT_FLUSHED``.
        """
        try:
            flush(self.files)
        except OSError as error:
            raise ExecutionError(
                f"entries are in the log, but {self.files} could not be flushed: {error.strerror or error}",
                condition="STREAM_NOT_FLUSHED",
                hint="they may be lost if the power fails; do not insert them again",
            ) from error

    def last(self, after: int = 0) -> int:
        """The number of the last file; all up to it stay, also after a power failure."""
        number = self._end(after)
        if number > after:
            self.settle()
        return number

    def read(self, number: int) -> pa.Table:
        """The entries of a file.

        Raises
        ------
        InputError
            ``TORN_FILE``, ``FOREIGN_FILE``, ``MISSING_FILE``, ``STREAM_VERSION``.
        """
        path = self.path(number)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise InputError(
                f"file {number} of the log is missing: {path}",
                condition="MISSING_FILE",
                hint="restore it from a copy; entries are never deleted",
            ) from None
        except OSError as error:
            raise InputError(
                f"{path} cannot be read: {error.strerror or error}",
                condition="UNREADABLE_FILE",
                hint="see to the disk and the rights of the file",
            ) from error
        return self._decoded(content, path)

    def check(self) -> list[WindrowError]:
        """Read all files; what is wrong with which."""
        problems: list[WindrowError] = []
        numbers = []
        for path in sorted(self.files.iterdir()):
            found = _NAME.fullmatch(path.name)
            if found is not None:
                numbers.append(int(found[1]))
            elif not path.name.startswith((".", "_")):
                problems.append(_foreign(path, "its name is no number of a log"))
        for number in range(1, max(numbers, default=0) + 1):
            try:
                self.read(number)
            except InputError as error:
                problems.append(error)
        return problems

    def check_numbers(self) -> None:
        """See that no file is missing before another.

        Raises
        ------
        InputError
            ``MISSING_FILE``.
        """
        numbers = {int(found[1]) for name in os.listdir(self.files) if (found := _NAME.fullmatch(name))}  # noqa: PTH208 - there may be millions
        if len(numbers) != max(numbers, default=0):
            self.read(next(number for number in range(1, max(numbers)) if number not in numbers))

    def _end(self, after: int) -> int:
        """The last number from `after` on: found by doubling steps, then by halving."""
        step = 1
        while self.path(after + step).exists():
            after += step
            step *= 2
        while step > 1:
            step //= 2
            if self.path(after + step).exists():
                after += step
        return after

    def _encoded(self, entries: pa.Table) -> bytes:
        sink = io.BytesIO()
        with pq.ParquetWriter(sink, self.definition.stored) as writer:
            writer.write_table(entries, row_group_size=max(entries.num_rows, 1))
            writer.add_key_value_metadata(
                {_IDENTITY: self.definition.identity, _VERSION: str(FORMAT), _SEAL: _MARK + _BLANK}
            )
        return _sealed(sink.getvalue())

    def _decoded(self, content: bytes, path: Path) -> pa.Table:
        if not (content.startswith(_PARQUET) and content.endswith(_PARQUET)):
            raise _torn(path)
        if _MARK not in content:
            raise _foreign(path, "Windrow did not write it")
        if _sealed(content) != content:
            raise _torn(path)
        file = pq.ParquetFile(pa.BufferReader(content))
        told = file.metadata.metadata
        if told[_IDENTITY].decode() != self.definition.identity:
            raise _foreign(path, "it is of another stream")
        if told[_VERSION] != str(FORMAT).encode():
            raise InputError(
                f"{path} has format {told[_VERSION].decode()}, this version of Windrow reads {FORMAT}",
                condition="STREAM_VERSION",
                hint="use the version of Windrow that wrote it",
            )
        table = file.read()
        if not table.schema.equals(self.definition.stored):
            raise _foreign(path, "its columns are not those of the stream")
        if not table.num_rows or any(len(table.column(name).unique()) > 1 for name in (PRODUCER, GENERATION)):
            raise _foreign(path, "its entries are not those of one producer")
        return table


def _sealed(content: bytes) -> bytes:
    """A file with the checksum of all its bytes, among which its own digits count as zeros.

    The mark's last place is in the footer: Parquet writes what users store before it.
    """
    place = content.rfind(_MARK) + len(_MARK)
    before, after = content[:place], content[place + len(_BLANK) :]
    return before + b"%010d" % zlib.crc32(before + _BLANK + after) + after


def _torn(path: Path) -> InputError:
    return InputError(
        f"{path} is not whole",
        condition="TORN_FILE",
        hint="restore it from a copy; the files before it can be read",
    )


def _foreign(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path} is no file of this stream: {reason}",
        condition="FOREIGN_FILE",
        hint="move it out of the stream's folder",
    )
