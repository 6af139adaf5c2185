"""The options of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windrow.errors import UsageError

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """The part of a relation that is drawn.

    Attributes
    ----------
    value
        The column of numbers or texts that is drawn; by default the first that the conditions read.
    key
        Draw only the partition with these values of PARTITION BY; of a time-varying relation, its key
        columns.
    partitions, rows
        The greatest number of partitions, and of rows of each.
    """

    value: str | None = None
    key: Any = None
    partitions: int = 3
    rows: int = 200

    def __post_init__(self) -> None:
        for name in ("partitions", "rows"):
            number = getattr(self, name)
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise UsageError(
                    f"{name}={number!r} is not a positive number",
                    condition="INVALID_ARGUMENT",
                    hint=f"write a number of 1 or more: {name}=3",
                )

    @property
    def keys(self) -> tuple[Any, ...]:
        """The values or columns of `key`, as a tuple."""
        if self.key is None:
            return ()
        return tuple(self.key) if isinstance(self.key, list | tuple) else (self.key,)
