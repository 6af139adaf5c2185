"""Which matches of growing partitions are final."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.errors import ExecutionError
from windrow.kernels.advance.frontier import Frontier, retained_from
from windrow.kernels.advance.suffix import DONE, SEARCHED, TAKEN, Suffix
from windrow.kernels.pairs import PairRows
from windrow.kernels.patterns.execution import Matches, SoFar, find_matches, parts_of, requested
from windrow.kernels.patterns.match_recognize import rows_of_matches
from windrow.kernels.patterns.measures import MatchRows
from windrow.kernels.patterns.pattern_plan import (
    CLASSIFIER,
    MatchNumber,
    MatchPlan,
    Navigation,
    register_side,
)
from windrow.kernels.patterns.program import END, START
from windrow.kernels.slices.predicate_analysis import columns
from windrow.kernels.strategies.monotone import direction
from windrow.kernels.window_plan import PairExpression, sides_of

__all__ = [
    "FinalMatches",
    "advance_matches",
    "final_matches",
    "limits_of",
    "requested_matches",
    "seen_beside",
]

Array = np.ndarray


@dataclass(frozen=True)
class FinalMatches:
    """The final matches, and the rows still needed.

    Attributes
    ----------
    matches
        The matches.
    free
        bool: the rows that are in no match, final or later; over frames, the rows whose match, or lack of
        one, is known.
    needed
        int64, one a partition: the first row to retain.
    state
        The decisions about the rows, as in `Suffix`.
    emitted
        int64, one a partition: how many matches there have been.
    """

    matches: Matches
    free: Array
    needed: Array
    state: Array
    emitted: Array


def advance_matches(
    plan: MatchPlan, suffix: Suffix, frontier: Frontier | None
) -> tuple[list[pa.RecordBatch], FinalMatches]:
    """The output rows of final matches, and the decisions that they imply."""
    decided = final_matches(plan, suffix, frontier)
    written = MatchRows(decided.matches, suffix.table)
    return list(rows_of_matches(plan, written, decided.free)), decided


def final_matches(plan: MatchPlan, suffix: Suffix, frontier: Frontier | None) -> FinalMatches:
    """Which matches are final, and which rows are still needed."""
    before, _ = seen_beside(plan)
    bounds, first, end = suffix.bounds, suffix.bounds[:-1], suffix.bounds[1:]
    is_closed, so_far = frontier is None, _so_far(plan, suffix, frontier)
    matches = find_matches(plan, suffix.table, bounds, so_far)
    written = MatchRows(matches, suffix.table)
    counts, row = np.diff(bounds), np.arange(suffix.table.num_rows)
    decided = row < np.repeat(matches.undecided_from, counts)
    is_taken = suffix.state & TAKEN > 0
    free = decided & ~suffix.is_done
    if plan.frame is None:
        free &= ~is_taken
    is_taken[written.row] = True
    is_taken[matches.start[matches.length == 0]] = True
    needed = np.maximum(np.minimum(matches.undecided_from, end) - before, first)
    count = suffix.emitted + np.bincount(matches.partition, minlength=len(first))
    state = decided * DONE + is_taken * TAKEN + (row < np.repeat(so_far.limit, counts)) * SEARCHED
    return FinalMatches(matches, free, end if is_closed else needed, state, count)


def requested_matches(plan: MatchPlan, suffix: Suffix, frontier: Frontier | None) -> Iterator[pa.RecordBatch]:
    """The conditions that :func:`advance_matches` needs Spark to evaluate."""
    yield from requested(plan, suffix.table, suffix.bounds, _so_far(plan, suffix, frontier))


def _so_far(plan: MatchPlan, suffix: Suffix, frontier: Frontier | None) -> SoFar:
    """The known facts about the partitions."""
    first, end = suffix.bounds[:-1], suffix.bounds[1:]
    begin = first + suffix.counts(suffix.is_done)
    is_closed = frontier is None
    limit = end if is_closed else np.maximum(end - seen_beside(plan)[1], begin)
    alive = np.ones(suffix.table.num_rows, bool)
    if frontier is not None:
        alive = _alive(plan, suffix, limit, frontier)
    complete = np.full(len(first), is_closed)
    since = first + suffix.counts(suffix.state & SEARCHED > 0)
    return SoFar(begin, limit, alive, suffix.emitted, complete, since, _bound(plan, frontier))


def _bound(plan: MatchPlan, frontier: Frontier | None) -> object:
    """The lower bound of later first keys, for DURATION; None if unknown."""
    key = None if plan.duration is None else plan.duration.key
    if key is None or frontier is None or key not in frontier.values.column_names:
        return None
    values = frontier.values.select([key])
    return PairRows(values, np.array([0, 1]), plan.constants, ()).column(key, None).data[0]


def limits_of(plan: MatchPlan, known: frozenset[str]) -> tuple[PairExpression, ...]:
    """The conditions that bound every row of a match near its first, by columns that increase along the rows.

    The first row says how near.
    """
    every: set[PairExpression] | None = None
    for label in range(len(plan.labels)):
        own = {part.expression for one in plan.conditions if one.label == label for part in parts_of(one)}
        every = own if every is None else every & own
    firsts = {
        register_side(number)
        for number, register in enumerate(plan.registers)
        if register.members is None and register.from_first and not register.offset and register.kind == "row"
    }
    return tuple(
        part
        for part in every or ()
        if len(sides_of(part) & firsts) == 1
        and sides_of(part) - firsts == {"row"}
        and all(ref.column in known or ref.side in firsts for ref in columns(part))
        and all(ref.shift == 0 and ref.rank is None for ref in columns(part))
        and direction(part, "row") == -1
    )


def _alive(plan: MatchPlan, suffix: Suffix, limit: Array, frontier: Frontier) -> Array:
    """The rows at which a match may begin that continues with later rows."""
    first, end = suffix.bounds[:-1], suffix.bounds[1:]
    rows = suffix.table
    alive = np.ones(rows.num_rows, bool)
    for part in limits_of(plan, frozenset(frontier.values.column_names)):
        names = sorted({ref.column for ref in columns(part)})
        known = [name for name in names if name in frontier.values.column_names]
        # the next row to be taken is the one at the limit, where that is there
        later = pa.concat_tables(
            [
                rows.select(names),
                frontier.values.select(known).cast(rows.select(known).schema),
            ],
            promote_options="default",
        )
        following = np.repeat(np.where(limit < end, limit, rows.num_rows), end - first)
        (side,) = sides_of(part) - {"row"}
        try:
            alive &= retained_from(
                part, rows, plan.constants, later.take(pa.array(following)), ("row", side), ansi=plan.ansi
            )
        except ExecutionError:  # of pairs of rows that no match may have
            continue
    return alive


def seen_beside(plan: MatchPlan) -> tuple[int, int]:
    """How many rows before and after those of a match are read, or must be known."""
    shifts = {ref.shift for one in plan.conditions for ref in columns(one.expression)}
    shifts |= {
        measure.shift
        for measure in plan.measures
        if isinstance(measure, Navigation) and measure.column != CLASSIFIER
    }
    numbers = any(isinstance(measure, MatchNumber) for measure in plan.measures) or any(
        register.kind == "number" for register in plan.registers
    )
    is_anchored = bool((plan.program.op == START).any())
    # of all matches, those that end at a row are emitted together: whether it is the last one must be known
    to_end = plan.every and bool((plan.program.op == END).any())
    before, after = max([0, *(-shift for shift in shifts)]), max([0, *shifts])
    if plan.frame is not None:  # rows before the frame are not read
        return 0, after
    return max(before, int(numbers or is_anchored)), max(after, int(to_end))
