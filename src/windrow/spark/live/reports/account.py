"""The account of a live query: what has become of every row that came.

A row is in it once. One that is late for some of its groups and counts in others is late; one that waits for
its streams to be known is held; a record that could not be read or computed is malformed, where such are
kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import ExecutionError

__all__ = ["Account"]


@dataclass(frozen=True)
class Account:
    """How many rows came, and what became of them, each counted by itself.

    Raises
    ------
    ExecutionError
        ``ACCOUNT_NOT_CLOSED``: the rows that came are not those that were used, are held, late or malformed.
    """

    came: int
    used: int
    held: int
    late: int
    malformed: int = 0

    def __post_init__(self) -> None:
        if self.came != self.used + self.held + self.late + self.malformed:
            raise ExecutionError(
                f"of {self.came} rows, {self.used} were used, {self.held} are held, {self.late} are late"
                f" and {self.malformed} malformed: that is not all of them",
                condition="ACCOUNT_NOT_CLOSED",
                hint="report it with the query: a row was lost, or counted twice",
            )

    @property
    def counts(self) -> dict[str, int]:
        """The same by the names that progress and checkpoints have."""
        return {
            "rows_in": self.came,
            "rows_used": self.used,
            "rows_held": self.held,
            "rows_late": self.late,
            "rows_malformed": self.malformed,
        }
