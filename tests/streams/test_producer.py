"""Producers of a named stream: what is in the log."""

from __future__ import annotations

import contextlib
import datetime
import threading
import time

import pandas as pd
import pyarrow as pa
import pytest

from tests.streams.recorded import NUMBERS, ORDERS, everything, refused, values
from windrow.errors import InputError, UsageError
from windrow.streams import NamedStream, Ordering


def minute(hour: int, minute: int) -> datetime.datetime:
    return datetime.datetime(2026, 1, 1, hour, minute)


def order(hour: int, minutes: int, ticker: str = "ORCL", amount: int | None = None) -> dict:
    return {"ts": minute(hour, minutes), "ticker": ticker, "amount": amount}


def test_the_worked_example_of_the_reference(orders):
    def clock():
        ticks = orders.position().watermark.value
        return None if ticks is None else orders.definition.rowtime.formatted(ticks)[11:16]

    p1 = orders.producer("P1")
    p1.bound(minute(10, 0))
    assert clock() is None
    assert p1.insert(order(10, 0)).admitted == 1
    assert clock() == "10:00"
    p2 = orders.producer("P2")
    p2.bound(minute(10, 5))
    assert p2.insert(order(10, 5)).admitted == 1
    assert clock() == "10:00"
    assert p2.insert(order(9, 59)).rejected == 1
    p1.close()
    assert clock() == "10:05"
    p2.close()
    assert clock() == "10:05"
    with orders.producer("P3") as p3:
        assert p3.insert([order(10, 4), order(10, 5)]).rejected == 1
    batch, position = everything(orders)
    assert [row["ts"] for row in batch.rows.to_pylist()] == [minute(10, 0), minute(10, 5), minute(10, 5)]
    assert [(row["__producer"], row["ts"]) for row in batch.late.to_pylist()] == [
        ("P2", minute(9, 59)),
        ("P3", minute(10, 4)),
    ]
    assert [
        orders.definition.rowtime.formatted(row)[11:16] for row in batch.late.column("__violated").to_pylist()
    ] == [
        "10:05",
        "10:05",
    ]
    assert (position.watermark.admitted, position.watermark.rejected) == (3, 2)


def test_rows_are_mappings_data_frames_or_arrow_tables(numbers):
    with numbers.producer("p") as p:
        p.insert({"at": 1, "value": 10})
        p.insert([{"at": 2}, {"AT": 3, "Value": 30}])
        p.insert(pd.DataFrame({"value": [40], "at": [4]}))
        p.insert(pa.table({"at": pa.array([5], pa.int32()), "value": [50.0]}))
        p.insert(pa.RecordBatch.from_pydict({"at": [6], "value": [None]}))
        assert p.next_sequence == 7
    assert everything(numbers)[0].rows.to_pylist() == [
        {"at": at, "value": value} for at, value in [(1, 10), (2, None), (3, 30), (4, 40), (5, 50), (6, None)]
    ]


@pytest.mark.parametrize(
    ("rows", "condition"),
    [
        ({"at": 1, "valeu": 1}, "UNKNOWN_COLUMN"),
        ({"at": 1, "value": "x"}, "INVALID_VALUE"),
        ({"at": 1, "value": 1.5}, "INVALID_VALUE"),
        ({"at": 1, "value": 2**63}, "INVALID_VALUE"),
        ({"at": 1, "value": True}, "INVALID_VALUE"),
        ({"at": 1, "value": b"1"}, "INVALID_VALUE"),
        (pa.table({"at": ["1"]}), "INVALID_VALUE"),
        (pa.table({"at": [1.5]}), "INVALID_VALUE"),
        ({"value": 1}, "NULL_ROWTIME"),
        ([{"at": 1}, {"at": None}], "NULL_ROWTIME"),
        ({"at": 2**63 - 1}, "ROWTIME_OVERFLOW"),
        ({"at": 1, "AT": 2}, "DUPLICATE_COLUMN"),
        (7, "NOT_ROWS"),
        ([7], "NOT_ROWS"),
        ("at", "NOT_ROWS"),
    ],
)
def test_what_is_no_row_of_the_stream_is_refused_and_nothing_is_inserted(numbers, rows, condition):
    with numbers.producer("p") as p:
        with refused(condition):
            p.insert(rows)
        assert p.insert({"at": 0, "value": 1}).admitted == 1
    assert values(numbers) == [1]


