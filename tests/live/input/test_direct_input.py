"""Micro-batches of plain files are read without Spark, and give what they give through Spark."""

from __future__ import annotations

import datetime
import itertools
import math
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from windrow import Memory, Session
from windrow.kernels.packing import csv_files
from windrow.spark.live.micro_batches.entry_reader import EntryReader
from windrow.spark.scan import file_scan
from windrow.spark.scan.file_scan import READ_SETTING, split_scan

COLUMNS = "ts TIMESTAMP, day DATE, n BIGINT, k STRING, v BIGINT, p STRING, b TIMESTAMP, pad STRING"
BEGIN = datetime.datetime(2026, 3, 29, tzinfo=datetime.UTC)
GROUP = 16
SIZES = [40, 7, 0, 90, 25, 60]  # rows of each file; two come at once, and Spark reads the larger one first
STREAMS = {
    "ordered by time": {"rowtime": "ts"},
    "a lag in whole numbers": {"rowtime": "n", "unit": "seconds", "lag": 20},
    "bounds of producers": {"rowtime": "ts", "producer": "p", "bound": "b"},
}
QUERIES = {
    "rows": "SELECT STREAM k, v, v % 7 = 3 AS is_third FROM s WHERE v % 5 <> 1",
    "window": "SELECT k, COUNT(*) AS c, SUM(v) AS total FROM s [RANGE 5 SECONDS] GROUP BY k",
    "pairs": "SELECT a.v, b.v AS w FROM s [RANGE 2 SECONDS] AS a JOIN s [NOW] AS b ON a.k = b.k",
    "groups": "SELECT k, MAX(v) AS high FROM s GROUP BY k EMIT STREAM",
    "clause": "SELECT e.k, e.v, COUNT(w) AS c FROM s WINDOW BY w AS (TYPE TUMBLING PARTITION BY k"
    " ORDER BY ts, n START AS a END AS e WHEN e.v > a.v)",
    "whole": "SELECT STREAM DISTINCT k FROM s",
}
COUNTED = ("batch_rows_in", "batch_rows_emitted", "rows_in", "rows_used", "rows_buffered", "rows_late")
TRIED = [
    ("ordered by time", "rows"),
    ("ordered by time", "groups"),
    ("a lag in whole numbers", "window"),
    ("a lag in whole numbers", "whole"),
    ("bounds of producers", "pairs"),
    ("bounds of producers", "clause"),
]


def rows_of(size: int, first: int) -> pa.Table:
    """Rows that come nearly in order, with NULLs, and bounds now and then."""
    random = np.random.default_rng(first)
    at = np.arange(first, first + size) + random.integers(-3, 3, size)
    seconds = [BEGIN + datetime.timedelta(seconds=int(second)) for second in at]
    keys = [None if key == 4 else f"key {key}" for key in random.integers(0, 5, size)]
    producers = [None if one == 2 else f"p{one}" for one in random.integers(0, 3, size)]
    early = datetime.timedelta(seconds=4)
    bounds = [when - early if key == "key 1" else None for when, key in zip(seconds, keys, strict=True)]
    return pa.table(
        {
            "ts": pa.array(seconds, pa.timestamp("us", "UTC")),
            "day": pa.array([when.date() for when in seconds], pa.date32()),
            "n": pa.array(at, pa.int64()),
            "k": pa.array(keys, pa.string()),
            "v": pa.array(random.integers(-9, 100, size), pa.int64(), mask=random.random(size) < 0.1),
            "p": pa.array(producers, pa.string()),
            "b": pa.array(bounds, pa.timestamp("us", "UTC")),
            "pad": pa.array(["pad"] * size, pa.string()),
        }
    )


@pytest.fixture(scope="module")
def arriving(tmp_path_factory) -> Path:
    return written(tmp_path_factory.mktemp("arriving"), "parquet")


def written(folder: Path, form: str, *, header: bool = False) -> Path:
    """The folder, with a file for each of the sizes."""
    first = 0
    for number, size in enumerate(SIZES):
        path, rows = folder / f"{number}.{form}", rows_of(size, first)
        if form == "parquet":
            pq.write_table(rows, path, row_group_size=GROUP)
        else:
            local = [column.cast(pa.timestamp("us")) if name in ("ts", "b") else column
                     for name, column in zip(rows.column_names, rows.columns, strict=True)]  # fmt: skip
            csv.write_csv(pa.table(local, rows.column_names), path, csv.WriteOptions(include_header=header))
        os.utime(path, (number ^ 1, 1_700_000_000 + (number ^ 1)))  # each second one comes before the first
        first += size
    return folder


