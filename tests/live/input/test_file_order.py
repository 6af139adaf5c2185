"""Files of one micro-batch come in the order in which they came, whatever their sizes."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from windrow import Memory, Session
from windrow.spark.live.input.file_order import ORIGIN, in_order, origin, placed
from windrow.spark.live.plans.emit_flow import EmittedFlow
from windrow.spark.logs.live_source import PLACE

COLUMNS = "ts bigint, v bigint"
# By name and time: the largest is neither the first to come nor the first by name.
FILES = [
    ("b", 1, [10, 12]),
    ("c", 2, [30]),
    ("a", 3, [11] * 3 + [60]),
    ("d", 4, [31, 61] * 400),
    ("0", 5, [32]),
]
WATERMARKED = "SELECT wend, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 10) GROUP BY wend EMIT STREAM"
COUNTED = "SELECT v, COUNT(*) AS n FROM s [RANGE 3] GROUP BY v"


def written(folder, kind):
    folder.mkdir()
    for name, time, rows in FILES:
        table = pa.table({"ts": pa.array(rows), "v": pa.array([at % 7 for at in range(len(rows))])})
        path = folder / f"{name}.{kind}"
        if kind == "parquet":
            pq.write_table(table, path)
        else:
            csv.write_csv(table, path, csv.WriteOptions(include_header=False))
        os.utime(path, (time, 1_700_000_000 + time))


RUNS = [
    ("parquet", WATERMARKED, True, False),
    ("csv", WATERMARKED, True, False),
    ("csv", WATERMARKED, False, False),
    ("parquet", COUNTED, True, False),
    ("parquet", COUNTED, True, True),
    ("csv", WATERMARKED, True, True),
]
"""What files are, the query, whether micro-batches are evaluated in memory, else by tasks; and whether the
stream is of a view.
"""


@pytest.mark.sampled
@pytest.mark.parametrize(("kind", "query", "in_memory", "is_view"), RUNS)
@pytest.mark.usefixtures("interpreted")
def test_several_at_once_are_as_one_after_the_other(
    spark, tmp_path, monkeypatch, kind, query, in_memory, is_view
):
    if not in_memory:
        monkeypatch.setattr(EmittedFlow, "_by_tasks", lambda _: "the test")
    incoming = tmp_path / "incoming"
    written(incoming, kind)
    found = []
    for at_once in (1, len(FILES)):
        session = Session(spark)
        reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", at_once).format(kind)
        frame = reader.load(str(incoming)).where("ts > 0")
        if is_view:
            frame.createOrReplaceTempView("arriving")
            frame = spark.table("arriving").where("v >= 0")
        session.stream("s", frame, rowtime="ts", unit="seconds", lag=5)
        sink = Memory()
        folder = tmp_path / str(at_once)
        running = session.sql(query).start(
            sink, checkpoint=folder, trigger={"availableNow": True}, on_late="keep"
        )
        running.await_termination()
        late = sorted(row.row for row in running.late.collect())
        progress = running.progress
        found.append((late, [progress[f"rows_{name}"] for name in ("in", "used", "buffered", "late")]))
    assert found[0] == found[1]
    assert found[0][1][3] > 0


def test_files_of_one_time_come_by_their_paths_and_parts_by_their_places():
    rows = [(2, "a", 0, 0), (1, "c", 0, 1), (1, "b", 9, 2), (1, "b", 9, 3), (1, "b", 0, 4), (2, "a", 0, 5)]
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    entries = pa.table(columns, names=[*ORIGIN, "v"])
    assert in_order(entries).to_pydict() == {"v": [4, 2, 3, 1, 0, 5]}
    plain = entries.drop_columns([*ORIGIN])
    assert in_order(plain) is plain


def test_entries_of_no_file_beside_those_of_files_come_after_them_however_they_are_chunked():
    """As ticks are, which come in one micro-batch with rows of files."""
    rows = [(2, "a", 0, 0), (1, "b", 0, 1), (None, None, None, 2), (1, "b", 0, 3)]
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    entries = pa.table(columns, names=[*ORIGIN, "v"])
    chunked = pa.concat_tables([entries.slice(at, 1) for at in range(len(rows))])
    assert in_order(entries).to_pydict() == in_order(chunked).to_pydict() == {"v": [1, 3, 0, 2]}


def test_rows_of_no_file_that_several_tasks_bring_have_places_of_their_own(spark):
    files = "(TIMESTAMP '2026-01-01', 'a', 0, 1), (TIMESTAMP '2026-01-02', 'b', 0, 2)"
    names = ", ".join((*ORIGIN, "v"))
    of_files = spark.sql(f"SELECT * FROM VALUES {files} AS t({names})").repartition(2, "v")
    of_none = spark.range(8).repartition(4).selectExpr(*(f"NULL AS {name}" for name in ORIGIN), "-id AS v")
    rows = placed(of_files.unionByName(of_none)).select(PLACE, "v").collect()
    assert len({row[PLACE] for row in rows}) == len(rows) == 10
    assert [row.v for row in sorted(rows, key=lambda row: row[PLACE])][:2] == [1, 2]


def test_rows_that_an_operator_with_state_computes_are_of_no_file(spark, tmp_path):
    arriving = spark.readStream.schema(COLUMNS).parquet(str(tmp_path))
    assert len(origin(arriving.where("v > 0").select("ts"))) == len(ORIGIN)
    computed = arriving.groupBy("v").applyInPandasWithState(
        lambda _key, frames, _state: frames, COLUMNS, "n bigint", "append", "NoTimeout"
    )
    assert origin(computed.select("ts")) == ()
