"""Producers of a named stream: what is in the log, and what readers make of it."""

from __future__ import annotations

import contextlib
import datetime
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pyarrow as pa
import pytest

from windrow.errors import InputError, UsageError, WindrowError
from windrow.streams import Decision, Kind, NamedStream, Ordering
from windrow.streams.leases import Lease, follow_up

ORDERS = pa.schema([("ts", pa.timestamp("us")), ("ticker", pa.string()), ("amount", pa.int32())])
NUMBERS = pa.schema([("at", pa.int64()), ("value", pa.int64())])


def minute(hour: int, minute: int) -> datetime.datetime:
    return datetime.datetime(2026, 1, 1, hour, minute)


def order(hour: int, minutes: int, ticker: str = "ORCL", amount: int | None = None) -> dict:
    return {"ts": minute(hour, minutes), "ticker": ticker, "amount": amount}


@pytest.fixture
def orders(tmp_path) -> NamedStream:
    return NamedStream.create(tmp_path / "orders", ORDERS, "ts")


@pytest.fixture
def numbers(tmp_path) -> NamedStream:
    return NamedStream.create(tmp_path / "numbers", NUMBERS, "at", unit="seconds")


def everything(stream: NamedStream):
    return stream.read(stream.start)


def values(stream: NamedStream) -> list[int]:
    return everything(stream)[0].rows.column("value").to_pylist()


def refused(condition: str):
    return pytest.raises(WindrowError, match=rf"\[{condition}\]")


def test_the_worked_example_of_the_reference(orders):
    def clock():
        ticks = orders.position().clock.clock
        return None if ticks is None else orders.definition.rowtime.shown(ticks)[11:16]

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
        orders.definition.rowtime.shown(row)[11:16] for row in batch.late.column("__violated").to_pylist()
    ] == [
        "10:05",
        "10:05",
    ]
    assert (position.clock.admitted, position.clock.rejected) == (3, 2)


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
        assert numbers.position().clock.clock == 9


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
        assert days.definition.rowtime.shown(p.bound_ticks) == "2026-02-16"


def test_late_rows_can_be_an_error_and_then_nothing_is_inserted(numbers):
    with numbers.producer("p", late="error") as p:
        p.insert({"at": 5, "value": 1})
        with pytest.raises(InputError, match="LATE_ROWS") as caught:
            p.insert([{"at": 6, "value": 2}, {"at": 5, "value": 3}, {"at": 7, "value": 4}])
        assert "1 of 3 rows" in caught.value.message
        assert "row 1, has rowtime 5, the bound is 6" in caught.value.message
    assert values(numbers) == [1]
    assert everything(numbers)[1].clock.rejected == 0


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
        assert numbers.position().clock.clock == 5
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
        assert numbers.position().clock.clock == 5
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
    assert stream.position().clock.clock == 5
    assert not a._fall_idle()
    a._said -= 30.0
    assert a._fall_idle()
    assert not a._fall_idle()
    assert stream.position().clock.clock == 9
    assert a.insert([{"at": 8}, {"at": 10}]).rejected == 1
    assert stream.position().clock.clock == 9
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
        assert numbers.position().clock.clock == 2**63 - 1
        assert p.insert({"at": 2**63 - 2}).rejected == 1


# -- leases ------------------------------------------------------------------------------------------


def dead(stream: NamedStream, name: str, **arguments):
    """A producer of a process that has died: nobody renews its lease, and its time has passed."""
    producer = stream.producer(name, lease=1000, **arguments)
    die(producer)
    return producer


def die(producer):
    producer._heart.stop()
    os.utime(producer._lease.path, (1, 1))


def test_a_producer_that_dies_is_logged_as_idle_by_whoever_notices(numbers):
    with numbers.producer("q", lease=1000) as q:
        p = numbers.producer("p", lease=1000)
        p.insert({"at": 1})
        q.insert({"at": 5})
        assert numbers.position().clock.clock == 1
        assert numbers.expire() == []
        die(p)
        assert numbers.expire() == ["p"]
        assert numbers.expire() == []
        assert numbers.position().clock.clock == 5


