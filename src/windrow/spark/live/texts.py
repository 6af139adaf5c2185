"""Functions of texts that Arrow computes as Spark does; on what they may differ, they raise ArrowInvalid."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["TimeShape", "element", "extracted", "formatted", "found", "lower", "replaced", "substring"]
__all__ += ["time_shape", "upper"]

_DAY = 86_400
_FIRST, _END = -12_212_553_600, 253_402_300_800  # the years 1583 to 9999, in seconds
_FIELDS = {"yyyy": ("%Y", _DAY), "MM": ("%m", _DAY), "dd": ("%d", _DAY), "HH": ("%H", 3600), "mm": ("%M", 60)}
_FIELDS |= {"ss": ("%S", 1)}
_SHAPE = re.compile("yyyy|MM|dd|HH|mm|ss|[-/:. ]")
_ATOM = r"(?:[\w=/:&%@~<>,;!#\"' -]|\[\^?[\w=/:&%@~<>,;!#\"' .?]+\])"
_SAFE = re.compile(rf"\^?(?:{_ATOM}[*+?]?|\((?:\?:)?|[|)]|(?<=[(|])\^)*", re.ASCII)
_MOST = (1 << 31) - 1


@dataclass(frozen=True)
class TimeShape:
    """How times are written.

    Attributes
    ----------
    pattern
        In the language of Arrow.
    unit
        The seconds in which it is the same.
    has_date
        Whether it differs from day to day.
    """

    pattern: str
    unit: int
    has_date: bool


def time_shape(pattern: str | None) -> TimeShape | None:
    """How a pattern of ``date_format`` writes times; None if that is for Spark to know."""
    parts = _SHAPE.findall(pattern or "")
    if not parts or "".join(parts) != pattern:
        return None
    fields = [_FIELDS[part] for part in parts if part in _FIELDS]
    written = "".join(_FIELDS[part][0] if part in _FIELDS else part for part in parts)
    has_date = any(unit == _DAY for _, unit in fields)
    return TimeShape(written, min((unit for _, unit in fields), default=_DAY), has_date)


def formatted(ticks: pa.Array, shape: TimeShape) -> pa.Array:
    """Microseconds of UTC as texts; each different one is written once."""
    if isinstance(ticks, pa.Scalar):
        return formatted(pa.array([ticks.as_py()], pa.int64()), shape)[0]
    seconds = np.asarray(pc.fill_null(ticks, 0)) // 1_000_000
    if seconds.size and not (seconds.min() >= _FIRST and seconds.max() < _END):
        raise pa.ArrowInvalid("years that calendars, or ways to write them, tell in different ways")
    pieces = seconds // shape.unit
    if not shape.has_date:
        pieces %= _DAY // shape.unit
    mask = np.asarray(pc.is_null(ticks)) if ticks.null_count else None
    codes = pa.array(pieces, mask=mask).dictionary_encode()
    times = pc.multiply(codes.dictionary, shape.unit).cast(pa.timestamp("s"))
    return pc.strftime(times, shape.pattern).take(codes.indices)


def _ascii(of: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    """A function of which only on ASCII it is certain that it is the same."""

    def function(text: pa.Array) -> pa.Array:
        if not pc.all(pc.string_is_ascii(text), min_count=0).as_py():
            raise pa.ArrowInvalid("letters of other alphabets")
        return of(text)

    return function


lower = _ascii(pc.ascii_lower)
upper = _ascii(pc.ascii_upper)


def replaced(part: str, by: str) -> Callable[[pa.Array], pa.Array] | None:
    """``replace``."""
    return (lambda text: pc.replace_substring(text, part, by)) if part else None


def substring(start: int, length: int) -> Callable[[pa.Array], pa.Array] | None:
    """``substring`` from a place on, counted from 1."""
    if start < 1 or length < 0:
        return None
    stop = min(start - 1 + length, _MOST)
    return lambda text: pc.utf8_slice_codeunits(text, start - 1, stop)


def element(lists: pa.Array, place: int, other: str) -> pa.Array:
    """The elements of lists at a place, counted from 1; of shorter ones `other`."""
    if isinstance(lists, pa.Scalar):
        return element(pa.array([lists.as_py()], lists.type), place, other)[0]
    whole = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    starts, ends = np.asarray(whole.offsets[:-1]), np.asarray(whole.offsets[1:])
    is_there = ends - starts >= place
    taken = whole.values.take(pa.array(np.where(is_there, starts + place - 1, 0), mask=~is_there))
    filled = pc.fill_null(taken, other)
    return (
        filled
        if not whole.null_count
        else pc.if_else(pc.is_valid(whole), filled, pa.scalar(None, pa.string()))
    )


def found(pattern: str) -> Callable[[pa.Array], pa.Array] | None:
    """``RLIKE``."""
    return _ascii(lambda text: pc.match_substring_regex(text, pattern)) if _is_safe(pattern) else None


def extracted(pattern: str, group: int) -> Callable[[pa.Array], pa.Array] | None:
    """``regexp_extract``: a group of the first match, and an empty text if there is none."""
    groups = re.split(r"\((?!\?)", pattern)
    if not _is_safe(pattern) or not 0 <= group < len(groups):
        return None
    # Arrow gives groups with names, and wants no others
    named = f"(?P<found>{'(?:'.join(groups)})"
    if group:
        named = f"{'(?:'.join(groups[:group])}(?P<found>{'(?:'.join(groups[group:])}"

    def function(text: pa.Array) -> pa.Array:
        taken = pc.struct_field(pc.extract_regex(text, named), 0)
        return pc.if_else(pc.is_valid(text), pc.fill_null(taken, ""), pa.scalar(None, pa.string()))

    return _ascii(function)


def _is_safe(pattern: str) -> bool:
    """Whether a pattern means the same to Java and to RE2: of plain letters and classes, once or repeated."""
    if not pattern.isascii() or "&&" in pattern or _SAFE.fullmatch(pattern) is None:
        return False
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
