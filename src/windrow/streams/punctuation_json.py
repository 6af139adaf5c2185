"""Punctuations in a column of a source, as JSON."""

from __future__ import annotations

import json

import pyarrow as pa

from windrow.errors import InputError, did_you_mean
from windrow.punctuations import Pattern

__all__ = ["pattern_of"]


def pattern_of(text: str, columns: pa.Schema) -> Pattern:
    """Parse a punctuation of rows with these columns.

    Raises
    ------
    InputError
        ``INVALID_VALUE``: the text is no punctuation.
    """
    try:
        return Pattern.from_json(text, columns)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        unknown = _unknown_column(text, columns)
        if unknown is not None:
            known = [name for name in columns.names if not name.startswith("__")]
            raise InputError(
                f"{text} is not a punctuation of the rows, which have no column {unknown}",
                condition="INVALID_VALUE",
                hint=did_you_mean(unknown, known) or f"use one of the columns {', '.join(known)}",
            ) from None
        raise InputError(
            f"{text} is not a punctuation of the rows",
            condition="INVALID_VALUE",
            hint="write JSON: columns with lists of values, NULL and ranges, such as"
            ' {"auction": [42]} or {"hour": [{"in": {">=": 3, "<": 5}}]}',
        ) from None


def _unknown_column(text: str, columns: pa.Schema) -> str | None:
    """The first column of an object of JSON that the rows do not have."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    names = found if isinstance(found, dict) else ()
    return next((name for name in names if name not in columns.names), None)
