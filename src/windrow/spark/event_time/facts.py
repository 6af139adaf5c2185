"""What is known of the relations of a query over streams, and of the query as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from windrow.algebra.time_windows import TimeWindow
from windrow.syntax.queries import FromItem
from windrow.syntax.sqltext import SqlText

__all__ = [
    "HIDDEN",
    "UNTIL",
    "Closed",
    "Closing",
    "Completeness",
    "Ending",
    "EventColumn",
    "Facts",
    "Judging",
    "Occurrence",
    "Plain",
    "Sessions",
    "Settling",
    "Sides",
    "Timed",
    "Wanted",
    "watermark_at",
]

HIDDEN = "__of_"
"""Prefix of the columns that are added to queries."""

UNTIL = f"{HIDDEN}until"
"""Prefix of those that say until when the versions of a stream are valid."""


def watermark_at(place: int) -> str:
    """The column with the watermark before each row of the stream that stands at a place."""
    return f"{HIDDEN}watermark{place}"


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
        Where the call of the windows stands that it is of, by which those of windows over windows differ.
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
    made: int | None = None

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
        What stands for it in the text.
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
        return f"{HIDDEN}number{self.name}"


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
class Completeness:
    """A column that says when rows are complete: when it is below what the watermark is mapped to."""

    column: str
    mapped: str
    origin: int


@dataclass(frozen=True)
class Closing:
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


Ending = Closing | Closed
"""What says that groups are over."""


@dataclass(frozen=True)
class Sessions:
    """Sessions of a stream's rows, by which these are needed until a session cannot grow any more.

    Attributes
    ----------
    text
        A query: of each row in a session its number, and the session's end.
    stream
        The stream's name in lower case.
    begins
        SQL for the least end of the session that a row is in, in which ``{t}`` is the row's rowtime.
    window
        Where they are of the stream itself, not of a query over it: how they are made.
    """

    text: SqlText
    stream: str
    begins: str
    window: TimeWindow | None = None


@dataclass(frozen=True)
class Timed:
    """A query with the columns that were added.

    Attributes
    ----------
    text
        The query.
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
    operators
        What EXPLAIN says of each, those that read others after these.
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
    """

    text: SqlText
    occurrences: tuple[Occurrence, ...]
    keys: tuple[str, ...] | None
    counts: bool
    complete: tuple[Completeness, ...]
    streams: frozenset[str]
    closes: tuple[tuple[Ending, ...], ...] = ()
    holds: str | None = None
    sessions: tuple[Sessions, ...] = ()
    operators: tuple[str, ...] = ()
    has_lives: bool = False
    calls_own: bool = False
    plain: tuple[tuple[str, Plain], ...] = ()
    places: tuple[int, ...] = ()
    told: tuple[Closed, ...] = ()
    judgings: tuple[Judging, ...] = ()


@dataclass(frozen=True)
class Facts:
    """What is known of a relation.

    `columns` are (name, event time) in order, None where not all are known; `events` all event time by name;
    `hidden` columns of ours that it has, `keys` those of them that are keys, with their event time; `whole`
    says that all of a row is its key, and `counted` that its changes are counted even so; `raw` that its rows
    come from streams one by one, and `updates` that rows leave it again. `places` are where its streams
    stand, `watermarks` and `numbers` columns of ours of them. `closes` and `holds` are those of
    :class:`Timed`. `plain` are columns as streams with punctuations have them: what a row is made of has its
    value there. `settling` says of which streams its rows wait for the time.
    """

    events: Mapping[str, EventColumn] = field(default_factory=dict)
    columns: tuple[tuple[str, EventColumn | None], ...] | None = None
    hidden: tuple[str, ...] = ()
    keys: Mapping[str, EventColumn | None] = field(default_factory=dict)
    grouped: bool = False
    whole: bool = False
    counted: bool = False
    raw: bool = True
    updates: bool = False
    streams: frozenset[str] = frozenset()
    places: frozenset[int] = frozenset()
    watermarks: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    closes: tuple[tuple[Ending, ...], ...] = ()
    holds: str | None = None
    plain: Mapping[str, Plain] = field(default_factory=dict)
    settling: Settling = Settling()


@dataclass(frozen=True)
class Wanted:
    """What a relation is to have: keys of groups and rowtimes, the watermark of these streams, numbers."""

    keys: bool
    watermark_of: frozenset[str] = frozenset()
    numbers: bool = False


Sides = Sequence[tuple[FromItem, Facts]]
"""The relations of FROM."""
