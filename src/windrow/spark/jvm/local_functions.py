"""Functions and sources that run in this interpreter, whatever the session's is; for classic sessions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.udf import UserDefinedFunction, _wrap_function
from pyspark.util import PythonEvalType

if TYPE_CHECKING:
    from pyspark.sql import GroupedData
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

__all__ = ["OwnFunction", "apply_in_arrow", "map_in_arrow", "register_source", "transform_with_state"]


class OwnFunction(UserDefinedFunction):
    """A function that runs in this interpreter, whatever the session's is."""

    def _create_judf(self, *arguments: Any, **named: Any) -> Any:
        made = super()._create_judf(*arguments, **named)
        return _with(made, "func", _by_this_interpreter(made.func()))


def map_in_arrow(frame: DataFrame, function: Callable[..., Any], schema: StructType | str) -> DataFrame:
    """``frame.mapInArrow`` in this interpreter, for a classic session."""
    made = OwnFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    return DataFrame(frame._jdf.mapInArrow(_called(made, frame), False, None), frame.sparkSession)


def apply_in_arrow(
    frame: DataFrame, keys: list[str], function: Callable[..., Any], schema: StructType | str
) -> DataFrame:
    """``frame.groupBy(*keys).applyInArrow`` in this interpreter, for a classic session."""
    made = OwnFunction(function, schema, evalType=PythonEvalType.SQL_GROUPED_MAP_ARROW_UDF)
    grouped = frame.groupBy(*keys)
    return DataFrame(grouped._jgd.flatMapGroupsInArrow(_called(made, frame)), frame.sparkSession)


def transform_with_state(grouped: GroupedData, function: Callable[..., Any], schema: str) -> DataFrame:
    """``grouped.transformWithStateInPandas`` in this interpreter, in append mode and without timers."""
    frame = grouped._df
    made = OwnFunction(function, schema, evalType=PythonEvalType.SQL_TRANSFORM_WITH_STATE_PANDAS_UDF)
    kind = frame.sparkSession._jsparkSession.parseDataType(made.returnType.json())
    called = _called(made, frame)
    java = grouped._jgd.transformWithStateInPandas(called, kind, "append", "None", None, "")
    return DataFrame(java, frame.sparkSession)


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """``spark.dataSource.register`` in this interpreter, for a classic session."""
    context: Any = spark.sparkContext
    sources = context._jvm.org.apache.spark.sql.execution.datasources.v2.python
    made = sources.UserDefinedPythonDataSource(_by_this_interpreter(_wrap_function(context, source)))
    spark._jsparkSession.dataSource().registerPython(source.name(), made)


def _by_this_interpreter(function: Any) -> Any:
    return _with(function, "pythonExec", sys.executable)


def _with(made: Any, name: str, value: object) -> Any:
    """A copy of an instance of a Scala case class with another value of a field; fields differ between
    versions.
    """
    fields = {made.productElementName(at): made.productElement(at) for at in range(made.productArity())}
    return made.copy(*(fields | {name: value}).values())


def _called(function: UserDefinedFunction, frame: DataFrame) -> Any:
    return function(*(frame[name] for name in frame.columns))._jc
