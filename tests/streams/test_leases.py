"""Producers that die, sleep, or are taken for dead."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.streams.recorded import NUMBERS, dead, die, everything, refused, values
from windrow.streams import EntryKind, NamedStream, Ordering
from windrow.streams.chain import START
from windrow.streams.leases import Lease, follow_up


def test_a_producer_that_dies_is_logged_as_idle_by_whoever_notices(numbers):
    with numbers.producer("q", lease=1000) as q:
        p = numbers.producer("p", lease=1000)
        p.insert({"at": 1})
        q.insert({"at": 5})
        assert numbers.position().watermark.value == 1
        assert numbers.expire() == []
        die(p)
        assert numbers.expire() == ["p"]
        assert numbers.expire() == []
        assert numbers.position().watermark.value == 5


def test_of_all_who_notice_one_logs_it(numbers):
    numbers.producer("q").insert({"at": 1})
    for attempt in range(5):
        dead(numbers, f"p{attempt}")
        with ThreadPoolExecutor(4) as threads:
            found = [names for names in threads.map(lambda _: numbers.expire(), range(4)) if names]
        assert found == [[f"p{attempt}"]]
    kinds = everything(numbers)[0].entries.column("__kind").to_pylist()
    assert kinds.count(EntryKind.IDLE) == 5


def test_who_notices_after_another_has_logged_it_logs_nothing(numbers, monkeypatch):
    """Another logs it after the lease was found expired, before the log is read."""
    numbers.producer("q").insert({"at": 1})
    dead(numbers, "p")
    position = NamedStream.position
    others = []

    def late_position(self):
        if not others:
            others.append(None)
            others.append(numbers.expire())
        return position(self)

    monkeypatch.setattr(type(numbers), "position", late_position)
    assert numbers.expire() == []
    assert others[1] == ["p"]
    assert everything(numbers)[0].entries.column("__kind").to_pylist().count(EntryKind.IDLE) == 1


def test_other_producers_notice(numbers):
    with numbers.producer("q", lease=0.06) as q:
        dead(numbers, "p")
        q.insert({"at": 5})
        until = time.monotonic() + 20
        while numbers.position().watermark.value != 5:
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
    logging = follow_up(Lease(numbers.leases / "p", "p", 1), numbers.log.pending, 60, START, is_logging=True)
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
    assert follow_up(Lease(folder, "p", 1), numbers.log.pending, 10, START) is None
    with numbers.producer("p") as p:
        assert p.insert({"at": 1}).admitted == 1


def test_an_interrupted_insert_takes_no_number_from_the_next(numbers, monkeypatch):
    """Whether the rows are in is not known: the next insert finds out before it takes numbers."""
    p = numbers.producer("p")
    append = numbers.log.append

    def interrupted(self, entries, after):
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
        assert numbers.position().watermark.value == 5

        def failing(log):
            raise KeyboardInterrupt

        append = numbers.log.append

        def interrupted(self, entries, after):
            append(entries, after)
            raise KeyboardInterrupt

        monkeypatch.setattr(type(numbers.log), "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            numbers.producer("r", lease=1000)
        monkeypatch.undo()
        monkeypatch.setattr(os, "fsync", failing)
        with pytest.raises(KeyboardInterrupt):
            p.close()
        monkeypatch.undo()
        assert numbers.position().watermark.value == 5, "both are open"
        assert numbers.expire() == ["p", "r"]
        assert numbers.position().watermark.value == 7
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
