"""SQL values as Python values, and rows as the variables of a query are bound to them.

The reference interpreter works on the values that PySpark collects: int, float, Decimal, str, bytes, bool,
date, datetime, timedelta (a day-time interval), lists and mappings (structs), and None for NULL. Values do
not carry their declared types. So it cannot compute what depends on a type alone, such as the width of an
integer or the precision of a decimal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from windrow.errors import AnalysisError

__all__ = [
    "DECIMALS",
    "BoundRow",
    "Env",
    "Months",
    "Row",
    "SubqueryValues",
    "canonical",
    "mismatch",
    "numbers",
]

Row = Mapping[str, Any]
"""Field name to value, None for NULL."""

Env = Mapping[str, Any]
"""Variable name to a :class:`BoundRow`, a position or None; in PARTITION BY and ORDER BY, a row itself."""

DECIMALS = Context(prec=700, rounding=ROUND_HALF_UP)
"""Wide enough for a product of two decimals and for any double written out: nothing is rounded unasked."""


class SubqueryValues(tuple[Any, ...]):
    """The values that a subquery of one column returns, as IN reads them."""


class BoundRow(Mapping[str, Any]):
    """A row as a variable is bound to it: it reads as its fields and has an identity of its own.

    In SQL (``comparison.equals``) two of them are equal when they are the same row. In Python they compare by
    value as any mapping, so a result can be compared with plain dictionaries. A row found *inside* a
    row is an ordinary struct and is handed out as a dictionary.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Row) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> Any:
        value = self._fields[name]
        return dict(value) if isinstance(value, BoundRow) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"BoundRow({dict(self._fields)!r})"


@dataclass(frozen=True, order=True)
class Months:
    """A year-month interval."""

    count: int


def canonical(value: Any) -> Any:
    """A hashable stand-in that is equal for values which group together: NULLs, NaNs, the two zeros."""
    if isinstance(value, float):
        # Adding zero turns -0.0 into 0.0.
        return _NAN if math.isnan(value) else value + 0.0
    if isinstance(value, Mapping):
        return tuple((name, canonical(part)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(canonical(part) for part in value)
    return value


def numbers(left: Any, right: Any) -> tuple[Any, Any] | None:
    """The two as numbers of one type (int, Decimal or float), or None if one is no number."""
    if not (_is_number(left) and _is_number(right)):
        return None
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return Decimal(left), Decimal(right)
    return left, right


def mismatch(what: str, *values: Any) -> AnalysisError:
    """The error for an operation that has no meaning for operands of these types."""
    types = ", ".join(type(value).__name__ for value in values)
    message = f"{what} is not defined for {types}"
    return AnalysisError(message, condition="DATATYPE_MISMATCH", sqlstate="42K09")


_NAN = object()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
