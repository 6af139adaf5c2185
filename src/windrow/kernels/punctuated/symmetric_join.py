"""Joins: rows are joined as they arrive, and retained until the other side is closed for their key."""

from __future__ import annotations

from collections.abc import Iterator
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
        """The numbers of retained left and right rows; of right keys in semi and anti joins."""
        return len(self.left.rows), len(self.right.rows)


@dataclass(frozen=True)
class SymmetricJoin:
    """A join on equal values of columns; NULL equals nothing. The two sides' columns have different names.

    Output: the pairs. An outer join pads a row with NULLs once the other side is closed for it. A semi join
    emits the rows with a partner; an anti join emits a row once it cannot get a partner. A punctuation of a
    side is passed on when no retained row of that side matches it.

    Attributes
    ----------
    on
        Columns of the left and of the right, of the same types.
    kind
        ``inner``, ``left``, ``right``, ``full``, ``semi`` or ``anti``.
    """

    on: tuple[tuple[str, str], ...]
    kind: str = "inner"

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
        if self.kind in ("left", "full", "anti"):
            output.append(self._padded(carry, alone))
        alone = self._alone(carry.right, carry.left.in_others(closed_left))
        if self.kind in ("right", "full"):
            output.append(self._padded(carry, alone))
        news = self._punctuations(carry, left.punctuations, right.punctuations, closed_right)
        return Delta(pa.concat_tables(output), carry.announced.news(news)), carry

    @property
    def _is_half(self) -> bool:
        return self.kind in ("semi", "anti")

    def _begun(self, left: pa.Schema, right: pa.Schema) -> JoinCarry:
        mine, theirs = tuple(one for one, _ in self.on), tuple(other for _, other in self.on)
        retained = pa.schema([right.field(name) for name in theirs]) if self._is_half else right
        output = left if self._is_half else pa.schema([*left, *right])
        return JoinCarry(
            _side(left, left, mine, theirs), _side(right, retained, theirs, mine), Announced(lines_of(output))
        )

    def _pairs(self, carry: JoinCarry, left: pa.Table, right: pa.Table) -> list[pa.Table]:
        """The pairs of new rows, and new rows without a partner for which the other side is closed."""
        output: list[pa.Table] = [self._schema(carry).empty_table()]
        one, other = carry.left, carry.right
        for mine, theirs, rows, pads in (
            (one, other, left, self.kind in ("left", "full")),
            (other, one, right, self.kind in ("right", "full")),
        ):
            has_keys, is_closed = _standing(mine, theirs, rows)
            joinable = np.flatnonzero(has_keys)
            found = theirs.rows.store.find(mine.as_probe(rows.take(pa.array(joinable))))
            matched = joinable[found.probed]
            theirs.rows.store.set_note(_PARTNER, found.places, np.ones(len(matched), np.int64))
            has_partner = np.zeros(len(rows), np.int64)
            has_partner[matched] = 1
            both = [rows.take(pa.array(matched)), theirs.rows.store.rows(found.places)]
            if mine is other:
                both.reverse()
            output.append(pa.table([*both[0].columns, *both[1].columns], schema=output[0].schema))
            stays = has_keys & ~is_closed
            if pads:
                output.append(self._padded(carry, rows.filter(pa.array(~stays & (has_partner == 0)))))
            mine.rows.add(rows.filter(pa.array(stays)), **{_PARTNER: has_partner[stays]})
        return output

    def _halves(self, carry: JoinCarry, left: pa.Table, right: pa.Table) -> list[pa.Table]:
        """The rows of a semi or anti join that new rows make final."""
        one, other = carry.left, carry.right
        has_keys, is_closed = _standing(one, other, left)
        joinable = np.flatnonzero(has_keys)
        has_partner = np.zeros(len(left), bool)
        has_partner[joinable[other.rows.store.find(one.as_probe(left.take(pa.array(joinable)))).probed]] = (
            True
        )
        stays = has_keys & ~is_closed & ~has_partner
        output = [left.filter(pa.array(has_partner if self.kind == "semi" else ~stays & ~has_partner))]
        one.rows.add(left.filter(pa.array(stays)), **{_PARTNER: np.zeros(int(stays.sum()), np.int64)})
        keys = right.select(other.keys)
        has_keys, is_closed = _standing(other, one, keys)
        keys = keys.filter(pa.array(has_keys))
        is_closed = is_closed[has_keys]
        order, bounds = sorted_partitions(keys, other.keys, ())
        first = bounds[:-1] if len(keys) else bounds[:0]
        first = first if order is None else order[first]
        keys, is_closed = keys.take(pa.array(first)), is_closed[first]
        met = one.rows.store.find(other.as_probe(keys)).places
        if self.kind == "semi":
            output.append(one.rows.store.rows(met))
        one.rows.remove(met)
        is_new = ~is_closed
        is_new[other.rows.store.find(keys).probed] = False
        other.rows.add(keys.filter(pa.array(is_new)), **{_PARTNER: np.zeros(int(is_new.sum()), np.int64)})
        return output

    def _alone(self, side: _Side, closed: list[Region]) -> pa.Table:
        """The rows that will have no partner; drops all rows for which the other side is closed."""
        places = side.rows.store.matching(closed)
        rows = side.rows.store.rows(places[side.rows.store.note(_PARTNER, places) == 0])
        side.rows.remove(places)
        return rows

    def _schema(self, carry: JoinCarry) -> pa.Schema:
        return carry.left.schema if self._is_half else pa.schema([*carry.left.schema, *carry.right.schema])

    def _padded(self, carry: JoinCarry, rows: pa.Table) -> pa.Table:
        """Rows of one side with NULLs on the other."""
        schema = self._schema(carry)
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


def _present(region: Region, side: _Side) -> list[Region]:
    """A region without the row of NULLs only, which stands for a missing partner."""
    if any(span is not NULL for span in region.values()):
        return [region]
    lines = side.closing.lines
    return [{**region, name: (line.first, line.end)} for name, line in lines.items() if name not in region]
