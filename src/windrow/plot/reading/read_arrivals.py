"""The entries that arrived at a stream."""

from __future__ import annotations

from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.errors import UsageError
from windrow.plot.reading.chart_options import Options
from windrow.plot.reading.places import as_place, is_time
from windrow.plot.scene import Arrival, ArrivalScene, Axis
from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import ARRIVAL, ENTRY_BOUND, IS_LATE, PRODUCER, ROWTIME, Stream

__all__ = ["read_arrivals"]

_KINDS: dict[str, T.DataType] = {
    "bigint": T.LongType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
    "timestamp_ntz": T.TimestampNTZType(),
}


def read_arrivals(stream: Stream, options: Options) -> ArrivalScene:
    """The entries of a stream's log, in order of arrival, from the first on.

    Raises
    ------
    UsageError
        ``NOTHING_TO_DRAW`` for a stream without processing times.
    """
    arrival = stream.arrivals
    if arrival is None:
        raise UsageError(
            "there is nothing to draw: the stream has no processing times",
            condition="NOTHING_TO_DRAW",
            hint="name their column with PTIME or ptime=…; or draw a window of the stream",
        )
    scale = arrival.rowtime
    kind = arrival.judged.schema[ARRIVAL].dataType
    arrived = as_place(ARRIVAL, kind)
    rowtime, bound = (as_place(scale.to_column(name), _KINDS[scale.kind]) for name in (ROWTIME, ENTRY_BOUND))
    assert rowtime is not None
    assert bound is not None
    rows = arrival.judged.select(
        F.col(PRODUCER).alias("producer"), F.col(IS_LATE).alias("late"), rowtime.alias("rowtime"),
        bound.alias("bound"), F.col(ARRIVAL).alias("order"),
        (arrived if arrived is not None else F.lit(None).cast("double")).alias("arrived"),
    )  # fmt: skip
    gateway = Gateway(arrival.judged.sparkSession)
    with gateway.translated():
        # what came at once: rows before the bounds that rule the later ones out
        found = rows.orderBy("order", F.col("rowtime").isNull()).limit(options.rows).collect()
        count = rows.count()
    arrivals = tuple(
        Arrival(
            float(number if row["arrived"] is None else row["arrived"]),
            row["producer"] or "",
            row["rowtime"],
            row["bound"],
            row["late"],
        )
        for number, row in enumerate(found, 1)
    )
    is_number = scale.kind == "bigint"
    unit = f", {scale.unit.lower()}s" if is_number else ""
    x = Axis(
        arrival.time_column if arrived is not None else "number of the entry",
        is_time(kind),
        isinstance(kind, T.IntegralType),
    )
    return ArrivalScene(
        f"arrivals of {stream.name or 'the stream'}",
        x,
        Axis(f"{stream.rowtime or 'rowtime'}{unit}", not is_number, is_number),
        arrivals,
        count,
    )
