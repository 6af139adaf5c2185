"""What readers make of the log of a named stream."""

from __future__ import annotations

import time

import pytest

from tests.streams.recorded import NUMBERS, everything
from windrow.errors import UsageError
from windrow.streams import Decision, NamedStream


def test_reading_in_parts_is_reading_at_once(numbers):
    with numbers.producer("p") as p, numbers.producer("q") as q:
        for at in range(6):
            p.insert([{"at": at, "value": at}, {"at": at - 1, "value": -at}])
            q.insert({"at": at, "value": 100 + at})
    whole, end = everything(numbers)
    for step in (1, 2, 5):
        position, decisions, rows = numbers.start, [], []
        while position.number < end.number:
            batch, position = numbers.read(type(position).from_json(position.to_json()), files=step)
            decisions += batch.decision.tolist()
            rows += batch.rows.to_pylist()
        assert decisions == whole.decision.tolist()
        assert rows == whole.rows.to_pylist()
        assert position == end
    assert numbers.read(end)[0].entries.num_rows == 0
    assert numbers.position() == end
    for number in (0, 3, end.number):
        assert numbers.position(number).number == number


def test_processing_times_of_a_log_never_go_back(numbers, monkeypatch):
    with numbers.producer("p") as p:
        began = time.time_ns()
        for at, seconds in enumerate((5, 7, 6)):
            shown = began + seconds * 10**9
            monkeypatch.setattr(time, "time_ns", lambda shown=shown: shown)
            p.insert({"at": at})
        monkeypatch.undo()
    times = everything(numbers)[0].entries.column("__ptime").to_pylist()
    assert times == sorted(set(times))


def test_a_tick_says_that_time_has_passed_and_nothing_else(numbers):
    with numbers.producer("p") as p:
        p.insert({"at": 1})
    before = numbers.position()
    numbers.tick()
    batch, after = numbers.read(before, timed=True)
    assert after.ptime > before.ptime
    assert (after.watermark, after.writers, batch.watermarks) == (before.watermark, before.writers, ())


def test_it_is_known_when_the_clock_moves(numbers):
    with numbers.producer("p") as p:
        for at in (3, 3, 7):
            p.insert({"at": at})
    whole, end = numbers.read(numbers.start, timed=True)
    times = [row["__ptime"] for row in whole.admitted.to_pylist()]
    assert whole.watermarks == ((times[0], 3), (times[2], 7))
    assert end == numbers.position()


def test_a_position_of_another_stream_is_refused(numbers, tmp_path):
    other = NamedStream.create(tmp_path / "other", NUMBERS, "at")
    for stream in (numbers, other):
        with stream.producer("p") as p:
            p.insert({"at": 1})
    _, position = everything(numbers)
    with pytest.raises(UsageError, match="FOREIGN_POSITION"):
        other.read(position)


def test_positions_that_are_kept_spare_reading(numbers, monkeypatch):
    monkeypatch.setattr("windrow.streams.stream._BETWEEN_POSITIONS", 4)
    for at in range(5):
        with numbers.producer("p") as p:
            p.insert({"at": at, "value": at})
    kept = sorted(path.name for path in (numbers.folder / "positions").iterdir())
    assert kept
    wanted = numbers.position()
    read = []
    whole = type(numbers.log).read
    monkeypatch.setattr(
        type(numbers.log), "read", lambda log, number: read.append(number) or whole(log, number)
    )
    assert numbers.position() == wanted
    assert len(read) < wanted.number
    for path in (numbers.folder / "positions").iterdir():
        path.write_text(path.read_text(encoding="utf-8")[:50], encoding="utf-8")
    assert numbers.position() == wanted, "a position that is torn is read past"


def test_every_entry_is_accounted_for(numbers):
    with numbers.producer("p") as p:
        for at in (1, 5, 3, 5, 2, 7):
            p.insert({"at": at, "value": at})
        p.bound(4)
    batch, position = everything(numbers)
    clock = position.watermark
    assert (clock.admitted, clock.late, clock.rejected, clock.eclipsed) == (4, 0, 2, 1)
    assert batch.rows.num_rows + batch.late.num_rows == 6
    assert batch.decision.tolist().count(Decision.ECLIPSED) == 1
