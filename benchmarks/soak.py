"""What a live query costs after many micro-batches: seconds, memory and files at both ends of a long run.

``python -m benchmarks.soak [--batches 2000]`` runs queries with state, late rows and a folder as their target
over as many files, one a micro-batch, and prints a line for each tenth of the run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.memory import resident
from windrow import Session
from windrow.spark.runtime.local import local_session

__all__ = ["main"]

_ROWS = 200  # of a file
_KEYS = 20
QUERIES = {
    "cql": "SELECT k, COUNT(*) AS n, MAX(v) AS top FROM s [RANGE 10] GROUP BY k",
    "emit": "SELECT wend, k, SUM(v) AS v FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 10) GROUP BY wend, k "
    "EMIT STREAM AFTER WATERMARK",
}


def main() -> None:
    """Run each query."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--only", choices=QUERIES, action="append")
    given = parser.parse_args()
    spark = local_session(master="local[2]", app_name="soak", conf={"spark.driver.memory": "1g"})
    for name in given.only or QUERIES:
        _say(f"{name}: {QUERIES[name]}")
        with tempfile.TemporaryDirectory(prefix="windrow-soak-") as folder:
            for line in _run(Session(spark), Path(folder), QUERIES[name], given.batches):
                _say(f"  {line}")
    spark.stop()


def _run(session: Session, folder: Path, query: str, batches: int) -> Iterator[str]:
    """A line for each tenth of the micro-batches, and the account in the end."""
    arriving = folder / "arriving"
    arriving.mkdir()
    for number in range(batches):
        _write(arriving / f"{number:06}.parquet", number)
    frame = (
        session.spark.readStream.schema("ts BIGINT, k BIGINT, v BIGINT")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(arriving))
    )
    session.stream("s", frame, rowtime="ts", unit="seconds", lag=2)
    ended: list[float] = []
    live = session.sql(query).start(str(folder / "out"), checkpoint=folder / "checkpoint")
    tenth = max(batches // 10, 1)
    told, last = 0, -1
    yield "micro-batches  median s  python MB  java MB  checkpoint files  target files"
    while told < batches // tenth:
        if live.failure is not None:
            raise live.failure
        time.sleep(0.02)
        step = live.progress["batch"] if live.progress else -1
        if step != last:
            ended += [time.monotonic()] * (step - last)
            last = step
        if len(ended) >= (told + 1) * tenth:
            told += 1
            part = ended[(told - 1) * tenth : told * tenth]
            each = [after - before for before, after in pairwise(part)]
            python, java = resident()
            kept = sum(len(files) for _, _, files in os.walk(folder / "checkpoint"))
            out = sum(len(files) for _, _, files in os.walk(folder / "out"))
            yield (
                f"{told * tenth:13}  {statistics.median(each):8.3f}  {python:9.0f}  {java:7.0f}"
                f"  {kept:16}  {out:12}"
            )
    live.process_all_available()
    progress = live.progress
    live.stop()
    yield str({name: value for name, value in progress.items() if name.startswith("rows_")})


def _write(path: Path, number: int) -> None:
    """A file of rows about one second, of which the first are late."""
    seconds = [max(number - 5, 0)] * 3 + [number] * (_ROWS - 3)
    keys = [(number + row) % _KEYS for row in range(_ROWS)]
    values = [(number * 31 + row * 17) % 1000 for row in range(_ROWS)]
    pq.write_table(pa.table({"ts": seconds, "k": keys, "v": values}), path)
    os.utime(path, (number, number + 1_000_000_000))  # the order in which Spark takes files


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
