"""The example of Linear Road: the tolls of its SQL are those of its plain model."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from examples.linear_road.generate import reports
from examples.linear_road.model import tolls
from windrow import Session

SCRIPT = Path(__file__).parents[3] / "examples" / "linear_road" / "tolls.sql"


@pytest.mark.usefixtures("interpreted")
def test_tolls_are_those_of_the_model(spark):
    table = reports(expressways=1, minutes=8, cars=60)
    expected = tolls(table.to_pylist())
    session = Session(spark)
    session.register("reports", table)
    found = [tuple(row) for row in session.script(SCRIPT.read_text())[-1].collect()]
    assert sorted(found) == sorted(expected)
    assert len(expected) > 50
    # accidents matter: without them more cars would pay
    moving = table.filter(pc.greater(table["speed"], 0))
    assert len(tolls(moving.to_pylist())) != len(expected)
