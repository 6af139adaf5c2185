"""How results are shown, as the user has set it."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.cli.output.formats import Format

__all__ = ["CHANGELOGS", "MODES", "Settings"]

MODES = ("table", "changelog", "json", "csv", "markdown")
CHANGELOGS = ("op", "delta", "diff", "cql")
"""The forms of a changelog; the first one unless the user names another."""


@dataclass
class Settings:
    """What the commands with a dot set.

    Attributes
    ----------
    mode
        One of `MODES`. As a changelog, relations that vary are shown by what enters and leaves.
    envelope
        One of `CHANGELOGS`.
    timer
        Whether the time that a statement took is told.
    limit
        How many rows are shown; None for 50 in a table, else all.
    """

    mode: str = "table"
    envelope: str = CHANGELOGS[0]
    timer: bool = True
    limit: int | None = None

    @property
    def form(self) -> Format:
        """The form of the rows."""
        return Format.TABLE if self.mode == "changelog" else Format(self.mode)
