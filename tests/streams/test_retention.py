"""A log whose oldest entries are deleted: what is left is read as before, and nobody misses what it needs."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import WindrowError
from windrow.streams import NamedStream, Ordering
from windrow.streams import stream as stream_module

NUMBERS = pa.schema([("at", pa.int64()), ("value", pa.string())])


def made(folder, count=5, **options):
    stream = NamedStream.create(folder, NUMBERS, "at", unit="seconds", **options)
    with stream.producer("p") as p:
        for at in range(count):
            p.insert({"at": at, "value": f"value {at}"})
    return stream


@pytest.fixture
def stream(tmp_path):
    return made(tmp_path / "s")


def refused(condition):
    return pytest.raises(WindrowError, match=rf"\[{condition}\]")


def values(stream, position=None):
    batch, _ = stream.read(stream.start if position is None else position)
    return [row["at"] for row in batch.rows.to_pylist()]


def numbers(stream):
    return sorted(int(path.stem) for path in stream.log.files.iterdir())


def test_what_is_old_is_deleted_and_the_rest_goes_on(stream):
    assert stream.trim(older_than=3600) == 0
    before = stream.position()
    assert stream.trim(older_than=0) == 7  # five rows, and that the producer opens and closes
    assert numbers(stream) == [7]  # by its checksum the next file is known to follow
    assert stream.start == before
    assert values(stream) == []
    again = NamedStream.open(stream.folder)
    with again.producer("p") as p:
        assert p.next_sequence == 6
        assert p.insert({"at": 4}, sequence=5).duplicates == 1
        assert p.insert({"at": 3}).rejected == 1
        assert p.insert({"at": 9}).admitted == 1
    assert values(stream) == [9]
    assert again.check() == []


def test_producers_that_said_nothing_meanwhile_go_on(stream):
    silent, asleep = stream.producer("silent"), stream.producer("asleep", lease=0.3)
    silent.insert({"at": 5})
    asleep.insert({"at": 5})
    with stream.producer("q") as q:
        q.insert({"at": 7})
        asleep._heart.stop()  # so that its lease ends
        until = time.monotonic() + 30
        while "asleep" not in stream.expire() and time.monotonic() < until:
            time.sleep(0.05)
        q.insert({"at": 8})
    last = stream.log.last()
    assert stream.trim(older_than=0) == last
    assert silent.insert({"at": 4}).rejected == 1  # by its own bound, which it keeps
    assert silent.insert([{"at": 9}], sequence=1).duplicates == 1
    assert silent.insert({"at": 9}).admitted == 1
    assert asleep.insert({"at": 9}).admitted == 1
    stream.trim(older_than=0)
    silent.close()
    asleep.close()
    assert stream.check() == []


def test_only_what_is_older_is_deleted(stream, monkeypatch):
    monkeypatch.setattr(time, "time_ns", lambda: 10**18)
    monkeypatch.setattr(time, "time", lambda: 10.0**9)
    later = made(stream.folder.with_name("later"), count=2)
    monkeypatch.setattr(time, "time_ns", lambda: 10**18 + 10 * 10**9)
    with later.producer("p") as p:
        p.insert({"at": 5})
    assert later.trim(older_than=5) == 4  # open, two rows, close
    assert values(later) == [5]


def test_a_position_that_is_gone_says_so(stream):
    _, early = stream.read(stream.start, 2)
    stream.trim(older_than=0)
    with refused("LOG_TRIMMED") as error:
        stream.read(early)
    assert "it begins after file 7, but file 2 is needed" in error.value.message
    with refused("LOG_TRIMMED"):
        stream.position(3)
    with refused("LOG_TRIMMED"):
        stream.log.read(1)


def test_what_a_query_needs_stays(stream, tmp_path):
    stream.note_reader("one", 3, tmp_path / "checkpoint")
    stream.note_reader("other", 5, tmp_path / "elsewhere")
    assert stream.trim(older_than=0) == 3
    assert values(stream) == [2, 3, 4]
    assert stream.trim(older_than=0) == 0
    stream.note_reader("one", 6, tmp_path / "checkpoint")
    assert [(one.name, one.number, Path(one.checkpoint).name) for one in stream.readers()] == [
        ("one", 6, "checkpoint"),
        ("other", 5, "elsewhere"),
    ]
    assert stream.forget("other")
    assert not stream.forget("other")
    assert stream.trim(older_than=0) == 3
    assert values(stream) == [] == stream.check()


def test_a_query_without_a_checkpoint_of_its_own_is_waited_for_while_it_runs(stream, tmp_path):
    (tmp_path / "temporary").mkdir()
    stream.note_reader("one", 1, tmp_path / "temporary", is_temporary=True)
    assert stream.trim(older_than=0) == 1
    (tmp_path / "temporary").rmdir()
    assert stream.trim(older_than=0) == 6
    assert stream.readers() == []


def test_a_damaged_note_of_a_reader_keeps_all(stream):
    stream.note_reader("one", 7, stream.folder)
    (path,) = (stream.folder / "readers").iterdir()
    path.write_text('{"name": "on')
    with refused("TORN_FILE"):
        stream.trim(older_than=0)
    assert values(stream) == [0, 1, 2, 3, 4]


def test_a_process_that_is_killed_leaves_no_gap(stream, monkeypatch):
    monkeypatch.setattr(NamedStream, "_drop_files", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        stream.trim(older_than=0)
    monkeypatch.undo()
    assert numbers(stream) == [1, 2, 3, 4, 5, 6, 7]
    again = NamedStream.open(stream.folder)
    assert values(again) == [] == again.check()
    (stream.log.path(2)).unlink()  # as one that was killed a moment later
    (stream.log.path(5)).unlink()
    assert values(NamedStream.open(stream.folder)) == [] == again.check()
    with again.producer("p") as p:
        p.insert({"at": 9})
    assert again.trim(older_than=0) == 3
    assert numbers(again) == [10]


def test_the_first_position_has_to_be_whole(stream):
    stream.trim(older_than=0)
    (path,) = (stream.folder / "bases").iterdir()
    text = path.read_text()
    path.write_text(text[:20])
    with refused("TORN_FILE"):
        stream.read(stream.start)
    other = made(stream.folder.with_name("other"), count=5)
    other.trim(older_than=0)
    (of_other,) = (other.folder / "bases").iterdir()
    path.write_text(of_other.read_text())
    with refused("FOREIGN_FILE"):
        stream.position()
    path.write_text(text)
    assert stream.position().number == 7


def test_a_file_that_is_missing_after_the_first_is_still_noticed(stream):
    stream.note_reader("one", 3, stream.folder)
    stream.trim(older_than=0)
    stream.log.path(5).unlink()
    with refused("MISSING_FILE"):
        NamedStream.open(stream.folder)
    assert [problem.condition for problem in stream.log.check()] == ["MISSING_FILE"]
    stream.log.path(3).unlink()
    with refused("MISSING_FILE"):
        stream.read(stream.start)


def test_producers_delete_what_is_over(tmp_path, monkeypatch):
    monkeypatch.setattr("windrow.streams.producer._BETWEEN_TRIMS", 0.0)
    stream = made(tmp_path / "s", retain=0.2)
    assert NamedStream.open(stream.folder).definition.retain == 0.2
    with stream.producer("other", lease=0.3):
        until = time.monotonic() + 30
        while (left := len(numbers(stream))) > 2 and time.monotonic() < until:
            time.sleep(0.05)
    assert left <= 2  # a lease that is renewed after that adds entries
    assert stream.check() == []


def test_a_stream_for_ever_needs_a_time(stream, tmp_path):
    with refused("INVALID_ARGUMENT") as error:
        stream.trim()
    assert "the stream has no RETAIN" in error.value.message
    assert stream.retain() == 0
    with refused("INVALID_ARGUMENT"):
        stream.trim(older_than=-1)
    with refused("INVALID_ARGUMENT"):
        NamedStream.create(tmp_path / "t", NUMBERS, "at", retain=0)


said = st.one_of(
    st.tuples(st.just("row"), st.sampled_from("ab"), st.integers(0, 9)),
    st.tuples(st.just("bound"), st.sampled_from("ab"), st.integers(0, 9)),
    st.tuples(st.just("pattern"), st.sampled_from("ab"), st.integers(0, 9)),
    st.tuples(st.sampled_from(["idle", "close", "open"]), st.sampled_from("ab"), st.just(0)),
)


@given(
    st.lists(said, max_size=12),
    st.integers(0, 30),
    st.integers(1, 5),
    st.sampled_from([Ordering.ordered(), Ordering.lagging(2), Ordering.unordered()]),
)
def test_what_became_of_rows_does_not_depend_on_what_was_deleted(
    tmp_path_factory, entries, reached, some, ordering
):
    stream = NamedStream.create(
        tmp_path_factory.mktemp("s") / "s", NUMBERS, "at", unit="seconds", ordering=ordering
    )
    producers = {}
    for kind, name, at in entries:
        if name not in producers:
            producers[name] = stream.producer(name)
        match kind:
            case "row":
                producers[name].insert({"at": at, "value": str(at)})
            case "bound":
                producers[name].bound(at)
            case "pattern":
                producers[name].punctuate(value=str(at))
            case "idle":
                producers[name].idle()
            case "close":
                producers.pop(name).close()
    for producer in producers.values():
        producer.leave()
    last = stream.log.last()
    cut = min(reached, last)
    _, until = stream.read(stream.start, cut) if cut else (None, stream.start)
    wanted, end = stream.read(until)
    if cut:
        stream.note_reader("one", cut, stream.folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_module, "_FILES_AT_ONCE", some)
        assert stream.trim(older_than=0) == (cut or last)
    if not cut:
        until, wanted, end = end, stream.read(end)[0], end
    assert stream.start == until
    found, position = NamedStream.open(stream.folder).read(stream.start)
    assert position == end
    assert found.entries.equals(wanted.entries)
    assert found.decision.tolist() == wanted.decision.tolist()
    assert found.violated.tolist() == wanted.violated.tolist()
    assert stream.check() == []
    assert replace(position, checksum=None).number == last
