"""Windows of time over relations that vary, as an operator."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pyspark.sql.types import StructField, StructType

from windrow.algebra.clock import Clock
from windrow.algebra.time_windows import last_instant
from windrow.algebra.windows_in_text import windows_in
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.kernels.zset.time_windows import TimeWindows
from windrow.spark.keyed import can_be_keyed, run_keyed
from windrow.spark.scope import Rows, SparkTexts
from windrow.syntax.queries import FromItem, Select

__all__ = ["TimedRows"]


class TimedRows(SparkTexts, ABC):
    """Blocks that are there to add windows of time; takes what :class:`SparkTexts` does."""

    @abstractmethod
    def _source(self, item: FromItem, position: int) -> Rows:
        """The relation that stands in FROM."""

    def _windowed(self, select: Select) -> Rows | None:
        """The rows with their windows; None where they are to be found as any block is.

        So are windows other than sessions where tasks compute them: Spark needs no exchange for these.
        """
        found = windows_in(self.tokens, select)
        if found is None or (found.kind != "SESSION" and self.gateway.operators is None):
            return None
        rows = self._source(found.rows, select.items[0][0])
        own = found.rows.columns or rows.names
        inside = {name.lower(): f"c{number}" for number, name in enumerate(own)}
        if not rows.varies or not can_be_keyed(rows.frame) or len(inside) < len(own):
            return None
        time = inside[found.time.lower()]
        kind = rows.frame.schema[time].dataType
        clock = Clock.of(kind.simpleString(), "NANOSECOND")
        if clock is None or clock.kind != kind.simpleString():
            return None
        names = (*own, *found.names)
        columns = [f"c{number}" for number in range(len(names))]
        added = columns[len(own) :]
        fields = [field for field in rows.frame.schema if field.name not in (ENTER, LEAVE)]
        result = StructType([*fields, *(StructField(name, kind) for name in added)])
        windows = TimeWindows(found.kind, time, found.lengths, tuple(added), last_instant(clock))
        keys = [inside[key.lower()] for key in found.keys]
        frame = run_keyed(self.gateway, "windows", [rows.frame], keys, result, windows=windows)
        # a row changes its session at an instant
        net_by = None if found.kind == "SESSION" else rows.net_by
        return Rows(frame.select(*columns, ENTER, LEAVE), names, varies=True, net_by=net_by)
