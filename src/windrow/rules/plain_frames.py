"""Rule: find windows that are frames of a fixed number of rows, like OVER (… ROWS BETWEEN …).

    TYPE SLIDING LABEL AS l AT lp WHEN l.val < 25 START AT sp WHEN lp - sp = 1 END AT ep WHEN ep - lp = 1
    →  the row before to the row after, of rows where l.val < 25

Spark supports such frames too. Its aggregates over them equal the kernel's if both are exact: Spark's float
sums depend on the order of addition, the kernel's do not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from windrow.algebra.physical import PlanDraft
from windrow.algebra.window_node import WindowBoundary
from windrow.kernels.window_plan import ColumnRef, ConstantRef, Number, Operation, PairExpression
from windrow.syntax.nodes import Role, Side

__all__ = ["PlainFrame", "plain_frame"]

_WHOLE = frozenset({"tinyint", "smallint", "int"})
_COMPARED = _WHOLE | {"bigint", "date", "timestamp", "timestamp_ntz", "string", "boolean"}
_DECIMAL = re.compile(r"decimal\((\d+),\d+\)")
_ADDED_DIGITS = 10
"""How many more digits Spark's type for a sum of decimals has than the decimals."""
_DIGITS = 38


@dataclass(frozen=True)
class PlainFrame:
    """From how many rows before a row to how many after it.

    Attributes
    ----------
    before, after
        The numbers of rows.
    own
        The boundary whose row that is: LABEL, or START.
    """

    before: int
    after: int
    own: WindowBoundary

    @property
    def rows(self) -> int:
        """The number of rows of a frame."""
        return self.before + 1 + self.after


def plain_frame(draft: PlanDraft, types: Mapping[str, str]) -> PlainFrame | None:
    """The frame of all windows, if Spark's aggregates over it are the kernel's; else None.

    Parameters
    ----------
    draft
        The window, after all other rules.
    types
        Spark's types of the hoisted columns.
    """
    window = draft.window
    own = window.label or window.start
    if window.tumbling or window.end is None or draft.spark_aggregates or not window.partition_by:
        return None
    if any(one.only or one.unbounded for one in window.boundaries()) or not _reads_own_row(draft, own):
        return None
    after = _distance(draft, Side.END, own.side)
    before = 0 if window.label is None else _distance(draft, Side.START, own.side)
    if after is None or before is None or after < 0 or before > 0:
        return None
    exact = all(
        _is_exact(call.function, None if column is None else types[column])
        for call, column in draft.kernel_aggregates
    )
    return PlainFrame(-before, after, own) if exact else None


def _distance(draft: PlanDraft, side: Side, own: Side) -> int | None:
    """How many rows after a window's own row a boundary is; None if it is another row."""
    found = draft.search(side)
    if found is None or found.search.strategy != "position" or found.search.comparison != "=":
        return None
    return found.search.offset if found.search.base == own.value else None


def _reads_own_row(draft: PlanDraft, own: WindowBoundary) -> bool:
    """Whether the condition on a window's own row reads no neighbours."""
    predicate = draft.predicate(own.side)
    if predicate is None:
        return own.when is None
    alone = sum(variable.role is Role.ROW for variable in own.variables) == 1
    return alone and predicate.typed is not None and _reads_row(predicate.typed)


def _reads_row(expression: PairExpression) -> bool:
    match expression:
        case ColumnRef(shift=shift):
            return not shift
        case Operation(operands=operands):
            return all(map(_reads_row, operands))
        case ConstantRef() | Number():
            return True
    return False


def _is_exact(function: str | None, kind: str | None) -> bool:
    """Whether Spark and the kernel return the same value for any rows; a type of None stands for rows."""
    decimal = _DECIMAL.fullmatch(kind or "")
    match function:
        case "count" | "count_star":
            return True
        case "min" | "max":
            return kind in _COMPARED or decimal is not None
        case "sum":
            return kind in _WHOLE or (decimal is not None and int(decimal[1]) + _ADDED_DIGITS <= _DIGITS)
        case "avg":
            return kind in _WHOLE
    return False
