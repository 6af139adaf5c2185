"""The account of a live query: every row that arrived is used, buffered, late or malformed.

Each row counts once. A row that is late for some of its groups only is late. A row that waits for the
watermark is buffered. A record that could not be read or computed is malformed, if such records go to a side
output.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import ExecutionError

__all__ = ["Account"]


@dataclass(frozen=True)
class Account:
    """How many rows arrived, and how many of them were used, buffered, late or malformed.

    Raises
    ------
    ExecutionError
        ``ACCOUNT_NOT_CLOSED``: the numbers do not add up to that of arrived rows.
    """

    arrived: int
    used: int
    buffered: int
    late: int
    malformed: int = 0

    def __post_init__(self) -> None:
        if self.arrived != self.used + self.buffered + self.late + self.malformed:
            raise ExecutionError(
                f"of {self.arrived} rows, {self.used} are used, {self.buffered} buffered, {self.late} late"
                f" and {self.malformed} malformed, which does not add up",
                condition="ACCOUNT_NOT_CLOSED",
                hint="report this as a bug, with the query: a row was lost, or counted twice",
            )

    @property
    def counts(self) -> dict[str, int]:
        """The numbers by the names in progress and checkpoints."""
        return {
            "rows_in": self.arrived,
            "rows_used": self.used,
            "rows_buffered": self.buffered,
            "rows_late": self.late,
            "rows_malformed": self.malformed,
        }
