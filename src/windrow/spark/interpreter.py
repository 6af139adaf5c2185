"""Which Python runs the functions that Windrow hands to Spark's workers."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from windrow.spark.local import local_cores

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["map_in_arrow", "own_interpreter"]

_ONE_AT_A_TIME = threading.RLock()


def map_in_arrow(frame: DataFrame, function: Callable[..., Any], schema: StructType | str) -> DataFrame:
    """``frame.mapInArrow`` of a function of ours, see :func:`own_interpreter`."""
    with own_interpreter(frame.sparkSession):
        return frame.mapInArrow(function, schema)


@contextmanager
def own_interpreter(spark: SparkSession) -> Iterator[None]:
    """Have functions that are made in the block run by this interpreter, where workers are on this machine.

    Spark starts workers with ``PYSPARK_PYTHON`` or the ``python3`` on PATH, as it was when the user's session
    began, which need not have Windrow. Each function carries the interpreter that its session has when it is
    made, so those of the user's made before and after have theirs.
    """
    context: Any = getattr(spark, "_sc", None)  # None on Spark Connect
    if context is None or local_cores(str(context.master)) is None or _is_own(context.pythonExec):
        yield
        return
    with _ONE_AT_A_TIME:
        before, context.pythonExec = context.pythonExec, sys.executable
        try:
            yield
        finally:
            context.pythonExec = before


def _is_own(python: str) -> bool:
    found = shutil.which(python)
    own = Path(sys.executable)  # empty where Python is embedded in another program
    # Not of the files behind links: environments have links to one interpreter.
    is_beside = found is not None and Path(found).absolute().parent == own.parent
    return not sys.executable or (is_beside and own.samefile(str(found)))
