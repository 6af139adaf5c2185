"""The reference interpreter: what a query means, as slow and obvious Python over rows.

Property tests compare with it, and it can be selected to run a query. It shares only the errors with what it
checks: no fast kernel, no numpy, no Spark, and a separate parser.
"""

from windrow.kernels.reference.aggregates import aggregate
from windrow.kernels.reference.scalar_expressions import compile_expression
from windrow.kernels.reference.window_by import (
    BoundRow,
    Env,
    OrderKey,
    ReferenceBoundary,
    Row,
    WindowBy,
    window_by,
)

__all__ = [
    "BoundRow",
    "Env",
    "OrderKey",
    "ReferenceBoundary",
    "Row",
    "WindowBy",
    "aggregate",
    "compile_expression",
    "window_by",
]
