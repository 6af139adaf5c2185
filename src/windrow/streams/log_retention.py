"""How far the log of a named stream has been trimmed, and which queries still read it.

A trimmed log begins after its *base*, the position after the last file that was dropped. The base is stored
before any file is deleted, so a process that is killed meanwhile leaves files that nobody needs, never a gap.
The last of these files stays: its checksum is what the next file names.

A live query records up to which file it needs nothing any more. No file after that is deleted.
"""

from __future__ import annotations

import json
import os
import socket
import time
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from windrow.errors import InputError
from windrow.streams.durable_files import claim, flush, writing, written
from windrow.streams.log_position import Position

__all__ = [
    "PARTS",
    "ReadingQuery",
    "base_number",
    "drop_bases",
    "forget",
    "note",
    "note_base",
    "reader_of",
    "readers",
    "stored_base",
]

_BASES, _READERS = "bases", "readers"
_DAMAGED = (OSError, ValueError, TypeError)
"""The errors of reading a missing or damaged file."""
PARTS = (_BASES, _READERS)
"""The folders beside the log, which streams that were never trimmed or read live do not have."""


@dataclass(frozen=True, slots=True)
class ReadingQuery:
    """A live query that reads the log.

    Attributes
    ----------
    name
        The identity of its checkpoint.
    number
        The file up to which it needs nothing any more.
    checkpoint
        The folder of its checkpoint.
    host
        The machine on which it ran last.
    seen
        When it said so, in seconds since the epoch.
    is_temporary
        Whether the checkpoint was made for one run, and is deleted at its end.
    """

    name: str
    number: int
    checkpoint: str
    host: str
    seen: float
    is_temporary: bool

    @property
    def is_gone(self) -> bool:
        """Whether it cannot continue, because its checkpoint was temporary, and its run has ended."""
        is_here = self.is_temporary and self.host == socket.gethostname()
        return is_here and not Path(self.checkpoint).exists()


def base_number(stream: Path) -> int:
    """The last file that was dropped; 0 if none was."""
    try:
        names = os.listdir(stream / _BASES)  # noqa: PTH208 - most streams do not have it
    except FileNotFoundError:
        return 0
    return max((int(name.removesuffix(".json")) for name in names if name.endswith(".json")), default=0)


def stored_base(stream: Path, identity: str) -> Position | None:
    """The position at which a trimmed log begins; None for a log that was not trimmed.

    Raises
    ------
    InputError
        ``TORN_FILE``, ``FOREIGN_FILE``.
    """
    number = base_number(stream)
    if not number:
        return None
    path = _base(stream, number)
    try:
        text, _, checksum = path.read_text(encoding="utf-8").partition("\n")
        is_whole = zlib.crc32(text.encode()) == int(checksum)
    except FileNotFoundError:  # the log was trimmed further
        return stored_base(stream, identity)
    except (OSError, ValueError):
        is_whole = False
    if not is_whole:
        raise InputError(
            f"{path} is damaged: it records what was before the first file of the log",
            condition="TORN_FILE",
            hint="restore it from a copy of the stream's folder",
        )
    position = Position.from_json(text)
    if (position.identity, position.number) != (identity, number):
        raise InputError(
            f"{path} belongs to another stream",
            condition="FOREIGN_FILE",
            hint="restore the stream's whole folder from one copy",
        )
    return position


def note_base(stream: Path, pending: Path, position: Position) -> None:
    """Make the log begin after a position, from now on and durably.

    Raises
    ------
    ExecutionError
        ``DISK_FULL``, ``STREAM_NOT_WRITTEN``.
    """
    text = position.to_json()
    content = f"{text}\n{zlib.crc32(text.encode())}\n"
    with writing(stream, "the first position of the log"):
        (stream / _BASES).mkdir(exist_ok=True)
        with written(pending, content.encode()) as path:
            claim(path, _base(stream, position.number))
        flush(stream / _BASES)
        flush(stream)


def drop_bases(stream: Path) -> None:
    """Delete the bases before the last."""
    last = base_number(stream)
    for path in (stream / _BASES).glob("*.json"):
        if int(path.stem) < last:
            path.unlink(missing_ok=True)


def note(
    stream: Path, pending: Path, name: str, number: int, checkpoint: Path, *, is_temporary: bool
) -> None:
    """Record up to which file a reader needs nothing any more.

    Raises
    ------
    ExecutionError
        ``DISK_FULL``, ``STREAM_NOT_WRITTEN``.
    """
    reader = ReadingQuery(name, number, str(checkpoint), socket.gethostname(), time.time(), is_temporary)
    with writing(stream, "how far a query has read"):
        (stream / _READERS).mkdir(exist_ok=True)
        with written(pending, json.dumps(asdict(reader)).encode()) as path:
            path.replace(_reader(stream, name))


def readers(stream: Path) -> list[ReadingQuery]:
    """The live queries that have read the log.

    Raises
    ------
    InputError
        ``TORN_FILE``.
    """
    found = []
    for path in sorted((stream / _READERS).glob("*.json")):
        try:
            found.append(_read(path))
        except FileNotFoundError:
            continue
        except _DAMAGED:
            raise InputError(
                f"{path} is damaged: it records how far a live query has read",
                condition="TORN_FILE",
                hint="restart that query, which writes the file again; or delete the file, if the query"
                " has ended",
            ) from None
    return found


def reader_of(stream: Path, name: str) -> ReadingQuery | None:
    """A reader by its name; None if it has recorded nothing, or its record is damaged."""
    try:
        return _read(_reader(stream, name))
    except _DAMAGED:
        return None


def _read(path: Path) -> ReadingQuery:
    return ReadingQuery(**json.loads(path.read_text(encoding="utf-8")))


def forget(stream: Path, name: str) -> bool:
    """Stop waiting for a reader; returns whether it was known."""
    path = _reader(stream, name)
    is_known = path.exists()
    with suppress(FileNotFoundError):
        path.unlink()
    return is_known


def _base(stream: Path, number: int) -> Path:
    return stream / _BASES / f"{number:020d}.json"


def _reader(stream: Path, name: str) -> Path:
    return stream / _READERS / f"{quote(name, safe='')}.json"
