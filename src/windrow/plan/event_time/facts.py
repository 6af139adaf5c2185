"""Facts derived for the relations of a query over streams, and for the whole query."""

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
    "ClosedBy",
    "ClosedKeys",
    "Completeness",
    "EventColumn",
    "Facts",
    "Finality",
    "Judging",
    "Lineage",
    "Occurrence",
    "SessionFacts",
    "Timed",
    "number_at",
    "watermark_at",
]

HIDDEN = "__of_"
"""The prefix of columns that Windrow adds to queries."""

UNTIL = f"{HIDDEN}until"
"""The prefix of added columns with the end of validity of a stream's versions."""


def watermark_at(place: int) -> str:
    """The column with the watermark before each row of the stream at a place."""
    return f"{HIDDEN}watermark{place}"


def number_at(place: int) -> str:
    """The column with the row numbers of the stream at a place."""
    return f"{HIDDEN}number{place}"


Lineage = frozenset[tuple[int, str]]
"""The stream columns, each with the place of its stream, whose unchanged value a column has."""


@dataclass(frozen=True)
class EventColumn:
    """A column of event time.

    Attributes
    ----------
    mapped
        SQL for the value of a watermark in this column, in which ``{t}`` is the watermark.
    origin
        The place of the stream that it comes from.
    decides_late
        Whether a row below it is late. Not of sessions, which may still grow.
    greatest
        SQL for its greatest value in a row, in which ``{t}`` is the row's rowtime, or for `sessions` the end
        of the row's session; None if that depends on other rows.
    sessions
        The number of the SESSION whose end it is.
    least_open
        For `sessions`, SQL for the least end of a session that may still change, as `mapped`.
    peers
        For each column that a join equates with it: its origin, and its `greatest`.
    finalizes
        Whether a row is final once the watermark has passed it here, as far as this stream is concerned.
    is_optional
        Whether it is NULL where an outer join finds no partner.
    zoned
        TIMESTAMP or TIMESTAMP_NTZ, if its time zone has daylight saving time: then shifts by days, and casts,
        are not monotone.
    made
        The id of the window's column that it comes from; it distinguishes windows over windows.
    merges
        The two columns of a FULL JOIN, equal where both are there, of which it is the one that is there.
    """

    mapped: str
    origin: int
    decides_late: bool = True
    greatest: str | None = None
    sessions: int | None = None
    least_open: str | None = None
    peers: tuple[tuple[int, str | None], ...] = ()
    finalizes: bool = True
    is_optional: bool = False
    zoned: str | None = None
    made: str | None = None
    merges: tuple[str, str] | None = None

    @property
    def origins(self) -> frozenset[int]:
        """The streams whose watermarks have passed a row once one has passed it in this column."""
        return frozenset([self.origin, *(origin for origin, _ in self.peers)])


@dataclass(frozen=True)
class Finality:
    """The streams whose watermarks must have passed a row before it is final.

    Attributes
    ----------
    complete
        Once these have passed, no equal row is inserted or retracted.
    final
        Once these have passed, the row is not retracted.
    why
        The part of the query that may retract a row.
    """

    complete: frozenset[int] = frozenset()
    final: frozenset[int] = frozenset()
    why: str | None = None


@dataclass(frozen=True)
class Occurrence:
    """One use of a stream in the query.

    Attributes
    ----------
    name
        The key of its rows in the plan.
    stream
        The stream's name in lower case.
    place
        Its number, which is the origin of columns of event time.
    watermark_of
        Each of its rows has the least watermark of these streams before the row; empty if it has none.
    is_numbered
        Whether each of its rows has a number.
    """

    name: str
    stream: str
    place: int
    watermark_of: frozenset[str] = frozenset()
    is_numbered: bool = False

    @property
    def watermark(self) -> str:
        """The column with the watermark before each row."""
        return watermark_at(self.place)

    @property
    def number(self) -> str:
        """The column with its row numbers."""
        return number_at(self.place)


@dataclass(frozen=True)
class Judging:
    """A condition under which rows of a stream are late for a group: `row` is below `least`.

    Both are SQL in which ``{t}`` is an instant. In `row` it is the row's rowtime, and `row` is its least
    value in a key of the group. In `least` it is the watermark before the row. `origin` is the place of the
    row's stream.
    """

    row: str
    least: str
    origin: int


@dataclass(frozen=True)
class ClosedKeys:
    """A condition by which the watermark closes the groups of a row: `greatest` is below `least`.

    Both are SQL in which ``{t}`` is an instant. In `greatest` it is the row's rowtime, or, with the number of
    a SESSION in `sessions`, the end of the row's session. In `least` it is the watermark. `origin` is the
    place of the row's stream.
    """

    greatest: str
    least: str
    origin: int
    sessions: int | None = None


