"""A window in brackets as an input of operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.incremental.bracket_windows.membership import BracketWindow
from windrow.kernels.incremental.timed_rows import TimedRows, Times

__all__ = ["WindowInput"]


@dataclass(frozen=True)
class WindowInput:
    """A window of a live stream, and its retained rows.

    Attributes
    ----------
    name
        The name of its state, in the checkpoint.
    window
        When rows enter and leave.
    schema
        The schema of retained rows, including the rowtime.
    at_arrival
        Whether operators read its rows as they arrive, and not as they enter and leave.
    closes
        Whether punctuation may close keys of its rows, so that all of them are looked at.
    """

    name: str
    window: BracketWindow
    schema: pa.Schema
    at_arrival: bool = False
    closes: bool = False

    @property
    def rests(self) -> bool:
        """Whether a micro-batch needs not look at rows that neither enter nor leave."""
        return (self.window.is_by_time or self.rests_by_key) and not self.closes

    @property
    def rests_by_key(self) -> bool:
        """Whether rows rest until rows of their partition arrive."""
        return self.window.row_slide == 1 and bool(self.marked)

    @property
    def marked(self) -> tuple[tuple[str, ...], ...]:
        """The keys by which rows are looked up: those of its partitions, if rows of these are counted."""
        window = self.window
        return (window.partition,) if window.rows is not None and window.partition else ()

    def moving(self, retained: TimedRows, times: Times, columns: Sequence[str]) -> pa.Table:
        """These columns of the rows that operators read in a micro-batch, with `ENTER` and `LEAVE`."""
        if self.at_arrival:
            return retained.arriving(times, columns, self.window.rowtime)
        return retained.moving(times, columns)

    def unread(self, retained: TimedRows, frontier: int) -> TimedRows:
        """The rows that operators have not read at a frontier."""
        is_later = retained.enter >= frontier
        return retained.where(np.zeros(len(retained), bool) if self.at_arrival else is_later)
