"""Warnings about streams with rows or files from a producer whose system clock is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial

from pyspark.sql import SparkSession

from windrow.spark.catalog import Catalog
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.reports.progress_report import instant_text
from windrow.spark.logs.session_streams import Stream
from windrow.streams.admission.ahead import ahead_warning
from windrow.streams.admission.mistimed import is_ahead, mistimed

__all__ = ["WrongClocks"]


class WrongClocks:
    """Warns once for each stream of a query that is ahead of its processing time, or has files that are."""

    def __init__(self, spark: SparkSession, catalog: Catalog) -> None:
        self._spark, self._catalog = spark, catalog
        self._warned: set[tuple[str, str]] = set()
        self._seen: dict[str, int] = {}

    def look(self, streams: Iterable[tuple[int, str, Stream]], batch: CommittedBatch) -> None:
        """Check the streams after a micro-batch."""
        for _, name, stream in streams:
            position = batch.positions.get(name)
            if position is None or stream.live is None:
                continue
            ptime = position.ptime if stream.live.identity else batch.counts.get("now", 0)
            if is_ahead(ptime) and ("processing time", name) not in self._warned:
                why = f"the query has read stream {name} while the system clock was more than a day ahead"
                effect = "its processing time does not advance until the clock reaches that time"
                hint = "start the query with another checkpoint and sink"
                self._warn("processing time", name, f"{why}: {effect}; {hint}")
            if stream.live.ordering.future is None and ("ahead", name) not in self._warned:
                zone = str(self._spark.conf.get("spark.sql.session.timeZone") or "UTC")
                text_of = partial(instant_text, stream.scale, zone=zone)
                message = ahead_warning(name, position.watermark, ptime, stream.scale.nanoseconds, text_of)
                self._warn("ahead", name, message)
            named = self._catalog.named.get(name)
            if named is not None and ("mistimed", name) not in self._warned:
                found = mistimed(named.stream.folder, self._seen.get(name, 0))
                self._seen[name] = position.number
                numbers = [one.number for one in found if one.number <= position.number]
                if numbers:
                    which = f"file {numbers[0]} of the log of stream {name}"
                    message = f"{which} has a time ahead of now; it counts as written when it was first read"
                    self._warn("mistimed", name, message)

    def _warn(self, kind: str, name: str, message: str | None) -> None:
        if message is not None:
            self._warned.add((kind, name))
            warnings.warn(message, RuntimeWarning, stacklevel=3)
