"""Streams that are made of other streams: each has a frontier of its own.

    sources ─ frontier ─▶ windows, matches ─ least rowtime that may still be emitted ─▶ what reads them

The windows of a micro-batch may have rowtimes long before its frontier, and others with later rowtimes may
still be open. So what reads them has a frontier of its own: the least rowtime that they may still emit. Rows
at or after it are buffered.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import functions as F

from windrow.algebra.continuous import Continuous, Reader, StreamQuery
from windrow.algebra.time_scale import TimeScale
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live.plans.runner import LiveRunner, reads, sequences_of
from windrow.spark.logs.micro_batch import Coming, InstantSpan, PartOutput, RetainedRows, upwards
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.recorded.continuous_queries import Result
from windrow.syntax.tokens import TokenList

__all__ = ["EMITTED", "Upstream"]

EMITTED = "told"
"""The mark of a query that emits or follows windows: no later micro-batch emits anything before this
instant."""

_UNTIL = "until"


class Upstream:
    """Evaluates, each once, the streams that a micro-batch needs.

    Parameters
    ----------
    gateway, catalog, execution
        As of :class:`windrow.spark.recorded.continuous_queries.Runner`.
    span
        The micro-batch, in ticks of `scale`.
    scale, tokens
        Of the query.
    """

    def __init__(
        self,
        gateway: Gateway,
        catalog: Catalog,
        execution: str,
        span: InstantSpan,
        scale: TimeScale,
        tokens: TokenList,
    ) -> None:
        self.gateway, self.catalog, self.execution = gateway, catalog, execution
        self.span, self.scale, self.tokens = span, scale, tokens
        self._coming: dict[str, Coming] = {}

    def coming(self, name: str) -> Coming:
        """What a stream emits that it has not emitted before."""
        name = name.lower()
        if name not in self._coming:
            self._coming[name] = self._evaluated(name)
        return self._coming[name]

    def result(self, query: Continuous, reader: Reader, path: str = "") -> tuple[Result | None, int]:
        """What a continuous query returns, and up to which instant, in ticks of its time scale.

        None where that is no later than the micro-batch before reached.
        """
        span, sequences = self.span, sequences_of(self.catalog, query)
        runner = LiveRunner(self.gateway, self.catalog, reader, self.execution, span, path)
        if not sequences:
            return runner.run(query), span.until
        scale = runner.scale_of(query)
        names = {name for name in reads(self.catalog, query) if name in sequences or name in span.arrived}
        coming = {name: self.coming(name) for name in sorted(names)}
        until = min(one.until(scale) for one in coming.values())
        origin, mark = self._on(scale).origin, f"{_UNTIL}{path}"
        since = span.marks.get(mark)
        moves = until > (origin if since is None else since)
        arrived = {}
        for name, one in coming.items():
            key = f"window{path}.{name}.waiting"
            retained = span.before(key)
            rows = one.rows if retained is None else retained.frame.unionByName(one.rows)
            reached = upwards(until, scale, one.stream.scale)
            waits = rows.where(F.col(ROWTIME) >= reached) if moves else rows
            span.to_retain[key] = RetainedRows.of(waits)
            arrived[name] = replace(one.stream, frame=rows)
        span.marks[f"{EMITTED}{path}"] = until
        if not moves:
            return None, until
        span.marks[mark] = until
        own = replace(span, since=since, until=until, origin=origin, arrived=arrived)
        return LiveRunner(self.gateway, self.catalog, reader, self.execution, own, path).run(query), until

    def _evaluated(self, name: str) -> Coming:
        """The rows of a stream; those of sources are before the frontier."""
        view = self.catalog.sequences.get(name)
        if view is not None:
            return view.coming(self)
        stream = self.catalog.streams[name]
        definition = self.catalog.definitions.get(name)
        if definition is None or not sequences_of(self.catalog, definition.query):
            own = self._on(stream.scale)
            reader = Reader(self.tokens, frozenset(), frozenset())
            runner = LiveRunner(self.gateway, self.catalog, reader, self.execution, own)
            came = runner.arriving(name, stream.scale)
            return Coming(came, PartOutput(came.frame, lambda: own.until))
        assert isinstance(definition.query, StreamQuery)
        result, until = self.result(definition.query, definition.reader, f".{name}")
        if result is None:
            return Coming(stream, PartOutput(stream.frame.limit(0), lambda: until))
        assert isinstance(result, Stream)
        made = result.renamed(definition.names)
        return Coming(made, PartOutput(made.frame, lambda: until))

    def _on(self, scale: TimeScale) -> InstantSpan:
        """The micro-batch on a clock of which the query's is the same or a finer one."""
        span, own = self.span, self.scale
        since = None if span.since is None else upwards(span.since, own, scale)
        origin = span.origin * own.nanoseconds // scale.nanoseconds
        return replace(span, since=since, until=upwards(span.until, own, scale), origin=origin)
