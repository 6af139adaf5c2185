"""Streams that live queries read while they are killed: files of rows that come, and named streams."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from tests.live.random_logs import COLUMNS, SCHEMA, admitted, table
from windrow import Session
from windrow.spark.live.checkpoints.side_outputs import Listing, SideOutput
from windrow.streams import FOREVER, NamedStream, Ordering, Producer

__all__ = ["Arriving", "Named", "OfWindows", "Source", "late_rows"]


class Source(Protocol):
    """A stream. Its rows have the columns ts, k and v, and every v of a stream is another."""

    name: str

    def declare(self, session: Session) -> None:
        """Make it known to the session of a process that runs the live query."""

    def feed(self, time: int, chance: random.Random) -> None:
        """Let some rows arrive, with rowtimes about `time`."""

    def end(self) -> None:
        """Promise that nothing follows."""

    def record(self, session: Session) -> None:
        """Make known to a session what has arrived, as a recorded stream."""

    @property
    def row_count(self) -> int:
        """How many rows have arrived."""

    @property
    def late(self) -> Counter[int]:
        """The v of those that are late."""


class Arriving:
    """A folder into which files come, which Spark reads one a micro-batch."""

    def __init__(self, folder: Path, name: str, lag: int, producers: str = "pq") -> None:
        self.folder, self.name, self.lag, self.producers = folder / name, name, lag, producers
        self.folder.mkdir(exist_ok=True)
        self._entries: list[tuple] = []
        self._files = 0

    def declare(self, session: Session) -> None:
        arriving = session.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        frame = arriving.parquet(str(self.folder))
        told = {"producer": "p"} if len(self.producers) > 1 else {}
        session.stream(self.name, frame, rowtime="ts", unit="seconds", bound="b", lag=self.lag, **told)

    def feed(self, time: int, chance: random.Random) -> None:
        rows = []
        for _ in range(chance.randint(1, 5)):
            at = max(0, time + chance.randint(-3, 1))
            bound = time - 3 if chance.random() < 0.2 else None
            rows.append(
                (chance.choice(self.producers), at, chance.randint(0, 2), self.row_count + len(rows), bound)
            )
        self._put(rows)

    def end(self) -> None:
        self._put([(producer, None, None, None, FOREVER) for producer in self.producers])

    def record(self, session: Session) -> None:
        rows = [(producer, ts, k, v, number) for number, producer, ts, k, v in self._admitted]
        whole = table(rows).rename_columns(["p", "ts", "k", "v", "n"])
        session.stream(self.name, whole, rowtime="ts", unit="seconds", ptime="n")

    @property
    def row_count(self) -> int:
        return sum(ts is not None for _, ts, *_ in self._entries)

    @property
    def late(self) -> Counter[int]:
        is_in = {number for number, *_ in self._admitted}
        return Counter(
            v
            for number, (_, ts, _, v, _) in enumerate(self._entries)
            if ts is not None and number not in is_in
        )

    @property
    def _admitted(self) -> list[tuple]:
        return admitted(self._entries, self.lag)

    def _put(self, rows: list[tuple]) -> None:
        pending = self.folder / f".{self._files}.pending"
        pq.write_table(pa.Table.from_batches(table(rows).to_batches(), schema=SCHEMA), pending)
        # Spark takes files in the order of these times
        os.utime(pending, (self._files, 1_700_000_000 + self._files))
        pending.rename(self.folder / f"{self._files:06}.parquet")
        self._files += 1
        self._entries += rows


class OfWindows(Arriving):
    """The same of one producer. Rows are late where the watermark has passed their window of time."""

    def __init__(self, folder: Path, name: str, lag: int, length: int) -> None:
        super().__init__(folder, name, lag, "p")
        self.length = length

    def record(self, session: Session) -> None:
        rows = [(ts, k, v, number + 1, None) for number, ts, k, v in self._admitted_of_windows]
        end = max((ts for ts, *_ in rows), default=0) + 10 * self.length
        rows.append((None, None, None, len(self._entries) + 1, end))
        whole = session.spark.createDataFrame(rows, "ts bigint, k bigint, v bigint, at bigint, upto bigint")
        frame = whole.withColumn("at", F.timestamp_seconds("at"))
        session.stream(self.name, frame, rowtime="ts", unit="seconds", ptime="at", watermark="upto")

    @property
    def late(self) -> Counter[int]:
        is_in = {number for number, *_ in self._admitted_of_windows}
        rows = [(number, v) for number, (_, ts, _, v, _) in enumerate(self._entries) if ts is not None]
        return Counter(v for number, v in rows if number not in is_in)

    @property
    def _admitted_of_windows(self) -> list[tuple]:
        """The rows that are in, an entry at a time."""
        seen, promised, found = None, None, []
        for number, (_, ts, k, v, bound) in enumerate(self._entries):
            if ts is not None:
                clock = max((each for each in (seen, promised) if each is not None), default=ts)
                is_below = promised is not None and ts < promised
                if not is_below and ts // self.length >= clock // self.length:
                    found.append((number, ts, k, v))
                if not is_below:
                    seen = ts - self.lag if seen is None else max(seen, ts - self.lag)
            if bound is not None:
                promised = bound if promised is None else max(promised, bound)
        return found


class Named:
    """A named stream into which several producers insert, which come and go."""

    def __init__(self, folder: Path, name: str, producers: str, ordering: Ordering) -> None:
        self.folder, self.name, self.producers, self.ordering = folder / name, name, producers, ordering
        if not self.folder.exists():
            columns = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
            NamedStream.create(self.folder, columns, "ts", unit="seconds", ordering=ordering)
        self.stream = NamedStream.open(self.folder)
        self._attached: dict[str, Producer] = {}
        self.row_count = 0

    def declare(self, session: Session) -> None:
        session.stream(self.name, self.stream)

    def feed(self, time: int, chance: random.Random) -> None:
        for name in self.producers:
            producer = self._attached.get(name)
            if producer is None:
                producer = self._attached[name] = self.stream.producer(name)
            rows = []
            for _ in range(chance.randint(0, 3) or not self.row_count):
                at = max(0, time + chance.randint(-1, 2))
                rows.append({"ts": at, "k": chance.randint(0, 2), "v": self.row_count + len(rows)})
            if rows:
                producer.insert(rows)
                self.row_count += len(rows)
            says = chance.random()
            if says < 0.2:
                producer.bound(time)
            elif says < 0.3:
                producer.idle()
            elif says < 0.4:
                self._attached.pop(name).close()

    def end(self) -> None:
        for name in self.producers:
            with self._attached.pop(name, None) or self.stream.producer(name) as producer:
                producer.finish()

    def record(self, session: Session) -> None:
        session.stream(self.name, self.stream)

    @property
    def late(self) -> Counter[int]:
        batch, _ = self.stream.read(self.stream.start, files=1_000_000)
        return Counter(batch.late.column("v").to_pylist())


def late_rows(checkpoint: Path) -> dict[str, Counter[int]]:
    """Of each stream the v of the rows that a live query told as late."""
    found: dict[str, Counter[int]] = {}
    steps = sorted(int(path.name) for path in (checkpoint / "windrow").glob("[0-9]*"))
    if not steps:
        return found
    told = json.loads((checkpoint / "windrow" / str(steps[-1]) / "step.json").read_text())
    for path in SideOutput(checkpoint / "late").paths(Listing.from_json(told["sides"]["late"])):
        for row in pq.read_table(path).to_pylist():
            found.setdefault(row["stream"], Counter())[json.loads(row["row"])["v"]] += 1
    return found
