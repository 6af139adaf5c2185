"""Steps on the driver: a micro-batch comes into memory, and its entries are judged there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructType

from windrow.errors import ExecutionError, WindrowError
from windrow.spark.gateway import Gateway
from windrow.spark.live.arrivals import VIOLATED, Came, came
from windrow.spark.live.checkpoint import Step
from windrow.spark.live.few import frame_of_few, is_plain
from windrow.spark.live.source import BOUND, PLACE, PRODUCER, PTIME
from windrow.spark.live.steps import STREAM, TICKS, Steps, inside
from windrow.spark.streams import ROWTIME, Stream

__all__ = ["TOO_LARGE", "Come", "InMemorySteps"]


@dataclass(frozen=True, eq=False)
class Come:
    """What a micro-batch brings: of each stream, how many entries they were, and the time of it."""

    found: Mapping[str, Came]
    entries: int
    now: int

    @property
    def count(self) -> int:
        """How many rows came, but for those that were in already."""
        return sum(one.count for one in self.found.values())


class InMemorySteps(Steps):
    """As :class:`windrow.spark.live.steps.Steps`, which says what it takes."""

    @property
    @abstractmethod
    def _result(self) -> StructType:
        """The columns that the query gives."""

    @cached_property
    def _gateway(self) -> Gateway:
        return Gateway(self._spark, self._plan.gateway.parameters)

    def _come(self, batch: DataFrame, before: Step) -> Come:
        """The entries of a micro-batch, judged."""
        entries = self._in_order(batch)
        names = [inside(number, PTIME) for number in (*range(len(self.streams())), TICKS)]
        times_of = [pc.max(entries.column(name)).as_py() for name in names if name in entries.column_names]
        now = max([before.counts.get("now", 0), *(time for time in times_of if time is not None)])
        return self._judged(entries, before, now)

    def _in_order(self, batch: DataFrame) -> pa.Table:
        """The entries of a micro-batch, in the order in which they came."""
        entries = self._collected(batch)
        return entries.sort_by(PLACE).drop_columns([PLACE]) if PLACE in entries.column_names else entries

    def _judged(self, entries: pa.Table, before: Step, now: int, *, timed: bool = False) -> Come:
        """The entries of each stream, judged; `timed` as :func:`arrivals` has it."""
        found = {
            name: came(
                name,
                stream,
                self._entries(entries, at, stream),
                before.clocks.get(name),
                now,
                timed=timed,
            )
            for at, name, stream in self.streams()
        }
        return Come(found, entries.num_rows, now)

    def _collected(self, batch: DataFrame) -> pa.Table:
        """The entries in the order in which they came."""
        try:
            with self._gateway.translated():
                return batch.drop(*self._constant()).toArrow()
        except WindrowError as error:
            if _LARGEST not in error.message:
                raise
            raise ExecutionError(
                f"a micro-batch has more rows than {_LARGEST} lets onto the driver",
                condition=TOO_LARGE,
                hint=f"set {_LARGEST} higher to go on, and limit what comes at once with maxFilesPerTrigger"
                " or maxOffsetsPerTrigger",
            ) from None

    def _constant(self) -> list[str]:
        """The columns that are the same in all rows."""
        streams = [(at, stream.live) for at, _, stream in self.streams() if stream.live is not None]
        constant = [
            inside(at, name) for at, live in streams for name in (PRODUCER, BOUND) if name not in live.given
        ]
        alone = len(streams) == 1 and streams[0][1].idle is None
        return [*constant, STREAM] if alone else constant

    def _entries(self, entries: pa.Table, at: int, stream: Stream) -> pa.Table:
        """The entries of a stream under their own names, and their places."""
        assert stream.live is not None
        names = stream.live.frame.columns
        shared = STREAM in entries.column_names
        own = entries.filter(pc.equal(entries.column(STREAM), at)) if shared else entries
        came = [name for name in names if inside(at, name) in own.column_names]
        table = own.select([inside(at, name) for name in came]).rename_columns(came).combine_chunks()
        for name, constant in ((PRODUCER, pa.scalar("")), (BOUND, pa.scalar(None, pa.int64()))):
            if name not in came:
                table = table.append_column(name, pa.repeat(constant, table.num_rows))
        return table.append_column(PLACE, pa.array(np.arange(table.num_rows)))

    def _late(self, name: str, late: pa.Table | None) -> DataFrame | None:
        """Late rows as a DataFrame."""
        if late is None:
            return None
        stream = self._plan.catalog.streams[name]
        fields = [field for field in stream.frame.schema if field.name in stream.columns]
        schema = StructType(fields).add(ROWTIME, LongType()).add(PRODUCER, StringType())
        schema = schema.add(VIOLATED, LongType())
        return frame_of_few(self._spark, late.select(schema.names), schema)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether files and tables in memory hold all columns as Spark would write them."""
        return is_plain(self._result)


TOO_LARGE = "MICRO_BATCH_TOO_LARGE"
"""The condition of an error."""
_LARGEST = "spark.driver.maxResultSize"
