"""Joins: rows are joined as they arrive, and retained until the other side is closed for their key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.kernels.punctuated.delta import Announced, Delta, renamed
from windrow.kernels.punctuated.watch import Watched
from windrow.kernels.sorting import sorted_partitions
from windrow.punctuations import Closing, Pattern, lines_of
from windrow.punctuations.regions import NULL, Region

__all__ = ["JoinCarry", "SymmetricJoin"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_PARTNER = "has_partner"


@dataclass
class _Side:
    """One input: its columns, its keys and their names on the other side, its closed keys, its rows."""

    schema: pa.Schema
    keys: tuple[str, ...]
    partners: tuple[str, ...]
    closing: Closing
    rows: Watched

    def as_probe(self, rows: pa.Table) -> pa.Table:
        """The keys of rows under the other side's names."""
        return rows.select(self.keys).rename_columns(list(self.partners))

    def in_others(self, regions: list[Region]) -> list[Region]:
        """Regions over the keys, under the other side's names."""
        names = dict(zip(self.keys, self.partners, strict=True))
        return [renamed(region, names) for region in regions]


@dataclass
class JoinCarry:
    """Both sides."""

    left: _Side
    right: _Side
    announced: Announced

    @property
    def retained(self) -> tuple[int, ...]:
        """The numbers of retained left and right rows; of right keys where one partner is like another."""
        return len(self.left.rows), len(self.right.rows)


@dataclass(frozen=True)
class SymmetricJoin:
    """A join on equal values of columns; NULL equals nothing. The two sides' columns have different names.

    Output: the pairs. An outer join pads a row with NULLs once the other side is closed for it. A semi join
    emits the rows with a partner; an anti join emits a row once it cannot get a partner; a mark join emits
    both, and which of them it is. A punctuation of a side is passed on when no retained row of that side
    matches it.

    Attributes
    ----------
    on
        Columns of the left and of the right, of the same types.
    kind
        ``inner``, ``left``, ``right``, ``full``, ``semi``, ``anti`` or ``mark``.
    condition
        Which rows of both sides' columns are pairs; None if all with equal keys are.
    mark
        The column that a mark join adds: whether a row has a partner.
    """

    on: tuple[tuple[str, str], ...]
    kind: str = "inner"
    condition: Callable[[pa.Table], Bools] | None = None
    mark: str = ""

    def advance(self, carry: JoinCarry | None, left: Delta, right: Delta) -> tuple[Delta, JoinCarry]:
        """Process a micro-batch; consumes the carry."""
        if carry is None:
            carry = self._begun(left.rows.schema, right.rows.schema)
        output = (
            self._halves(carry, left.rows, right.rows)
            if self._is_half
            else self._pairs(carry, left.rows, right.rows)
        )
        closed_left = carry.left.closing.add(left.punctuations)
        closed_right = carry.right.closing.add(right.punctuations)
        alone = self._alone(carry.left, carry.right.in_others(closed_right))
        if self._is_half:
            output.append(self._decided(alone, has_partner=False))
        elif self.kind in ("left", "full"):
            output.append(self._padded(carry, alone))
        alone = self._alone(carry.right, carry.left.in_others(closed_left))
        if self.kind in ("right", "full"):
            output.append(self._padded(carry, alone))
        news = self._punctuations(carry, left.punctuations, right.punctuations, closed_right)
        return Delta(pa.concat_tables(output), carry.announced.news(news)), carry

    @property
    def _is_half(self) -> bool:
        return self.kind in ("semi", "anti", "mark")

    def _begun(self, left: pa.Schema, right: pa.Schema) -> JoinCarry:
        mine, theirs = tuple(one for one, _ in self.on), tuple(other for _, other in self.on)
        is_alike = self._is_half and self.condition is None
        retained = pa.schema([right.field(name) for name in theirs]) if is_alike else right
        output = left if self._is_half else pa.schema([*left, *right])
        return JoinCarry(
            _side(left, left, mine, theirs), _side(right, retained, theirs, mine), Announced(lines_of(output))
        )

    def _pairs(self, carry: JoinCarry, left: pa.Table, right: pa.Table) -> list[pa.Table]:
        """The pairs of new rows, and new rows without a partner for which the other side is closed."""
        output: list[pa.Table] = []
        one, other = carry.left, carry.right
        for mine, theirs, rows, pads in (
            (one, other, left, self.kind in ("left", "full")),
            (other, one, right, self.kind in ("right", "full")),
        ):
            has_keys, is_closed = _standing(mine, theirs, rows)
            matched, places, pairs = self._found(carry, mine, theirs, rows, has_keys)
            theirs.rows.store.set_note(_PARTNER, places, np.ones(len(matched), np.int64))
            has_partner = np.zeros(len(rows), np.int64)
            has_partner[matched] = 1
            output.append(pairs)
            stays = has_keys & ~is_closed
            if pads:
                output.append(self._padded(carry, rows.filter(pa.array(~stays & (has_partner == 0)))))
            mine.rows.add(rows.filter(pa.array(stays)), **{_PARTNER: has_partner[stays]})
        return output

    def _found(
        self, carry: JoinCarry, mine: _Side, theirs: _Side, rows: pa.Table, has_keys: Bools
    ) -> tuple[Ints, Ints, pa.Table]:
        """New rows of a side with retained rows of the other: the numbers of the former, the places of the
        latter, and the pairs.
        """
        joinable = np.flatnonzero(has_keys)
        found = theirs.rows.store.find(mine.as_probe(rows.take(pa.array(joinable))))
        matched, places = joinable[found.probed], found.places
        both = [rows.take(pa.array(matched)), theirs.rows.store.rows(places)]
        if mine is carry.right:
            both.reverse()
        schema = pa.schema([*both[0].schema, *both[1].schema])
        pairs = pa.table([*both[0].columns, *both[1].columns], schema=schema)
        if self.condition is not None and len(pairs):
            holds = self.condition(pairs)
            matched, places, pairs = matched[holds], places[holds], pairs.filter(pa.array(holds))
        return matched, places, pairs

    def _halves(self, carry: JoinCarry, left: pa.Table, right: pa.Table) -> list[pa.Table]:
        """The rows of a semi, anti or mark join that new rows make final."""
        one, other = carry.left, carry.right
        has_keys, is_closed = _standing(one, other, left)
        matched, _, _ = self._found(carry, one, other, left, has_keys)
        has_partner = np.zeros(len(left), bool)
        has_partner[matched] = True
        stays = has_keys & ~is_closed & ~has_partner
        output = [
            self._decided(left.filter(pa.array(has_partner)), has_partner=True),
            self._decided(left.filter(pa.array(~stays & ~has_partner)), has_partner=False),
        ]
        one.rows.add(left.filter(pa.array(stays)), **{_PARTNER: np.zeros(int(stays.sum()), np.int64)})
        rows = right.select(other.rows.store.schema.names)
        has_keys, is_closed = _standing(other, one, rows)
        rows, is_closed = rows.filter(pa.array(has_keys)), is_closed[has_keys]
        if self.condition is None:
            rows, is_closed = _distinct(rows, is_closed, other.keys)
        _, met, _ = self._found(carry, other, one, rows, np.ones(len(rows), bool))
        met = np.unique(met)
        output.append(self._decided(one.rows.store.rows(met), has_partner=True))
        one.rows.remove(met)
        is_new = ~is_closed
        if self.condition is None:
            is_new[other.rows.store.find(rows).probed] = False
        other.rows.add(rows.filter(pa.array(is_new)), **{_PARTNER: np.zeros(int(is_new.sum()), np.int64)})
        return output

    def _decided(self, rows: pa.Table, *, has_partner: bool) -> pa.Table:
        """The output for rows of which it is known whether they have a partner."""
        if self.kind == "mark":
            return rows.append_column(
                pa.field(self.mark, pa.bool_()), pa.array(np.full(len(rows), has_partner))
            )
        return rows if has_partner == (self.kind == "semi") else rows.slice(0, 0)

    def _alone(self, side: _Side, closed: list[Region]) -> pa.Table:
        """The rows that will have no partner; drops all rows for which the other side is closed."""
        places = side.rows.store.matching(closed)
        rows = side.rows.store.rows(places[side.rows.store.note(_PARTNER, places) == 0])
        side.rows.remove(places)
        return rows

    def _padded(self, carry: JoinCarry, rows: pa.Table) -> pa.Table:
        """Rows of one side with NULLs on the other."""
        schema = pa.schema([*carry.left.schema, *carry.right.schema])
        has = set(rows.column_names)
        columns = [
            rows.column(name) if name in has else pa.nulls(len(rows), kind)
            for name, kind in zip(schema.names, schema.types, strict=True)
        ]
        return pa.table(columns, schema=schema)

    def _punctuations(
        self,
        carry: JoinCarry,
        left: tuple[Pattern, ...],
        right: tuple[Pattern, ...],
        closed_right: list[Region],
    ) -> Iterator[Region]:
        """The punctuations of the output."""
        one, other = carry.left, carry.right
        for region in one.rows.free(region for pattern in left for region in pattern.regions()):
            yield from _present(region, one) if self.kind in ("right", "full") else [region]
        if self._is_half:
            if self.kind == "semi":
                # part of a punctuation that still waits may be free by itself
                own = (
                    region
                    for pattern in right
                    for region in pattern.regions()
                    if region.keys() <= {*other.keys}
                )
                yield from other.in_others(other.rows.free([*closed_right, *own]))
            return
        for region in other.rows.free(region for pattern in right for region in pattern.regions()):
            yield from _present(region, other) if self.kind in ("left", "full") else [region]
        if one.closing.closed.covers({}) and other.closing.closed.covers({}):
            yield {}


