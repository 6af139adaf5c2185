"""The columns of a target into which the columns of a query are inserted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windrow.errors import AnalysisError, Span, no_column
from windrow.streams import NamedStream

__all__ = ["TextPlace", "columns_named", "columns_taken"]


@dataclass(frozen=True)
class TextPlace:
    """A place in a text."""

    sql: str
    span: Span


def columns_taken(
    stream: NamedStream,
    own: Sequence[str],
    chosen: Sequence[str] | None = None,
    place: TextPlace | None = None,
) -> tuple[str, ...]:
    """The columns of a stream into which those of a query are inserted, by position.

    Raises
    ------
    AnalysisError
        ``INSERT_COLUMN_ARITY_MISMATCH``.
    """
    every = tuple(chosen if chosen is not None else stream.definition.columns.names)
    without = tuple(name for name in every if name != stream.definition.rowtime.column)
    found = next((names for names in (every, without) if len(names) == len(own)), None)
    if found is None:
        raise AnalysisError(
            f"the query has {len(own)} columns, but the stream needs {len(without)} in addition to the"
            f" rowtime: {', '.join(without)}",
            condition="INSERT_COLUMN_ARITY_MISMATCH",
            sqlstate="21S01",
            sql=place.sql if place is not None else None,
            span=place.span if place is not None else None,
            hint="name the columns to insert into: INSERT INTO s (a, b) …",
        )
    return found


def columns_named(
    target: str, known: Sequence[str], names: Iterable[tuple[str, Span]], sql: str
) -> list[str]:
    """The columns of a target that have these names, in any case; each name has its place in the text.

    Raises
    ------
    AnalysisError
        ``UNKNOWN_COLUMN``, ``DUPLICATE_COLUMN``.
    """
    columns = {name.lower(): name for name in known}
    found: list[str] = []
    for name, span in names:
        column = columns.get(name.lower())
        if column is None:
            raise no_column(f"{target} has", name, known, condition="UNKNOWN_COLUMN", sql=sql, span=span)
        if column in found:
            raise AnalysisError(
                f"column {name} is listed twice",
                condition="DUPLICATE_COLUMN",
                sqlstate="42701",
                sql=sql,
                span=span,
                hint="list each column once",
            )
        found.append(column)
    return found
