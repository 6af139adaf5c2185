"""The columns that a CQL query in memory reads from its streams, and those that Spark computes from
each row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.algebra.time_scale import TimeScale
from windrow.errors import InputError
from windrow.plan.columns import ROWS
from windrow.spark.analysis.arrow_columns import travelling
from windrow.spark.catalog import Catalog
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.input.entry_columns import inside
from windrow.spark.live.reading.windowed_query import MINE, WindowedQuery, WindowedSide
from windrow.spark.logs.session_streams import ROWTIME
from windrow.syntax.sqltext import quoted

__all__ = ["WindowedColumns"]


@dataclass(frozen=True)
class WindowedColumns:
    """Reads entries for a query over windows; `gateway` is of the session with the query's names, and `scale`
    the unit of its instants.
    """

    gateway: Gateway
    catalog: Catalog
    windowed: WindowedQuery
    scale: TimeScale

    def retained(self, side: WindowedSide) -> dict[str, str]:
        """The retained columns besides rowtimes and tie-breakers: columns of the stream, and computed
        ones.
        """
        ours = (*side.columns, *side.window.ties, ROWTIME)
        computed = {name: f"__{side.name}_{name}" for name in side.schema.names if name not in ours}
        return {**side.columns, **computed}

    def computed(
        self, side: WindowedSide, frame: DataFrame, columns: Mapping[str, str], mine: Column
    ) -> DataFrame:
        """Rows with the columns computed from those of a stream, whose columns have these names in the frame.

        The names are generated, so no text can refer to them by accident.
        """
        assert side.computed is not None
        text, names = side.computed
        stream = self.catalog.streams[side.stream] if side.made is None else side.made.stream
        renamed = [
            F.col(quoted(columns[own])).alias(name) for own, name in zip(stream.columns, names, strict=True)
        ]
        made = travelling(self.gateway.sql(text, {ROWS: frame.select("*", *renamed, mine.alias(MINE))}))
        return made.drop(*names, MINE).withColumnsRenamed(
            {inner: own for inner, own in self.retained(side).items() if inner not in side.columns}
        )

    def reading(
        self, frame: DataFrame, at: int, name: str, is_row: Column
    ) -> tuple[DataFrame, dict[str, dict[str, str]]]:
        """Entries with the columns computed from the rows of a stream with this number and name; and for each
        window, the columns of the entries by the names in `retained`.
        """
        stream, sides = self.catalog.streams[name], {}
        for side in self.windowed.windows:
            if side.stream != name:
                continue
            if side.computed is not None:
                named = {own: inside(at, own) for own in stream.columns}
                frame = self.computed(side, frame, named, is_row)
            sides[side.name] = {
                own: inside(at, own) if inner in side.columns else own
                for inner, own in self.retained(side).items()
            }
        return frame, sides

    def rows(self, side: WindowedSide, rows: pa.Table) -> pa.Table:
        """The retained columns of rows: copied, computed, and rowtimes on the query's time scale."""
        if not rows.num_rows:
            return side.schema.empty_table()
        stream = self.catalog.streams[side.stream] if side.made is None else side.made.stream
        factor = stream.scale.nanoseconds // self.scale.nanoseconds
        ticks = rows.column(ROWTIME)
        if factor > 1:
            if (np.abs(ticks.to_numpy()) > 2**62 // factor).any():
                raise InputError(
                    f"a rowtime is too large to count in {self.scale.unit.lower()}s",
                    condition="ROWTIME_OVERFLOW",
                )
            ticks = pc.multiply_checked(ticks, factor)
        read = self.retained(side)
        columns = {inner: rows.column(name) for inner, name in read.items() if name in rows.column_names}
        later = {inner: name for inner, name in read.items() if inner not in columns}
        if later:  # whole rows arrived, without computed columns
            schema = StructType([field for field in stream.frame.schema if field.name in stream.columns])
            named = {name: inside(0, name) for name in schema.names}
            frame = frame_of_collected(self.gateway.spark, rows.select(schema.names), schema).toDF(
                *named.values()
            )
            computed = self.computed(side, frame, named, F.lit(True)).select(*map(quoted, later.values()))
            with self.gateway.translated():
                made = computed.toArrow()
            columns |= {inner: made.column(name) for inner, name in later.items()}
        columns |= {tie: rows.column(tie) for tie in side.window.ties}
        columns[ROWTIME] = ticks
        names = side.schema.names
        return pa.table([columns[name] for name in names], names=names).cast(side.schema)
