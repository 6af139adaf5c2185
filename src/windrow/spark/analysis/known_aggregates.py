"""Types of aggregates over a field, as Spark has them: no question to its analyser is needed for these."""

from __future__ import annotations

from pyspark.sql.types import DataType, DecimalType, DoubleType, FractionalType, IntegralType, LongType

from windrow.spark.arrow import contains, is_orderable

__all__ = ["known_aggregate"]


def known_aggregate(function: str | None, argument: DataType) -> DataType | None:
    """The type of a plain aggregate of a field of this type; None if only Spark knows it.

    >>> from pyspark.sql.types import IntegerType
    >>> known_aggregate("sum", IntegerType()), known_aggregate("avg", IntegerType())
    (LongType(), DoubleType())
    """
    is_whole = isinstance(argument, IntegralType)
    is_number = is_whole or (isinstance(argument, FractionalType) and not isinstance(argument, DecimalType))
    match function:
        case "count":
            return LongType()
        case "sum" if is_number:
            return LongType() if is_whole else DoubleType()
        case "avg" if is_number:
            return DoubleType()
        case "min" | "max" if is_orderable(argument) and not contains(argument, "collated"):
            return argument
    return None
