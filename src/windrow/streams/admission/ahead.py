"""Whether a stream's bounds have run ahead of its processing time, as they do by one row of a wrong clock."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from windrow.streams.admission.clock import ClockState
from windrow.streams.admission.future import DAY, Future
from windrow.streams.entries import FOREVER

__all__ = ["told_ahead"]


def told_ahead(
    name: str, state: ClockState, ptime: int, tick: int, shown: Callable[[int], str | None]
) -> str | None:
    """What is to be said of a stream that is a day or more ahead of its processing time; None if it is not.

    Parameters
    ----------
    name
        What the stream is called.
    state
        That of its clock.
    ptime
        The processing time that it has reached, in microseconds.
    tick
        How many nanoseconds a tick of its rowtime has.
    shown
        Gives the text of an instant of ticks.
    """
    future = Future(DAY, tick)
    limit = int(future.limits(np.array([ptime]))[0])
    for producer, known in sorted(state.producers.items()):
        if limit < known.bound < FOREVER:
            who = f"producer {producer}" if producer else "it"
            by = f", by a row of rowtime {shown(known.seen)}" if known.seen > limit else ""
            return _told(name, f"{who} has reached {shown(known.bound)}{by}")
    if limit < state.at < FOREVER:
        return _told(name, f"its clock has reached {shown(state.at)}")
    return None


def _told(name: str, what: str) -> str:
    return (
        f"stream {name} is more than a day ahead of its processing time: {what}, and rows below that are late"
        " from now on. FUTURE 1 DAY, future='1 day' in Python, keeps such rows and bounds apart;"
        " docs/streams/wrong-clocks.md says how to mend the stream"
    )
