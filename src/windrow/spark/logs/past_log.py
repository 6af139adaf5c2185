"""The log of a stream up to a processing time: the stream as it was then."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import functions as F

from windrow.spark.logs.session_streams import ENTRY_BOUND, PTIME, ROWTIME, Stream, StreamArrivals

__all__ = ["PAST", "up_to"]

PAST = "__windrow_past_"
"""The prefix of a session's names for logs up to a time."""


def up_to(stream: Stream, tick: int) -> Stream:
    """The stream without entries after a processing time, in ticks of the stream's processing times.

    For a named stream, the result is a recorded one, which does not grow.
    """
    arrivals = stream.timed
    assert arrivals is not None
    frame, late = (
        None if rows is None else rows.where(f"{arrivals.arrived_at} <= {tick}")
        for rows in (stream.frame, stream.late)
    )
    assert frame is not None
    earlier = _arrivals_up_to(arrivals, tick)
    bound_rows = stream.bound_rows
    if bound_rows is not None:
        bound_rows = earlier.entries.where(F.col(ENTRY_BOUND).isNotNull()).select(
            F.col(ENTRY_BOUND).alias(ROWTIME)
        )
    return replace(
        stream,
        frame=frame,
        late=late,
        bounds=(),
        bound_rows=bound_rows,
        live=None,
        known_ends=None,
        arrivals=earlier,
        table=None,
    )


def _arrivals_up_to(arrivals: StreamArrivals, tick: int) -> StreamArrivals:
    known, punctuations = arrivals.known, arrivals.known_punctuations
    if known is not None:
        history, ends = known
        if ends is not None:
            ends = None if ends[0] > tick else (ends[0], min(ends[1], tick))
        known = [(at, mark) for at, mark in history if at <= tick], ends
    if punctuations is not None:
        punctuations = tuple((at, text) for at, text in punctuations if at <= tick)
    entries, judged, patterns = (
        None if rows is None else rows.where(F.col(PTIME) <= tick)
        for rows in (arrivals.entries, arrivals.judged, arrivals.patterns)
    )
    assert entries is not None
    assert judged is not None
    return replace(
        arrivals,
        entries=entries,
        judged=judged,
        patterns=patterns,
        known=known,
        known_punctuations=punctuations,
    )
