"""How long a micro-batch of a thousand rows takes, with ten thousand and with five million rows retained.

    python -m benchmarks.retained_rows [query [executors]]

runs each query, on the driver or on executors, over large micro-batches whose rows stay, and then over forty
of a thousand rows. It prints the median seconds of the last thirty, by Spark's clock, from start to end of a
trigger, and the ratio. Only what is public is imported, so that `PYTHONPATH` may name the `src` of another
commit, for one run beside the other.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.micro_batches import seconds_of
from benchmarks.state import of_two_cores

_RETAINED = (10_000, 5_000_000)
_AT_ONCE, _SMALL, _STEPS, _LAST = 1_000_000, 1_000, 40, 30
_KEYS = 500_000
_COLUMNS = "ts timestamp, k bigint, own bigint, v bigint"
_VALUES = "COUNT(*) AS n, SUM(v) AS total, MAX(v) AS high"

QUERIES = {
    "[RANGE 1 DAY]": "ISTREAM(SELECT k, v FROM s [RANGE 1 DAY])",
    "[RANGE 1 DAY] GROUP BY": f"SELECT k, {_VALUES} FROM s [RANGE 1 DAY] GROUP BY k",
    "[RANGE 1 DAY] GROUP BY, twice": "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n"
    " FROM s [RANGE 1 DAY] GROUP BY k) GROUP BY n",
    "[RANGE 1 DAY] JOIN": "SELECT s.v, t.v AS w FROM s [RANGE 1 DAY] AS s JOIN t [RANGE 1 DAY] AS t"
    " ON s.own = t.own",
    "[PARTITION BY k ROWS 10]": "SELECT k, v FROM s [PARTITION BY k ROWS 10]",
    "EMIT GROUP BY": f"SELECT k, {_VALUES} FROM s GROUP BY k EMIT STREAM AS diff",
    "EMIT JOIN": "SELECT s.v, t.v AS w FROM s JOIN t ON s.own = t.own"
    " AND t.ts BETWEEN s.ts - INTERVAL 1 DAY AND s.ts EMIT STREAM AS diff",
    "SUM OVER": "SELECT STREAM k, ts, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS s FROM s",
}


def main(only: str = "", host: str = "driver") -> None:
    """Print the table."""
    spark = of_two_cores()
    spark.conf.set("spark.windrow.live.host", host)
    spark.conf.set("spark.windrow.live.buckets", "2")
    sys.stdout.write(f"{'query':30}" + "".join(f"{count:>12,}" for count in _RETAINED) + f"{'ratio':>8}\n")
    with tempfile.TemporaryDirectory() as folder:
        for count in _RETAINED:
            for seed, name in enumerate(("s", "t")):
                _write(Path(folder) / str(count) / name, count, seed)
        for name, query in QUERIES.items():
            if only in name:
                few, many = (_run(spark, Path(folder) / str(count), query) for count in _RETAINED)
                sys.stdout.write(f"{name:30}{few:12.2f}{many:12.2f}{many / few:8.2f}\n")
                sys.stdout.flush()


def _run(spark: SparkSession, folder: Path, query: str) -> float:
    """The median seconds of the last micro-batches."""
    took, _ = seconds_of(spark, folder, ("s", "t"), _COLUMNS, query)
    return statistics.median(took[-_LAST:])


def _write(folder: Path, count: int, seed: int) -> None:
    """Rows of one hour, in the order of time: most in large files, then small ones."""
    folder.mkdir(parents=True)
    drawn = np.random.default_rng(seed)
    sizes = [min(_AT_ONCE, count)] * max(1, count // _AT_ONCE) + [_SMALL] * _STEPS
    first, step = 0, 3_600_000_000 // (sum(sizes) + 1)
    for number, size in enumerate(sizes):
        at = np.arange(first, first + size)
        columns = {
            "ts": pa.array(at * step + 1).cast(pa.timestamp("us", "UTC")),
            "k": drawn.integers(0, _KEYS, size),
            "own": at,
            "v": drawn.integers(0, 1000, size),
        }
        pq.write_table(pa.table(columns), folder / f"{number:03}.parquet")
        first += size


if __name__ == "__main__":
    main(*sys.argv[1:3])
