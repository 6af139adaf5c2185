"""What rows promise by what is declared: patterns, and that streams which keep the declaration keep them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.punctuations import Cover, Pattern, lines_of
from windrow.punctuations.schemes import EndOfEntity, GrowingKey, UniqueKey, schemes

SCHEMA = pa.schema([("auction", pa.int64()), ("bid", pa.int64()), ("status", pa.string())])
CLOSED = EndOfEntity(Pattern.where(SCHEMA, [("status", "=", "closed")]), ("auction",))


def told(scheme, *rows):
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    return [str(pattern) for pattern in schemes([scheme], table)]


@pytest.mark.parametrize(
    ("scheme", "rows", "wanted"),
    [
        (UniqueKey(("auction",)), [(1, 0, "a"), (None, 0, "a"), (3, 0, "b")], ["auction = 1", "auction = 3"]),
        (UniqueKey(("auction", "bid")), [(1, 2, "a"), (1, None, "a")], ["auction = 1 AND bid = 2"]),
        (GrowingKey("bid"), [(1, 4, "a"), (1, None, "a"), (2, 3, "b")], ["bid < 4"]),
        (GrowingKey("bid", is_strict=True), [(1, 4, "a")], ["bid < 5"]),
        (
            GrowingKey("bid", within=("auction",)),
            [(1, 4, "a"), (None, 2, "a"), (1, 6, "a")],
            ["auction = 1 AND bid < 6", "auction IS NULL AND bid < 2"],
        ),
        (GrowingKey("bid"), [(1, -(2**63), "a")], []),
        (GrowingKey("bid"), [], []),
        (CLOSED, [(1, 0, "open"), (2, 0, "closed"), (None, 0, "closed"), (3, 0, None)], ["auction = 2"]),
    ],
)
def test_what_rows_promise(scheme, rows, wanted):
    assert told(scheme, *rows) == wanted


ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 3),
        st.none() | st.integers(0, 5),
        st.sampled_from([None, "open", "closed"]),
    ),
    max_size=12,
)


def keeps_unique(before, row):
    key = row[0]
    return key is None or all(other[0] != key for other in before)


def keeps_growing(before, row):
    same = [other[1] for other in before if other[0] == row[0] and other[1] is not None]
    return row[1] is None or not same or row[1] >= max(same)


def keeps_strict(before, row):
    same = [other[1] for other in before if other[1] is not None]
    return row[1] is None or not same or row[1] > max(same)


def keeps_closed(before, row):
    return row[0] is None or all(other[0] != row[0] or other[2] != "closed" for other in before)


@settings(deadline=None, max_examples=60)
@pytest.mark.parametrize(
    ("scheme", "keeps"),
    [
        (UniqueKey(("auction",)), keeps_unique),
        (GrowingKey("bid", within=("auction",)), keeps_growing),
        (GrowingKey("bid", is_strict=True), keeps_strict),
        (CLOSED, keeps_closed),
    ],
)
@given(rows=ROWS)
def test_rows_break_what_was_promised_just_where_they_break_the_declaration(scheme, keeps, rows):
    cover, before = Cover(lines_of(SCHEMA)), []
    for row in rows:
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True))], SCHEMA)
        assert cover.matches(table).tolist() == [not keeps(before, row)]
        for pattern in scheme.punctuations(table):
            cover.add(pattern)
        before.append(row)
