"""DISTINCT, UNION, INTERSECT, EXCEPT, and their ALL forms: rows counted on either side.

How many copies of a row may be emitted, and whether it must be retained, depends on its counts and on which
sides punctuations have closed it. Each operator is a formula over these, for all rows that a micro-batch
affects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.punctuated.delta import Announced, Delta
from windrow.kernels.sorting import sorted_partitions
from windrow.kernels.trace import Trace
from windrow.punctuations import Cover, lines_of
from windrow.punctuations.regions import Region, meet

__all__ = ["OPERATORS", "SetCarry", "SetOperator"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_EMITTED = "given"  # in stored state
_NOTES = ("left", "right", _EMITTED)


@dataclass
class _Counts:
    """For some rows: their counts on either side, whether they were emitted, where they are closed."""

    left: Ints
    right: Ints
    emitted: Ints
    closed_left: Bools
    closed_right: Bools


def _distinct(rows: _Counts) -> tuple[Ints, Bools]:
    copies = np.where(rows.emitted > 0, 0, 1)
    rows.emitted[:] = 1
    return copies, ~rows.closed_left


def _union(rows: _Counts) -> tuple[Ints, Bools]:
    copies, _ = _distinct(rows)
    return copies, ~(rows.closed_left & rows.closed_right)


def _intersect(rows: _Counts) -> tuple[Ints, Bools]:
    is_in = (rows.left > 0) & (rows.right > 0)
    copies = np.where(is_in & (rows.emitted == 0), 1, 0)
    rows.emitted[is_in] = 1
    waits = ((rows.left > 0) & ~rows.closed_right) | ((rows.right > 0) & ~rows.closed_left)
    # an emitted row is retained, so as not to be emitted again, while it may still arrive on both sides
    return copies, np.where(is_in, ~rows.closed_left & ~rows.closed_right, waits).astype(bool)


def _intersect_all(rows: _Counts) -> tuple[Ints, Bools]:
    copies = np.minimum(rows.left, rows.right)
    rows.left -= copies
    rows.right -= copies
    return copies, ((rows.left > 0) & ~rows.closed_right) | ((rows.right > 0) & ~rows.closed_left)


def _except(rows: _Counts) -> tuple[Ints, Bools]:
    is_out = rows.right > 0
    is_decided = (rows.left > 0) & ~is_out & rows.closed_right
    copies = np.where(is_decided & (rows.emitted == 0), 1, 0)
    rows.emitted[is_decided] = 1
    # a right row suppresses later left rows; an emitted row must not be emitted again
    return copies, np.where(is_out | is_decided, ~rows.closed_left, True).astype(bool)


def _except_all(rows: _Counts) -> tuple[Ints, Bools]:
    surplus = rows.left - rows.right
    copies = np.where(rows.closed_right, np.maximum(surplus, 0), 0)
    rows.left[:] = np.maximum(surplus, 0) - copies
    rows.right[:] = np.maximum(-surplus, 0)
    return copies, ((rows.left > 0) & ~rows.closed_right) | ((rows.right > 0) & ~rows.closed_left)


#: For affected rows, whose counts they may change: how many copies to emit, and which rows to retain.
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
    """The retained rows, each once, with their counts; the punctuations of either side."""

    store: Trace | None
    covers: tuple[Cover, Cover]
    announced: Announced

    @property
    def retained(self) -> tuple[int, ...]:
        """The number of distinct retained rows."""
        return (0 if self.store is None else len(self.store),)


@dataclass(frozen=True)
class SetOperator:
    """A set operator; ``distinct`` has one input, the others two with the same columns, by position.

    Output: rows under the left side's column names, as soon as both sides allow; the common punctuations.

    Attributes
    ----------
    operator
        ``union all``, or a key of `OPERATORS`.
    """

    operator: str

    def advance(
        self, carry: SetCarry | None, left: Delta, right: Delta | None = None
    ) -> tuple[Delta, SetCarry]:
        """Process a micro-batch; consumes the carry."""
        schema = left.rows.schema
        if carry is None:
            lines = lines_of(schema)
            store = None if self.operator == "union all" else Trace(schema, schema.names, lines, _NOTES)
            carry = SetCarry(store, (Cover(lines), Cover(lines)), Announced(lines))
        sides = [left] if right is None else [left, _as_left(right, schema)]
        fresh = [
            [region for pattern in side.punctuations for region in cover.add(pattern)]
            for side, cover in zip(sides, carry.covers, strict=False)
        ]
        rows = pa.concat_tables([side.rows for side in sides])
        if carry.store is not None:
            is_right = np.repeat([False, True][: len(sides)], [side.rows.num_rows for side in sides])
            rows = self._counted(
                carry, carry.store, rows, is_right, [region for regions in fresh for region in regions]
            )
        both = iter(fresh[0]) if len(sides) == 1 else _of_both(carry.covers, fresh)
        return Delta(rows, carry.announced.news(both)), carry

    def _counted(
        self, carry: SetCarry, store: Trace, rows: pa.Table, is_right: Bools, fresh: list[Region]
    ) -> pa.Table:
        order, bounds = sorted_partitions(rows, tuple(rows.column_names), ())
        rows = rows if order is None else rows.take(pa.array(order))
        is_right = is_right if order is None else is_right[order]
        on_right = np.append(0, np.cumsum(is_right))
        lo, hi = (bounds[:-1], bounds[1:]) if len(rows) else (bounds[:0], bounds[:0])
        rows = rows.take(pa.array(lo))
        counts = {"right": on_right[hi] - on_right[lo], _EMITTED: np.zeros(len(lo), np.int64)}
        counts["left"] = hi - lo - counts["right"]
        # affected and closed rows leave the store, and return if they must be retained
        found = store.find(rows)
        for name in _NOTES:
            counts[name][found.probed] += store.note(name, found.places)
        closed = np.setdiff1d(store.matching(fresh), found.places)
        gone = np.concatenate([found.places, closed])
        affected = pa.concat_tables([rows, store.rows(closed)])
        left, right, emitted = (np.concatenate([counts[name], store.note(name, closed)]) for name in _NOTES)
        store.remove(gone)
        counted = _Counts(
            left,
            right,
            emitted,
            closed_left=carry.covers[0].matches(affected),
            closed_right=carry.covers[1].matches(affected),
        )
        copies, is_retained = OPERATORS[self.operator](counted)
        retained = np.flatnonzero(is_retained)
        changed = {"left": counted.left, "right": counted.right, _EMITTED: counted.emitted}
        store.add(affected.take(pa.array(retained)), **{name: of[retained] for name, of in changed.items()})
        return affected.take(pa.array(np.repeat(np.arange(len(affected)), copies)))


def _as_left(delta: Delta, schema: pa.Schema) -> Delta:
    """The right side with the column names of the left."""
    names = dict(zip(delta.rows.column_names, schema.names, strict=True))
    rows = delta.rows.rename_columns(schema.names).cast(schema)
    return Delta(rows, tuple(pattern.renamed(names) for pattern in delta.punctuations))


def _of_both(covers: tuple[Cover, Cover], fresh: list[list[Region]]) -> Iterator[Region]:
    """The common punctuations of both sides to which a new one contributes."""
    for regions, cover in zip(fresh, reversed(covers), strict=True):
        for region in regions:
            for other in cover.overlapping(region):
                both = meet(region, other)
                assert both is not None
                yield both
