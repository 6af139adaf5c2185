"""What became of each key, held to the rows that there are."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.incremental import upserts
from windrow.kernels.zset.relation import AT, DIFF

KEYS = st.sampled_from([None, float("nan"), 0.0, -0.0, 1.5])
TABLES = st.lists(st.dictionaries(KEYS, st.integers(0, 2), max_size=4), min_size=2, max_size=4)


def changed(tables):
    """The changes from each table to the next, with the number of the table as the instant."""
    rows = []
    for at, (before, after) in enumerate(pairwise(tables)):
        rows += [(key, value, -1, at) for key, value in before.items()]
        rows += [(key, value, 1, at) for key, value in after.items()]
    kinds = (pa.float64(), pa.int64(), pa.int64(), pa.int64())
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
    return pa.table(columns, names=["k", "v", DIFF, AT])


def is_nan(key):
    return key is not None and math.isnan(key)


def shown(table):
    """A table by what Spark takes for one key: all NaN, and zero of either sign."""
    return {"nan" if is_nan(key) else 0.0 if key == 0 else key: value for key, value in table.items()}


@given(TABLES)
def test_the_last_row_of_each_key_makes_the_next_table_of_the_one_before(tables):
    tables = [shown(table) for table in tables]
    named = [{float("nan") if key == "nan" else key: v for key, v in table.items()} for table in tables]
    became = upserts(changed(named), ["k"])
    assert became.twice is None
    table = dict(tables[0])
    rows = zip(shown_keys(became.rows), became.rows.column("v").to_pylist(), strict=True)
    for (key, value), is_there, was_there in zip(rows, became.is_there, became.was_there, strict=True):
        assert was_there == (key in tables[0])
        if is_there:
            assert table.get(key) != value
            table[key] = value
        else:
            assert table.pop(key) == value
    assert table == tables[-1]
    assert max(Counter(shown_keys(became.rows)).values(), default=1) == 1


def shown_keys(rows):
    return ["nan" if is_nan(key) else key for key in rows.column("k").to_pylist()]


def test_two_rows_of_one_key_are_found():
    rows = pa.table({"k": [1, 2, 2], "v": [1, 1, 2], DIFF: [1, 1, 1], AT: [5, 6, 7]})
    became = upserts(rows, ["k"])
    assert became.rows.column("k")[became.twice].as_py() == 2
    assert upserts(rows, []).twice is not None
    assert upserts(rows, ["k", "v"]).twice is None


def test_a_key_changed_when_its_last_change_was():
    rows = pa.table({"k": [1, 1, 1, 1], "v": [1, 2, 2, 3], DIFF: [-1, 1, -1, 1], AT: [5, 5, 9, 9]})
    became = upserts(rows, ["k"])
    assert became.at.tolist() == [9]
    assert became.rows.to_pylist() == [{"k": 1, "v": 3}]
    assert (became.is_there.tolist(), became.was_there.tolist()) == ([True], [True])
