"""The definitions of operators over punctuated streams: their output, punctuations and state, over sets so
far.

Tucker, Maier, Sheard, Fegaras, "Exploiting punctuation semantics in continuous data streams" (TKDE 2003)
defines three invariants of an operator: *pass*, the rows that may be output so far; *propagate*, the
punctuations that are true of its output; *retain*, the rows that it must still remember. Here each is a
function of all rows and punctuations so far. Which rows a punctuation of the output excludes is decided row
by row, so the form of patterns does not matter.

"Every possible row" is a row of a *universe*: some values for each column, such that the patterns distinguish
no others. Rows are mappings, patterns conjunctions of comparisons.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.kernels.reference.comparison import compare
from windrow.kernels.reference.values import Row, canonical

__all__ = [
    "InputSoFar",
    "Key",
    "closed",
    "computed",
    "distinct",
    "excluded",
    "group",
    "join",
    "over",
    "project",
    "satisfied",
    "select",
    "session",
    "set_operator",
    "sort",
    "tupled",
]

Pattern = Sequence[tuple[Any, ...]]
"""A conjunction of (column, operator) and (column, operator, operand)."""

Universe = Mapping[str, Sequence[Any]]
Tuple = tuple[Any, ...]


@dataclass(frozen=True)
class InputSoFar:
    """An input so far: its rows in order, its punctuations, and its possible rows."""

    rows: Sequence[Row]
    patterns: Sequence[Pattern]
    universe: Universe

    @property
    def possible(self) -> Iterable[Row]:
        """All rows of the universe."""
        return possible(self.universe)


@dataclass(frozen=True)
class Meaning:
    """The rows that an operator may have emitted and must retain, and its punctuations.

    Attributes
    ----------
    passed
        The rows, as tuples in the order of the output's columns; of `sort` in order.
    retained
        How many rows each of its inputs has in its state.
    is_excluded
        Whether a row of the output never follows (again).
    """

    passed: list[Tuple]
    retained: tuple[int, ...]
    is_excluded: Callable[[Row], bool]


def satisfied(value: Any, operator: str, operand: Any = None) -> bool:
    """Whether a comparison is true; one with NULL is not."""
    if operator in ("is null", "is not null"):
        return (value is None) == (operator == "is null")
    if operator == "in":
        return any(satisfied(value, "=", one) for one in operand)
    if operator == "between":
        return satisfied(value, ">=", operand[0]) and satisfied(value, "<=", operand[1])
    if value is None or operand is None:
        return False
    order = compare(value, operand)
    return {"=": order == 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[operator]


def matches(row: Row, pattern: Pattern) -> bool:
    """Whether a row matches a pattern."""
    return all(satisfied(row[name], *conditions) for name, *conditions in pattern)


def excluded(row: Row, patterns: Iterable[Pattern]) -> bool:
    """SetMatch: whether a row matches some pattern."""
    return any(matches(row, pattern) for pattern in patterns)


def still_excluded(row: Row, patterns: Iterable[Pattern], retained: Sequence[Row]) -> bool:
    """Whether some pattern matches the row and none of the retained rows."""
    free = (pattern for pattern in patterns if not any(matches(one, pattern) for one in retained))
    return excluded(row, free)


def possible(universe: Universe) -> Iterable[Row]:
    """All rows of a universe."""
    for values in itertools.product(*universe.values()):
        yield dict(zip(universe, values, strict=True))


def closed(so_far: InputSoFar, known: Row) -> bool:
    """Whether punctuations exclude every possible row with these values in these columns."""
    rest = {name: [known[name]] if name in known else own for name, own in so_far.universe.items()}
    return all(excluded(row, so_far.patterns) for row in possible(rest))


def tupled(row: Row, names: Iterable[str] | None = None) -> Tuple:
    """The values of a row, equal if they group together."""
    return tuple(canonical(row[name]) for name in (row if names is None else names))


def only(row: Row, names: Iterable[str]) -> Row:
    """Some columns of a row."""
    return {name: row[name] for name in names}


def different(rows: Iterable[Row]) -> list[Row]:
    """The distinct rows, first occurrences only."""
    return list({tupled(row): row for row in reversed([*rows])}.values())[::-1]


def select(so_far: InputSoFar, qualifies: Callable[[Row], bool]) -> Meaning:
    """WHERE. Output: the rows that qualify. Punctuations: all. State: none."""
    return Meaning(
        [tupled(row) for row in so_far.rows if qualifies(row)],
        (0,),
        lambda row: excluded(row, so_far.patterns),
    )


def project(so_far: InputSoFar, names: Sequence[str]) -> Meaning:
    """Columns. Output: all rows. Punctuations: of every row that only excluded rows map to. State: none."""
    return Meaning(
        [tupled(row, names) for row in so_far.rows], (0,), lambda row: closed(so_far, only(row, names))
    )


def computed(so_far: InputSoFar, names: Sequence[str], made: Mapping[str, Callable[[Row], Any]]) -> Meaning:
    """Expressions. Output: all rows, computed. Punctuations: of rows that only excluded rows map to. State:
    none.
    """

    def becomes(row: Row) -> Row:
        return {**only(row, names), **{name: value(row) for name, value in made.items()}}

    open_ = {tupled(becomes(row)) for row in so_far.possible if not excluded(row, so_far.patterns)}
    return Meaning([tupled(becomes(row)) for row in so_far.rows], (0,), lambda row: tupled(row) not in open_)


def distinct(so_far: InputSoFar) -> Meaning:
    """DISTINCT. Output: the first of each. Punctuations: all. State: the rows that match none."""
    seen = different(so_far.rows)
    return Meaning(
        [tupled(row) for row in seen],
        (sum(not excluded(row, so_far.patterns) for row in seen),),
        lambda row: excluded(row, so_far.patterns),
    )


def group(
    so_far: InputSoFar, names: Sequence[str], aggregated: Callable[[Sequence[Row]], Mapping[str, Any]]
) -> Meaning:
    """GROUP BY. Output: the groups whose every possible member is excluded. Punctuations: those groups.
    State: the others.
    """
    members: dict[Tuple, list[Row]] = {} if names else {(): []}
    for row in so_far.rows:
        members.setdefault(tupled(row, names), []).append(row)
    is_closed = {key: closed(so_far, only(rows[0], names) if rows else {}) for key, rows in members.items()}
    return Meaning(
        [
            (*key, *map(canonical, aggregated(rows).values()))
            for key, rows in members.items()
            if is_closed[key]
        ],
        (sum(not is_closed[key] and bool(rows) for key, rows in members.items()),),
        lambda row: closed(so_far, only(row, names)),
    )


@dataclass(frozen=True)
class Key:
    """A key of ORDER BY."""

    name: str
    descending: bool = False
    nulls_first: bool = True


def in_order(keys: Sequence[Key], one: Row, other: Row) -> int:
    """-1, 0 or 1 as a row comes before, with or after another."""
    for key in keys:
        left, right = one[key.name], other[key.name]
        if left is None or right is None:
            order = (left is not None) - (right is not None)
            order = order if key.nulls_first else -order
        else:
            order = -compare(left, right) if key.descending else compare(left, right)
        if order:
            return order
    return 0


def sort(so_far: InputSoFar, keys: Sequence[Key]) -> Meaning:
    """ORDER BY. Output: the rows of `Initial` in order. Punctuations: that prefix. State: the other rows.

    `Initial` is the excluded part that no possible row outside it precedes: the patterns so far, truncated
    where a pattern reaches beyond.
    """
    open_ = [row for row in so_far.possible if not excluded(row, so_far.patterns)]

    def is_initial(row: Row) -> bool:
        return excluded(row, so_far.patterns) and not any(in_order(keys, other, row) < 0 for other in open_)

    passed = sorted(
        (row for row in so_far.rows if is_initial(row)),
        key=functools.cmp_to_key(functools.partial(in_order, keys)),
    )
    return Meaning([tupled(row) for row in passed], (len(so_far.rows) - len(passed),), is_initial)


def over(
    so_far: InputSoFar,
    names: Sequence[str],
    keys: Sequence[Key],
    computed: Callable[[Sequence[Row]], Sequence[Mapping[str, Any]]],
    *,
    looks_back: bool,
    reach: int | None = None,
    has_totals: bool = False,
) -> Meaning:
    """OVER. Output: rows whose partition is closed or, with functions that look back, closed up to rows with
    their keys.

    A punctuation is true of the output when no buffered row matches it. The state is the buffered rows and,
    for each open partition, the last `reach` of the others, or all; or one total of these.
    """
    open_ = [row for row in so_far.possible if not excluded(row, so_far.patterns)]

    def is_ready(row: Row) -> bool:
        if not looks_back:
            return closed(so_far, only(row, names))
        own = [other for other in open_ if tupled(other, names) == tupled(row, names)]
        return not any(in_order(keys, other, row) <= 0 for other in own)

    members: dict[Tuple, list[Row]] = {}
    for row in so_far.rows:
        members.setdefault(tupled(row, names), []).append(row)
    passed: list[Tuple] = []
    waiting: list[Row] = []
    before = 0
    for rows in members.values():
        rows.sort(key=functools.cmp_to_key(functools.partial(in_order, keys)))
        ready = [is_ready(row) for row in rows]
        passed += [
            (*tupled(row), *map(canonical, found.values()))
            for row, found, is_known in zip(rows, computed(rows), ready, strict=True)
            if is_known
        ]
        waiting += [row for row, is_known in zip(rows, ready, strict=True) if not is_known]
        if looks_back and not closed(so_far, only(rows[0], names)):
            most = 1 if has_totals else reach
            before += sum(ready) if most is None else min(sum(ready), most)
    return Meaning(
        passed,
        (len(waiting), before),
        lambda row: still_excluded(only(row, so_far.universe), so_far.patterns, waiting),
    )


def session(
    so_far: InputSoFar, names: Sequence[str], time: str, gap: int, longest: int | None = None
) -> Meaning:
    """SESSION. Output: the rows of sessions that no row can join, with their begin and end. State: the
    others.

    With a longest duration, a session ends at the latest that long after its first row; later rows are in the
    next one. A punctuation is true of the output when no buffered row matches it. No later session begins or
    ends before those that are open or may begin; the least value of the universe stands for all before it.
    """
    open_ = [row for row in so_far.possible if not excluded(row, so_far.patterns)]
    members: dict[Tuple, list[Row]] = {}
    for row in so_far.rows:
        members.setdefault(tupled(row, names), []).append(row)
    shortest = gap if longest is None else min(gap, longest)
    passed: list[Tuple] = []
    waiting: list[Row] = []
    begins, ends = [row[time] for row in open_], [row[time] + shortest for row in open_]
    for key, rows in members.items():
        rows.sort(key=lambda row: row[time])
        own = [other[time] for other in open_ if tupled(other, names) == key]
        sessions: list[list[Row]] = []
        for row in rows:
            is_of_last = bool(sessions) and row[time] - sessions[-1][-1][time] <= gap
            if is_of_last and (longest is None or row[time] - sessions[-1][0][time] < longest):
                sessions[-1].append(row)
            else:
                sessions.append([row])
        for members_of in sessions:
            begin, last = members_of[0][time], members_of[-1][time]
            end = until = last + gap
            if longest is not None:
                end, until = min(end, begin + longest), min(until, begin + longest - 1)
            if any(other <= until for other in own):
                waiting += members_of
                begins.append(begin)
                ends.append(end)
            else:
                passed += [(*tupled(row), begin, end) for row in members_of]
    is_known = bool(open_) and min(row[time] for row in open_) > min(so_far.universe[time])

    def is_excluded(row: Row) -> bool:
        if is_known and row["begin"] is not None and row["begin"] < min(begins):
            return True
        if is_known and row["end"] is not None and row["end"] < min(ends):
            return True
        return still_excluded(only(row, so_far.universe), so_far.patterns, waiting)

    return Meaning(passed, (len(waiting),), is_excluded)


def join(
    left: InputSoFar,
    right: InputSoFar,
    on: Sequence[tuple[str, str]],
    kind: str,
    condition: Callable[[Row], bool] | None = None,
) -> Meaning:
    """A join whose columns have different names on the two sides, by equal keys and a condition on pairs.

    Output: all pairs; rows without a partner once the other side is closed for their keys. Rows are retained
    while the other side is not closed for them; those of a semi, an anti or a mark join only until they have
    found a partner, and their other side retains only the keys if there is no condition. A punctuation of one
    side is true of the output when no retained row of that side matches it, except for rows of NULLs that
    stand for a missing row. A mark join adds to each row whether it has a partner.
    """
    left_keys, right_keys = [one for one, _ in on], [other for _, other in on]

    def match(one: Row, other: Row) -> bool:
        has_keys = all(satisfied(one[name], "=", other[partner]) for name, partner in on)
        return has_keys and (condition is None or condition({**one, **other}))

    def is_done(so_far: InputSoFar, values: Sequence[Any], names: Sequence[str]) -> bool:
        return None in values or closed(so_far, dict(zip(names, values, strict=True)))

    def open_rows(
        mine: InputSoFar, own: Sequence[str], other: InputSoFar, partner: Sequence[str]
    ) -> list[Row]:
        return [row for row in mine.rows if not is_done(other, [row[name] for name in own], partner)]

    retained_left = open_rows(left, left_keys, right, right_keys)
    retained_right = open_rows(right, right_keys, left, left_keys)
    alone_left = [row for row in left.rows if not any(match(row, other) for other in right.rows)]
    alone_right = [row for row in right.rows if not any(match(other, row) for other in left.rows)]
    if kind in ("semi", "anti", "mark"):
        retained_left = [row for row in retained_left if any(row is other for other in alone_left)]
        keys = [only(row, right_keys) for row in retained_right]
        keys = different(keys) if condition is None else keys
        lone = [tupled(row) for row in left.rows if any(row is other for other in alone_left)]
        done = [
            tupled(row) for row in alone_left if is_done(right, [row[name] for name in left_keys], right_keys)
        ]
        paired = Counter(tupled(row) for row in left.rows) - Counter(lone)

        of_keys = [
            conditions for conditions in right.patterns if all(name in right_keys for name, *_ in conditions)
        ]

        def is_excluded(row: Row) -> bool:
            found = still_excluded(row, left.patterns, retained_left)
            if kind != "semi" or found:
                return found
            key = {other: row[one] for one, other in on}
            return still_excluded(key, of_keys, keys)

        passed = {"semi": [*paired.elements()], "anti": done}
        passed["mark"] = [
            (*row, marked) for marked, rows in ((True, passed["semi"]), (False, done)) for row in rows
        ]
        return Meaning(passed[kind], (len(retained_left), len(keys)), is_excluded)
    pairs = [{**one, **other} for one in left.rows for other in right.rows if match(one, other)]
    no_left, no_right = dict.fromkeys(left.universe), dict.fromkeys(right.universe)
    if kind in ("left", "full"):
        pairs += [
            {**row, **no_right}
            for row in alone_left
            if is_done(right, [row[name] for name in left_keys], right_keys)
        ]
    if kind in ("right", "full"):
        pairs += [
            {**no_left, **row}
            for row in alone_right
            if is_done(left, [row[name] for name in right_keys], left_keys)
        ]

    def is_decided(row: Row, mine: InputSoFar, retained: Sequence[Row], *, may_be_missing: bool) -> bool:
        own = only(row, mine.universe)
        if may_be_missing and all(value is None for value in own.values()):
            return False
        return still_excluded(own, mine.patterns, retained)

    is_over = closed(left, {}) and closed(right, {})

    def is_excluded_pair(row: Row) -> bool:
        if is_over:
            return True
        return is_decided(row, left, retained_left, may_be_missing=kind in ("right", "full")) or is_decided(
            row, right, retained_right, may_be_missing=kind in ("left", "full")
        )

    return Meaning(
        [tupled(row) for row in pairs], (len(retained_left), len(retained_right)), is_excluded_pair
    )


def set_operator(left: InputSoFar, right: InputSoFar, operator: str) -> Meaning:
    """UNION, INTERSECT, EXCEPT and their ALL forms over inputs with the same columns.

    `retained` counts distinct rows, of both sides together.
    """
    one, other = (Counter(tupled(row) for row in so_far.rows) for so_far in (left, right))
    rows = {tupled(row): row for so_far in (left, right) for row in so_far.rows}
    closed_left = {key: excluded(row, left.patterns) for key, row in rows.items()}
    closed_right = {key: excluded(row, right.patterns) for key, row in rows.items()}

    def copies(key: Tuple) -> int:
        match operator:
            case "union all":
                return one[key] + other[key]
            case "union":
                return 1
            case "intersect":
                return min(one[key], other[key], 1)
            case "intersect all":
                return min(one[key], other[key])
            case "except":
                return int(bool(one[key]) and not other[key] and closed_right[key])
            case "except all":
                return max(one[key] - other[key], 0) if closed_right[key] else 0
        raise AssertionError(operator)

    def is_retained(key: Tuple) -> bool:
        may_left, may_right = not closed_left[key], not closed_right[key]
        match operator:
            case "union all":
                return False
            case "union":
                return may_left or may_right
            case "intersect":
                if one[key] and other[key]:  # emitted, and not to be emitted again
                    return may_left and may_right
                return may_right if one[key] else may_left
            case "intersect all":
                surplus = one[key] - other[key]
                return (surplus > 0 and may_right) or (surplus < 0 and may_left)
            case "except":
                if other[key]:
                    return may_left
                return may_right or may_left  # undecided, or emitted and not to be emitted again
            case "except all":
                surplus = one[key] - other[key]
                return (surplus > 0 and may_right) or (surplus < 0 and may_left)
        raise AssertionError(operator)

    return Meaning(
        [key for key in rows for _ in range(copies(key))],
        (sum(map(is_retained, rows)),),
        lambda row: excluded(row, left.patterns) and excluded(row, right.patterns),
    )
