"""Rows and bounds that are too far ahead of their processing time, in named streams."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pyarrow as pa
import pytest

from tests.streams.recorded import refused
from windrow.errors import InputError
from windrow.spark.live.plans.live_plan import order_text
from windrow.streams import Decision, EntryKind, NamedStream, Ordering
from windrow.streams.admission.future import Future
from windrow.streams.definition import Definition

TIMES = pa.schema([("ts", pa.timestamp("us", "UTC")), ("key", pa.string())])
NOW = datetime.datetime.now(datetime.UTC)
FAR = NOW + datetime.timedelta(days=30_000)


@pytest.fixture
def wary(tmp_path) -> NamedStream:
    return NamedStream.create(tmp_path / "wary", TIMES, "ts", ordering=Ordering.lagging(0), future=86_400)


def row(at: datetime.datetime, key: str = "a") -> dict[str, object]:
    return {"ts": at, "key": key}


def test_a_row_and_a_bound_of_a_wrong_clock_move_no_clock(wary):
    with wary.producer("p") as p:
        assert p.insert(row(NOW)).admitted == 1
        receipt = p.insert([row(FAR, "far"), row(NOW, "b")], bound=FAR)
        assert (receipt.admitted, receipt.quarantined, receipt.late, receipt.rejected) == (1, 1, 0, 0)
        p.watermark(FAR)
        p.punctuate(ts={"<": FAR})
        assert p.bound_ticks == wary.definition.rowtime.tick(NOW)
        assert p.insert(row(NOW, "c")).admitted == 1
        p.finish()
    batch, position = wary.read(wary.start)
    assert batch.rows.column("key").to_pylist() == ["a", "b", "c"]
    told = batch.late.select(["__kind", "__at", "__reason", "key"]).to_pylist()
    far = wary.definition.rowtime.tick(FAR)
    said = {"__at": far, "__reason": "future bound", "key": None}
    assert told == [
        {"__kind": EntryKind.ROW, "__at": far, "__reason": "future", "key": "far"},
        {"__kind": EntryKind.BOUND, **said},
        {"__kind": EntryKind.WATERMARK, **said},
        {"__kind": EntryKind.BOUND, **said},
    ]
    assert batch.late.column("__violated")[0].as_py() < far
    assert (
        position.watermark.admitted,
        position.watermark.quarantined,
        position.watermark.quarantined_bounds,
    ) == (
        3,
        1,
        3,
    )


def test_late_rows_say_why(tmp_path):
    stream = NamedStream.create(tmp_path / "s", TIMES, "ts", ordering=Ordering.lagging(0), future=86_400)
    early = NOW - datetime.timedelta(days=1)
    with stream.producer("p") as p:
        p.insert([row(NOW), row(early)])
        p.bound(NOW - datetime.timedelta(hours=1))
        p.punctuate(key="gone")
        p.insert([row(early), row(NOW, "gone"), row(FAR)])
    batch, _ = stream.read(stream.start)
    assert batch.late.column("__reason").to_pylist() == ["watermark", "bound", "punctuation", "future"]
    ahead = batch.decision == Decision.QUARANTINED
    assert ahead.sum() == 1


def test_where_late_rows_are_an_error_those_that_are_too_far_ahead_are(wary):
    with wary.producer("p", late="error") as p:
        with pytest.raises(InputError, match=r"\[LATE_ROWS\] 1 of 2 rows are too far ahead"):
            p.insert([row(NOW), row(FAR)])
        assert p.insert(row(NOW)).admitted == 1


def test_rows_that_are_quarantined_are_numbered_so_that_a_retry_leaves_them_out(wary):
    with wary.producer("p") as p:
        assert p.insert([row(NOW), row(FAR)], sequence=1).quarantined == 1
        again = p.insert([row(NOW), row(FAR), row(NOW)], sequence=1)
        assert (again.duplicates, again.admitted, again.quarantined) == (2, 1, 0)


@pytest.mark.parametrize("cut", range(6))
def test_what_is_quarantined_does_not_depend_on_where_the_log_is_cut(wary, cut):
    with wary.producer("p") as p, wary.producer("q") as q:
        p.insert([row(NOW), row(FAR)])
        q.insert(row(FAR))
        q.insert(row(NOW))
    whole, end = wary.read(wary.start)
    first, position = wary.read(wary.start, files=max(cut, 1))
    second, position = wary.read(position)
    assert position == end
    assert [*first.decision, *second.decision] == whole.decision.tolist()
    assert end.watermark.quarantined == 2


def test_the_producer_says_of_its_rows_what_all_readers_find(wary, monkeypatch):
    """Also on a machine whose clock is behind: its entries are of the time that the log has reached."""
    with wary.producer("right") as p:
        p.insert(row(NOW))
    monkeypatch.setattr("windrow.streams.producer.time.time_ns", lambda: 0)
    with pytest.warns(RuntimeWarning, match="correct this machine's clock"), wary.producer("behind") as p:
        receipt = p.insert([row(NOW), row(FAR)])
    assert (receipt.admitted, receipt.quarantined) == (1, 1)
    monkeypatch.undo()
    assert wary.position().watermark.quarantined == 1


def test_the_definition_holds_how_far_ahead_rows_may_be(wary, tmp_path):
    assert NamedStream.open(wary.folder).definition == wary.definition
    future = wary.definition.ordering.future
    assert future is not None
    assert (future.micros, future.tick) == (86_400_000_000, 1000)
    plain = NamedStream.create(tmp_path / "plain", TIMES, "ts").definition
    assert Definition.from_json(plain.to_json(), "") == plain
    assert plain.ordering.future is None
    with refused("INVALID_ARGUMENT"):
        NamedStream.create(tmp_path / "other", TIMES, "ts", future=-1)


def test_checkpoints_of_streams_without_future_say_what_those_of_earlier_versions_say():
    assert order_text(Ordering.lagging(60)) == ["Ordering(lag=60, is_promise=False)"]
    assert order_text(Ordering.ordered()) == ["Ordering(lag=0, is_promise=True)"]
    assert len(order_text(replace(Ordering.ordered(), future=Future(1, 1000)))) == 2
