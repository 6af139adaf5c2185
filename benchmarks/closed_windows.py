"""How long a micro-batch takes that closes a window of many groups, beside those that fill it.

    python -m benchmarks.closed_windows [groups]

runs each query over hours of as many keys as there are groups, in ten micro-batches an hour, and prints the
median seconds of a micro-batch that fills an hour and of one that closes an hour, and their ratio, by Spark's
clock, from the start of a trigger to its end. Only what is public is imported, so that `PYTHONPATH` may name
the `src` of another commit, for one run beside the other.
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

_HOURS, _EACH = 5, 10
_COLUMNS = "ts timestamp, k bigint, v bigint"
_VALUES = "COUNT(*) AS n, SUM(v) AS total, MAX(v) AS high"

QUERIES = {
    "EMIT": f"SELECT wend, k, {_VALUES} FROM TUMBLE(DATA => TABLE(s), TIMECOL => DESCRIPTOR(ts),"
    " SIZE => INTERVAL 1 HOUR) GROUP BY wend, k EMIT STREAM AFTER WATERMARK",
    "ISTREAM": f"ISTREAM(SELECT k, {_VALUES} FROM s [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY k)",
}


def main(groups: int = 1_000_000, only: str = "") -> None:
    """Print the table."""
    spark = of_two_cores()
    sys.stdout.write(f"{'query':10}{'fills':>9}{'closes':>9}{'ratio':>8}\n")
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "s", groups)
        for name, query in QUERIES.items():
            if only in name:
                fills, closes = _run(spark, Path(folder), query, groups)
                sys.stdout.write(f"{name:10}{fills:9.2f}{closes:9.2f}{closes / fills:8.1f}\n")
                sys.stdout.flush()


def _run(spark: SparkSession, folder: Path, query: str, groups: int) -> tuple[float, float]:
    """The median seconds of micro-batches that fill, and of those that close an hour."""
    took, written = seconds_of(spark, folder, ("s",), _COLUMNS, query)
    assert len(took) == _HOURS * _EACH
    assert written >= groups * (_HOURS - 2)
    closing = [at for at in range(_EACH, len(took)) if at % _EACH == 0]
    filling = [took[at] for at in range(_EACH, len(took)) if at not in closing]  # the first hour warms up
    return statistics.median(filling), statistics.median(took[at] for at in closing)


def _write(folder: Path, groups: int) -> None:
    """Hours in which each key comes once, in the order of time, in files of a tenth of an hour each."""
    folder.mkdir()
    drawn, each = np.random.default_rng(1), groups // _EACH
    for hour in range(_HOURS):
        keys = drawn.permutation(groups)
        for part in range(_EACH):
            at = np.arange(part * each, (part + 1) * each)
            ts = hour * 3_600_000_000 + 1 + at * (3_599_000_000 // groups)
            columns = {
                "ts": pa.array(ts).cast(pa.timestamp("us", "UTC")),
                "k": keys[at],
                "v": drawn.integers(0, 1000, each),
            }
            pq.write_table(pa.table(columns), folder / f"{hour * _EACH + part:03}.parquet")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, *sys.argv[2:3])
