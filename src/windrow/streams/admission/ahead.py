"""Detect a watermark ahead of processing time, as one row with a wrong timestamp causes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from windrow.streams.admission.future import DAY, Future
from windrow.streams.admission.watermark import WatermarkState
from windrow.streams.entries import FOREVER

__all__ = ["ahead_warning"]


def ahead_warning(
    name: str, state: WatermarkState, ptime: int, tick: int, formatted: Callable[[int], str | None]
) -> str | None:
    """A warning about a stream that is a day or more ahead of its processing time; None if it is not.

    Parameters
    ----------
    name
        The name of the stream.
    state
        The state of its watermark.
    ptime
        Its current processing time, in microseconds.
    tick
        The length of a tick of its rowtime, in nanoseconds.
    formatted
        Formats an instant of ticks.
    """
    future = Future(DAY, tick)
    limit = int(future.limits(np.array([ptime]))[0])
    for producer, known in sorted(state.producers.items()):
        if limit < known.bound < FOREVER:
            who = f"producer {producer}" if producer else "it"
            by = f", by a row of rowtime {formatted(known.seen)}" if known.seen > limit else ""
            return _warning(name, f"{who} has reached {formatted(known.bound)}{by}")
    if limit < state.at < FOREVER:
        return _warning(name, f"its watermark has reached {formatted(state.at)}")
    return None


def _warning(name: str, what: str) -> str:
    return (
        f"stream {name} is more than a day ahead of its processing time: {what}, so rows below that are late"
        " from now on. Declare FUTURE 1 DAY, or future='1 day' in Python, to quarantine such rows and bounds;"
        " docs/streams/wrong-clocks.md describes how to repair the stream"
    )