def test_a_value_that_is_of_another_type_is_named(numbers):
    with numbers.producer("p") as p, pytest.raises(InputError) as caught:
        p.insert([{"at": 1, "value": 1}, {"at": 2, "value": "x"}])
    assert "row 1 has 'x'" in caught.value.message
    assert "value" in caught.value.message


def test_zones_are_not_guessed_away(tmp_path):
    east = datetime.timezone(datetime.timedelta(hours=2))
    zoned = NamedStream.create(tmp_path / "zoned", pa.schema([("ts", pa.timestamp("us", "UTC"))]), "ts")
    with zoned.producer("p") as p:
        p.insert({"ts": datetime.datetime(2026, 1, 1, 12, tzinfo=east)})
        p.bound(datetime.datetime(2026, 1, 1, 12, 30, tzinfo=east))
        assert p.insert({"ts": minute(10, 29).replace(tzinfo=datetime.UTC)}).rejected == 1
        assert p.insert({"ts": minute(10, 30).replace(tzinfo=datetime.UTC)}).admitted == 1
        with pytest.raises(InputError, match="INVALID_VALUE") as caught:
            p.insert({"ts": minute(11, 0)})
        assert "tzinfo" in caught.value.hint
        with refused("INVALID_INSTANT"):
            p.bound("2026-01-01 11:00:00")
        p.bound("2026-01-01 11:00:00+00:00")
    with zoned.producer("q", zone=east) as q:
        q.insert({"ts": minute(12, 0).replace(tzinfo=datetime.UTC)})
        for instant in ("2026-01-01 15:00:00", minute(15, 0), "2026-01-01 13:00:00Z"):
            q.bound(instant)
            assert zoned.definition.rowtime.formatted(q.bound_ticks) == "2026-01-01 13:00:00"
    plain = NamedStream.create(tmp_path / "plain", ORDERS, "ts")
    with plain.producer("p") as p:
        with refused("INVALID_INSTANT"):
            p.bound(datetime.datetime(2026, 1, 1, 12, tzinfo=east))
        with refused("INVALID_VALUE"):
            p.insert(pa.table({"ts": pa.array([minute(1, 1)], pa.timestamp("us", "UTC"))}))


def test_a_strict_bound_is_the_bound_at_the_next_tick(numbers):
    with numbers.producer("p") as p:
        p.insert({"at": 1, "value": 0})
        p.bound(5, strict=True)
        assert p.bound_ticks == 6
        assert p.insert([{"at": 5}, {"at": 6}]).rejected == 1


def test_rows_and_the_bound_after_them_are_one_insert(numbers):
    with numbers.producer("p") as p:
        p.insert([{"at": 1, "value": 1}], bound=9)
        assert p.bound_ticks == 9
        assert numbers.position().watermark.value == 9


@pytest.mark.parametrize("instant", [True, 1.5, "1", None, datetime.date(2026, 1, 1)])
def test_what_is_no_instant_is_refused(numbers, instant):
    with numbers.producer("p") as p, refused("INVALID_INSTANT"):
        p.bound(instant)


