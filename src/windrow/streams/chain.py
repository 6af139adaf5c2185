"""How a log file identifies itself: its number, the checksum of the previous file, and its own checksum.

The three are in Parquet's footer, at a fixed width, behind the data. A writer that loses the race for a
number therefore rewrites a few bytes only, and a reader finds all three at the end of the file.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

__all__ = ["BLANK", "START", "FileDraft", "Link", "Place", "is_whole", "link_of"]

_NUMBER, _BEFORE, _MARK = b"windrow.number=", b" windrow.before=", b"windrow.crc32="
_DIGITS = 10
BLANK = _NUMBER + b"0" * 20 + _BEFORE + b"0" * _DIGITS + b" " + _MARK + b"0" * _DIGITS
"""The placeholder for all three, until the file's place in the log is known."""

_LINK = re.compile(rb"windrow\.number=(\d{20}) windrow\.before=(\d{10}) ")
_CHECKSUM = re.compile(rb"\d{10}")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a log: the end of one file.

    Attributes
    ----------
    number
        The file's number; 0 before the first file.
    checksum
        The file's checksum; None if unknown.
    """

    number: int = 0
    checksum: int | None = 0


START = Place()


@dataclass(frozen=True, slots=True)
class Link:
    """A file's own account of its place in the log.

    Attributes
    ----------
    number, before
        Its number and the checksum of the previous file; None if an earlier version wrote the file.
    checksum
        The checksum of all its bytes; the digits of the checksum itself count as zeros.
    """

    number: int | None
    before: int | None
    checksum: int


def link_of(end: bytes) -> Link | None:
    """Read the link from the end of a file; None if there is none.

    The last occurrence counts, because Parquet writes the users' own metadata before it.
    """
    start = end.rfind(_MARK)
    checksum = _CHECKSUM.match(end, start + len(_MARK)) if start >= 0 else None
    if checksum is None:
        return None
    found = _LINK.fullmatch(end, max(start + len(_MARK) + _DIGITS - len(BLANK), 0), start)
    number, before = (None, None) if found is None else (int(found[1]), int(found[2]))
    return Link(number, before, int(checksum[0]))


def is_whole(content: bytes) -> bool:
    """Whether a file's content matches its checksum."""
    place = content.rfind(_MARK) + len(_MARK)
    before, stored, after = content[:place], content[place : place + _DIGITS], content[place + _DIGITS :]
    return b"%010d" % zlib.crc32(after, zlib.crc32(b"0" * _DIGITS, zlib.crc32(before))) == stored


class FileDraft:
    """A file that can move to another place in the log by rewriting its last bytes only.

    Attributes
    ----------
    start
        The first byte that depends on the place.
    """

    def __init__(self, content: bytes) -> None:
        self.start = content.rfind(_NUMBER)
        self._content = content
        self._rest = content[self.start + len(BLANK) :]
        self._begun = zlib.crc32(content[: self.start])

    def after(self, place: Place) -> tuple[bytes, Place]:
        """The bytes from `start` on if the file follows a place, and the file's own place."""
        assert place.checksum is not None
        number = place.number + 1
        link = _NUMBER + b"%020d" % number + _BEFORE + b"%010d" % place.checksum + b" " + _MARK
        checksum = zlib.crc32(link + b"0" * _DIGITS + self._rest, self._begun)
        return link + b"%010d" % checksum + self._rest, Place(number, checksum)

    def whole(self, place: Place) -> bytes:
        """All bytes of the file if it follows a place."""
        return self._content[: self.start] + self.after(place)[0]
