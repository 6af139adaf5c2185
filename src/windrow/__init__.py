"""Windrow: the temporal SQL that Apache Spark does not have."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from windrow.errors import (
    AnalysisError,
    ExecutionError,
    InputError,
    NotSupportedError,
    ParseError,
    UsageError,
    WindrowError,
)

if TYPE_CHECKING:
    from windrow import datasets as datasets
    from windrow import notebook as notebook
    from windrow import plot as plot
    from windrow import streams as streams
    from windrow import testing as testing
    from windrow.relation import Relation
    from windrow.session import Session
    from windrow.spark.live import Files, Kafka, LiveQuery, Memory, Table
    from windrow.statements.pipeline import Pipeline
    from windrow.without_sql.matches import match_recognize
    from windrow.without_sql.window_function import UNBOUNDED, Boundary, boundary, window_by

__version__ = "0.1.0"

__all__ = [
    "UNBOUNDED",
    "AnalysisError",
    "Boundary",
    "ExecutionError",
    "Files",
    "InputError",
    "Kafka",
    "LiveQuery",
    "Memory",
    "NotSupportedError",
    "ParseError",
    "Pipeline",
    "Relation",
    "Session",
    "Table",
    "UsageError",
    "WindrowError",
    "__version__",
    "boundary",
    "match_recognize",
    "window_by",
]

_NEED_SPARK = {
    "Files": "windrow.spark.live",
    "Kafka": "windrow.spark.live",
    "LiveQuery": "windrow.spark.live",
    "Memory": "windrow.spark.live",
    "Pipeline": "windrow.statements.pipeline",
    "Relation": "windrow.relation",
    "Session": "windrow.session",
    "Table": "windrow.spark.live",
    "UNBOUNDED": "windrow.without_sql.window_function",
    "Boundary": "windrow.without_sql.window_function",
    "boundary": "windrow.without_sql.window_function",
    "match_recognize": "windrow.without_sql.matches",
    "window_by": "windrow.without_sql.window_function",
}
_PUBLIC_MODULES = ("datasets", "notebook", "plot", "streams", "testing")


def load_ipython_extension(ipython: object) -> None:
    """The entry point of ``%load_ext windrow``: see `docs/notebook.md`."""
    importlib.import_module("windrow.notebook").load(ipython)


if not TYPE_CHECKING:  # else any name would be one of this package

    def __getattr__(name: str) -> object:
        # on first use: `windrow doctor` must start where PySpark is missing or broken
        if name in _PUBLIC_MODULES:
            return importlib.import_module(f"windrow.{name}")
        if name not in _NEED_SPARK:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        importlib.import_module("windrow.spark.runtime.version").check_version()
        return getattr(importlib.import_module(_NEED_SPARK[name]), name)
