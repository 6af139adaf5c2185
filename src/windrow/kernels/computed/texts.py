"""Text functions that Arrow computes as Spark does; for values on which they may differ, they raise
ArrowInvalid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.computed.computed_values import Function

__all__ = [
    "FORMATTED",
    "TimeShape",
    "concatenated",
    "containing",
    "element",
    "ending",
    "extracted",
    "formatted",
]
__all__ += ["found", "length", "lower", "replaced", "split", "starting", "substring", "time_shape", "upper"]

_DAY = 86_400
FORMATTED = (-12_212_553_600, 253_402_300_799)
"""The range of seconds of the years 1583 to 9999."""
_FIELDS = {"yyyy": ("%Y", _DAY), "MM": ("%m", _DAY), "dd": ("%d", _DAY), "HH": ("%H", 3600), "mm": ("%M", 60)}
_FIELDS |= {"ss": ("%S", 1)}
_SHAPE = re.compile("yyyy|MM|dd|HH|mm|ss|[-/:. ]")
_ATOM = r"(?:[\w=/:&%@~<>,;!#\"' -]|\[\^?[\w=/:&%@~<>,;!#\"' .?]+\])"
_SAFE = re.compile(rf"\^?(?:{_ATOM}[*+?]?|\((?:\?:)?|[|)]|(?<=[(|])\^)*", re.ASCII)
_MOST = (1 << 31) - 1


@dataclass(frozen=True)
class TimeShape:
    """A format of times.

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
    """The format of a ``date_format`` pattern; None if only Spark supports it."""
    parts = _SHAPE.findall(pattern or "")
    if not parts or "".join(parts) != pattern:
        return None
    fields = [_FIELDS[part] for part in parts if part in _FIELDS]
    written = "".join(_FIELDS[part][0] if part in _FIELDS else part for part in parts)
    has_date = any(unit == _DAY for _, unit in fields)
    return TimeShape(written, min((unit for _, unit in fields), default=_DAY), has_date)


def formatted(shape: TimeShape, time: pa.Array) -> pa.Array:
    """UTC times as texts; each distinct time is formatted once."""
    ticks = time.cast(pa.int64())
    if isinstance(ticks, pa.Scalar):
        return formatted(shape, pa.array([ticks.as_py()], pa.int64()))[0]
    seconds = np.asarray(pc.fill_null(ticks, 0)) // 1_000_000
    if seconds.size and not (seconds.min() >= FORMATTED[0] and seconds.max() <= FORMATTED[1]):
        raise pa.ArrowInvalid("years that calendars count, or spell, in different ways")
    pieces = seconds // shape.unit
    if not shape.has_date:
        pieces %= _DAY // shape.unit
    mask = np.asarray(pc.is_null(ticks)) if ticks.null_count else None
    codes = pa.array(pieces, mask=mask).dictionary_encode()
    times = pc.multiply(codes.dictionary, shape.unit).cast(pa.timestamp("s"))
    return pc.strftime(times, shape.pattern).take(codes.indices)


def concatenated(*texts: pa.Array) -> pa.Array:
    """``||``."""
    return pc.binary_join_element_wise(*texts, "")


def lower(text: pa.Array) -> pa.Array:
    """``lower``."""
    return pc.ascii_lower(_of_ascii(text))


def upper(text: pa.Array) -> pa.Array:
    """``upper``."""
    return pc.ascii_upper(_of_ascii(text))


def length(text: pa.Array) -> pa.Array:
    """``length``."""
    return pc.utf8_length(_of_letters(text))


def _is_ascii(text: pa.Array) -> bool:
    return bool(pc.all(pc.string_is_ascii(text), min_count=0).as_py())


def _of_ascii(text: pa.Array) -> pa.Array:
    """The text, if it has only ASCII, on which text functions certainly agree."""
    if not _is_ascii(text):
        raise pa.ArrowInvalid("letters of other alphabets")
    return text


def _of_letters(text: pa.Array) -> pa.Array:
    """The text, if it is valid UTF-8."""
    if not isinstance(text, pa.Scalar) and not _is_ascii(text):
        text.validate(full=True)
    return text


def replaced(part: str, by: str) -> Function | None:
    """``replace``."""
    return partial(_replaced, part, by) if part else None


def _replaced(part: str, by: str, text: pa.Array) -> pa.Array:
    return pc.replace_substring(text, part, by)


def substring(start: int, count: int) -> Function | None:
    """``substring`` from a position on, counted from 1."""
    if start < 1 or count < 0:
        return None
    return partial(_substring, start - 1, min(start - 1 + count, _MOST))


def _substring(start: int, stop: int, text: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(_of_letters(text), start, stop)


def containing(part: str) -> Function:
    """``contains``."""
    return partial(_containing, part)


def _containing(part: str, text: pa.Array) -> pa.Array:
    return pc.match_substring(text, part)


def starting(part: str) -> Function:
    """``startswith``."""
    return partial(_starting, part)


def _starting(part: str, text: pa.Array) -> pa.Array:
    return pc.starts_with(text, part)


def ending(part: str) -> Function:
    """``endswith``."""
    return partial(_ending, part)


def _ending(part: str, text: pa.Array) -> pa.Array:
    return pc.ends_with(text, part)


def split(by: str) -> Function | None:
    """The parts of a text around a separator."""
    return partial(_split, by) if by else None


def _split(by: str, text: pa.Array) -> pa.Array:
    return pc.split_pattern(text, by)


def element(place: int, other: str, lists: pa.Array) -> pa.Array:
    """The elements of lists at a position, counted from 1; for shorter lists, `other`."""
    if isinstance(lists, pa.Scalar):
        return element(place, other, pa.array([lists.as_py()], lists.type))[0]
    whole = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    starts, ends = np.asarray(whole.offsets[:-1]), np.asarray(whole.offsets[1:])
    is_there = ends - starts >= place
    chosen = whole.values.take(pa.array(np.where(is_there, starts + place - 1, 0), mask=~is_there))
    filled = pc.fill_null(chosen, other)
    return (
        filled
        if not whole.null_count
        else pc.if_else(pc.is_valid(whole), filled, pa.scalar(None, pa.string()))
    )


def found(pattern: str) -> Function | None:
    """``RLIKE``."""
    return partial(_found, pattern) if _is_safe(pattern) else None


def _found(pattern: str, text: pa.Array) -> pa.Array:
    return pc.match_substring_regex(_of_ascii(text), pattern)


def extracted(pattern: str, group: int) -> Function | None:
    """``regexp_extract``: a group of the first match, and an empty text if there is none."""
    groups = re.split(r"\((?!\?)", pattern)
    if not _is_safe(pattern) or not 0 <= group < len(groups):
        return None
    # Arrow returns groups with names, and accepts no others
    named = f"(?P<found>{'(?:'.join(groups)})"
    if group:
        named = f"{'(?:'.join(groups[:group])}(?P<found>{'(?:'.join(groups[group:])}"
    return partial(_extracted, named)


def _extracted(named: str, text: pa.Array) -> pa.Array:
    matched = pc.struct_field(pc.extract_regex(_of_ascii(text), named), 0)
    return pc.if_else(pc.is_valid(text), pc.fill_null(matched, ""), pa.scalar(None, pa.string()))


def _is_safe(pattern: str) -> bool:
    """Whether a pattern means the same to Java and to RE2: plain letters and classes, once or repeated."""
    if not pattern.isascii() or "&&" in pattern or _SAFE.fullmatch(pattern) is None:
        return False
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
