"""What an aggregate is told: which function, over which column, to which type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Aggregate", "Bools", "Evaluate", "Ints", "Result"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Result: TypeAlias = pa.Array | pa.ChunkedArray


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a query, as the planner hands it to the kernels.

    Parameters
    ----------
    function
        The canonical name, a key of ``windrow.kernels.aggregates.FUNCTIONS``.
    argument
        The column of the rows table that it reads; None for ``count_star`` alone.
    result_type
        The Arrow form of Spark's result type for this function and argument.
    ignore_nulls
        Whether ``first``, ``last`` and ``any_value`` pass over NULLs; the other functions always do.
    parameters
        The fractions of ``percentile``, each from 0 to 1. Whether one fraction gives a value or a list of
        one is told by `result_type`.
    ansi
        Whether an overflow raises. Else a bigint wraps round and a decimal becomes NULL.
    """

    function: str
    argument: str | None
    result_type: pa.DataType
    ignore_nulls: bool = False
    parameters: tuple[float, ...] = ()
    ansi: bool = True


#: An implementation: the aggregate, its column (for ``count_star`` any), and the windows' bounds.
Evaluate = Callable[[Aggregate, pa.ChunkedArray, Ints, Ints], Result]
