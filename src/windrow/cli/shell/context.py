"""The interface of the shell for its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from windrow.cli.shell.backend import Backend
from windrow.cli.shell.shell_settings import Settings

if TYPE_CHECKING:
    from windrow.relation import Relation
    from windrow.session import Session
    from windrow.spark.live import LiveQuery

__all__ = ["CommandContext"]


class CommandContext(Protocol):
    """The shell, as commands use it.

    Attributes
    ----------
    backend, settings
        The session, and the settings of the output.
    started
        The live queries that were started here, by their names.
    """

    backend: Backend
    settings: Settings
    started: dict[str, LiveQuery]

    def run_lines(self, text: str) -> None:
        """Run the statements and commands of a text, one after the other."""

    def run_statements(self, text: str) -> None:
        """Run statements between semicolons, and show the rows of each."""

    def last_relation(self) -> Relation:
        """The result of the last query."""

    def parameters(self, session: Session) -> dict[str, Any]:
        """The values of `--param`."""

    def began(self, query: LiveQuery) -> None:
        """Register a started live query."""

    def refresh(self) -> None:
        """Look up the tables and their columns for completion."""
