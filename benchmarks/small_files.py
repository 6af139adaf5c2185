"""What a named stream of many small inserts costs to read, before and after its files are merged:
``python -m benchmarks.small_files [COUNT]``.

Each of `COUNT` inserts, by default 10,000, has one row. A time is the least of three.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from windrow.streams import NamedStream

__all__ = ["measured"]

_COLUMNS = pa.schema([("at", pa.int64()), ("k", pa.string()), ("v", pa.float64())])


def measured(count: int, folder: Path) -> str:
    """Insert, read, merge and read again; returns a table of the times in seconds."""
    stream = NamedStream.create(folder / "stream", _COLUMNS, rowtime="at")
    with stream.producer("p") as producer:
        for at in range(count):
            producer.insert({"at": at, "k": f"k{at % 7}", "v": at / 2})
    lines = ["            files   MiB  open s  read s", _line("inserted", stream)]
    began = time.perf_counter()
    stream.compact(grace=0)
    took = time.perf_counter() - began
    return "\n".join([*lines, _line("merged", stream), f"merged in {took:.2f} s"])


def _line(name: str, stream: NamedStream) -> str:
    sizes = [path.stat().st_size for path in stream.log.files.iterdir()]
    opened, read = (_least(call) for call in (lambda: NamedStream.open(stream.folder), lambda: _read(stream)))
    return f"{name:10}{len(sizes):7}{sum(sizes) / 2**20:6.1f}{opened:8.3f}{read:8.2f}"


def _read(stream: NamedStream) -> None:
    position, before = stream.start, -1
    while position.number > before:
        before = position.number
        _, position = stream.read(position)


def _least(call: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(measured(int(sys.argv[1]) if sys.argv[1:] else 10_000, Path(folder)) + "\n")
