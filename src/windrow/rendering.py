"""Rows as a table of HTML, for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import types as T

__all__ = ["html_table"]


def html_table(schema: T.StructType, rows: Iterable[Sequence[Any]], caption: str) -> str:
    """A table with the names of the columns, and a line below it.

    Parameters
    ----------
    schema
        The columns. Numbers are aligned to the right.
    rows
        Their values, or texts of them.
    caption
        The line below the table.
    """
    fields = schema.fields
    head = "".join(
        f'<th title="{html.escape(kind)}"{_aligned(field)}>{html.escape(field.name)}</th>'
        for field, kind in ((field, field.dataType.simpleString()) for field in fields)
    )
    body = "".join(
        f"<tr>{''.join(_html_of(value, field) for value, field in zip(row, fields, strict=True))}</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'{table}<div style="opacity:.6">{html.escape(caption)}</div>'


def _aligned(field: T.StructField) -> str:
    side = "right" if isinstance(field.dataType, T.NumericType) else "left"
    return f' style="text-align:{side}"'


def _html_of(value: Any, field: T.StructField) -> str:
    text = '<span style="opacity:.45">NULL</span>' if value is None else html.escape(str(value))
    return f"<td{_aligned(field)}>{text}</td>"
