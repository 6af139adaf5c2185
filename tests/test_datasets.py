"""The generated tables: the same rows everywhere, and of the shape that the examples need."""

from __future__ import annotations

import hashlib
import importlib
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.datasets import DATASETS, logins, weather, write_weather
from windrow.datasets.weather import ELEMENTS, SCHEMA
from windrow.errors import UsageError


def checksum(table):
    """Of the values, whatever the chunks and the encoding in memory."""
    lines = ("|".join(map(str, row.values())) for row in table.to_pylist())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def test_the_tables_are_the_same_rows_everywhere():
    # These change only with the version of the documentation that shows the rows.
    assert {
        name: (dataset.make().num_rows, checksum(dataset.make())) for name, dataset in DATASETS.items()
    } == {
        "weather": (529, "0557d499a4cfe9ea"),
        "logins": (43, "e14c759516af7694"),
    }
    assert checksum(weather(40, 900, date(1969, 3, 1), ELEMENTS, 0.1)) == "1c0f37973c021a7c"


def test_datasets_are_listed_under_their_own_names():
    for name, dataset in DATASETS.items():
        assert name == dataset.name
        assert all(column in dataset.description for column in dataset.make().column_names)


def test_weather_is_ordered_without_gaps_when_nothing_is_missing():
    table = weather(2, 3, date(2024, 2, 28), ("PRCP", "TMIN"), missing=0)
    assert table.schema == SCHEMA
    assert [tuple(row.values())[:3] for row in table.to_pylist()] == [
        (f"XWM{station:08d}", date(2024, 2, 28) + timedelta(days), element)
        for station in (1, 2)
        for days in range(3)
        for element in ("PRCP", "TMIN")
    ]


@given(
    stations=st.integers(0, 5),
    days=st.integers(0, 40),
    skipped=st.integers(0, 40),
    start=st.dates(date(1900, 1, 1), date(2100, 1, 1)),
    elements=st.lists(st.sampled_from(ELEMENTS), unique=True),
    missing=st.sampled_from([0, 0.02, 0.5]),
)
def test_a_row_does_not_depend_on_how_much_is_made(stations, days, skipped, start, elements, missing):
    whole = weather(6, 80, start, ELEMENTS, missing)
    first = start + timedelta(skipped)
    part = weather(stations, days, first, elements, missing)
    within = [
        row
        for row in whole.to_pylist()
        if int(row["station"][3:]) <= stations
        and first <= row["date"] < first + timedelta(days)
        and row["dataType"] in elements
    ]
    key = ("station", "date", "dataType")
    assert sorted(part.to_pylist(), key=lambda row: [row[name] for name in key]) == sorted(
        within, key=lambda row: [row[name] for name in key]
    )


def test_the_default_weather_is_cold_for_stretches_and_warm_for_others():
    table = weather()
    for station in pc.unique(table["station"]):
        low = table.filter((pc.field("station") == station) & (pc.field("dataType") == "TMIN"))["val"]
        cold = low.to_numpy() < 25
        stretches = np.split(cold, np.flatnonzero(np.diff(cold)) + 1)
        lengths = [len(stretch) for stretch in stretches if stretch[0]]
        assert len(lengths) >= 3
        assert max(lengths) >= 5
        assert 0.1 < cold.mean() < 0.9


def test_weather_is_plausible_over_years():
    table = weather(20, 3 * 365, elements=ELEMENTS, missing=0)
    low, high, mean, rain = (
        table.filter(pc.field("dataType") == element)["val"].to_numpy() for element in ELEMENTS
    )
    assert (low < mean).all()
    assert (mean < high).all()
    assert -150 < low.min() < high.max() < 400
    assert rain.min() == 0
    assert 0.2 < (rain > 0).mean() < 0.6
    day = np.tile(np.arange(3 * 365) % 365, 20)
    assert low[day < 59].mean() + 80 < low[(day > 180) & (day < 240)].mean()


def test_the_share_of_missing_measurements_is_as_asked_for():
    assert weather(10, 1000, missing=0.02).num_rows == pytest.approx(30_000 * 0.98, rel=0.005)


def test_written_weather_is_the_table_in_row_groups(tmp_path, monkeypatch):
    # The package has the function by the name of the module.
    monkeypatch.setattr(importlib.import_module("windrow.datasets.weather"), "_ROWS_PER_GROUP", 200)
    rows = write_weather(tmp_path / "w.parquet", 7, 30, elements=("TMIN", "TMAX"))
    file = pq.ParquetFile(tmp_path / "w.parquet")
    assert file.num_row_groups == 3
    monkeypatch.undo()
    assert file.read() == weather(7, 30, elements=("TMIN", "TMAX"))
    assert file.metadata.num_rows == rows


@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        ({"elements": ("TMON",)}, "UNKNOWN_ELEMENT"),
        ({"stations": -1}, "INVALID_ARGUMENT"),
        ({"days": -1}, "INVALID_ARGUMENT"),
        ({"missing": 1}, "INVALID_ARGUMENT"),
        ({"missing": -0.1}, "INVALID_ARGUMENT"),
    ],
)
def test_wrong_arguments_are_refused_before_a_file_is_made(tmp_path, arguments, condition):
    with pytest.raises(UsageError) as caught:
        write_weather(tmp_path / "w.parquet", **arguments)
    assert caught.value.condition == condition
    assert not (tmp_path / "w.parquet").exists()


def test_logins_hold_the_patterns_of_the_examples():
    table = logins()
    assert table.schema.field("ts").type == pa.timestamp("us", tz="UTC")
    assert table["ts"].to_pylist() == sorted(table["ts"].to_pylist())
    attempts = {}
    for row in table.to_pylist():
        attempts.setdefault(row["user"], []).append((row["ts"], row["ok"]))
    marks = {user: "".join("+" if ok else "x" for _, ok in rows) for user, rows in attempts.items()}
    assert [user for user, run in marks.items() if "xxx+" in run] == ["ann", "bob", "cid", "dee"]
    assert all(len({ts for ts, _ in rows}) == len(rows) for rows in attempts.values())
    idle = timedelta(minutes=30)
    sessions = {
        user: 1 + sum(b - a > idle for (a, _), (b, _) in pairwise(rows)) for user, rows in attempts.items()
    }
    assert sessions == {"ann": 3, "bob": 3, "cid": 3, "dee": 3}