def test_instants_may_be_texts(tmp_path):
    days = NamedStream.create(tmp_path / "days", pa.schema([("day", pa.date32())]), "day")
    with days.producer("p") as p:
        p.insert({"day": datetime.date(2026, 1, 1)})
        p.bound("2026-01-31")
        assert p.insert({"day": datetime.date(2026, 1, 30)}).rejected == 1
        with refused("INVALID_INSTANT"):
            p.bound("2026-01-31 10:00:00")
        with refused("INVALID_INSTANT"):
            p.bound("tomorrow")
        p.bound(20_500)  # days
        assert days.definition.rowtime.formatted(p.bound_ticks) == "2026-02-16"


def test_late_rows_can_be_an_error_and_then_nothing_is_inserted(numbers):
    with numbers.producer("p", late="error") as p:
        p.insert({"at": 5, "value": 1})
        with pytest.raises(InputError, match="LATE_ROWS") as caught:
            p.insert([{"at": 6, "value": 2}, {"at": 5, "value": 3}, {"at": 7, "value": 4}])
        assert "1 of 3 rows" in caught.value.message
        assert "row 1, has rowtime 5, but the bound is 6" in caught.value.message
    assert values(numbers) == [1]
    assert everything(numbers)[1].watermark.rejected == 0


def test_rows_below_a_lag_are_in_the_log_as_late(tmp_path):
    stream = NamedStream.create(tmp_path / "s", NUMBERS, "at", ordering=Ordering.lagging(10))
    with stream.producer("p") as p:
        receipt = p.insert([{"at": at, "value": at} for at in (100, 95, 89, 90)])
        assert (receipt.admitted, receipt.late, receipt.rejected) == (3, 1, 0)
        p.watermark(98)
        assert p.insert({"at": 97}).late == 1
    assert values(stream) == [100, 95, 90]


def test_a_retry_with_the_same_numbers_is_ignored(numbers):
    with numbers.producer("p") as p:
        first = p.insert([{"at": 1, "value": 1}, {"at": 2, "value": 2}], sequence=1)
        assert (first.admitted, first.duplicates) == (2, 0)
        again = p.insert([{"at": 1, "value": 1}, {"at": 2, "value": 2}], sequence=1)
        assert (again.admitted, again.duplicates, again.number) == (0, 2, 0)
        more = p.insert([{"at": 2, "value": 2}, {"at": 3, "value": 3}], sequence=2)
        assert (more.admitted, more.duplicates) == (1, 1)
        with refused("INVALID_ARGUMENT"):
            p.insert({"at": 9}, sequence=0)
    with numbers.producer("p") as p:
        assert p.next_sequence == 4
        assert p.insert({"at": 3, "value": 3}, sequence=3).duplicates == 1
        assert p.insert({"at": 4, "value": 4}, sequence=10).admitted == 1
        assert p.next_sequence == 11
    assert values(numbers) == [1, 2, 3, 4]


def test_a_retry_that_reached_the_log_twice_is_in_once(numbers):
    """As when a producer dies between the log and its answer, and another takes its place."""
    with numbers.producer("p") as p:
        p.insert([{"at": 1, "value": 1}])
        table = numbers.log.read(2)
        assert table.column("value").to_pylist() == [1]
        numbers.log.append(table)
    batch, position = everything(numbers)
    assert batch.rows.column("value").to_pylist() == [1]
    assert position.duplicates == 1


def test_one_process_at_a_time_is_a_producer(numbers):
    with numbers.producer("p", lease=60) as p:
        with refused("PRODUCER_TAKEN"):
            numbers.producer("p")
        with numbers.producer("q"):
            pass
        assert p.insert({"at": 1}).admitted == 1
    numbers.producer("p").close()


def test_a_name_that_another_has_can_be_waited_for(numbers):
    p = numbers.producer("p", lease=60)
    timer = threading.Timer(0.2, p.close)
    timer.start()
    numbers.producer("p", wait=30).close()
    timer.join()


@pytest.mark.parametrize("name", ["", "x" * 201, "✓" * 30])
def test_what_is_no_name_of_a_producer_is_refused(numbers, name):
    with refused("INVALID_NAME"):
        numbers.producer(name)


