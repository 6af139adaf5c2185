"""The parts of a named stream that its producers use."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from windrow.streams.definition import Definition
from windrow.streams.leases import Lease
from windrow.streams.log import Log
from windrow.streams.log_position import Batch, Position

__all__ = ["StreamFolder"]


class StreamFolder(Protocol):
    """The parts of a stream that a producer reads and writes."""

    @property
    def folder(self) -> Path:
        """The folder."""

    @property
    def definition(self) -> Definition:
        """Its columns and ordering."""

    @property
    def log(self) -> Log:
        """The entries."""

    @property
    def leases(self) -> Path:
        """The folder of the producers' leases."""

    @property
    def start(self) -> Position:
        """The position before the first remaining entry."""

    def position(self) -> Position:
        """The position after the last file."""

    def advanced(self, position: Position, until: int) -> tuple[Batch, Position]:
        """The entries after a position, up to a file that is known to be in the log."""

    def save(self, position: Position) -> None:
        """Save a position, so that later readers need not start at the first file."""

    def verify(self, lease: Lease) -> None:
        """Check that the log still has what it had when a lease was acquired."""

    def expire(self) -> list[str]:
        """Log producers with an expired lease as idle; return their names."""

    def retain(self) -> int:
        """Delete entries older than the stream's retention time; returns the number of files."""
