"""DISTINCT, UNION, INTERSECT, EXCEPT, and their ALL forms: rows by how often they are on either side.

What may be given of a row, and whether it must be kept, depends on its counts and on which sides the
punctuations have closed it. Each operator is a formula of those, over all rows that a step has touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.punctuated.step import Promises, Step
from windrow.kernels.sorting import sorted_partitions
from windrow.kernels.trace import Trace
from windrow.punctuations import Cover, lines_of
from windrow.punctuations.boxes import Box, meet

__all__ = ["OPERATORS", "SetCarry", "SetOperator"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NOTES = ("left", "right", "given")


@dataclass
class _Counts:
    """Of some rows: how often they are on either side, whether they were given, where they are closed."""

    left: Ints
    right: Ints
    given: Ints
    closed_left: Bools
    closed_right: Bools


def _distinct(rows: _Counts) -> tuple[Ints, Bools]:
    copies = np.where(rows.given > 0, 0, 1)
    rows.given[:] = 1
    return copies, ~rows.closed_left


def _union(rows: _Counts) -> tuple[Ints, Bools]:
    copies, _ = _distinct(rows)
    return copies, ~(rows.closed_left & rows.closed_right)


def _intersect(rows: _Counts) -> tuple[Ints, Bools]:
    is_in = (rows.left > 0) & (rows.right > 0)
    copies = np.where(is_in & (rows.given == 0), 1, 0)
    rows.given[is_in] = 1
    waits = ((rows.left > 0) & ~rows.closed_right) | ((rows.right > 0) & ~rows.closed_left)
    # one that was given is kept so as not to be given again, while it may still come on both sides
    return copies, np.where(is_in, ~rows.closed_left & ~rows.closed_right, waits).astype(bool)


def _intersect_all(rows: _Counts) -> tuple[Ints, Bools]:
    copies = np.minimum(rows.left, rows.right)
    rows.left -= copies
    rows.right -= copies
    return copies, ((rows.left > 0) & ~rows.closed_right) | ((rows.right > 0) & ~rows.closed_left)


def _except(rows: _Counts) -> tuple[Ints, Bools]:
    is_out = rows.right > 0
    is_decided = (rows.left > 0) & ~is_out & rows.closed_right
    copies = np.where(is_decided & (rows.given == 0), 1, 0)
    rows.given[is_decided] = 1
    # a row of the right side keeps later ones of the left out; one that was given itself is not given again
    return copies, np.where(is_out | is_decided, ~rows.closed_left, True).astype(bool)


def _except_all(rows: _Counts) -> tuple[Ints, Bools]:
    surplus = rows.left - rows.right
    copies = np.where(rows.closed_right, np.maximum(surplus, 0), 0)
    rows.left[:] = np.maximum(surplus, 0) - copies
    rows.right[:] = np.maximum(-surplus, 0)
    return copies, ((rows.left > 0) & ~rows.closed_right) | ((rows.right > 0) & ~rows.closed_left)


#: Of touched rows, whose counts they may change: how many copies are to be given, and which are to be kept.
OPERATORS: Mapping[str, Callable[[_Counts], tuple[Ints, Bools]]] = MappingProxyType(
    {
        "distinct": _distinct,
        "union": _union,
        "intersect": _intersect,
        "intersect all": _intersect_all,
        "except": _except,
        "except all": _except_all,
    }
)


@dataclass
class SetCarry:
    """The rows that are kept, each once, with their counts; what either side has promised."""

    store: Trace | None
    covers: tuple[Cover, Cover]
    promises: Promises

    @property
    def kept(self) -> tuple[int, ...]:
        """How many different rows are kept."""
        return (0 if self.store is None else len(self.store),)


@dataclass(frozen=True)
class SetOperator:
    """A set operator; ``distinct`` has one input, the others two with the same columns, by position.

    Output: rows of the left's column names, as soon as both sides allow; what both sides have promised.

    Attributes
    ----------
    operator
        ``union all``, or a key of `OPERATORS`.
    """

    operator: str

    def advance(self, carry: SetCarry | None, left: Step, right: Step | None = None) -> tuple[Step, SetCarry]:
        """Take a step; the carry that is given is used up."""
        schema = left.rows.schema
        if carry is None:
            lines = lines_of(schema)
            store = None if self.operator == "union all" else Trace(schema, schema.names, lines, _NOTES)
            carry = SetCarry(store, (Cover(lines), Cover(lines)), Promises(lines))
        sides = [left] if right is None else [left, _as_left(right, schema)]
        fresh = [
            [box for pattern in side.punctuations for box in cover.add(pattern)]
            for side, cover in zip(sides, carry.covers, strict=False)
        ]
        rows = pa.concat_tables([side.rows for side in sides])
        if carry.store is not None:
            is_right = np.repeat([False, True][: len(sides)], [side.rows.num_rows for side in sides])
            rows = self._taken(carry, carry.store, rows, is_right, [box for boxes in fresh for box in boxes])
        both = iter(fresh[0]) if len(sides) == 1 else _of_both(carry.covers, fresh)
        return Step(rows, carry.promises.news(both)), carry

    def _taken(
        self, carry: SetCarry, store: Trace, rows: pa.Table, is_right: Bools, fresh: list[Box]
    ) -> pa.Table:
        order, bounds = sorted_partitions(rows, tuple(rows.column_names), ())
        rows = rows if order is None else rows.take(pa.array(order))
        is_right = is_right if order is None else is_right[order]
        on_right = np.append(0, np.cumsum(is_right))
        lo, hi = (bounds[:-1], bounds[1:]) if len(rows) else (bounds[:0], bounds[:0])
        rows = rows.take(pa.array(lo))
        counts = {"right": on_right[hi] - on_right[lo], "given": np.zeros(len(lo), np.int64)}
        counts["left"] = hi - lo - counts["right"]
        # rows that are kept already move out of the store, those that are closed too, and back in if need be
        found = store.find(rows)
        for name in _NOTES:
            counts[name][found.asked] += store.note(name, found.places)
        closed = np.setdiff1d(store.matching(fresh), found.places)
        gone = np.concatenate([found.places, closed])
        touched = pa.concat_tables([rows, store.rows(closed)])
        notes = {name: np.concatenate([counts[name], store.note(name, closed)]) for name in _NOTES}
        store.remove(gone)
        told = _Counts(
            **notes,
            closed_left=carry.covers[0].matches(touched),
            closed_right=carry.covers[1].matches(touched),
        )
        copies, is_kept = OPERATORS[self.operator](told)
        kept = np.flatnonzero(is_kept)
        changed = {"left": told.left, "right": told.right, "given": told.given}
        store.add(touched.take(pa.array(kept)), **{name: of[kept] for name, of in changed.items()})
        return touched.take(pa.array(np.repeat(np.arange(len(touched)), copies)))


def _as_left(step: Step, schema: pa.Schema) -> Step:
    """The right side with the column names of the left."""
    names = dict(zip(step.rows.column_names, schema.names, strict=True))
    rows = step.rows.rename_columns(schema.names).cast(schema)
    return Step(rows, tuple(pattern.renamed(names) for pattern in step.punctuations))


def _of_both(covers: tuple[Cover, Cover], fresh: list[list[Box]]) -> Iterator[Box]:
    """What both sides have promised, of which one side has now."""
    for boxes, cover in zip(fresh, reversed(covers), strict=True):
        for box in boxes:
            for other in cover.overlapping(box):
                both = meet(box, other)
                assert both is not None
                yield both
