"""When rows enter and leave a window of a stream: the definitions, row by row.

Rows are in the order of their stream; an instant is an int. See ``docs/sql/streams.md``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Interval", "WindowOfStream", "validity"]

Interval = tuple[int, int | None]
"""When a row enters, and when it leaves; None for never."""


@dataclass(frozen=True)
class WindowOfStream:
    """A window. Lengths of time are in ticks.

    Attributes
    ----------
    granularity
        For ``[NOW]``: the stream's tick. Else None.
    range_, slide
        How long rows stay; at which multiples they enter. None if rows do not leave or wait by time.
    rows, row_slide
        How many rows stay; how many enter at once.
    by_value
        Whether a row leaves when one with a value as great as its limit arrives.
    """

    granularity: int | None = None
    range_: int | None = None
    slide: int | None = None
    rows: int | None = None
    row_slide: int = 1
    by_value: bool = False


def validity(
    window: WindowOfStream,
    rowtimes: Sequence[int],
    keys: Sequence[Hashable] | None = None,
    values: Sequence[Any] | None = None,
    limits: Sequence[Any] | None = None,
) -> list[Interval | None]:
    """When each row enters and leaves; None for rows that never enter.

    Parameters
    ----------
    window
        The window.
    rowtimes
        The rowtimes of the rows in order, never decreasing.
    keys
        The partition of each row; without keys, there is one.
    values, limits
        For windows by value: the row's value, and the value from which on a later row makes it leave.
    """
    found: list[Interval | None] = []
    for index, rowtime in enumerate(rowtimes):
        if window.granularity is not None:
            found.append((rowtime, rowtime + window.granularity))
        elif window.by_value:
            assert values is not None
            assert limits is not None
            found.append((rowtime, _when_reached(index, rowtimes, values, limits[index])))
        elif window.rows is not None:
            found.append(_among_rows(window, index, rowtimes, keys))
        else:
            enter = _entry(window, rowtime)
            found.append((enter, None if window.range_ is None else enter + window.range_))
    return found


def _entry(window: WindowOfStream, rowtime: int) -> int:
    """The next multiple of the slide, or the rowtime itself if it is one."""
    if window.slide is None:
        return rowtime
    return -(-rowtime // window.slide) * window.slide


def _when_reached(index: int, rowtimes: Sequence[int], values: Sequence[Any], limit: Any) -> int | None:
    """When a later row has the value `limit` or more; NULL reaches nothing and is never out of reach."""
    for later in range(index + 1, len(rowtimes)):
        if limit is not None and values[later] is not None and values[later] >= limit:
            return rowtimes[later]
    return None


def _among_rows(
    window: WindowOfStream, index: int, rowtimes: Sequence[int], keys: Sequence[Hashable] | None
) -> Interval | None:
    """ROWS N: the N-th later row of the partition that enters pushes the row out."""
    assert window.rows is not None
    peers = [other for other in range(len(rowtimes)) if keys is None or keys[other] == keys[index]]
    place = peers.index(index)

    def entry(at: int) -> int | None:
        last_of_group = (at // window.row_slide + 1) * window.row_slide - 1
        return _entry(window, rowtimes[peers[last_of_group]]) if last_of_group < len(peers) else None

    enter = entry(place)
    if enter is None:
        return None
    pushed_out = entry(place + window.rows) if place + window.rows < len(peers) else None
    expires = None if window.range_ is None else enter + window.range_
    leaves = [at for at in (pushed_out, expires) if at is not None]
    return enter, min(leaves, default=None)
