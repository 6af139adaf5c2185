"""Patterns: sets of rows, described column by column."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.punctuations.column_values import Values
from windrow.punctuations.lines import line_if_any
from windrow.punctuations.regions import NULL, Lines, Region

__all__ = ["EVERYTHING", "Pattern", "lines_of", "put_together"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """The rows whose columns have certain values. As a punctuation: no later row matches it.

    Attributes
    ----------
    columns
        The columns that it restricts, in the order of their names, and their values. It is ``*`` on all
        others.
    """

    columns: tuple[tuple[str, Values], ...]

    @staticmethod
    def of(columns: Mapping[str, Values] | Iterable[tuple[str, Values]]) -> Pattern:
        """The pattern of these columns; columns with all values are left out."""
        own_columns = columns.items() if isinstance(columns, Mapping) else columns
        return Pattern(tuple(sorted((name, own) for name, own in own_columns if not own.is_everything)))

    @staticmethod
    def where(schema: pa.Schema, conditions: Iterable[tuple[Any, ...]]) -> Pattern:
        """The rows for which all comparisons are true.

        Parameters
        ----------
        schema
            The columns of the rows.
        conditions
            (column, operator) or (column, operator, operand), as :meth:`Values.compared` has them.

        Raises
        ------
        InputError
            ``INVALID_VALUE``.
        NotSupportedError
            ``UNSUPPORTED_TYPE``.
        """
        found: dict[str, Values] = {}
        for name, operator, *operand in conditions:
            own = Values.compared(schema.field(name).type, operator, *operand)
            found[name] = found[name] & own if name in found else own
        return Pattern.of(found)

    @staticmethod
    def outside(schema: pa.Schema, conditions: Iterable[tuple[Any, ...]]) -> list[Pattern]:
        """The rows for which one of the comparisons is not true: the rows outside a domain.

        NULL is outside, as a comparison with it is not true.
        """
        whole = Pattern.where(schema, conditions)
        return [Pattern.of({name: ~own}) for name, own in whole.columns]

    def __getitem__(self, name: str) -> Values | None:
        return next((own for known, own in self.columns if known == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it restricts."""
        return tuple(name for name, _ in self.columns)

    @property
    def is_empty(self) -> bool:
        """Whether it matches no row at all."""
        return any(own.is_empty for _, own in self.columns)

    def __and__(self, other: Pattern) -> Pattern:
        found = dict(self.columns)
        for name, own in other.columns:
            found[name] = found[name] & own if name in found else own
        return Pattern.of(found)

    def __le__(self, other: Pattern) -> bool:
        """Whether the other pattern contains this one."""
        if self.is_empty:
            return True
        mine = dict(self.columns)
        return all(name in mine and mine[name] <= own for name, own in other.columns)

    def only(self, names: Iterable[str]) -> Pattern:
        """The pattern of some of its columns."""
        chosen = set(names)
        return Pattern(tuple((name, own) for name, own in self.columns if name in chosen))

    def renamed(self, names: Mapping[str, str]) -> Pattern:
        """The pattern with other column names."""
        return Pattern.of((names.get(name, name), own) for name, own in self.columns)

    def regions(self) -> Iterator[Region]:
        """Its regions: one for each combination of the columns' spans."""
        spans_of_each = [(*([NULL] if own.null else []), *own.spans) for _, own in self.columns]
        for spans in itertools.product(*spans_of_each):
            yield dict(zip(self.names, spans, strict=True))

    @staticmethod
    def of_region(region: Region, lines: Lines) -> Pattern:
        """The pattern of a region."""
        return Pattern.of(
            (name, Values(lines[name], span is NULL, () if span is NULL else (span,)))
            for name, span in region.items()
        )

    def to_json(self) -> str:
        """Write JSON: columns with lists of values, NULL and ranges.

        ``{"hour": [1, null, {"in": {">=": 3, "<": 5}}]}`` is 1, NULL, 3 or 4. Times are in ticks of the
        column's type.
        """
        return json.dumps({name: own.to_json() for name, own in self.columns})

    @staticmethod
    def from_json(text: str, schema: pa.Schema) -> Pattern:
        """Read what :meth:`to_json` wrote, for rows of this schema."""
        columns = json.loads(text)
        return Pattern.of(
            (name, Values.of_json(schema.field(name).type, own)) for name, own in columns.items()
        )

    def __str__(self) -> str:
        return " AND ".join(own.formatted(name) for name, own in self.columns) or "TRUE"


EVERYTHING = Pattern(())
"""All rows: as a punctuation, no row follows."""


def lines_of(schema: pa.Schema) -> Lines:
    """The lines of the columns that have one; a pattern cannot restrict the others."""
    found = {field.name: line_if_any(field.type) for field in schema}
    return {name: line for name, line in found.items() if line is not None}


def put_together(patterns: Iterable[Pattern]) -> list[Pattern]:
    """Merge patterns that restrict one and the same column only."""
    found: list[Pattern] = []
    alone: dict[str, Values] = {}
    for pattern in patterns:
        if len(pattern.columns) != 1:
            found.append(pattern)
            continue
        ((name, own),) = pattern.columns
        alone[name] = alone[name] | own if name in alone else own
    return [*(Pattern.of({name: own}) for name, own in alone.items()), *found]
