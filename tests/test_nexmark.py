"""The generator of NEXMark, and the page about it."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from examples.nexmark.generate import BEGIN, events
from examples.nexmark.queries import NUMBERS, query

PAGE = Path(__file__).parents[1] / "docs" / "streams" / "nexmark.md"


@pytest.mark.parametrize("disorder", [0, 5])
def test_events_are_the_same_each_time_and_no_later_than_is_said(disorder):
    found = events(5000, rate=200, disorder=disorder, each=0.5).tables()
    again = events(5000, rate=200, disorder=disorder, each=0.5).tables()
    assert found == again
    assert events(5000, rate=200, disorder=disorder, seed=2).bid != found["bid"]
    assert {name: table.num_rows - 1 for name, table in found.items()} == {
        "person": 100,
        "auction": 300,
        "bid": 4600,
    }
    for table in found.values():
        columns = (table.column(name).cast(pa.int64()) for name in ("dateTime", "upto", "arrived"))
        times, known, arrived = (column.to_numpy(zero_copy_only=False) for column in columns)
        times, is_sorted = times[:-1], (arrived[1:] >= arrived[:-1]).all()
        assert is_sorted
        assert (times[1:] >= known[:-2]).all()  # what is said to be over is over
        assert (arrived[:-1] > times).all()
        assert (arrived[:-1] - times <= (disorder + 0.5) * 1e6 + 1e3).all()
        assert (times.max() - BEGIN * 1000) / 1e6 == pytest.approx(25, abs=0.3)
        in_order = (times[1:] >= times[:-1]).all()
        assert in_order == (disorder == 0)
        assert known[-1] > times.max()


def test_bids_are_on_auctions_and_by_persons_that_there_are():
    found = events(20_000, rate=1000, in_flight=30).tables()
    person, auction, bid = (table.slice(0, table.num_rows - 1) for table in found.values())
    assert pc.all(pc.is_in(bid["auction"], auction["id"])).as_py()
    for people in (bid["bidder"], auction["seller"]):
        assert pc.all(pc.is_in(people, person["id"])).as_py()
    counts = pc.value_counts(bid["auction"]).to_pylist()
    assert max(count["counts"] for count in counts) > 5 * min(len(bid) / len(counts), 100)
    assert pc.all(pc.greater(auction["expires"], auction["dateTime"])).as_py()
    ids = auction["id"].to_pylist()
    assert sorted(ids) == list(range(1000, 1000 + len(ids)))


def test_the_page_has_the_queries():
    block = r"### Query (\d+)\n\n.+\n\n<!--.*-->\n```sql\n((?:.+\n)+?)```"
    shown = {int(number): text.strip() for number, text in re.findall(block, PAGE.read_text())}
    assert shown == {number: query(number) for number in NUMBERS}
