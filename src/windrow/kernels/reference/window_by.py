"""WINDOW BY by definition: for each row that may begin a window, search for its end.

The executable semantics of the clause (the paper's section 3.3, and 4.4 for ONLY and LABEL). It looks at rows
one at a time and is quadratic; the fast kernels are compared with it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.errors import UsageError
from windrow.kernels.reference.comparison import compare
from windrow.kernels.reference.values import BoundRow, Env, Row, canonical

__all__ = ["BoundRow", "Env", "OrderKey", "ReferenceBoundary", "Row", "WindowBy", "partitions", "window_by"]

Predicate = Callable[[Env], bool | None]


@dataclass(frozen=True)
class ReferenceBoundary:
    """LABEL, START or END: the variables that it binds around one row, and which row that may be.

    Attributes
    ----------
    as_, at, prev, next
        The names passed to the row, to its 1-based position in the partition, and to the rows beside it.
    when
        The predicate over the variables in scope, this boundary's own among them; None for true.
    only
        ONLY: leave out windows for which no row satisfied this boundary.
    unbounded
        UNBOUNDED: the first (START) or last (END) row of the partition, whatever `when` says.
    """

    as_: str | None = None
    at: str | None = None
    prev: str | None = None
    next: str | None = None
    when: Predicate | None = None
    only: bool = False
    unbounded: bool = False


@dataclass(frozen=True)
class OrderKey:
    """One ORDER BY item. Spark's default for `nulls_first` is true ascending and false descending."""

    key: Callable[[Row], Any]
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class WindowBy:
    """The clause. No `end` makes a tumbling window run to the row before the next start."""

    name: str
    tumbling: bool
    partition_by: tuple[Callable[[Row], Any], ...]
    order_by: tuple[OrderKey, ...]
    start: ReferenceBoundary
    end: ReferenceBoundary | None = None
    label: ReferenceBoundary | None = None

    def __post_init__(self) -> None:
        if self.end is None and not self.tumbling:
            raise UsageError("sliding window has no END", condition="MISSING_END", hint="add END UNBOUNDED")
        if self.label is not None and (self.label.unbounded or self.label.only):
            raise UsageError("LABEL cannot be combined with ONLY or UNBOUNDED", condition="INVALID_LABEL")


def window_by(rows: Sequence[Row], clause: WindowBy) -> list[dict[str, Any]]:
    """The windows of `rows`, one dictionary each.

    Parameters
    ----------
    rows
        The output of FROM, WHERE and GROUP BY, in any order. Rows that tie in ORDER BY stay in their order; a
        query must not rely on it.
    clause
        The clause.

    Returns
    -------
    list of dict
        One entry for each variable, LABEL's, START's, then END's (within each AS, AT, PREV, NEXT), and last
        `clause.name` with the window's rows. Rows are :class:`BoundRow`, equal in Python to any mapping with
        the same items. A variable of a boundary that no row satisfies is None, and so is a row
        beside one that lies outside the partition. The list of rows has a leading None if no row
        satisfied START and a trailing None if none satisfied END. Windows come partition by partition, in
        order of start, or of label where there is one (tumbling: of start, then label).
    """
    results = []
    for partition in partitions(rows, clause.partition_by, clause.order_by):
        for window in _windows(partition, clause):
            unstarted = clause.start.only and window.start is None
            unended = clause.end is not None and clause.end.only and window.end is None
            if not unstarted and not unended:
                results.append(_result(partition, clause, window))
    return results


Partition = Sequence[BoundRow]


@dataclass(frozen=True)
class _Window:
    """Indexes in the partition; None for a boundary that no row satisfies."""

    label: int | None
    start: int | None
    end: int | None

    @property
    def first(self) -> int:
        return 0 if self.start is None else self.start

    def last(self, partition: Partition) -> int:
        return len(partition) - 1 if self.end is None else self.end


def partitions(
    rows: Sequence[Row], partition_by: Sequence[Callable[[Row], Any]], order_by: Sequence[OrderKey]
) -> list[list[BoundRow]]:
    """The rows by partition, in order."""
    groups: dict[Any, list[BoundRow]] = {}
    for row in rows:
        key = tuple(canonical(part(row)) for part in partition_by)
        groups.setdefault(key, []).append(BoundRow(row))
    order = functools.cmp_to_key(functools.partial(_row_order, order_by))
    return [sorted(group, key=order) for group in groups.values()]


