"""What is due after a delay is told with the time at which it was due, whatever killed the query before."""

from __future__ import annotations

import datetime
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chaos.life import FATAL
from tests.chaos.processes import kill, tree
from tests.live.deadlines import ARRIVED, DELAYS, asked
from windrow import Session
from windrow.streams import NamedStream

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.skipif(
        not Path("/proc/self/stat").exists(), reason="processes are found as Linux tells them"
    ),
]

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string())])
ROWS = [{"t": 3, "k": "a"}, {"t": 7, "k": "a"}]


def given(folder, name):
    files = sorted((folder / f"out-{name}").glob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    return [{**row, "ptime": row["ptime"].replace(tzinfo=None)} for row in rows]


def killed(folder):
    """Run the process to its end, by a signal."""
    command = [sys.executable, "-m", "tests.live.deadlines", str(folder)]
    with (folder / "log").open("w") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, cwd=Path(__file__).parents[3])
    try:
        assert child.wait(120) == -signal.SIGKILL, (folder / "log").read_text()[-2000:]
    finally:
        kill(*tree(child.pid))


def test_deadlines_keep_their_time_where_the_process_is_killed(spark, tmp_path, monkeypatch):
    """One that is pending, and one that is told in a step that is not kept."""
    (tmp_path / "arriving").mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS, SCHEMA), tmp_path / "arriving" / "0.parquet")
    with NamedStream.create(tmp_path / "named", SCHEMA, "t", unit="second").producer("p") as producer:
        producer.insert(ROWS)
    (tmp_path / FATAL).touch()
    killed(tmp_path)
    assert given(tmp_path, "named") == []
    assert len(given(tmp_path, "arriving")) == 1

    now = time.time_ns  # as soon as it may be, it is time
    monkeypatch.setattr(time, "time_ns", lambda: now() + DELAYS["named"] * 10**9)
    monkeypatch.setattr(time, "time", lambda: time.time_ns() / 1e9)
    session = Session(spark)
    queries = [
        relation.start(tmp_path / f"out-{name}", checkpoint=tmp_path / f"checkpoint-{name}")
        for name, relation in asked(session, tmp_path).items()
    ]
    end = time.monotonic() + 180
    while not all(query.progress.get("rows_emitted") for query in queries):
        assert time.monotonic() < end, [query.progress for query in queries]
        time.sleep(0.02)
    for query in queries:
        query.stop()
    stream = NamedStream.open(tmp_path / "named")
    arrived_at = {
        "named": stream.read(stream.start)[0].admitted.column("__ptime")[0].as_py(),
        "arriving": int((tmp_path / ARRIVED).read_text()),
    }
    for name, delay in DELAYS.items():
        since = datetime.datetime.fromtimestamp(0, datetime.UTC).replace(tzinfo=None)
        due = since + datetime.timedelta(microseconds=arrived_at[name], seconds=delay)
        assert given(tmp_path, name) == [
            {"k": "a", "wend": 10, "n": 2, "undo": False, "ptime": due, "ver": 0}
        ]
        spark.catalog.dropTempView(name)
