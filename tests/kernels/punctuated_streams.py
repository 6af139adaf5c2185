"""Random streams with punctuation, and the check of an operator over them against its definition."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import strategies as st

from tests.punctuations.patterns import conditions
from windrow.kernels.punctuated import (
    Delta,
)
from windrow.kernels.reference.punctuation import InputSoFar, excluded, tupled
from windrow.kernels.stored import from_stored, stored
from windrow.punctuations import Cover, Pattern, lines_of

CONSTANTS = {"int": [0, 1], "text": ["a"], "flag": [False, True]}
#: Constants, NULL, and what is before, between and after constants.
VALUES = {"int": [None, -1, 0, 1, 2], "text": [None, "", "a", "b"], "flag": [None, False, True]}
#: The same with values before the least row and after the greatest: in an order, places differ.
ORDERED = {
    **VALUES,
    "int": [None, -2, -1, 0, 1, 2, 3],
    "text": [None, "", "A", "a", "aa", "b", "c"],
}
KINDS_OF = {"int": pa.int64(), "text": pa.string(), "flag": pa.bool_()}


@dataclass
class Stream:
    """An input: what its rows may be, and what has come of it."""

    columns: dict[str, str]
    pieces: list[tuple[list[dict], list[list[tuple]]]]
    values: dict[str, list] = field(default_factory=lambda: VALUES)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, KINDS_OF[kind]) for name, kind in self.columns.items()])

    @property
    def universe(self) -> dict[str, list]:
        return {name: self.values[kind] for name, kind in self.columns.items()}

    def so_far(self, steps: int) -> InputSoFar:
        rows = [row for rows, _ in self.pieces[:steps] for row in rows]
        patterns = [pattern for _, patterns in self.pieces[:steps] for pattern in patterns]
        return InputSoFar(rows, patterns, self.universe)

    def step(self, number: int) -> Delta:
        rows, patterns = self.pieces[number]
        table = pa.Table.from_pylist(rows, self.schema)
        return Delta(table, tuple(Pattern.where(self.schema, pattern) for pattern in patterns))


@st.composite
def streams(draw: st.DrawFn, columns: dict[str, str], steps: int, *, nulls: bool = True) -> Stream:
    """Steps of rows and then patterns; no row matches an earlier pattern; in the end all is promised."""
    values = {
        name: st.sampled_from([one for one in VALUES[kind] if nulls or one is not None])
        for name, kind in columns.items()
    }
    constants = {name: CONSTANTS[kind] for name, kind in columns.items()}
    pieces, patterns = [], []
    for _ in range(steps):
        rows = draw(st.lists(st.fixed_dictionaries(values), max_size=3))
        rows = [{name: row[name] for name in columns} for row in rows if not excluded(row, patterns)]
        told = draw(st.lists(conditions(constants), max_size=2))
        pieces.append((rows, told))
        patterns += told
    return Stream(columns, [*pieces, ([], [[]])])


def check(operator, meaning, inputs, output_schema, *, in_order=False, exact=True, further=None):
    """Run the steps one after the other, and hold what is given, promised and kept to the definition."""
    steps = len(inputs[0].pieces)
    carry, given_, told = None, [], Cover(lines_of(output_schema))
    final = meaning(*(stream.so_far(steps) for stream in inputs)).passed
    columns = {name: kind for stream in inputs for name, kind in stream.columns.items()} | (further or {})
    universe = {name: VALUES.get(columns.get(name), [None]) for name in output_schema.names}
    possible = [dict(zip(universe, row, strict=True)) for row in itertools.product(*universe.values())]
    table = pa.Table.from_pylist(possible, output_schema)
    for number in range(steps):
        carry = from_stored(stored(carry))  # as a restart would
        step, carry = operator.advance(carry, *(stream.step(number) for stream in inputs))
        assert step.rows.schema.equals(output_schema)
        assert not told.matches(step.rows).any(), "proper: what was promised not to come came"
        for pattern in step.punctuations:
            assert told.add(pattern), "each punctuation says something new"
        given_ += [tupled(row) for row in step.rows.to_pylist()]
        meant = meaning(*(stream.so_far(number + 1) for stream in inputs))
        if in_order:
            assert given_ == meant.passed
            assert given_ == final[: len(given_)]
        else:
            assert Counter(given_) == Counter(meant.passed), "complete"
            assert Counter(given_) <= Counter(final), "safe"
        assert carry.retained == meant.retained, "minimal"
        if possible:
            wanted = [meant.is_excluded(row) for row in possible]
            found = told.matches(table).tolist()
            assert found == wanted if exact else all(a for a, b in zip(found, wanted, strict=True) if b)
    assert sum(carry.retained) == 0
