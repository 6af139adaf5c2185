"""The new punctuation of the streams after a micro-batch, as patterns.

A bound is a punctuation here: the pattern of all rowtimes before it.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import StructType

from windrow.punctuations import EVERYTHING, Pattern, Values
from windrow.punctuations.lines import line_of
from windrow.spark.live.operators.punctuated.row_maps import arrow_schema
from windrow.spark.logs.session_streams import Stream
from windrow.streams import FOREVER, NO_BOUND, WatermarkState

__all__ = ["new_patterns", "reached", "schema_of"]


def schema_of(stream: Stream) -> pa.Schema:
    """The columns of a stream as an Arrow schema."""
    return arrow_schema(StructType([stream.frame.schema[column] for column in stream.columns]))


def reached(watermark: WatermarkState | None) -> int:
    """The least rowtime that may still arrive."""
    return NO_BOUND if watermark is None or watermark.value is None else watermark.value


def new_patterns(
    schema: pa.Schema,
    rowtime: str | None,
    before: WatermarkState | None,
    after: WatermarkState,
    bounds: tuple[int, int] | None = None,
) -> tuple[Pattern, ...]:
    """The new punctuation of a stream after a micro-batch.

    Parameters
    ----------
    schema, rowtime
        Its columns, and that of the rowtime.
    before, after
        Its watermark before the micro-batch, None before the first, and after it.
    bounds
        The least rowtimes that may still arrive, before and after; by default those of the watermark.
    """
    known = frozenset() if before is None else frozenset(before.shared)
    patterns = [Pattern.from_json(text, schema) for text in after.shared if text not in known]
    if rowtime is None:
        return (*patterns, EVERYTHING) if after.value == FOREVER else tuple(patterns)
    line = line_of(schema.field(rowtime).type)
    if before is None:  # a row without a rowtime is none
        patterns.append(Pattern.of({rowtime: Values(line, null=True, spans=())}))
    first, last = (reached(before), reached(after)) if bounds is None else bounds
    if last > first:
        if last == FOREVER:
            return (*patterns, EVERYTHING)
        place = min(max(last, line.first), line.end)
        patterns.append(Pattern.of({rowtime: Values(line, null=False, spans=((line.first, place),))}))
    return tuple(pattern for pattern in patterns if not pattern.is_empty)
