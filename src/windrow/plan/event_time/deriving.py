"""What the derivation of one plan has found out, and what its steps have in common."""

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
from windrow.plan.shown import Shown
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["Derived", "Deriving", "EventTimeSource", "number_id", "watermark_id"]

Typed = Callable[[SqlText, Scope, Sequence[Column]], DataType]
Derived = tuple[plan.Node, Facts]


@dataclass(frozen=True)
class EventTimeSource:
    """What an input of a plan is.

    Attributes
    ----------
    streams
        The stream, in lower case; of a function of one's own those that it reads.
    rowtime
        The column of the stream's rowtime; None for a function.
    promises
        Whether the stream may promise patterns.
    clocks
        The type of the rowtime, where it goes by a zone that sets clocks.
    """

    streams: frozenset[str]
    rowtime: str | None
    promises: bool = False
    clocks: str | None = None


class Deriving:
    """The state of the derivation of one plan.

    Parameters
    ----------
    derive
        What is known of a node, by what is known of its inputs, and whether late rows are left out above.
    tokens, sources, waits, place, typed, lifetime
        As :class:`EventTimes` has them; whether AFTER WATERMARK is asked.

    Attributes
    ----------
    occurrences
        The streams, by where they stand.
    hidden, shown
        The columns that inputs have besides their own, by key; shows columns of nodes.
    notes
        What EXPLAIN says of nodes, by their `id`.
    until
        The columns of functions that say until when versions are valid.
    judgings
        What says which rows are late for groups.
    sessions
        Of each sessions that rows wait for: the node, its stream's place, the column of the end, what a
        watermark is in their time, and the window, where they are of the stream itself.
    called_own, met_by_keys, has_lives, lacks_end
        Whether a function of one's own is called; promises say when rows of a join meet no others; keys have
        a lifetime; some group has no key of event time.
    """

    def __init__(
        self,
        derive: Callable[[Deriving, plan.Node, bool], Derived],
        tokens: TokenList,
        sources: Mapping[str, EventTimeSource],
        waits: bool,
        place: tuple[str, Span | None],
        typed: Typed,
        lifetime: tuple[Callable[[str], int], tuple[str, Span]] | None,
    ) -> None:
        self._derive, self.tokens, self.sources, self.waits, self.place = (
            derive,
            tokens,
            sources,
            waits,
            place,
        )
        self.typed, self.lifetime = typed, lifetime
        self.occurrences: dict[int, Occurrence] = {}
        self.hidden: dict[str, list[Column]] = {}
        self.shown = Shown(self.hidden)
        self.notes: dict[int, str] = {}
        self.until: set[str] = set()
        self.judgings: list[Judging] = []
        self.sessions: list[tuple[plan.Node, int, str, str, TimeWindow | None]] = []
        self.called_own = self.met_by_keys = self.has_lives = self.lacks_end = False
        self._known: dict[int, tuple[plan.Node, Derived]] = {}
        self._made_ids = 0

    def of(self, node: plan.Node, *, judged: bool) -> Derived:
        """A node with what is added to it, and what is known of it.

        Parameters
        ----------
        judged
            Whether rows that are late for groups are left out above.
        """
        if id(node) not in self._known:
            self._known[id(node)] = node, self._derive(self, node, judged)
        return self._known[id(node)][1]

    def given(self, node: plan.Node, facts: Facts) -> None:
        """Let a node that was added be known."""
        self._known[id(node)] = node, (node, facts)

    def said(self, node: plan.Node, facts: Facts, keeps: str | None = None) -> None:
        """Remember for EXPLAIN what a node gives and keeps."""
        if facts.varies:
            self.notes[id(node)] = note(node, facts, keeps)

    def fresh(self, count: int) -> list[str]:
        """Ids for so many columns that no other has."""
        self._made_ids += 1
        return [f"e{self._made_ids}_{at}" for at in range(count)]

    def late(
        self, facts: Facts, telling: Sequence[tuple[SqlText, EventColumn]]
    ) -> tuple[SqlText, dict[int, str]] | None:
        """The condition by which rows are late for groups, and the columns with the watermarks in it."""
        telling = [each for each in telling if each[1].tells_late and each[1].origins & facts.watermarks]
        origins = {at for _, event in telling for at in event.origins} & facts.watermarks
        if not origins or not facts.raw:
            return None
        for _, event in telling:
            judged = (Judging(event.mapped, event.mapped, at) for at in sorted(event.origins & origins))
            self.judgings.extend(judged)
        marks = self.marks(facts, origins)
        return late_for_groups(telling, marks), marks

    def marks(self, facts: Facts, origins: Iterable[int]) -> dict[int, str]:
        """The columns with the watermarks of streams, which their rows have from now on."""
        # rows are held back by all streams that they wait for, also by those that a join does not show
        waited = {self.occurrences[at].stream for at in facts.settling.whole if at in self.occurrences}
        for at in origins:
            self.occurrences[at] = replace(self.occurrences[at], watermark_of=facts.streams | waited)
        return {at: watermark_id(at) for at in sorted(origins)}


def watermark_id(place: int) -> str:
    """The id of the column with the watermark before each row of a stream."""
    return f"w{place}"


def number_id(place: int) -> str:
    """The id of the column with the numbers of the rows of a stream."""
    return f"n{place}"
