"""The types of aggregates over a field in Spark: these need no analysis."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import DataType, DecimalType, DoubleType, FractionalType, IntegralType, LongType

from windrow.kernels.aggregates import FUNCTIONS, supports
from windrow.plan.arrow_types import arrow_type, contains, is_orderable

__all__ = ["kernel_type", "known_aggregate"]


def kernel_type(function: str, argument: DataType) -> pa.DataType | None:
    """The Arrow type of an argument of this type, if the kernel evaluates the aggregate as Spark does.

    >>> from pyspark.sql.types import YearMonthIntervalType
    >>> kernel_type("max", YearMonthIntervalType())
    DataType(int32)
    >>> kernel_type("avg", YearMonthIntervalType())
    """
    known = FUNCTIONS.get(function)
    if contains(argument, "collated") or (
        contains(argument, "months") and known is not None and known.between_values
    ):
        return None
    found = arrow_type(argument)
    return found if found is not None and supports(function, found) else None


def known_aggregate(function: str | None, argument: DataType) -> DataType | None:
    """The type of a simple aggregate of a field of this type; None if only Spark knows it.

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
