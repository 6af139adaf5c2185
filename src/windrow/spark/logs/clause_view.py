"""Views of windows and matches over streams, as other queries read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from windrow.spark.logs.micro_batch import MicroBatch, StreamOutput
from windrow.spark.logs.session_streams import Stream

__all__ = ["ClauseSource", "ClauseView", "Ends", "Feed", "Unbounded"]


@dataclass(frozen=True)
class Feed:
    """A stream from which rows arrive, with its unchanged columns, by their names in the rows."""

    stream: str
    columns: Mapping[str, str]

    def only(self, names: Mapping[str, str]) -> Feed:
        """The same for a selection of the columns, under other names."""
        found = {name: self.columns[column] for name, column in names.items() if column in self.columns}
        return Feed(self.stream, found)

    def where(self, wanted: Collection[str]) -> Feed:
        """The same for those of these columns of the stream."""
        return Feed(self.stream, {name: column for name, column in self.columns.items() if column in wanted})


@dataclass(frozen=True)
class ClauseSource:
    """A stream that a clause reads, whose punctuation closes partitions of the clause.

    Attributes
    ----------
    name, stream
        Its name, and the stream.
    keys
        The columns of the stream that are the partition keys, by the keys' names.
    """

    name: str
    stream: Stream
    keys: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the stream."""
        return tuple(dict.fromkeys(self.keys.values()))

    def __str__(self) -> str:
        """The text for EXPLAIN."""
        return f"{self.name} on {', '.join(self.columns)}"


Ends: TypeAlias = tuple[ClauseSource, ...]
"""The streams of a clause; punctuations of all of them must close a key before its partition is closed."""


@dataclass(frozen=True)
class Unbounded:
    """An operator with unbounded state: what it retains, and what would bound it."""

    operator: str
    retains: str
    needs: str

    def __str__(self) -> str:
        return f"{self.operator} retains {self.retains}: {self.needs}"


class ClauseView(Protocol):
    """A view of windows or matches, as a stream."""

    @property
    def streams(self) -> frozenset[str]:
        """The live streams that it is derived from; empty for recorded ones."""

    @property
    def read(self) -> frozenset[str]:
        """The streams that its query reads."""

    @property
    def views(self) -> Iterable[str]:
        """The views that it reads."""

    @property
    def text(self) -> str:
        """The statement that created it."""

    @property
    def label(self) -> str:
        """Its name in messages: that of the view, or the query in brackets."""

    @property
    def is_endless(self) -> bool:
        """Whether it has no recorded rows."""

    @property
    def lineage(self) -> tuple[Feed, ...]:
        """The live streams whose columns it contains unchanged."""

    def ends(self) -> Mapping[str, Ends]:
        """The streams that close partitions of its clauses and of those that it reads, by clause."""

    def unbounded(self) -> Sequence[Unbounded]:
        """The clauses with unbounded state, also those of views that it reads."""

    def windows(self) -> Mapping[str, str]:
        """The state of its clauses, and of those of views that it reads, by name."""

    def reasons(self) -> Mapping[str, str]:
        """Which rows these are, and until when they are retained, by the same names."""

    def retained(self) -> Mapping[str, tuple[str, ...]]:
        """The same as rows: of those that may be in the driver's memory."""

    def output(self, batch: MicroBatch) -> StreamOutput:
        """Its new rows in a micro-batch."""

    def recorded(self) -> Stream:
        """Its rows over recorded streams."""
