"""The table of one slice: its own rows, the rows that it received, and markers for all others.

For a run of missing chunks, the table has the first and the last row only: as neighbours of the rows around,
and as the sequence's edges. They cannot be boundaries, and aggregates do not read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.kernels.aggregates import Gaps
from windrow.kernels.pairs import Array, PairRows
from windrow.kernels.slices.predicate_analysis import positions_as_column, rising
from windrow.kernels.slices.sequence import SliceSequence
from windrow.kernels.window_plan import Search, WindowPlan

__all__ = ["Assembly", "assemble"]

_POSITION = "__position"
_WHOLE = "__whole"


@dataclass(frozen=True)
class Assembly:
    """The input of the kernel.

    Attributes
    ----------
    plan
        The clause over `rows`.
    rows
        One partition.
    own
        int64, the slice's own rows.
    later
        int64, the rows of complete chunks after them.
    gaps
        For each aggregate, the states of missing chunks; None if there are none.
    """

    plan: WindowPlan
    rows: PairRows
    own: Array
    later: Array
    gaps: list[Gaps | None]


def assemble(
    plan: WindowPlan, number: int, sequence: SliceSequence, own: pa.Table, chunks: Mapping[int, pa.Table]
) -> Assembly:
    """Assemble the table of slice `number`; `chunks` are those of other slices, by number."""
    first, stop = sequence.first_chunk[number], sequence.first_chunk[number + 1]
    present = np.zeros(sequence.chunks, bool)
    present[first:stop] = True
    present[list(chunks)] = True
    parts: list[pa.Table] = []
    positions: list[Array] = []
    whole: list[Array] = []
    gaps: list[tuple[int, int, int, int]] = []
    length = own_at = 0
    chunk = 0
    while chunk < sequence.chunks:
        run = chunk + 1
        if chunk == first:
            run, part = int(stop), own
            own_at = length
        elif present[chunk]:
            part = chunks[chunk]
        else:
            run = _run(present, chunk)
            ends = np.unique([sequence.first_row[chunk], sequence.first_row[run] - 1])
            part = sequence.fence(ends)
            gaps.append((length, length + len(ends), chunk, run))
        low, high = int(sequence.first_row[chunk]), int(sequence.first_row[run])
        positions.append(np.arange(low, high) if present[chunk] else ends)
        assert part.num_rows == len(positions[-1])
        whole.append(np.full(part.num_rows, present[chunk]))
        parts.append(part)
        length += part.num_rows
        chunk = run
    table = pa.concat_tables(parts).combine_chunks()
    position, is_whole = np.concatenate(positions) + 1, np.concatenate(whole)
    table = table.append_column(_POSITION, pa.array(position)).append_column(_WHOLE, pa.array(is_whole))
    adapted = _adapted(plan, sequence, guarded=bool(gaps))
    expressions = adapted.expressions()
    rows = PairRows(table, np.array([0, length], np.int64), plan.constants, expressions, plan.ansi, position)
    own_rows = np.arange(own_at, own_at + own.num_rows)
    later = np.flatnonzero(is_whole[own_at + own.num_rows :]) + own_at + own.num_rows
    return Assembly(adapted, rows, own_rows, later, _gaps(plan, sequence, gaps))


def _run(present: Array, chunk: int) -> int:
    """The chunk after a run of missing chunks."""
    following = np.flatnonzero(present[chunk:])
    return chunk + int(following[0]) if len(following) else len(present)


def _gaps(
    plan: WindowPlan, sequence: SliceSequence, gaps: list[tuple[int, int, int, int]]
) -> list[Gaps | None]:
    if not gaps:
        return [None] * len(plan.aggregates)
    bounds = np.array(gaps, np.int64).T
    # what only rows will do for has no windows with gaps
    return [
        None if sequence.summaries[0].states[number] is None else sequence.gaps(number, *bounds)
        for number in range(len(plan.aggregates))
    ]


def _adapted(plan: WindowPlan, sequence: SliceSequence, *, guarded: bool) -> WindowPlan:
    """The plan with positions read from a column, and a guard against boundaries at incomplete rows."""
    labels = None if plan.labels is None else positions_as_column(plan.labels, _POSITION)
    start, end = (
        None if search is None else _adapted_search(search, side, sequence, guarded=guarded)
        for side, search in (("start", plan.start), ("end", plan.end))
    )
    return replace(plan, labels=labels, start=start, end=end)


def _adapted_search(search: Search, side: str, sequence: SliceSequence, *, guarded: bool) -> Search:
    if search.predicate is None:
        return search
    strategy = search.strategy
    # what lies in a gap does not show in the rows that are there
    if strategy == "monotone" and not all(map(sequence.rises, rising(search, side))):
        strategy = "scan"
    predicate = positions_as_column(search.predicate, _POSITION)
    parts = tuple(_adapted_search(part, side, sequence, guarded=guarded) for part in search.parts)
    guard = _WHOLE if guarded else ""
    return replace(search, strategy=strategy, predicate=predicate, guard=guard, parts=parts)
