"""The changes of a relation as what became of each key, for targets that are kept up to date by key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructType

from windrow.errors import AnalysisError, InputError
from windrow.kernels.stages import upserts
from windrow.kernels.zset.relation import AT, DIFF
from windrow.spark.arrow import is_orderable
from windrow.spark.collected import frame_of_few
from windrow.spark.live.sinks.sink import Around, Sink
from windrow.spark.relations.varying import columns_of

__all__ = ["Upserts"]

_WORDS = ["-D", "+I", "+U"]


class Upserts(Around):
    """Gives a sink, of each key that a micro-batch has changed, the last row, or that there is none any more.

    The rows are those of the envelope ``"op"``: ``_op``, which is +I where the key had no row before, +U
    where it had another, and -D with the last row where it has none now; ``_at``, the last change of the key;
    and the columns. The changes of a micro-batch are on the driver.

    Parameters
    ----------
    inner
        The sink.
    names
        The columns of the relation.
    key
        The places among them of those that tell its rows apart.
    """

    def __init__(self, inner: Sink, names: Sequence[str], key: Sequence[int]) -> None:
        super().__init__(inner)
        self.names, self.key = tuple(names), tuple(key)
        self.mode = f"upsert by {', '.join(self.names[place] for place in self.key) or 'no columns'}"

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Take the changes of a micro-batch, in the envelope ``"diff"``.

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
        told = changes.toArrow()
        instants = told.column(AT)
        ticks = instants.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(instants.type) else instants
        told = told.set_column(told.column_names.index(AT), AT, ticks.cast(pa.int64()))
        became = upserts(told, [columns[place] for place in self.key])
        if became.twice is not None:
            raise self._twice(became.rows.slice(became.twice, 1))
        code = np.where(became.is_there, 1 + became.was_there, 0)
        operation = pa.DictionaryArray.from_arrays(code, _WORDS).cast(pa.string())
        at = pa.array(became.at)
        shown = at.cast(pa.int32()).cast(pa.date32()) if pa.types.is_date32(instants.type) else at
        table = pa.Table.from_arrays(
            [operation, shown.cast(instants.type), *became.rows.columns], names=["_op", "_at", *columns]
        )
        schema = StructType().add("_op", StringType()).add("_at", changes.schema[AT].dataType)
        schema = StructType([*schema, *(changes.schema[name] for name in columns)])
        frame = frame_of_few(rows.sparkSession, table, schema).toDF("_op", "_at", *self.names)
        return self.inner.write(frame, number)

    def _twice(self, row: pa.Table) -> InputError:
        values = [row.column(place)[0].as_py() for place in self.key]
        named = ", ".join(
            f"{self.names[place]} = {'NULL' if value is None else value}"
            for place, value in zip(self.key, values, strict=True)
        )
        return InputError(
            f"two rows have one key{f': {named}' if named else ', which has no columns'}",
            condition="KEY_NOT_UNIQUE",
            hint="name columns of which each combination is in one row at most: relation.start(…, key=…)",
        )
