"""Tasks read plain Parquet files and write the file of a micro-batch themselves, with the rows of Spark."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live.stepping import law
from windrow import Files, Memory, Session
from windrow.errors import ExecutionError
from windrow.spark.live.executors import bucket_steps
from windrow.spark.live.executors.input import marked_files, marked_rows
from windrow.spark.live.executors.input.marked_rows import MarkedFiles
from windrow.spark.live.executors.packets import Graph
from windrow.spark.scan.file_scan import READ_SETTING

COLUMNS = "k STRING, ts TIMESTAMP, v DOUBLE"
QUERY = "SELECT ISTREAM(k, MAX(ts) AS latest, AVG(v) AS mean) FROM s [PARTITION BY k ROWS 3] GROUP BY k"
SIZES = [30_000, 3, 9_000, 0, 1, 20_000]
GROUP = 4_000
LACKING = 2
"""The number of a file without a column, which only Spark reads as it is meant."""


@law(60)
@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 4), st.randoms(use_true_random=False))
def test_each_row_group_is_read_by_one_task(tmp_path, sizes, tasks, random):
    path, first = tmp_path / "rows.parquet", 0
    schema = pa.schema([("v", pa.int64())])
    with pq.ParquetWriter(path, schema) as file:
        for size in sizes:
            file.write_table(pa.table({"v": np.arange(first, first + size)}, schema), row_group_size=10)
            first += size
    every, marked_rows.EVERY = marked_rows.EVERY, 4
    try:
        files = MarkedFiles(schema, {"v": "v"}, {}, None, tmp_path / "copies", 0)
        markers = [set() for _ in range(tasks)]
        for row in range(0, first, 4):
            random.choice(markers).add(row)
        read = [files.rows(f"file://{path}", own) for own in markers if own]
        found = [value for tables in read for _, table in tables for value in table.column("v").to_pylist()]
    finally:
        marked_rows.EVERY = every
    assert sorted(found) == list(range(first))


def test_a_file_of_other_columns_without_a_copy_is_an_error(tmp_path):
    pq.write_table(pa.table({"w": [1]}), tmp_path / "rows.parquet")
    files = MarkedFiles(pa.schema([("v", pa.int64())]), {"v": "v"}, {}, None, tmp_path / "copies", 0)
    for markers in ({0}, {8192}):
        with pytest.raises(ExecutionError, match="its columns differ") as raised:
            list(files.rows(f"file://{tmp_path}/rows.parquet", markers))
        assert raised.value.condition == "UNREADABLE_FILE"
    with pytest.raises(ExecutionError, match="it is missing"):
        list(files.rows(f"file://{tmp_path}/gone.parquet", {8192}))


@pytest.fixture(scope="module")
def arriving(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arriving") / "a b%20c"
    folder.mkdir()
    random, begin = np.random.default_rng(5), 0
    for number, size in enumerate(SIZES):
        rows = {
            "k": pa.array(random.integers(0, 40, size)).cast(pa.string()),
            "ts": pa.array(np.sort(random.integers(begin, begin + 10**9, size)), pa.timestamp("us", "UTC")),
            "v": random.integers(0, 100, size).astype(float),
        }
        if number == LACKING:
            del rows["v"]
        path = folder / f"{number} x%20y.parquet"
        pq.write_table(pa.table(rows), path, row_group_size=GROUP)
        os.utime(path, (1_000_000_000 + number // 2, 1_000_000_000 + number // 2))
        begin += 10**9
    return folder


@pytest.fixture
def start(spark, arriving, tmp_path):
    """Starts the query on a host over the files, two at a time."""
    settings = {
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.files.maxPartitionBytes": "100000",
        "spark.windrow.live.buckets": "2",
    }
    before = {
        name: spark.conf.get(name, None) for name in (*settings, "spark.windrow.live.host", READ_SETTING)
    }
    queries = []

    def started(host, sink, *, reads="true", **options):
        for name, value in {**settings, "spark.windrow.live.host": host, READ_SETTING: reads}.items():
            spark.conf.set(name, value)
        session = Session(spark)
        rows = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 2).parquet(str(arriving))
        session.stream("s", rows, rowtime="ts")
        checkpoint = tmp_path / f"checkpoint-{len(queries)}"
        queries.append(
            session.sql(QUERY).start(sink, checkpoint=checkpoint, on_unbounded="ignore", **options)
        )
        queries[-1].process_all_available()
        return queries[-1]

    yield started
    for query in queries:
        query.stop()
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def test_tasks_that_read_files_give_the_same_rows_and_get_markers_alone(start, monkeypatch):
    copied = []
    write = marked_files.write_one
    monkeypatch.setattr(marked_files, "write_one", lambda *given: copied.append(write(*given)))
    found, crossed = [], []
    for host, reads in (("driver", "true"), ("executors", "true"), ("executors", "false")):
        memory = Memory()
        query = start(host, memory, reads=reads)
        found.append({number: Counter(map(str, rows.to_pylist())) for number, rows in memory.batches.items()})
        assert query.progress["rows_in"] == sum(SIZES)
        assert sum(one["numInputRows"] for one in query.streaming.recentProgress) == sum(SIZES)
        if host == "executors":
            crossed.append(
                _rows_of_filters(query.streaming._jsq.streamingQuery().lastExecution().executedPlan())
            )
    assert found[0] == found[1] == found[2]
    assert copied == [SIZES[LACKING]]
    # of the last two files: rows 0, 8,192 and 16,384 of one of 20,000, and the row of the other
    assert crossed == [[4], []]


def test_spark_reads_entries_that_may_be_malformed(start):
    query = start("executors", Memory(), on_malformed="keep")
    assert _rows_of_filters(query.streaming._jsq.streamingQuery().lastExecution().executedPlan()) == []


def _rows_of_filters(plan):
    """How many rows the filters by the number of a row let through."""
    children = plan.children()
    found = [one for at in range(children.size()) for one in _rows_of_filters(children.apply(at))]
    if plan.nodeName() == "Filter" and "row_index" in plan.toString():
        found.append(int(plan.metrics().apply("numOutputRows").value()))
    return found


def test_a_task_writes_the_file_of_a_micro_batch(start, tmp_path, monkeypatch):
    monkeypatch.setattr(bucket_steps, "_SMALL", 0)

    def changes(*_):
        raise AssertionError("rows cross back to Java")

    for one in Graph.__subclasses__():
        monkeypatch.setattr(one, "changes", changes)
    memory, folder = Memory(), tmp_path / "given"
    folder.mkdir()
    left = folder / ".part-000000000.of-a-try.pending"
    left.mkdir()
    (left / "rows.parquet").write_bytes(b"unfinished")
    start("driver", memory)
    query = start("executors", Files(folder))
    written = {int(path.stem.removeprefix("part-")): pq.read_table(path) for path in folder.glob("*.parquet")}
    whole = {number: rows for number, rows in memory.batches.items() if rows.num_rows}
    assert {number: Counter(map(str, rows.to_pylist())) for number, rows in written.items()} == {
        number: Counter(map(str, rows.to_pylist())) for number, rows in whole.items()
    }
    assert written[0].schema == whole[0].schema
    assert query.progress["rows_emitted"] == sum(rows.num_rows for rows in whole.values())
    assert not left.exists()
    assert {path.name for path in folder.iterdir()} == {
        ".checkpoint", *(f"part-{number:09}.parquet" for number in whole)
    }  # fmt: skip


@pytest.mark.parametrize("own", [{}, {"w": pa.array([9], pa.int32())}])
@pytest.mark.parametrize("host", ["driver", "executors"])
def test_directories_have_values_and_names_are_no_patterns(spark, tmp_path, host, own):
    """Two streams over a folder: of one, `w` is in names of directories; the other has another column."""
    for at, name in enumerate(["w=1/a[1].parquet", "w=2/a1.parquet"]):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True)
        time = pa.array([at * 10**6], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"k": [str(at)], "ts": time, **own}), path)
        os.utime(path, (1_000_000_000 + at, 1_000_000_000 + at))
    session = Session(spark)
    for name, column in (("s", "w INT"), ("t", "u INT")):
        rows = spark.readStream.schema(f"k STRING, ts TIMESTAMP, {column}").parquet(str(tmp_path / "in"))
        session.stream(name, rows, rowtime="ts")
    memory = Memory()
    before = spark.conf.get("spark.windrow.live.host", None)
    spark.conf.set("spark.windrow.live.host", host)
    try:
        query = session.sql(
            "SELECT ISTREAM(s.k, s.w, t.u) FROM s [RANGE 1 DAY], t [RANGE 1 DAY] WHERE s.k = t.k"
        ).start(memory, checkpoint=tmp_path / "checkpoint")
        query.process_all_available()
        query.stop()
    finally:
        spark.conf.unset("spark.windrow.live.host") if before is None else spark.conf.set(
            "spark.windrow.live.host", before
        )
    found = [(row["k"], row["w"], row["u"]) for rows in memory.batches.values() for row in rows.to_pylist()]
    assert sorted(found) == [("0", 1, None)]  # the other is not before the watermark yet
