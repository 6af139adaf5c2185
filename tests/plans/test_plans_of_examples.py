"""The plans of published queries: NEXMark, Linear Road, the papers of WINDOW BY and CQL, and One SQL.

`pytest tests/plans --snapshot-update` writes the plans anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.linear_road.generate import reports
from examples.nexmark.generate import events
from examples.nexmark.queries import NUMBERS, query, recorded
from tests.conformance.casefile import ExpectedRows, case_files, load
from tests.conformance.runner import plan_of
from windrow import Session

TOLLS = Path(__file__).parents[2] / "examples" / "linear_road" / "tolls.sql"
THEMES = (
    "cql_papers", "emit", "match_cql", "paper_label", "paper_patterns", "paper_sessions", "paper_sliding",
    "paper_tumbling", "time_windows", "worked_example",
)  # fmt: skip
CASES = [
    pytest.param(case, id=case.id)
    for path in case_files()
    if path.stem in THEMES
    for case in load(path).cases
    if isinstance(case.expected, ExpectedRows)
]


@pytest.fixture(scope="module")
def nexmark(spark):
    session = Session(spark)
    recorded(session, events(200, rate=100, disorder=3, in_flight=10, each=9))
    yield session
    for name in ("person", "auction", "bid", "side_input"):
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_plan_of_a_query_of_nexmark(nexmark, snapshot, number):
    assert nexmark.sql(f"{query(number)} EMIT STREAM").plan() == snapshot


def test_the_plan_of_linear_road(spark, snapshot):
    session = Session(spark)
    session.register("reports", reports(expressways=1, minutes=1, cars=6))
    assert session.script(TOLLS.read_text())[-1].plan() == snapshot


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_the_plan_of_a_published_query(spark, snapshot, case):
    assert plan_of(spark, case) == snapshot
