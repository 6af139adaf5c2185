"""A weather table of any size, of the shape of GHCN-Daily, the same wherever and whenever it is made.

The demonstration, the documentation and the benchmarks read it. Every value is a function of the station, the
day and the element alone, in integer arithmetic without a random generator's state: so a row does not
depend on how much of the table is made, and no platform's rounding or library version changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import UsageError, did_you_mean

__all__ = ["ELEMENTS", "SCHEMA", "weather", "write_weather"]

ELEMENTS = ("TMIN", "TMAX", "TAVG", "PRCP")
"""The elements that can be requested."""

SCHEMA = pa.schema(
    [("station", pa.string()), ("date", pa.date32()), ("dataType", pa.string()), ("val", pa.int32())]
)
"""The columns, as in the GHCN-Daily tables that Windrow reads."""

_ROWS_PER_GROUP = 1_000_000
_YEAR = 1461  # quarter days
_EPOCH = date(1970, 1, 1)

# Independent sources of noise: the second argument of `_noise`.
_OFFSET, _SWING, _SPELL, _JITTER, _WARMTH, _RAIN, _GAP = range(7)

Ints = npt.NDArray[np.int64]


def weather(
    stations: int = 3,
    days: int = 60,
    start: date = date(2024, 1, 1),
    elements: Sequence[str] = ("TMIN", "TMAX", "PRCP"),
    missing: float = 0.02,
) -> pa.Table:
    """Make daily measurements of some stations.

    The values are in the units of GHCN-Daily: tenths of a degree Celsius, and tenths of a millimetre of rain.
    Temperatures follow the seasons of the northern half, each station has its own climate, and
    warm and cold spells last for days. In the default table ``val < 25`` (below 2.5 °C) is true for the TMIN
    of some stretches of days and not of others.

    Parameters
    ----------
    stations
        How many; their names have 11 characters, in order.
    days, start
        How many days from which one on.
    elements
        Which of `ELEMENTS`, in the order that the rows of a day have.
    missing
        The share of measurements left out, from 0 up to 1.

    Returns
    -------
    pyarrow.Table
        Of schema `SCHEMA`, without NULLs, ordered by station, date and the order of `elements`.

    Raises
    ------
    UsageError
        ``UNKNOWN_ELEMENT``, ``INVALID_ARGUMENT``.
    """
    return pa.Table.from_batches(_batches(stations, days, start, elements, missing), SCHEMA)


def write_weather(
    path: str | Path,
    stations: int = 3,
    days: int = 60,
    start: date = date(2024, 1, 1),
    elements: Sequence[str] = ("TMIN", "TMAX", "PRCP"),
    missing: float = 0.02,
) -> int:
    """Write the table of :func:`weather` to a Parquet file, a row group at a time.

    Returns the number of rows. Memory is that of about a million rows, or of one station if that is more.
    """
    batches = _batches(stations, days, start, elements, missing)
    rows = 0
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _batches(
    stations: int, days: int, start: date, elements: Sequence[str], missing: float
) -> Iterator[pa.RecordBatch]:
    """Check the arguments at once, then make the rows of a few stations at a time."""
    for element in elements:
        if element not in ELEMENTS:
            raise UsageError(
                f"unknown element {element}",
                condition="UNKNOWN_ELEMENT",
                hint=did_you_mean(element, ELEMENTS) or f"use one of {', '.join(ELEMENTS)}",
            )
    if stations < 0 or days < 0 or not 0 <= missing < 1:
        raise UsageError(
            f"stations={stations}, days={days} or missing={missing} is out of range",
            condition="INVALID_ARGUMENT",
            hint="use 0 or more stations and days, and a missing share from 0 to below 1",
        )
    first_day = (start - _EPOCH).days
    day = np.arange(first_day, first_day + days, dtype=np.int64)
    at_once = max(1, _ROWS_PER_GROUP // max(1, days * len(elements)))
    return (
        _batch(
            np.arange(first, min(first + at_once, stations), dtype=np.int64), day, tuple(elements), missing
        )
        for first in range(0, stations, at_once)
    )


def _batch(station: Ints, day: Ints, elements: tuple[str, ...], missing: float) -> pa.RecordBatch:
    values = _values(station[:, None], day[None, :])
    shape = (len(station), len(day), len(elements))
    val = np.empty(shape, dtype=np.int32)
    present = np.empty(shape, dtype=np.bool_)
    for i, element in enumerate(elements):
        val[:, :, i] = values[element]
        code = ELEMENTS.index(element)
        present[:, :, i] = _noise(station[:, None], _GAP + code, day[None, :]) >= int(missing * 2**32)
    at = np.nonzero(present)
    names = pa.array([f"XWM{number + 1:08d}" for number in station], pa.string())
    return pa.RecordBatch.from_arrays(
        [
            names.take(pa.array(at[0])),
            pa.array(day.astype(np.int32)[at[1]]).cast(pa.date32()),
            pa.array(elements, pa.string()).take(pa.array(at[2])),
            pa.array(val[at]),
        ],
        schema=SCHEMA,
    )


def _values(station: Ints, day: Ints) -> dict[str, Ints]:
    """Each element for each station (down) and day (across)."""
    always = np.zeros((1, 1), dtype=np.int64)
    climate = 55 + _noise(station, _OFFSET, always) % 50
    swing = 60 + _noise(station, _SWING, always) % 30
    spell = _spells(station, _SPELL, day)
    low = climate + swing * _season(day) // 1000 + spell * 90 // 1000 - 45
    low = low + _noise(station, _JITTER, day) % 25 - 12
    high = low + 40 + _spells(station, _WARMTH, day) * 60 // 1000
    wet = np.maximum(_spells(station, _RAIN, day) - 550, 0)
    return {"TMIN": low, "TMAX": high, "TAVG": (low + high) // 2, "PRCP": wet * wet // 800}


def _season(day: Ints) -> Ints:
    """From -1000 in late January to 1000 in late July, by two parabolas instead of a sine."""
    # The mean of a year is reached on about the 25th of April, day 115 of 1970.
    phase = (day * 4 - 115 * 4) % _YEAR
    half = _YEAR // 2
    within = phase % half
    arch = np.minimum(within * (half - within) * 4000 // (half * half), 1000)
    season: Ints = np.where(phase < half, arch, -arch)
    return season


def _spells(station: Ints, source: int, day: Ints) -> Ints:
    """Noise from 0 to 1000 that takes a new course every four days and is straight between."""
    knot, within = day // 4, day % 4
    knots = np.arange(knot.min(initial=0), knot.max(initial=0) + 2, dtype=np.int64)
    course = _noise(station, source, knots) % 1001
    here = course[:, knot[0] - knots[0]]
    there = course[:, knot[0] - knots[0] + 1]
    return (here * (4 - within) + there * within) // 4


def _noise(station: Ints, source: int, time: Ints) -> Ints:
    """Evenly distributed integers from 0 to 2**32 - 1, one for each station, source and time.

    The mixing function of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
    generators", OOPSLA 2014), over the station and source, then over that and the time.
    """
    seed = _mixed((station * 64 + source).astype(np.uint64))
    return (_mixed(seed + time.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def _mixed(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