def run(spark, folder, checkpoint, options, query, form="parquet", **reading):
    """What each micro-batch gives, and what is told of it."""
    session = Session(spark)
    reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 2).options(**reading)
    source = reader.format(form).load(str(folder))
    session.stream("s", source, **options)
    sink, told = Memory(), []
    session.listeners.add(lambda one: told.append({name: one[name] for name in COUNTED}))
    started = session.sql(query).start(
        sink, checkpoint=checkpoint, trigger={"availableNow": True}, on_unbounded="ignore"
    )
    started.await_termination()
    read = [one["numInputRows"] for one in started.streaming.recentProgress]
    late = sorted(map(str, started.late.toArrow().to_pylist()))
    given = {}
    for number, rows in sink.batches.items():
        given[number] = [{name: row[name] for name in row if name != "ptime"} for row in rows.to_pylist()]
    return (given, told, late), read


@pytest.mark.sampled
@pytest.mark.parametrize(("stream", "query"), TRIED)
def test_files_give_what_spark_gives_of_them(spark, arriving, tmp_path, monkeypatch, conf, stream, query):
    collected = []
    monkeypatch.setattr(EntryReader, "_collected", _noted(collected))
    found = {}
    for way in ("true", "false"):
        conf(READ_SETTING, way)
        found[way] = run(spark, arriving, tmp_path / way, STREAMS[stream], QUERIES[query])
        assert bool(collected) == (way == "false")
    (given, told, late), read = found["true"]
    assert found["false"][0] == found["true"][0]
    assert sum(read) == sum(SIZES)
    assert any(given.values())
    assert told
    assert late


@pytest.mark.parametrize(("header", "stream", "query"), [(False, *TRIED[2]), (True, *TRIED[4])])
def test_csv_files_give_what_spark_gives_of_them(spark, tmp_path, monkeypatch, conf, header, stream, query):
    conf("spark.sql.session.timeZone", "UTC")
    (tmp_path / "arriving").mkdir()
    folder = written(tmp_path / "arriving", "csv", header=header)
    collected, found = [], {}
    monkeypatch.setattr(EntryReader, "_collected", _noted(collected))
    for way in ("true", "false"):
        conf(READ_SETTING, way)
        asked = (STREAMS[stream], QUERIES[query], "csv")
        found[way] = run(spark, folder, tmp_path / way, *asked, header=str(header).lower())
        assert bool(collected) == (way == "false")
    assert found["false"][0] == found["true"][0]
    (given, _, late), read = found["true"]
    assert (sum(read), bool(given), bool(late)) == (sum(SIZES), True, True)


@pytest.mark.parametrize(
    ("zone", "options"), [("Europe/Berlin", {}), ("UTC", {"sep": ";"}), ("UTC", {"nullValue": "x"})]
)
def test_csv_files_of_other_settings_are_left_to_spark(spark, tmp_path, monkeypatch, conf, zone, options):
    conf("spark.sql.session.timeZone", zone)
    (tmp_path / "arriving").mkdir()
    folder = written(tmp_path / "arriving", "csv")
    if "sep" in options:
        for path in folder.glob("*.csv"):
            path.write_text(path.read_text().replace(",", ";"))
    collected = []
    monkeypatch.setattr(EntryReader, "_collected", _noted(collected))
    asked = (STREAMS[TRIED[2][0]], QUERIES[TRIED[2][1]], "csv")
    (given, _, _), read = run(spark, folder, tmp_path / "checkpoint", *asked, **options)
    assert collected
    assert any(given.values())
    assert sum(read) >= sum(SIZES)  # Spark reads a micro-batch again for all columns of its late rows