def test_any_other_text_is_a_name(numbers):
    for name in ("a/b", "größer ✓", "../../x", "..", "a%2Fb", "CON"):
        with numbers.producer(name) as p:
            p.insert({"at": 1, "value": 1})
    producers = everything(numbers)[0].entries.column("__producer").to_pylist()
    assert list(dict.fromkeys(producers)) == ["a/b", "größer ✓", "../../x", "..", "a%2Fb", "CON"]


def test_a_producer_that_left_says_no_more(numbers):
    p = numbers.producer("p")
    p.close()
    p.close()
    for say in (lambda: p.insert({"at": 1}), lambda: p.bound(1), p.idle):
        with refused("PRODUCER_CLOSED"):
            say()


def test_a_block_that_fails_leaves_its_producer_idle_with_its_promises(numbers):
    with numbers.producer("q") as q:
        q.insert({"at": 1})
        with contextlib.suppress(ZeroDivisionError), numbers.producer("p") as p:
            p.insert({"at": 1}, bound=9)
            raise ZeroDivisionError
        q.insert({"at": 5})
        assert numbers.position().watermark.value == 5
        with numbers.producer("p") as p:
            assert p.insert({"at": 8}).rejected == 1
            assert p.insert({"at": 9}).admitted == 1


def test_an_idle_producer_comes_back_at_the_clock(numbers):
    with numbers.producer("p") as p, numbers.producer("q") as q:
        p.insert({"at": 1, "value": 1})
        last = p.idle()
        assert p.idle() == 0
        assert numbers.log.last() == last
        q.insert({"at": 5, "value": 2})
        assert numbers.position().watermark.value == 5
        receipt = p.insert([{"at": 4, "value": 3}, {"at": 5, "value": 4}])
        assert (receipt.admitted, receipt.rejected) == (1, 1)
    assert values(numbers) == [1, 2, 4]


def test_a_producer_that_says_nothing_for_so_long_is_idle_and_comes_back(tmp_path):
    made = NamedStream.create(tmp_path / "s", NUMBERS, "at", idle=30.0)
    stream = NamedStream.open(made.folder)
    assert stream.definition.idle == 30.0
    a, b = stream.producer("a"), stream.producer("b")
    a.insert({"at": 5})
    b.insert({"at": 9})
    assert stream.position().watermark.value == 5
    assert not a._fall_idle()
    a._wrote_at -= 30.0
    assert a._fall_idle()
    assert not a._fall_idle()
    assert stream.position().watermark.value == 9
    assert a.insert([{"at": 8}, {"at": 10}]).rejected == 1
    assert stream.position().watermark.value == 9
    with pytest.raises(UsageError, match="INVALID_ARGUMENT"):
        NamedStream.create(tmp_path / "t", NUMBERS, "at", idle=0.0)
    a.close()
    b.close()


def test_who_leaves_does_not_wait_for_its_own_heart(tmp_path):
    stream = NamedStream.create(tmp_path / "s", NUMBERS, "at", idle=60.0)
    producer = stream.producer("a", lease=0.03)
    with producer._lock:  # as while an insert is under way, for several beats
        time.sleep(0.2)
        producer.close()
    assert not producer._heart._thread.is_alive()


def test_who_leaves_keeps_its_promises_and_its_numbers(numbers):
    producer = numbers.producer("a")
    producer.insert({"at": 3}, bound=7)
    producer.leave()
    other = numbers.producer("b")
    other.insert({"at": 9})
    back = numbers.producer("a")
    assert back.next_sequence == 2
    assert back.insert({"at": 6}).rejected == 1


def test_who_promises_no_more_rows_completes_the_stream(numbers):
    with numbers.producer("p") as p:
        p.insert({"at": 1})
        p.finish()
        assert numbers.position().watermark.value == 2**63 - 1
        assert p.insert({"at": 2**63 - 2}).rejected == 1
