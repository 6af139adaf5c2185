"""A log that was changed behind its readers' and producers' backs is noticed, and the file is named."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams.recorded import NUMBERS, everything, refused, values
from windrow.errors import InputError
from windrow.streams import NamedStream, Position
from windrow.streams.chain import BLANK


@pytest.fixture
def stream(numbers) -> NamedStream:
    return filled(numbers)


def filled(stream: NamedStream) -> NamedStream:
    """Files 1 to 8: it is opened, has six rows, is closed."""
    with stream.producer("p") as p:
        for at in range(6):
            p.insert({"at": at, "value": at})
    return stream


def insert(stream: NamedStream, *numbers: int, name: str = "q") -> None:
    with stream.producer(name) as p:
        for value in numbers:
            p.insert({"at": 100 + value, "value": value})


def conditions(stream: NamedStream) -> list[str]:
    return [error.condition for error in stream.check()]


def cut(stream: NamedStream, number: int) -> None:
    """Delete all files from one on."""
    while stream.log.path(number).exists():
        stream.log.path(number).unlink()
        number += 1


def without_leases(stream: NamedStream) -> None:
    for folder in (stream.folder / "leases").iterdir():
        shutil.rmtree(folder)


def as_before(stream: NamedStream, until: int) -> None:
    """Have files as earlier versions wrote them: they say neither their number nor what is before them."""
    for number in range(1, until + 1):
        path = stream.log.path(number)
        content = path.read_bytes().replace(b"windrow.format\x18\x013", b"windrow.format\x18\x012")
        place = content.rfind(b"windrow.number=")
        mark = b"windrow.crc32=" + b"0" * 10
        old = b"x" * (len(BLANK) - len(mark)) + mark
        content = content[:place] + old + content[place + len(BLANK) :]
        assert content.count(b"windrow.format\x18\x012") == 1
        path.write_bytes(content[: -len(BLANK)] + content[-len(BLANK) :])
        seal(path)


def seal(path: Path) -> None:
    content = path.read_bytes()
    place = content.rfind(b"windrow.crc32=") + len(b"windrow.crc32=")
    blank = content[:place] + b"0" * 10 + content[place + 10 :]
    path.write_bytes(content[:place] + b"%010d" % zlib.crc32(blank) + content[place + 10 :])


# -- readers -----------------------------------------------------------------------------------------


def test_a_log_that_was_rolled_back_is_noticed_by_who_had_read_beyond(stream):
    _, position = stream.read(stream.start, files=7)
    cut(stream, 5)
    without_leases(stream)
    with refused("MISSING_FILE") as caught:
        stream.read(position)
    assert str(stream.log.path(7)) in caught.value.message
    insert(stream, 10, 11, 12)
    for known in (position, Position.from_json(position.to_json())):
        with refused("LOG_CHANGED") as caught:
            stream.read(known)
        assert str(stream.log.path(7)) in caught.value.message
    assert values(stream) == [0, 1, 2, 10, 11, 12]


def test_a_copy_of_its_neighbour_is_no_file_of_a_log(stream):
    shutil.copy(stream.log.path(5), stream.log.path(6))
    with refused("MISPLACED_FILE") as caught:
        everything(stream)
    assert str(stream.log.path(6)) in caught.value.message
    assert conditions(stream) == ["MISPLACED_FILE"]


def test_files_that_were_swapped_are_both_named(stream):
    one, other = stream.log.path(4).read_bytes(), stream.log.path(5).read_bytes()
    stream.log.path(4).write_bytes(other)
    stream.log.path(5).write_bytes(one)
    assert conditions(stream) == ["MISPLACED_FILE", "MISPLACED_FILE"]
    with refused("MISPLACED_FILE") as caught:
        everything(stream)
    assert str(stream.log.path(4)) in caught.value.message


def test_a_file_of_the_same_number_from_a_copy_that_went_on_is_noticed(stream, tmp_path):
    copy = NamedStream(tmp_path / "copy", stream.definition)
    shutil.copytree(stream.folder, copy.folder)
    insert(stream, 10, 11, 12)
    insert(copy, 20, 21, 22)
    shutil.copy(copy.log.path(10), stream.log.path(10))
    with refused("LOG_CHANGED") as caught:
        everything(stream)
    assert str(stream.log.path(10)) in caught.value.message
    assert conditions(stream) == ["LOG_CHANGED"]


# -- producers ---------------------------------------------------------------------------------------


def test_a_producer_adds_nothing_to_a_log_that_is_not_the_one_it_wrote(stream):
    with stream.producer("q") as q:
        q.insert({"at": 10, "value": 10})
        content = stream.log.path(10).read_bytes()
        stream.log.path(10).unlink()
        with refused("MISSING_FILE") as caught:
            q.insert({"at": 11, "value": 11})
        assert str(stream.log.path(10)) in caught.value.message
        insert(stream, 12, name="r")
        with refused("LOG_CHANGED") as caught:
            q.insert({"at": 11, "value": 11})
        assert str(stream.log.path(10)) in caught.value.message
        cut(stream, 10)
        stream.log.path(10).write_bytes(content)
        q.insert({"at": 11, "value": 11})
    assert values(stream)[6:] == [10, 11]
    assert stream.check() == [], "whoever wrote into the other log has left it"


def test_a_producer_fills_no_gap(stream):
    with stream.producer("q") as q:
        insert(stream, 10, 11, name="r")
        content = stream.log.path(10).read_bytes()
        stream.log.path(10).unlink()
        with refused("MISSING_FILE") as caught:
            q.insert({"at": 12, "value": 12})
        assert str(stream.log.path(10)) in caught.value.message
        assert not stream.log.path(10).exists()
        stream.log.path(10).write_bytes(content)
    assert stream.check() == []


@pytest.mark.parametrize("damage", ["copied", "torn"])
def test_a_producer_does_not_go_on_after_a_last_file_that_is_damaged(stream, damage):
    last = stream.log.path(8)
    if damage == "copied":
        shutil.copy(stream.log.path(7), last)
    else:
        last.write_bytes(last.read_bytes()[:-1])
    with refused("MISPLACED_FILE" if damage == "copied" else "TORN_FILE") as caught:
        insert(stream, 9)
    assert str(last) in caught.value.message
    assert not stream.log.path(9).exists()


def test_leases_know_the_log_that_they_were_taken_of(stream):
    insert(stream, 9, 10)
    insert(stream, 11, name="p")
    cut(stream, 5)
    with refused("MISSING_FILE"):
        stream.producer("p")
    insert(stream, 12, 13, 14, 15, name="new")
    assert "LOG_CHANGED" in conditions(stream)
    with refused("MISSING_FILE"):
        insert(stream, 16, name="p")
    insert(stream, *range(20, 30), name="new")
    with refused("LOG_CHANGED") as caught:
        insert(stream, 16, name="p")
    assert str(stream.log.path(12)) in caught.value.message


def test_a_lease_that_is_a_copy_of_another_is_named(stream):
    insert(stream, 9)
    shutil.copy(stream.leases / "q" / f"{1:020d}", stream.leases / "p" / f"{2:020d}")
    assert conditions(stream) == ["FOREIGN_FILE"]
    with refused("FOREIGN_FILE"):
        stream.producer("p")


def test_a_producer_that_died_is_logged_as_idle_where_its_last_leases_were_lost(stream):
    """Under the generation that is left, what is logged would be left out as that of an old lease."""
    p = stream.producer("p", lease=1000)
    p._heart.stop()
    folder = stream.leases / "p"
    (folder / f"{2:020d}").unlink()
    assert conditions(stream) == ["MISSING_FILE"]
    os.utime(folder / f"{1:020d}", (1, 1))
    assert stream.expire() == ["p"]
    assert "p" not in stream.position().watermark.producers, "it had promised nothing, and is open no more"
    assert stream.check() == []


def test_positions_that_were_kept_know_the_log_that_they_are_of(stream, monkeypatch):
    monkeypatch.setattr("windrow.streams.stream._BETWEEN_POSITIONS", 4)
    insert(stream, 10)
    assert [int(path.stem) for path in (stream.folder / "positions").iterdir()] == [9]
    cut(stream, 9)
    assert conditions(stream) == ["MISSING_FILE"]
    with refused("MISSING_FILE"):
        stream.producer("r")
    assert stream.log.last() == 8
    (kept,) = (stream.folder / "positions").iterdir()
    aside = kept.rename(stream.folder / "aside")
    insert(stream, 11)
    aside.rename(kept)
    assert conditions(stream) == ["LOG_CHANGED"]
    with refused("LOG_CHANGED"):
        stream.producer("r")
    assert stream.log.last() == 11


def test_a_kept_position_of_which_a_digit_changed_is_read_past(stream, monkeypatch):
    monkeypatch.setattr("windrow.streams.stream._BETWEEN_POSITIONS", 4)
    insert(stream, 10)
    (kept,) = (stream.folder / "positions").iterdir()
    wanted = stream.position()
    text = kept.read_text(encoding="utf-8")
    kept.write_text(text.replace('"admitted": 6', '"admitted": 7'), encoding="utf-8")
    assert kept.read_text(encoding="utf-8") != text
    assert stream.position() == wanted


# -- logs of earlier versions ------------------------------------------------------------------------


def test_logs_and_positions_of_earlier_versions_are_gone_on_with(stream):
    as_before(stream, 8)
    _, end = everything(stream)
    assert values(stream) == list(range(6))
    told = json.loads(end.to_json())
    del told["checksum"]
    old = Position.from_json(json.dumps(told | {"version": 1}))
    assert (old.checksum, old) == (None, replace(end, checksum=None))
    insert(stream, 10, 11)
    assert stream.check() == []
    batch, position = stream.read(old)
    assert batch.rows.column("value").to_pylist() == [10, 11]
    assert position == everything(stream)[1]
    stream.log.path(8).write_bytes(stream.log.path(7).read_bytes())
    with refused("LOG_CHANGED") as caught:
        everything(stream)
    assert str(stream.log.path(9)) in caught.value.message


def test_a_file_of_an_earlier_version_has_no_place_among_those_of_this_one(stream):
    sound = files_of(stream)
    as_before(stream, 4)
    old = stream.log.path(4).read_bytes()
    assert conditions(stream) == ["LOG_CHANGED"], "file 5 follows another file 4"
    for number, content in sound.items():
        stream.log.path(number).write_bytes(content)
    position = stream.position(7)
    stream.log.path(8).write_bytes(old)
    assert conditions(stream) == ["FOREIGN_FILE"]
    for known in (stream.start, position):
        with refused("FOREIGN_FILE") as caught:
            stream.read(known)
        assert str(stream.log.path(8)) in caught.value.message


# -- anything ----------------------------------------------------------------------------------------

SIZE = 8
DAMAGES = st.sampled_from(["cut", "swap", "copy", "truncate", "flip", "other log", "roll back", "fork"])


def files_of(stream: NamedStream) -> dict[int, bytes]:
    return {int(path.stem): path.read_bytes() for path in stream.log.files.iterdir()}


def damage(stream: NamedStream, kind: str, draw, other: NamedStream) -> None:
    number = draw(st.integers(1, SIZE))
    path = stream.log.path(number)
    content = path.read_bytes()
    if kind in ("cut", "roll back"):
        cut(stream, number)
        if kind == "roll back":
            insert(stream, *range(100, 100 + draw(st.integers(0, SIZE))), name="after")
    elif kind == "swap":
        second = stream.log.path(draw(st.integers(1, SIZE)))
        path.write_bytes(second.read_bytes())
        second.write_bytes(content)
    elif kind == "copy":
        path.write_bytes(stream.log.path(draw(st.integers(1, SIZE))).read_bytes())
    elif kind == "truncate":
        path.write_bytes(content[: draw(st.integers(0, len(content) - 1))])
    elif kind == "flip":
        place = draw(st.integers(0, len(content) - 1))
        changed = content[place] ^ draw(st.integers(1, 255))
        path.write_bytes(content[:place] + bytes([changed]) + content[place + 1 :])
    else:
        path.write_bytes(other.log.path(number).read_bytes())


@given(data=st.data(), kind=DAMAGES)
@settings(deadline=None, max_examples=40)
def test_damage_is_noticed_by_who_has_read_beyond_and_by_who_reads_all(data, kind):
    with tempfile.TemporaryDirectory() as folder:
        stream = filled(NamedStream.create(Path(folder) / "s", NUMBERS, "at", unit="seconds"))
        positions = [stream.start]
        while positions[-1].number < SIZE:
            positions.append(stream.read(positions[-1], files=1)[1])
        sound = files_of(stream)
        assert stream.check() == []
        if kind == "fork":
            # a copy of the same log that was rolled back, and went on in another way
            other = NamedStream(Path(folder) / "fork", stream.definition)
            shutil.copytree(stream.folder, other.folder)
            cut(other, data.draw(st.integers(1, SIZE)))
            insert(other, *range(50, 50 + SIZE))
        else:
            other = filled(NamedStream.create(Path(folder) / "other", NUMBERS, "at", unit="seconds"))
        damage(stream, kind, data.draw, other)
        found = files_of(stream)
        changed = sorted(number for number in sound if found.get(number) != sound[number])
        problems = [error.message for error in stream.check()]
        for position in positions:
            # whoever has read a file looks at its end, and at all of those after it
            if not any(number >= max(position.number, 1) for number in changed):
                continue
            try:
                batch, after = stream.read(position)
            except InputError as error:
                told = error.message
            else:
                told = ""
            if told:
                named = [int(name) for name in re.findall(r"(\d{20})\.parquet", told)]
                assert any(number >= position.number for number in named), told
                continue
            # the file at the position was damaged in its rows: check knows, and so does who reads it
            is_at_rows = changed == [position.number] and position.number > 0 and problems
            # or the log is a whole one: that of an earlier time, or of a copy up to its end
            assert is_at_rows or not problems, (kind, changed, position.number)
            if not is_at_rows:
                assert position.number < changed[0], (kind, changed, position.number)
                assert after.number == max(found, default=0), "all that is there is read"
                assert batch.number.tolist() == sorted(batch.number.tolist())
        if changed and kind in ("swap", "copy", "truncate", "flip", "other log"):
            assert problems, changed
