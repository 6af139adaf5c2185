"""The rows of recorded streams beside live ones in a query with EMIT: they arrive at their processing
times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from windrow.kernels.zset.relation import ENTER
from windrow.spark.analysis.arrow_columns import in_memory
from windrow.spark.arrow import encode
from windrow.spark.logs.session_streams import ARRIVED, ROWTIME
from windrow.spark.recorded.emission import Emitted
from windrow.streams.entries import BEFORE
from windrow.syntax.sqltext import quoted

__all__ = ["RecordedRows"]


@dataclass(frozen=True, eq=False)
class RecordedRows:
    """The rows of a stream in order of arrival, with `ROWTIME`, `ARRIVED` and `BEFORE`."""

    rows: pa.Table
    arrived: npt.NDArray[np.int64]

    @staticmethod
    def of(query: Emitted, name: str, columns: Sequence[str]) -> RecordedRows:
        """The rows of a query's stream, with these of its columns: read once, and never written."""
        frame = query.log_of(name)
        frame = frame.select(*map(quoted, columns), ROWTIME, F.col(ENTER).alias(ARRIVED), BEFORE)
        travelling = [encode(F.col(quoted(one.name)), one.dataType).alias(one.name) for one in frame.schema]
        with query.gateway.translated():
            rows = frame.select(travelling).toArrow().cast(in_memory(frame.schema))
        rows = rows.sort_by(ARRIVED).combine_chunks()
        return RecordedRows(rows, rows.column(ARRIVED).to_numpy())

    def between(self, since: int | None, until: int) -> pa.Table:
        """The rows that arrive after one processing time, up to another."""
        first = 0 if since is None else int(np.searchsorted(self.arrived, since, "right"))
        return self.rows.slice(first, int(np.searchsorted(self.arrived, until, "right")) - first)

    def next(self, until: int) -> int | None:
        """When the next row arrives after a processing time."""
        later = self.arrived[np.searchsorted(self.arrived, until, "right") :]
        return int(later[0]) if len(later) else None
