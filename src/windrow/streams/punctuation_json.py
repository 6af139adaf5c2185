"""Punctuations in a column of a source, as JSON."""

from __future__ import annotations

import pyarrow as pa

from windrow.errors import InputError
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
        raise InputError(
            f"{text} is no punctuation of these rows",
            condition="INVALID_VALUE",
            hint="write JSON: columns with lists of values, NULL and ranges, such as"
            ' {"auction": [42]} or {"hour": [{"in": {">=": 3, "<": 5}}]}',
        ) from None
