"""Many processes insert at once, and some are killed at any moment: what was acknowledged is in, once."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from windrow.streams import Batch, Decision, EntryKind, NamedStream, Ordering

COLUMNS = pa.schema([("at", pa.int64()), ("producer", pa.string()), ("number", pa.int64())])

# Inserts rows numbered from where the producer stands up to `count`, says so after each, and closes.
WORKER = """
import sys
from windrow.streams import NamedStream
folder, name, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
import random
sizes = random.Random(seed)
with NamedStream.open(folder).producer(name, lease=float(sys.argv[5]), wait=60) as p:
    while p.next_sequence <= count:
        first = p.next_sequence
        size = min(sizes.randint(1, 3), count - first + 1)
        rows = [{"at": n, "producer": name, "number": n} for n in range(first, first + size)]
        p.insert(rows, sequence=first)
        print(first + size - 1, flush=True)
        if sizes.random() < 0.2:
            p.bound(first + size)
"""


def start(stream: NamedStream, name: str, count: int, seed: int, lease: float = 0.3) -> subprocess.Popen:
    source = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(stream.folder), name, str(count), str(seed), str(lease)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )


def rows_of(batch: Batch) -> list[tuple[str, int]]:
    """Producers and numbers of the rows that are in, late ones too."""
    is_in = ~np.isin(batch.decision, (Decision.DUPLICATE, Decision.FENCED))
    rows = batch.entries.filter(
        pa.array(is_in & (batch.entries.column("__kind").to_numpy() == EntryKind.ROW))
    )
    return list(zip(rows.column("producer").to_pylist(), rows.column("number").to_pylist(), strict=True))


def numbers_of(stream: NamedStream) -> dict[str, list[int]]:
    """The numbers of the rows of each producer, in the order of the log."""
    found: dict[str, list[int]] = {}
    for name, number in rows_of(stream.read(stream.start)[0]):
        found.setdefault(name, []).append(number)
    return found


@pytest.mark.slow
def test_processes_that_insert_at_once_have_one_order_and_every_row_is_in_once(tmp_path):
    stream = NamedStream.create(tmp_path / "s", COLUMNS, "at", ordering=Ordering.unordered())
    count, names = 40, ["a", "b", "c", "d"]
    workers = [start(stream, name, count, seed, lease=100) for seed, name in enumerate(names)]
    seen: list[tuple[str, int]] = []
    position, are_running = stream.start, True
    while are_running:
        are_running = any(worker.poll() is None for worker in workers)
        # whoever reads along sees what those see who read later
        batch, position = stream.read(position)
        seen += rows_of(batch)
    assert [worker.wait() for worker in workers] == [0] * len(names)
    whole, end = stream.read(stream.start)
    assert (seen, position) == (rows_of(whole), end)
    assert numbers_of(stream) == {name: list(range(1, count + 1)) for name in names}
    assert (end.duplicates, end.fenced) == (0, 0)
    assert whole.rows.num_rows + whole.late.num_rows == count * len(names)
    assert stream.check() == []
    assert end.watermark.silent(2**62, 0) == [], "all have closed"


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_killed_processes_lose_nothing_that_was_acknowledged_and_their_successors_go_on(tmp_path, seed):
    stream = NamedStream.create(tmp_path / "s", COLUMNS, "at")
    count, chance = 30, random.Random(seed)
    acknowledged = kills = 0
    steady = start(stream, "steady", count, seed)
    while True:
        worker = start(stream, "victim", count, seed * 100 + kills)
        assert worker.stdout is not None
        patience = chance.randint(1, 8)
        for line in worker.stdout:
            acknowledged = max(acknowledged, int(line))
            patience -= 1
            if not patience:
                break
        if patience:
            assert worker.wait() == 0
            break
        # somewhere in the next insert
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(chance.random() * 0.01)
        worker.send_signal(signal.SIGKILL)
        worker.stdout.close()
        worker.wait()
        kills += 1
        inserted = numbers_of(stream)["victim"]
        assert inserted == list(range(1, len(inserted) + 1))
        assert len(inserted) >= acknowledged
    assert kills > 0
    assert steady.wait() == 0
    assert numbers_of(stream) == {name: list(range(1, count + 1)) for name in ("steady", "victim")}
    batch, end = stream.read(stream.start)
    assert (batch.rows.num_rows, batch.late.num_rows) == (end.watermark.admitted, end.watermark.rejected)
    assert batch.rows.num_rows + batch.late.num_rows == 2 * count
    assert stream.check() == []
