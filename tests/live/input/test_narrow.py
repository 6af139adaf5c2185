"""Of a micro-batch those columns are read that the query reads; of late rows, which are kept, all of them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from tests.live.emit_queries import counted, live, recorded
from tests.live.stepping import rows_of
from windrow import Memory, Session
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checkpoint import Checkpoint
from windrow.spark.live.hosts import micro_batches_of
from windrow.spark.live.micro_batches.entry_reader import EntryReader
from windrow.spark.live.operators.incremental_plan import IncrementalPlan
from windrow.spark.logs.session_streams import ARRIVED, ROWTIME
from windrow.streams.entries import BEFORE

pytestmark = pytest.mark.usefixtures("interpreted")

SCHEMA = "ts TIMESTAMP, k INT, s STRING, pad STRING"
BEGIN = datetime(2026, 3, 29)
ROWS = [
    [(0, 1, "1"), (1, 0, "0"), (3, 2, "4")],
    [(0, 1, "late, and no number"), (4, 3, "9")],
    [(6, 0, "7"), (7, 4, "8"), (7, 2, "8")],
    [(9, 1, "2")],
]
QUERIES = {
    "rows as they come": "SELECT STREAM s, 12 / k AS q, CAST(s AS INT) + 1 AS n, ts FROM o WHERE k <> 0",
    "pairs": "SELECT o.s, p.k FROM o [RANGE 5 MINUTES] JOIN p [RANGE 4 MINUTES] ON o.k = p.k"
    " WHERE abs(o.s) < 9 AND p.k <> 0 AND 12 / p.k < 10",
}


@pytest.mark.sampled
@pytest.mark.parametrize("query", QUERIES)
def test_what_is_read_gives_what_all_gives(spark, tmp_path, monkeypatch, query):
    session, read = Session(spark), []
    folder = tmp_path / "rows"
    folder.mkdir()
    for name in ("o", "p"):
        session.stream(name, spark.readStream.schema(SCHEMA).parquet(str(folder)), rowtime="ts")
    plan = session.sql(QUERIES[query])._live
    collected = EntryReader._collected

    def noted(steps, batch):
        read.append(any(name.endswith("_pad") for name in batch.columns))
        return collected(steps, batch)

    monkeypatch.setattr(EntryReader, "_collected", noted)
    found, late = [], []
    for way in ("needed", "all"):
        if way == "all":
            monkeypatch.setattr(EntryReader, "_narrow", lambda *_: None)
        sink = Memory()
        for number, rows in enumerate(ROWS):  # after each step it is started again
            steps = micro_batches_of(plan, sink, tmp_path / way, "diff", "keep")
            whole = [(BEGIN + timedelta(minutes=at), k, s, "pad") for at, k, s in rows]
            part = spark.createDataFrame(whole, SCHEMA)
            frames = {name: part.select(*stream.live.columns) for _, name, stream in steps.streams()}
            steps.take(steps.input(frames), number)
            steps.close()
        found.append(rows_of(sink.batches.values()))
        late.append(
            rows_of(
                [
                    pq.read_table(path)
                    for path in steps.context.checkpoint.sides["late"].folder.glob("*.parquet")
                ]
            )
        )
    assert read[:5] == [False, False, True, False, False]  # in the second step a row is late
    assert found[0] == found[1]
    assert found[0]
    assert late[0] == late[1]
    assert sum(late[0].values()) == len(plan.streams)


def test_rows_are_kept_without_what_nothing_reads(spark, tmp_path, monkeypatch):
    kept: list[pa.Schema] = []
    write = Checkpoint.write_chunk

    def noted(checkpoint, name, chunk, rows):
        kept.append(rows.schema)
        write(checkpoint, name, chunk, rows)

    monkeypatch.setattr(Checkpoint, "write_chunk", noted)
    entries = [("a", 0, 1, 1, None), ("a", 3, 2, 2, 2), ("b", 1, 1, 3, None), ("a", 1, 2, 5, None)]
    later = [("a", 4, 1, 1, None), ("b", 5, 2, 2, None), ("a", 6, 1, 1, None)]
    logs = {"s": [entries[:2], entries[2:], later[:2], later[2:], []]}
    query = "SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT STREAM"
    given, told = live(spark, tmp_path, logs, None, {1, 3}, query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])
    assert told["rows_late"] == 2
    assert kept
    assert all(set(schema.names) == {"ts", "k", ROWTIME, ARRIVED, BEFORE} for schema in kept)


@pytest.mark.parametrize("count", [5, 40])  # of more than 25, Spark's printed plans show some
def test_of_rows_with_many_columns_those_are_read_that_the_query_names(spark, tmp_path, count):
    incremental_plan = IncrementalPlan(Gateway(spark), tmp_path)
    number, rows = incremental_plan.leaf(
        StructType([StructField(f"c{at}", IntegerType()) for at in range(count)])
    )
    some = incremental_plan.output(rows.filter("c3 > 1").selectExpr("c1 + 1 AS x"))
    assert dict(some.reads) == {number: {"c1", "c3"}}
    chosen = incremental_plan.output(rows.selectExpr("c4 AS c1", "c1 AS x"))
    assert dict(chosen.reads) == {number: {"c1", "c4"}}
    assert chosen.chosen == ("c4", "c1")
    assert len(incremental_plan.output(rows.filter("c3 > 1")).reads[number]) == count
    assert incremental_plan.why_not is None
