"""Windrow: the temporal SQL that Apache Spark does not have."""

from __future__ import annotations

from windrow.errors import (
    AnalysisError,
    ExecutionError,
    InputError,
    NotSupportedError,
    ParseError,
    UsageError,
    WindrowError,
)
from windrow.relation import Relation
from windrow.session import Session

__version__ = "0.1.0"

__all__ = [
    "AnalysisError",
    "ExecutionError",
    "InputError",
    "NotSupportedError",
    "ParseError",
    "Relation",
    "Session",
    "UsageError",
    "WindrowError",
    "__version__",
]
