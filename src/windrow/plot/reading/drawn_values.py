"""The column whose values are drawn: numbers along an axis, or texts on a level each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import types as T

from windrow.algebra.names import visible_field
from windrow.errors import AnalysisError, UsageError, did_you_mean
from windrow.plot.reading.chart_options import Options

__all__ = ["DrawnColumn", "drawn_column", "levels_of"]

_LEVELS = 12
"""More texts than that are not drawn on levels."""


@dataclass(frozen=True)
class DrawnColumn:
    """The field of the rows whose values are drawn, the name of its column, and its kind."""

    field: str
    name: str
    is_text: bool
    is_whole: bool


def drawn_column(
    row: T.StructType, keys: set[str], read: Sequence[str], options: Options
) -> DrawnColumn | None:
    """The column of the options; otherwise the first number that the clause reads, the first text that it
    reads, the first number, the first text. `keys` are drawn in other ways. None if rows have nothing to
    draw.

    Raises
    ------
    WindrowError
        ``UNRESOLVED_COLUMN``; ``INVALID_ARGUMENT`` for a column of another type.
    """
    numbers = [field.name for field in row.fields if isinstance(field.dataType, T.NumericType)]
    texts = [field.name for field in row.fields if _is_text(field.dataType)]
    field: str | None
    if options.value is not None:
        field = _named(row, options.value, [*numbers, *texts])
    else:
        lower = {name.lower() for name in keys}
        free = [[name for name in names if name.lower() not in lower] for names in (numbers, texts)]
        found = [*(_first_read(names, read) for names in free), *(next(iter(names), None) for names in free)]
        field = next((name for name in found if name is not None), None)
    if field is None:
        return None
    kind = row[field].dataType
    return DrawnColumn(field, _column(field), _is_text(kind), isinstance(kind, T.IntegralType))


def levels_of(texts: Iterable[str | None]) -> tuple[str, ...]:
    """The texts in order of appearance, from the bottom to the top; empty if there are too many to draw.

    >>> levels_of(["sign up", "import", None, "sign up"])
    ('sign up', 'import')
    >>> levels_of(["true", "false"])
    ('false', 'true')
    """
    found = [text for text in dict.fromkeys(texts) if text is not None]
    if {*found} <= {"false", "true"}:
        found.sort()
    return tuple(found) if len(found) <= _LEVELS else ()


def _is_text(kind: T.DataType) -> bool:
    return isinstance(kind, T.StringType | T.CharType | T.VarcharType | T.BooleanType)


def _named(row: T.StructType, name: str, drawable: list[str]) -> str:
    found = [field.name for field in row.fields if field.name.lower() == name.lower()]
    known = ", ".join(drawable) or "no column"
    if not found:
        raise AnalysisError(
            f"the rows have no column {name}",
            condition="UNRESOLVED_COLUMN",
            sqlstate="42703",
            hint=did_you_mean(name, drawable) or f"name a column of numbers or texts: {known}",
        )
    if found[0] not in drawable:
        raise UsageError(
            f"column {found[0]} is neither a number nor a text, so it cannot be drawn",
            condition="INVALID_ARGUMENT",
            hint=f"name a column of numbers or texts: {known}",
        )
    return found[0]


def _first_read(candidates: Sequence[str], read: Sequence[str]) -> str | None:
    """The first of these fields whose column is in the texts that the clause reads."""
    for text in read:
        words = [word.lower() for word in re.findall(r"\w+", text)]
        columns = [(_column(name).lower(), name) for name in candidates]
        named = sorted((words.index(column), name) for column, name in columns if column in words)
        if named:
            return named[0][1]
    return None


def _column(field: str) -> str:
    """The name of the column that a field of a row is."""
    return visible_field(field) or field.rpartition(".")[2]
