"""The log of a named stream on disk: what is wrong with files is told, and full disks lose nothing."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import ExecutionError, InputError, WindrowError
from windrow.streams import NamedStream, Ordering
from windrow.streams.definition import FORMAT

NUMBERS = pa.schema([("at", pa.int64()), ("value", pa.string())])


@pytest.fixture
def stream(tmp_path) -> NamedStream:
    return filled(tmp_path / "s")


def filled(folder, count: int = 3) -> NamedStream:
    stream = NamedStream.create(folder, NUMBERS, "at", unit="seconds")
    with stream.producer("p") as p:
        for at in range(count):
            p.insert({"at": at, "value": f"value {at}"})
    return stream


def everything(stream: NamedStream) -> list[dict]:
    return stream.read(stream.start)[0].rows.to_pylist()


def refused(condition: str):
    return pytest.raises(WindrowError, match=rf"\[{condition}\]")


def test_any_reader_of_parquet_reads_the_log(stream):
    table = pq.read_table(stream.folder / "log")
    rows = table.filter(pa.compute.equal(table.column("__kind"), 0))
    assert rows.select(["at", "value"]).to_pylist() == everything(stream)


def test_a_stream_is_found_again_as_it_was_made(tmp_path):
    kinds = {
        "ts": pa.timestamp("us", "UTC"),
        "plain": pa.timestamp("us"),
        "n": pa.decimal128(10, 2),
        "tags": pa.list_(pa.string()),
        "pair": pa.struct([("a", pa.int8()), ("b", pa.map_(pa.string(), pa.date32()))]),
        "raw": pa.binary(),
        "ok": pa.bool_(),
        "x": pa.float32(),
        "span": pa.duration("us"),
    }
    made = NamedStream.create(tmp_path / "s", pa.schema(kinds.items()), "TS", ordering=Ordering.lagging(5))
    found = NamedStream.open(tmp_path / "s")
    assert found == made
    assert found.definition.rowtime.column == "ts"
    with found.producer("p") as p:
        assert p.insert(pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC"))})).admitted == 1
    assert everything(found)[0]["pair"] is None


@pytest.mark.parametrize(
    ("columns", "rowtime", "unit", "condition"),
    [
        ([("a", pa.int64())], "b", None, "UNKNOWN_ROWTIME"),
        ([("a", pa.string())], "a", None, "INVALID_ROWTIME"),
        ([("a", pa.timestamp("ns"))], "a", None, "INVALID_ROWTIME"),
        ([("a", pa.date32())], "a", "days", "INVALID_ROWTIME"),
        ([("a", pa.int64())], "a", "fortnights", "UNKNOWN_UNIT"),
        ([("a", pa.int64()), ("A", pa.int64())], "a", None, "DUPLICATE_COLUMN"),
        ([("a", pa.int64()), ("__b", pa.int64())], "a", None, "RESERVED_NAME"),
        ([("a", pa.int64()), ("b", pa.month_day_nano_interval())], "a", None, "UNSUPPORTED_TYPE"),
    ],
)
def test_definitions_that_mean_nothing_are_refused(tmp_path, columns, rowtime, unit, condition):
    with refused(condition):
        NamedStream.create(tmp_path / "s", pa.schema(columns), rowtime, unit=unit)
    assert not (tmp_path / "s").exists()


def test_a_folder_holds_one_stream_and_nothing_else(stream, tmp_path):
    with refused("STREAM_ALREADY_EXISTS"):
        NamedStream.create(stream.folder, NUMBERS, "at")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine", encoding="utf-8")
    with refused("FOLDER_NOT_EMPTY"):
        NamedStream.create(tmp_path / "full", NUMBERS, "at")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes.txt"]
    for nowhere in (tmp_path / "full", tmp_path / "none", tmp_path / "full" / "notes.txt"):
        with refused("STREAM_NOT_FOUND"):
            NamedStream.open(nowhere)


def test_a_stream_that_was_half_made_can_be_made(tmp_path):
    for part in ("log", "pending"):
        (tmp_path / "s" / part).mkdir(parents=True)
    (tmp_path / "s" / "pending" / "x.tmp").write_bytes(b"{")
    assert len(everything(filled(tmp_path / "s"))) == 3


# -- files that are torn, foreign or gone ------------------------------------------------------------


def test_a_torn_file_is_named_wherever_it_was_cut(stream):
    path = stream.log.path(3)
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with refused("TORN_FILE"):
            stream.log.read(3)
    path.write_bytes(content)
    assert len(everything(stream)) == 3


@pytest.mark.slow
def test_every_byte_that_has_changed_is_noticed(stream):
    path = stream.log.path(3)
    content = path.read_bytes()
    for place in range(len(content)):
        for change in (0x01, 0x80, 0xFF):
            path.write_bytes(content[:place] + bytes([content[place] ^ change]) + content[place + 1 :])
            with pytest.raises(InputError) as caught:
                stream.log.read(3)
            assert caught.value.condition in ("TORN_FILE", "FOREIGN_FILE")
    path.write_bytes(content)
    assert stream.log.read(3).num_rows == 1


def test_rows_may_hold_what_seals_a_file(tmp_path):
    stream = NamedStream.create(tmp_path / "s", NUMBERS, "at")
    with stream.producer("p") as p:
        p.insert({"at": 1, "value": "windrow.crc32=0000000000 PAR1"})
    assert everything(stream) == [{"at": 1, "value": "windrow.crc32=0000000000 PAR1"}]


def test_blocks_of_zeros_as_power_failures_leave_them_are_noticed(stream):
    path = stream.log.path(3)
    content = path.read_bytes()
    for start in range(0, len(content), 64):
        path.write_bytes(content[:start] + bytes(len(content) - start))
        with refused("TORN_FILE"):
            stream.log.read(3)


def test_reading_stops_at_a_torn_file_and_the_rows_before_it_can_be_read(stream):
    path = stream.log.path(3)
    path.write_bytes(path.read_bytes()[:-1])
    with refused("TORN_FILE") as caught:
        everything(stream)
    assert str(path) in caught.value.message
    assert [row["at"] for row in stream.read(stream.start, files=2)[0].rows.to_pylist()] == [0]
    with refused("TORN_FILE"):
        stream.producer("q")
    assert [error.condition for error in stream.check()] == ["TORN_FILE"]


def test_a_missing_file_is_named_and_no_other_takes_its_place(stream):
    content = stream.log.path(3).read_bytes()
    stream.log.path(3).unlink()
    with refused("MISSING_FILE"):
        NamedStream.open(stream.folder)
    assert [error.condition for error in stream.check()] == ["MISSING_FILE"]
    stream.log.path(3).write_bytes(content)
    assert len(everything(NamedStream.open(stream.folder))) == 3


@pytest.mark.parametrize("part", ["log", "leases", "positions", "pending"])
def test_a_folder_that_is_gone_is_named(stream, part):
    (stream.folder / part).rename(stream.folder / "elsewhere")
    with refused("MISSING_FILE") as caught:
        NamedStream.open(stream.folder)
    assert part in caught.value.message
    assert ("restore" in caught.value.hint) == (part in ("log", "leases"))


def test_a_stream_that_is_deleted_while_it_is_written_and_read_is_told(stream, tmp_path):
    with stream.producer("q") as q:
        _, position = stream.read(stream.start)
        stream.folder.rename(tmp_path / "elsewhere")
        for call in (lambda: q.insert({"at": 5}), lambda: stream.read(position)):
            with refused("MISSING_FILE") as caught:
                call()
            assert str(stream.log.files) in caught.value.message


def test_a_file_that_cannot_be_read_is_named(stream):
    path = stream.log.path(3)
    path.unlink()
    path.mkdir()
    with refused("UNREADABLE_FILE"):
        stream.log.read(3)


def test_foreign_files_are_told_apart(stream, tmp_path):
    assert stream.check() == []
    path, content = stream.log.path(3), stream.log.path(3).read_bytes()
    other = filled(tmp_path / "other")
    path.write_bytes(other.log.path(3).read_bytes())
    with refused("FOREIGN_FILE") as caught:
        stream.log.read(3)
    assert "of another stream" in caught.value.message
    pq.write_table(pa.table({"at": [1], "value": ["x"]}), path)
    with refused("FOREIGN_FILE") as caught:
        stream.log.read(3)
    assert "Windrow did not write it" in caught.value.message
    path.write_bytes(content)
    for name in ("copy of 3.parquet", f"{0:020d}.parquet", ".DS_Store", "_SUCCESS"):
        (stream.folder / "log" / name).write_bytes(content)
    assert sorted(error.message.split(": ")[0].rpartition("/")[2] for error in stream.check()) == [
        f"{0:020d}.parquet is not a file of this stream",
        "copy of 3.parquet is not a file of this stream",
    ]
    assert len(everything(NamedStream.open(stream.folder))) == 3


def test_another_format_is_refused(stream):
    path = stream.folder / "stream.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(f'"version": {FORMAT}', f'"version": {FORMAT + 1}'), encoding="utf-8")
    with refused("STREAM_VERSION"):
        NamedStream.open(stream.folder)
    for torn in (text[:40], ""):
        path.write_text(torn, encoding="utf-8")
        with refused("TORN_FILE"):
            NamedStream.open(stream.folder)
    path.write_text(json.dumps({"format": "something else"}), encoding="utf-8")
    with refused("FOREIGN_FILE"):
        NamedStream.open(stream.folder)


WITHOUT = ("version", "identity", "schema", "rowtime", "unit", "ordering")
OTHERS = {
    "version": (None, 3, "?", [], {}),
    "identity": (None, 7, [], {}),
    "schema": (None, 7, "", "?", "AAAA", "not base64!", [], {}),
    "rowtime": (None, 7, "?", [], {}),
    "unit": (None, 7, "?", [], {}),
    "ordering": (None, 7, "?", [], {}, {"lag": "?", "is_promise": True}, {"lag": -1, "is_promise": False}),
    "idle": (-1, "?", [], {}),
    "domain": (7, [7], ["?"], ['{"none": {}}']),
    "schemes": (7, [7], ["?"], [{}], [{"when": "?", "ends": []}]),
}


@pytest.mark.parametrize("content", [b"", b" \n", bytes(range(256)), b"\xff\xfe{\x00"])
def test_a_description_that_is_no_json_is_an_error_that_names_the_file(stream, content):
    (stream.folder / "stream.json").write_bytes(content)
    with refused("TORN_FILE") as caught:
        NamedStream.open(stream.folder)
    assert f"{stream.folder / 'stream.json'} is incomplete" in caught.value.message


def test_a_damaged_description_is_an_error_that_names_the_file(stream):
    path = stream.folder / "stream.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    for name in WITHOUT:
        path.write_text(json.dumps({key: told[key] for key in told if key != name}), encoding="utf-8")
        with refused("TORN_FILE") as caught:
            NamedStream.open(stream.folder)
        assert caught.value.message == f"{path} is damaged: {name} is missing"
    cut = {**OTHERS, "schema": (*OTHERS["schema"], told["schema"][:-8], told["schema"][::-1])}
    for name, values in cut.items():
        for value in values:
            path.write_text(json.dumps(told | {name: value}), encoding="utf-8")
            with refused("STREAM_VERSION" if name == "version" else "TORN_FILE") as caught:
                NamedStream.open(stream.folder)
            assert str(path) in caught.value.message
            assert caught.value.hint


def test_producers_go_on_where_the_leases_were_lost(stream):
    with stream.producer("p"):
        pass
    for path in (stream.folder / "leases" / "p").iterdir():
        path.unlink()
    with stream.producer("p") as p:
        assert p.insert({"at": 5, "value": "after"}).sequence == 4
    assert everything(stream)[-1] == {"at": 5, "value": "after"}


def test_a_lease_that_is_none_is_named(stream):
    path = stream.folder / "leases" / "p" / f"{99:020d}"
    path.write_text("{", encoding="utf-8")
    with refused("FOREIGN_FILE"):
        stream.producer("p")


def test_files_that_processes_left_while_writing_are_deleted_after_a_day(stream):
    old, new = (stream.folder / "pending" / name for name in ("old.tmp", "new.tmp"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 90_000,) * 2)
    stream.producer("q").close()
    assert (old.exists(), new.exists()) == (False, True)


# -- disks that are full, or fail --------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder):
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"no small file system can be mounted: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_loses_no_row_that_is_in_and_takes_no_half_one(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        stream = NamedStream.create(disk / "s", NUMBERS, "at", ordering=Ordering.ordered())
        p = stream.producer("p", lease=60)
        acknowledged = []
        while True:
            try:
                p.insert({"at": len(acknowledged), "value": os.urandom(2000).hex()})
            except ExecutionError as error:
                condition = error.condition
                break
            acknowledged.append(len(acknowledged))
        assert condition == "DISK_FULL"
        assert [row["at"] for row in everything(stream)] == acknowledged
        assert list((stream.folder / "pending").iterdir()) == []
        with pytest.raises(ExecutionError, match="DISK_FULL"):
            p.insert({"at": 10**6, "value": os.urandom(50_000).hex()})
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        assert p.insert({"at": 10**6, "value": "after"}).admitted == 1
        p.close()
        assert [row["at"] for row in everything(stream)] == [*acknowledged, 10**6]
        assert stream.check() == []


@pytest.mark.parametrize("call", ["fsync", "link"])
@pytest.mark.parametrize(
    ("number", "condition"), [(errno.ENOSPC, "DISK_FULL"), (errno.EIO, "STREAM_NOT_WRITTEN")]
)
def test_where_writing_fails_the_log_stays_as_it_was(stream, monkeypatch, call, number, condition):
    def failing(*arguments):
        raise OSError(number, os.strerror(number))

    with stream.producer("q") as q:
        q.insert({"at": 5, "value": "before"})
        last = stream.log.last()
        monkeypatch.setattr(os, call, failing)
        with refused(condition):
            q.insert({"at": 6, "value": "lost"})
        monkeypatch.undo()
        assert stream.log.last() == last
        assert list((stream.folder / "pending").iterdir()) == []
        assert q.insert({"at": 6, "value": "after"}).admitted == 1
    assert [row["value"] for row in everything(stream)][-2:] == ["before", "after"]


def test_where_the_folder_cannot_be_flushed_the_rows_are_in_and_the_error_says_so(stream, monkeypatch):
    with stream.producer("q") as q:
        flush = os.fsync

        def failing(handle):
            if os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112 - a link that is no path
                raise OSError(errno.EIO, "Input/output error")
            flush(handle)

        monkeypatch.setattr(os, "fsync", failing)
        with refused("STREAM_NOT_FLUSHED"):
            q.insert({"at": 5, "value": "in"})
        monkeypatch.undo()
        q.insert({"at": 6, "value": "next"})
    assert [row["value"] for row in everything(stream)][-2:] == ["in", "next"]


def test_file_systems_without_hard_links_are_told(tmp_path, monkeypatch):
    def no_links(*arguments):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(ExecutionError) as caught:
        NamedStream.create(tmp_path / "s", NUMBERS, "at")
    assert caught.value.condition == "STREAM_NOT_WRITTEN"
    assert "hard links" in caught.value.hint


def test_a_link_that_was_made_though_it_is_reported_as_failed_is_made(stream, monkeypatch):
    """As network file systems do where an answer was lost and the request sent again."""
    link = os.link

    def doubtful(path, name):
        link(path, name)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", doubtful)
    last = stream.log.last()
    place = stream.log.append(stream.log.read(2))
    assert place == stream.log.place(last + 1)
    assert stream.log.last() == place.number
