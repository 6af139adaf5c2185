"""The reference interpreter: what a query means, as slow and obvious Python over rows.

It is the judge in the property tests and can be selected to run a query. It shares nothing with what it
judges but the errors: no fast kernel, no numpy, no Spark, and a parser of its own.
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
