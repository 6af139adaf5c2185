"""Makes the events of NEXMark, the same ones each time.

Of every fifty events one is a person, three are auctions and forty-six are bids. An event happens at a time
of its own, and arrives up to `disorder` seconds later: so events arrive in another order than they happen in.
Half of the bids are on the one auction that everybody looks at, the others on any of those that are new.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.str_]

BEGIN = 1_577_865_600_000
"""Milliseconds: 2020-01-01 08:00:00 UTC."""
EACH = 50
"""Events, of which the first is a person, and the next three are auctions."""
FIRST = 1000
"""The number of the first person, and of the first auction."""
CATEGORIES = 5
FIRST_CATEGORY = 10
STATES = np.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
CITIES = np.array(["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Seattle"])
NAMES = np.array(["Peter", "Paul", "Lucas", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"])
SURNAMES = np.array(["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"])
HOT_CHANNELS = np.array(["Google", "Facebook", "Baidu", "Apple"])
CHANNELS = 10_000


@dataclass(frozen=True)
class Events:
    """The events, each stream in the order in which they arrive.

    Beside their own columns all have `arrived`, and `upto`: below that time no event of the stream arrives
    any more. The last entry of each has nothing but these: it says that all has arrived.
    """

    person: pa.Table
    auction: pa.Table
    bid: pa.Table

    def tables(self) -> dict[str, pa.Table]:
        """The streams by name."""
        return {"person": self.person, "auction": self.auction, "bid": self.bid}


def events(
    count: int,
    *,
    rate: float = 100.0,
    disorder: float = 0.0,
    in_flight: int = 100,
    each: float = 1.0,
    seed: int = 1,
) -> Events:
    """So many events.

    Parameters
    ----------
    rate
        Events a second.
    disorder
        Seconds by which an event may arrive late.
    in_flight
        How many auctions are open at a time, about.
    each
        Seconds: events arrive together that do so in the same stretch of this length.
    """
    chosen = np.random.default_rng(seed)
    number = np.arange(count)
    times = BEGIN + (number * 1000 / rate).astype(np.int64)
    late = (chosen.random(count) * disorder * 1000).astype(np.int64)
    together = max(int(each * 1000), 1)
    arrived = -(-(times + late + 1) // together) * together
    order = np.lexsort((times + late, arrived))
    kind = number % EACH
    people, auctions = number // EACH + 1, _auctions(number)
    lasts = in_flight * EACH / 3 * 1000 / rate
    ends = int(arrived.max(initial=BEGIN)) + together
    made = []
    for is_one, columns in (
        (kind == 0, _persons),
        ((kind >= 1) & (kind <= 3), _sold),
        (kind > 3, _bids),
    ):
        rows = order[is_one[order]]
        own = columns(_Rows(chosen, times[rows], people[rows], auctions[rows], in_flight, lasts))
        own["dateTime"] = _times(times[rows])
        own["extra"] = _texts(chosen, len(rows), 20)
        own["arrived"] = _times(arrived[rows])
        known = np.maximum.accumulate(times[rows]) - int(disorder * 1000) if len(rows) else times[rows]
        own["upto"] = _times(known)
        made.append(_ended(pa.table(own), ends))
    return Events(*made)


@dataclass(frozen=True)
class _Rows:
    """The events of a stream: when they happen, how many persons and auctions there are by then, and chance.

    `in_flight` auctions are open at a time, and each for `lasts` milliseconds, about.
    """

    chosen: np.random.Generator
    times: Ints
    people: Ints
    auctions: Ints
    in_flight: int
    lasts: float


def _auctions(number: Ints) -> Ints:
    """How many auctions there are after an event."""
    return number // EACH * 3 + np.clip(number % EACH, 0, 3)


def _persons(rows: _Rows) -> dict[str, pa.Array]:
    chosen, people, count = rows.chosen, rows.people, len(rows.times)
    both = zip(_any(chosen, NAMES, count), _any(chosen, SURNAMES, count), strict=True)
    names = [f"{first} {last}" for first, last in both]
    cards = chosen.integers(0, 10_000, (count, 4))
    return {
        "id": pa.array(FIRST + people - 1, pa.int64()),
        "name": pa.array(names, pa.string()),
        "emailAddress": pa.array([f"{name.replace(' ', '.')}@example.com" for name in names], pa.string()),
        "creditCard": pa.array([" ".join(f"{part:04}" for part in card) for card in cards], pa.string()),
        "city": pa.array(_any(chosen, CITIES, count), pa.string()),
        "state": pa.array(_any(chosen, STATES, count), pa.string()),
    }


def _sold(rows: _Rows) -> dict[str, pa.Array]:
    chosen, people, auctions, count = rows.chosen, rows.people, rows.auctions, len(rows.times)
    hot = (people - 1) // 100 * 100 + 1
    seller = np.where(chosen.random(count) < 0.75, hot, _recent(chosen, people, 1000))
    first = _prices(chosen, count)
    lasts = 1 + (chosen.random(count) * 2 * rows.lasts).astype(np.int64)
    return {
        "id": pa.array(FIRST + auctions - 1, pa.int64()),
        "itemName": pa.array(_texts(chosen, count, 8)),
        "description": pa.array(_texts(chosen, count, 24)),
        "initialBid": pa.array(first, pa.int64()),
        "reserve": pa.array(first + _prices(chosen, count), pa.int64()),
        "expires": _times(rows.times + lasts),
        "seller": pa.array(FIRST + seller - 1, pa.int64()),
        "category": pa.array(FIRST_CATEGORY + chosen.integers(0, CATEGORIES, count), pa.int64()),
    }


def _bids(rows: _Rows) -> dict[str, pa.Array]:
    chosen, people, auctions, count = rows.chosen, rows.people, rows.auctions, len(rows.times)
    hot = np.maximum((auctions - 1) // rows.in_flight * rows.in_flight, 0) + 1
    auction = np.where(chosen.random(count) < 0.5, hot, _recent(chosen, auctions, rows.in_flight))
    famous = (people - 1) // 100 * 100 + 1
    bidder = np.where(chosen.random(count) < 0.75, famous, _recent(chosen, people, 1000))
    is_hot = chosen.random(count) < 0.5
    place = chosen.integers(0, CHANNELS, count)
    where = np.where(is_hot, _any(chosen, HOT_CHANNELS, count), np.char.add("channel-", place.astype(str)))
    folders = [_texts(chosen, count, 5).to_pylist() for _ in range(3)]
    tells = ~is_hot & (chosen.random(count) < 0.9)
    urls = [
        f"https://www.nexmark.com/{a}/{b}/{c}/item.htm?query=1{f'&channel_id={number}' if told else ''}"
        for a, b, c, number, told in zip(*folders, place, tells, strict=True)
    ]
    return {
        "auction": pa.array(FIRST + auction - 1, pa.int64()),
        "bidder": pa.array(FIRST + bidder - 1, pa.int64()),
        "price": pa.array(_prices(chosen, count), pa.int64()),
        "channel": pa.array(where, pa.string()),
        "url": pa.array(urls, pa.string()),
    }


def _prices(chosen: np.random.Generator, count: int) -> Ints:
    return np.round(10 ** (chosen.random(count) * 6) * 100).astype(np.int64)


def _recent(chosen: np.random.Generator, last: Ints, most: int) -> Ints:
    """One of the last so many numbers up to one."""
    return last - (chosen.random(len(last)) * np.minimum(last, most)).astype(np.int64)


def _any(chosen: np.random.Generator, words: Words, count: int) -> Words:
    return words[chosen.integers(0, len(words), count)]


def _texts(chosen: np.random.Generator, count: int, length: int) -> pa.Array:
    letters = chosen.integers(ord("a"), ord("z") + 1, (count, length), np.uint8).tobytes().decode("ascii")
    return pa.array([letters[at * length : (at + 1) * length] for at in range(count)], pa.string())


def _times(millis: Ints) -> pa.Array:
    return pa.array(millis * 1000, pa.timestamp("us", "UTC"))


def _ended(table: pa.Table, at: int) -> pa.Table:
    """The entries, and one that says that all have arrived."""
    values: dict[str, list[int | None]] = {name: [None] for name in table.column_names}
    values["arrived"], values["upto"] = [at * 1000], [(at + 366 * 86_400_000) * 1000]
    last = pa.Table.from_pydict(values, table.schema)
    return pa.concat_tables([table, last]).combine_chunks()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the events as three Parquet files.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=1000.0, help="events a second")
    parser.add_argument("--disorder", type=float, default=4.0, help="seconds by which events arrive late")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    found = events(given.events, rate=given.rate, disorder=given.disorder, seed=given.seed)
    for name, table in found.tables().items():
        pq.write_table(table, given.folder / f"{name}.parquet")
