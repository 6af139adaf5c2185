"""Punctuation in a bucket of a query with EMIT: rows that it closes are complete, and not needed."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.plan.event_time import Closed
from windrow.spark.live.executors.bucket_state import Moment
from windrow.spark.live.executors.bucket_task import TaskStream, watermarks_in
from windrow.spark.live.operators.emit_program import Promising
from windrow.spark.recorded.punctuation_times import (
    ColumnPairs,
    LoggedPunctuation,
    PunctuationTimes,
    folded,
)
from windrow.streams.log_position import new_punctuations

__all__ = ["BucketPunctuation", "EmitPunctuation"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class EmitPunctuation:
    """The punctuation that a query reads.

    Attributes
    ----------
    times
        What its streams say before their first entry.
    schemas
        The columns of each stream that punctuations may name.
    closing
        The columns of streams that close its rows, all of which must be closed before a row is complete.
    places
        The streams by their places in the query.
    """

    times: PunctuationTimes
    schemas: Mapping[str, pa.Schema]
    closing: tuple[tuple[str, ColumnPairs], ...]
    places: Mapping[int, str]


@dataclass
class BucketPunctuation:
    """The punctuation so far, with the processing times at which it arrived."""

    read: EmitPunctuation
    logged: dict[str, LoggedPunctuation] = field(init=False)
    times: PunctuationTimes = field(init=False)
    last: int = field(init=False, default=-1)

    def __post_init__(self) -> None:
        self.logged = {name: [] for name in self.read.schemas}
        self.times = copy.deepcopy(self.read.times)

    @property
    def is_empty(self) -> bool:
        """Whether there has been none."""
        return not any(self.logged.values())

    def take(self, streams: Sequence[TaskStream], moment: Moment) -> None:
        """Add the punctuation of a micro-batch."""
        before, after = (watermarks_in(streams, marks) for marks in (moment.before, moment.marks))
        for name in self.logged:
            self._add(name, new_punctuations(moment.now, before[name], after[name]))

    def _add(self, name: str, news: Sequence[tuple[int, str]]) -> None:
        self.logged[name] += news
        self.times.take(name, news)
        self.last = max([self.last, *(at for at, _ in news)])

    def fold(self, since: int) -> None:
        """Merge what arrived before a processing time, if it is much."""
        for name, one in self.logged.items():
            self.logged[name] = folded(one, since, self.read.schemas[name])

    @property
    def to_json(self) -> Mapping[str, Any]:
        """What :meth:`restore` needs."""
        return self.logged

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Add what was stored."""
        for name, one in stored.items():
            self._add(name, [(at, text) for at, text in one])

    @property
    def promising(self) -> Promising | None:
        """Since when it makes rows complete; None if it never does."""
        if not self.read.closing:
            return None

        def since(rows: pa.Table) -> npt.NDArray[np.int64]:
            found = [self.times.since(name, columns, rows) for name, columns in self.read.closing]
            return reduce(np.maximum, found)

        return Promising(since, self.last)

    def closed(self, by: Sequence[Closed], rows: pa.Table, until: int) -> Bools:
        """Which rows any of these conditions has closed by a processing time."""
        places, found = self.read.places, np.zeros(rows.num_rows, bool)
        for each in by:
            if self.times.may_close(each, places):
                found |= self.times.over(each, places, rows) <= until
        return found
