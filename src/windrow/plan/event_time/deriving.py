"""The state of the derivation for one plan, which the rules for all kinds of nodes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import DataType

from windrow.algebra.rewriting.time_windows_as_sql import TimeWindow
from windrow.errors import Span
from windrow.plan import nodes as plan
from windrow.plan.columns import Column, Scope
from windrow.plan.event_time.facts import (
    EventColumn,
    Facts,
    Judging,
    Occurrence,
)
from windrow.plan.event_time.late import late_for_groups
from windrow.plan.event_time.notes import note
from windrow.plan.visible import VisibleColumns
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["Derived", "Deriving", "EventTimeSource", "number_id", "watermark_id"]

Typed = Callable[[SqlText, Scope, Sequence[Column]], DataType]
Derived = tuple[plan.Node, Facts]


@dataclass(frozen=True)
class EventTimeSource:
    """An input of a plan: a stream, or a table function over streams.

    Attributes
    ----------
    streams
        The stream, in lower case; for a user's table function the streams that it reads.
    rowtime
        The column of the stream's rowtime; None for a function.
    has_punctuations
        Whether the stream may have punctuations.
    zoned
        The type of the rowtime, if it depends on a time zone with daylight saving time.
    """

    streams: frozenset[str]
    rowtime: str | None
    has_punctuations: bool = False
    zoned: str | None = None


class Deriving:
    """The state of the derivation for one plan.

    Parameters
    ----------
    derive
        Derives a node and its facts from those of its inputs; its last argument says whether a node above
        removes late rows.
    tokens, sources, waits, place, typed, ttl
        As for :class:`EventTimes`; `waits` says whether the query has AFTER WATERMARK.

    Attributes
    ----------
    occurrences
        The streams, by their places in the query.
    hidden, visible
        The additional columns of inputs, by key; and the object that adds columns to nodes.
    notes
        EXPLAIN's notes about nodes, by their `id`.
    until
        The columns with the ends of the validity of versions.
    judgings
        The conditions by which rows are late for groups.
    sessions
        For each SESSION that rows wait for: the node, the place of its stream, the column of the end, SQL for
        a watermark in their time, and the window, if it is over the stream itself.
    called_own, met_by_keys, has_ttl, lacks_end
        Whether a user's table function is called; punctuation closes rows of a join; keys have a state TTL;
        some group has no key of event time.
    """

    def __init__(
        self,
        derive: Callable[[Deriving, plan.Node, bool], Derived],
        tokens: TokenList,
        sources: Mapping[str, EventTimeSource],
        waits: bool,
        place: tuple[str, Span | None],
        typed: Typed,
        ttl: tuple[Callable[[str], int], tuple[str, Span]] | None,
    ) -> None:
        self._derive, self.tokens, self.sources, self.waits, self.place = (
            derive,
            tokens,
            sources,
            waits,
            place,
        )
        self.typed, self.ttl = typed, ttl
        self.occurrences: dict[int, Occurrence] = {}
        self.hidden: dict[str, list[Column]] = {}
        self.visible = VisibleColumns(self.hidden)
        self.notes: dict[int, str] = {}
        self.until: set[str] = set()
        self.judgings: list[Judging] = []
        self.sessions: list[tuple[plan.Node, int, str, str, TimeWindow | None]] = []
        self.called_own = self.met_by_keys = self.has_ttl = self.lacks_end = False
        self._known: dict[int, tuple[plan.Node, Derived]] = {}
        self._made_ids = 0

    def of(self, node: plan.Node, *, judged: bool) -> Derived:
        """A node with its additional columns, and its facts.

        Parameters
        ----------
        judged
            Whether a node above removes rows that are late for groups.
        """
        if id(node) not in self._known:
            self._known[id(node)] = node, self._derive(self, node, judged)
        return self._known[id(node)][1]

    def add(self, node: plan.Node, facts: Facts) -> None:
        """Register a node that the derivation has added, with its facts."""
        self._known[id(node)] = node, (node, facts)

    def note(self, node: plan.Node, facts: Facts, state: str | None = None) -> None:
        """Record the output mode and the state of a node for EXPLAIN."""
        if facts.reads_streams:
            self.notes[id(node)] = note(node, facts, state)

    def fresh(self, count: int) -> list[str]:
        """Unused ids for a number of columns."""
        self._made_ids += 1
        return [f"e{self._made_ids}_{at}" for at in range(count)]

    def late(
        self, facts: Facts, timed_keys: Sequence[tuple[SqlText, EventColumn]]
    ) -> tuple[SqlText, dict[int, str]] | None:
        """The condition under which rows are late for groups, and the columns with the watermarks in it."""
        timed_keys = [
            each for each in timed_keys if each[1].decides_late and each[1].origins & facts.watermarks
        ]
        origins = {at for _, event in timed_keys for at in event.origins} & facts.watermarks
        if not origins or not facts.raw:
            return None
        for _, event in timed_keys:
            judged = (Judging(event.mapped, event.mapped, at) for at in sorted(event.origins & origins))
            self.judgings.extend(judged)
        marks = self.marks(facts, origins)
        return late_for_groups(timed_keys, marks), marks

    def marks(self, facts: Facts, origins: Iterable[int]) -> dict[int, str]:
        """The columns with the watermarks of streams; their rows carry them from here on."""
        # rows wait for the watermarks of all these streams, also for those that a join does not show
        waited = {self.occurrences[at].stream for at in facts.finality.complete if at in self.occurrences}
        for at in origins:
            self.occurrences[at] = replace(self.occurrences[at], watermark_of=facts.streams | waited)
        return {at: watermark_id(at) for at in sorted(origins)}


def watermark_id(place: int) -> str:
    """The id of the column of a stream with the watermark before each row."""
    return f"w{place}"


def number_id(place: int) -> str:
    """The id of the column of a stream with its row numbers."""
    return f"n{place}"
