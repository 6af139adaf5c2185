"""What live queries keep after a million rows, and how long they take.

    python -m benchmarks.state [rows]

runs each query over 20 files, one a micro-batch, and prints the seconds from its start to its end, the rows
and groups that it keeps, and the bytes of its state. Only what is public is imported, so that `PYTHONPATH`
may name the `src` of another commit, for one run beside the other.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import windrow

_FILES = 20
_DAY = 86_400
_COLUMNS = "ts timestamp, k bigint, account bigint, own bigint, v bigint, x double"
_AGGREGATES = "COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a, MAX(v) AS m"
_BEST = (
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY wstart, wend ORDER BY v DESC, own)"
    " AS rn FROM TUMBLE(DATA => TABLE(s), TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL 10 MINUTES)) AS t"
    " WHERE rn <= 3"
)

QUERIES = {
    "GROUP BY k": f"SELECT k, {_AGGREGATES} FROM s GROUP BY k EMIT STREAM AS diff",
    "GROUP BY k, of DOUBLE": "SELECT k, SUM(x) AS s, AVG(x) AS a, MAX(x) AS m FROM s GROUP BY k"
    " EMIT STREAM AS diff",
    "without GROUP BY": f"SELECT {_AGGREGATES} FROM s EMIT STREAM AS diff",
    "[RANGE UNBOUNDED] GROUP BY k": f"SELECT k, {_AGGREGATES} FROM s [RANGE UNBOUNDED] GROUP BY k",
    "[RANGE 10 MINUTES]": f"SELECT {_AGGREGATES} FROM s [RANGE 10 MINUTES]",
    "[RANGE 10 MINUTES] DISTINCT": "SELECT DISTINCT account FROM s [RANGE 10 MINUTES]",
    "[RANGE 10 MINUTES] NOT EXISTS": "SELECT own FROM s [RANGE 10 MINUTES] AS s WHERE NOT EXISTS"
    " (SELECT 1 FROM t [RANGE 10 MINUTES] AS t WHERE t.own = s.own)",
    "[RANGE 2 HOURS] WINDOW BY": "SELECT f.account, COUNT(w) AS n FROM s [RANGE 2 HOURS] WINDOW BY w AS (TYPE"
    " SLIDING PARTITION BY account ORDER BY ts, own START AS f END AS e WHEN e.v > f.v)",
    "DISTINCT": "SELECT DISTINCT k FROM s EMIT STREAM AS diff",
    "SUM OVER": "SELECT STREAM account, ts, SUM(v) OVER (PARTITION BY account ORDER BY ts) AS s FROM s",
    "join within 10 minutes": "SELECT s.own, t.v FROM s JOIN t ON s.own = t.own"
    " AND t.ts BETWEEN s.ts - INTERVAL 10 MINUTES AND s.ts EMIT STREAM AS diff",
    "LEFT JOIN within 10 minutes": "SELECT s.own, t.v FROM s LEFT JOIN t ON s.own = t.own"
    " AND t.ts BETWEEN s.ts - INTERVAL 10 MINUTES AND s.ts EMIT STREAM AFTER WATERMARK",
    "NOT EXISTS within 10 minutes": "SELECT s.own FROM s WHERE NOT EXISTS (SELECT 1 FROM t"
    " WHERE s.own = t.own AND t.ts BETWEEN s.ts - INTERVAL 10 MINUTES AND s.ts)"
    " EMIT STREAM AFTER WATERMARK",
    "three best of 10 minutes": f"{_BEST} EMIT STREAM AFTER WATERMARK",
    "GROUP BY hour, account": f"SELECT wend, account, {_AGGREGATES} FROM TUMBLE(DATA => TABLE(s),"
    " TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL 1 HOUR) GROUP BY wend, account"
    " EMIT STREAM AFTER WATERMARK",
    "GROUP BY hour, own": "SELECT wend, own, COUNT(*) AS n FROM TUMBLE(DATA => TABLE(s),"
    " TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL 1 HOUR) GROUP BY wend, own"
    " EMIT STREAM AFTER WATERMARK",
}


def of_two_cores() -> SparkSession:
    """A session of two cores, without Spark's page."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main(rows: int = 1_000_000, only: str = "") -> None:
    """Print the table."""
    spark = of_two_cores()
    sys.stdout.write(f"{'query':30}{'seconds':>9}{'kept':>12}{'bytes':>14}\n")
    with tempfile.TemporaryDirectory() as folder:
        for seed, name in enumerate(("s", "t")):
            _write(Path(folder) / name, rows, seed)
        for name, query in QUERIES.items():
            if only in name:
                seconds, kept, size = _run(spark, Path(folder), query)
                sys.stdout.write(f"{name:30}{seconds:9.1f}{kept:12,}{size:14,}\n")
                sys.stdout.flush()


def _run(spark: SparkSession, folder: Path, query: str) -> tuple[float, int, int]:
    session = windrow.Session(spark)
    for name in ("s", "t"):
        files = spark.readStream.schema(_COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
        session.stream(name, files, rowtime="ts", lag="10 seconds")
    with tempfile.TemporaryDirectory() as out:
        began = time.perf_counter()
        live = session.sql(query).start(
            Path(out) / "given",
            checkpoint=Path(out) / "checkpoint",
            trigger={"availableNow": True},
            on_unbounded="ignore",
        )
        live.await_termination()
        seconds, progress = time.perf_counter() - began, live.progress
        live.stop()
    return seconds, progress["rows_in_windows"], progress["state_bytes"]


def _write(folder: Path, rows: int, seed: int) -> None:
    """A day of rows in the order of their time, in files of a stretch of it each."""
    folder.mkdir()
    drawn, each = np.random.default_rng(seed), rows // _FILES
    for number in range(_FILES):
        own = np.arange(number * each, (number + 1) * each)
        ts = own * (_DAY * 1_000_000 // rows)
        columns = {
            "ts": pa.array(ts).cast(pa.timestamp("us", "UTC")),
            "k": drawn.integers(0, 3, each),
            "account": drawn.integers(0, 1000, each),
            "own": own,
            "v": drawn.integers(0, 1000, each),
            "x": drawn.random(each),
        }
        pq.write_table(pa.table(columns), folder / f"{number:03}.parquet")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, *sys.argv[2:3])
