"""A log whose small files are merged: nobody who reads or writes it sees that, whenever it happens."""

from __future__ import annotations

import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.streams.recorded import refused
from tests.streams.test_damage import as_before
from tests.streams.test_retention import NUMBERS, made, said, values
from windrow.streams import NamedStream, Ordering, Position, log, log_compaction, log_spans


@pytest.fixture
def stream(tmp_path):
    """Files 1 to 42: it is opened, has forty rows, is closed."""
    return made(tmp_path / "s", count=40)


def names(stream):
    return [path.stem.replace("0" * 17, "") for path in sorted(stream.log.files.iterdir())]


MERGED = ["001-010", "011-020", "021-030", "031-040", "041", "042"]


def same(batch, other):
    return (
        batch.entries.equals(other.entries)
        and all(
            getattr(batch, part).tolist() == getattr(other, part).tolist()
            for part in ("number", "decision", "violated", "before")
        )
        and (batch.watermarks, batch.punctuations) == (other.watermarks, other.punctuations)
    )


def positions(stream):
    """The positions after each file."""
    found = [stream.start]
    while (after := stream.read(found[-1], 1)[1]).number > found[-1].number:
        found.append(after)
    return found


def test_ten_files_become_one_and_the_rest_stays(stream):
    content = {path.name: path.read_bytes() for path in stream.log.files.iterdir()}
    assert stream.compact() == (42, 6)
    kept = {path.name: path.read_bytes() for path in stream.log.files.iterdir()}
    assert kept.items() >= content.items()  # for who has listed them
    assert len(kept) == 46
    assert values(NamedStream.open(stream.folder)) == [*range(40)]
    assert stream.compact(grace=0) == (6, 6)
    assert names(stream) == MERGED
    assert values(NamedStream.open(stream.folder)) == [*range(40)]
    assert stream.check() == []


def test_hundreds_become_one(tmp_path):
    stream = made(tmp_path / "s", count=118)
    assert stream.compact(grace=0) == (120, 3)
    assert names(stream) == ["001-100", "101-110", "111-120"]
    with stream.producer("p") as p:
        for at in range(118, 196):
            p.insert({"at": at})
    assert stream.compact(grace=0) == (83, 2)
    assert names(stream) == ["001-100", "101-200"]
    assert values(stream) == [*range(196)]
    assert stream.check() == []


