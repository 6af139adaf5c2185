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
    from windrow.api import UNBOUNDED, Boundary, boundary, window_by
    from windrow.relation import Relation
    from windrow.session import Session
    from windrow.spark.live import LiveQuery, Memory

__version__ = "0.1.0"

__all__ = [
    "UNBOUNDED",
    "AnalysisError",
    "Boundary",
    "ExecutionError",
    "InputError",
    "LiveQuery",
    "Memory",
    "NotSupportedError",
    "ParseError",
    "Relation",
    "Session",
    "UsageError",
    "WindrowError",
    "__version__",
    "boundary",
    "window_by",
]

_NEED_SPARK = {
    "LiveQuery": "windrow.spark.live",
    "Memory": "windrow.spark.live",
    "Relation": "windrow.relation",
    "Session": "windrow.session",
    "UNBOUNDED": "windrow.api",
    "Boundary": "windrow.api",
    "boundary": "windrow.api",
    "window_by": "windrow.api",
}


def __getattr__(name: str) -> object:
    # on first use: `windrow doctor` must start where PySpark is missing or broken
    if name not in _NEED_SPARK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_NEED_SPARK[name]), name)
