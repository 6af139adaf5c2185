"""The data: Parquet files in a cache, each made when it is first asked for and never again.

Sizes are given in *places*: a station and a day. One place in ten is empty, so that rows are not evenly
spaced: 2,000 stations and 5,500 days are 11 million places and 9.9 million rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windrow.datasets import write_weather

__all__ = [
    "EVEN",
    "EVEN_BY_DATE",
    "EVEN_BY_TIME",
    "GHCN",
    "LONG",
    "MANY",
    "MIXED",
    "ONE",
    "SKEWED",
    "Data",
    "row_count",
    "stations_of",
]

ROOT = Path(__file__).parents[1]
CACHE = Path(os.environ.get("WINDROW_BENCH_DATA", ROOT / ".bench"))
PUBLISHED = Path(
    os.environ.get("WINDROW_GHCN", ROOT.parent / "shared" / "data" / "ghcn" / "ghcn-daily.parquet")
)

_MISSING = 0.1
_MINUTES = 5
_BEGIN = np.datetime64("1900-01-01T00:00", "us")


@dataclass(frozen=True)
class Data:
    """A kind of data, of any size. All have the columns station, date, dataType and val."""

    name: str
    title: str
    """For the table of results."""
    file: Callable[[int], Path]
    """The file with so many places."""
    sample: Callable[[], Path]
    """A small file, for comparing answers."""
    available: bool = True


def row_count(file: Path) -> int:
    """How many rows a Parquet file has."""
    return int(pq.read_metadata(file).num_rows)


def stations_of(file: Path) -> Path:
    """A file with a row for each station of such a file, to join with: station and region."""

    def make(made: Path) -> None:
        with duckdb.connect() as connection:
            connection.execute(
                f"""
                COPY (
                    SELECT station, CAST(hash(station) % 7 AS INTEGER) AS region
                    FROM (SELECT DISTINCT station FROM read_parquet('{file}')) ORDER BY station
                ) TO '{made}' (FORMAT parquet)
                """
            )

    return _cached(f"{file.stem}-stations", make)


def _cached(name: str, make: Callable[[Path], object]) -> Path:
    """The file of this name in the cache, made if it is not there. A run that is broken off leaves none."""
    file = CACHE / f"{name}.parquet"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}.unfinished")
        try:
            make(unfinished)
            unfinished.rename(file)
        finally:
            unfinished.unlink(missing_ok=True)
    return file


def _weather(stations: int, days: int, elements: tuple[str, ...] = ("TMIN",)) -> Path:
    # Up to this century. One day alone is the first of the epoch: `write_weather` needs memory for every
    # day between the epoch and its own, which is too much for millions of stations.
    start = date.fromordinal(date(2025, 1, 1).toordinal() - days) if days > 1 else date(1970, 1, 1)

    def make(file: Path) -> None:
        write_weather(file, stations, days, start, elements, _MISSING)

    kinds = "".join(f"-{element.lower()}" for element in elements[1:])
    return _cached(f"weather-{stations}x{days}{kinds}", make)


def _by_date(rows: Path) -> Path:
    """The same rows in the order of their dates: each row group has all stations."""

    def make(file: Path) -> None:
        with duckdb.connect() as connection:
            ordered = f"SELECT * FROM read_parquet('{rows}') ORDER BY date, station"
            connection.execute(f"COPY ({ordered}) TO '{file}' (FORMAT parquet)")

    return _cached(f"{rows.stem}-by-date", make)


def _chained(stations: int, days: int, share: float) -> Path:
    """The same rows, with a share of the stations put end to end as one, and a place every five minutes.

    Days would not do: ten million of them are more years than dates have.
    """
    chained = round(stations * share)

    def make(file: Path) -> None:
        source = pq.ParquetFile(_weather(stations, days))
        writer: pq.ParquetWriter | None = None
        for group in range(source.num_row_groups):
            table = source.read_row_group(group)
            digits = pc.utf8_slice_codeunits(table["station"], 3)
            number = digits.cast(pa.int64()).to_numpy() - 1
            day = table["date"].cast(pa.int32()).to_numpy() - _first_day(days)
            place = np.where(number < chained, number * days + day, day)
            names = pc.if_else(pa.array(number < chained), "ONE", table["station"])
            times = _BEGIN + place * np.timedelta64(_MINUTES, "m")
            table = table.set_column(0, "station", names)
            table = table.set_column(1, "date", pa.array(times, pa.timestamp("us")))
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
        assert writer is not None, "data without rows"
        writer.close()

    return _cached(f"chained-{stations}x{days}-{round(100 * share)}", make)


def _first_day(days: int) -> int:
    return date(2025, 1, 1).toordinal() - date(1970, 1, 1).toordinal() - days


def _published(where: str, name: str) -> Path:
    """One sequence for each station and element, and one row for each of its days."""

    def make(file: Path) -> None:
        with duckdb.connect() as connection:
            connection.execute(
                f"""
                COPY (
                    SELECT station || ' ' || dataType AS station, date, dataType, val
                    FROM read_parquet('{PUBLISHED}')
                    WHERE {where}
                    QUALIFY COUNT(*) OVER (PARTITION BY station, dataType, date) = 1
                    ORDER BY 1, 2
                ) TO '{file}' (FORMAT parquet)
                """
            )

    return _cached(f"ghcn-{name}", make)


EVEN = Data(
    "even",
    "stations of 5,500 days",
    lambda places: _weather(max(1, places // 5_500), 5_500),
    lambda: _weather(6, 2_500),
)
EVEN_BY_DATE = Data(
    "even-by-date",
    "the same rows, in the order of their dates",
    lambda places: _by_date(EVEN.file(places)),
    lambda: _by_date(EVEN.sample()),
)
MIXED = Data(
    "mixed",
    "stations of 5,500 days, with two rows a day of which one is asked for",
    lambda places: _weather(max(1, places // 11_000), 5_500, ("TMIN", "TMAX")),
    lambda: _weather(6, 2_500, ("TMIN", "TMAX")),
)
LONG = Data(
    "long",
    "stations of 55,000 days",
    lambda places: _weather(max(1, places // 55_000), 55_000),
    lambda: _weather(2, 12_000),
)
MANY = Data(
    "many",
    "stations of one row",
    lambda places: _weather(places, 1),
    lambda: _weather(5_000, 1),
)
ONE = Data(
    "one",
    "one station",
    lambda places: _chained(max(1, places // 5_500), 5_500, 1.0),
    lambda: _chained(3, 2_500, 1.0),
)
SKEWED = Data(
    "skewed",
    "one station with 90 % of the rows",
    lambda places: _chained(max(1, places // 5_500), 5_500, 0.9),
    lambda: _chained(10, 800, 0.9),
)
EVEN_BY_TIME = Data(
    "even-by-time",
    "the same rows, none of the stations joined",
    lambda places: _chained(max(1, places // 5_500), 5_500, 0.0),
    lambda: _chained(10, 800, 0.0),
)
GHCN = Data(
    "ghcn",
    "GHCN-Daily as published",
    lambda places: _published("true", "all"),  # noqa: ARG005 - it has the size that it has
    lambda: _published("date >= DATE '2015-01-01' AND date < DATE '2017-01-01'", "2015-2016"),
    PUBLISHED.exists(),
)