def _side(schema: pa.Schema, retained: pa.Schema, keys: tuple[str, ...], partners: tuple[str, ...]) -> _Side:
    rows = Watched(retained, keys, lines_of(retained), [_PARTNER])
    return _Side(schema, keys, partners, Closing(lines_of(schema), keys), rows)


def _standing(mine: _Side, theirs: _Side, rows: pa.Table) -> tuple[Bools, Bools]:
    """Whether each row can have partners, and whether the other side is closed for it."""
    has_keys = np.ones(len(rows), bool)
    for name in mine.keys:
        has_keys &= np.asarray(pc.is_valid(rows.column(name)))
    return has_keys, theirs.closing.closed.matches(mine.as_probe(rows))


def _distinct(rows: pa.Table, is_closed: Bools, keys: tuple[str, ...]) -> tuple[pa.Table, Bools]:
    """A row of each key."""
    order, bounds = sorted_partitions(rows, keys, ())
    first = bounds[:-1] if len(rows) else bounds[:0]
    first = first if order is None else order[first]
    return rows.take(pa.array(first)), is_closed[first]


def _present(region: Region, side: _Side) -> list[Region]:
    """A region without the row of NULLs only, which stands for a missing partner."""
    if any(span is not NULL for span in region.values()):
        return [region]
    lines = side.closing.lines
    return [{**region, name: (line.first, line.end)} for name, line in lines.items() if name not in region]
