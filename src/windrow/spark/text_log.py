"""Reads recorded streams from their text form: a line a row, as its instant and its values.

    Timestamp   Tuple
         1000   10,0.1
         1002:  15,"a, b"
    h    3800

A heading and empty lines are left out; a colon may follow the instant; ``h`` lines are heartbeats, which
promise that no row of an earlier instant follows. Instants never fall. An empty value is NULL.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from windrow.errors import InputError, UsageError

__all__ = ["TextLog", "read_text_log"]

_LINE = re.compile(r"\s*(?P<beat>h\s+)?(?P<instant>[+-]?\d+)\s*:?(?:\s+(?P<values>\S.*?))?\s*")
_HEADING = re.compile(r"\s*timestamp\s+tuple\s*", re.IGNORECASE)
_MALFORMED = ("fail", "keep")


@dataclass(frozen=True)
class TextLog:
    """What the lines say.

    Attributes
    ----------
    rows
        (instant, values, line) of each row in order; values are texts, None for NULL.
    beats
        The instants of the heartbeats and the numbers of their lines.
    late
        (instant, values, line, promised) of rows of an instant before one that was promised to be past.
    malformed
        (line, text, what is wrong with it) of lines that were left out.
    """

    rows: tuple[tuple[int, tuple[str | None, ...], int], ...]
    beats: tuple[tuple[int, int], ...]
    late: tuple[tuple[int, tuple[str | None, ...], int, int], ...]
    malformed: tuple[tuple[int, str, str], ...]

    @property
    def width(self) -> int:
        """How many values a row has."""
        return len(self.rows[0][1]) if self.rows else 0


def read_text_log(path: str | Path, *, malformed: str = "fail", width: int | None = None) -> TextLog:
    """Read a recorded stream.

    Parameters
    ----------
    path
        A file of UTF-8 text.
    malformed
        What becomes of lines that cannot be read, that have another number of values than the first row, or
        that fall behind what the lines before promised: ``"fail"``, or ``"keep"`` them apart. Rows that fall
        behind are then late.
    width
        How many values a row has, if that is known.

    Raises
    ------
    InputError
        ``PATH_NOT_FOUND``, ``UNREADABLE_FILE``, ``MALFORMED_LINE`` with the number of the line.
    UsageError
        ``UNKNOWN_OPTION`` for another `malformed`.
    """
    if malformed not in _MALFORMED:
        raise UsageError(
            f"malformed={malformed!r} is unknown", condition="UNKNOWN_OPTION", hint="use 'fail' or 'keep'"
        )
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(
            f"file {path} does not exist", condition="PATH_NOT_FOUND", hint="check the path"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"file {path} cannot be read: {error}", condition="UNREADABLE_FILE") from error
    rows: list[tuple[int, tuple[str | None, ...], int]] = []
    beats: list[tuple[int, int]] = []
    late: list[tuple[int, tuple[str | None, ...], int, int]] = []
    wrong: list[tuple[int, str, str]] = []
    promised: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or (not rows and _HEADING.fullmatch(line)):
            continue
        expected = width if width is not None else len(rows[0][1]) if rows else None
        problem = _problem(line, expected)
        found = _LINE.fullmatch(line)
        behind = found is not None and promised is not None and int(found["instant"]) < promised
        if problem is None and behind and malformed == "keep" and found is not None and found["values"]:
            assert promised is not None
            late.append((int(found["instant"]), _values(found["values"]), number, promised))
            continue
        if problem is None and behind:
            problem = f"is of an instant before {promised}, which was promised to be past"
        if problem is not None:
            if malformed == "fail":
                raise InputError(
                    f"line {number} of {path} {problem}: {line.strip()[:60]}",
                    condition="MALFORMED_LINE",
                    hint="mend the line, or keep such lines apart with malformed='keep'",
                )
            wrong.append((number, line, problem))
            continue
        assert found is not None
        promised = int(found["instant"])
        if found["beat"]:
            beats.append((promised, number))
        else:
            rows.append((promised, _values(found["values"]), number))
    return TextLog(tuple(rows), tuple(beats), tuple(late), tuple(wrong))


def _problem(line: str, width: int | None) -> str | None:
    """What is wrong with a line, if anything is."""
    found = _LINE.fullmatch(line)
    if found is None or bool(found["beat"]) == bool(found["values"]):
        return "is neither an instant and values nor h and an instant"
    instant = int(found["instant"])
    if not -(2**63) <= instant < 2**63:
        return "has an instant that is too large"
    if found["values"] is None:
        return None
    try:
        values = _values(found["values"])
    except csv.Error:
        return "has a quote that is not closed"
    if width is not None and len(values) != width:
        return f"has {len(values)} values, not {width}"
    return None


def _values(text: str) -> tuple[str | None, ...]:
    (values,) = csv.reader([text], skipinitialspace=True, strict=True)
    return tuple(value.strip() or None for value in values)
