"""Since when values are closed, as promises are told: what is kept of them is what the definitions say."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.punctuations.patterns import CONSTANTS, KINDS, UNIVERSE, conditions, rows
from windrow.kernels.reference.emit import none_follows
from windrow.punctuations import Cover, Pattern, lines_of
from windrow.punctuations.index import NEVER
from windrow.punctuations.since import Since
from windrow.streams.producer_punctuations import shared, shared_since

NAMES = ["int", "text", "flag"]
SCHEMA = pa.schema([(name, KINDS[name]) for name in NAMES])
told = conditions({name: CONSTANTS[name] for name in NAMES}).filter(bool)


def placed(row, lines):
    return {
        name: None if value is None else lines[name].places(pa.array([value], lines[name].kind))[0]
        for name, value in row.items()
    }


@given(st.lists(told, max_size=6), st.lists(st.sampled_from(NAMES), unique=True), st.data())
def test_values_are_closed_since_the_promise_that_completes_it(patterns, columns, data):
    lines = lines_of(SCHEMA)
    since, told_so_far = Since(lines, columns), []
    kept = pa.schema([SCHEMA.field(name) for name in columns])
    keys = rows(kept, UNIVERSE)
    table = pa.Table.from_pylist(keys, kept) if columns else pa.table({"": [0]}).select([])
    wanted = [NEVER] * len(keys)
    for at, one in enumerate(patterns):
        pattern = Pattern.where(SCHEMA, one)
        told_so_far.append(pattern)
        since.add(at, [pattern])
        over = [none_follows(placed(key, lines), told_so_far) for key in keys]
        wanted = [min(was, at) if is_over else was for was, is_over in zip(wanted, over, strict=True)]
        if data.draw(st.booleans()):
            assert since.of(table).tolist() == wanted
    assert since.of(table).tolist() == wanted


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from("pqr"), st.none() | told), max_size=6),
)
def test_a_recorded_stream_promises_what_all_have_that_have_come(entries):
    said = [
        (at, name, None if one is None else Pattern.where(SCHEMA, one).to_json()) for at, name, one in entries
    ]
    found = shared_since(said, SCHEMA)
    own, stream = {}, ()
    for tick in range(5):
        come = [(name, text) for at, name, text in said if at == tick]
        for name in {name for name, _ in come} - own.keys():
            own[name] = stream  # who comes is held to what is promised
        for name, text in come:
            own[name] = (*own[name], *([] if text is None else [text]))
        stream = (*stream, *(shared([*own.values()], SCHEMA) if own else ()))
        now = [text for at, text in found if at <= tick]
        table = pa.Table.from_pylist(rows(SCHEMA, UNIVERSE), SCHEMA)

        def covered(texts, table=table):
            patterns = [Pattern.from_json(text, SCHEMA) for text in texts]
            return Cover(lines_of(SCHEMA), patterns).matches(table).tolist()

        assert covered(now) == covered(stream)
