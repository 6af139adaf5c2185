"""A bucket is advanced by the worker that has its state, whichever worker Spark gives it to."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
import time
import uuid

import pytest

from tests.live.buckets import Stored
from windrow.errors import InputError
from windrow.spark.live.executors import owners
from windrow.spark.live.executors.bucket_task import BucketTask
from windrow.spark.live.executors.owners import QueryPart, Workers
from windrow.spark.live.executors.recent import Recent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sockets without a file are Linux's")


class Total:
    size = 1

    def __init__(self, total):
        self.total = total


class Worker:
    """A worker of an executor, with the sum of the numbers of each bucket as its state."""

    def __init__(self, folder, *, is_slow=False):
        self.recent, self.advanced_here, self.is_slow = Recent(), 0, is_slow
        self.workers = Workers(folder, {"first": QueryPart(self.advance, self.recent)})

    def advance(self, task, store, packets, *, is_first):
        stored = None if store.text() is None else json.loads(store.text())
        life, total, number = uuid.uuid4().hex, Total(0), 0
        if stored is not None:
            life, number = stored["life"], stored["number"] + 1
            total = self.recent.take(life, task.version(stored["token"]))
            total = total or Total(int(store.read("total", stored["number"])))
        for note, data in packets:
            if note == "wrong":
                raise InputError("wrong", condition="WRONG")
            if note == "slow" and self.is_slow:
                time.sleep(600)
            total = Total(total.total + (0 if note == "slow" else int(note)) + len(data or b""))
        store.write("total", number, str(total.total).encode())
        if number:
            store.drop("total", number - 1)
        token = uuid.uuid4().hex
        store.save(json.dumps({"life": life, "token": token, "number": number}))
        self.recent.add(life, task.version(token), task, total)
        self.advanced_here += 1
        yield json.dumps({"total": total.total, "is_first": is_first}), None
        yield "rows", b"abc"
        yield "none", b""

    def given(self, store, *packets, start="one"):
        task = BucketTask("q", (), (), None, (), None, None, (0,), start=start)
        found = list(self.workers.advanced("first", task, store, packets, is_first=True))
        assert found[1:] == [("rows", b"abc"), ("none", b"")]
        assert len(store.bytes) == 1
        account = json.loads(found[0][0])
        assert account["is_first"]
        return account["total"]


class Counting(Stored):
    reads = 0

    def read(self, name, number):
        self.reads += 1
        return super().read(name, number)


@pytest.fixture
def workers(tmp_path):
    return [Worker(tmp_path / "announced") for _ in range(3)]


def test_the_owner_advances_a_bucket(workers):
    first, second, third = workers
    store = Counting()
    assert first.given(store, ("1", None)) == 1
    assert second.given(store, ("2", b"four"), ("3", b"")) == 10
    assert third.given(store, ("5", None)) == 15
    assert first.given(store) == 15
    assert (first.advanced_here, second.advanced_here, third.advanced_here) == (4, 0, 0)
    assert store.reads == 0


def test_each_bucket_has_its_owner(workers):
    stores = [Counting() for _ in workers]
    for worker, store in zip(workers, stores, strict=True):
        worker.given(store, ("1", None))
    for turn in range(1, 7):
        for at, store in enumerate(stores):
            assert workers[(at + turn) % 3].given(store, ("1", None)) == turn + 1
    assert [worker.advanced_here for worker in workers] == [7, 7, 7]
    assert [store.reads for store in stores] == [0, 0, 0]


def test_a_worker_whose_state_is_evicted_owns_it_no_longer(workers):
    first, second, third = workers
    store = Counting()
    first.given(store, ("1", None))
    first.recent.clear()
    assert second.given(store, ("1", None)) == 2
    assert (store.reads, second.advanced_here) == (1, 1)
    assert first.given(store, ("1", None)) == third.given(store) == 3
    assert (store.reads, second.advanced_here) == (1, 3)


def test_a_busy_owner_gives_a_bucket_away(workers):
    first, second, third = workers
    store = Counting()
    first.given(store, ("1", None))
    with first.workers._working:
        assert second.given(store, ("1", None)) == 2
    assert (store.reads, second.advanced_here) == (1, 1)
    assert third.given(store, ("1", None)) == 3
    assert (store.reads, second.advanced_here) == (1, 2)


def test_an_attempt_that_is_repeated_is_computed_from_what_is_stored(workers):
    first, second, _ = workers
    store = Counting()
    first.given(store, ("1", None))
    attempt = Counting()
    attempt.told, attempt.bytes = store.told, dict(store.bytes)
    assert second.given(attempt, ("2", None)) == 3  # and is not committed
    assert second.given(store, ("5", None)) == 6
    assert store.reads == 1
    assert first.given(store, ("1", None)) == 7
    assert (store.reads, second.advanced_here) == (1, 2)


def test_attempts_at_the_same_time_are_answered_once(workers):
    first, *others = workers
    store = Counting()
    first.given(store, ("1", None))
    attempts, found = [Counting() for _ in range(6)], []
    for attempt in attempts:
        attempt.told, attempt.bytes = store.told, dict(store.bytes)
    threads = [
        threading.Thread(target=lambda at=at, one=one: found.append(others[at % 2].given(one, ("2", None))))
        for at, one in enumerate(attempts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3] * 6
    assert sum(one.reads for one in attempts) == 5
    assert len({json.loads(one.told)["token"] for one in attempts}) == 6


def test_the_query_in_another_dataframe_reads_the_store(workers):
    first, second, _ = workers
    store = Counting()
    first.given(store, ("1", None))
    assert second.given(store, ("1", None), start="two") == 2
    assert first.given(store, ("1", None), start="three") == 3
    assert store.reads == 2


def test_the_error_of_an_owner_is_raised_where_the_packets_are(workers):
    first, second, _ = workers
    store = Counting()
    first.given(store, ("1", None))
    with pytest.raises(InputError, match="wrong"):
        second.given(store, ("wrong", None))
    assert second.given(store, ("2", None)) == 3


def test_any_other_failure_of_an_owner_is_in_its_log(workers, caplog):
    first, second, _ = workers
    store = Counting()
    first.given(store, ("1", None))
    with pytest.raises(ValueError, match="nonsense"):
        second.given(store, ("nonsense", None))
    assert "did not advance a bucket" in caplog.text
    assert second.given(store, ("2", None)) == 3


@pytest.mark.parametrize("state", ["gone", "another address", "no folder"])
def test_without_its_owner_a_bucket_is_read_from_the_store(workers, tmp_path, state):
    first, second, _ = workers
    store = Counting()
    first.given(store, ("1", None))
    (announced,) = (tmp_path / "announced").iterdir()
    if state == "gone":
        announced.unlink()
    elif state == "another address":
        announced.write_text("\0windrow-of-nobody")
    else:
        second = Worker(None)
    assert second.given(store, ("1", None)) == 2
    assert store.reads == 1


def test_other_users_are_neither_answered_nor_asked(workers, monkeypatch):
    first, second, _ = workers
    store = Counting()
    first.given(store, ("1", None))
    monkeypatch.setattr(owners.os, "geteuid", lambda: os.getuid() + 1)
    assert second.given(store, ("1", None)) == 2
    assert (store.reads, first.advanced_here) == (1, 1)


def test_a_folder_that_cannot_be_written_changes_no_answer(tmp_path, caplog):
    (tmp_path / "announced").write_text("a file")
    first, second = Worker(tmp_path / "announced"), Worker(tmp_path / "announced")
    store = Counting()
    assert first.given(store, ("1", None)) == 1
    assert second.given(store, ("1", None)) == 2
    assert first.given(store, ("1", None)) == 3
    assert caplog.text.count("cannot tell others") == 2  # each of them once


def own(folder, connection):
    """Own a bucket in a process, until it is killed."""
    worker, store = Worker(folder, is_slow=True), Counting()
    worker.given(store, ("1", None))
    connection.send((store.told, store.bytes))
    connection.recv()


def test_an_owner_that_is_killed_while_it_advances_a_bucket_loses_nothing(tmp_path):
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe()
    owner = spawning.Process(target=own, args=(tmp_path / "announced", there))
    owner.start()
    store, asking = Counting(), Worker(tmp_path / "announced")
    store.told, store.bytes = here.recv()
    assert asking.given(store, ("2", None)) == 3
    assert (store.reads, asking.advanced_here) == (0, 0)
    killing = threading.Timer(1, owner.kill)
    killing.start()
    assert asking.given(store, ("4", None), ("slow", None)) == 7
    killing.join()
    owner.join()
    assert owner.exitcode != 0
    assert (store.reads, asking.advanced_here) == (1, 1)
