"""Late rows of a live query: they go to a side output, or are an error."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from windrow.errors import AnalysisError
from windrow.spark.collected import frame_of_collected
from windrow.spark.live.checkpoints.side_outputs import SideOutput
from windrow.spark.live.input.arrivals import VIOLATED
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.logs.live_source import PRODUCER
from windrow.spark.logs.session_streams import REASON, ROWTIME, Stream
from windrow.streams.entries import REASONS
from windrow.syntax.sqltext import quoted

__all__ = ["LATE_SCHEMA", "LateRows", "late_columns"]

LATE_SCHEMA = StructType(
    [
        *(StructField(name, StringType()) for name in ("stream", "row", "rowtime", "bound", "producer")),
        StructField("batch", LongType()),
        StructField("reason", StringType()),
    ]
)
"""The columns of late rows; for quarantined bounds, `row` is NULL."""


class LateRows:
    """The late rows of a query.

    Parameters
    ----------
    plan
        The query.
    side
        Its side output.
    on_late
        As for :meth:`windrow.relation.Relation.start`.
    """

    def __init__(self, plan: LivePlan, side: SideOutput, on_late: str) -> None:
        self._plan, self._side, self._on_late = plan, side, on_late

    def frame(self, name: str, late: pa.Table | None) -> DataFrame | None:
        """Late rows of a stream as a DataFrame; None if there are none."""
        if late is None:
            return None
        schema = self.schema(name, VIOLATED).add(REASON, StringType())
        return frame_of_collected(self._plan.gateway.spark, late.select(schema.names), schema)

    def schema(self, name: str, *ticks: str) -> StructType:
        """The columns of a stream's rows: its own, and the added ones."""
        stream = self._plan.catalog.streams[name]
        fields = [field for field in stream.frame.schema if field.name in stream.columns]
        schema = StructType(fields).add(ROWTIME, LongType()).add(PRODUCER, StringType())
        for own in ticks:
            schema = schema.add(own, LongType())
        return schema

    def set_aside(self, late: Mapping[str, pa.Table | DataFrame | None], number: int) -> None:
        """Write the late rows of each stream in a micro-batch, in memory or as DataFrames.

        Raises
        ------
        AnalysisError
            ``LATE_ROW``: late rows of the stream, or of the query, are errors.
        """
        found: DataFrame | None = None
        for name, one in late.items():
            rows = one if isinstance(one, DataFrame) else self.frame(name, one)
            if rows is None:
                continue
            stream = self._plan.catalog.streams[name]
            fails = stream.live is not None and stream.live.on_late == "fail"
            if fails or self._on_late == "fail":
                raise _late_row(name, rows)
            batch = F.lit(number).cast("bigint").alias("batch")
            shown = late_columns(name, stream, rows).select("*", batch).select(*LATE_SCHEMA.names)
            found = shown if found is None else found.unionByName(shown)
        if found is not None:
            self._side.write(found, number)


def _late_row(name: str, rows: DataFrame) -> AnalysisError:
    """The error for late rows of a stream."""
    first = rows.select(REASON).first()
    assert first is not None
    reasons = {
        "punctuation": "it matches a punctuation of its producer",
        "future": "its rowtime is too far ahead of its processing time",
        "future bound": "it carries a bound that is too far ahead of its processing time",
    }
    return AnalysisError(
        f"a row of stream {name} is late: "
        + reasons.get(first[REASON], "its rowtime was below the bound when it arrived"),
        condition="LATE_ROW",
        hint="set on_late='keep', in SQL ON LATE KEEP, which puts late rows into a side output",
    )


def late_columns(name: str, stream: Stream, rows: DataFrame) -> DataFrame:
    """Late rows of a stream for users: `LATE_SCHEMA` without the micro-batch.

    Parameters
    ----------
    rows
        With the stream's columns, `ROWTIME`, `VIOLATED`, `PRODUCER` and `REASON`.
    """
    is_row = F.col(REASON) != REASONS[-1]
    return rows.select(
        F.lit(name).alias("stream"),
        F.when(is_row, F.to_json(F.struct(*map(quoted, stream.columns)))).alias("row"),
        F.expr(stream.scale.to_column(ROWTIME)).cast("string").alias("rowtime"),
        F.expr(stream.scale.to_column(VIOLATED)).cast("string").alias("bound"),
        F.col(PRODUCER).alias("producer"),
        F.col(REASON).alias("reason"),
    )
