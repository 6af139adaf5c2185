"""Queries with EMIT over what others emit: live = recorded, also after a restart."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow import Memory, Session

BATCHES = [
    [(1, 1, 10), (2, 1, 30), (3, 2, 20)],
    [(14, 1, 5), (12, 2, 40), (11, 2, 7)],
    [(27, 1, 50), (35, 2, 1), (44, 2, 60)],
]
"""The rows (ts, k, v) of three micro-batches."""
WINDOWS = (
    "(SELECT wend AS until, k, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 5) GROUP BY wend, k"
    " EMIT STREAM AFTER WATERMARK)"
)
QUERIES = {
    "changes of changes": "SELECT k, COUNT(*) AS n FROM (SELECT k, MAX(v) AS m FROM s GROUP BY k EMIT STREAM)"
    " AS c WHERE NOT undo GROUP BY k EMIT STREAM",
    "windows of windows": f"SELECT wend, SUM(n) AS n FROM TUMBLE(TABLE {WINDOWS}, DESCRIPTOR(until), 20)"
    " GROUP BY wend EMIT STREAM AFTER WATERMARK",
    "groups of windows": f"SELECT until, SUM(n) AS n FROM {WINDOWS} GROUP BY until EMIT STREAM",
}


def counted(rows):
    """The rows with their counts, without the processing time."""
    return Counter(tuple(value for name, value in row.items() if name != "ptime") for row in rows)


@pytest.mark.sampled
@pytest.mark.parametrize("name", QUERIES)
def test_live_is_as_recorded(spark, tmp_path, name):
    query = QUERIES[name]
    greatest = [max(ts for rows in BATCHES[: at + 1] for ts, _, _ in rows) for at in range(len(BATCHES))]
    log = [(*row, at, greatest[at] - 4) for at, rows in enumerate(BATCHES) for row in rows]
    session = Session(spark)
    frame = spark.createDataFrame(log, "ts bigint, k int, v int, at bigint, bound bigint")
    session.stream("s", frame, rowtime="ts", unit="seconds", ptime="at", bound="bound")
    wanted = counted(session.sql(query).to_arrow().to_pylist())
    sink = Memory()
    (incoming := tmp_path / "in").mkdir()
    for number, part in enumerate((BATCHES[:2], BATCHES[2:])):
        for at, rows in enumerate(part):
            ts, k, v = zip(*rows, strict=True)
            columns = {"ts": pa.array(ts), "k": pa.array(k, pa.int32()), "v": pa.array(v, pa.int32())}
            pq.write_table(pa.table(columns), incoming / f"{number}{at}.parquet")
        session = Session(spark)
        arriving = spark.readStream.schema("ts bigint, k int, v int").option("maxFilesPerTrigger", 1)
        session.stream("s", arriving.parquet(str(incoming)), rowtime="ts", unit="seconds", lag=4)
        relation = session.sql(query)
        relation.start(sink, checkpoint=tmp_path / "c", trigger={"availableNow": True}).await_termination()
    found = counted(row for batch in sink.batches.values() for row in batch.to_pylist())
    assert found == wanted
    assert found
