"""Random patterns over small columns, and a universe that tells all of them apart.

Constants are among the inner values of a column, so a value before, between and after any two of them stands
for all that a pattern cannot tell from it.
"""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from windrow.punctuations import Pattern

Conditions = list[tuple[Any, ...]]

KINDS: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "small": pa.int8(),
    "text": pa.string(),
    "flag": pa.bool_(),
    "float": pa.float64(),
}
UNIVERSE: dict[str, list[Any]] = {
    "int": [None, -1, 0, 1, 2, 3, 4],
    "small": [None, -128, -1, 0, 1, 126, 127],
    "text": [None, "", "Z", "a", "a\0", "aa", "b", "b\0", "c"],
    "flag": [None, False, True],
    "float": [None, float("-inf"), -1.0, -0.5, -0.0, 5e-324, 1.5, 2.0, float("inf"), float("nan")],
}
CONSTANTS: dict[str, list[Any]] = {
    "int": [0, 1, 2, 3],
    "small": [-128, 0, 126, 127],
    "text": ["", "a", "b"],
    "flag": [False, True],
    "float": [-1.0, 0.0, 1.5, float("inf"), float("nan")],
}


def rows(schema: pa.Schema, universe: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """All rows of a universe."""
    return [
        dict(zip(schema.names, values, strict=True))
        for values in itertools.product(*(universe[name] for name in schema.names))
    ]


@st.composite
def conditions(draw: st.DrawFn, constants: dict[str, list[Any]], most: int = 2) -> Conditions:
    """A conjunction over some of the columns."""
    found: Conditions = []
    for name in sorted(draw(st.sets(st.sampled_from(sorted(constants)), max_size=most))):
        one = st.sampled_from(constants[name])
        kind = draw(
            st.sampled_from(["=", "=", "in", "<", "<=", ">", ">=", "between", "is null", "is not null"])
        )
        if kind.startswith("is"):
            found.append((name, kind))
        elif kind in ("in", "between"):
            found.append((name, kind, draw(st.lists(one, min_size=2, max_size=2))))
        else:
            found.append((name, kind, draw(one)))
    return found


def pattern(schema: pa.Schema, told: Conditions) -> Pattern:
    """The pattern of a conjunction."""
    return Pattern.where(schema, told)
