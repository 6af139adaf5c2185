"""Files of a log that were written by a machine whose clock was years ahead."""

from __future__ import annotations

import datetime
import json
import time
import warnings

import pytest

from tests.streams.recorded import ORDERS, everything
from windrow.streams import NamedStream
from windrow.streams.admission.future import DAY
from windrow.streams.admission.watermark import Ordering
from windrow.streams.entries import PTIME

YEARS = 30 * 365 * DAY
REAL = time.time_ns


def now() -> int:
    return REAL() // 1000


@pytest.fixture
def clock(monkeypatch):
    """Sets the clock of this machine ahead, by microseconds."""

    def set_by(ahead: int) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: REAL() + ahead * 1000)

    return set_by


def row(minute: int) -> dict[str, object]:
    return {"ts": datetime.datetime(2026, 1, 1, 10, minute), "ticker": "A"}


def ptimes(stream: NamedStream) -> list[int]:
    return everything(stream)[0].entries.column(PTIME).to_pylist()


def test_one_insert_under_a_wrong_clock_does_not_set_the_processing_time_ahead(orders, clock):
    with orders.producer("p") as p:
        p.insert(row(0))
        clock(YEARS)
        p.insert(row(1))
        assert p.insert(row(2)).admitted == 1, "its own clock does not tell it"
        clock(0)
        began = now()
        with pytest.warns(RuntimeWarning, match=r"write time 10,9\d\d days after now"):
            p.insert(row(3))
    assert max(ptimes(orders)) < now() + DAY
    assert sum(time >= began for time in ptimes(orders)) >= 2, "later entries have later times"
    noted = orders.mistimed()
    assert [one.number for one in noted] == [3, 4]
    assert all(one.said > now() + DAY > one.taken for one in noted)
    assert [row["ts"].minute for row in everything(orders)[0].rows.to_pylist()] == [0, 1, 2, 3]


def test_what_became_of_a_file_is_decided_once(orders, clock):
    with orders.producer("p") as p:
        p.insert(row(0))
        clock(YEARS)
        p.insert(row(1))
    clock(0)
    with pytest.warns(RuntimeWarning):
        first = ptimes(orders)
    clock(5 * DAY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ptimes(orders) == first
        clock(2 * YEARS)  # a reader of later years, or whose own clock is wrong
        assert ptimes(orders) == first
    for cut in range(orders.log.last() + 1):
        start, position = orders.read(orders.start, files=max(cut, 1))
        rest, _ = orders.read(position)
        assert [*start.entries.column(PTIME).to_pylist(), *rest.entries.column(PTIME).to_pylist()] == first


def test_a_position_that_a_wrong_clock_has_kept_is_not_used(orders, clock, monkeypatch):
    monkeypatch.setattr("windrow.streams.stream._BETWEEN_POSITIONS", 1)
    clock(YEARS)
    with orders.producer("p") as p:
        p.insert(row(0))
        orders.save(orders.position())
    assert list((orders.folder / "positions").iterdir())
    clock(0)
    with pytest.warns(RuntimeWarning):
        assert orders.position().ptime < now() + DAY


def test_a_reader_whose_clock_is_behind_notes_nothing(orders, clock):
    with orders.producer("p") as p:
        p.insert(row(0))
    clock(-YEARS)
    with pytest.warns(RuntimeWarning, match="correct this machine's clock"):
        found = ptimes(orders)
    assert not orders.mistimed()
    clock(0)
    assert ptimes(orders) == found


def test_an_hour_ahead_is_believed(orders, clock):
    clock(DAY // 24)
    with orders.producer("p") as p:
        p.insert(row(0))
    clock(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert max(ptimes(orders)) > now() + DAY // 48
    assert not orders.mistimed()


def test_a_wrong_clock_does_not_carry_its_rows_into_the_stream(tmp_path, clock):
    """Rowtimes of a machine that is years ahead are quarantined, though its own clock agrees with them."""
    stream = NamedStream.create(tmp_path / "s", ORDERS, "ts", ordering=Ordering.lagging(0), future=86_400)
    zone = datetime.UTC

    def stamped(ahead: int) -> dict[str, object]:
        return {"ts": datetime.datetime.fromtimestamp((now() + ahead) / 1e6, zone).replace(tzinfo=None)}

    with stream.producer("p") as p:
        assert p.insert(stamped(0)).admitted == 1
        clock(YEARS)
        p.insert(stamped(YEARS))
        clock(0)
        with pytest.warns(RuntimeWarning):
            receipt = p.insert(stamped(1))
        assert (receipt.admitted, receipt.rejected, receipt.late) == (1, 0, 0)
    _, position = everything(stream)
    assert (position.watermark.admitted, position.watermark.quarantined) == (2, 1)


def test_notes_are_json_that_people_can_read(orders, clock):
    clock(YEARS)
    with orders.producer("p") as p:
        p.insert(row(0))
    clock(0)
    with pytest.warns(RuntimeWarning):
        everything(orders)
    (first, *_) = sorted((orders.folder / "clocks").iterdir())
    assert json.loads(first.read_text()).keys() == {"said", "taken"}
    assert not orders.check()


def test_a_producer_warns_once_where_it_makes_its_later_rows_late(orders):
    far = datetime.datetime(2026, 1, 1) + datetime.timedelta(days=30_000)
    with orders.producer("p") as p:
        with pytest.warns(
            RuntimeWarning, match="producer p has reached .* by a row of rowtime 2108-02-21 .*FUTURE"
        ):
            p.insert({"ts": far})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert p.insert(row(1)).rejected == 1
        p.close()
    with orders.producer("q") as q, pytest.warns(RuntimeWarning, match="producer q has reached 2108"):
        assert q.insert(row(1)).rejected == 1


def test_a_producer_warns_once_where_its_bound_makes_its_later_rows_late(orders):
    with orders.producer("p") as p:
        with pytest.warns(RuntimeWarning, match="producer p has reached 2108-02-21 00:00:00, so rows below"):
            p.bound("2108-02-21 00:00:00")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            p.bound("2109-01-01 00:00:00")
            assert p.insert(row(1)).rejected == 1
