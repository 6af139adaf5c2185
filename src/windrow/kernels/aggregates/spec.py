"""An aggregate: which function, over which column, to which type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["AggregateSpec", "Bools", "Evaluate", "Ints", "Partial", "Result", "added"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Result: TypeAlias = pa.Array | pa.ChunkedArray


@dataclass(frozen=True)
class AggregateSpec:
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
        The fractions of ``percentile``, each from 0 to 1. Whether one fraction returns a value or a list of
        one follows from `result_type`.
    ansi
        Whether an overflow raises. Else a bigint wraps round and a decimal becomes NULL.
    any_order
        Whether sums of floats are carried in two doubles, so that they hardly ever depend on the order of the
        rows: for groups that are recomputed as rows enter and leave.
    """

    function: str
    argument: str | None
    result_type: pa.DataType
    ignore_nulls: bool = False
    parameters: tuple[float, ...] = ()
    ansi: bool = True
    any_order: bool = False


@dataclass(frozen=True)
class Partial:
    """A mergeable aggregate: the state of a window is merged from states of ranges.

    Attributes
    ----------
    state
        From (aggregate, column, lo, hi), a table with one row per window; a window may be empty here.
    merge
        A function of (aggregate, left, right): row by row, the states of windows that consist of those of
        `left` followed by those of `right`.
    final
        From (aggregate, type of the column, states), the results.
    """

    state: Callable[[AggregateSpec, pa.ChunkedArray, Ints, Ints], pa.Table]
    merge: Callable[[AggregateSpec, pa.Table, pa.Table], pa.Table]
    final: Callable[[AggregateSpec, pa.DataType, pa.Table], Result]


def added(_spec: AggregateSpec, left: pa.Table, right: pa.Table) -> pa.Table:
    """The `merge` of states that are summed."""
    with np.errstate(all="ignore"):
        sums = [
            one.to_numpy() + other.to_numpy() for one, other in zip(left.columns, right.columns, strict=True)
        ]
    return pa.table(sums, left.column_names)


#: An implementation: the aggregate, its column (for ``count_star`` any), and the windows' bounds.
Evaluate = Callable[[AggregateSpec, pa.ChunkedArray, Ints, Ints], Result]
