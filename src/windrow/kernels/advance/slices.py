"""Matches in slices of a long partition: each slice continues the matches that the one before leaves open.

    each slice: guess ─▶ its probable open state ─▶ the next slice
    each slice: follow ─▶ its output, and whether its guess was right
    all: final_slices ─▶ the slices up to the first wrong guess; one task continues from there

A slice leaves open what a live query would retain after its rows (:mod:`.suffix`). That depends on the state
of the search at the slice's first row. But searches that begin at different rows soon look for matches at the
same ones, so after a while the earlier rows make no difference. Hence each slice finds its open state by a
search of its last rows alone, and sends that guess to the next slice. The next slice follows on from it, and
compares its own open state with the guess that it has sent. The first slice begins with nothing. So the
output is that of the whole partition up to the first slice whose guess was wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import ExecutionError
from windrow.kernels.advance.final_matches import FinalMatches, advance_matches, final_matches, seen_beside
from windrow.kernels.advance.frontier import Frontier
from windrow.kernels.advance.suffix import DONE, SEARCHED, STATE, TAKEN, Suffix
from windrow.kernels.patterns.pattern_plan import MatchNumber, MatchPlan, asks_spark

__all__ = ["FollowedSlices", "Reached", "final_slices", "follow", "guess", "is_followed", "numbered"]

_GUESSED_FROM = 100_000  # rows at least, or a quarter of the slice
_NOTHING_KNOWN = Frontier(pa.table({"__nothing": [0]}))
Array = np.ndarray


@dataclass(frozen=True)
class Reached:
    """The report of one slice to all others.

    Attributes
    ----------
    is_known
        Whether it knew the open state at its beginning, and could continue from there.
    is_as_guessed
        Whether its open state equals the guess that it sent to the next slice.
    matches
        How many matches it has.
    """

    is_known: bool
    is_as_guessed: bool
    matches: int


@dataclass(frozen=True)
class FollowedSlices:
    """The output of a slice, and its open state: rows with `STATE`."""

    emitted: pa.Table
    open: pa.Table
    matches: int

    def leaves(self, guessed: pa.Table) -> bool:
        """Whether the open state equals the guess.

        Both are last rows of the same slices. Whether a row is in a match counts only if a match may still
        begin at it.
        """
        if self.open.num_rows != guessed.num_rows:
            return False
        ours, other = (table.column(STATE).to_numpy() for table in (self.open, guessed))
        ours, other = (np.where(state & DONE > 0, state & ~TAKEN, state) for state in (ours, other))
        return bool((ours == other).all())


def is_followed(plan: MatchPlan) -> bool:
    """Whether matches do not depend on the number of earlier matches, nor on conditions that Spark
    evaluates.
    """
    return not asks_spark(plan) and not any(register.kind == "number" for register in plan.registers)


def guess(plan: MatchPlan, rows: pa.Table, *, is_first: bool) -> pa.Table:
    """The open state of a slice with these rows, if a search of its last rows finds it: rows with `STATE`."""
    seen = seen_beside(plan)[0]
    skipped = max(rows.num_rows - max(_GUESSED_FROM, rows.num_rows // 4), 0 if is_first else seen)
    part = rows.slice(max(skipped - seen, 0))
    state = np.zeros(part.num_rows, np.int8)
    state[: min(skipped, seen)] = DONE | SEARCHED
    suffix = _suffix(part.combine_chunks(), state)
    try:
        return _open(suffix, final_matches(plan, suffix, _NOTHING_KNOWN))
    except ExecutionError:  # of a match that need not be one; if it is, the slice fails as it follows
        return _open(suffix, None)


def follow(plan: MatchPlan, opened: pa.Table | None, rows: pa.Table, *, is_last: bool) -> FollowedSlices:
    """The result rows, from the open state before a slice and its rows; None before the first slice.

    Matches are numbered from 1.
    """
    state = np.zeros(rows.num_rows, np.int8)
    if opened is not None:
        state = np.concatenate([opened.column(STATE).to_numpy().astype(np.int8), state])
        rows = pa.concat_tables([opened.drop_columns(STATE), rows]).combine_chunks()
    suffix = _suffix(rows, state)
    emitted, found = advance_matches(plan, suffix, None if is_last else _NOTHING_KNOWN)
    (matches,) = found.emitted
    return FollowedSlices(pa.Table.from_batches(emitted, plan.result), _open(suffix, found), int(matches))


def final_slices(reached: Mapping[int, Reached], slices: range) -> int:
    """How many slices with rows have the output that they would have in the whole partition.

    Parameters
    ----------
    reached
        By the numbers of slices that have rows.
    slices
        The numbers of all.
    """
    count = 0
    for bucket in slices:
        if bucket not in reached or not reached[bucket].is_known:
            break
        count += 1
        if not reached[bucket].is_as_guessed:
            break
    if count == len(reached) and slices[-1] not in reached:
        count -= 1  # the last one did not know that it is the last
    return count


def numbered(plan: MatchPlan, emitted: pa.Table, before: int) -> pa.Table:
    """The rows, with match numbers that follow so many earlier matches."""
    for measure in plan.measures:
        if isinstance(measure, MatchNumber):
            at = emitted.column_names.index(measure.name)
            emitted = emitted.set_column(at, emitted.schema.field(at), pc.add(emitted.column(at), before))
    return emitted


def _suffix(rows: pa.Table, state: Array) -> Suffix:
    bounds = np.array([0, rows.num_rows], np.int64)
    return Suffix(rows, bounds, np.arange(rows.num_rows) + 1, state, np.zeros(1, np.int64))


def _open(suffix: Suffix, found: FinalMatches | None) -> pa.Table:
    needed = suffix.table.num_rows if found is None else int(found.needed[0])
    state = suffix.state if found is None else found.state.astype(np.int8)
    return suffix.table.slice(needed).append_column(STATE, pa.array(state[needed:], pa.int8()))
