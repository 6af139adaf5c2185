"""How far a live query has read named streams: no entry that it needs is deleted from their logs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from pathlib import Path

from windrow.errors import ExecutionError
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.streams import Position

__all__ = ["ReadLogs"]

_BETWEEN = 10.0
"""Seconds between records: a query that reads on needs less than recorded, never more."""


class ReadLogs:
    """The named streams that a query reads.

    The last position of a query is recorded one micro-batch later, because Spark repeats a micro-batch that
    it has not committed.

    Parameters
    ----------
    plan
        The query.
    name, checkpoint
        The identity and the folder of its checkpoint.
    is_temporary
        Whether the checkpoint is deleted at its end.
    """

    def __init__(self, plan: LivePlan, name: str, checkpoint: Path, *, is_temporary: bool) -> None:
        known = plan.catalog.named
        self._streams = {each: known[each].stream for each in sorted(plan.streams) if each in known}
        self._name, self._checkpoint, self._is_temporary = name, checkpoint, is_temporary
        self._reached: dict[str, int] = {}
        self._earlier: dict[str, int] = {}
        self._noted, self._has_warned = time.monotonic(), False
        for each, stream in self._streams.items():
            before = stream.reader(name)
            self._write(each, stream.start.number if before is None else before.number)

    def note(self, positions: Mapping[str, Position]) -> None:
        """Record the position before the last micro-batch, from time to time."""
        self._earlier = self._reached
        self._reached = {name: positions[name].number for name in self._streams if name in positions}
        if self._earlier and time.monotonic() - self._noted >= _BETWEEN:
            self._noted = time.monotonic()
            self._write_all()

    def end(self) -> None:
        """Record the last position; remove the record of a query that cannot continue."""
        if not self._is_temporary:
            self._write_all()
            return
        for stream in self._streams.values():
            stream.forget(self._name)

    def _write_all(self) -> None:
        for name, number in self._earlier.items():
            self._write(name, number)

    def _write(self, stream: str, number: int) -> None:
        try:
            self._streams[stream].note_reader(
                self._name, number, self._checkpoint, is_temporary=self._is_temporary
            )
        except ExecutionError as error:  # of a folder that may be read only, or a full disk
            if not self._has_warned:
                self._has_warned = True
                warnings.warn(
                    f"cannot write to stream {stream} how far the query has read: {error.message}; if old"
                    " entries are deleted, the query may miss some, and then fails (LOG_TRIMMED)",
                    RuntimeWarning,
                    stacklevel=2,
                )
