"""How a file of a log says which one it is: its number, the checksum of the file before it, and its own.

The three stand in Parquet's footer, at places of fixed width behind all that the file holds. So a writer that
has lost the race for a number puts another into the file by writing some bytes anew, and the end of a file
tells them without the rest being read.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

__all__ = ["BLANK", "START", "FileDraft", "Link", "Place", "is_whole", "link_of"]

_NUMBER, _BEFORE, _MARK = b"windrow.number=", b" windrow.before=", b"windrow.crc32="
_DIGITS = 10
BLANK = _NUMBER + b"0" * 20 + _BEFORE + b"0" * _DIGITS + b" " + _MARK + b"0" * _DIGITS
"""What a file has in place of them until its place is known."""

_LINK = re.compile(rb"windrow\.number=(\d{20}) windrow\.before=(\d{10}) ")
_CHECKSUM = re.compile(rb"\d{10}")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a log: after a file.

    Attributes
    ----------
    number
        The file's; 0 before the first.
    checksum
        The file's; None where it is not known.
    """

    number: int = 0
    checksum: int | None = 0


START = Place()


@dataclass(frozen=True, slots=True)
class Link:
    """What a file says of itself.

    Attributes
    ----------
    number, before
        Its number and the checksum of the file before it; None of a file that an earlier version wrote.
    checksum
        Of all its bytes, among which the digits of the checksum itself count as zeros.
    """

    number: int | None
    before: int | None
    checksum: int


def link_of(end: bytes) -> Link | None:
    """What the end of a file says; None if it says nothing.

    The last place counts: Parquet writes what users store before it.
    """
    start = end.rfind(_MARK)
    checksum = _CHECKSUM.match(end, start + len(_MARK)) if start >= 0 else None
    if checksum is None:
        return None
    found = _LINK.fullmatch(end, max(start + len(_MARK) + _DIGITS - len(BLANK), 0), start)
    number, before = (None, None) if found is None else (int(found[1]), int(found[2]))
    return Link(number, before, int(checksum[0]))


def is_whole(content: bytes) -> bool:
    """Whether a file has the checksum that it says."""
    place = content.rfind(_MARK) + len(_MARK)
    before, said, after = content[:place], content[place : place + _DIGITS], content[place + _DIGITS :]
    return b"%010d" % zlib.crc32(after, zlib.crc32(b"0" * _DIGITS, zlib.crc32(before))) == said


class FileDraft:
    """A file that can be put at one place of a log after the other, each time at the cost of its last bytes.

    Attributes
    ----------
    start
        What is before this byte is the same at all places.
    """

    def __init__(self, content: bytes) -> None:
        self.start = content.rfind(_NUMBER)
        self._content = content
        self._rest = content[self.start + len(BLANK) :]
        self._begun = zlib.crc32(content[: self.start])

    def after(self, place: Place) -> tuple[bytes, Place]:
        """The bytes from `start` on where the file follows a place, and the file's own place."""
        assert place.checksum is not None
        number = place.number + 1
        said = _NUMBER + b"%020d" % number + _BEFORE + b"%010d" % place.checksum + b" " + _MARK
        checksum = zlib.crc32(said + b"0" * _DIGITS + self._rest, self._begun)
        return said + b"%010d" % checksum + self._rest, Place(number, checksum)

    def whole(self, place: Place) -> bytes:
        """All bytes of the file where it follows a place."""
        return self._content[: self.start] + self.after(place)[0]
