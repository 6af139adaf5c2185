"""The settings of the shell's output."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.cli.output.formats import Format

__all__ = ["CHANGELOGS", "MODES", "Settings"]

MODES = ("table", "changelog", "json", "csv", "markdown")
CHANGELOGS = ("op", "delta", "diff", "cql")
"""The forms of a changelog; the first one unless the user names another."""


@dataclass
class Settings:
    """The settings that dot commands change.

    Attributes
    ----------
    mode
        One of `MODES`. In mode changelog, time-varying relations are printed as inserts and deletes.
    envelope
        One of `CHANGELOGS`.
    timer
        Whether the duration of each statement is printed.
    limit
        How many rows are printed; None for 50 in a table, else all.
    """

    mode: str = "table"
    envelope: str = CHANGELOGS[0]
    timer: bool = True
    limit: int | None = None

    @property
    def form(self) -> Format:
        """The form of the rows."""
        return Format.TABLE if self.mode == "changelog" else Format(self.mode)
