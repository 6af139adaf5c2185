"""Where the state of a query with many keys is: the memory of the driver, and of each of two executors.

    python -m benchmarks.many_keys [keys]

runs a query of groups over as many rows with ten thousand keys and with as many keys as asked, on two
executors of one core each, and prints the megabytes at the end: of the driver's Python and Java, and of each
executor, Java and Python workers together. The driver's Java has Spark's master and workers in it too, and
the same heap in both runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import windrow
from benchmarks.memory import below, resident_of

_FEW = 10_000
_FILES = 10
_QUERY = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE UNBOUNDED] GROUP BY k"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.windrow.live.host": "executors",
}
_EXECUTOR = "CoarseGrainedExecutorBackend"


def main(keys: int = 10_000_000) -> None:
    """Print the table."""
    sys.stdout.write(f"{'keys':>12}{'seconds':>9}{'Python':>9}{'Java':>9}  executors\n")
    for count in (_FEW, keys):
        command = [sys.executable, "-m", "benchmarks.many_keys", "run", str(count), str(keys)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        executors = ", ".join(f"{each:,.0f}" for each in found["executors"])
        sys.stdout.write(
            f"{count:12,}{found['seconds']:9.0f}{found['python']:9,.0f}{found['java']:9,.0f}  {executors}\n"
        )
        sys.stdout.flush()


def run(keys: int, rows: int) -> None:
    """Run the query over so many rows with so many keys, and print what takes memory at its end."""
    builder = SparkSession.builder.master("local-cluster[2,1,4096]").config("spark.executor.memory", "4g")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    session = windrow.Session(spark)
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "s", keys, rows)
        reader = spark.readStream.schema("ts timestamp, k bigint, v bigint").option("maxFilesPerTrigger", 1)
        session.stream("s", reader.parquet(str(Path(folder) / "s")), rowtime="ts", lag="0 seconds")
        began = time.perf_counter()
        live = session.sql(_QUERY).start(
            Path(folder) / "given", checkpoint=Path(folder) / "checkpoint", on_unbounded="ignore"
        )
        live.process_all_available()
        seconds = time.perf_counter() - began
        assert live.progress["rows_used"] >= rows * (_FILES - 1) // _FILES
        python, java, executors = _memory()
        live.stop()
    spark.stop()
    found = {"seconds": seconds, "python": python, "java": java, "executors": executors}
    sys.stdout.write(json.dumps(found) + "\n")


def _memory() -> tuple[float, float, list[float]]:
    """The megabytes of the driver's Python, of its Java, and of each executor."""
    processes = below()
    executors = [pid for pid, command in processes.items() if _EXECUTOR in command]
    within = {pid: set(below(pid)) | {pid} for pid in executors}
    java = [
        pid
        for pid, command in processes.items()
        if "SparkSubmit" in command and not any(pid in one for one in within.values())
    ]
    of_executors = sorted(sum(map(resident_of, each)) for each in within.values())
    return resident_of(), sum(map(resident_of, java)), of_executors


def _write(folder: Path, keys: int, rows: int) -> None:
    """So many rows in the order of time; each key comes equally often."""
    folder.mkdir()
    drawn, each = np.random.default_rng(1), rows // _FILES
    for number in range(_FILES):
        at = np.arange(number * each, (number + 1) * each)
        columns = {
            "ts": pa.array(at * 1000).cast(pa.timestamp("us", "UTC")),
            "k": at % keys,
            "v": drawn.integers(0, 1000, each),
        }
        pq.write_table(pa.table(columns), folder / f"{number:03}.parquet")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", keys, rows]:
            run(int(keys), int(rows))
        case words:
            main(*map(int, words[:1]))
