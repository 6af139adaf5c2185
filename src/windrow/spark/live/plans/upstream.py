"""Streams derived from other streams: each has its own frontier.

    sources ─ frontier ─▶ windows, matches ─ least rowtime that may still be emitted ─▶ what reads them

The windows of a micro-batch may have rowtimes long before its frontier, and others with later rowtimes may
still be open. So what reads them has a frontier of its own: the least rowtime that they may still emit. Rows
at or after it are buffered.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import functions as F

from windrow.algebra.time_scale import TimeScale
from windrow.spark.catalog import Catalog
from windrow.spark.logs.micro_batch import InstantSpan, PartOutput, StreamOutput, upwards
from windrow.spark.logs.session_streams import ROWTIME

__all__ = ["EMITTED", "Upstream"]

EMITTED = "emitted"
"""The name of the mark of a query that emits windows: no later micro-batch emits anything before this
instant.
"""


class Upstream:
    """Evaluates, each once, the streams that a micro-batch needs.

    Parameters
    ----------
    catalog
        The streams of the query.
    span
        The micro-batch, in ticks of `scale`.
    scale
        The time scale of the query.
    """

    def __init__(self, catalog: Catalog, span: InstantSpan, scale: TimeScale) -> None:
        self.catalog, self.span, self.scale = catalog, span, scale
        self._outputs: dict[str, StreamOutput] = {}

    def output(self, name: str) -> StreamOutput:
        """The new output of a stream."""
        name = name.lower()
        if name not in self._outputs:
            self._outputs[name] = self._evaluated(name)
        return self._outputs[name]

    def _evaluated(self, name: str) -> StreamOutput:
        """The rows of a stream; those of sources are before the frontier."""
        view = self.catalog.sequences.get(name)
        if view is not None:
            return view.output(self)
        if name in self.catalog.definitions:
            assert self.span.of_view is not None
            return self.span.of_view(self.span, name)
        span, arrived = self.span, self.span.arrived.get(name)
        stream = self.catalog.streams[name] if arrived is None else arrived
        until, rows = upwards(span.until, self.scale, stream.scale), stream.frame
        if arrived is None:  # it is recorded, and its rows arrive at their times
            since = None if span.since is None else upwards(span.since, self.scale, stream.scale)
            rows = rows if since is None else rows.where(F.col(ROWTIME) >= since)
        rows = rows.where(F.col(ROWTIME) < until)
        return StreamOutput(replace(stream, frame=rows), PartOutput(rows, lambda: until))
