"""Runs a live query over many bids, and prints what it keeps: as much as there are open auctions."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import windrow
from windrow.streams import NamedStream

COLUMNS = pa.schema([("at", pa.int64()), ("auction", pa.int64()), ("price", pa.int64())])
QUERY = "SELECT STREAM auction, MAX(price) AS high, COUNT(*) AS bids FROM bids GROUP BY auction"


@dataclass(frozen=True)
class House:
    """An auction house.

    Attributes
    ----------
    opened
        How many auctions are open at any time.
    turns
        How many close, and open, between two inserts.
    bids
        How many bids come in an insert.
    """

    opened: int = 1000
    turns: int = 200
    bids: int = 100_000

    def days(self, count: int, seed: int = 1) -> Iterator[tuple[pa.Table, list[int]]]:
        """So many inserts of bids, each with the auctions that close after it; after the last all do."""
        chosen = np.random.default_rng(seed)
        auctions = np.arange(self.opened)
        for number in range(count):
            auction = auctions[chosen.integers(0, self.opened, self.bids)]
            at = np.arange(self.bids) + number * self.bids
            price = chosen.integers(1, 10_000, self.bids)
            places = chosen.choice(self.opened, self.turns, replace=False)
            closed = auctions[places] if number + 1 < count else auctions.copy()
            auctions[places] = self.opened + number * self.turns + np.arange(self.turns)
            yield pa.table([at, auction, price], schema=COLUMNS), closed.tolist()


def run(bids: int, house: House, folder: Path, shown: int = 10) -> list[dict[str, int]]:
    """Insert bids while the query runs, and print its state; what was printed.

    Parameters
    ----------
    bids
        How many, in whole inserts.
    folder
        Of the stream, the checkpoint and what is given.
    shown
        How often the state is printed.
    """
    session = windrow.Session()
    stream = NamedStream.create(folder / "bids", COLUMNS, "at")
    session.stream("bids", stream)
    producer = stream.producer("house")
    relation = session.sql(QUERY)
    query = relation.start(folder / "given", checkpoint=folder / "checkpoint", on_unbounded="ignore")
    count = max(bids // house.bids, 1)
    told: list[dict[str, int]] = []
    print(f"{'bids':>12} {'closed':>9} {'groups kept':>12} {'state bytes':>12} {'bids/s':>9}")  # noqa: T201 - it is what one calls it for
    began = time.monotonic()
    for number, (rows, closed) in enumerate(house.days(count), 1):
        producer.insert(rows)
        producer.punctuate(auction=closed)
        if number % max(count // shown, 1) and number < count:
            continue
        query.process_all_available()
        progress = query.progress
        one = {
            "bids": progress["rows_in"],
            "closed": progress["rows_given"],
            "groups": progress["rows_in_windows"],
            "bytes": progress["state_bytes"],
        }
        told.append(one)
        rate = one["bids"] / (time.monotonic() - began)
        print("{bids:>12,} {closed:>9,} {groups:>12,} {bytes:>12,}".format(**one), f"{rate:>9,.0f}")  # noqa: T201 - it is what one calls it for
    query.stop()
    producer.close()
    check(folder / "given", count * house.bids, house.opened + (count - 1) * house.turns)
    return told


def check(given: Path, bids: int, auctions: int) -> None:
    """Hold what was given to what was inserted."""
    rows = pa.concat_tables([pq.read_table(file) for file in sorted(given.glob("*.parquet"))])
    found = (
        pc.count_distinct(rows.column("auction")).as_py(),
        rows.num_rows,
        pc.sum(rows.column("bids")).as_py(),
    )
    if found != (auctions, auctions, bids):
        raise SystemExit(f"{found} auctions, rows and bids were given, and {(auctions, bids)} there were")
    print(f"each of {auctions:,} auctions was given once, with {bids:,} bids in all")  # noqa: T201 - it is what one calls it for


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bids", type=int, default=1_000_000)
    parser.add_argument("--open", type=int, default=1000, help="auctions that are open at any time")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(given.bids, House(opened=given.open), Path(folder))


if __name__ == "__main__":
    main()
