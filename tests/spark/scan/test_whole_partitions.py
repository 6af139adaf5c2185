"""Tasks read whole partitions where row groups have ranges of a key; the windows are those of an exchange."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.spark.scan.comparisons import plan_where_answers_agree
from windrow import Session
from windrow.kernels.packing.parquet_files import FilePart, FileScan, KeyRange, RowGroup
from windrow.spark.scan.key_ranges import divided, long_keys
from windrow.spark.tasks.layout import TASK_SETTING

NOT_EXCHANGED = "none: each task reads whole partitions"
WINDOWS = """SELECT s.o, s.x, SUM(w.x) AS total, COUNT(w) AS n FROM {rows} WINDOW BY w AS (
    TYPE SLIDING PARTITION BY {keys} ORDER BY o START AS s AT sp END AT ep WHEN ep - sp = 2)"""
MATCHES = """SELECT * FROM {rows} MATCH_RECOGNIZE (PARTITION BY {keys} ORDER BY o
    MEASURES FIRST(o) AS begins, COUNT(*) AS n PATTERN (a b+) DEFINE b AS x > PREV(x))"""
ROWS = 1200


def table(keys, nulls=()):
    """Rows whose keys are in this order."""
    return pa.table(
        {
            "k": pa.array([None if at in nulls else key for at, key in enumerate(keys)]),
            "o": pa.array([(at * 7919) % ROWS for at in range(len(keys))], pa.int32()),
            "x": pa.array([(at * 31) % 17 for at in range(len(keys))]),
        }
    )


def clustered(kind, of_each=37):
    return [kind(at // of_each) for at in range(ROWS)]


KINDS = {
    "texts": lambda at: f"kä{at:02}",
    "integers": lambda at: at - 9,
    "days": lambda at: dt.date(1969, 12, 20) + dt.timedelta(at),
    "times": lambda at: dt.datetime(2001, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=at),
    "bytes": lambda at: bytes([at]),
}


@pytest.fixture
def asked(spark, conf, tmp_path):
    """Whether rows are exchanged, after comparing the answers with those of Spark's rows."""
    session = Session(spark)
    conf("spark.sql.shuffle.partitions", "4")
    conf(TASK_SETTING, "100")

    def ask(rows, query=WINDOWS, keys="k", of_group=100, source="rows"):
        if rows is not None:
            pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=of_group)
        session.register("rows", tmp_path / "rows.parquet")
        text = query.format(rows=source, keys=keys)
        return NOT_EXCHANGED not in plan_where_answers_agree(session, conf, text, NOT_EXCHANGED)

    return ask


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_sorted_by_a_key_are_not_exchanged(asked, kind):
    rows = table(clustered(KINDS[kind]))
    assert not asked(rows)
    assert not asked(None, MATCHES)


def test_one_of_several_keys_suffices_and_may_be_chosen_and_renamed(asked):
    rows = table(clustered(KINDS["texts"]))
    assert not asked(rows, keys="x % 3, k")
    assert not asked(None, keys="station", source="(SELECT k AS station, o, x FROM rows WHERE x > 3)")


def test_rows_are_exchanged_where_ranges_are_wide_or_unknown(asked):
    keys = clustered(KINDS["texts"])
    assert asked(table([keys[(at * 7919) % ROWS] for at in range(ROWS)]))  # in another order
    assert asked(table(keys, nulls={500}))  # NULL is in no range
    assert asked(table(clustered(lambda at: float(at))))
    assert asked(table(keys), keys="upper(k)")
    assert asked(table(keys), keys="k COLLATE UTF8_LCASE")
    assert asked(table(keys), of_group=ROWS)  # several tasks would read it
    assert asked(table(keys), keys="x")


def test_few_rows_are_read_by_one_task_whatever_their_order(asked, conf):
    conf(TASK_SETTING, "100000")
    rows = table(clustered(KINDS["texts"], of_each=1), nulls={3, 4})
    assert not asked(rows, keys="x")
    assert not asked(None, "SELECT s.o, MAX(w.x) AS most FROM {rows} WINDOW BY w AS ("
                     "TYPE SLIDING ORDER BY o START AS s AT sp END AT ep WHEN ep - sp = 5)")  # fmt: skip


keys = st.lists(st.text("aäz\x00", max_size=2), min_size=1, max_size=60)


@given(keys, st.integers(1, 12), st.integers(1, 6), st.booleans(), st.integers(1, 60))
@example(["a"], 1, 2, True, 60)
@example(["", "a", "a", "a", "a\0", "b"], 1, 2, False, 2)
def test_each_row_is_in_one_task_with_all_of_its_key(tmp_path_factory, keys, of_group, count, is_coded, most):
    path = tmp_path_factory.getbasetemp() / "keys.parquet"
    rows = pa.table({"k": sorted(keys), "at": range(len(keys))})
    pq.write_table(rows, path, row_group_size=of_group, use_dictionary=is_coded)
    metadata, part = pq.read_metadata(path), FilePart.of(str(path))
    groups = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        statistics = group.column(0).statistics
        one = FilePart(part.path, (number,), part.size, part.changed_ns)
        groups.append(RowGroup(one, group.num_rows, statistics.min_raw, statistics.max_raw))
    long = long_keys(groups, "k", most)
    tasks = divided(groups, "k", count, long)
    if tasks is None:
        return
    for key in long:
        assert len(key.alone) * of_group > most
        tasks = (*tasks, tuple(key.parts.values()))
    places = {}
    for number, parts in enumerate(tasks):
        found = [row for part in parts for row in read(part, is_coded=is_coded)]
        assert found == sorted(found, key=lambda row: row["at"])  # in the order of the file
        for row in found:
            places.setdefault(row["k"], []).append((number, row["at"]))
    assert sorted(at for found in places.values() for _, at in found) == list(range(len(keys)))
    assert all(len({number for number, _ in found}) == 1 for found in places.values())


def read(part, *, is_coded):
    """The rows of a part of a file, as tasks read it."""
    from windrow.kernels.computed.computed_operations import Computed

    schema = pa.schema({"k": pa.string(), "at": pa.int64()})
    made = Computed({0: "k", 1: "at"}, [], [0, 1], schema)
    coded = frozenset({"k"} if is_coded else ())
    scan = FileScan(((part,),), 1, 1, schema, pa.schema([]), made, coded)
    return [row for batch in scan.read(0) for row in batch.to_pylist()]


def test_ranges_of_keys_have_no_null_and_not_their_end():
    keys = KeyRange("k", 2, 5)
    assert keys.of(pa.array([1, 2, None, 4, 5])).to_pylist() == [False, True, None, True, False]
    days = pa.array([dt.date(1970, 1, 2), dt.date(1970, 1, 3), None])
    assert keys.of(days).to_pylist() == [False, True, None]
    texts = pa.array(["b", "a", None, "ä"]).dictionary_encode()
    assert KeyRange("k", b"b", None).of(texts).to_pylist() == [True, False, None, True]
