"""Conversion of Spark's rows to the types that a named stream stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from windrow.algebra.time_scale import TimeScale
from windrow.errors import NotSupportedError
from windrow.spark.errors import raising
from windrow.spark.logs.log_source import log_schema
from windrow.streams import NamedStream

__all__ = ["in_spark", "in_types", "scale_of", "type_in_spark"]


def scale_of(stream: NamedStream) -> TimeScale:
    """The unit of a named stream's rowtimes."""
    rowtime = stream.definition.rowtime
    found = TimeScale.of(in_spark(stream)[rowtime.column].dataType.simpleString())
    assert found is not None
    return replace(found, unit=rowtime.unit)


def in_types(stream: NamedStream, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Rows whose values, by position, are those of these columns, in the columns' types."""
    schema = in_spark(stream)
    numbered = rows.toDF(*(f"c{place}" for place in range(len(columns))))
    return numbered.select(*(_as_type(f"c{place}", schema[name]) for place, name in enumerate(columns)))


def in_spark(stream: NamedStream) -> StructType:
    """The columns of the log with Spark's types.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_TYPE``.
    """
    try:
        return log_schema(stream)
    except PySparkException as error:
        raise NotSupportedError(
            f"the stream in {stream.folder} has a column whose type Spark does not support",
            condition="UNSUPPORTED_TYPE",
            hint="read it with windrow.streams",
        ) from error


def type_in_spark(kind: pa.DataType) -> str:
    """The type of a stored column as SQL writes it."""
    return str(from_arrow_type(kind, prefer_timestamp_ntz=True).simpleString())


def _as_type(value: str, field: StructField) -> Column:
    """A value cast to the type of a column; a failed cast is an error in all of Spark's modes."""
    if isinstance(field.dataType, StructType | ArrayType | MapType):
        return F.col(value).cast(field.dataType).alias(field.name)
    found = F.col(value).try_cast(field.dataType)
    wrong = raising(
        "INVALID_VALUE",
        f"a value of column {field.name} is not {field.dataType.simpleString().upper()}",
        "convert the values first; nothing was inserted",
    )
    is_lost = F.col(value).isNotNull() & found.isNull()
    return F.when(is_lost, wrong).otherwise(found).alias(field.name)