def test_csv_files_are_read_with_the_time_zone_of_the_moment(spark, tmp_path, conf):
    """As Spark does, which reads the setting for each micro-batch."""
    found = {}
    for way in ("true", "false"):
        conf(READ_SETTING, way)
        folder = tmp_path / way
        folder.mkdir()
        session, sink = Session(spark), Memory()
        source = spark.readStream.schema("ts TIMESTAMP, k STRING").csv(str(folder))
        session.stream("s", source, rowtime="ts")
        started = session.sql("SELECT STREAM k FROM s").start(sink, checkpoint=tmp_path / f"{way} checkpoint")
        try:
            for day, zone in enumerate(["UTC", "Asia/Tokyo", "UTC"], 1):
                conf("spark.sql.session.timeZone", zone)
                (folder / f"{day}.csv").write_text(f"2026-01-0{day} 09:00:00,a\n")
                started.process_all_available()
        finally:
            started.stop()
        rows = [rows.column(0).cast(pa.timestamp("us", "UTC")) for rows in sink.batches.values()]
        found[way] = [when.as_py().hour for times in rows for when in times]
    assert found == {"true": [9, 0, 9], "false": [9, 0, 9]}


@pytest.mark.parametrize("columns", ["n BIGINT, k STRING, rest STRING", "n BIGINT, rest STRING, k STRING"])
def test_a_column_for_malformed_lines_is_left_to_spark(spark, tmp_path, conf, columns):
    conf("spark.sql.columnNameOfCorruptRecord", "rest")
    (tmp_path / "arriving").mkdir()
    (tmp_path / "arriving" / "0.csv").write_text("1,a,b\n2,c,d\n")
    found = []
    for way in ("true", "false"):
        conf(READ_SETTING, way)
        session, sink = Session(spark), Memory()
        source = spark.readStream.schema(columns).csv(str(tmp_path / "arriving"))
        session.stream("s", source, rowtime="n", unit="seconds")
        trigger = {"availableNow": True}
        query = session.sql("SELECT STREAM k, rest FROM s")
        query.start(sink, checkpoint=tmp_path / way, trigger=trigger).await_termination()
        found.append([rows.to_pylist() for rows in sink.batches.values()])
    assert found[0] == found[1]
    assert found[0][0][0]["rest"] == "1,a,b"


def test_csv_files_that_are_too_large_together_are_left_to_spark(spark, tmp_path, monkeypatch, conf):
    conf("spark.sql.session.timeZone", "UTC")
    (tmp_path / "arriving").mkdir()
    folder = written(tmp_path / "arriving", "csv")
    largest = max(path.stat().st_size for path in folder.glob("*.csv"))
    monkeypatch.setattr(csv_files, "MOST_BYTES", largest)  # of which each file alone has no more
    collected = []
    monkeypatch.setattr(EntryReader, "_collected", _noted(collected))
    asked = (STREAMS[TRIED[2][0]], QUERIES[TRIED[2][1]], "csv")
    (given, _, _), _ = run(spark, folder, tmp_path / "checkpoint", *asked, maxFilesPerTrigger="10")
    assert collected
    assert any(given.values())


def _noted(collected):
    own = EntryReader._collected

    def noted(steps, batch):
        collected.append(batch.columns)
        return own(steps, batch)

    return noted


def splits_of(path, cuts):
    """A file in several splits, which are apart where Spark may cut it."""
    edges = [0, *cuts, path.stat().st_size]
    return [(str(path), start, stop - start) for start, stop in itertools.pairwise(edges)]


def test_splits_have_each_row_group_once_and_in_their_order(arriving):
    path = arriving / "3.parquet"
    whole = pq.read_table(path, columns=["n"]).column("n").to_pylist()
    schema = pa.schema([("n", pa.int64())])

    def read(splits):
        return pa.Table.from_batches(split_scan(splits, schema).read(0)).column("n").to_pylist()

    orders = set()
    for cut in range(0, path.stat().st_size, 97):
        splits = splits_of(path, [cut])
        assert read(splits) == whole
        turned = read(splits[::-1])
        assert sorted(turned) == sorted(whole)
        orders.add(tuple(turned))
    assert len(orders) == math.ceil(len(whole) / GROUP)
    assert split_scan(splits_of(path, [300])[:1], schema) is None  # part of a file is nobody's


@pytest.mark.parametrize("limit", ["_MOST_ROWS", "_MOST_BYTES"])
def test_what_is_too_large_for_the_driver_is_left_to_spark(arriving, monkeypatch, limit):
    path, schema = arriving / "3.parquet", pa.schema([("n", pa.int64())])
    assert split_scan(splits_of(path, []), schema) is not None
    monkeypatch.setattr(file_scan, limit, 80)
    assert split_scan(splits_of(path, []), schema) is None
