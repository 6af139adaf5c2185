"""The changes of a relation as upserts and deletes, for targets with a key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructType

from windrow.errors import AnalysisError, InputError
from windrow.kernels.incremental import upserts
from windrow.kernels.zset.relation import AT, DIFF
from windrow.plan.arrow_types import is_orderable
from windrow.spark.analysis.collations import ranked
from windrow.spark.collected import frame_of_collected
from windrow.spark.live.sinks.sink import Around, Sink
from windrow.spark.relations.time_varying_relation import columns_of

__all__ = ["Upserts"]

_WORDS = ["-D", "+I", "+U"]


class Upserts(Around):
    """Writes the last row, or the deletion, of each key that a micro-batch has changed to a sink.

    The rows are in the envelope ``"op"``: ``_op`` is +I for a new key, +U for a changed row, and -D with the
    last row for a deleted key; ``_at`` is the last change of the key; then come the columns. The changes of a
    micro-batch are collected on the driver.

    Parameters
    ----------
    inner
        The sink.
    names
        The columns of the relation.
    key
        The places of the key columns among them.
    """

    def __init__(self, inner: Sink, names: Sequence[str], key: Sequence[int]) -> None:
        super().__init__(inner)
        self.names, self.key = tuple(names), tuple(key)
        self.mode = f"upsert by {', '.join(self.names[place] for place in self.key) or 'no columns'}"

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Write the upserts of a micro-batch, whose changes are in the envelope ``"diff"``.

        Raises
        ------
        AnalysisError
            ``UNORDERABLE_TYPE``: rows cannot be compared by a column.
        InputError
            ``KEY_NOT_UNIQUE``: a key has two rows at once.
        """
        columns = columns_of(self.names)
        changes = rows.toDF(*columns, DIFF, AT)
        for name, field in zip(self.names, changes.schema, strict=False):
            if not is_orderable(field.dataType):
                kind = field.dataType.simpleString().upper()
                raise AnalysisError(
                    f"rows cannot be compared by column {name} of type {kind}",
                    condition="UNORDERABLE_TYPE",
                    sqlstate="42822",
                    hint="use a field of it, or cast it in the query",
                )
        collected = changes.toArrow()
        instants = collected.column(AT)
        ticks = instants.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(instants.type) else instants
        collected = collected.set_column(collected.column_names.index(AT), AT, ticks.cast(pa.int64()))
        compared = ranked(rows.sparkSession, collected, changes.schema)
        became = upserts(collected, [columns[place] for place in self.key], compared)
        if became.twice is not None:
            raise self._twice(became.rows.slice(became.twice, 1))
        code = np.where(became.is_there, 1 + became.was_there, 0)
        operation = pa.DictionaryArray.from_arrays(code, _WORDS).cast(pa.string())
        at = pa.array(became.at)
        typed = at.cast(pa.int32()).cast(pa.date32()) if pa.types.is_date32(instants.type) else at
        table = pa.Table.from_arrays(
            [operation, typed.cast(instants.type), *became.rows.columns], names=["_op", "_at", *columns]
        )
        schema = StructType().add("_op", StringType()).add("_at", changes.schema[AT].dataType)
        schema = StructType([*schema, *(changes.schema[name] for name in columns)])
        frame = frame_of_collected(rows.sparkSession, table, schema).toDF("_op", "_at", *self.names)
        return self.inner.write(frame, number)

    def _twice(self, row: pa.Table) -> InputError:
        values = [row.column(place)[0].as_py() for place in self.key]
        named = ", ".join(
            f"{self.names[place]} = {'NULL' if value is None else value}"
            for place, value in zip(self.key, values, strict=True)
        )
        return InputError(
            f"two rows have the same key{f': {named}' if named else ', which has no columns'}",
            condition="KEY_NOT_UNIQUE",
            hint="name columns that identify a row: relation.start(…, key=…)",
        )
