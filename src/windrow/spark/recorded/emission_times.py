"""When queries with EMIT emit, in which unit of processing time, and the windows of time of the reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, Span
from windrow.plan import nodes
from windrow.plan.event_time.window_times import window_of
from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import StreamArrivals
from windrow.spark.relations.table_functions_in_from import windows_by_definition
from windrow.syntax.sqltext import RelationText, SqlText

__all__ = ["Materialization", "WindowsByDefinition", "common_ptime"]


@dataclass(frozen=True)
class Materialization:
    """When a query emits, with lengths of time in ticks.

    Attributes
    ----------
    watermark
        AFTER WATERMARK.
    delay
        AFTER DELAY, in ticks of processing time.
    lateness
        ALLOWED LATENESS, in ticks of each stream's rowtime.
    until
        AS OF SYSTEM TIME: the last processing time that counts.
    """

    watermark: bool = False
    delay: int | None = None
    lateness: Mapping[str, int] | None = None
    until: int | None = None


def common_ptime(arrivals: Iterable[StreamArrivals], place: tuple[str, Span]) -> TimeScale:
    """The common unit of the logs' processing times.

    Raises
    ------
    AnalysisError
        ``NO_COMMON_CLOCK``.
    """
    scales = {arrival.ptime for arrival in arrivals}
    if len(scales) != 1:
        raise AnalysisError(
            "the processing times of the streams have different types",
            condition="NO_COMMON_CLOCK",
            sql=place[0],
            span=place[1],
            hint="cast the PTIME columns to one type",
        )
    return scales.pop()


class WindowsByDefinition:
    """Replaces the time windows that a plan computes by those of the reference.

    Parameters
    ----------
    gateway, frames
        The session, and the relations of the plan by their keys.
    """

    def __init__(self, gateway: Gateway, frames: Mapping[str, DataFrame]) -> None:
        self._gateway, self.frames = gateway, dict(frames)

    def __call__(self, node: nodes.TimeWindows | nodes.SessionWindows, rows: SqlText) -> SqlText:
        """A query for the rows with their windows."""
        key = f"__windows{len(self.frames)}"
        input_rows = self._gateway.sql(rows, self.frames)
        inside = node.rows if isinstance(node, nodes.TimeWindows) else node.input
        time = next(column for column in inside.columns if column.id == node.time)
        window = window_of(node, time, by_ids=True)
        self.frames[key] = windows_by_definition(self._gateway, window, input_rows)
        return SqlText.of("SELECT * FROM ", RelationText(key))
