"""A live query on two executors, of which one is killed, goes on where there is one with two cores."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

QUERIES = {
    "emit": "SELECT wend, k, COUNT(*) AS n, SUM(v) AS total FROM TUMBLE(TABLE s, DESCRIPTOR(ts),"
    " INTERVAL 1 MINUTE) GROUP BY wend, k EMIT AFTER WATERMARK",
    "cql": "SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k",
    "clause": "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(ts) AS begins,"
    " COUNT(*) AS n PATTERN (x y+) WITHIN 1 MINUTE DEFINE y AS v > PREV(v))",
}
PROGRAM = r"""
import json
import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import windrow


def executors():
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in words and os.environ["MARK"].encode() in words:
            yield int(entry.parent.name)


if __name__ == "__main__":
    master, folder, kills = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "kill"
    conf = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "3",
        "spark.windrow.live.host": "driver" if master.startswith("local[") else "executors",
        "spark.executor.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dmark={os.environ['MARK']}",
    }
    builder = SparkSession.builder.master(master)
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    session = windrow.Session(spark)
    frame = spark.readStream.schema("ts timestamp_ntz, k bigint, v bigint").option("maxFilesPerTrigger", 1)
    session.stream("s", frame.parquet(str(folder / "in")), rowtime="ts", lag="10 seconds")
    progress = {}
    for name, query in json.loads(os.environ["QUERIES"]).items():
        envelope = {"envelope": "diff"} if name == "cql" else {}
        target = folder / f"out-{name}"
        started = session.sql(query).start(target, checkpoint=folder / f"checkpoint-{name}", **envelope)
        if kills:
            os.kill(next(executors()), signal.SIGKILL)
        started.process_all_available()
        progress[name] = {key: value for key, value in started.progress.items() if key.startswith("rows_")}
        started.stop()
    (folder / "progress.json").write_text(json.dumps(progress))
    spark.stop()
"""


def put(folder: Path, numbers: range) -> None:
    """Files of entries that are not quite in order."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("v", pa.int64())])
    for number in numbers:
        chosen = random.Random(number)
        rows = [
            {
                "ts": datetime(2026, 1, 1) + timedelta(seconds=100 * number + chosen.randrange(120)),
                "k": chosen.randrange(5),
                "v": chosen.randrange(9),
            }
            for _ in range(60)
        ]
        path = folder / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, columns), path)
        os.utime(path, (number, number + 1_000_000_000))


def run(master: str, folder: Path, *, kills: bool = False) -> dict[str, dict[str, int]]:
    """The counts of the account of each query, after all files."""
    environment = os.environ | {"QUERIES": json.dumps(QUERIES), "MARK": f"mark-{os.getpid()}"}
    words = [sys.executable, "-c", PROGRAM, master, str(folder), "kill" if kills else "spare"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=500, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found: dict[str, dict[str, int]] = json.loads((folder / "progress.json").read_text())
    return found


def rows(folder: Path, name: str) -> Counter[str]:
    """How often each row is there that a query has written, whenever it was."""
    tables = map(pq.read_table, (folder / f"out-{name}").glob("*.parquet"))
    by_clock = ("_commit_version", "_commit_timestamp")
    return Counter(
        str({name: value for name, value in row.items() if name not in by_clock})
        for table in tables
        for row in table.to_pylist()
    )


def test_executors_that_are_lost_or_others_change_nothing(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    put(there / "in", range(3))
    run("local-cluster[2,1,1024]", there, kills=True)
    put(there / "in", range(3, 5))
    progress = run("local-cluster[1,2,1024]", there)
    put(here / "in", range(5))
    wanted = run("local[2]", here)
    for name in QUERIES:
        assert rows(there, name) == rows(here, name), name
        assert rows(here, name), name
        counts = progress[name]
        settled = ("rows_used", "rows_buffered", "rows_late", "rows_malformed")
        assert counts["rows_in"] == sum(counts[key] for key in settled), name
        assert {key: counts[key] for key in ("rows_in", *settled)} == {
            key: wanted[name][key] for key in ("rows_in", *settled)
        }, name
