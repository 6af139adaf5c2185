"""Views of windows and matches, as queries that read them know them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from windrow.spark.logs.micro_batch import Coming, MicroBatch
from windrow.spark.logs.session_streams import Stream

__all__ = ["ClauseSource", "ClauseView", "Ends", "Feed", "Unbounded"]


@dataclass(frozen=True)
class Feed:
    """A stream from which rows come, and of columns those of the stream that they are."""

    stream: str
    columns: Mapping[str, str]

    def only(self, names: Mapping[str, str]) -> Feed:
        """Of other columns, which are these ones."""
        found = {name: self.columns[column] for name, column in names.items() if column in self.columns}
        return Feed(self.stream, found)

    def where(self, wanted: Collection[str]) -> Feed:
        """Of the columns that are such ones of the stream."""
        return Feed(self.stream, {name: column for name, column in self.columns.items() if column in wanted})


@dataclass(frozen=True)
class ClauseSource:
    """A stream whose rows come to a clause, and what ends partitions there.

    Attributes
    ----------
    name, stream
        Its name, and the stream.
    keys
        Of the columns that hold the keys: the columns of the stream that they are.
    """

    name: str
    stream: Stream
    keys: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the stream."""
        return tuple(dict.fromkeys(self.keys.values()))

    def __str__(self) -> str:
        """In words."""
        return f"{self.name} on {', '.join(self.columns)}"


Ends: TypeAlias = tuple[ClauseSource, ...]
"""What ends the partitions of a clause: all of these have to be closed for a key."""


@dataclass(frozen=True)
class Unbounded:
    """An operator whose state grows as long as the query runs, and what would bound it."""

    operator: str
    keeps: str
    needs: str

    def __str__(self) -> str:
        return f"{self.operator} keeps {self.keeps}: {self.needs}"


class ClauseView(Protocol):
    """A view of windows or matches, as a stream."""

    @property
    def streams(self) -> frozenset[str]:
        """The live streams behind it; of recorded ones none."""

    @property
    def read(self) -> frozenset[str]:
        """The streams that its query reads."""

    @property
    def views(self) -> Iterable[str]:
        """The views that it reads."""

    @property
    def text(self) -> str:
        """The statement that made it."""

    @property
    def shown(self) -> str:
        """How users know it: by its name, or the query in brackets that it is."""

    @property
    def is_endless(self) -> bool:
        """Whether there are no recorded rows of it."""

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """The live streams whose columns it passes on."""

    def ends(self) -> Mapping[str, Ends]:
        """What ends the partitions of its clauses, and of those that it follows, by their keys."""

    def unbounded(self) -> Sequence[Unbounded]:
        """The clauses, also of views that it reads, whose state grows as long as queries run."""

    def windows(self) -> Mapping[str, str]:
        """What is kept for its clauses, and those of the views that it reads."""

    def coming(self, batch: MicroBatch) -> Coming:
        """What it gives in a micro-batch."""

    def recorded(self) -> Stream:
        """The stream of what it gives over what was recorded."""