@given(
    st.lists(said, min_size=4, max_size=20),
    st.sampled_from([Ordering.ordered(), Ordering.lagging(2), Ordering.unordered()]),
)
def test_reading_from_any_position_gives_the_same(tmp_path_factory, entries, ordering):
    stream = NamedStream.create(
        tmp_path_factory.mktemp("s") / "s", NUMBERS, "at", unit="seconds", ordering=ordering
    )
    producers = {}
    for kind, name, at in entries:
        if name not in producers:
            producers[name] = stream.producer(name)
        match kind:
            case "row":
                producers[name].insert([{"at": at, "value": str(at)}, {"at": at + 1, "value": None}])
            case "bound":
                producers[name].bound(at)
            case "pattern":
                producers[name].punctuate(value=str(at))
            case "idle":
                producers[name].idle()
            case "close":
                producers.pop(name).close()
    known = [position.to_json() for position in positions(stream)]
    before = [stream.read(Position.from_json(text), timed=True) for text in known]
    with pytest.MonkeyPatch.context() as patch:
        for module in (log_spans, log_compaction):
            patch.setattr(module, "LENGTHS", (4, 2))
        assert stream.compact(grace=0).after < len(known)
        assert [position.to_json() for position in positions(stream)] == known
        for text, (batch, position) in zip(known, before, strict=True):
            found, after = NamedStream.open(stream.folder).read(Position.from_json(text), timed=True)
            assert same(found, batch)
            assert after == position
        assert stream.position(len(known) // 2) == Position.from_json(known[len(known) // 2])
        for name, producer in producers.items():
            number = producer.next_sequence
            receipt = producer.insert({"at": 20, "value": "0"}, sequence=1)
            assert (receipt.duplicates == 1) == (number > 1), name
            producer.leave()
        assert stream.check() == []


def test_what_was_written_is_there_wherever_a_process_is_killed(stream):
    wanted, end = stream.read(stream.start)
    killed = 0

    def killing(call, left):
        def killed(*arguments, **options):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return call(*arguments, **options)

        return killed

    for step in count():
        with pytest.MonkeyPatch.context() as patch:
            left = iter(range(step))
            for name in ("link", "fsync", "unlink"):
                patch.setattr(os, name, killing(getattr(os, name), left))
            try:
                stream.compact(grace=0)
            except KeyboardInterrupt:
                killed += 1
            else:
                break
        again = NamedStream.open(stream.folder)
        found, position = again.read(again.start)
        assert same(found, wanted)
        assert position == end
        assert again.check() == []
    assert killed > 3
    assert names(stream) == MERGED


def test_a_reader_goes_on_in_the_middle(stream):
    wanted = [entries.to_pylist() for entries, _ in stream.log.after(stream.start.place, 42)]
    begun = stream.log.after(stream.start.place, 42)
    found = [next(begun)[0].to_pylist() for _ in range(5)]
    stream.compact(grace=0)
    found += [entries.to_pylist() for entries, _ in begun]
    assert found == wanted
    _, middle = stream.read(stream.start, 25)
    assert values(stream, middle) == [*range(24, 40)]


def test_a_reader_that_looks_while_files_are_merged_finds_them(stream, monkeypatch):
    """The merged file is not there when it looks for it, and the other one no longer."""
    opened = type(stream.folder).open

    def late(path, *arguments, **options):
        if path.name == log_spans.Span(5, 5).name:
            monkeypatch.undo()
            stream.compact(grace=0)
        return opened(path, *arguments, **options)

    monkeypatch.setattr(type(stream.folder), "open", late)
    assert stream.log.read(5).num_rows == 1
    assert names(stream) == MERGED


def test_a_list_of_files_that_is_older_than_a_merged_one_is_no_gap(stream, monkeypatch):
    listed = [path.name for path in stream.log.files.iterdir()]
    stream.compact(grace=0)
    monkeypatch.setattr(
        os, "listdir", lambda _: [name for name in listed if name < log_spans.Span(30, 30).name]
    )
    stream.log.check_numbers()


def test_producers_and_readers_go_on_while_two_processes_merge(tmp_path):
    stream = made(tmp_path / "s", count=0, ordering=Ordering.unordered())
    done = threading.Event()

    def write(name):
        with stream.producer(name) as p:
            return [p.insert({"at": at, "value": name}).number for at in range(60)]

    def merge():
        while not done.is_set():
            stream.compact(grace=0)

    def follow():
        position, found = stream.start, []
        while not done.is_set() or position.number < stream.log.last():
            batch, position = stream.read(position, 7)
            found += batch.rows.to_pylist()
        return found

    with ThreadPoolExecutor(6) as pool:
        others = [pool.submit(task) for task in (merge, merge, follow)]
        receipts = [number for written in pool.map(write, "abc") for number in written]
        done.set()
        _, _, found = (each.result() for each in others)
    assert len(set(receipts)) == 180
    stream.compact(grace=0)
    rows = stream.read(stream.start)[0].rows.to_pylist()
    assert found == rows
    for name in "abc":
        assert [row["at"] for row in rows if row["value"] == name] == [*range(60)]
    assert stream.check() == []


@pytest.mark.parametrize("remove", ["compact", "trim"])
def test_a_producer_that_slept_takes_no_number_of_a_file_that_is_gone(stream, monkeypatch, remove):
    claim = log.claim

    def late(path, name):
        if name == stream.log.path(44):
            monkeypatch.undo()
            with stream.producer("other") as other:
                for at in range(40, 60):
                    other.insert({"at": at})
            if remove == "compact":
                stream.compact(grace=0)
            else:
                stream.trim(older_than=0)
            assert not name.exists()
        return claim(path, name)

    with stream.producer("slow") as slow:  # file 43
        monkeypatch.setattr(log, "claim", late)
        assert slow.insert({"at": 70}).number == 66
    assert values(stream)[-1] == 70
    assert not stream.log.path(44).exists()
    assert stream.check() == []


@pytest.mark.parametrize("remove", ["compact", "trim"])
def test_a_file_that_is_merged_or_deleted_as_soon_as_it_is_there_is_there(stream, monkeypatch, remove):
    claim = log.claim

    def early(path, name):
        found = claim(path, name)
        if name == stream.log.path(50):
            monkeypatch.undo()
            _ = stream.compact(grace=0) if remove == "compact" else stream.trim(older_than=0)
            assert name.exists() == (remove == "trim")
        return found

    monkeypatch.setattr(log, "claim", early)
    with stream.producer("p") as p:  # file 43
        numbers = [p.insert({"at": at}).number for at in range(40, 48)]
        assert numbers == [*range(44, 52)]
        assert values(stream) == ([*range(48)] if remove == "compact" else [47])
    assert stream.check() == []


def test_a_merged_file_that_is_damaged_replaces_nothing(stream):
    stream.compact()
    path = stream.log.files / log_spans.Span(11, 20).name
    content = path.read_bytes()
    path.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
    stream.compact(grace=0)
    assert names(stream)[1:12] == ["011-020", *(f"0{number}" for number in range(11, 21))]
    with refused("TORN_FILE") as caught:
        stream.read(stream.start)
    assert str(path) in caught.value.message
    path.unlink()
    assert values(stream) == [*range(40)]


def test_a_merged_file_of_other_numbers_is_noticed(stream):
    stream.compact(grace=0)
    files = stream.log.files
    one, other = (files / log_spans.Span(first, first + 9).name for first in (11, 21))
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    assert {problem.condition for problem in stream.check()} == {"MISPLACED_FILE"}
    one.write_bytes(content)
    one.rename(files / log_spans.Span(11, 12).name)
    with refused("MISSING_FILE"):
        NamedStream.open(stream.folder).read(stream.start)


def test_rows_may_hold_what_a_merged_file_says_of_its_parts(tmp_path):
    stream = made(tmp_path / "s", count=0)
    text = "windrow.parts=1:0 1:0 "
    with stream.producer("p") as p:
        for at in range(16):
            p.insert({"at": at, "value": text})
    stream.compact(grace=0)
    assert [row["value"] for row in stream.read(stream.start)[0].rows.to_pylist()] == [text] * 16
    assert stream.check() == []


def test_files_of_earlier_versions_stay(stream):
    as_before(stream, 42)
    for folder in (stream.folder / "leases").iterdir():
        shutil.rmtree(folder)
    with stream.producer("q") as q:
        for at in range(40, 60):
            q.insert({"at": at})
    assert stream.compact(grace=0).after == 50 + 1 + 4
    assert values(stream) == [*range(60)]
    assert stream.log.check() == []


def test_large_files_stay(stream, monkeypatch):
    size = sum(stream.log.path(number).stat().st_size for number in range(11, 21))
    monkeypatch.setattr(log_compaction, "_LARGEST", size - 1)
    assert stream.compact(grace=0).after > 6
    assert values(stream) == [*range(40)]


def test_deleted_entries_do_not_come_back(stream):
    stream.note_reader("one", 25, stream.folder)
    stream.compact(grace=0)
    assert stream.trim(older_than=0) == 25
    assert names(stream) == MERGED[2:]  # 25 is in the first
    assert values(stream) == [*range(24, 40)]
    with refused("LOG_TRIMMED"):
        stream.log.read(7)
    stream.note_reader("one", 30, stream.folder)
    assert stream.trim(older_than=0) == 5
    assert names(stream) == MERGED[2:]
    stream.note_reader("one", 31, stream.folder)
    assert stream.trim(older_than=0) == 1
    assert names(stream) == MERGED[3:]
    assert values(NamedStream.open(stream.folder)) == [*range(30, 40)]
    stream.forget("one")
    assert stream.trim(older_than=0) == 11
    assert names(stream) == ["042"]
    with stream.producer("p") as p:
        assert p.next_sequence == 41
        for at in range(40, 60):
            p.insert({"at": at})
    assert stream.compact(grace=0) == (23, 14)  # 42 to 50, 51 to 60, 61 to 64
    assert values(stream) == [*range(40, 60)]
    assert stream.check() == []


def test_old_entries_are_deleted_while_files_are_merged(stream, monkeypatch):
    draft = log_compaction.encoded_merged

    def meanwhile(*arguments):
        stream.trim(older_than=0)
        return draft(*arguments)

    monkeypatch.setattr(log_compaction, "encoded_merged", meanwhile)
    stream.compact(grace=0)
    assert names(stream) == ["042"]
    assert values(NamedStream.open(stream.folder)) == [] == stream.check()


def test_a_merged_file_spans_a_tenth_of_what_is_retained(tmp_path, monkeypatch):
    now = [10**18]
    monkeypatch.setattr(time, "time_ns", lambda: now[0])
    stream = made(tmp_path / "s", count=0, retain=1000.0)
    with stream.producer("p") as p:
        for at in range(38):
            now[0] += 10**9 * (20 if at < 18 else 3)
            p.insert({"at": at})
    assert stream.compact(grace=0).after == 24
    assert names(stream)[-4:] == ["021-030", "031-040", "041", "042"]


def test_times_of_wrong_clocks_stay_as_they_were_taken(tmp_path, monkeypatch):
    stream, right = made(tmp_path / "s", count=0), time.time_ns

    def fill():
        with stream.producer("p") as p:
            for at in range(20):
                ahead = 10**18 if at == 7 else 0
                monkeypatch.setattr(time, "time_ns", lambda ahead=ahead: right() + ahead)
                p.insert({"at": at})

    with pytest.warns(RuntimeWarning, match="its writer's clock"):
        fill()
    wanted = stream.read(stream.start)[0]
    stream.compact(grace=0)
    assert same(stream.read(stream.start)[0], wanted)
    assert [one.number for one in stream.mistimed()] == [11]