@dataclass(frozen=True)
class Closed:
    """A condition by which punctuation closes the groups of a row: no row with its values follows.

    Attributes
    ----------
    origin
        The place of the row's stream.
    by
        The places of the streams whose punctuations must close them, each with pairs of columns: (column of
        that stream, column of the row).
    """

    origin: int
    by: tuple[tuple[int, tuple[tuple[str, str], ...]], ...]


ClosedBy = ClosedKeys | Closed
"""A condition that closes groups."""


@dataclass(frozen=True)
class SessionFacts:
    """A SESSION over a stream's rows. Each row is needed until its session is final.

    Attributes
    ----------
    plan
        A query with the ``number`` of each row, and the ``end`` of its session.
    stream
        The stream's name in lower case.
    begins
        SQL for the least possible end of a row's session, in which ``{t}`` is the row's rowtime.
    window
        The definition of the sessions, if they are over the stream itself and not over a query.
    """

    plan: Node
    stream: str
    begins: str
    window: TimeWindow | None = None


@dataclass(frozen=True)
class Timed:
    """A query with its additional columns, and the facts derived for it.

    Attributes
    ----------
    plan
        The query. Its own columns come first, then the added ones, whose names begin with :data:`HIDDEN`.
    occurrences
        The uses of streams in it.
    keys
        The columns by which its rows are grouped; None if the whole row is its key.
    counts
        Whether changes are counted, because there are groups, or duplicates matter.
    complete
        The conditions by which rows are complete.
    streams
        The query's watermark is the least one of these streams.
    closes
        For each grouping in the query the conditions that close all groups of a row; any of them is enough.
    unbounded
        Why rows may be needed forever; None if their state is bounded.
    sessions
        The sessions that `closes` refers to.
    lines
        The lines of EXPLAIN: the plan as it was read, with the output and the state of each node.
    has_ttl
        Whether keys have a state TTL, so that a key may have several rows.
    calls_own
        Whether the query calls a user's table function.
    lineage
        The columns by whose values punctuation can make a row complete.
    places
        The places of the streams whose punctuations must do so.
    closed
        For rows without groups that are emitted when they are complete: the conditions by which punctuation
        makes them complete, by the values of a row of a stream.
    judgings
        The conditions by which rows are late for groups; any of those of its stream makes a row late.
    until
        The conditions by which the watermark makes keys of rows final.
    has_one_row
        Whether each key has one row at most, at any instant.
    """

    plan: Node
    occurrences: tuple[Occurrence, ...]
    keys: tuple[str, ...] | None
    counts: bool
    complete: tuple[Completeness, ...]
    streams: frozenset[str]
    closes: tuple[tuple[ClosedBy, ...], ...] = ()
    unbounded: str | None = None
    sessions: tuple[SessionFacts, ...] = ()
    lines: tuple[str, ...] = ()
    has_ttl: bool = False
    calls_own: bool = False
    lineage: tuple[tuple[str, Lineage], ...] = ()
    places: tuple[int, ...] = ()
    closed: tuple[Closed, ...] = ()
    judgings: tuple[Judging, ...] = ()
    until: tuple[Completeness, ...] = ()
    has_one_row: bool = False


@dataclass(frozen=True)
class Facts:
    """Facts about the rows of a node; columns are identified by id.

    The columns that a node can show (:func:`windrow.plan.visible.showing`) are included, such as keys that
    SELECT leaves out.

    Attributes
    ----------
    events
        The columns of event time.
    finalizing
        Those among the columns of event time that decide when rows without groups are final.
    keys
        The keys of the nearest groups.
    grouped, whole, counted
        Whether there are groups; whether the whole row is its key; whether changes are counted nevertheless.
    raw
        Whether its rows are rows of streams, also filtered, projected or joined.
    updates
        Whether it retracts rows.
    streams, places
        Its watermark is the least one of `streams`; `places` are those of all its streams.
    watermarks
        The places of the streams whose watermark before each row it can show.
    closes, unbounded
        As in :class:`Timed`.
    lineage
        The columns that are unchanged columns of streams with punctuations.
    finality
        The streams whose watermarks its rows wait for.
    versions
        For columns with the end of a version's validity: the streams of the versions.
    """

    events: Mapping[str, EventColumn] = field(default_factory=dict)
    finalizing: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    grouped: bool = False
    whole: bool = False
    counted: bool = False
    raw: bool = True
    updates: bool = False
    streams: frozenset[str] = frozenset()
    places: frozenset[int] = frozenset()
    watermarks: frozenset[int] = frozenset()
    closes: tuple[tuple[ClosedBy, ...], ...] = ()
    unbounded: str | None = None
    lineage: Mapping[str, Lineage] = field(default_factory=dict)
    finality: Finality = Finality()
    versions: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @property
    def reads_streams(self) -> bool:
        """Whether the relation is derived from streams."""
        return bool(self.places or self.streams)
