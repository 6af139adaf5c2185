"""Tells of streams that a wrong clock has hit, while live queries read them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial

from pyspark.sql import SparkSession

from windrow.spark.catalog import Catalog
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.reports.progress_report import shown_instant
from windrow.spark.logs.session_streams import Stream
from windrow.streams.admission.ahead import ahead_warning
from windrow.streams.admission.mistimed import is_ahead, mistimed

__all__ = ["WrongClocks"]


class WrongClocks:
    """Warns once of each stream of a query that is ahead of its processing time, or has files that are."""

    def __init__(self, spark: SparkSession, catalog: Catalog) -> None:
        self._spark, self._catalog = spark, catalog
        self._told: set[tuple[str, str]] = set()
        self._seen: dict[str, int] = {}

    def look(self, streams: Iterable[tuple[int, str, Stream]], step: CommittedBatch) -> None:
        """Look at the streams after a step."""
        for _, name, stream in streams:
            position = step.clocks.get(name)
            if position is None or stream.live is None:
                continue
            ptime = position.ptime if stream.live.identity else step.counts.get("now", 0)
            if is_ahead(ptime) and ("processing time", name) not in self._told:
                stands = "its processing time stands still until then; start it anew, with another checkpoint"
                why = f"the query has read stream {name} under a clock that was more than a day ahead of now"
                self._tell("processing time", name, f"{why}: {stands} and sink")
            if stream.live.ordering.future is None and ("ahead", name) not in self._told:
                zone = str(self._spark.conf.get("spark.sql.session.timeZone") or "UTC")
                shown = partial(shown_instant, stream.clock, zone=zone)
                told = ahead_warning(name, position.watermark, ptime, stream.clock.nanoseconds, shown)
                self._tell("ahead", name, told)
            named = self._catalog.named.get(name)
            if named is not None and ("mistimed", name) not in self._told:
                found = mistimed(named.stream.folder, self._seen.get(name, 0))
                self._seen[name] = position.number
                numbers = [one.number for one in found if one.number <= position.number]
                if numbers:
                    told = (
                        f"file {numbers[0]} of the log of stream {name} was written by a clock that was ahead"
                    )
                    self._tell("mistimed", name, f"{told}; it counts as written when it was read first")

    def _tell(self, kind: str, name: str, told: str | None) -> None:
        if told is not None:
            self._told.add((kind, name))
            warnings.warn(told, RuntimeWarning, stacklevel=3)
