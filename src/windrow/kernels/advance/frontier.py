"""A lower bound of later rows: none is before the frontier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.kernels.pairs import PairRows, satisfied
from windrow.kernels.window_plan import ColumnRef, Operation, PairExpression

__all__ = ["Frontier", "reads_only", "retained_from"]

Array = np.ndarray


@dataclass(frozen=True)
class Frontier:
    """The frontier, in columns that increase with the order of the rows.

    `values` is a table of one row: the values of a row at the frontier in these columns. Later rows have
    values that are at least these, and equal in the `fixed` columns. Columns that are missing have no bound.
    """

    values: pa.Table
    fixed: frozenset[str] = frozenset()


def reads_only(expression: PairExpression, names: frozenset[str] | set[str]) -> bool:
    """Whether an expression reads only these columns, without shifts."""
    match expression:
        case ColumnRef(column=name, shift=shift, rank=rank):
            return name in names and shift == 0 and rank is None
        case Operation(operands=operands):
            return all(reads_only(operand, names) for operand in operands)
        case _:
            return True


def retained_from(
    expression: PairExpression,
    table: pa.Table,
    constants: pa.Table,
    frontier: pa.Table,
    sides: tuple[str, str],
    *,
    ansi: bool,
) -> Array:
    """Whether the expression is true for a row at the frontier as first side, and each row of a table as
    second.

    `frontier` has the columns that the expression reads: one row for each row of the table, or one for all.
    """
    count = table.num_rows
    names = frontier.column_names
    both = pa.concat_tables([table.select(names), frontier.cast(table.select(names).schema)]).combine_chunks()
    rows = PairRows(both, np.array([0, both.num_rows], np.int64), constants, (expression,), ansi)
    every = np.arange(count, dtype=np.int64)
    later = np.full(count, count, np.int64) if frontier.num_rows == 1 else count + every
    return satisfied(expression, rows, {sides[0]: later, sides[1]: every})
