"""What is drawn, as plain data: sequences of rows with windows or matches, intervals, arrivals.

Places along an axis are floats: numbers as they are, times as milliseconds since the epoch of the clock that
the session shows.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Arrival",
    "ArrivalScene",
    "Axis",
    "Classified",
    "Interval",
    "Match",
    "Row",
    "Sequence",
    "SequenceScene",
    "Span",
    "VaryingScene",
]


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis shows: its title, and whether its places are times or whole numbers."""

    title: str
    is_time: bool = False
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a sequence: its place, its value (None for NULL), and both as text."""

    x: float
    value: float | None
    shown: str


@dataclass(frozen=True, slots=True)
class Span:
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
class Match:
    """A match: its classified rows in order, and, of DURATION, the place at which its time is over."""

    number: int
    rows: tuple[Classified, ...]
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """A partition in order: those of its rows that are drawn, and what was found in it.

    `row_count` and `found_count` are how many rows, and windows or matches, there are in all; before those
    that are drawn, `skipped` rows are not. Windows and matches have their places among the drawn rows.
    """

    title: str
    rows: tuple[Row, ...]
    windows: tuple[Span, ...] = ()
    matches: tuple[Match, ...] = ()
    row_count: int = 0
    found_count: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class SequenceScene:
    """Windows or matches over sequences.

    `variables` are those of the pattern, in the order in which they stand in it. `more_sequences` says
    whether there are others than those that are drawn. `order` is the key of ORDER BY whose values rows show,
    if that is a number or a time that rises; `subtitle` is what the clause says, in lines.
    """

    title: str
    x: Axis
    y: Axis | None
    sequences: tuple[Sequence, ...]
    variables: tuple[str, ...] = ()
    more_sequences: bool = False
    order: str | None = None
    subtitle: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Interval:
    """A row of a relation that varies: its key, all its values, and those beside the key.

    It is there from `enter` until before `leave`.
    `leave` is None for a row that stays; `amount` is the value of the column that is drawn, if one is.
    """

    key: str
    shown: str
    rest: str
    enter: float
    leave: float | None
    amount: float | None = None


@dataclass(frozen=True, slots=True)
class VaryingScene:
    """A relation that varies in time, from `first` to `last`; `y` is what its amounts are, if it has any."""

    title: str
    x: Axis
    y: Axis | None
    intervals: tuple[Interval, ...]
    first: float
    last: float
    row_count: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """An entry of a log: when it came, from whom, its rowtime and the bound that it promised, if any."""

    came: float
    producer: str
    rowtime: float | None
    bound: float | None
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class ArrivalScene:
    """What arrived at a stream; `x` is the axis of arrival, `y` that of rowtimes."""

    title: str
    x: Axis
    y: Axis
    arrivals: tuple[Arrival, ...]
    entry_count: int
