"""The columns that a CQL query in memory reads of its streams, and those that Spark computes of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windrow.plan.columns import ROWS
from windrow.spark.analysis.arrow_columns import travelling
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live.input.entry_columns import inside
from windrow.spark.live.reading.windowed_query import MINE, WindowedQuery, WindowedSide
from windrow.spark.logs.session_streams import ROWTIME
from windrow.syntax.sqltext import quoted

__all__ = ["WindowedColumns"]


@dataclass(frozen=True)
class WindowedColumns:
    """Reads entries for a query over windows; `gateway` is of the session in which its names are known."""

    gateway: Gateway
    catalog: Catalog
    windowed: WindowedQuery

    def retained(self, side: WindowedSide) -> dict[str, str]:
        """What is retained of rows but rowtimes and ties: columns of the stream, and those that are
        computed.
        """
        ours = (*side.columns, *side.window.ties, ROWTIME)
        computed = {name: f"__{side.name}_{name}" for name in side.schema.names if name not in ours}
        return {**side.columns, **computed}

    def computed(
        self, side: WindowedSide, frame: DataFrame, columns: Mapping[str, str], mine: Column
    ) -> DataFrame:
        """Rows with what is computed of those of a stream, whose columns have these names in the frame.

        They are names of ours: no text may mean them.
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
        """Entries with what is computed of the rows of a stream, whose number and name these are; and of each
        window of it what is retained: by the names that `retained` gives, the columns of the entries.
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
