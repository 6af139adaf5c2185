"""Tables that Windrow makes itself, so that its examples and benchmarks need nothing from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from windrow.datasets.logins import logins
from windrow.datasets.weather import weather, write_weather

__all__ = ["DATASETS", "Dataset", "logins", "weather", "write_weather"]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A table that can be made by name.

    Attributes
    ----------
    name
        The name by which the command line knows it.
    description
        One line on what it contains.
    make
        Makes the table, the same rows each time.
    """

    name: str
    description: str
    make: Callable[[], pa.Table]


DATASETS: Mapping[str, Dataset] = MappingProxyType(
    {
        dataset.name: dataset
        for dataset in (
            Dataset(
                "weather",
                "daily TMIN, TMAX and PRCP of three stations for 60 days: station, date, dataType, val",
                weather,
            ),
            Dataset("logins", "login attempts of four users on two days: user, ts, ok", logins),
        )
    }
)
"""The datasets by name."""
