"""The folder of a named stream, as its producers use it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from windrow.streams.definition import Definition
from windrow.streams.leases import Lease
from windrow.streams.log import Log
from windrow.streams.log_position import Batch, Position

__all__ = ["StreamFolder"]


class StreamFolder(Protocol):
    """What a producer reads of its stream, and writes there."""

    @property
    def folder(self) -> Path:
        """The folder."""

    @property
    def definition(self) -> Definition:
        """Its columns and order."""

    @property
    def log(self) -> Log:
        """The entries."""

    @property
    def leases(self) -> Path:
        """The folder of the producers' leases."""

    def position(self) -> Position:
        """The position after the last file."""

    def advanced(self, position: Position, until: int) -> tuple[Batch, Position]:
        """The entries after a position, up to a file that is known to be in the log."""

    def keep(self, position: Position) -> None:
        """Keep a position, so that those who come later need not read all of the log."""

    def verify(self, lease: Lease) -> None:
        """See that the log still has what it had when a lease was taken."""

    def expire(self) -> list[str]:
        """Log producers as idle that have died; their names."""