def test_of_all_who_notice_one_logs_it(numbers):
    numbers.producer("q").insert({"at": 1})
    for attempt in range(5):
        dead(numbers, f"p{attempt}")
        with ThreadPoolExecutor(4) as threads:
            found = [names for names in threads.map(lambda _: numbers.expire(), range(4)) if names]
        assert found == [[f"p{attempt}"]]
    kinds = everything(numbers)[0].entries.column("__kind").to_pylist()
    assert kinds.count(Kind.IDLE) == 5


def test_other_producers_notice(numbers):
    with numbers.producer("q", lease=0.06) as q:
        dead(numbers, "p")
        q.insert({"at": 5})
        until = time.monotonic() + 20
        while numbers.position().clock.clock != 5:
            assert time.monotonic() < until, "nobody has noticed"


def test_a_producer_that_was_taken_for_dead_comes_back_as_a_newcomer(numbers):
    with numbers.producer("q", lease=1000) as q:
        p = dead(numbers, "p")
        p.insert({"at": 1, "value": 1})
        assert numbers.expire() == ["p"]
        q.insert({"at": 5, "value": 2})
        receipt = p.insert([{"at": 4, "value": 3}, {"at": 6, "value": 4}])
        assert (receipt.admitted, receipt.rejected) == (1, 1)
        p.close()
    assert values(numbers) == [1, 2, 4]


def test_who_slept_through_its_lease_slips_no_rows_in(numbers, monkeypatch):
    """The lease is lost after the producer has looked, before its rows are in the log."""
    p = dead(numbers, "p")
    p.insert({"at": 1, "value": 1})
    append = numbers.log.append
    fenced = []

    def late_append(self, entries, after=0):
        if not fenced and entries.column("__kind")[0].as_py() == 0:
            fenced.append(True)
            assert numbers.expire() == ["p"]
        return append(entries, after)

    monkeypatch.setattr(type(numbers.log), "append", late_append)
    receipt = p.insert({"at": 2, "value": 2})
    monkeypatch.undo()
    assert (receipt.admitted, receipt.sequence) == (1, 2)
    batch, position = everything(numbers)
    assert batch.rows.column("value").to_pylist() == [1, 2]
    assert position.fenced == 1
    assert position.duplicates == 0


def test_rows_that_were_in_before_the_lease_was_lost_are_in_once(numbers, monkeypatch):
    p = dead(numbers, "p")
    append = numbers.log.append
    lost = []

    def early_append(self, entries, after=0):
        number = append(entries, after)
        if not lost and entries.column("__kind")[0].as_py() == 0:
            lost.append(True)
            assert numbers.expire() == ["p"]
        return number

    monkeypatch.setattr(type(numbers.log), "append", early_append)
    assert p.insert({"at": 1, "value": 1}).admitted == 1
    monkeypatch.undo()
    assert p.next_sequence == 2
    assert p.insert({"at": 2, "value": 2}).sequence == 2
    batch, position = everything(numbers)
    assert batch.rows.column("value").to_pylist() == [1, 2]
    assert (position.fenced, position.duplicates) == (0, 0)


def test_two_processes_under_one_name_lose_nothing_that_was_acknowledged(numbers):
    p = dead(numbers, "p")
    p.insert({"at": 1, "value": 1})
    other = numbers.producer("p", lease=60)
    assert other.next_sequence == 2
    other.insert({"at": 1, "value": 2})
    with refused("PRODUCER_TAKEN"):
        p.insert({"at": 1, "value": 3})
    other.insert({"at": 1, "value": 4})
    other.close()
    assert values(numbers) == [1, 2, 4]


def test_a_producer_taken_for_dead_waits_for_whoever_is_logging_that(numbers):
    """It is no other process under its name, so its rows are not refused."""
    p = dead(numbers, "p")
    p.insert({"at": 1, "value": 1})
    logging = follow_up(Lease(numbers.leases / "p", "p", 1), numbers.log.pending, 60, is_logging=True)
    assert logging is not None
    done = threading.Timer(0.2, logging.release)
    done.start()
    p.insert({"at": 1, "value": 2})
    assert not done.is_alive()
    assert logging.generation == 2
    p.close()
    assert values(numbers) == [1, 2]


