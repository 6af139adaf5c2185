"""Pictures as plain data: sequences of rows with windows or matches, intervals, arrivals.

Places along an axis are floats: numbers as they are, times as milliseconds since the epoch in local time of
the session's zone.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Arrival",
    "ArrivalScene",
    "Axis",
    "Classified",
    "DrawnMatch",
    "DrawnSequence",
    "DrawnSpan",
    "Gap",
    "Interval",
    "Row",
    "SequenceScene",
    "VaryingScene",
]


@dataclass(frozen=True, slots=True)
class Axis:
    """The description of an axis: its title, and whether its places are times or whole numbers.

    With `levels`, its places are their numbers, from 0 at the bottom: texts.
    """

    title: str
    is_time: bool = False
    is_whole: bool = False
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a sequence: its place, its value (None for NULL), and both as text."""

    x: float
    value: float | None
    text: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A long distance between two neighbouring rows: after which row, from 0, and how long."""

    after: int
    text: str


@dataclass(frozen=True, slots=True)
class DrawnSpan:
    """A window: the positions, from 0, of its first and last row and of its label row.

    `opens` and `closes` say whether its start and its end were found.
    """

    start: int
    stop: int
    label: int | None = None
    opens: bool = True
    closes: bool = True


@dataclass(frozen=True, slots=True)
class Classified:
    """A row of a match: its position, from 0, and the variable that it matched."""

    position: int
    variable: str


@dataclass(frozen=True, slots=True)
class DrawnMatch:
    """A match: its classified rows in order, and, of DURATION, the place at which its time is over."""

    number: int
    rows: tuple[Classified, ...]
    until: float | None = None


@dataclass(frozen=True, slots=True)
class DrawnSequence:
    """A partition in order: its drawn rows, and the results found in it.

    `row_count` and `found_count` are the total numbers of rows, and of windows or matches; `skipped` rows
    before the drawn ones are omitted. Windows and matches have their places among the drawn rows, and so have
    the `gaps` of rows that are drawn by position.
    """

    title: str
    rows: tuple[Row, ...]
    windows: tuple[DrawnSpan, ...] = ()
    matches: tuple[DrawnMatch, ...] = ()
    row_count: int = 0
    found_count: int = 0
    skipped: int = 0
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class SequenceScene:
    """Windows or matches over sequences.

    `variables` are those of the pattern, in its order. `more_sequences` says whether there are others than
    the drawn ones. `order` is the key of ORDER BY whose values rows show, if that is an ascending number or
    time; `subtitle` is the clause, in lines.
    """

    title: str
    x: Axis
    y: Axis | None
    sequences: tuple[DrawnSequence, ...]
    variables: tuple[str, ...] = ()
    more_sequences: bool = False
    order: str | None = None
    subtitle: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Interval:
    """A row of a time-varying relation: its key, all its values, and those beside the key.

    It is in the relation from `enter` until before `leave`, which is None for a row that is not deleted.
    `amount` is the value of the drawn column, if there is one.
    """

    key: str
    text: str
    rest: str
    enter: float
    leave: float | None
    amount: float | None = None


@dataclass(frozen=True, slots=True)
class VaryingScene:
    """A time-varying relation from `first` to `last`; `y` is the axis of its amounts, if it has any."""

    title: str
    x: Axis
    y: Axis | None
    intervals: tuple[Interval, ...]
    first: float
    last: float
    row_count: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """An entry of a log: its processing time, its producer, its rowtime, and its bound, if any."""

    arrived: float
    producer: str
    rowtime: float | None
    bound: float | None
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class ArrivalScene:
    """The entries that arrived at a stream; `x` is the axis of arrival, `y` that of rowtimes."""

    title: str
    x: Axis
    y: Axis
    arrivals: tuple[Arrival, ...]
    entry_count: int
