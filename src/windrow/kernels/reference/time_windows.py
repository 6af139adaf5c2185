"""The definition of time windows, row by row: the twin of
:mod:`windrow.algebra.rewriting.time_windows_as_sql`.

Instants are ints. A window is ``[start, end)``. Those of TUMBLE, HOP and CUMULATE begin at multiples of their
step from 0, shifted by an offset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

__all__ = ["windows_of"]

Window = tuple[int, int]


def windows_of(
    kind: str, times: Sequence[int | None], keys: Sequence[Hashable], lengths: Mapping[str, int]
) -> list[list[Window]]:
    """The windows that each row is in.

    Parameters
    ----------
    kind
        TUMBLE, HOP, CUMULATE or SESSION.
    times
        When each row is; a row at None is in no window.
    keys
        The key of each row; rows with different keys are in different sessions.
    lengths
        As for :class:`windrow.algebra.rewriting.time_windows_as_sql.TimeWindow`.
    """
    if kind == "SESSION":
        return _sessions(times, keys, lengths["gap"], lengths.get("maxdur"))
    return [[] if time is None else _fixed(kind, time, lengths) for time in times]


def _fixed(kind: str, time: int, lengths: Mapping[str, int]) -> list[Window]:
    length, offset = lengths["dur"], lengths.get("offset", 0)
    hop = lengths["hopsize"] if kind == "HOP" else length
    begin = offset + (time - offset) // hop * hop
    if kind == "TUMBLE":
        return [(begin, begin + length)]
    found = []
    if kind == "HOP":
        while begin + length > time:
            found.append((begin, begin + length))
            begin -= hop
        return found
    end = begin + lengths["step"]
    while end <= begin + length:
        if time < end:
            found.append((begin, end))
        end += lengths["step"]
    return found


def _sessions(
    times: Sequence[int | None], keys: Sequence[Hashable], gap: int, longest: int | None
) -> list[list[Window]]:
    by_key: dict[Hashable, list[int]] = defaultdict(list)
    for time, key in zip(times, keys, strict=True):
        if time is not None:
            by_key[key].append(time)
    session_of: dict[tuple[Hashable, int], Window] = {}
    for key, found in by_key.items():
        session: list[int] = []
        for time in sorted(found):
            ends = session and (
                time - session[-1] > gap or (longest is not None and time - session[0] >= longest)
            )
            if ends:
                session = []
            session.append(time)
            end = session[-1] + gap
            if longest is not None:
                end = min(end, session[0] + longest)
            for member in session:
                session_of[key, member] = session[0], end
    return [[] if time is None else [session_of[key, time]] for time, key in zip(times, keys, strict=True)]