def test_whoever_is_many_leases_behind_gets_none(numbers):
    """The files of old leases are deleted: that a number is free does not make it the next."""
    for _ in range(20):
        numbers.producer("p").close()
    folder = numbers.leases / "p"
    assert len(list(folder.iterdir())) < 12
    assert follow_up(Lease(folder, "p", 1), numbers.log.pending, 10) is None
    with numbers.producer("p") as p:
        assert p.insert({"at": 1}).admitted == 1


def test_an_interrupted_insert_takes_no_number_from_the_next(numbers, monkeypatch):
    """Whether the rows are in is not known: the next insert finds out before it takes numbers."""
    p = numbers.producer("p")
    append = numbers.log.append

    def interrupted(self, entries, after=0):
        append(entries, after)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(numbers.log), "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        p.insert({"at": 1, "value": 1})
    monkeypatch.undo()
    assert p.insert({"at": 2, "value": 2}).sequence == 2
    p.close()
    assert values(numbers) == [1, 2]


def test_a_forked_process_is_not_the_producer(numbers, monkeypatch):
    """Both would take the same numbers, and the rows of one would pass for those of the other."""
    with numbers.producer("p") as p:
        p.insert({"at": 1, "value": 1})
        with monkeypatch.context() as patch:
            patch.setattr("windrow.streams.producer.os.getpid", lambda: -1)
            with refused("PRODUCER_TAKEN"):
                p.insert({"at": 1, "value": 2})
            p.close()
        assert p.insert({"at": 1, "value": 3}).sequence == 2
    assert values(numbers) == [1, 3]


def test_a_producer_that_cannot_attach_or_leave_does_not_hold_the_stream_back_for_ever(numbers, monkeypatch):
    with numbers.producer("q", lease=1000) as q:
        q.insert({"at": 1})
        q.insert({"at": 5})
        p = numbers.producer("p", lease=1000)
        q.insert({"at": 7})
        assert numbers.position().clock.clock == 5

        def failing(log):
            raise KeyboardInterrupt

        monkeypatch.setattr(type(numbers.log), "settle", failing)
        with pytest.raises(KeyboardInterrupt):
            numbers.producer("r", lease=1000)
        monkeypatch.undo()
        monkeypatch.setattr(os, "fsync", failing)
        with pytest.raises(KeyboardInterrupt):
            p.close()
        monkeypatch.undo()
        assert numbers.position().clock.clock == 5, "both are open"
        assert numbers.expire() == ["p", "r"]
        assert numbers.position().clock.clock == 7
        numbers.producer("r").close()


def test_threads_may_share_a_producer(tmp_path):
    stream = NamedStream.create(tmp_path / "s", NUMBERS, "at", ordering=Ordering.unordered())
    with stream.producer("p") as p:
        threads = [
            threading.Thread(
                target=lambda number=number: [
                    p.insert({"at": 1, "value": number * 5 + at}) for at in range(5)
                ]
            )
            for number in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(values(stream)) == list(range(20))


# -- reading -----------------------------------------------------------------------------------------


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
        clock = iter([5_000, 7_000, 6_000, 8_000, 8_000])
        monkeypatch.setattr("windrow.streams.producer.time.time_ns", lambda: next(clock) * 10**6)
        for at in range(3):
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
    assert (after.clock, after.writers, batch.clocks) == (before.clock, before.writers, ())


def test_it_is_known_when_the_clock_moves(numbers):
    with numbers.producer("p") as p:
        for at in (3, 3, 7):
            p.insert({"at": at})
    whole, end = numbers.read(numbers.start, timed=True)
    times = [row["__ptime"] for row in whole.admitted.to_pylist()]
    assert whole.clocks == ((times[0], 3), (times[2], 7))
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
    clock = position.clock
    assert (clock.admitted, clock.late, clock.rejected, clock.eclipsed) == (4, 0, 2, 1)
    assert batch.rows.num_rows + batch.late.num_rows == 6
    assert batch.decision.tolist().count(Decision.ECLIPSED) == 1
