"""The log of a named stream for PySpark from 4.2 on, which limits how much a micro-batch reads."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from windrow.spark.logs.log_source import LogReader, marked, offset_of, place_of
from windrow.streams import NamedStream
from windrow.streams.chain import Place

__all__ = ["LimitedLog"]

_FILES_AT_ONCE = 10_000


class LimitedLog(LogReader, SupportsTriggerAvailableNow):
    """Reads a limited number of files in a micro-batch."""

    def __init__(self, stream: NamedStream) -> None:
        super().__init__(stream)
        self._until: Place | None = None

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's names, here and below
        """The read limit of queries without one."""
        return ReadMaxFiles(_FILES_AT_ONCE)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read only the present entries."""
        with marked():
            self._until = self.stream.log.place(self.stream.log.last())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next micro-batch."""
        after = place_of(start)
        last = self._until or self.last(after)
        until = last.number
        if not isinstance(limit, ReadAllAvailable):
            most = limit.max_files if isinstance(limit, ReadMaxFiles) else _FILES_AT_ONCE
            until = min(until, after.number + most)
        with marked():
            self.stream.log.verify(after)
            if until <= after.number:
                return start
            return offset_of(last if until == last.number else self.stream.log.place(until))
