"""Punctuations as they are told in the columns of sources: JSON."""

from __future__ import annotations

import pyarrow as pa

from windrow.errors import InputError
from windrow.punctuations import Pattern

__all__ = ["pattern_of"]


def pattern_of(text: str, columns: pa.Schema) -> Pattern:
    """The pattern that a text tells of rows with these columns.

    Raises
    ------
    InputError
        ``INVALID_VALUE``: it tells none.
    """
    try:
        return Pattern.from_json(text, columns)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        raise InputError(
            f"{text} is no punctuation of these rows",
            condition="INVALID_VALUE",
            hint="a punctuation is JSON: columns with lists of values, NULL and ranges, such as"
            ' {"auction": [42]} or {"hour": [{"in": {">=": 3, "<": 5}}]}',
        ) from None
