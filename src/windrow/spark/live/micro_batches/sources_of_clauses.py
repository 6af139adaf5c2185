"""The sources of clauses in memory: rows that are buffered until the frontier, and the state of clauses.

Both are committed under the names, and in the form, of :class:`windrow.spark.live.micro_batches.steps.Steps`,
and are in memory between micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.micro_batches.in_memory import Come, InMemorySteps, numbered, waiting_schema
from windrow.spark.live.micro_batches.steps import BUFFERED
from windrow.spark.logs.micro_batch import InstantSpan, RetainedRows, upwards
from windrow.spark.logs.session_streams import ROWTIME, Stream

__all__ = ["SourcesOfClauses"]


class SourcesOfClauses(InMemorySteps):
    """As :class:`windrow.spark.live.micro_batches.steps.Steps`, which says what it takes.

    Attributes
    ----------
    _sources
        The streams whose rows come to clauses.
    """

    _sources: Mapping[str, Stream]
    _retained: tuple[int, Mapping[str, RetainedRows]] = (-1, MappingProxyType({}))
    _cached: list[DataFrame]

    def _drop_cached(self) -> None:
        """Drop what clauses cached for this micro-batch, however it ended."""
        for frame in self._cached:
            frame.unpersist()
        self._cached = []

    def _waits(self, come: Come, number: int, known: Mapping[str, RetainedRows]) -> dict[str, pa.Table]:
        """The rows of the sources that wait, those that came among them."""
        waits = {}
        for name, stream in self._sources.items():
            came = numbered(stream, come.found[name].rows, number)
            buffered = known.get(f"{BUFFERED}{name}")
            parts = [came] if buffered is None else [buffered.collected().cast(came.schema), came]
            waits[name] = pa.concat_tables(parts)
        return waits

    def _first_of(self, rows: Mapping[str, pa.Table], until: int) -> int | None:
        """The first instant of rows before the frontier, in ticks of the query's time scale."""
        streams = self._plan.catalog.streams
        factors = {name: streams[name].scale.nanoseconds // self._scale.nanoseconds for name in rows}
        firsts = [
            pc.min(table.column(ROWTIME)).as_py() * factors[name]
            for name, table in rows.items()
            if table.num_rows
        ]
        return min((first for first in firsts if first < until), default=None)

    def _span(
        self,
        waits: dict[str, pa.Table],
        known: Mapping[str, RetainedRows],
        instants: tuple[int | None, int, int],
        marks: dict[str, int],
        keys: Iterable[str],
    ) -> InstantSpan:
        """The step of clauses up to an instant; in `waits` the rows from there on are left.

        Parameters
        ----------
        instants
            The instant that the step before got to, that of this one, and the first of the logs.
        marks
            Changed by what is evaluated.
        keys
            Of the clauses.
        """
        since, until, origin = instants
        due = {name: self._due(name, waits, until) for name in self._sources}
        span = InstantSpan(since, until, origin, due, known.get, are_few=True, marks=marks)
        self._cached = span.cached

        def waiting(name: str, columns: tuple[str, ...]) -> pa.Table:
            return waits[name].select(columns)

        found = {key: self._endings.ended(key, waiting) for key in keys}
        return replace(span, ended={key: ended for key, ended in found.items() if ended is not None})

    def _due(self, name: str, waits: dict[str, pa.Table], until: int) -> Stream:
        """The rows of a source before an instant; in `waits` the others are left."""
        stream = self._sources[name]
        is_due = pc.less(waits[name].column(ROWTIME), upwards(until, self._scale, stream.scale))
        due, waits[name] = waits[name].filter(is_due), waits[name].filter(pc.invert(is_due))
        return replace(stream, frame=RetainedRows.of(self._spark, due, waiting_schema(stream)).frame)

    def _kept_with(
        self, waits: Mapping[str, pa.Table], keep: Mapping[str, RetainedRows], number: int
    ) -> dict[str, RetainedRows]:
        """What clauses and sources leave at a step."""
        kept = dict(keep)
        for name, stream in self._sources.items():
            kept[f"{BUFFERED}{name}"] = RetainedRows.of(self._spark, waits[name], waiting_schema(stream))
        self._retained = number, {name: one for name, one in kept.items() if one.table is not None}
        return kept

    def _retained_before(self, before: CommittedBatch) -> Mapping[str, RetainedRows]:
        """What sources and clauses left at the last step."""
        number, known = self._retained
        found = dict(known) if number == before.number else {}
        for name in before.rows:
            frame = None if name in found else self._checkpoint.rows(before, name)
            if frame is not None:
                found[name] = RetainedRows(frame, True, self._checkpoint.table(before, name))
        return found
