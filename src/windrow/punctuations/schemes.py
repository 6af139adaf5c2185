"""Punctuations that follow from the rows themselves, by a declaration of the stream.

A scheme derives punctuations from rows as they arrive. It is plain data. The caller must find rows that match
an earlier punctuation: they violate the declaration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.punctuations.cover import Cover
from windrow.punctuations.pattern import Pattern, lines_of
from windrow.punctuations.regions import NULL, Region

__all__ = ["EndOfEntity", "GrowingKey", "Scheme", "UniqueKey", "of_json", "schemes", "to_json"]


@dataclass
class UniqueKey:
    """A unique key: after each row, no row with its key follows.

    A NULL in a key differs from every other, so such a row implies nothing.

    Attributes
    ----------
    columns
        The key's columns.
    """

    columns: tuple[str, ...]

    def punctuations(self, rows: pa.Table) -> list[Pattern]:
        """The punctuations that follow from some rows, after all of them."""
        return _of_keys(rows, self.columns)


@dataclass
class GrowingKey:
    """A column that never decreases, over all rows or within each group of them.

    After each row, no lesser value follows, nor the same one if values strictly increase. A row with NULL in
    the column implies nothing.

    Attributes
    ----------
    column
        The increasing column.
    within
        The columns of the groups.
    is_strict
        Whether no value occurs twice.
    """

    column: str
    within: tuple[str, ...] = ()
    is_strict: bool = False

    def punctuations(self, rows: pa.Table) -> list[Pattern]:
        """The punctuations that follow from some rows, after all of them."""
        lines = lines_of(rows.schema)
        rows = rows.filter(pc.is_valid(rows.column(self.column)))
        if not rows.num_rows:
            return []
        line = lines[self.column]
        places = line.places(rows.column(self.column))
        found = []
        for key, own in _groups(rows, self.within):
            reached = max(places[own].tolist())
            stop = line.after(reached) if self.is_strict else reached
            if line.first < stop:
                found.append(Pattern.of_region({**key, self.column: (line.first, stop)}, lines))
        return found


@dataclass
class EndOfEntity:
    """An entity's last row: no row with its values in some columns follows.

    ``WHEN status = 'closed' PUNCTUATES (auction)``.

    Attributes
    ----------
    when
        The pattern of a last row.
    columns
        The columns that identify the entity. If one is NULL, there is no entity.
    """

    when: Pattern
    columns: tuple[str, ...]
    _cover: Cover | None = field(default=None, init=False, repr=False, compare=False)

    def punctuations(self, rows: pa.Table) -> list[Pattern]:
        """The punctuations that follow from some rows, after all of them."""
        if self._cover is None:
            self._cover = Cover(lines_of(rows.schema), [self.when])
        return _of_keys(rows.filter(pa.array(self._cover.matches(rows))), self.columns)


Scheme = UniqueKey | GrowingKey | EndOfEntity


def to_json(scheme: Scheme) -> dict[str, Any]:
    """Write a scheme as JSON."""
    match scheme:
        case UniqueKey(columns=columns):
            return {"unique": list(columns)}
        case GrowingKey(column=column, within=within, is_strict=is_strict):
            return {"growing": column, "within": list(within), "strict": is_strict}
        case EndOfEntity(when=when, columns=columns):
            return {"when": when.to_json(), "ends": list(columns)}


def of_json(stored: dict[str, Any], schema: pa.Schema) -> Scheme:
    """Read what :func:`to_json` wrote, for rows of this schema."""
    if "unique" in stored:
        return UniqueKey(tuple(stored["unique"]))
    if "growing" in stored:
        return GrowingKey(stored["growing"], tuple(stored["within"]), stored["strict"])
    return EndOfEntity(Pattern.from_json(stored["when"], schema), tuple(stored["ends"]))


def schemes(declared: Iterable[Scheme], rows: pa.Table) -> list[Pattern]:
    """The punctuations that follow from rows by all declared schemes."""
    return [pattern for scheme in declared for pattern in scheme.punctuations(rows)]


def _of_keys(rows: pa.Table, columns: tuple[str, ...]) -> list[Pattern]:
    """The punctuations of the rows' keys, except keys with a NULL."""
    lines = lines_of(rows.schema)
    keys = (key for key, _ in _groups(rows, columns))
    return [Pattern.of_region(key, lines) for key in keys if NULL not in key.values()]


def _groups(rows: pa.Table, columns: tuple[str, ...]) -> list[tuple[Region, np.ndarray]]:
    """The distinct values of columns, as regions in the order of arrival, and the rows of each."""
    lines = lines_of(rows.schema)
    codes = []
    for name in columns:
        column = rows.column(name)
        places = lines[name].places(column).tolist()
        valid = np.asarray(pc.is_valid(column)).tolist()
        codes.append([place if is_valid else NULL for place, is_valid in zip(places, valid, strict=True)])
    found: dict[tuple[object, ...], list[int]] = {}
    for at, key in enumerate(zip(*codes, strict=True) if columns else [()] * rows.num_rows):
        found.setdefault(key, []).append(at)
    return [
        (
            {
                name: NULL if place is NULL else lines[name].point(place)
                for name, place in zip(columns, key, strict=True)
            },
            np.array(own, np.int64),
        )
        for key, own in found.items()
    ]
