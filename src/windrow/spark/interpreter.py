"""Which Python runs the functions that Windrow hands to Spark's workers.

Spark starts workers with ``PYSPARK_PYTHON`` or the ``python3`` on PATH, as it was when the user's session
began, which need not have Windrow. Where workers are on this machine, functions of ours are run by this
interpreter instead. PySpark takes it from the SparkContext, which is the user's and stays as it is: what is
changed is the function that Java has been handed. That is no public interface; so where the user's
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
from pyspark.sql.udf import UserDefinedFunction, _wrap_function
from pyspark.util import PythonEvalType

from windrow.spark.local import local_cores

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
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

_SOURCE = "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource"


def map_in_arrow(frame: DataFrame, function: Callable[..., Any], schema: StructType | str) -> DataFrame:
    """``frame.mapInArrow`` of a function of ours."""
    spark = frame.sparkSession
    if not is_another(spark):
        return frame.mapInArrow(function, schema)
    made = _OwnFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    return DataFrame(frame._jdf.mapInArrow(_called(made, frame), False, None), spark)


def apply_in_arrow(
    frame: DataFrame, keys: list[str], function: Callable[..., Any], schema: StructType | str
) -> DataFrame:
    """``frame.groupBy(*keys).applyInArrow`` of a function of ours that takes a table."""
    spark, grouped = frame.sparkSession, frame.groupBy(*keys)
    if not is_another(spark):
        return grouped.applyInArrow(function, schema)
    made = _OwnFunction(function, schema, evalType=PythonEvalType.SQL_GROUPED_MAP_ARROW_UDF)
    return DataFrame(grouped._jgd.flatMapGroupsInArrow(_called(made, frame)), spark)


def transform_with_state(grouped: GroupedData, processor: StatefulProcessor, schema: str) -> DataFrame:
    """``grouped.transformWithStateInPandas`` of a processor of ours, in append mode and without timers."""
    frame = grouped._df
    if not is_another(frame.sparkSession):
        return grouped.transformWithStateInPandas(processor, schema, "append", "None")
    from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasUdfUtils

    function = TransformWithStateInPandasUdfUtils(processor, "None").transformWithStateUDF
    made = _OwnFunction(function, schema, evalType=PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_UDF)
    kind = frame.sparkSession._jsparkSession.parseDataType(made.returnType.json())
    called = _called(made, frame)
    java = grouped._jgd.transformWithStateInPandas(called, kind, "append", "None", None, "")
    return DataFrame(java, frame.sparkSession)


def series_function(
    spark: SparkSession, function: Callable[..., Any], kind: DataType
) -> Callable[..., Column]:
    """``pandas_udf`` of a function of ours that takes and gives a Series."""
    if not is_another(spark):
        made: Callable[..., Column] = F.pandas_udf(function, kind)  # type: ignore[attr-defined]
        return made
    return _OwnFunction(function, kind, evalType=PythonEvalType.SQL_SCALAR_PANDAS_UDF)


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """``spark.dataSource.register`` of a source of ours."""
    if not is_another(spark):
        spark.dataSource.register(source)
        return
    context = spark.sparkContext
    made = getattr(context._jvm, _SOURCE)(_by_this_interpreter(_wrap_function(context, source)))
    spark._jsparkSession.dataSource().registerPython(source.name(), made)


def is_another(spark: SparkSession) -> bool:
    """Whether a session's workers are on this machine, and Python there is another than this."""
    context: Any = getattr(spark, "_sc", None)  # None on Spark Connect
    return (
        context is not None
        and local_cores(str(context.master)) is not None
        and not _is_own(context.pythonExec)
    )


class _OwnFunction(UserDefinedFunction):
    """A function that is run by this interpreter."""

    def _create_judf(self, *arguments: Any, **named: Any) -> JavaObject:
        made = super()._create_judf(*arguments, **named)
        return _with(made, "func", _by_this_interpreter(made.func()))


def _by_this_interpreter(function: JavaObject) -> JavaObject:
    return _with(function, "pythonExec", sys.executable)


def _with(made: Any, name: str, value: object) -> Any:
    """A copy of an instance of a Scala case class, with another value of a field; versions have others."""
    fields = {made.productElementName(at): made.productElement(at) for at in range(made.productArity())}
    return made.copy(*(fields | {name: value}).values())


def _called(function: UserDefinedFunction, frame: DataFrame) -> JavaObject:
    return function(*(frame[name] for name in frame.columns))._jc


def _is_own(python: str) -> bool:
    found = shutil.which(python)
    own = Path(sys.executable)  # empty where Python is embedded in another program
    # Not of the files behind links: environments have links to one interpreter.
    is_beside = found is not None and Path(found).absolute().parent == own.parent
    return not sys.executable or (is_beside and own.samefile(str(found)))
