"""The semantics of EMIT, instant by instant: the emitted changes of a relation whose states are all known.

Slow and obvious. A state is the output of a query at a processing time; a group is the rows that share a key
of the nearest aggregates below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from windrow.punctuations import Pattern
from windrow.punctuations.lines import Place

__all__ = ["Change", "State", "emitted", "late_for", "none_follows", "versions", "watermarks_before"]

Row = Hashable
Group = Hashable


@dataclass(frozen=True)
class State:
    """The output of a query at an instant.

    Attributes
    ----------
    at
        The processing time.
    rows
        The count of each row.
    complete
        The groups that are complete.
    """

    at: int
    rows: Counter[tuple[Group, Row]]
    complete: frozenset[Group]


@dataclass(frozen=True)
class Change:
    """An additional count of copies of a row of a group, from a processing time on."""

    at: int
    group: Group
    row: Row
    diff: int


def emitted(states: Sequence[State], *, delay: int | None = None, watermark: bool = False) -> list[Change]:
    """The emitted changes, in order of time.

    Parameters
    ----------
    states
        At every instant at which anything changes, in order.
    delay
        AFTER DELAY: the changes of a group are emitted together, so long after the first unemitted one;
        changes at the very instant of emission are included.
    watermark
        AFTER WATERMARK: only complete rows are emitted; with a delay, also the buffered changes of a group
        when it becomes complete, after which it has none.
    """
    if delay is None:
        states_out = [(state.at, _complete(state) if watermark else state.rows) for state in states]
        return _differences(states_out)
    changes: list[Change] = []
    groups = {group for state in states for group, _ in state.rows}
    for group in groups:
        changes += _delayed(states, group, delay, watermark)
    return sorted(changes, key=lambda change: change.at)


def _complete(state: State) -> Counter[tuple[Group, Row]]:
    return Counter({key: count for key, count in state.rows.items() if key[0] in state.complete})


def _differences(states_out: Sequence[tuple[int, Counter[tuple[Group, Row]]]]) -> list[Change]:
    """The changes from each state to the next; deletions come before insertions."""
    changes: list[Change] = []
    before: Counter[tuple[Group, Row]] = Counter()
    for at, rows in states_out:
        found = [
            Change(at, group, row, rows[group, row] - before[group, row])
            for group, row in dict.fromkeys([*before, *rows])
            if rows[group, row] != before[group, row]
        ]
        changes += sorted(found, key=lambda change: change.diff > 0)
        before = rows
    return changes


def _delayed(states: Sequence[State], group: Group, delay: int, watermark: bool) -> list[Change]:
    """The changes of one group: a delay begins with the first change that has not been emitted."""
    states_out: list[tuple[int, Counter[tuple[Group, Row]]]] = []
    current: Counter[tuple[Group, Row]] = Counter()
    due: int | None = None
    was_complete = False
    for state in states:
        if due is not None and due < state.at:
            states_out.append((due, current))
            due = None
        rows = Counter({key: count for key, count in state.rows.items() if key[0] == group})
        if rows != current and due is None:
            due = state.at + delay
        current = rows
        becomes_complete = watermark and not was_complete and group in state.complete
        was_complete = was_complete or group in state.complete
        if due is not None and (becomes_complete or due == state.at):
            states_out.append((state.at, current))
            due = None
    if due is not None:
        states_out.append((due, current))
    return _differences(states_out)


def watermarks_before(rowtimes: Sequence[int], lag: int) -> list[int | None]:
    """The watermark before each row of a log: the greatest rowtime of the rows before it, minus the lag."""
    return [max(before) - lag if (before := rowtimes[:place]) else None for place, _ in enumerate(rowtimes)]


def late_for(
    groups: Sequence[tuple[int, int]], watermark: int | None, lateness: int = 0
) -> list[tuple[int, int]]:
    """The groups that a row is late for: those that were complete when it arrived. It counts in the others.

    The late-rows table contains a row once if it is late for any group.

    Parameters
    ----------
    groups
        The time windows that the row is in, whatever the query does with it; for sessions, the one that it
        would form alone, whose last instant counts: (its time, its time and the gap and one tick).
    watermark
        The watermark by the entries before the row in the order of the log; None if there is none.
    lateness
        For how much longer rows count.
    """
    return [group for group in groups if watermark is not None and group[1] <= watermark - lateness]


def none_follows(known: Mapping[str, Place | None], patterns: Sequence[Pattern]) -> bool:
    """Whether every row with these values is excluded by a punctuation: the definition.

    Parameters
    ----------
    known
        The places of values in some columns, None for NULL.
    patterns
        The punctuations so far. In other columns, it only distinguishes values at the ends of its ranges.
    """
    closing = [pattern for pattern in patterns if _is_matched(pattern, known, known)]
    values: dict[str, set[Place | None]] = {}
    for name, own in (each for pattern in closing for each in pattern.columns):
        if name not in known:
            ends = {place for span in own.spans for place in span if place != own.line.end}
            values.setdefault(name, set()).update({None, own.line.first, *ends})
    rows = (dict(zip(values, row, strict=True)) for row in product(*values.values()))
    return all(any(_is_matched(pattern, row, values) for pattern in closing) for row in rows)


def _is_matched(pattern: Pattern, row: Mapping[str, Place | None], names: Collection[str]) -> bool:
    """Whether a row matches a pattern, as far as these columns show."""
    return all(own.contains(row[name]) for name, own in pattern.columns if name in names)


def versions(changes: Sequence[Change]) -> list[int]:
    """For each change, the number of earlier emitted changes of its group."""
    seen: Counter[Group] = Counter()
    found = []
    for change in changes:
        found.append(seen[change.group])
        seen[change.group] += 1
    return found
