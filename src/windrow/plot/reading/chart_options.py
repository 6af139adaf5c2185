"""What a caller may say of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windrow.errors import UsageError

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """What is drawn of a relation.

    Attributes
    ----------
    value
        The column whose values are drawn; without, the first numeric one that the query's conditions read.
    key
        Draw only the partition with these values of PARTITION BY; of a relation that varies, the columns
        that tell its rows apart.
    partitions, rows
        At most so many partitions, and rows of each.
    """

    value: str | None = None
    key: Any = None
    partitions: int = 3
    rows: int = 200

    def __post_init__(self) -> None:
        for name in ("partitions", "rows"):
            given = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool) or given < 1:
                raise UsageError(
                    f"{name}={given!r} is no number of {name} to draw",
                    condition="INVALID_ARGUMENT",
                    hint=f"give a number from 1: {name}=3",
                )

    @property
    def keys(self) -> tuple[Any, ...]:
        """The values or columns of `key`, however many were given."""
        if self.key is None:
            return ()
        return tuple(self.key) if isinstance(self.key, list | tuple) else (self.key,)
