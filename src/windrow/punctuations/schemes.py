"""Punctuations that follow from the rows themselves, by what is declared of a stream.

A scheme is told the rows as they come and says what they promise of those that follow. It is plain data.
Rows that its own promises exclude are the caller's to find: they break the declaration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.punctuations.boxes import NULL, Box
from windrow.punctuations.cover import Cover
from windrow.punctuations.pattern import Pattern, lines_of

__all__ = ["EndOfEntity", "GrowingKey", "Scheme", "UniqueKey", "of_json", "schemes", "to_json"]


@dataclass
class UniqueKey:
    """Rows with a key come once: each row promises that none with its key follows.

    NULL in a key is unlike any other, so such a row promises nothing.

    Attributes
    ----------
    columns
        The key's.
    """

    columns: tuple[str, ...]

    def promises(self, rows: pa.Table) -> list[Pattern]:
        """What rows promise of those that follow them all."""
        return _of_keys(rows, self.columns)


@dataclass
class GrowingKey:
    """A column that never falls, of all rows or of those with the same values in others.

    Each row promises that no value below its own follows, nor its own if values only grow. A row where the
    column is NULL promises nothing.

    Attributes
    ----------
    column
        Which grows.
    within
        The columns whose values rows have in common that grow for themselves.
    is_strict
        Whether no value comes twice.
    """

    column: str
    within: tuple[str, ...] = ()
    is_strict: bool = False

    def promises(self, rows: pa.Table) -> list[Pattern]:
        """What rows promise of those that follow them all."""
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
                found.append(Pattern.of_box({**key, self.column: (line.first, stop)}, lines))
        return found


@dataclass
class EndOfEntity:
    """A row that is an entity's last: it promises that no row with its values in some columns follows.

    ``WHEN status = 'closed' PUNCTUATES (auction)``.

    Attributes
    ----------
    when
        What the last row matches.
    columns
        That name the entity. Where one is NULL there is none.
    """

    when: Pattern
    columns: tuple[str, ...]
    _cover: Cover | None = field(default=None, init=False, repr=False, compare=False)

    def promises(self, rows: pa.Table) -> list[Pattern]:
        """What rows promise of those that follow them all."""
        if self._cover is None:
            self._cover = Cover(lines_of(rows.schema), [self.when])
        return _of_keys(rows.filter(pa.array(self._cover.matches(rows))), self.columns)


Scheme = UniqueKey | GrowingKey | EndOfEntity


def to_json(scheme: Scheme) -> dict[str, Any]:
    """A scheme as JSON has it."""
    match scheme:
        case UniqueKey(columns=columns):
            return {"unique": list(columns)}
        case GrowingKey(column=column, within=within, is_strict=is_strict):
            return {"growing": column, "within": list(within), "strict": is_strict}
        case EndOfEntity(when=when, columns=columns):
            return {"when": when.to_json(), "ends": list(columns)}


def of_json(told: dict[str, Any], schema: pa.Schema) -> Scheme:
    """What :func:`to_json` has told of rows of this schema."""
    if "unique" in told:
        return UniqueKey(tuple(told["unique"]))
    if "growing" in told:
        return GrowingKey(told["growing"], tuple(told["within"]), told["strict"])
    return EndOfEntity(Pattern.from_json(told["when"], schema), tuple(told["ends"]))


def schemes(declared: Iterable[Scheme], rows: pa.Table) -> list[Pattern]:
    """What rows promise by all that is declared."""
    return [pattern for scheme in declared for pattern in scheme.promises(rows)]


def _of_keys(rows: pa.Table, columns: tuple[str, ...]) -> list[Pattern]:
    """That none with these keys follows, but for keys in which something is NULL."""
    lines = lines_of(rows.schema)
    keys = (key for key, _ in _groups(rows, columns))
    return [Pattern.of_box(key, lines) for key in keys if NULL not in key.values()]


def _groups(rows: pa.Table, columns: tuple[str, ...]) -> list[tuple[Box, np.ndarray]]:
    """The different values of columns, as boxes, in the order in which they come, and the rows of each."""
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
