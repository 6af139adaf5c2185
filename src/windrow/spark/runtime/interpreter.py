"""The Python interpreter for Windrow's functions in Spark's workers.

Spark starts workers with ``PYSPARK_PYTHON`` or the ``python3`` on PATH, as of the start of the user's
session; that Python need not have Windrow. If workers are on this machine, this interpreter runs Windrow's
functions instead. PySpark reads the interpreter from the SparkContext, which belongs to the user and is not
changed; Windrow changes the function object in Java. That is no public interface, so if the user's
interpreter is this one, PySpark's own functions are called.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.util import PythonEvalType

from windrow.spark.jvm import local_functions
from windrow.spark.runtime.local import local_cores

if TYPE_CHECKING:
    from pyspark.sql import GroupedData
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import DataType, StructType

__all__ = [
    "apply_in_arrow",
    "is_another",
    "map_in_arrow",
    "register_source",
    "series_function",
    "transform_with_state",
]


def map_in_arrow(frame: DataFrame, function: Callable[..., Any], schema: StructType | str) -> DataFrame:
    """``frame.mapInArrow`` with this interpreter."""
    if not is_another(frame.sparkSession):
        return frame.mapInArrow(function, schema)
    return local_functions.map_in_arrow(frame, function, schema)


def apply_in_arrow(
    frame: DataFrame, keys: list[str], function: Callable[..., Any], schema: StructType | str
) -> DataFrame:
    """``frame.groupBy(*keys).applyInArrow`` of a function of a table, with this interpreter."""
    if not is_another(frame.sparkSession):
        return frame.groupBy(*keys).applyInArrow(function, schema)
    return local_functions.apply_in_arrow(frame, keys, function, schema)


def transform_with_state(grouped: GroupedData, processor: StatefulProcessor, schema: str) -> DataFrame:
    """``grouped.transformWithStateInPandas`` with this interpreter, in append mode and without timers."""
    frame = grouped._df
    if not is_another(frame.sparkSession):
        return grouped.transformWithStateInPandas(processor, schema, "append", "None")
    from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasUdfUtils

    function = TransformWithStateInPandasUdfUtils(processor, "None").transformWithStateUDF
    return local_functions.transform_with_state(grouped, function, schema)


def series_function(
    spark: SparkSession, function: Callable[..., Any], kind: DataType
) -> Callable[..., Column]:
    """``pandas_udf`` of a function from Series to Series."""
    if not is_another(spark):
        made: Callable[..., Column] = F.pandas_udf(function, kind)  # type: ignore[attr-defined]
        return made
    return local_functions.OwnFunction(function, kind, evalType=PythonEvalType.SQL_SCALAR_PANDAS_UDF)


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """``spark.dataSource.register`` with this interpreter."""
    if not is_another(spark):
        spark.dataSource.register(source)
    else:
        local_functions.register_source(spark, source)


def is_another(spark: SparkSession) -> bool:
    """Whether a session's workers are on this machine and use another Python."""
    context: Any = getattr(spark, "_sc", None)  # None on Spark Connect
    return (
        context is not None
        and local_cores(str(context.master)) is not None
        and not _is_own(context.pythonExec)
    )


def _is_own(python: str) -> bool:
    found = shutil.which(python)
    own = Path(sys.executable)  # empty where Python is embedded in another program
    # Not of the files behind links: environments have links to one interpreter.
    is_beside = found is not None and Path(found).absolute().parent == own.parent
    return not sys.executable or (is_beside and own.samefile(str(found)))
