"""What is known of the relations of a query over streams, and of the query as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windrow.algebra.rewriting.time_windows_as_sql import TimeWindow
from windrow.plan.columns import Completeness
from windrow.plan.nodes import Node

__all__ = [
    "HIDDEN",
    "UNTIL",
    "Closed",
    "ClosedKeys",
    "Completeness",
    "Ending",
    "EventColumn",
    "Facts",
    "Judging",
    "Occurrence",
    "Plain",
    "SessionFacts",
    "Settling",
    "Timed",
    "number_at",
    "watermark_at",
]

HIDDEN = "__of_"
"""Prefix of the columns that are added to queries."""

UNTIL = f"{HIDDEN}until"
"""Prefix of those that say until when the versions of a stream are valid."""


def watermark_at(place: int) -> str:
    """The column with the watermark before each row of the stream that stands at a place."""
    return f"{HIDDEN}watermark{place}"


def number_at(place: int) -> str:
    """The column with the numbers of the rows of the stream that stands at a place."""
    return f"{HIDDEN}number{place}"


Plain = frozenset[tuple[int, str]]
"""Columns of streams, each with the place of its stream, that a column is in all that a row is made of."""


@dataclass(frozen=True)
class EventColumn:
    """A column of event time.

    Attributes
    ----------
    mapped
        SQL for what a watermark is in this column, in which ``{t}`` is the watermark.
    origin
        The occurrence of the stream that it comes from.
    tells_late
        Whether a row below it is late: sessions may still grow.
    greatest
        SQL for the greatest value that a row of the stream has in it, in which ``{t}`` is the row's rowtime,
        or of `sessions` the end of the one that the row is in; None where that depends on other rows.
    sessions
        The number of the sessions that it is the end of.
    settled
        Of those, SQL for the least value that rows that come may still give it, as `mapped`.
    peers
        Of columns that a join has equal to it: their origins, and what is `greatest` of them.
    tells
        Whether a row stays when the watermark has passed it here, as far as this stream is concerned.
    is_optional
        Whether it is NULL where an outer join finds no partner.
    clocks
        TIMESTAMP or TIMESTAMP_NTZ, where it is one in a zone whose clocks are set: shifts by days, and casts,
        do not rise with it.
    made
        The id of the column that the windows have it in, by which those of windows over windows differ.
    """

    mapped: str
    origin: int
    tells_late: bool = True
    greatest: str | None = None
    sessions: int | None = None
    settled: str | None = None
    peers: tuple[tuple[int, str | None], ...] = ()
    tells: bool = True
    is_optional: bool = False
    clocks: str | None = None
    made: str | None = None

    @property
    def origins(self) -> frozenset[int]:
        """The streams whose time is past a row when it is here."""
        return frozenset([self.origin, *(origin for origin, _ in self.peers)])


@dataclass(frozen=True)
class Settling:
    """The streams whose time must be past a row that it does not change any more.

    Attributes
    ----------
    whole
        That no row like it comes or goes.
    stays
        That it does not go, if it is there.
    why
        What may make it go.
    """

    whole: frozenset[int] = frozenset()
    stays: frozenset[int] = frozenset()
    why: str | None = None


@dataclass(frozen=True)
class Occurrence:
    """A stream where it stands in the query.

    Attributes
    ----------
    name
        The key of its rows in the plan.
    stream
        The stream's name in lower case.
    place
        Its number, as columns of event time have it for their origin.
    watermark_of
        The streams of which it has, for each row, the least watermark when that came; empty if it has none.
    is_numbered
        Whether it has a number for each row.
    """

    name: str
    stream: str
    place: int
    watermark_of: frozenset[str] = frozenset()
    is_numbered: bool = False

    @property
    def watermark(self) -> str:
        """The column with it."""
        return watermark_at(self.place)

    @property
    def number(self) -> str:
        """The column with the numbers of rows."""
        return number_at(self.place)


@dataclass(frozen=True)
class Judging:
    """Says which rows of a stream are late for a group: those of which `row` is below `least`.

    Both are SQL in which ``{t}`` stands for an instant: the row's rowtime, of which `row` is the least value
    in a key of the group, and the watermark before the row. `origin` is where the row's stream stands.
    """

    row: str
    least: str
    origin: int


@dataclass(frozen=True)
class ClosedKeys:
    """Says which groups a row is in are complete: those of which `greatest` of it is below `least`.

    Both are SQL in which ``{t}`` stands for an instant: the row's rowtime, or the end of the session that it
    is in where `sessions` has their number; and the watermark. `origin` is where the row's stream stands.
    """

    greatest: str
    least: str
    origin: int
    sessions: int | None = None


@dataclass(frozen=True)
class Closed:
    """Says which groups a row is in are promised to be over: those of whose values no row follows.

    Attributes
    ----------
    origin
        Where the row's stream stands.
    by
        Where streams stand of which that has to be promised, and for which of their columns: (column of that
        stream, column of the row).
    """

    origin: int
    by: tuple[tuple[int, tuple[tuple[str, str], ...]], ...]


Ending = ClosedKeys | Closed
"""What says that groups are over."""


@dataclass(frozen=True)
class SessionFacts:
    """Sessions of a stream's rows, by which these are needed until a session cannot grow any more.

    Attributes
    ----------
    plan
        Of each row in a session its ``number``, and the session's ``end``.
    stream
        The stream's name in lower case.
    begins
        SQL for the least end of the session that a row is in, in which ``{t}`` is the row's rowtime.
    window
        Where they are of the stream itself, not of a query over it: how they are made.
    """

    plan: Node
    stream: str
    begins: str
    window: TimeWindow | None = None


@dataclass(frozen=True)
class Timed:
    """A query with the columns that were added.

    Attributes
    ----------
    plan
        The query. After its own columns come those of ours, of which the names begin with :data:`HIDDEN`.
    occurrences
        The streams in it.
    keys
        The columns by which its rows are grouped; None where all of a row is its key.
    counts
        Whether changes are counted: whether there are groups, or rows are told apart.
    complete
        When rows are complete.
    streams
        The streams of which the least watermark is that of the query.
    closes
        Of each grouping in the query what says that all groups of a row are complete: any of these.
    holds
        Why rows that have come may be needed for ever; None if they are not.
    sessions
        Those that closings are of.
    lines
        What EXPLAIN says: the plan as it was read, with what each node gives and keeps.
    has_lives
        Whether keys have a lifetime, so that there may be several rows of one.
    calls_own
        Whether a function of the user's is called, which makes of a relation what it likes.
    plain
        The columns by whose values streams may promise that a row is complete.
    places
        Where the streams stand that have to promise it.
    told
        Of rows that are not grouped, and are shown when they are complete: what says that these are, by the
        values of a row of a stream.
    judgings
        What says of rows that they are late for groups: of those of one stream, any.
    until
        What says of the keys of its rows that these change no more, if the watermark does.
    """

    plan: Node
    occurrences: tuple[Occurrence, ...]
    keys: tuple[str, ...] | None
    counts: bool
    complete: tuple[Completeness, ...]
    streams: frozenset[str]
    closes: tuple[tuple[Ending, ...], ...] = ()
    holds: str | None = None
    sessions: tuple[SessionFacts, ...] = ()
    lines: tuple[str, ...] = ()
    has_lives: bool = False
    calls_own: bool = False
    plain: tuple[tuple[str, Plain], ...] = ()
    places: tuple[int, ...] = ()
    told: tuple[Closed, ...] = ()
    judgings: tuple[Judging, ...] = ()
    until: tuple[Completeness, ...] = ()


@dataclass(frozen=True)
class Facts:
    """What is known of the rows of a node; columns are called by their ids.

    Those that a node can show (:func:`windrow.plan.shown.showing`) are known too, as keys that SELECT leaves
    out.

    Attributes
    ----------
    events
        The columns of event time.
    telling
        Those of them that tell of rows without groups when these are final.
    keys
        The keys of the nearest groups.
    grouped, whole, counted
        Whether there are groups; whether all of a row is its key; whether changes are counted even so.
    raw
        Whether its rows come from streams one by one.
    updates
        Whether rows leave it again.
    streams, places
        The streams of which the watermark is its own; where all of its streams stand.
    watermarks
        Where the streams stand of which it can show the watermark before each row.
    closes, holds
        Those of :class:`Timed`.
    plain
        Columns as streams with punctuations have them: what a row is made of has its value there.
    settling
        Of which streams its rows wait for the time.
    versions
        Of columns that say until when a version is valid: the streams that the versions are of.
    """

    events: Mapping[str, EventColumn] = field(default_factory=dict)
    telling: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    grouped: bool = False
    whole: bool = False
    counted: bool = False
    raw: bool = True
    updates: bool = False
    streams: frozenset[str] = frozenset()
    places: frozenset[int] = frozenset()
    watermarks: frozenset[int] = frozenset()
    closes: tuple[tuple[Ending, ...], ...] = ()
    holds: str | None = None
    plain: Mapping[str, Plain] = field(default_factory=dict)
    settling: Settling = Settling()
    versions: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @property
    def varies(self) -> bool:
        """Whether it is made of streams."""
        return bool(self.places or self.streams)