def _row_order(keys: Sequence[OrderKey], left: Row, right: Row) -> int:
    for item in keys:
        one, other = item.key(left), item.key(right)
        if one is None or other is None:
            order = (one is not None) - (other is not None)
            order = order if item.nulls_first else -order
        else:
            order = -compare(one, other) if item.descending else compare(one, other)
        if order:
            return order
    return 0


def _windows(partition: Partition, clause: WindowBy) -> Iterator[_Window]:
    if clause.label is not None:
        return _labelled(partition, clause)
    if clause.start.unbounded:
        return iter([_Window(None, 0, _end(partition, clause, None, 0))])
    return _tumbling(partition, clause) if clause.tumbling else _sliding(partition, clause)


def _sliding(partition: Partition, clause: WindowBy) -> Iterator[_Window]:
    for start in range(len(partition)):
        if _satisfied(clause.start, partition, start, {}):
            yield _Window(None, start, _end(partition, clause, None, start))


def _tumbling(partition: Partition, clause: WindowBy) -> Iterator[_Window]:
    row = 0
    while row < len(partition):
        if _satisfied(clause.start, partition, row, {}):
            window = _Window(None, row, _end(partition, clause, None, row))
            yield window
            row = window.last(partition)
        row += 1


def _labelled(partition: Partition, clause: WindowBy) -> Iterator[_Window]:
    assert clause.label is not None
    windows = []
    for label in range(len(partition)):
        if _satisfied(clause.label, partition, label, {}):
            start = _start(partition, clause, label)
            windows.append(_Window(label, start, _end(partition, clause, label, start)))
    if not clause.tumbling:
        yield from windows
        return
    windows.sort(key=lambda window: (window.first, window.label))
    if clause.end is None:
        windows = [_before_next(window, windows, partition) for window in windows]
    resume = 0
    for window in windows:
        if window.first >= resume:
            yield window
            resume = window.last(partition) + 1


def _before_next(window: _Window, windows: Sequence[_Window], partition: Partition) -> _Window:
    """Without END: the window of a label runs to the row before the next label's window starts."""
    later = [other.first for other in windows if other.first > window.first]
    return _Window(window.label, window.start, min(later, default=len(partition)) - 1)


def _start(partition: Partition, clause: WindowBy, label: int) -> int | None:
    """The first row of the partition that satisfies START for this label."""
    if clause.start.unbounded:
        return 0
    env = _bind(clause.label, partition, label)
    return next((row for row in range(len(partition)) if _satisfied(clause.start, partition, row, env)), None)


def _end(partition: Partition, clause: WindowBy, label: int | None, start: int | None) -> int | None:
    """The first row, from the start on, that satisfies END for this label and start."""
    final = len(partition) - 1
    env = _bind(clause.label, partition, label)
    if clause.end is None:
        if clause.start.unbounded or label is not None or start is None:
            return final
        later = range(start + 1, len(partition))
        return next((row - 1 for row in later if _satisfied(clause.start, partition, row, env)), final)
    if clause.end.unbounded:
        return final
    env |= _bind(clause.start, partition, start)
    candidates = range(start or 0, len(partition))
    return next((row for row in candidates if _satisfied(clause.end, partition, row, env)), None)


def _satisfied(boundary: ReferenceBoundary, partition: Partition, row: int, env: dict[str, Any]) -> bool:
    """Whether the predicate is true (not false, not NULL) with this boundary's variables at `row`."""
    return boundary.when is None or boundary.when(env | _bind(boundary, partition, row)) is True


def _bind(boundary: ReferenceBoundary | None, partition: Partition, row: int | None) -> dict[str, Any]:
    """The boundary's variables at a row; all None if no row satisfies it."""
    if boundary is None:
        return {}
    values: list[tuple[str | None, Any]] = [(boundary.as_, None if row is None else partition[row])]
    values.append((boundary.at, None if row is None else row + 1))
    values.append((boundary.prev, None if row is None else _row_at(partition, row - 1)))
    values.append((boundary.next, None if row is None else _row_at(partition, row + 1)))
    return {name: value for name, value in values if name is not None}


def _row_at(partition: Partition, row: int) -> BoundRow | None:
    return partition[row] if 0 <= row < len(partition) else None


def _result(partition: Partition, clause: WindowBy, window: _Window) -> dict[str, Any]:
    rows: list[BoundRow | None] = list(partition[window.first : window.last(partition) + 1])
    if window.start is None:
        rows.insert(0, None)
    if window.end is None:
        rows.append(None)
    return {
        **_bind(clause.label, partition, window.label),
        **_bind(clause.start, partition, window.start),
        **_bind(clause.end, partition, window.end),
        clause.name: rows,
    }
